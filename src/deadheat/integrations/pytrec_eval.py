"""pytrec_eval: its `RelevanceEvaluator`, with any view of ties in place of an order by id.

``from deadheat.integrations import pytrec_eval`` stands in for ``import pytrec_eval``: what is not
defined here is the original's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from deadheat.errors import InputError
from deadheat.evaluation import VIEW_COLUMNS, Result, evaluate_run
from deadheat.formats import read_qrels, read_run
from deadheat.formats.ids import text_id, with_text_ids
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measure
from deadheat.numbers import number
from deadheat.packages import require_host
from deadheat.remarks import emit_warnings
from deadheat.settings import EvalSettings

OURS = re.compile(
    r"map|ndcg|recip_rank|Rprec|bpref|(map_cut|ndcg_cut|P|recall|relative_P|success)_\d+"
)
"""Names of pytrec_eval whose measures deadheat has."""
TIELESS = re.compile(r"runid|num_.*|set_.*|utility")
"""Names of pytrec_eval whose values rest on what was retrieved, in whatever order."""
SPREADS = ("std", "range", "bias")
"""Views that are 0 where no order matters."""


def _original() -> Any:
    return require_host("pytrec_eval", "pytrec-eval", "`deadheat.integrations.pytrec_eval`")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_original(), name)


class RelevanceEvaluator:
    """Evaluates runs as the evaluator of that name in pytrec_eval does, with a view of ties.

    Names, shape and definitions are the original's: the queries of the run that are judged count,
    one without a relevant document as 0. Ids may be numbers, grades may have fractions, and scores
    may be NumPy scalars. A score that is NaN is refused.

    Parameters
    ----------
    query_relevance
        ``{query: {document: grade}}``.
    measures
        Names and nicknames of pytrec_eval. A measure that deadheat does not have is computed by
        the original; if ties matter to it, a warning says so.
    relevance_level
        The lowest relevant grade; unless given, every grade above 0 is relevant.
    judged_docs_only_flag
        Whether documents without a judgement are taken out of the run.
    view
        What to give: ``"expected"``, ``"best"``, ``"worst"``, ``"range"``, ``"std"``,
        ``"bias"``, or ``"oblivious"``, which is what the original gives.
    **options
        `tie_tolerance`, `nan` and `score_dtype` as for `deadheat.evaluate`. The original casts
        scores to float32; with ``score_dtype="float32"`` every view has the ties that this makes.

    Examples
    --------
    >>> qrels, run = {"q": {"d1": 1}}, {"q": {"d1": 0.5, "d2": 0.5}}
    >>> RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
    {'q': {'recip_rank': 0.75}}
    >>> RelevanceEvaluator(qrels, {"recip_rank"}, view="oblivious").evaluate(run)
    {'q': {'recip_rank': 0.5}}
    """

    def __init__(
        self,
        query_relevance: Mapping[Any, Mapping[Any, Any]],
        measures: Iterable[str],
        relevance_level: float | None = None,
        judged_docs_only_flag: bool = False,
        *,
        view: str = "expected",
        **options: Any,
    ) -> None:
        if view not in VIEW_COLUMNS:
            raise InputError(f"unknown view {view!r}: use one of {', '.join(VIEW_COLUMNS)}")
        self.view = view
        # All views of the last run, of the measures that deadheat has.
        self.result: Result | None = None
        self._settings = EvalSettings("pytrec_eval", queries="all", **options)
        self._judged_only = judged_docs_only_flag
        self._level = relevance_level
        self._qrels = _with_text_queries(query_relevance, "the judgements")
        self._asked = _asked(measures)
        self._names = _names(self._asked)
        self._measures = {
            name: _measure(name, relevance_level) for name in self._names if OURS.fullmatch(name)
        }
        emit_warnings(self._tied_elsewhere())

    def evaluate(self, scores: Mapping[Any, Mapping[Any, Any]]) -> dict[Any, dict[str, float]]:
        """Evaluate a run, ``{query: {document: score}}``, and give ``{query: {name: value}}``.

        Queries come back as the run has them, in its order.
        """
        run = {
            query: docs
            for query, docs in _with_text_queries(scores, "the run").items()
            if query in self._qrels and len(self._qrels[query])
        }
        if not run:
            return {}
        if self._judged_only:
            run = {query: self._judged(query, docs) for query, docs in run.items()}
        self.result = None
        values = {**self._values(run), **self._delegated(run)}
        emit_warnings([] if self.result is None else self.result.warnings)
        place = {query: i for i, query in enumerate(run)}
        return {
            query: {name: values[name][place[text_id(query)]] for name in self._names}
            for query in scores
            if text_id(query) in place
        }

    def _values(self, run: Mapping[str, Mapping[Any, Any]]) -> dict[str, list[float]]:
        """Values of the measures that deadheat has, in the order of the queries of the run."""
        if not self._measures:
            return {}
        if not any(map(len, run.values())):  # retrieved nothing
            return dict.fromkeys(self._measures, [0.0] * len(run))
        self.result = result = evaluate_run(
            read_qrels({query: self._qrels[query] for query in run}),
            read_run(run, copy=False),
            list(dict.fromkeys(self._measures.values())),
            self._settings,
        )
        place = {query: i for i, query in enumerate(result.query_names)}
        order = np.array([place[query] for query in run])
        return {
            name: getattr(result.views[measure], self.view)[order].tolist()
            for name, measure in self._measures.items()
        }

    def _delegated(self, run: Mapping[str, Mapping[Any, Any]]) -> dict[str, list[float]]:
        """Values of the measures that the original computes."""
        names = [name for name in self._names if name not in self._measures]
        if not names:
            return {}
        if self.view in SPREADS:
            return dict.fromkeys(names, [0.0] * len(run))
        level = 1 if self._level is None else self._level
        evaluator = _original().RelevanceEvaluator(
            {query: _whole(query, self._qrels[query], names) for query in run}, self._asked, level
        )
        plain = {
            query: with_text_ids(_numbers(query, docs, "score"), f"query {query!r}")
            for query, docs in run.items()
        }
        values = evaluator.evaluate(plain)
        return {name: [values[query][name] for query in run] for name in names}

    def _judged(self, query: str, docs: Mapping[Any, Any]) -> dict[Any, Any]:
        grades = with_text_ids(self._qrels[query], f"query {query!r}")
        return {doc: score for doc, score in docs.items() if grades.get(text_id(doc), -1) >= 0}

    def _tied_elsewhere(self) -> list[str]:
        """Say which measures come from the original though ties matter to them."""
        names = [n for n in self._names if not (OURS.fullmatch(n) or TIELESS.fullmatch(n))]
        if not names:
            return []
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        if self.view in SPREADS:
            raise InputError(
                f"deadheat does not have {listed}, so there is no view {self.view!r} of them: "
                "leave them out"
            )
        return [f"deadheat does not have {listed}: pytrec_eval computes them, ties in order of ids"]


def _with_text_queries(lists: Mapping[Any, Any], what: str) -> dict[str, Mapping[Any, Any]]:
    """Name the queries by text, and check that each has a list of documents."""
    if not isinstance(lists, Mapping):
        raise InputError(f"{what} must be {{query: {{document: number}}}}, not {lists!r:.60}")
    named = {text_id(query, f"{what}, a query"): docs for query, docs in lists.items()}
    if len(named) < len(lists):
        raise InputError(f"{what}: two queries have the same id once it is written as text")
    for query, docs in named.items():
        if not isinstance(docs, Mapping):
            raise InputError(f"{what}: query {query!r} holds a {type(docs).__name__}, not a dict")
    return named


def _asked(measures: Iterable[str]) -> set[str]:
    if isinstance(measures, str) or not isinstance(measures, Iterable):
        raise InputError(
            f"measures must be a set of names of pytrec_eval, such as {{'ndcg_cut_10'}}, not "
            f"{measures!r:.60}"
        )
    return set(measures)


def _names(asked: set[str]) -> list[str]:
    """Give the names under which the original returns what was asked for: those of one document."""
    try:
        evaluator = _original().RelevanceEvaluator({"q": {"d": 1}}, asked)
    except (TypeError, ValueError) as error:
        raise InputError(f"pytrec_eval refuses these measures: {error}") from None
    return list(evaluator.evaluate({"q": {"d": 1.0}})["q"])


def _measure(name: str, level: float | None) -> Measure:
    measure = parse_measure(name)
    return measure(rel=level) if "rel" in measure.parameters() else measure


def _whole(query: str, grades: Mapping[Any, Any], names: list[str]) -> dict[str, int]:
    """Give grades as the original takes them: whole numbers, not all of them below 0."""
    named = with_text_ids(_numbers(query, grades, "grade"), f"query {query!r}")
    for doc, grade in named.items():
        if not grade.is_integer():
            raise InputError(
                f"the grade of document {doc!r} of query {query!r} is {grade}, and pytrec_eval, "
                f"which computes {names[0]}, takes whole grades only: leave that measure out"
            )
    if max(named.values()) < 0:
        raise InputError(
            f"pytrec_eval, which computes {names[0]}, cannot take a query without a grade from 0 "
            f"up, as {query!r} is: leave that query or that measure out"
        )
    return {doc: int(grade) for doc, grade in named.items()}


def _numbers(query: str, docs: Mapping[Any, Any], what: str) -> dict[Any, float]:
    try:
        return {doc: float(number(value)) for doc, value in docs.items()}
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"query {query!r}: a {what} is not a number ({error})") from None
