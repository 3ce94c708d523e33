"""A search of a whole corpus by MTEB, with every score counted as it passes by.

MTEB keeps a thousand documents of each query. Which of those that tie with the last one it
keeps is chance, and how many they are is lost; here they are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from deadheat.evaluation import Result, evaluate_groups
from deadheat.packages import require
from deadheat.ties import TopCounter


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
    """

    def __init__(
        self,
        query_ids: Sequence[str],
        document_ids: Sequence[str],
        qrels: Mapping[str, Mapping[str, float]],
        k: int,
        *,
        without_query: bool = False,
    ) -> None:
        self.query_ids = list(query_ids)
        place = {document: i for i, document in enumerate(document_ids)}
        listed, absent = [], []
        for query, name in enumerate(self.query_ids):
            for document, grade in qrels.get(name, {}).items():
                left_out = without_query and document == name
                if left_out or document not in place:
                    absent.append((query, grade))
                else:
                    listed.append((query, place[document], grade))
        self.judged = _columns(listed, 3)
        self.unretrieved = _columns(absent, 2)
        own = [(q, place[name]) for q, name in enumerate(self.query_ids) if name in place]
        self.left_out = np.array(own if without_query else [], np.int64).reshape(-1, 2).T
        self.n_documents = len(place)
        self.seen = 0
        self.counter = TopCounter(len(self.query_ids), k, judged=self.judged[:2])

    def add(self, scores: Any) -> None:
        """Count the scores of all queries with the documents that follow those seen."""
        torch = require("torch", "counting the scores of a corpus")
        scores = torch.as_tensor(scores).detach()
        scores = scores.to_dense() if scores.is_sparse else scores
        first, self.seen = self.seen, self.seen + scores.shape[1]
        query, place = self.left_out
        here = (place >= first) & (place < self.seen)
        if here.any():  # below all others, where no judged document is
            scores = scores.clone() if scores.is_floating_point() else scores.double()
            scores[torch.from_numpy(query[here]), torch.from_numpy(place[here] - first)] = -np.inf
        self.counter.update(scores, start=first)

    @property
    def complete(self) -> bool:
        """Whether the whole corpus passed by."""
        return self.seen == self.n_documents

    def evaluate(self, measures: Sequence[str]) -> Result:
        """Give every view of measures, over all queries; ties in the order of the corpus."""
        groups = self.counter.groups(*self.judged, unretrieved=self.unretrieved)
        return evaluate_groups.quiet(groups, measures, query_ids=self.query_ids)


def _columns(rows: Sequence[tuple[float, ...]], n: int) -> Any:
    """Give `n` columns: indices, and grades where there are any, which may be fractions."""
    return tuple(np.array(rows, np.float64).reshape(-1, n).T)


def counting_search(encoder: Any, counts_of: Any) -> Any:
    """Give MTEB's search for an encoder, which counts what `counts_of` a search asks for.

    `counts_of` is called with the ids of queries and corpus, and the search's subset and split.
    """
    from mteb.models import SearchEncoderWrapper

    search = _search_class(SearchEncoderWrapper)(encoder)
    search.counts_of = counts_of
    return search


class _CountingSearch:
    model: Any
    task_corpus: Any
    counts_of: Any

    def search(self, queries: Any, *, top_ranked: Any = None, **options: Any) -> Any:
        """Search as MTEB does; a search of the whole corpus is counted."""
        upstream: Any = super()
        if top_ranked is not None:
            return upstream.search(queries, top_ranked=top_ranked, **options)
        encoder = self.model
        counts = self.counts_of(
            list(queries["id"]),
            list(self.task_corpus["id"]),
            subset=options["hf_subset"],
            split=options["hf_split"],
        )
        self.model = _Tap(encoder, counts)
        try:
            return upstream.search(queries, top_ranked=None, **options)
        finally:
            self.model = encoder


class _Tap:
    """An encoder whose scores are counted as they pass by."""

    def __init__(self, encoder: Any, counts: CorpusCounts) -> None:
        self.encoder = encoder
        self.counts = counts

    def similarity(self, queries: Any, documents: Any) -> Any:
        """Score as the encoder does."""
        scores = self.encoder.similarity(queries, documents)
        self.counts.add(scores)
        return scores

    def __getattr__(self, name: str) -> Any:
        return getattr(self.encoder, name)


@lru_cache
def _search_class(base: Any) -> Any:
    return type("CountingSearch", (_CountingSearch, base), {})
