"""Trustworthy evaluation of retrieval systems whose scores tie."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

import deadheat._internal.fork_guard  # noqa: F401  (it remembers which process this is)
from deadheat.errors import (
    DeadheatError as DeadheatError,
    DeadheatWarning as DeadheatWarning,
    InputError as InputError,
    MissingPackageError as MissingPackageError,
)

if _TYPE_CHECKING:
    from deadheat.comparison import (
        Comparison as Comparison,
        Leaderboard as Leaderboard,
        compare as compare,
    )
    from deadheat.comparison.leaderboard import leaderboard as leaderboard
    from deadheat.diagnosis import Diagnosis as Diagnosis, diagnose as diagnose
    from deadheat.evaluation import (
        Evaluator as Evaluator,
        Result as Result,
        evaluate as evaluate,
        evaluate_arrays as evaluate_arrays,
        evaluate_corpus as evaluate_corpus,
    )
    from deadheat.formats import (
        read_qrels as read_qrels,
        read_run as read_run,
        search_results as search_results,
    )
    from deadheat.integrations.precision import (
        high_precision as high_precision,
        low_precision as low_precision,
    )
    from deadheat.lab.check import check as check
    from deadheat.measures import (
        DCG as DCG,
        ERR as ERR,
        MAP as MAP,
        MRR as MRR,
        RBP as RBP,
        Hits as Hits,
        Measure as Measure,
        Precision as Precision,
        Recall as Recall,
        Success as Success,
        nDCG as nDCG,
    )
    from deadheat.report import figures as plot, write_report as write_report  # noqa: F401
    from deadheat.settings import EvalSettings as EvalSettings

# Where each public name is defined; its package is imported when the name is first used.
_PACKAGES = {
    "comparison": "Comparison Leaderboard compare",
    "comparison.leaderboard": "leaderboard",
    "diagnosis": "Diagnosis diagnose",
    "evaluation": "Evaluator Result evaluate evaluate_arrays evaluate_corpus",
    "formats": "read_qrels read_run search_results",
    "integrations.precision": "high_precision low_precision",
    "lab.check": "check",
    "measures": "DCG ERR MAP MRR RBP Hits Measure Precision Recall Success nDCG",
    "report": "write_report",
    "settings": "EvalSettings",
}
_HOME = {name: package for package, names in _PACKAGES.items() for name in names.split()}
__all__ = sorted(["plot", *_HOME, *(name for name in globals() if name[0].isupper())])


def __getattr__(name: str) -> object:
    """Import a public name, or a package such as `deadheat.ties`, when it is first used."""
    from importlib.util import find_spec

    if name in _HOME:
        value = getattr(_import_module(f"deadheat.{_HOME[name]}"), name)
    elif name == "plot":
        value = _import_module("deadheat.report.figures")
    elif name == "__version__":
        value = _import_module("deadheat._internal.packages").own_version()
    elif not name.startswith("_") and find_spec(f"deadheat.{name}"):
        value = _import_module(f"deadheat.{name}")
    else:
        raise AttributeError(f"module 'deadheat' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
