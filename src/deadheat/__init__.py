"""Trustworthy evaluation of retrieval systems whose scores tie."""

from typing import Any as _Any

from deadheat.comparison import Comparison, compare
from deadheat.errors import DeadheatError, DeadheatWarning, InputError, MissingPackageError
from deadheat.evaluation import evaluate, evaluate_arrays
from deadheat.formats import read_qrels, read_run
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
    Recall,
    RPrecision,
    Success,
    nDCG,
)
from deadheat.measures.parse import parse_measure, parse_measures
from deadheat.result import Result, Summary
from deadheat.scoring import high_precision, low_precision
from deadheat.ties import TIE_RULES, TieCounter, TieGroups


def __getattr__(name: str) -> _Any:
    if name == "__version__":  # looked up when asked for: importlib.metadata is slow to import
        from importlib.metadata import version

        return version("deadheat")
    raise AttributeError(f"module 'deadheat' has no attribute {name!r}")


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
    "Hits",
    "InputError",
    "Judged",
    "Measure",
    "MissingPackageError",
    "Precision",
    "RPrecision",
    "Recall",
    "Result",
    "Success",
    "Summary",
    "TieCounter",
    "TieGroups",
    "compare",
    "evaluate",
    "evaluate_arrays",
    "high_precision",
    "low_precision",
    "nDCG",
    "parse_measure",
    "parse_measures",
    "read_qrels",
    "read_run",
]
