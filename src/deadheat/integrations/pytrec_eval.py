"""pytrec_eval: its `RelevanceEvaluator`, with any view of ties in place of an order by id.

``from deadheat.integrations import pytrec_eval`` replaces ``import pytrec_eval``; names that are
not defined here are those of the original.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from deadheat._internal.remarks import emit_warnings, some
from deadheat.errors import InputError
from deadheat.evaluation import Result, check_views
from deadheat.formats import read_qrels, read_run, text_id
from deadheat.integrations.base import (
    SPREADS,
    ByQuery,
    Lists,
    evaluate_lists,
    load_attribute,
    load_host,
    read_lists,
)
from deadheat.measures import parse_measure
from deadheat.settings import EvalOptions, EvalSettings

if TYPE_CHECKING:
    from typing_extensions import Unpack

OURS = re.compile(
    r"map|ndcg|recip_rank|Rprec|bpref|(map_cut|ndcg_cut|P|recall|relative_P|success)_\d+"
)
"""Names of pytrec_eval whose measures deadheat has."""
TIELESS = re.compile(r"runid|num_.*|set_.*|utility")
"""Names of pytrec_eval whose values do not depend on the order of documents."""


def __getattr__(name: str) -> Any:
    return load_attribute("pytrec_eval", name)


class RelevanceEvaluator:
    """Evaluates runs like the evaluator of that name in pytrec_eval, with a view of ties.

    Names, output and definitions are the original's: the judged queries of the run are evaluated,
    and a query without a relevant document counts as 0. Ids may be numbers, grades may have
    fractions, and scores may be NumPy scalars. A NaN score is an error.

    Parameters
    ----------
    query_relevance
        ``{query: {document: grade}}``.
    measures
        Names and nicknames of pytrec_eval. The original computes measures that deadheat does not
        have, with a warning if they depend on ties.
    relevance_level
        The lowest relevant grade. Default: every grade above 0 is relevant.
    judged_docs_only_flag
        Whether documents without a judgement are removed from the run.
    view
        View to return: ``"expected"``, ``"best"``, ``"worst"``, ``"range"``, ``"std"``,
        ``"bias"``, or ``"oblivious"``, which is the value of the original.
    **options
        Other fields of `deadheat.EvalSettings`. The original casts scores to float32; if scores
        are rounded to ``"float32"`` first, every view has the ties that this makes.

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
        query_relevance: Lists,
        measures: Iterable[str],
        relevance_level: float | None = None,
        judged_docs_only_flag: bool = False,
        *,
        view: str = "expected",
        **options: Unpack[EvalOptions],
    ) -> None:
        check_views([view])
        self.view = view
        # All views of the last run, of the measures that deadheat has.
        self.result: Result | None = None
        self._settings = EvalSettings("pytrec_eval", queries="all", **options)  # type: ignore[arg-type,misc]
        self._judged_only = judged_docs_only_flag
        self._level = relevance_level
        self._grades = read_qrels(query_relevance).to_dict()
        self._asked, self._names = _read_names(measures)
        self._measures = {}
        for name in filter(OURS.fullmatch, self._names):
            measure = parse_measure(name)
            level = {"rel": relevance_level} if "rel" in measure.parameters() else {}
            self._measures[name] = measure(**level)
        self._others = [name for name in self._names if name not in self._measures]
        if tied := [name for name in self._others if not TIELESS.fullmatch(name)]:
            lacking = f"deadheat does not have {some(tied, 3)}"
            if view in SPREADS:
                raise InputError(f"{lacking}, so there is no view {view!r} of them: leave them out")
            emit_warnings([f"{lacking}: pytrec_eval computes them, ties in order of ids"])

    def evaluate(self, scores: Lists) -> dict[Hashable, dict[str, float]]:
        """Evaluate a run ``{query: {document: score}}``, and return ``{query: {name: value}}``.

        Queries are in the order of the run, with their original ids.
        """
        self.result = None
        listed = read_lists(scores, "the run")
        run = {query: docs for query, docs in listed.items() if query in self._grades}
        if not run:
            return {}
        grades = {query: self._grades[query] for query in run}
        if self._judged_only:
            run = {
                query: {d: s for d, s in docs.items() if grades[query].get(text_id(d), -1) >= 0}
                for query, docs in run.items()
            }
        values, self.result = evaluate_lists(grades, run, self._measures, self.view, self._settings)
        if self.result is not None:
            emit_warnings(self.result.warnings)
        if self._others:
            values |= self._delegate(grades, run)
        return {
            query: {name: values[name][text] for name in self._names}
            for query in scores
            if (text := text_id(query)) in run
        }

    def _delegate(
        self, grades: dict[str, dict[str, float]], run: ByQuery
    ) -> dict[str, dict[str, float]]:
        """Return the values that pytrec_eval computes; range, std and bias are 0."""
        if self.view in SPREADS:
            return {name: dict.fromkeys(run, 0.0) for name in self._others}
        for query, docs in grades.items():
            if max(docs.values()) < 0 or not all(map(float.is_integer, docs.values())):
                raise InputError(
                    f"query {query!r}: pytrec_eval, which computes {self._others[0]}, needs whole "
                    "grades, at least one of them 0 or more; leave out that query or that measure"
                )
        whole = {query: {doc: int(g) for doc, g in docs.items()} for query, docs in grades.items()}
        listed: dict[str, object] = {query: {} for query in run}
        if any(run.values()):
            listed |= read_run(run).to_dict()
        level = 1 if self._level is None else self._level
        evaluator = load_host("pytrec_eval").RelevanceEvaluator(whole, self._asked, level)
        values = evaluator.evaluate(listed)
        return {name: {query: values[query][name] for query in run} for name in self._others}


def _read_names(measures: Iterable[str]) -> tuple[set[str], list[str]]:
    """Return names of measures, and the names under which pytrec_eval returns them."""
    original = load_host("pytrec_eval").RelevanceEvaluator
    try:
        asked = set(measures)
        evaluator = original({"q": {"d": 1}}, asked)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"measures must be a set of names of pytrec_eval, such as {{'ndcg_cut_10'}}, not "
            f"{measures!r:.60}: {error}"
        ) from None
    return asked, list(evaluator.evaluate({"q": {"d": 1.0}})["q"])
