"""A corpus of one shard or many: looked through, and counted where its shards lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat.engines import Engine, Here, Pool, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus_blocks import (
    Block,
    Work,
    block_length,
    cut,
    score_chunk,
    shared_scores,
)
from deadheat.evaluation.corpus_chunks import (
    Chunk,
    Open,
    Shard,
    Surveyed,
    hashed,
)
from deadheat.evaluation.corpus_pieces import (
    Count,
    Counted,
    Find,
    Interest,
    Look,
    Probe,
    See,
    ShardWork,
    added,
    digest,
)
from deadheat.formats import Judgements
from deadheat.formats.ids import id_column
from deadheat.late import pl
from deadheat.numbers import exact_floats, is_tensor
from deadheat.packages import require
from deadheat.remarks import Remark, warning
from deadheat.scoring import Products
from deadheat.ties.groups import Ints
from deadheat.ties.lists import JudgedLists

PROBES = 64
"""Documents whose products tell whether two machines multiply alike."""

T = TypeVar("T")


@dataclass
class Corpus:
    """Queries, and the documents of a corpus that are scored with them, shard by shard."""

    products: Products
    query_ids: list[str]
    shards: Sequence[Open]
    engine: Engine = field(default_factory=Here)
    """Where shards are read and counted."""
    documents: int = 0
    """Documents of the corpus, once `survey` has counted them."""
    judged: dict[str, int] = field(default_factory=dict)
    """Position of each judged document, once `survey` has looked for them."""
    judged_embeddings: Any = None
    """A row for each of them."""
    first_ids: list[str] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """Per shard: the documents before it."""
    surveys: list[Surveyed] = field(default_factory=list)

    def survey(
        self, wanted: set[str], pool: Pool | None = None, progress: Progress | None = None
    ) -> None:
        """Pass all chunks once: count the documents, and find the wanted ones.

        `pool` has workers of `ShardWork`; without it this process does the work.
        """
        if pool is None:
            with Here().pool(ShardWork(self.products)) as here:
                self.survey(wanted, here)
            return
        looks = [Look(number, open, self._name(number)) for number, open in enumerate(self.shards)]
        found: dict[int, Surveyed] = {}
        for look, has in pool.results(looks, id_column(sorted(wanted))):
            found[look.number] = has
            if progress is not None:
                progress("reading ids", len(found), len(looks))
        self.surveys = [found[number] for number in range(len(looks))]
        counts = [survey.documents for survey in self.surveys]
        self.documents = sum(counts)
        if not self.documents:
            raise InputError("the corpus is empty: chunks gave no document")
        self.starts = [0, *np.cumsum(counts)[:-1].tolist()]
        self.first_ids = [name for survey in self.surveys for name in survey.first_ids][:2]
        self._check_types()
        self._check_ids(pool)
        self._check_places()
        embeddings = []
        for start, survey in zip(self.starts, self.surveys, strict=True):
            for judged in survey.judged:
                positions = judged.positions + (0 if judged.placed else start)
                self.judged |= zip(judged.ids, positions.tolist(), strict=True)
                embeddings.append(judged.embeddings)
        if embeddings:
            self.judged_embeddings = _together(embeddings)

    def read(self) -> Iterator[Chunk]:
        """Give all chunks, checked."""
        start = 0
        for number, open in enumerate(self.shards):
            for chunk in Shard(self.products, open, self._name(number)).read(start):
                start += len(chunk)
                yield chunk

    def shares(self, work: Work[T], progress: Progress | None = None) -> list[T]:
        """Let threads share the scores of all documents; give what each makes of its share."""
        telling = _Telling(progress, self.documents)

        def watched(blocks: Iterator[tuple[Ints, Any]]) -> Iterator[tuple[Ints, Any]]:
            for positions, scores in blocks:
                yield positions, scores
                telling.some(len(positions))

        def blocks(finish: Callable[[], None]) -> Iterator[Block]:
            # A chain holds no chunk while the next one is made.
            chunks = chain.from_iterable(
                count.chunks(self.products, finish) for count in self._counts()
            )
            return cut(chunks, block_length(len(self.products)))

        return shared_scores(self.products, blocks, self.documents, lambda own: work(watched(own)))

    def announced(self, lists: JudgedLists, rows: Ints) -> NDArray[Any]:
        """Score the documents of interest before the others.

        Parameters
        ----------
        rows
            Per query of `lists`: its row among the queries, where it has one.
        """
        judged = self._judged_chunk()
        distinct, document = np.unique(lists.position, return_inverse=True)
        wanted = judged.take(np.searchsorted(judged.positions, distinct))
        length = block_length(len(self.products))
        blocks = [
            Block([wanted.part(first, min(first + length, len(wanted)))])
            for first in range(0, len(wanted), length)
        ]

        def look_up(blocks: Iterator[tuple[Ints, Any]]) -> list[tuple[Ints, NDArray[Any]]]:
            found = []
            for positions, products in blocks:
                first = int(np.searchsorted(distinct, positions[0]))
                entries = np.flatnonzero((document >= first) & (document < first + len(positions)))
                query = rows[lists.query[entries]]
                own = exact_floats(products[query, document[entries] - first])
                found.append((entries, own))
            return found

        shares = shared_scores(self.products, lambda _: blocks, len(wanted), look_up)
        found = [one for share in shares for one in share]
        scores = np.empty(len(document), found[0][1].dtype if found else np.float32)
        for entries, own in found:
            scores[entries] = own
        return scores

    def counted(
        self,
        interest: Interest,
        pool: Pool,
        see: See | None = None,
        progress: Progress | None = None,
    ) -> Counted:
        """Count every document; `see` is for an engine in this process alone.

        In this process threads share the blocks of all shards, and progress is told block by
        block; elsewhere workers have a shard each, and it is told shard by shard.
        """
        if isinstance(self.engine, Here):
            return added(self.shares(partial(interest.count, see=_in_turn(see)), progress))
        telling = _Telling(progress, self.documents)
        total: Counted = pool.total(self._counts(), interest, done=telling.shard)
        return total

    def probe(self) -> Probe | None:
        """Give products that another machine must give, too; None where none does the work."""
        if isinstance(self.engine, Here) or not self.judged:
            return None
        judged = self._judged_chunk()
        some = judged.part(0, min(PROBES, len(judged)))
        return Probe(some, digest(score_chunk(self.products, some)))

    def missing(self, judgements: Judgements) -> list[Remark]:
        """Warn of relevant documents that are not in the corpus."""
        relevant = judgements.doc_ids.filter(pl.Series(judgements.grades > 0))
        absent = relevant.filter(~relevant.is_in(pl.Series(list(self.judged)).implode()))
        if not len(absent):
            return []
        pattern = (
            "{absent:document} judged relevant but not in the corpus, for example {example}: "
            "counted as not retrieved"
        )
        return [warning(pattern, absent=len(absent), example=repr(absent[0]))]

    def _judged_chunk(self) -> Chunk:
        """Give all judged documents, in the order of their positions."""
        positions = np.array(list(self.judged.values()), np.int64)
        order = np.argsort(positions)
        rows = self.judged_embeddings[order] if len(order) else np.empty((0, 0))
        return Chunk(list(self.judged), rows, positions[order], order)

    def _counts(self) -> list[Count]:
        """Pieces of work that pass the corpus a second time."""
        return [
            Count(
                number,
                open,
                self._name(number),
                start,
                survey.documents,
                tuple(replace(judged, embeddings=None) for judged in survey.judged),
            )
            for number, (open, start, survey) in enumerate(
                zip(self.shards, self.starts, self.surveys, strict=True)
            )
        ]

    def _name(self, number: int) -> str:
        return "the corpus" if len(self.shards) == 1 else f"shard {number} of the corpus"

    def _check_types(self) -> None:
        """Refuse documents some of which are embedded otherwise than the others."""
        types: dict[str, str] = {}
        for survey in self.surveys:
            types |= {dtype: at for dtype, at in survey.types.items() if dtype not in types}
        if len(types) > 1:
            named = ", ".join(f"{dtype} ({where})" for dtype, where in types.items())
            raise InputError(f"the documents are {named}: embed all of them alike")

    def _check_ids(self, pool: Pool) -> None:
        """Refuse documents that come more than once."""
        numbers = [survey.numbers for survey in self.surveys]
        hashes = [survey.hashes for survey in self.surveys]
        if not any(map(len, hashes)):
            twice, number, holders = _overlap(numbers)
            if twice:
                raise self._twice(twice, str(number), holders)
            return
        hashes += [_hashed_numbers(pair) for pairs in numbers for pair in pairs.tolist()]
        every = pl.Series(np.concatenate(hashes)).sort().to_numpy()  # in several threads
        suspects = np.unique(every[1:][every[1:] == every[:-1]])
        if not len(suspects):
            return
        looks = [Find(number, open, self._name(number)) for number, open in enumerate(self.shards)]
        shards: dict[str, list[int]] = {}
        for look, found in pool.results(looks, pl.Series(suspects)):
            for document in found:
                shards.setdefault(document, []).append(look.number)
        several = {document: own for document, own in shards.items() if len(own) > 1}
        if several:
            example = min(several)
            raise self._twice(len(several), example, several[example])

    def _twice(self, documents: int, example: str, shards: Sequence[int]) -> InputError:
        others = f" (and {documents - 1:,} more)" if documents > 1 else ""
        return InputError(
            f"the corpus holds document {example!r} more than once{self._of(shards)}{others}; pass "
            "every document once"
        )

    def _check_places(self) -> None:
        """Refuse places that two documents have; warn of places that none has."""
        runs = [
            np.concatenate((survey.following + start, survey.placed))
            for start, survey in zip(self.starts, self.surveys, strict=True)
        ]
        twice, place, shards = _overlap(runs)
        if twice:
            others = f" (and {twice - 1:,} more)" if twice > 1 else ""
            raise InputError(
                f"two documents of the corpus stand at position {place}{self._of(shards)}{others}: "
                "give every document its own"
            )
        first, stop = np.sort(np.concatenate(runs), axis=0).T
        empty = np.flatnonzero(first > np.append(0, stop[:-1]))
        if len(empty):
            pattern = (
                "{empty:place} below {last} of the corpus have no document, for example {example}: "
                "is a part of it missing?"
            )
            remark = warning(
                pattern,
                empty=int(stop[-1]) - self.documents,
                last=int(stop[-1]),
                example=int(np.append(0, stop)[empty[0]]),
            )
            self.remarks.append(remark)

    def _of(self, shards: Sequence[int]) -> str:
        if len(self.shards) == 1:
            return ""
        return f", in {' and '.join(f'shard {number}' for number in sorted(set(shards)))}"


@dataclass
class _Telling:
    """Tells how many documents were counted, if anybody wants to know."""

    progress: Progress | None
    documents: int
    counted: int = 0
    shards: set[int] = field(default_factory=set)
    """Numbers of the shards that are done."""
    lock: Lock = field(default_factory=Lock)

    def some(self, documents: int) -> None:
        """Count so many further documents; threads may call it."""
        if self.progress is not None:
            with self.lock:
                self.counted += documents
                self.progress("counting", self.counted, self.documents)

    def shard(self, count: Count) -> None:
        """Count a whole shard, once."""
        if count.number not in self.shards:
            self.shards.add(count.number)
            self.some(count.documents)


def _in_turn(see: See | None) -> See | None:
    """Let threads show their blocks one after the other."""
    if see is None:
        return None
    lock = Lock()

    def one_at_a_time(positions: Ints, scores: Any) -> None:
        with lock:
            see(positions, scores)

    return one_at_a_time


def _together(embeddings: Sequence[Any]) -> Any:
    """Put embeddings under one another."""
    if is_tensor(embeddings[0]):
        return require("torch", "a corpus of tensors").cat(list(embeddings))
    return np.concatenate(embeddings)


def _overlap(pairs: Sequence[Ints]) -> tuple[int, int, list[int]]:
    """Count whole numbers that are in two intervals; give one of them, and who has it.

    Intervals are pairs of the first number and the one after the last, in groups.

    >>> _overlap([np.array([[0, 5]]), np.array([[7, 9], [3, 6]])])
    (2, 3, [0, 1])
    """
    groups = np.repeat(np.arange(len(pairs)), [len(own) for own in pairs])
    first, stop = np.concatenate(pairs).T
    order = np.argsort(first, kind="stable")
    groups, first, stop = groups[order], first[order], stop[order]
    reach = np.maximum.accumulate(stop)[:-1]
    shared = np.maximum(0, np.minimum(reach, stop[1:]) - first[1:])
    if not shared.any():
        return 0, 0, []
    example = int(first[1:][np.flatnonzero(shared)[0]])
    having = (first <= example) & (example < stop)
    return int(shared.sum()), example, groups[having].tolist()


def _hashed_numbers(pair: Sequence[int]) -> NDArray[np.uint64]:
    return hashed(pl.Series(np.arange(*pair)).cast(pl.String))
