"""The second pass over a corpus: every document is counted for the judged ones."""

from __future__ import annotations

import hashlib
import operator
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.engines import Pool, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.blocks import Scored, score_chunk, share_scores
from deadheat.evaluation.corpus.chunks import Barrier, Chunk, Matrix, Shard
from deadheat.evaluation.corpus.scan import DuplicateTask, Scan, ScanTask
from deadheat.numbers import exact_floats, is_tensor
from deadheat.scoring import Products
from deadheat.ties.counting import Counts, count_columns, find_columns
from deadheat.ties.groups import Ints
from deadheat.ties.lists import JudgedLists
from deadheat.ties.sizes import SizeCounter

T = TypeVar("T")
PROBE_DOCUMENTS = 64
"""Documents whose products show whether two machines multiply alike."""
LARGEST_NOISE = 1 / 32
"""Of the largest score: no rounding, not even to BF16, moves a score further."""

BlockCallback = Callable[[Ints, Any], None]
"""Called with the positions and the scores of every block, one block at a time, in any order."""


@dataclass(frozen=True)
class JudgedScores:
    """The judged documents, sorted by query, score and position, with scores computed first."""

    row: Ints
    """Per query: its row of the query embeddings, −1 where it has none."""
    query: Ints
    score: NDArray[Any]
    position: Ints
    offsets: Ints
    """The documents of query ``q`` are ``offsets[q]:offsets[q + 1]``."""
    n_rows: int
    """Rows of the query embeddings."""
    exact_ties: bool
    """Whether the sizes of all tie groups are counted, too."""
    probe: Probe | None

    def count(self, blocks: Iterator[Scored], on_block: BlockCallback | None = None) -> ShardCounts:
        """Count the documents of some blocks."""
        counts: Counts = np.zeros((3, len(self.query)), np.int64)
        passed = np.zeros(len(self.query), np.int64)
        sizes = SizeCounter(self.n_rows if self.exact_ties else 0)
        documents = changed = 0
        for positions, scores in blocks:
            column, inside = find_columns(positions, self.position)
            seen = np.flatnonzero(inside)
            if len(seen):
                changed += self._restore(scores, seen, column[seen])
            counts += count_columns(scores, self.row, self.offsets, self.score, column)
            passed += inside
            documents += len(positions)
            if self.exact_ties:
                sizes.update(scores)
            if on_block is not None:
                on_block(positions, scores)
        return ShardCounts(counts, passed, documents, changed, sizes)

    def _restore(self, scores: Matrix, seen: Ints, column: Ints) -> int:
        """Put the scores computed first in their documents' places; return how many differed."""
        row, first = self.row[self.query[seen]], self.score[seen]
        found = exact_floats(scores[row, column])
        other = np.flatnonzero(found != first)
        if not len(other):
            return 0
        far = np.abs(found - first) > LARGEST_NOISE * np.abs(self.score).max()
        if far.any():
            i = int(np.flatnonzero(far)[0])
            raise InputError(
                f"the document at position {self.position[seen[i]]:,} of the corpus has the score "
                f"{found[i]:g} for a query, and had {first[i]:g} when it was passed first: chunks "
                "must give the same every time"
            )
        values = first[other]
        scores[row[other], column[other]] = (
            scores.new_tensor(values) if is_tensor(scores) else values
        )
        return len(other)


@dataclass(frozen=True)
class ShardCounts:
    """Counts of some documents of a corpus; those of all of its shards add up."""

    counts: Counts
    """Per judged document: candidates above, equal, and tied before it."""
    passed: Ints
    """Per judged document: how often it came."""
    documents: int
    changed: int
    """Judged documents whose score was not that computed first."""
    sizes: SizeCounter
    """Of all tie groups, where they are counted."""

    def __add__(self, other: ShardCounts) -> ShardCounts:
        return ShardCounts(
            self.counts + other.counts,
            self.passed + other.passed,
            self.documents + other.documents,
            self.changed + other.changed,
            self.sizes + other.sizes,
        )


def score_judged(products: Products, judged: Chunk, lists: JudgedLists, row: Ints) -> NDArray[Any]:
    """Score the judged documents of all lists, before the others and in blocks like theirs.

    Parameters
    ----------
    judged
        The judged documents of the corpus, in the order of positions.
    row
        Per query of `lists`: its row of the query embeddings, where it has one.
    """
    distinct = np.unique(lists.position)
    wanted = judged.take(np.searchsorted(judged.positions, distinct))

    def look_up(blocks: Iterator[Scored]) -> list[tuple[Ints, NDArray[Any]]]:
        found = []
        for positions, scores in blocks:
            inside = (lists.position >= positions[0]) & (lists.position <= positions[-1])
            entry = np.flatnonzero(inside)
            column = np.searchsorted(positions, lists.position[entry])
            found.append((entry, exact_floats(scores[row[lists.query[entry]], column])))
        return found

    shares = share_scores(products, lambda _: [wanted], len(wanted), look_up)
    found = [one for share in shares for one in share]
    scores = np.empty(len(lists.position), found[0][1].dtype if found else np.float32)
    for entry, own in found:
        scores[entry] = own
    return scores


@dataclass(frozen=True)
class Probe:
    """Documents, and a digest of their scores on the machine that began the work."""

    documents: Chunk
    digest: str

    @classmethod
    def of(cls, products: Products, judged: Chunk) -> Probe | None:
        """Score some judged documents; None where there are none."""
        if not len(judged):
            return None
        documents = judged.part(0, min(PROBE_DOCUMENTS, len(judged)))
        return cls(documents, _digest(score_chunk(products, documents)))

    def check(self, products: Products) -> None:
        """Refuse to work on a machine whose products differ."""
        if _digest(score_chunk(products, self.documents)) != self.digest:
            raise InputError(
                f"products on {platform.node()} differ in their last bits from those of the "
                "machine that began the work, as those of another kind of processor do: the result "
                "would depend on who counted what; use machines of one kind"
            )


def _digest(scores: Matrix) -> str:
    return hashlib.sha256(np.ascontiguousarray(exact_floats(scores)).tobytes()).hexdigest()


class CountTask(Shard):
    """Count the documents of a shard that the first pass has seen."""

    def run(self, products: Products, judged: JudgedScores) -> ShardCounts:
        """Count in the threads of this process."""
        return reduce(operator.add, share_shards(products, [self], judged.count))


@dataclass
class ShardWorker:
    """Runs tasks on shards, one after the other, in any process."""

    products: Products
    _is_checked: bool = False

    def __call__(self, task: ScanTask | DuplicateTask | CountTask, shared_arg: Any) -> Any:
        """Run a task; before the first count, check that this machine multiplies like others."""
        if isinstance(task, CountTask) and shared_arg.probe is not None and not self._is_checked:
            shared_arg.probe.check(self.products)
            self._is_checked = True
        return task.run(self.products, shared_arg)


def count_corpus(
    products: Products,
    scan: Scan,
    judged: JudgedScores,
    pool: Pool | None,
    on_block: BlockCallback | None = None,
    progress: Progress | None = None,
) -> ShardCounts:
    """Count every document of a corpus.

    Without a pool, threads of this process share the blocks of all shards, and progress is reported
    by block. The workers of a pool count a shard each, and progress is reported by shard.
    """
    if pool is not None:
        report = _ProgressReporter(progress, scan.documents)
        tasks = [CountTask(**vars(shard)) for shard in scan.shards]

        def count_shards() -> Iterator[ShardCounts]:
            for task, counts in pool.results(tasks, judged):
                report.add(task.documents)
                yield counts

        return reduce(operator.add, count_shards())
    lock = Lock()

    def one_at_a_time(positions: Ints, scores: Matrix) -> None:
        if on_block is not None:
            with lock:
                on_block(positions, scores)

    def count(blocks: Iterator[Scored]) -> ShardCounts:
        return judged.count(blocks, one_at_a_time)

    return reduce(operator.add, share_shards(products, scan.shards, count, progress))


def share_shards(
    products: Products,
    shards: Sequence[Shard],
    work: Callable[[Iterator[Scored]], T],
    progress: Progress | None = None,
) -> list[T]:
    """Score the documents of shards in threads; return what each thread makes of its scores."""
    report = _ProgressReporter(progress, sum(shard.documents for shard in shards))

    def chunks(barrier: Barrier) -> Iterator[Chunk]:
        # A chain keeps no reference to a chunk while the next one is made.
        return chain.from_iterable(shard.read_again(products, barrier) for shard in shards)

    return share_scores(products, chunks, report.documents, lambda own: work(report.watch(own)))


@dataclass
class _ProgressReporter:
    """Reports how many documents were counted."""

    progress: Progress | None
    documents: int
    counted: int = 0
    lock: Lock = field(default_factory=Lock)

    def watch(self, blocks: Iterator[Scored]) -> Iterator[Scored]:
        """Yield blocks, and report each when it is processed; threads may call this."""
        for positions, scores in blocks:
            yield positions, scores
            with self.lock:
                self.add(len(positions))

    def add(self, documents: int) -> None:
        """Report that further documents were counted."""
        self.counted += documents
        if self.progress is not None:
            self.progress("counting", self.counted, self.documents)
