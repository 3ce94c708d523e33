"""Trustworthy evaluation of retrieval systems whose scores tie."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import deadheat._fork_guard  # noqa: F401  (it remembers which process this is)
from deadheat.errors import DeadheatError, DeadheatWarning, InputError, MissingPackageError

if _TYPE_CHECKING:
    from deadheat.comparison import Comparison, compare
    from deadheat.comparison.leaderboard import Leaderboard, leaderboard, leaderboards
    from deadheat.diagnosis import Diagnosis, diagnose
    from deadheat.evaluation import (
        Evaluator,
        Result,
        Summary,
        evaluate,
        evaluate_arrays,
        evaluate_groups,
        evaluate_top,
    )
    from deadheat.evaluation.corpus.evaluate import evaluate_corpus
    from deadheat.evaluation.corpus.stored import stored_shards
    from deadheat.evaluation.neighbours import neighbour_recall
    from deadheat.evaluation.rescoring import Rescoring, evaluate_rescoring
    from deadheat.formats import (
        QrelsLike,
        RunLike,
        ranked_groups,
        read_qrels,
        read_run,
        search_results,
    )
    from deadheat.integrations.sentence_transformers import high_precision, low_precision
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
    from deadheat.report import figures as plot
    from deadheat.report.writing import write_report
    from deadheat.settings import TIE_RULES
    from deadheat.ties import TieCounter, TieGroups, TopCounter

# Where the public names are; a room is opened when one of its names is asked for.
_ROOMS = {
    "comparison": ("Comparison", "compare"),
    "comparison.leaderboard": ("Leaderboard", "leaderboard", "leaderboards"),
    "diagnosis": ("Diagnosis", "diagnose"),
    "evaluation": (
        *("Evaluator", "Result", "Summary", "evaluate", "evaluate_arrays", "evaluate_groups"),
        "evaluate_top",
    ),
    "evaluation.corpus.evaluate": ("evaluate_corpus",),
    "evaluation.corpus.stored": ("stored_shards",),
    "evaluation.neighbours": ("neighbour_recall",),
    "evaluation.rescoring": ("Rescoring", "evaluate_rescoring"),
    "formats": (
        *("QrelsLike", "RunLike", "ranked_groups", "read_qrels", "read_run", "search_results"),
    ),
    "integrations.sentence_transformers": ("high_precision", "low_precision"),
    "measures": (
        *("DCG", "ERR", "F1", "MAP", "MRR", "RBP", "Hits", "Judged", "Measure", "Precision"),
        *("RBPResidual", "RCap", "Recall", "RPrecision", "Success", "bpref", "nDCG"),
    ),
    "measures.parse": ("parse_measure", "parse_measures"),
    "report.writing": ("write_report",),
    "settings": ("TIE_RULES",),
    "ties": ("TieCounter", "TieGroups", "TopCounter"),
}


def __getattr__(name: str) -> _Any:
    value = _found(name)
    globals()[name] = value  # the next time it is there
    return value


def _found(name: str) -> _Any:
    from importlib import import_module

    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"deadheat.{room}"), name)
    if name == "plot":
        return import_module("deadheat.report.figures")
    if name == "__version__":
        from deadheat.packages import own_version

        return own_version()
    if not name.startswith("_"):
        try:
            return import_module(f"deadheat.{name}")  # a package
        except ModuleNotFoundError as error:
            if error.name != f"deadheat.{name}":
                raise
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
    "Evaluator",
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
    "neighbour_recall",
    "parse_measure",
    "parse_measures",
    "plot",
    "ranked_groups",
    "read_qrels",
    "read_run",
    "search_results",
    "stored_shards",
    "write_report",
]
