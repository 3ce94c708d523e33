"""Counts of a search of a whole corpus, for hosts that keep only the first documents."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from deadheat.evaluation import Result, evaluate_tie_groups
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.packages import require
from deadheat.ties import TopCounter
from deadheat.ties.groups import Ints


class CorpusCounts:
    """The first `k` documents of each query, and how many tie with the last of them.

    Parameters
    ----------
    query_ids, document_ids
        Of the queries, and of the corpus in the order in which it is searched.
    qrels
        Judgements of the queries.
    k
        The deepest cutoff.
    without_query
        Whether a document with the id of its query is left out, as some tasks do.
    by_id
        Whether the oblivious value is that of ties in the ascending order of ids; otherwise it is
        that of the order of the corpus.
    """

    def __init__(
        self,
        query_ids: Iterable[Hashable],
        document_ids: Iterable[Hashable],
        qrels: Mapping[Any, Mapping[Any, float]],
        k: int,
        *,
        without_query: bool = False,
        by_id: bool = False,
    ) -> None:
        self.query_ids = list(query_ids)
        index = {document: i for i, document in enumerate(document_ids)}
        self.places = _ascending(list(index)) if by_id else np.arange(len(index))
        listed: list[tuple[float, ...]] = []
        absent: list[tuple[float, ...]] = []
        for query, name in enumerate(self.query_ids):
            for document, grade in qrels.get(name, {}).items():
                left_out = without_query and document == name
                if left_out or document not in index:
                    absent.append((query, grade))
                else:
                    listed.append((query, self.places[index[document]], grade))
        self.judged = _columns(listed, 3)
        self.unretrieved = _columns(absent, 2)
        own = [(q, index[name]) for q, name in enumerate(self.query_ids) if name in index]
        self.left_out = np.array(own if without_query else [], np.int64).reshape(-1, 2).T
        self.n_documents = len(index)
        self.seen = 0
        self.counter = TopCounter(len(self.query_ids), k, judged=self.judged[:2])

    def add(self, scores: Any) -> None:
        """Count the scores of all queries with the documents that follow those seen."""
        torch = require("torch", "counting the scores of a corpus")
        scores = torch.as_tensor(scores).detach()
        scores = scores.to_dense() if scores.is_sparse else scores
        first, self.seen = self.seen, self.seen + scores.shape[1]
        query, own = self.left_out
        here = (own >= first) & (own < self.seen)
        if here.any():  # below all others, where no judged document is
            scores = scores.clone() if scores.is_floating_point() else scores.double()
            scores[torch.from_numpy(query[here]), torch.from_numpy(own[here] - first)] = -np.inf
        self.counter.update(scores, positions=self.places[first : self.seen])

    @property
    def complete(self) -> bool:
        """Whether the whole corpus passed by."""
        return self.seen == self.n_documents

    def evaluate(self, measures: Sequence[str | Measure]) -> Result:
        """Give every view of measures, over all queries."""
        groups = self.counter.groups(*self.judged, unretrieved=self.unretrieved)
        return evaluate_tie_groups(groups, parse_measures(measures), self.query_ids)


def _ascending(ids: list[Any]) -> Ints:
    """Give the place of each id when all are sorted."""
    places = np.empty(len(ids), np.int64)
    if all(type(name) is str for name in ids):
        order: Any = pl.Series(ids, dtype=pl.String).arg_sort().to_numpy()  # as Python sorts them
    else:
        try:
            order = sorted(range(len(ids)), key=ids.__getitem__)
        except TypeError:  # ids of several types have no order of their own
            order = sorted(range(len(ids)), key=lambda i: str(ids[i]))
    places[order] = np.arange(len(ids))
    return places


def _columns(rows: Sequence[tuple[float, ...]], n: int) -> Any:
    """Give `n` columns: indices, and grades where there are any, which may be fractions."""
    return tuple(np.array(rows, np.float64).reshape(-1, n).T)
