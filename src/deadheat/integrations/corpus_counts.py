"""Counts of a search of a whole corpus, for hosts that keep only the first documents."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from deadheat._internal.packages import require
from deadheat.evaluation import Result, evaluate_tie_groups
from deadheat.integrations.base import Measures
from deadheat.measures import parse_measures
from deadheat.ties import TopCounter

if TYPE_CHECKING:
    from torch import Tensor


class CorpusCounts:
    """The first `k` documents of each query, and the number that tie with the last of them.

    Parameters
    ----------
    query_ids, document_ids
        Ids of the queries, and of the corpus in the order of the search.
    qrels
        Judgements of the queries.
    k
        The deepest cutoff.
    without_query
        Whether a document with the id of its query is dropped, as in some tasks.
    by_id
        Whether the oblivious value breaks ties by ascending id; otherwise it uses the order of the
        corpus.
    """

    def __init__(
        self,
        query_ids: Iterable[Hashable],
        document_ids: Iterable[Hashable],
        qrels: Mapping[Hashable, Mapping[Hashable, float]],
        k: int,
        *,
        without_query: bool = False,
        by_id: bool = False,
    ) -> None:
        self.query_ids = list(query_ids)
        index = {document: i for i, document in enumerate(document_ids)}
        self.places = np.arange(len(index))
        if by_id:  # numbers before texts
            order = sorted(index, key=lambda name: (isinstance(name, str), name))
            self.places = np.argsort([index[name] for name in order])
        listed: list[tuple[float, ...]] = []  # query, place, grade
        absent: list[tuple[float, ...]] = []  # query, grade
        for query, name in enumerate(self.query_ids):
            for document, grade in qrels.get(name, {}).items():
                if document not in index or (without_query and document == name):
                    absent.append((query, grade))
                else:
                    listed.append((query, self.places[index[document]], grade))
        # Grades may be fractions.
        self.judged = np.array(listed, np.float64).reshape(-1, 3).T
        self.unretrieved = np.array(absent, np.float64).reshape(-1, 2).T
        own = [(q, index[x]) for q, x in enumerate(self.query_ids) if without_query and x in index]
        self.left_out = np.array(own, np.int64).reshape(-1, 2).T
        self.n_documents = len(index)
        self.seen = 0
        self.counter = TopCounter(len(self.query_ids), k, judged=(self.judged[0], self.judged[1]))

    def add(self, values: Tensor | ArrayLike) -> None:
        """Count the scores of all queries with the next documents of the corpus."""
        torch = require("torch", "counting the scores of a corpus")
        scores = torch.as_tensor(values).detach()
        scores = scores.to_dense() if scores.is_sparse else scores
        first, self.seen = self.seen, self.seen + scores.shape[1]
        query, own = self.left_out
        here = (own >= first) & (own < self.seen)
        if here.any():  # dropped documents get a rank below all judged documents
            scores = scores.clone() if scores.is_floating_point() else scores.double()
            scores[torch.from_numpy(query[here]), torch.from_numpy(own[here] - first)] = -np.inf
        self.counter.update(scores, positions=self.places[first : self.seen])

    def counting(self, score: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Return a function that scores like another, and counts the scores."""

        def count(*embeddings: object) -> Tensor:
            scores = score(*embeddings)
            self.add(scores)
            return scores

        return count

    @property
    def complete(self) -> bool:
        """Whether every document of the corpus was counted."""
        return self.seen == self.n_documents

    def evaluate(self, measures: Measures) -> Result:
        """Evaluate measures over all queries."""
        groups = self.counter.groups(*self.judged, unretrieved=tuple(self.unretrieved))
        return evaluate_tie_groups(groups, parse_measures(measures), self.query_ids)
