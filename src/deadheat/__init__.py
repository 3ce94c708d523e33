"""Trustworthy evaluation of retrieval systems whose scores tie."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from deadheat.errors import DeadheatError, DeadheatWarning, InputError, MissingPackageError
from deadheat.evaluation import (
    Result,
    Summary,
    evaluate,
    evaluate_arrays,
    evaluate_groups,
    evaluate_top,
)
from deadheat.formats import QrelsLike, RunLike, read_qrels, read_run
from deadheat.measures import (
    DCG,
    ERR,
    F1,
    MAP,
    MRR,
    RBP,
    Hits,
    Judged,
    Measure,
    Precision,
    RBPResidual,
    RCap,
    Recall,
    RPrecision,
    Success,
    bpref,
    nDCG,
)
from deadheat.measures.parse import parse_measure, parse_measures
from deadheat.ties import TIE_RULES, TieCounter, TieGroups, TopCounter

if _TYPE_CHECKING:
    from deadheat.comparison import Comparison, compare
    from deadheat.comparison.leaderboard import Leaderboard, leaderboard, leaderboards
    from deadheat.diagnosis import Diagnosis, diagnose
    from deadheat.evaluation.corpus import evaluate_corpus
    from deadheat.evaluation.corpus_stored import stored_shards
    from deadheat.evaluation.rescoring import Rescoring, evaluate_rescoring
    from deadheat.integrations.sentence_transformers import high_precision, low_precision
    from deadheat.report import figures as plot
    from deadheat.report.writing import report

# Rooms that an evaluation does not need are opened when they are asked for.
_ROOMS = {
    "Comparison": "comparison",
    "compare": "comparison",
    "Leaderboard": "comparison.leaderboard",
    "leaderboard": "comparison.leaderboard",
    "leaderboards": "comparison.leaderboard",
    "Diagnosis": "diagnosis",
    "diagnose": "diagnosis",
    "evaluate_corpus": "evaluation.corpus",
    "stored_shards": "evaluation.corpus_stored",
    "Rescoring": "evaluation.rescoring",
    "evaluate_rescoring": "evaluation.rescoring",
    "high_precision": "integrations.sentence_transformers",
    "low_precision": "integrations.sentence_transformers",
}


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name == "plot":
        return import_module("deadheat.report.figures")
    if name == "report":  # a room that can be called
        return import_module("deadheat.report")
    if name in _ROOMS:
        return getattr(import_module(f"deadheat.{_ROOMS[name]}"), name)
    if name == "__version__":
        from deadheat.packages import own_version

        return own_version()
    raise AttributeError(f"module 'deadheat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "DCG",
    "ERR",
    "F1",
    "MAP",
    "MRR",
    "RBP",
    "TIE_RULES",
    "Comparison",
    "DeadheatError",
    "DeadheatWarning",
    "Diagnosis",
    "Hits",
    "InputError",
    "Judged",
    "Leaderboard",
    "Measure",
    "MissingPackageError",
    "Precision",
    "QrelsLike",
    "RBPResidual",
    "RCap",
    "RPrecision",
    "Recall",
    "Rescoring",
    "Result",
    "RunLike",
    "Success",
    "Summary",
    "TieCounter",
    "TieGroups",
    "TopCounter",
    "bpref",
    "compare",
    "diagnose",
    "evaluate",
    "evaluate_arrays",
    "evaluate_corpus",
    "evaluate_groups",
    "evaluate_rescoring",
    "evaluate_top",
    "high_precision",
    "leaderboard",
    "leaderboards",
    "low_precision",
    "nDCG",
    "parse_measure",
    "parse_measures",
    "plot",
    "read_qrels",
    "read_run",
    "report",
    "stored_shards",
]
