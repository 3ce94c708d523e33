"""The first pass over a corpus: its ids are checked, and the judged documents are taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat._lazy import pl
from deadheat.engines import Pool, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import Chunk, Shard
from deadheat.formats import Judgements
from deadheat.formats.ids import id_column
from deadheat.formats.types import Documents
from deadheat.numbers import is_tensor
from deadheat.packages import require
from deadheat.remarks import Remark, warning
from deadheat.scoring import Products
from deadheat.ties.groups import Ints


@dataclass(frozen=True)
class ShardScan:
    """What the first pass finds in a shard."""

    documents: int
    first_ids: list[str]
    types: dict[str, str]
    """Number types of the embeddings, and where each came first."""
    hashes: NDArray[np.uint64]
    """Of all ids but those in `ranges`."""
    ranges: Ints
    """Ids that are consecutive numbers, as pairs: the first, and the one after the last."""
    places: Ints
    """Runs of places, as such pairs; a third number is 1 where they count from the shard's start,
    and 0 where the caller gave them."""
    judged: list[Chunk]
    """The judged documents, chunk by chunk."""
    expected: dict[int, dict[int, str]]
    """By the number of a chunk: the judged ids by their index in the chunk."""


class ScanTask(Shard):
    """Look at the ids of a shard, and take the embeddings of the judged documents."""

    def run(self, products: Products, judged_ids: pl.Series) -> ShardScan:
        """Pass the shard once."""
        documents, first_ids = 0, list[str]()
        types: dict[str, str] = {}
        hashes = [np.empty(0, np.uint64)]
        ranges, places = [np.empty((0, 2), np.int64)], [np.empty((0, 3), np.int64)]
        judged, expected = list[Chunk](), dict[int, dict[int, str]]()
        wanted = judged_ids.implode()
        for chunk in self.read(products):
            where = f"chunk {chunk.number} of {self.name}"
            try:
                ids = chunk.id_column()
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
            first_ids += ids.head(2 - len(first_ids)).to_list()
            documents += len(chunk)
            types.setdefault(str(chunk.embeddings.dtype), where)
            places.append(_runs(chunk))
            if isinstance(chunk.ids, range) and chunk.ids.step == 1:
                ranges.append(np.array([[chunk.ids.start, chunk.ids.stop]]))
            else:
                hashes.append(hash_ids(ids))
            index = ids.is_in(wanted).to_numpy().nonzero()[0]
            if len(index):
                judged.append(chunk.take(index))
                expected[chunk.number] = dict(zip(index.tolist(), judged[-1].ids, strict=True))
            del chunk
        return ShardScan(
            documents,
            first_ids,
            types,
            np.concatenate(hashes),
            np.concatenate(ranges),
            np.concatenate(places),
            judged,
            expected,
        )


class DuplicateTask(Shard):
    """Find the ids of a shard that have some hashes."""

    def run(self, products: Products, hashes: pl.Series) -> list[str]:
        """Return the ids, as often as they come."""
        found: list[str] = []
        for chunk in self.read(products):
            ids = chunk.id_column()
            found += ids.filter(ids.hash().is_in(hashes.implode())).to_list()
        return found


@dataclass(frozen=True)
class Scan(Documents):
    """What the first pass finds in a whole corpus; the documents of a run that lists it all."""

    documents: int
    shards: list[Shard]
    """With what the second pass must find."""
    judged: Chunk
    """The judged documents, in the order of their positions."""
    first_ids: list[str]
    """Of the first documents, two at most."""
    remarks: list[Remark]

    def ids(self, rows: Ints) -> pl.Series:
        """Return ids of the first documents, at most as many as rows, for examples in messages."""
        return id_column(self.first_ids[: len(rows)])

    def find(self, queries: Ints, doc_ids: pl.Series) -> Ints:
        """Return the row of each document in the list of its query, −1 where it is not judged."""
        positions = dict(zip(self.judged.ids, self.judged.positions.tolist(), strict=True))
        found = [positions.get(document, -1) for document in doc_ids.to_list()]
        position = np.array(found, np.int64)
        return np.where(position >= 0, position + queries * self.documents, -1)

    def find_missing(self, judgements: Judgements) -> list[Remark]:
        """Warn of relevant documents that are not in the corpus."""
        relevant = judgements.doc_ids.filter(pl.Series(judgements.grades > 0))
        absent = relevant.filter(~relevant.is_in(id_column(self.judged.ids).implode()))
        if not len(absent):
            return []
        pattern = (
            "{absent:document} judged relevant but not in the corpus, for example {example}: "
            "counted as not retrieved"
        )
        return [warning(pattern, absent=len(absent), example=repr(absent[0]))]


def scan_corpus(
    shards: Sequence[Shard], judged_ids: set[str], pool: Pool, progress: Progress | None = None
) -> Scan:
    """Pass a corpus once: count its documents, find the judged ones, refuse what comes twice."""
    tasks = [ScanTask(**vars(shard)) for shard in shards]
    found: dict[int, ShardScan] = {}
    for task, scan in pool.results(tasks, id_column(sorted(judged_ids))):
        found[task.number] = scan
        if progress is not None:
            progress("reading ids", len(found), len(tasks))
    scans = [found[number] for number in range(len(tasks))]
    ends = np.cumsum([scan.documents for scan in scans]).tolist()
    if not ends or not ends[-1]:
        raise InputError("the corpus is empty: chunks gave no document")
    starts = [0, *ends[:-1]]
    _check_types(scans)
    _check_ids(scans, shards, pool)
    remarks = _check_places(scans, starts)
    scanned = [
        replace(shard, start=start, documents=scan.documents, expected=scan.expected)
        for shard, start, scan in zip(shards, starts, scans, strict=True)
    ]
    first_ids = [name for scan in scans for name in scan.first_ids][:2]
    return Scan(ends[-1], scanned, _merge_judged(scans, starts), first_ids, remarks)


def hash_ids(ids: pl.Series) -> NDArray[np.uint64]:
    """Hash ids, in every process alike."""
    return ids.hash().to_numpy()


def _runs(chunk: Chunk) -> Ints:
    """Return the places of a chunk as `ShardScan.places` has them."""
    ascending = np.sort(chunk.positions)
    ends = np.flatnonzero(np.diff(ascending) != 1)
    first = ascending[np.append(0, ends + 1)]
    stop = ascending[np.append(ends, len(ascending) - 1)] + 1
    return np.stack((first, stop, np.full(len(first), not chunk.has_positions)), axis=1)


def _merge_judged(scans: Sequence[ShardScan], starts: Sequence[int]) -> Chunk:
    """Put the judged documents of all shards into the order of their positions."""
    chunks = [
        (chunk, start) for scan, start in zip(scans, starts, strict=True) for chunk in scan.judged
    ]
    if not chunks:
        return Chunk([], np.empty((0, 0)), np.empty(0, np.int64))
    ids = [name for chunk, _ in chunks for name in chunk.ids]
    positions = [c.positions + (0 if c.has_positions else start) for c, start in chunks]
    rows: list[Any] = [chunk.embeddings for chunk, _ in chunks]
    torch = require("torch", "a corpus of tensors") if is_tensor(rows[0]) else None
    embeddings = np.concatenate(rows) if torch is None else torch.cat(rows)
    every = Chunk(ids, embeddings, np.concatenate(positions))
    return every.take(np.argsort(every.positions))


def _check_types(scans: Sequence[ShardScan]) -> None:
    """Refuse a corpus of embeddings of several number types."""
    types: dict[str, str] = {}
    for scan in scans:
        for dtype, where in scan.types.items():
            types.setdefault(dtype, where)
    if len(types) > 1:
        named = ", ".join(f"{dtype} ({where})" for dtype, where in types.items())
        raise InputError(f"the documents are {named}: embed all of them alike")


def _check_ids(scans: Sequence[ShardScan], shards: Sequence[Shard], pool: Pool) -> None:
    """Refuse a document that comes more than once."""
    if not any(len(scan.hashes) for scan in scans):  # consecutive numbers only
        twice, number, holders = _overlap([scan.ranges for scan in scans])
        if twice:
            raise _repeated(twice, str(number), holders, len(shards))
        return
    ranges = [pair for scan in scans for pair in scan.ranges.tolist()]
    hashes = [hash_ids(pl.Series(np.arange(*pair)).cast(pl.String)) for pair in ranges]
    hashes += [scan.hashes for scan in scans]
    every = pl.Series(np.concatenate(hashes)).sort().to_numpy()  # in several threads
    repeated = np.unique(every[1:][every[1:] == every[:-1]])
    if not len(repeated):
        return
    # Two ids may have one hash: the ids themselves decide.
    tasks = [DuplicateTask(**vars(shard)) for shard in shards]
    holding: dict[str, list[int]] = {}
    for task, ids in pool.results(tasks, pl.Series(repeated)):
        for document in ids:
            holding.setdefault(document, []).append(task.number)
    several = {document: numbers for document, numbers in holding.items() if len(numbers) > 1}
    if several:
        example = min(several)
        raise _repeated(len(several), example, several[example], len(shards))


def _repeated(documents: int, example: str, holders: Sequence[int], shards: int) -> InputError:
    return InputError(
        f"the corpus holds document {example!r} more than once"
        f"{_name_holders(holders, shards, documents)}; pass every document once"
    )


def _check_places(scans: Sequence[ShardScan], starts: Sequence[int]) -> list[Remark]:
    """Refuse places that two documents have; warn of places that none has."""
    each = zip(scans, starts, strict=True)
    runs = [scan.places[:, :2] + start * scan.places[:, 2:] for scan, start in each]
    twice, place, holders = _overlap(runs)
    if twice:
        raise InputError(
            f"two documents of the corpus stand at position {place}"
            f"{_name_holders(holders, len(scans), twice)}: give every document its own"
        )
    first, stop = np.sort(np.concatenate(runs), axis=0).T
    before = np.append(0, stop[:-1])
    gaps = np.flatnonzero(first > before)
    if not len(gaps):
        return []
    pattern = (
        "{empty:place} below {last} of the corpus have no document, for example {example}: "
        "is a part of it missing?"
    )
    last, example = int(stop[-1]), int(before[gaps[0]])
    empty = last - sum(scan.documents for scan in scans)
    return [warning(pattern, empty=empty, last=last, example=example)]


def _name_holders(holders: Sequence[int], shards: int, number: int) -> str:
    """Name the shards that hold the example of a message, and say how many others there are."""
    names = " and ".join(f"shard {holder}" for holder in sorted(set(holders)))
    others = f" (and {number - 1:,} more)" if number > 1 else ""
    return (f", in {names}" if shards > 1 else "") + others


def _overlap(pairs: Sequence[Ints]) -> tuple[int, int, list[int]]:
    """Count whole numbers that are in two intervals; return one of them, and who has it.

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
    holders = (first <= example) & (example < stop)
    return int(shared.sum()), example, groups[holders].tolist()
