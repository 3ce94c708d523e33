"""Evaluate a run in a folder of files that do not fit in memory together.

Measures need few numbers per query, and those of different queries add nothing to one another:
so the rows are dealt out by query to parts that fit, and each part is counted alone. What is
counted is put together before anything is computed from it; the result is that of all in memory.

Every row is read once, set aside in one temporary file, and read again with its part. (The other
way, reading all files once for every part, needs no disk, but as many passes as there are parts.)
The file has no name, so that it is gone when the process is, however that ends.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from deadheat.engines import Engine, Here
from deadheat.errors import InputError
from deadheat.evaluation.evaluate import (
    Counted,
    Options,
    counted_groups,
    evaluated,
    result_of_counted,
)
from deadheat.evaluation.result import Result
from deadheat.formats import Judgements, Run
from deadheat.formats.folders import Piece, RunFolder
from deadheat.late import pl
from deadheat.measures import Measure
from deadheat.remarks import added
from deadheat.ties import TieGroups

PART_ROWS = 1 << 21
"""Rows of a run that are in memory at a time: some hundred megabytes."""
_FINER = 4
"""How many times more piles rows are dealt to than parts are needed: lists differ in length."""
_MOST_PILES = 1 << 10


def evaluated_folder(
    judgements: Judgements,
    folder: RunFolder,
    measures: Sequence[Measure],
    *,
    engine: Engine | None = None,
    part_rows: int | None = None,
    **options: Any,
) -> Result:
    """Evaluate the run of a folder, in memory where it fits, else part by part.

    Parameters
    ----------
    engine
        Where files are read and parts are counted. Here, and in one part if the run fits, unless
        given; a cluster must find the files under the same paths.
    part_rows
        Rows that may be in memory at a time, `PART_ROWS` unless given. A query's list is never
        parted, and a group of rows of a Parquet file is read whole.
    options
        As for `deadheat.evaluation.evaluated`.
    """
    most = PART_ROWS if part_rows is None else part_rows
    if not folder.rows or (engine is None and folder.rows <= most):
        return evaluated(judgements, folder.whole(), measures, **options)
    checked = Options(**options)
    engine = engine or Here()
    with (
        _dealt(judgements, folder, most, engine) as parts,
        engine.pool(_Counter(folder, judgements, measures, checked)) as workers,
    ):
        counted = {part.number: counts for part, counts in workers.results(parts)}
    whole = together([counted[part.number] for part in parts])
    return result_of_counted(whole, judgements, folder.source, measures, checked)


def run_parts(judgements: Judgements, folder: RunFolder) -> Iterator[tuple[Judgements, Run]]:
    """Give the run of a folder in parts that fit in memory, with the judgements of their queries.

    Judged queries stand in the order of the judgements, over all parts.
    """
    if folder.rows <= PART_ROWS:
        yield judgements, folder.whole()
        return
    with _dealt(judgements, folder, PART_ROWS, Here()) as parts:
        for part in parts:
            yield part.of(judgements), part.run(folder)


@contextmanager
def _dealt(
    judgements: Judgements, folder: RunFolder, most: int, engine: Engine
) -> Iterator[list[Part]]:
    """Part the rows of a folder by their queries; they are set aside while the block runs."""
    piles = _Piles.of(judgements.query_ids, folder.rows, most)
    with _Aside() as aside:
        with engine.pool(_Dealer(folder, piles)) as workers:
            for piece, dealt in workers.results(folder.pieces):
                aside.keep(piece, dealt)
        yield _parts(piles, aside, most)


@dataclass(frozen=True)
class _Piles:
    """Where the rows of each query go: judged queries by their order, all others by their hash.

    Pile ``i`` is for the judged queries ``starts[i] … starts[i + 1] − 1``; behind these piles are
    those for queries without judgements.
    """

    query_ids: Sequence[str]
    starts: NDArray[np.int64]
    others: int
    """How many piles are for queries without judgements."""

    @classmethod
    def of(cls, query_ids: Sequence[str], rows: int, most: int) -> _Piles:
        wanted = min(_FINER * -(-rows // most), _MOST_PILES)
        judged = min(wanted, len(query_ids))
        starts = np.linspace(0, len(query_ids), judged + 1).astype(np.int64)
        return cls(query_ids, starts, wanted)

    @property
    def judged(self) -> int:
        """How many piles are for judged queries."""
        return len(self.starts) - 1

    def __len__(self) -> int:
        return self.judged + self.others

    def queries(self, piles: range) -> tuple[int, int]:
        """The judged queries of some piles that stand together: the first, and behind the last."""
        if piles.start >= self.judged:
            return 0, 0
        return int(self.starts[piles.start]), int(self.starts[piles.stop])

    def deal(self, frame: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Part rows by the piles that they belong to, each in the order of the rows."""
        pile = dict(zip(self.query_ids, self._judged_piles.tolist(), strict=True))
        queries = frame["query"].unique()
        # A hash that is the same on every machine.
        numbers = [
            pile[query] if query in pile else self.judged + crc32(query.encode()) % self.others
            for query in queries.to_list()
        ]
        known = pl.DataFrame({"query": queries, "pile": pl.Series(numbers, dtype=pl.Int32)})
        parted = frame.join(known, on="query", maintain_order="left").partition_by(
            "pile", include_key=False, maintain_order=True, as_dict=True
        )
        for (number,), rows in parted.items():
            yield int(number), rows

    @property
    def _judged_piles(self) -> NDArray[np.int64]:
        """Per judged query: its pile."""
        return np.repeat(np.arange(self.judged), np.diff(self.starts))


@dataclass(frozen=True)
class _Dealer:
    """Makes a worker that reads a piece of a file and parts its rows."""

    folder: RunFolder
    piles: _Piles

    def __call__(self) -> Callable[[Piece], list[Pile]]:
        return self._dealt

    def _dealt(self, piece: Piece) -> list[Pile]:
        dealt = self.piles.deal(self.folder.read(piece))
        return [Pile(number, len(rows), _packed(rows)) for number, rows in dealt]


class Pile(NamedTuple):
    """Rows of a piece that belong together."""

    number: int
    rows: int
    packed: bytes


@dataclass(frozen=True)
class Part:
    """Piles that are counted together: of judged queries that stand together, or of others.

    Its rows are read when they are needed; a part that is sent elsewhere takes them along.
    """

    number: int
    judged: tuple[int, int]
    """The first judged query, and the one behind the last; of queries without judgements none."""
    rows: Callable[[], Sequence[bytes]]

    def of(self, judgements: Judgements) -> Judgements:
        """Give the judgements of its queries."""
        return judgements.part(*self.judged)

    def run(self, folder: RunFolder) -> Run:
        """Read its rows."""
        return folder.run(map(pl.read_ipc, self.rows()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.number, self.judged, self.rows())


def _arrived(number: int, judged: tuple[int, int], rows: Sequence[bytes]) -> Part:
    return Part(number, judged, lambda: rows)


class _Aside:
    """Rows that are set aside in a temporary file without a name."""

    def __init__(self) -> None:
        self._places: dict[int, list[tuple[Piece, int, int, int]]] = {}
        """Per pile: pieces, their rows, and where these begin and end in the file."""

    def __enter__(self) -> _Aside:
        with _naming_place():
            self._file = tempfile.TemporaryFile()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def keep(self, piece: Piece, piles: Iterable[Pile]) -> None:
        """Write down what a piece was parted into."""
        for pile in piles:
            with _naming_place():
                start = self._file.seek(0, os.SEEK_END)
                self._file.write(pile.packed)
            place = piece, pile.rows, start, len(pile.packed)
            self._places.setdefault(pile.number, []).append(place)

    def rows(self, pile: int) -> int:
        """Rows of a pile."""
        return sum(rows for _, rows, _, _ in self._places.get(pile, ()))

    def read(self, piles: range) -> list[bytes]:
        """Give the rows of some piles, in the order of the files."""
        places = [place for pile in piles for place in self._places.get(pile, ())]
        packed = []
        for _, _, start, length in sorted(places, key=lambda p: (p[0].file, p[0].start)):
            self._file.seek(start)
            packed.append(self._file.read(length))
        return packed


@contextmanager
def _naming_place() -> Iterator[None]:
    """Say where there was no room."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"rows cannot be set aside in {tempfile.gettempdir()} ({error.strerror}): a run that "
            "does not fit in memory needs about as much room on disk as its files; set the "
            "environment variable TMPDIR to a folder that has it"
        ) from None


def _parts(piles: _Piles, aside: _Aside, most: int) -> list[Part]:
    """Put neighbouring piles together as long as their rows fit in memory."""
    together: list[range] = []
    for kind in (range(piles.judged), range(piles.judged, len(piles))):
        start, total = kind.start, 0
        for pile in kind:
            rows = aside.rows(pile)
            if total and rows and total + rows > most:
                together.append(range(start, pile))
                start, total = pile, 0
            total += rows
        if total:
            together.append(range(start, kind.stop))
    return [
        Part(number, piles.queries(own), partial(aside.read, own))
        for number, own in enumerate(together)
    ]


@dataclass(frozen=True)
class _Counter:
    """Makes a worker that counts a part."""

    folder: RunFolder
    judgements: Judgements
    measures: Sequence[Measure]
    options: Options

    def __call__(self) -> Callable[[Part], Counted]:
        return self._counted

    def _counted(self, part: Part) -> Counted:
        run = part.run(self.folder)
        return counted_groups(part.of(self.judgements), run, self.measures, self.options)


def _packed(rows: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    rows.write_ipc(out, compression="lz4")
    return out.getvalue()


def together(parts: Sequence[Counted]) -> Counted:
    """What is known of all parts; those of queries without judgements have no groups."""
    if len(parts) == 1:
        return parts[0]
    return Counted(
        [query for part in parts for query in part.query_ids],
        TieGroups.concat([part.groups for part in parts]),
        sum((part.fit for part in parts[1:]), parts[0].fit),
        list(added(part.remarks for part in parts)),
    )
