"""ir_measures: importing this makes ``E_nDCG@10`` and its siblings measures of ir_measures.

For every measure of deadheat there are ``E_…`` (expected), ``Best_…``, ``Worst_…``, ``Range_…``,
``Std_…`` and ``Bias_…``, under the names that ir_measures has for the measure and under ours. They
parse in ``ir_measures.parse_measure``, run in its default pipeline and in PyTerrier's
``pt.Experiment``, and can be imported from here.

Queries count as they do there: every judged one, 0 where nothing was retrieved or nothing is
relevant. ``Bias_…`` is what ir_measures says minus the expectation.
"""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Iterator
from typing import Any

from deadheat.errors import InputError
from deadheat.evaluation import Result, Views, evaluate_run
from deadheat.formats import read_qrels, read_run
from deadheat.formats.ids import text_id
from deadheat.measures import ERR, MEASURES, MRR, Judged, Measure
from deadheat.measures.parse import parse_measure
from deadheat.packages import require_host
from deadheat.remarks import emit_warnings, texts
from deadheat.settings import EvalSettings

_host: Any = require_host("ir_measures", "ir-measures", "`deadheat.integrations.ir_measures`")

VIEWS = {
    "E": "expected",
    "Best": "best",
    "Worst": "worst",
    "Range": "range",
    "Std": "std",
    "Bias": "bias",
}
"""How a name begins, and the view it means."""
_NOT_THE_SAME = {"Accuracy"}
"""Names of ir_measures that mean something else to others."""


def tie_rule(measure: Measure) -> str:
    """Name the rule by which ir_measures orders tied documents for a measure.

    It counts judged documents itself, and takes RR with a cutoff from MS MARCO's script: both by
    id, ascending. The others come from pytrec_eval.
    """
    own = isinstance(measure, type(Judged)) or (
        isinstance(measure, type(MRR)) and measure.cutoff is not None
    )
    return "id_asc" if own else "pytrec_eval"


class _Evaluated:
    """The frames last evaluated, and what came of them: ir_measures asks for each measure alone."""

    def __init__(self, qrels: Any, run: Any, judged_only: bool) -> None:
        self._frames = weakref.ref(qrels), weakref.ref(run), judged_only
        run = run[run["query_id"].isin(qrels["query_id"])]
        if judged_only:
            judged = qrels[qrels["relevance"] >= 0]
            run = run.merge(judged[["query_id", "doc_id"]], on=["query_id", "doc_id"])
        self.query_ids = {text_id(query): query for query in qrels["query_id"].unique()}
        self._judgements = read_qrels(qrels[["query_id", "doc_id", "relevance"]])
        self._run = read_run(run[["query_id", "doc_id", "score"]]) if len(run) else None
        self._results: dict[Measure, Result] = {}

    def holds(self, qrels: Any, run: Any, judged_only: bool) -> bool:
        """Whether it is of these very frames."""
        held = self._frames
        return held[0]() is qrels and held[1]() is run and held[2] == judged_only

    def result(self, measure: Measure) -> Result | None:
        """All views of a measure; None where the run has no judged query."""
        if self._run is not None and measure not in self._results:
            self._results[measure] = evaluate_run(
                self._judgements,
                self._run,
                [measure],
                EvalSettings(tie_rule(measure), queries="all"),
            )
            # Here a query that the run misses is 0 by definition.
            remarks = [r for r in self._results[measure].remarks if "missing" not in r.values]
            emit_warnings(texts(remarks, "warning"))
        return self._results.get(measure)


_last: list[_Evaluated] = []


def _evaluated(qrels: Any, run: Any, judged_only: bool) -> _Evaluated:
    if not (_last and _last[0].holds(qrels, run, judged_only)):
        _last[:] = [_Evaluated(qrels, run, judged_only)]
    return _last[0]


class _RootOfSquares(_host.measures.base.Agg):  # type: ignore[misc]
    """The tie std of a mean, from those of its queries."""

    def __init__(self) -> None:
        self._squares = 0.0
        self._count = 0

    def add(self, value: float) -> None:
        """Take one query."""
        self._squares += value * value
        self._count += 1

    def result(self) -> float:
        """Give the standard deviation of the mean."""
        return math.sqrt(self._squares) / self._count if self._count else math.nan


class TieView(_host.Measure):  # type: ignore[misc]
    """A view of a measure, as a measure of ir_measures; its parameters are deadheat's."""

    RUN_INPUTS = ("query_id", "doc_id", "score")
    QREL_INPUTS = ("query_id", "doc_id", "relevance")
    view: str
    base: Measure
    """The measure, without parameters."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.validate_params()

    @property
    def measure(self) -> Measure:
        """The measure with its parameters, as deadheat writes it."""
        params = {name: value for name, value in self.params.items() if name != "judged_only"}
        if "dcg" in params:  # the name of ir_measures for the gain
            params["gain"] = parse_measure(f"nDCG(dcg={params.pop('dcg')!r})").gain  # type: ignore[attr-defined]
        return self.base(**params)

    def validate_params(self) -> None:
        """Refuse what is no parameter, or not a value of it."""
        if not isinstance(self.params.get("judged_only", False), bool):
            raise InputError(f"judged_only of {self.NAME} must be True or False")
        _ = self.measure

    def aggregator(self) -> Any:
        """Give what averages over queries."""
        return _RootOfSquares() if self.view == "std" else super().aggregator()

    def runtime_impl(self, qrels: Any, run: Any) -> Iterator[Any]:
        """Give the value of every judged query."""
        found = _evaluated(qrels, run, self.params.get("judged_only", False))
        result = found.result(self.measure)
        if result is None:
            return
        views: Views = result.views[self.measure]
        for query, value in zip(result.query_names, getattr(views, self.view), strict=True):
            yield _host.Metric(query_id=found.query_ids[query], measure=self, value=float(value))


def _host_names(measure: Measure) -> list[str]:
    """Give the names of a measure in ir_measures, those of ours that Python can read last."""
    names = []
    for name in _host.measures.registry:
        try:
            same = name not in _NOT_THE_SAME and parse_measure(name) == measure
        except InputError:
            same = False
        names += [name] * same
    return list(dict.fromkeys([*names, re.sub(r"\W", "_", measure.name)]))


def _parameters(base: Measure) -> dict[str, Any]:
    declared = {
        name: _host.ParamInfo(default=getattr(base, name), desc=parameter.about)
        for name, parameter in base.parameters().items()
    }
    if "gain" in declared and "dcg" in getattr(base, "name", "").lower():
        declared["dcg"] = _host.ParamInfo(default="log2", desc="'log2' or 'exp-log2'")
    about = "ignore returned documents without a judgement"
    return {**declared, "judged_only": _host.ParamInfo(default=False, desc=about)}


def _define() -> dict[str, TieView]:
    """Make and register the views of every measure, and give them by name."""
    defined: dict[str, TieView] = {}
    for measure in MEASURES:
        names = _host_names(measure)
        base = measure(max_grade=4) if measure == ERR else measure  # the scale of gdeval.pl
        for prefix, view in VIEWS.items():
            if view == "std" and measure == ERR:
                continue  # not computed
            name, *others = (f"{prefix}_{each}" for each in names)
            members = {
                "__name__": name,
                "__doc__": f"{view} of {measure.name} over all orders of tied documents.",
                "NAME": name,
                "PRETTY_NAME": f"{measure.name}, {view}",
                "SHORT_DESC": f"{measure.formula} ({view} over all orders of tied documents)",
                "SUPPORTED_PARAMS": _parameters(base),
                "view": view,
                "base": base,
            }
            made = type(f"_{name}", (TieView,), members)()
            _host.measures.register(made, others)
            defined |= dict.fromkeys([name, *others], made)
    return defined


_DEFINED = _define()


def __getattr__(name: str) -> Any:
    if name in _DEFINED:
        return _DEFINED[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_DEFINED})
