"""Evaluate many runs or single queries with the same judgements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from deadheat._internal.remarks import emits_warnings
from deadheat.errors import InputError
from deadheat.evaluation.evaluate import DEFAULT_MEASURES, evaluate_run
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, QrelsLike, RunLike, read_qrels, read_run, text_id
from deadheat.measures import Measure, parse_measures
from deadheat.settings import EvalOptions, EvalSettings

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Evaluator:
    """Evaluate many runs or single queries with the same judgements and measures.

    Judgements and measures are read and checked once. Use it in training loops, tests and
    services that evaluate one query or a small run at a time. The results are bit-identical to
    those of `evaluate`.

    Parameters
    ----------
    qrels, measures, **options
        As for `evaluate`. Judgements are copied: later changes of a dict have no effect.

    Examples
    --------
    >>> import deadheat as dh
    >>> evaluator = dh.Evaluator({"q1": {"d1": 1, "d3": 1}, "q2": {"d2": 1}}, ["Recall@2"])
    >>> result = evaluator.query("q1", {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5})
    >>> round(result["Recall@2"].expected, 4), result["Recall@2"].worst
    (0.6667, 0.5)
    >>> run = {"q1": {"d1": 0.9, "d2": 0.5}, "q2": {"d1": 0.9, "d2": 0.5}}
    >>> evaluator(run)["Recall@2"].expected
    0.75
    """

    def __init__(
        self,
        qrels: QrelsLike,
        measures: str | Measure | Iterable[object] = DEFAULT_MEASURES,
        **options: Unpack[EvalOptions],
    ) -> None:
        self.settings = EvalSettings.from_options(options)
        self.measures = parse_measures(measures)
        self._judgements = read_qrels(qrels)
        self._index = {query: i for i, query in enumerate(self._judgements.query_ids)}
        self._parts: dict[str, Judgements] = {}

    @emits_warnings
    def __call__(self, run: RunLike) -> Result:
        """Evaluate a run in any form that `evaluate` accepts."""
        return evaluate_run(self._judgements, run, self.measures, self.settings)

    @emits_warnings
    def query(self, query: object, scores: object) -> Result:
        """Evaluate the list of one query.

        Parameters
        ----------
        query
            The id of a judged query.
        scores
            Its documents with their scores, in any form that a run accepts as a value of
            ``{query: …}``: a dict, or a list of hits.
        """
        name = query if type(query) is str else text_id(query, "query")
        own = self._parts.get(name) or self._select(name)
        run = read_run({name: scores}, copy=False)
        return evaluate_run(own, run, self.measures, self.settings)

    def _select(self, name: str) -> Judgements:
        """Return the judgements of one query, and cache them."""
        judgements = self._judgements
        if name not in self._index:
            raise InputError(f"{judgements.source}: query {name!r} has no judgements")
        index = self._index[name]
        own = judgements.part(index, index + 1)
        if self.settings.queries == "judged" and not own.has_relevant[0]:
            raise InputError(
                f"{judgements.source}: query {name!r} has no relevant document (a grade above 0): "
                "leave it out, or count it as 0 with queries='all'"
            )
        self._parts[name] = own
        return own

    def __repr__(self) -> str:
        measures = ", ".join(map(repr, self.measures))
        return f"<Evaluator {self._judgements.source}, {len(self._index):,} queries: {measures}>"
