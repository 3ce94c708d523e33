"""ir_measures: importing this adds ``E_nDCG@10`` and other views to its measures.

For every measure of deadheat there are ``E_…`` (expected), ``Best_…``, ``Worst_…``, ``Range_…``,
``Std_…`` and ``Bias_…``, under the names that ir_measures has for the measure and under ours. They
parse in ``ir_measures.parse_measure``, run in its default pipeline and in PyTerrier's
``pt.Experiment``, and can be imported from here.

As in ir_measures, means are over all judged queries; a query without a retrieved or a relevant
document counts as 0. ``Bias_…`` is the value of ir_measures minus the expected value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from deadheat._internal.remarks import emit_warnings
from deadheat.errors import InputError
from deadheat.evaluation import Result, evaluate_run
from deadheat.formats import read_qrels, read_run, text_id
from deadheat.integrations.base import load_host, query_values, warnings_without
from deadheat.measures import ERR, MEASURES, MRR, Judged, Measure, parse_measure
from deadheat.settings import EvalSettings

if TYPE_CHECKING:
    from ir_measures import Metric
    from pandas import DataFrame

_host: Any = load_host("ir_measures")

VIEW_PREFIXES = {"E": "expected"} | {
    view.capitalize(): view for view in ("best", "worst", "range", "std", "bias")
}
"""The prefix of a name, and its view."""


def tie_rule(measure: Measure) -> str:
    """Return the rule by which ir_measures orders tied documents for a measure.

    It counts judged documents itself, and computes RR with a cutoff by MS MARCO's script; both
    order by ascending id. pytrec_eval computes the other measures.
    """
    own = isinstance(measure, type(Judged)) or (
        isinstance(measure, type(MRR)) and measure.cutoff is not None
    )
    return "id_asc" if own else "pytrec_eval"


def _evaluate(
    qrels: DataFrame, run: DataFrame, measure: Measure, judged_only: bool
) -> Result | None:
    """Evaluate frames of ir_measures; None if the run has no judged query.

    The run caches the result, because ir_measures asks for each view separately.
    """
    cache: dict[tuple[int, Measure, bool], Any] = vars(run).setdefault("_deadheat", {})
    key = id(qrels), measure, judged_only
    if key not in cache:
        listed = run[run["query_id"].isin(qrels["query_id"])]
        if judged_only:
            judged = qrels[qrels["relevance"] >= 0]
            listed = listed.merge(judged[["query_id", "doc_id"]], on=["query_id", "doc_id"])
        result = None
        if len(listed):
            judgements = read_qrels(qrels[["query_id", "doc_id", "relevance"]])
            read = read_run(listed[["query_id", "doc_id", "score"]])
            settings = EvalSettings(tie_rule(measure), queries="all")
            result = evaluate_run(judgements, read, [measure], settings)
            emit_warnings(warnings_without(result, "missing"))  # such a query is 0 in ir_measures
        cache[key] = result, qrels  # with the frame, so that its id is not reused
    found: Result | None = cache[key][0]
    return found


class _TieStdOfMean(_host.measures.MeanAgg):  # type: ignore[misc]
    """The tie std of a mean over queries, from the tie stds of the queries."""

    def add(self, value: float) -> None:
        """Add one query."""
        super().add(value * value)

    def result(self) -> float:
        """Return the tie std of the mean; NaN without a query."""
        return math.sqrt(self.sum) / self.count if self.count else math.nan


class TieView(_host.Measure):  # type: ignore[misc]
    """A view of a measure, as a measure of ir_measures; its parameters are deadheat's."""

    RUN_INPUTS = ("query_id", "doc_id", "score")
    QREL_INPUTS = ("query_id", "doc_id", "relevance")
    view: str
    base: Measure
    """The measure, without parameters."""

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.judged_only = params.pop("judged_only", False)
        if not isinstance(self.judged_only, bool):
            raise InputError(f"judged_only of {self.NAME} must be True or False")
        if "dcg" in params:  # the name of ir_measures for the gain
            params["gain"] = parse_measure(f"nDCG(dcg={params.pop('dcg')!r})").gain  # type: ignore[attr-defined]
        self.measure = self.base(**params)

    def aggregator(self) -> Any:
        """Return the aggregator over queries."""
        return _TieStdOfMean() if self.view == "std" else super().aggregator()

    def runtime_impl(self, qrels: DataFrame, run: DataFrame) -> Iterator[Metric]:
        """Yield the value of every judged query."""
        result = _evaluate(qrels, run, self.measure, self.judged_only)
        if result is None:
            return
        values = query_values(result.views[self.measure], self.view, repr(self.measure)).tolist()
        given = {text_id(query): query for query in qrels["query_id"].unique()}
        for query, value in zip(result.query_names, values, strict=True):
            yield _host.Metric(query_id=given[query], measure=self, value=value)


def _host_names(measure: Measure) -> list[str]:
    """Return the names of a measure: those in ir_measures, then ours as a Python name."""
    names = []
    for name in _host.measures.registry:
        with suppress(InputError):
            # deadheat uses the name Accuracy for another measure.
            if name != "Accuracy" and parse_measure(name) == measure:
                names.append(name)
    return list(dict.fromkeys([*names, re.sub(r"\W", "_", measure.name)]))


def _parameters(base: Measure) -> dict[str, object]:
    declared = {
        name: _host.ParamInfo(default=getattr(base, name), desc=parameter.about)
        for name, parameter in base.parameters().items()
    }
    if "gain" in declared and "dcg" in base.name.lower():
        declared["dcg"] = _host.ParamInfo(default="log2", desc="'log2' or 'exp-log2'")
    about = "ignore returned documents without a judgement"
    return {**declared, "judged_only": _host.ParamInfo(default=False, desc=about)}


def _define() -> dict[str, TieView]:
    """Make and register the views of every measure, and return them by name."""
    defined: dict[str, TieView] = {}
    for measure in MEASURES:
        names = _host_names(measure)
        base = measure(max_grade=4) if measure == ERR else measure  # the scale of gdeval.pl
        for prefix, view in VIEW_PREFIXES.items():
            if view == "std" and measure == ERR:
                continue  # not computed
            name, *others = (f"{prefix}_{each}" for each in names)
            members = {
                "__name__": name,
                "__doc__": f"{view} of {measure.name} over all orders of tied documents.",
                "NAME": name,
                "SUPPORTED_PARAMS": _parameters(base),
                "view": view,
                "base": base,
            }
            made = type(f"_{name}", (TieView,), members)()
            _host.measures.register(made, others)
            defined |= dict.fromkeys([name, *others], made)
    return defined


globals().update(_define())

if TYPE_CHECKING:

    def __getattr__(name: str) -> TieView: ...
