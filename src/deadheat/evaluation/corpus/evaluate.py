"""Evaluate embeddings against a whole corpus: scan, score, count, merge."""

from __future__ import annotations

import hashlib
import operator
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain
from typing import Literal

import numpy as np

from deadheat._internal.fork_guard import check_fork
from deadheat._internal.remarks import emits_warnings, note
from deadheat.engines import Engine, LocalEngine, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import (
    Chunk,
    Chunks,
    Shard,
    block_length,
    cut_blocks,
    map_blocks,
    open_shards,
    score_block,
)
from deadheat.evaluation.corpus.scan import Scan, scan_corpus
from deadheat.evaluation.evaluate import DEFAULT_MEASURES, result_of, versions
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, QrelsLike, Run, id_column, query_names, read_qrels
from deadheat.measures import Measure, parse_measures
from deadheat.provenance import Provenance, ScoreFacts
from deadheat.scoring import Matrix, Product, Products
from deadheat.ties import (
    Counts,
    Floats,
    Ints,
    JudgedDocuments,
    SizeCounter,
    TieGroups,
    count_columns,
    find_columns,
    list_judged,
    to_floats,
)

BlockCallback = Callable[[Chunk, Matrix], object]
"""Called in any thread with the documents of a block, in the order of positions, and their scores.

The scores are ``[queries, documents]``.
"""


@emits_warnings
def evaluate_corpus(
    queries: tuple[Sequence[object], Matrix],
    chunks: Chunks,
    qrels: QrelsLike,
    measures: str | Measure | Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    similarity: Product = "dot",
    regime: Literal["native", "hps"] = "native",
    exact_ties: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Result:
    """Evaluate query embeddings against every document of a corpus, chunk by chunk.

    It uses every document, not only the top k, so all views are exact. The memory does not depend
    on the size of the corpus: one chunk of embeddings and, per thread, two blocks of embeddings
    and one block of scores.

    Parameters
    ----------
    queries
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
    qrels, measures
        As for `deadheat.evaluate`.
    similarity
        ``"dot"``, ``"cosine"``, or ``"hamming"`` for binary embeddings (booleans, or packed into
        8-bit integers). Products of 8-bit integers are exact.
    regime
        ``"native"`` scores in the dtype of the embeddings, ``"hps"`` in FP32.
    exact_ties
        Count the distinct scores of all documents for ``provenance.scores``, which needs memory
        for all of them. Otherwise ``provenance.scores`` is about tie groups with a judged document.
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
    >>> summary = dh.evaluate_corpus(queries, chunks, {"q": {"d": 1}}, ["MRR"])["MRR"]
    >>> round(summary.expected, 4), summary.worst, summary.best, summary.oblivious
    (0.6111, 0.3333333333333333, 1.0, 0.3333333333333333)
    """
    check_fork()
    judgements, parsed = read_qrels(qrels), parse_measures(measures)
    try:
        ids, embeddings = queries
    except (TypeError, ValueError):
        raise InputError("queries must be a pair (query_ids, embeddings)") from None
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
    return evaluate_shards(corpus, judgements, parsed, exact_ties=exact_ties, progress=progress)[0]


@dataclass(frozen=True)
class Corpus:
    """Queries, the shards of the corpus, and the engine that counts them."""

    products: Products
    query_ids: list[str]
    shards: Sequence[Shard]
    engine: Engine = field(default_factory=LocalEngine)


def evaluate_shards(
    corpus: Corpus,
    judgements: Judgements,
    measures: Sequence[Measure],
    *,
    exact_ties: bool = False,
    on_block: BlockCallback | None = None,
    progress: Progress | None = None,
) -> tuple[Result, Scan]:
    """Evaluate a corpus like `evaluate_corpus`; return the result and the first pass.

    `on_block` is called only if the engine is this process.
    """
    products, is_local = corpus.products, isinstance(corpus.engine, LocalEngine)
    digest = None if is_local else digest_products(products)
    with corpus.engine.pool(partial(make_worker, products, digest)) as pool:
        # Scan the ids, and keep the embeddings of the judged documents.
        scan = scan_corpus(corpus.shards, id_column(judgements.doc_ids), pool, progress)

        # Score the judged documents. Every query of this run lists the whole corpus; the run has no
        # scores, because only those of the judged documents are needed.
        offsets = np.arange(products.n_queries + 1, dtype=np.int64) * scan.documents
        run = Run("corpus", corpus.query_ids, offsets, np.empty(0), scan, complete=True)
        with_judged = any(measure.needs_judged for measure in measures)
        lists, remarks = list_judged(judgements, run, queries="judged", with_judged=with_judged)
        starts, stops = lists.bounds
        row = np.where(stops > starts, starts // scan.documents, -1)
        score = score_pairs(
            products, scan.judged, len(scan.position), row[lists.query], lists.position
        )
        documents = JudgedDocuments.sort(
            len(row), lists.query, score, lists.grade, lists.position, lists.unretrieved
        )

        # Count the blocks, and merge the counts.
        noise = products.noise * float(np.abs(score).max(initial=0))
        task = CountTask(documents, row, noise, exact_ties, on_block)
        if is_local:  # the threads of this process share the blocks of all shards
            parts = task.count_blocks(products, scan.shards)
        else:
            parts = (own for _, own in pool.results(scan.shards, task))
        total = CorpusCounts.zero(len(score))
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
    remarks += scan.remarks + scan.find_missing(judgements)

    groups = TieGroups.from_counts(documents, total.counts, stops - starts)
    if total.sizes is not None:
        facts = total.sizes.facts
    else:
        size = groups.size
        largest = int(size.max(initial=0))
        facts = ScoreFacts(int(size.sum()), len(size), largest, judged_only=True)
    provenance = Provenance(
        run.source,
        judgements.source,
        scoring=products.provenance(),
        scores=facts,
        versions=versions(),
    )
    return result_of(lists.own_ids, groups, measures, provenance, remarks), scan


def score_pairs(
    products: Products, chunks: Iterable[Chunk], documents: int, row: Ints, position: Ints
) -> Floats:
    """Score pairs of a query and a document, in blocks of the same shape as the whole corpus.

    Per pair, `row` is the row of the query embeddings, and `position` the position of the document.
    `chunks` has these documents; `documents` is their number.
    """
    found = np.empty(len(position))

    def look_up(block: Chunk) -> None:
        column, inside = find_columns(block.positions, position)
        scores = score_block(products, block)
        found[inside] = to_floats(scores[row[inside], column[inside]])

    blocks = cut_blocks(chunks, block_length(products.n_queries))
    for _ in map_blocks(products, blocks, documents, look_up):
        pass
    return found


@dataclass
class CorpusCounts:
    """Counts of some documents of a corpus; counts of different documents can be added."""

    counts: Counts
    """Per judged document: candidates above, equal, and tied before it."""
    documents: int = 0
    """Number of documents that were counted."""
    seen: int = 0
    """Number of pairs of a query and a judged document that were counted."""
    changed: int = 0
    """Number of these pairs whose score differs from that of the first pass."""
    sizes: SizeCounter | None = None
    """Sizes of all tie groups; None if they are not counted."""

    @classmethod
    def zero(cls, n_judged: int) -> CorpusCounts:
        """Return the counts of no documents."""
        return cls(np.zeros((3, n_judged), np.int64))

    def __iadd__(self, other: CorpusCounts) -> CorpusCounts:
        self.counts += other.counts
        self.documents += other.documents
        self.seen += other.seen
        self.changed += other.changed
        if self.sizes is None or other.sizes is None:
            self.sizes = self.sizes or other.sizes
        else:
            self.sizes += other.sizes
        return self


@dataclass(frozen=True)
class CountTask:
    """Count the documents of shards; sent to every process that counts."""

    judged: JudgedDocuments
    """The judged documents, with their scores of the first pass."""
    row: Ints
    """Per query: its row of the query embeddings, −1 if it has none."""
    noise: float
    """Largest accepted difference from the score of the first pass, which is then used."""
    exact_ties: bool
    """Whether all tie groups are counted."""

    on_block: BlockCallback | None = None

    def __call__(self, products: Products, shard: Shard) -> CorpusCounts:
        """Count the documents of a shard."""
        blocks = self.count_blocks(products, [shard])
        return reduce(operator.iadd, blocks, CorpusCounts.zero(len(self.judged.query)))

    def count_blocks(self, products: Products, shards: Sequence[Shard]) -> Iterator[CorpusCounts]:
        """Count the documents of shards in threads, and yield the counts of each block."""
        documents = sum(shard.documents or 0 for shard in shards)
        blocks = read_blocks(products, shards)
        return map_blocks(products, blocks, documents, partial(self.count_block, products))

    def count_block(self, products: Products, block: Chunk) -> CorpusCounts:
        """Count the documents of a block."""
        scores, own = score_block(products, block), self.judged
        column, inside = find_columns(block.positions, own.position)
        seen = inside.nonzero()[0]
        places = self.row[own.query[seen]], column[seen]
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
            is_array = isinstance(scores, np.ndarray)
            scores[places] = first if is_array else scores.new_tensor(first)
        sizes = None
        if self.exact_ties:
            sizes = SizeCounter(len(scores))
            sizes.update(scores)
        if self.on_block is not None:
            self.on_block(block, scores)
        counts = count_columns(scores, self.row, own.offsets, own.score, column)
        return CorpusCounts(counts, len(block.positions), len(seen), changed, sizes)


def read_blocks(products: Products, shards: Sequence[Shard]) -> Iterator[Chunk]:
    """Yield the documents of shards in blocks."""
    chunks = chain.from_iterable(shard.read(products) for shard in shards)
    return cut_blocks(chunks, block_length(products.n_queries))


def make_worker(
    products: Products, digest: str | None = None
) -> Callable[[Shard, Callable[[Products, Shard], object]], object]:
    """Return a function that runs a task on a shard, in any process.

    `digest` is the digest of the products of the driver process; None in the driver itself.
    """
    if digest is not None and digest_products(products) != digest:
        raise InputError(
            f"products on {platform.node()} differ in their last bits from those of the driver, "
            "probably because its processor is of another kind: the result would depend on which "
            "machine counts which document; use machines of one kind"
        )
    return lambda shard, task: task(products, shard)


def digest_products(products: Products) -> str:
    """Return a digest of the products of all queries with each other, computed as one block."""
    rows = products.queries[np.arange(block_length(products.n_queries)) % len(products.queries)]
    [scores] = map_blocks(products, [rows], 1, products.multiply)
    return hashlib.sha256(np.ascontiguousarray(to_floats(scores)).tobytes()).hexdigest()


def score_documents(
    corpus: Corpus, documents: int, on_block: BlockCallback, progress: Progress
) -> None:
    """Score every document in threads of this process; call `on_block` with every block.

    `documents` is the number of documents, for `progress`.
    """

    def score(block: Chunk) -> int:
        on_block(block, score_block(corpus.products, block))
        return len(block.positions)

    done = 0
    blocks = read_blocks(corpus.products, corpus.shards)
    for length in map_blocks(corpus.products, blocks, documents, score):
        done += length
        progress("counting", done, documents)
