"""What is done with the shards of a corpus, wherever that is: looked at, and counted."""

from __future__ import annotations

import hashlib
import operator
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.evaluation.corpus_blocks import (
    Block,
    block_length,
    cut,
    score_chunk,
    shared_scores,
)
from deadheat.evaluation.corpus_chunks import (
    Chunk,
    Judged,
    Open,
    Shard,
    Surveyed,
)
from deadheat.late import pl
from deadheat.numbers import exact_floats, is_tensor
from deadheat.scoring import Products
from deadheat.ties import TieCounter
from deadheat.ties.groups import Floats, Ints
from deadheat.ties.sizes import SizeCounter

FAR = 1 / 32
"""Of the largest score: no rounding, be it to BF16, moves a score so far."""
See = Callable[[Ints, Any], None]
"""Is shown the positions and the scores of every block, one block at a time, in any order."""


@dataclass(frozen=True)
class Piece:
    """Something to do with one shard."""

    number: int
    open: Open
    name: str

    def shard(self, products: Products) -> Shard:
        """Open the shard, wherever this is."""
        return Shard(products, self.open, self.name)


class Look(Piece):
    """Look at the ids of a shard, and take the judged documents."""

    def do(self, products: Products, wanted: pl.Series) -> Surveyed:
        """Give what there is."""
        return self.shard(products).survey(wanted)


class Find(Piece):
    """Find the documents whose ids have some hashes."""

    def do(self, products: Products, hashes: pl.Series) -> list[str]:
        """Give their ids."""
        return self.shard(products).holders(hashes)


@dataclass(frozen=True)
class Count(Piece):
    """Count the documents of a shard."""

    start: int
    """Documents before it."""
    documents: int
    judged: tuple[Judged, ...]

    def chunks(self, products: Products, finish: Callable[[], None]) -> Iterator[Chunk]:
        """Pass the documents a second time; `finish` waits for all that were given."""
        return self.shard(products).again(self.start, self.documents, self.judged, finish)

    def do(self, products: Products, interest: Interest) -> Counted:
        """Give the counts."""

        def blocks(finish: Callable[[], None]) -> Iterator[Block]:
            return cut(self.chunks(products, finish), block_length(len(products)))

        return added(shared_scores(products, blocks, self.documents, interest.count))


@dataclass(frozen=True)
class Interest:
    """The documents that are counted for, with the scores that were computed first."""

    n_queries: int
    query: Ints
    score: NDArray[Any]
    grade: Floats
    position: Ints
    sizes: bool
    """Whether the sizes of all tie groups are counted, too."""
    probe: Probe | None = None

    def count(self, blocks: Iterator[tuple[Ints, Any]], see: See | None = None) -> Counted:
        """Count the documents of some blocks."""
        none = np.empty(0, np.int64), np.empty(0)
        counter = TieCounter.of(
            self.n_queries, self.query, self.score, self.grade, self.position, none
        )
        sizes = SizeCounter(self.n_queries) if self.sizes else None
        changed = 0
        for positions, scores in blocks:
            column, inside = counter.columns(positions)
            changed += _stand_in(scores, counter, column, np.flatnonzero(inside))
            counter.add_piece(scores, column, inside, sound=True)
            if sizes is not None:
                sizes.update(scores)
            if see is not None:
                see(positions, scores)
        return Counted(counter, changed, sizes)


@dataclass(frozen=True)
class Counted:
    """Counts of some shards; they add up to those of the corpus."""

    counter: TieCounter
    changed: int
    """Judged documents that had another score when they passed by."""
    sizes: SizeCounter | None

    def __add__(self, other: Counted) -> Counted:
        sizes = None
        if self.sizes is not None and other.sizes is not None:
            sizes = self.sizes + other.sizes
        return Counted(self.counter + other.counter, self.changed + other.changed, sizes)


@dataclass(frozen=True)
class Probe:
    """Documents, and what the machine that began the work gets for them."""

    documents: Chunk
    digest: str

    def check(self, products: Products) -> None:
        """Refuse to work on a machine that multiplies otherwise."""
        if digest(score_chunk(products, self.documents)) != self.digest:
            raise InputError(
                f"products on {platform.node()} differ in their last bits from those of the "
                "machine that began the work, as those of another kind of processor do: the result "
                "would depend on who counted what; use machines of one kind"
            )


@dataclass(frozen=True)
class ShardWork:
    """Makes a worker for pieces of a corpus, in any process."""

    products: Products

    def __call__(self) -> Callable[[Any, Any], Any]:
        """Make a worker."""
        return ShardWorker(self.products).do


@dataclass
class ShardWorker:
    """Does pieces of work on shards, one after the other."""

    products: Products
    _alike: bool = False

    def do(self, piece: Any, beside: Any) -> Any:
        """Do one piece; check before the first count that this machine counts as others do."""
        probe = getattr(beside, "probe", None)
        if probe is not None and not self._alike:
            probe.check(self.products)
            self._alike = True
        return piece.do(self.products, beside)


def added(shares: Sequence[Counted]) -> Counted:
    """Add up counts."""
    return reduce(operator.add, shares)


def _stand_in(scores: Any, counter: TieCounter, column: Ints, seen: Ints) -> int:
    """Put the announced scores in their documents' places; tell how many were others."""
    if not len(seen):
        return 0
    query, place = counter.query[seen], column[seen]
    found = exact_floats(scores[query, place])
    other = np.flatnonzero(found != counter.score[seen])
    if len(other):
        announced = counter.score[seen[other]]
        _check_near(found[other], announced, counter, seen[other])
        if is_tensor(scores):
            announced = scores.new_tensor(announced)
        scores[query[other], place[other]] = announced
    return len(other)


def _check_near(
    found: NDArray[Any], announced: NDArray[Any], counter: TieCounter, documents: Ints
) -> None:
    """Refuse scores that differ in more than their last bits from those computed first."""
    far = np.abs(found - announced) > FAR * np.abs(counter.score).max()
    if far.any():
        i = int(np.flatnonzero(far)[0])
        raise InputError(
            f"the document at position {counter.position[documents[i]]:,} of the corpus has the "
            f"score {found[i]:g} for a query, and had {announced[i]:g} when it was passed first: "
            "chunks must give the same every time"
        )


def digest(scores: Any) -> str:
    """Give a hash of the bits of scores."""
    return hashlib.sha256(np.ascontiguousarray(exact_floats(scores)).tobytes()).hexdigest()
