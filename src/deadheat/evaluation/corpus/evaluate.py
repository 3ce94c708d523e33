"""Evaluate embeddings against a whole corpus: scan, score, count, merge."""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Literal

import numpy as np

from deadheat._internal.fork_guard import check_fork
from deadheat._internal.remarks import emits_warnings, note
from deadheat._internal.threads import share_work
from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import (
    Chunk,
    Chunks,
    Shard,
    block_length,
    map_blocks,
    open_shards,
    score_block,
    score_blocks,
)
from deadheat.evaluation.corpus.scan import Scan, scan_corpus
from deadheat.evaluation.evaluate import DEFAULT_MEASURES, result_of, versions
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, QrelsLike, query_names, read_qrels
from deadheat.measures import Measure, parse_measures
from deadheat.provenance import Provenance, ScoreFacts
from deadheat.scoring import Matrix, Product, Products, single_thread_blas
from deadheat.settings import EvalSettings, QueryPolicy
from deadheat.ties import (
    Counts,
    Floats,
    Ints,
    JudgedDocuments,
    TieGroups,
    count_columns,
    find_columns,
    list_shared,
    to_floats,
)

BlockCallback = Callable[[Chunk, Matrix], object]
"""Called in any thread with the documents of a block, in the order of positions, and their scores.

The scores are ``[queries, documents]``.
"""


@emits_warnings
def evaluate_corpus(
    qrels: QrelsLike,
    query_embeddings: tuple[Sequence[object], Matrix],
    chunks: Chunks,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    similarity: Product = "dot",
    regime: Literal["native", "hps"] = "native",
    exact_ties: bool = False,
    queries: QueryPolicy = "judged",
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Result:
    """Evaluate query embeddings against every document of a corpus, chunk by chunk.

    It uses every document, not only the top k, so all views are exact. The memory does not depend
    on the size of the corpus: one chunk of embeddings and, per thread, two blocks of embeddings
    and of scores.

    Parameters
    ----------
    qrels, measures
        As for `deadheat.evaluate`.
    query_embeddings
        ``(query_ids, embeddings)``: names, and ``[queries, width]`` as an array or a torch tensor.
    chunks
        Chunks ``(document_ids, embeddings)``, or ``(document_ids, embeddings, positions)`` if the
        documents are not in the order of the corpus. An optional fourth item ``rows`` is the row
        of the embeddings of each document: documents with the same row tie.
        The corpus is read twice, so this must be an iterable that can be read more than once, such
        as a list, or a function that returns an iterator. Both passes must yield the same chunks.
        The first pass reads the ids of all chunks, and the embeddings of judged documents only.
        The calling thread creates the chunks. A chunk may reuse the memory of the one before it.
        A list of such functions is a corpus in shards, one after the other. Each function is
        called in the process that counts its shard.
    similarity
        ``"dot"``, ``"cosine"``, or ``"hamming"`` for binary embeddings (booleans, or packed into
        8-bit integers). Products of 8-bit integers are exact.
    regime
        ``"native"`` scores in the dtype of the embeddings, ``"hps"`` in FP32.
    exact_ties
        Count the distinct scores of all documents for ``provenance.scores``, which needs memory
        for all of them. Otherwise ``provenance.scores`` is about tie groups with a judged document.
    queries
        Which queries are averaged, as for `deadheat.evaluate`. The other options of an evaluation
        do not apply: documents have no ranks, and ties are exact, in the order of the corpus.
    engine
        Where shards are counted. Default: this process. The workers of a
        `deadheat.engines.cluster.RayCluster` open a shard each. The result is bit-identical for
        any number of workers and shards.
    progress
        Called with the name of the step, the amount done, and the total: first the shards whose
        ids were read, then the documents that were counted.

    Returns
    -------
    Result
        As for `deadheat.evaluate`. The oblivious value breaks ties in the order of the corpus.

    Notes
    -----
    The last bits of a product depend on the shape of the matrices and on the number of threads. So
    all blocks have the same shape, which depends on the number of queries only, and each product
    uses one thread. A score then depends on its query and its document only: not on the position
    of the document, on chunks and shards, or on the number of threads. The number of blocks that
    are processed in parallel is the number of threads that NumPy or torch would use for a product.
    Meanwhile NumPy's number of threads is 1; it is restored afterwards. A second evaluation of
    arrays waits for the first.
    The judged documents are scored first, and their scores are checked in the second pass. If a
    backend then computes another score, the first one is used, and a note gives the number of such
    scores. A worker of an engine whose products differ from those of this process is an error.

    A document id or a position that occurs twice is an error. Positions without a document cause a
    warning.

    Tensors are multiplied and counted on their device. Only the CPU was tested.

    Examples
    --------
    >>> import numpy as np
    >>> import deadheat as dh
    >>> documents = np.array([[1, 0], [0, 1], [1, 1], [1, 0]], np.int8)
    >>> chunks = [(["a", "b"], documents[:2]), (["c", "d"], documents[2:])]
    >>> queries = (["q"], np.array([[1, 0]], np.int8))
    >>> summary = dh.evaluate_corpus({"q": {"d": 1}}, queries, chunks, ["MRR"])["MRR"]
    >>> round(summary.expected, 4), summary.worst, summary.best, summary.oblivious
    (0.6111, 0.3333333333333333, 1.0, 0.3333333333333333)
    """
    check_fork()
    judgements, parsed = read_qrels(qrels), parse_measures(measures)
    try:
        ids, embeddings = query_embeddings
    except (TypeError, ValueError):
        raise InputError("query_embeddings must be a pair (query_ids, embeddings)") from None
    settings = EvalSettings(queries=queries)
    if regime not in ("native", "hps"):
        raise InputError(f"unknown regime {regime!r} of embeddings; choose native or hps")
    products = Products.of(embeddings, similarity, regime)
    engine = engine or LocalEngine()
    if not hasattr(engine, "pool"):
        raise InputError(
            "engine must be an engine such as deadheat.engines.cluster.RayCluster(), not "
            f"{engine!r:.40}"
        )
    shards = open_shards(chunks, is_local=isinstance(engine, LocalEngine))
    corpus = Corpus(products, query_names(ids, products.n_queries), shards, engine)
    result, _ = evaluate_shards(
        corpus, judgements, parsed, settings, exact_ties=exact_ties, progress=progress
    )
    return result


@dataclass(frozen=True)
class Corpus:
    """Queries, the shards of the corpus, and the engine that counts them."""

    products: Products
    query_ids: list[str]
    shards: Sequence[Shard]
    engine: Engine = field(default_factory=LocalEngine)

    def read(self) -> Iterator[Chunk]:
        """Yield the checked chunks, one shard after the other."""
        return chain.from_iterable(shard.read(self.products) for shard in self.shards)


def evaluate_shards(
    corpus: Corpus,
    judgements: Judgements,
    measures: Sequence[Measure],
    settings: EvalSettings | None = None,
    *,
    exact_ties: bool = False,
    on_block: BlockCallback | None = None,
    progress: Progress | None = None,
) -> tuple[Result, Scan]:
    """Evaluate a corpus like `evaluate_corpus`; return the result and the first pass.

    `on_block` is not called if an engine counts.
    """
    products, settings = corpus.products, settings or EvalSettings()
    is_local = isinstance(corpus.engine, LocalEngine)
    digest = None if is_local else digest_products(products)
    with corpus.engine.pool(partial(make_worker, products, digest)) as pool:
        # Scan the ids, and keep the embeddings of the judged documents.
        scan = scan_corpus(corpus.shards, judgements, pool, progress)

        # Score the judged documents.
        lists, index, remarks = list_shared(
            judgements,
            "corpus",
            corpus.query_ids,
            list(scan.position),
            queries=settings.queries,
            with_judged=any(measure.needs_judged for measure in measures),
        )
        query = index[lists.query]
        position = np.array(list(scan.position.values()))[lists.position]
        score = score_pairs(products, scan.judged, query, position)
        lacking, grade = lists.unretrieved
        retrieved = np.zeros(max(products.n_queries, int(index.max()) + 1), np.int64)
        retrieved[: products.n_queries] = scan.documents
        documents = JudgedDocuments.sort(
            len(retrieved), query, score, lists.grade, position, (index[lacking], grade)
        )

        # Count the blocks, and merge the counts.
        noise = products.noise * float(np.abs(score).max(initial=0))
        task = CountTask(documents, noise, exact_ties, on_block)
        if is_local:  # threads share the blocks of all shards
            chunks = replace(corpus, shards=scan.shards).read()
            parts = map_blocks(products, chunks, partial(task.count_block, products))
        else:
            parts = (counts for _, counts in pool.results(scan.shards, task))
        total = ShardCounts(np.zeros((3, len(score)), np.int64))
        for part in parts:
            total += part
            if progress is not None:
                progress("counting", total.documents, scan.documents)
    if total.seen < len(score):
        raise InputError(
            f"{len(score) - total.seen} judged documents of the first pass were missing in the "
            "second pass: chunks must be the same in every pass"
        )
    if total.changed:
        pattern = (
            "{changed:score} of judged documents differed in the last bits between the two passes "
            "over the corpus; the result uses those of the first"
        )
        remarks.append(note(pattern, changed=total.changed))
    remarks += scan.remarks

    # Build the tie groups of the judged queries.
    groups = TieGroups.from_counts(
        documents, total.counts, retrieved, top_grade=lists.max_grade
    ).take(index)
    sizes = [n for own in total.sizes for n in own.values()] if exact_ties else groups.size.tolist()
    provenance = Provenance(
        "corpus",
        judgements.source,
        settings,
        scoring=products.provenance,
        scores=ScoreFacts(sum(sizes), len(sizes), max(sizes, default=0), not exact_ties),
        versions=versions(),
    )
    return result_of(lists.own_ids, groups, measures, provenance, remarks), scan


def score_pairs(products: Products, chunks: Iterable[Chunk], query: Ints, position: Ints) -> Floats:
    """Score pairs of a query and a document, in blocks of the same shape as the whole corpus.

    `query` and `position` are the indices of each pair. `chunks` has its documents.
    """
    found = np.empty(len(position))
    for block, scores in score_blocks(products, chunks):
        column, inside = find_columns(block.positions, position)
        found[inside] = to_floats(scores[query[inside], column[inside]])
    return found


@dataclass
class ShardCounts:
    """Counts of some documents of a corpus; counts of different documents can be added."""

    counts: Counts
    """Per judged document: candidates above, equal, and tied before it."""
    documents: int = 0
    """Number of documents that were counted."""
    seen: int = 0
    """Number of pairs of a query and a judged document that were counted."""
    changed: int = 0
    """Number of these pairs whose score differs from that of the first pass."""
    sizes: Sequence[Counter[float]] = ()
    """Per query: number of documents of each score; empty if they are not counted."""

    def __iadd__(self, other: ShardCounts) -> ShardCounts:
        self.counts += other.counts
        self.documents += other.documents
        self.seen += other.seen
        self.changed += other.changed
        self.sizes = self.sizes or [Counter() for _ in other.sizes]
        for own, added in zip(self.sizes, other.sizes, strict=False):
            own.update(added)
        return self


@dataclass(frozen=True)
class CountTask:
    """Count the documents of shards; sent to every process that counts."""

    judged: JudgedDocuments
    """The judged documents, with their scores of the first pass."""
    noise: float
    """Largest accepted difference from the score of the first pass, which is then used."""
    exact_ties: bool
    """Whether all tie groups are counted."""

    on_block: BlockCallback | None = None

    def __call__(self, products: Products, shard: Shard) -> ShardCounts:
        """Count the documents of a shard."""
        total = ShardCounts(np.zeros((3, len(self.judged.query)), np.int64))
        for part in map_blocks(products, shard.read(products), partial(self.count_block, products)):
            total += part
        return total

    def count_block(self, products: Products, block: Chunk) -> ShardCounts:
        """Count the documents of a block."""
        scores, own = score_block(products, block), self.judged
        column, inside = find_columns(block.positions, own.position)
        seen = inside.nonzero()[0]
        places = own.query[seen], column[seen]
        found, first = to_floats(scores[places]), own.score[seen]
        far = (np.abs(found - first) > self.noise).nonzero()[0]
        if len(far):
            i = int(far[0])
            raise InputError(
                f"the document at position {own.position[seen[i]]:,} of the corpus has the score "
                f"{found[i]:g} for a query, but it had {first[i]:g} in the first pass: chunks must "
                "be the same in every pass"
            )
        changed = int(np.count_nonzero(found != first))
        if changed:
            if isinstance(scores, np.ndarray):
                scores[places] = first
            else:
                scores[places] = scores.new_tensor(first)
        sizes = [Counter(row.tolist()) for row in scores] if self.exact_ties else ()
        if self.on_block is not None:
            self.on_block(block, scores)
        # Queries without an embedding come last, and have no document here.
        counts = count_columns(scores, own.offsets[: len(scores) + 1], own.score, column)
        return ShardCounts(counts, len(block.positions), len(seen), changed, sizes)


def make_worker(
    products: Products, digest: str | None
) -> Callable[[Shard, Callable[[Products, Shard], object]], object]:
    """Return a function that runs a task on a shard.

    `digest` is the digest of the products of the driver process; None in this process itself.
    """
    if digest is not None and digest != digest_products(products):
        raise InputError(
            f"products on {platform.node()} differ in their last bits from those of the driver, "
            "probably because its processor is of another kind: the result would depend on which "
            "machine counts which document; use machines of one kind"
        )
    return lambda shard, task: task(products, shard)


def digest_products(products: Products) -> str:
    """Return a digest of the products of all queries with each other, computed as one block."""
    rows = products.queries[np.arange(block_length(products.n_queries)) % len(products.queries)]
    with single_thread_blas(products.queries) as (_, begin):
        [scores] = share_work(products.multiply, [rows], 1, begin)
    return hashlib.sha256(np.ascontiguousarray(to_floats(scores)).tobytes()).hexdigest()
