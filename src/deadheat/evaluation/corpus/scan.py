"""The first pass over a corpus: its ids are checked, and the judged documents are taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import Remark, warning
from deadheat.engines import Pool, Progress
from deadheat.errors import InputError
from deadheat.evaluation.corpus.chunks import Chunk, Shard, join_chunks
from deadheat.formats import Documents, Judgements, id_column
from deadheat.scoring import Products
from deadheat.ties import Ints

NONE: Ints = np.empty(0, np.int64)
Intervals = Ints
"""Intervals of whole numbers, ``[n, 2]``: the first of each, and the one after its last."""


@dataclass
class ShardScan:
    """What the first pass finds in a shard."""

    documents: int = 0
    first_ids: list[str] = field(default_factory=list)
    """Of the first documents, two at most."""
    types: dict[str, str] = field(default_factory=dict)
    """Number types of the embeddings, and where each came first."""
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)
    """Of all ids but those in `ranges`."""
    ranges: list[Intervals] = field(default_factory=list)
    """Ids that are consecutive numbers."""
    places: list[Intervals] = field(default_factory=list)
    """Positions that the caller gave."""
    relative_places: list[Intervals] = field(default_factory=list)
    """Other positions, which count from the start of the shard."""
    judged: list[tuple[Ints, Chunk]] = field(default_factory=list)
    """The judged documents, chunk by chunk, and their indices in the chunk."""


def scan_shard(judged_ids: pl.Series, products: Products, shard: Shard) -> ShardScan:
    """Check the ids of a shard, and take the embeddings of the judged documents."""
    scan, wanted = ShardScan(), judged_ids.implode()
    for chunk in shard.read(products):
        where = f"chunk {chunk.number} of {shard.name}"
        try:
            ids = chunk.id_column()
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        scan.documents += len(chunk)
        scan.first_ids += ids.head(2 - len(scan.first_ids)).to_list()
        scan.types.setdefault(str(chunk.embeddings.dtype), where)
        places = scan.places if chunk.has_positions else scan.relative_places
        places.append(_intervals(chunk.positions))
        if isinstance(chunk.ids, range) and chunk.ids.step == 1:
            scan.ranges.append(np.array([[chunk.ids.start, chunk.ids.stop]]))
        else:
            scan.hashes.append(hash_ids(ids))
        index = ids.is_in(wanted).to_numpy().nonzero()[0]
        if len(index):
            scan.judged.append((index, replace(chunk.take(index), ids=ids.gather(index).to_list())))
        del chunk
    return scan


def _find_ids(hashes: pl.Series, products: Products, shard: Shard) -> list[str]:
    """Return the ids of a shard that have one of these hashes, as often as they come."""
    columns = (chunk.id_column() for chunk in shard.read(products))
    return [
        name for ids in columns for name in ids.filter(ids.hash().is_in(hashes.implode())).to_list()
    ]


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
        place = dict(zip(self.judged.ids, self.judged.positions.tolist(), strict=True))
        found = np.array([place.get(document, -1) for document in doc_ids.to_list()], np.int64)
        return np.where(found >= 0, found + queries * self.documents, -1)

    def find_missing(self, judgements: Judgements) -> list[Remark]:
        """Warn of relevant documents that are not in the corpus."""
        relevant = judgements.doc_ids.filter(pl.Series(judgements.grades > 0))
        present = pl.Series(self.judged.ids, dtype=pl.String)
        absent = relevant.filter(~relevant.is_in(present.implode()))
        if not len(absent):
            return []
        pattern = (
            "{absent:document} judged relevant but not in the corpus, for example {example}: "
            "counted as not retrieved"
        )
        return [warning(pattern, absent=len(absent), example=repr(absent[0]))]


def scan_corpus(
    shards: Sequence[Shard], judged_ids: pl.Series, pool: Pool, progress: Progress | None = None
) -> Scan:
    """Pass a corpus once: count its documents, find the judged ones, refuse what comes twice."""
    found: dict[int, ShardScan] = {}
    for shard, scan in pool.results(shards, partial(scan_shard, judged_ids)):
        found[shard.number] = scan
        if progress is not None:
            progress("reading ids", len(found), len(shards))
    scans = [found[shard.number] for shard in shards]
    types: dict[str, str] = {}
    for scan in scans:
        types |= {dtype: where for dtype, where in scan.types.items() if dtype not in types}
    if not types:
        raise InputError("the corpus is empty: chunks gave no document")
    if len(types) > 1:
        named = ", ".join(f"{dtype} ({where})" for dtype, where in types.items())
        raise InputError(f"the documents are {named}: embed all of them alike")
    _check_ids(scans, shards, pool)

    start, scanned, judged, places = 0, [], [], []
    for shard, scan in zip(shards, scans, strict=True):
        expected = {}
        for index, chunk in scan.judged:
            if not chunk.has_positions:
                chunk = replace(chunk, positions=chunk.positions + start)
            judged.append(chunk)
            each = zip(index.tolist(), chunk.ids, chunk.positions.tolist(), strict=True)
            expected[chunk.number] = list(each)
        places.append([*scan.places, *(own + start for own in scan.relative_places)])
        scanned.append(replace(shard, start=start, documents=scan.documents, expected=expected))
        start += scan.documents
    remarks = _check_places(places, start)
    first_ids = [name for scan in scans for name in scan.first_ids][:2]
    every = join_chunks(judged) if judged else Chunk([], np.empty((0, 0)), NONE, NONE)
    in_order = every.take(np.argsort(every.positions))
    return Scan(start, scanned, in_order, first_ids, remarks)


def hash_ids(ids: pl.Series) -> NDArray[np.uint64]:
    """Hash ids, in every process alike."""
    return ids.hash().to_numpy()


def _check_ids(scans: Sequence[ShardScan], shards: Sequence[Shard], pool: Pool) -> None:
    """Refuse a document that comes more than once."""
    if any(scan.hashes for scan in scans):
        twice, example, holders = _find_repeated(scans, shards, pool)
    else:
        twice, number, holders = _find_overlap([scan.ranges for scan in scans])
        example = str(number)
    if twice:
        raise InputError(
            f"the corpus holds document {example!r} more than once"
            f"{_name_holders(holders, len(shards), twice)}; pass every document once"
        )


def _find_repeated(
    scans: Sequence[ShardScan], shards: Sequence[Shard], pool: Pool
) -> tuple[int, str, list[int]]:
    """Count the ids that come more than once; return one of them, and the shards that have it."""
    numbers = [np.arange(*own[0]) for scan in scans for own in scan.ranges]
    hashes = [hash_ids(pl.Series(own).cast(pl.String)) for own in numbers]
    hashes += [own for scan in scans for own in scan.hashes]
    every = pl.Series(np.concatenate(hashes)).sort()
    repeated = every.filter(every == every.shift()).unique()
    several: dict[str, list[int]] = {}
    if len(repeated):  # two ids may have one hash: the ids themselves decide
        holding: dict[str, list[int]] = {}
        for shard, ids in pool.results(shards, partial(_find_ids, repeated)):
            for document in ids:
                holding.setdefault(document, []).append(shard.number)
        several = {name: numbers for name, numbers in holding.items() if len(numbers) > 1}
    example = min(several, default="")
    return len(several), example, several.get(example, [])


def _check_places(places: Sequence[Sequence[Intervals]], documents: int) -> list[Remark]:
    """Refuse positions, by shard, that two documents have; warn of positions that none has."""
    twice, place, holders = _find_overlap(places)
    if twice:
        raise InputError(
            f"two documents of the corpus stand at position {place}"
            f"{_name_holders(holders, len(places), twice)}: give every document its own"
        )
    first, stop = np.sort(np.concatenate([own for shard in places for own in shard]), axis=0).T
    before = np.append(0, stop[:-1])
    gaps = before[first > before]
    if not len(gaps):
        return []
    pattern = (
        "{empty:place} below {last} of the corpus have no document, for example {example}: "
        "is a part of it missing?"
    )
    last = int(stop[-1])
    return [warning(pattern, empty=last - documents, last=last, example=int(gaps[0]))]


def _intervals(numbers: Ints) -> Intervals:
    """Return distinct numbers as the fewest intervals.

    >>> _intervals(np.array([3, 7, 4])).tolist()
    [[3, 5], [7, 8]]
    """
    ascending = np.sort(numbers)
    is_end = np.append(np.diff(ascending) != 1, True)
    is_start = np.append(True, is_end[:-1])
    return np.stack((ascending[is_start], ascending[is_end] + 1), axis=1)


def _find_overlap(shards: Sequence[Sequence[Intervals]]) -> tuple[int, int, list[int]]:
    """Count the numbers that are in two intervals; return one of them, and the shards that have it.

    >>> _find_overlap([[np.array([[0, 5]])], [np.array([[7, 9], [3, 6]])]])
    (2, 3, [0, 1])
    """
    owner = np.repeat(np.arange(len(shards)), [sum(map(len, own)) for own in shards])
    first, stop = np.concatenate([own for shard in shards for own in shard]).T
    order = np.argsort(first, kind="stable")
    reach = np.maximum.accumulate(stop[order])[:-1]
    shared = np.maximum(0, np.minimum(reach, stop[order][1:]) - first[order][1:])
    if not shared.any():
        return 0, 0, []
    example = int(first[order][1:][shared > 0][0])
    return int(shared.sum()), example, owner[(first <= example) & (example < stop)].tolist()


def _name_holders(holders: Sequence[int], shards: int, number: int) -> str:
    """Name the shards that hold the example of a message, and say how many others there are."""
    names = " and ".join(f"shard {holder}" for holder in sorted(set(holders)))
    others = f" (and {number - 1:,} more)" if number > 1 else ""
    return (f", in {names}" if shards > 1 else "") + others
