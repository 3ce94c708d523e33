"""Evaluate a two-stage search: coarse embeddings select candidates, finer ones rerank them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from deadheat._internal.fork_guard import check_fork
from deadheat._internal.lazy import pl
from deadheat._internal.numbers import check_number
from deadheat._internal.remarks import Remark, emits_warnings, warning
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import Chunk, Chunks, open_shards
from deadheat.evaluation.corpus.evaluate import (
    Corpus,
    evaluate_shards,
    score_pairs,
)
from deadheat.evaluation.evaluate import DEFAULT_MEASURES, evaluate_run
from deadheat.evaluation.result import Result
from deadheat.formats import QrelsLike, query_names, read_qrels, read_run, text_id
from deadheat.measures import Measure, parse_measures
from deadheat.scoring import Matrix, Product, Products
from deadheat.ties import TopCounter


@dataclass(frozen=True)
class Rescoring:
    """Results of both stages of a search."""

    first: Result
    """Result on the whole corpus, ranked by the first embeddings."""
    second: Result
    """Result on the candidates, ranked by the second embeddings."""

    @property
    def warnings(self) -> list[str]:
        """Warnings about the input of both stages that change the meaning of the numbers."""
        return list(dict.fromkeys(self.first.warnings + self.second.warnings))


@emits_warnings
def evaluate_rescoring(
    qrels: QrelsLike,
    query_embeddings: tuple[Sequence[object], Matrix, Matrix],
    chunks: Chunks,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    candidates: int = 100,
    similarity: tuple[Product, Product] = ("hamming", "dot"),
) -> Rescoring:
    """Evaluate a two-stage search.

    Binary or int8 embeddings select candidates, finer embeddings rerank them. The first stage is
    evaluated on the whole corpus, like `deadheat.evaluate_corpus`. The second stage reranks the
    top `candidates` documents of the first.

    If the cut at `candidates` is inside a tie group, all documents of the group are rescored, so
    the second stage does not depend on their order. A warning gives the number of such queries
    and the length of their longest list. For these queries, a system that rescores exactly
    `candidates` documents may score higher or lower.

    Parameters
    ----------
    qrels, measures
        As for `deadheat.evaluate`.
    query_embeddings
        ``(query_ids, first_embeddings, second_embeddings)``.
    chunks
        Chunks ``(document_ids, first_embeddings, second_embeddings)``: an iterable that can be
        read more than once, or a function that returns an iterator. It is read three times.
    candidates
        Number of documents that are rescored. Default: 100.
    similarity
        The similarities of the first and the second stage, each as for
        `deadheat.evaluate_corpus`. The second stage may score int8 documents with float queries.

    Examples
    --------
    >>> import numpy as np
    >>> import deadheat as dh
    >>> documents = np.array([[3, 1], [2, 2], [-1, 4], [1, 3]], np.float32)
    >>> query = np.array([[1, 2]], np.float32)
    >>> found = dh.evaluation.evaluate_rescoring(
    ...     {"q": {"d": 1}},
    ...     (["q"], query > 0, query),
    ...     [(list("abcd"), documents > 0, documents)],
    ...     ["MRR"],
    ...     candidates=3,
    ... )
    >>> round(found.first["MRR"].expected, 4), found.second["MRR"].expected
    (0.6111, 1.0)
    """
    check_fork()
    judgements, parsed = read_qrels(qrels), parse_measures(measures)
    try:
        (ids, coarse, finer), (first_kind, second_kind) = query_embeddings, similarity
    except (TypeError, ValueError):
        raise InputError(
            "query_embeddings must be (query_ids, first_embeddings, second_embeddings), and "
            "similarity a pair"
        ) from None
    one = Products.of(coarse, first_kind, "native")
    two = Products.of(finer, second_kind, "native")
    names = query_names(ids, one.n_queries)
    if two.n_queries != one.n_queries:
        raise InputError(
            f"{one.n_queries} queries have first embeddings, {two.n_queries} have second ones: "
            "give both for every query"
        )
    counter = TopCounter(len(names), check_number("candidates", candidates, least=1))
    lock = Lock()

    def find_best(block: Chunk, scores: Matrix) -> None:
        with lock:
            counter.update(scores, positions=block.positions)

    shards = open_shards(chunks)
    corpus = Corpus(one, names, [replace(shard, stage=1) for shard in shards])
    first, scan = evaluate_shards(corpus, judgements, parsed, on_block=find_best)
    rescored = [replace(shard, stage=2) for shard in scan.shards]
    frame = _rescore(counter, Corpus(two, names, rescored))
    run = replace(read_run(frame), source="rescored candidates", complete=True)
    second = evaluate_run(judgements, run, parsed)
    second = replace(second, remarks=(*second.remarks, *_warn_widened(counter)))
    return Rescoring(first, second)


def _rescore(counter: TopCounter, corpus: Corpus) -> pl.DataFrame:
    """Score the candidates, and all documents that tie with the last one, in the second stage."""
    kept = counter.kept
    wanted = np.unique(kept.position)
    names: dict[int, str] = {}

    def select_candidates() -> Iterator[Chunk]:
        for chunk in corpus.read():
            own = chunk.take(np.isin(chunk.positions, wanted).nonzero()[0])
            names.update(zip(own.positions.tolist(), map(text_id, own.ids), strict=True))
            yield own

    chunks = select_candidates()
    scores = score_pairs(corpus.products, chunks, kept.query, kept.position)
    return pl.DataFrame(
        {
            "query_id": pl.Series(corpus.query_ids, dtype=pl.String).gather(kept.query),
            "doc_id": [names[position] for position in kept.position.tolist()],
            "score": scores,
        }
    )


def _warn_widened(counter: TopCounter) -> list[Remark]:
    """Warn of queries with more candidates than requested, because of a tie at the cut."""
    above, size = counter.cut()
    cut = np.flatnonzero(above + size > counter.k)
    if not len(cut):
        return []
    pattern = (
        "{queries:query} with a cut at {k} candidates inside a tie group: the whole group was "
        "rescored, up to {most:candidate}"
    )
    most = int((above + size)[cut].max())
    return [warning(pattern, queries=len(cut), k=counter.k, most=most)]
