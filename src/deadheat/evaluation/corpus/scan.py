"""The first pass over a corpus: check the ids, and keep the judged documents."""

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
from deadheat.evaluation.corpus.chunks import Chunk, Shard
from deadheat.formats import Judgements, id_column, text_id
from deadheat.scoring import Products
from deadheat.ties import Ints

Intervals = Ints
"""Intervals of whole numbers, ``[n, 2]``: start and stop (exclusive) of each."""


@dataclass
class ShardScan:
    """Result of the first pass over a shard."""

    documents: int = 0
    first_ids: list[str] = field(default_factory=list)
    """Ids of the first documents, at most two."""
    types: dict[str, str] = field(default_factory=dict)
    """Number types of the embeddings, and the first chunk of each type."""
    hashes: list[NDArray[np.uint64]] = field(default_factory=list)
    """Hashes of all ids that are not in `ranges`."""
    ranges: list[Intervals] = field(default_factory=list)
    """Ids that are consecutive numbers."""
    places: list[tuple[bool, Intervals]] = field(default_factory=list)
    """Positions, and whether the caller gave them; otherwise they start at 0 in each shard."""
    judged: list[Chunk] = field(default_factory=list)
    """The judged documents, chunk by chunk."""


def scan_shard(judged_ids: pl.Series, products: Products, shard: Shard) -> ShardScan:
    """Check the ids of a shard, and keep the embeddings of the judged documents."""
    scan = ShardScan()
    for chunk in shard.read(products):
        ids = _read_ids(chunk)
        scan.documents += len(ids)
        scan.first_ids += ids.head(2 - len(scan.first_ids)).to_list()
        scan.types.setdefault(str(chunk.embeddings.dtype), chunk.name)
        scan.places.append((chunk.has_positions, _intervals(chunk.positions)))
        if isinstance(chunk.ids, range) and chunk.ids.step == 1:
            scan.ranges.append(np.array([[chunk.ids.start, chunk.ids.stop]]))
        else:
            scan.hashes.append(ids.hash().to_numpy())
        index = ids.is_in(judged_ids).to_numpy().nonzero()[0]
        if len(index):
            scan.judged.append(replace(chunk.take(index), ids=ids.gather(index).to_list()))
        del chunk
    return scan


@dataclass(frozen=True)
class Scan:
    """Result of the first pass over a corpus."""

    documents: int
    shards: list[Shard]
    """The shards, with the number of documents that the second pass must find."""
    judged: list[Chunk]
    """The judged documents."""
    position: dict[str, int]
    """Position of each judged document. The first two documents of the corpus come first; their
    position is −1 if they are not judged."""
    remarks: list[Remark]


def scan_corpus(
    shards: Sequence[Shard],
    judgements: Judgements,
    pool: Pool,
    progress: Progress | None = None,
) -> Scan:
    """Read a corpus once: count documents, find the judged ones, raise an error for duplicates."""
    wanted = pl.Series(judgements.doc_ids, dtype=pl.String).unique().implode()
    found: dict[int, ShardScan] = {}
    for shard, scan in pool.results(shards, partial(scan_shard, wanted)):
        found[shard.number] = scan
        if progress is not None:
            progress("reading ids", len(found), len(shards))
    scans = [found[shard.number] for shard in shards]
    types = {dtype: where for scan in reversed(scans) for dtype, where in scan.types.items()}
    if not types:
        raise InputError("the corpus is empty: chunks has no documents")
    if len(types) > 1:
        named = ", ".join(f"{dtype} ({where})" for dtype, where in sorted(types.items()))
        raise InputError(f"the documents are {named}: use one number type for all embeddings")
    _check_ids(scans, shards, pool)

    start, scanned, judged, places = 0, [], [], []
    for shard, scan in zip(shards, scans, strict=True):
        for chunk in scan.judged:
            own = chunk.positions if chunk.has_positions else chunk.positions + start
            judged.append(replace(chunk, positions=own))
        places += [own if given else own + start for given, own in scan.places]
        scanned.append(replace(shard, start=start, documents=scan.documents))
        start += scan.documents
    first_ids = [name for scan in scans for name in scan.first_ids][:2]
    position: dict[str, int] = dict.fromkeys(first_ids, -1)
    for chunk in judged:
        position |= zip(map(str, chunk.ids), chunk.positions.tolist(), strict=True)
    remarks = _check_places(np.concatenate(places), start)
    relevant = (judgements.grades > 0).nonzero()[0].tolist()
    absent = [name for i in relevant if (name := judgements.doc_ids[i]) not in position]
    if absent:
        pattern = (
            "{absent:document} judged relevant but not in the corpus, for example {example}: "
            "counted as not retrieved"
        )
        remarks.append(warning(pattern, absent=len(absent), example=repr(absent[0])))
    return Scan(start, scanned, judged, position, remarks)


def _read_ids(chunk: Chunk) -> pl.Series:
    """Return the ids of a chunk as a column of text."""
    if isinstance(chunk.ids, range):
        numbers: pl.Series = pl.Series(np.array(chunk.ids)).cast(pl.String)
        return numbers
    column = id_column([name if type(name) is str else text_id(name) for name in chunk.ids])
    if (column == "").any():
        raise InputError(f"{chunk.name}: the id of a document is empty")
    return column


def _check_ids(scans: Sequence[ShardScan], shards: Sequence[Shard], pool: Pool) -> None:
    """Raise an error for a document that occurs more than once."""
    ranges = [own for scan in scans for own in scan.ranges]
    hashes = [own for scan in scans for own in scan.hashes]
    if not hashes:
        first, stop = np.sort(np.concatenate(ranges), axis=0).T
        if (first[1:] >= stop[:-1]).all():
            return
    hashes += [pl.Series(np.arange(*own[0])).cast(pl.String).hash().to_numpy() for own in ranges]
    every = pl.Series(np.concatenate(hashes)).sort()
    repeated = every.filter(every == every.shift()).unique()
    if not len(repeated):
        return
    holders: dict[str, list[int]] = {}  # two ids may have the same hash, so compare the ids
    for shard, ids in pool.results(shards, partial(_find_ids, repeated)):
        for document in ids:
            holders.setdefault(document, []).append(shard.number)
    twice = [document for document, numbers in holders.items() if len(numbers) > 1]
    if twice:
        example = min(twice)
        raise InputError(
            f"the corpus has document {example!r} more than once, in the shards "
            f"{sorted(set(holders[example]))} ({len(twice):,} such documents): give every document "
            "once"
        )


def _find_ids(hashes: pl.Series, products: Products, shard: Shard) -> list[str]:
    """Return the ids of a shard that have one of these hashes, with repetitions."""
    columns = map(_read_ids, shard.read(products))
    return [
        name for ids in columns for name in ids.filter(ids.hash().is_in(hashes.implode())).to_list()
    ]


def _check_places(places: Intervals, documents: int) -> list[Remark]:
    """Raise an error if two documents have the same position; warn of unused positions."""
    first, stop = np.sort(places, axis=0).T
    twice = first[1:][first[1:] < stop[:-1]]
    if len(twice):
        raise InputError(
            f"two documents of the corpus have position {twice[0]}: give each its own position"
        )
    before = np.append(0, stop[:-1])
    gaps = before[first > before]
    if not len(gaps):
        return []
    pattern = (
        "{empty:position} below {last} of the corpus without a document, for example {example}: "
        "is a part of it missing?"
    )
    last = int(stop[-1])
    return [warning(pattern, empty=last - documents, last=last, example=int(gaps[0]))]


def _intervals(numbers: Ints) -> Intervals:
    """Return distinct numbers as the smallest number of intervals.

    >>> _intervals(np.array([3, 7, 4])).tolist()
    [[3, 5], [7, 8]]
    """
    ascending = np.sort(numbers)
    is_end = np.append(np.diff(ascending) != 1, True)
    is_start = np.append(True, is_end[:-1])
    return np.stack((ascending[is_start], ascending[is_end] + 1), axis=1)
