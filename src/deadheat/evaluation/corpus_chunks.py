"""Documents that pass by: the chunks of a corpus, checked, and what a shard of them holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError, one_line
from deadheat.formats.ids import id_column, text_id
from deadheat.late import pl
from deadheat.numbers import is_tensor
from deadheat.scoring import Products
from deadheat.ties.checks import places, whole_numbers
from deadheat.ties.groups import Ints

Open = Callable[[], Iterable[Any]]
"""Makes an iterator of chunks, once for each time that they are passed."""
Chunks = Iterable[Any] | Open | Sequence[Open]


@dataclass(frozen=True)
class Chunk:
    """Some documents of a corpus, in the order of the corpus."""

    given_ids: Sequence[Any]
    embeddings: Any
    positions: Ints
    order: Ints | None = None
    """Per document: its place among the given ids, where they came in another order."""
    rows: Ints | None = None
    """Per document: its row among the embeddings, where some documents share one."""
    placed: bool = False
    """Whether the positions were given; otherwise documents follow one another."""

    def __len__(self) -> int:
        return len(self.positions)

    def ids(self) -> pl.Series:
        """Ids of the documents."""
        given = self.given_ids
        if isinstance(given, range):
            column = pl.Series(np.arange(given.start, given.stop, given.step)).cast(pl.String)
        else:
            column = _text_column(given.tolist() if isinstance(given, np.ndarray) else given)
        if (column == "").any():
            raise InputError("the id of a document is empty; give every document an id")
        ids_in_order: pl.Series = column if self.order is None else column.gather(self.order)
        return ids_in_order

    def id(self, document: int) -> str:
        """Id of one document."""
        place = document if self.order is None else int(self.order[document])
        return text_id(self.given_ids[place])

    def name(self, row: int) -> str:
        """Name the first document that has a row of the embeddings."""
        documents = [row] if self.rows is None else np.flatnonzero(self.rows == row).tolist()
        return f"document {self.id(documents[0])!r}" if documents else "a row without a document"

    def part(self, first: int, last: int) -> Chunk:
        """Give the documents that have one of the rows from `first` to before `last`."""
        if self.rows is None:
            own, rows = np.arange(first, last), None
        else:
            own = np.flatnonzero((self.rows >= first) & (self.rows < last))
            rows = self.rows[own] - first
        order = own if self.order is None else self.order[own]
        return Chunk(self.given_ids, self.embeddings[first:last], self.positions[own], order, rows)

    def detached(self) -> Chunk:
        """Give the chunk with ids and embeddings of its own, whatever becomes of the given ones."""
        rows = self.embeddings
        embeddings = rows.clone() if is_tensor(rows) else np.array(rows)
        if isinstance(self.given_ids, range):
            return replace(self, embeddings=embeddings)
        own = range(len(self)) if self.order is None else self.order.tolist()
        ids = [self.given_ids[place] for place in own]
        return replace(self, given_ids=ids, embeddings=embeddings, order=None)

    def take(self, documents: Ints) -> Chunk:
        """Give some of the documents, each with a row of its own."""
        order = documents if self.order is None else self.order[documents]
        rows = documents if self.rows is None else self.rows[documents]
        return Chunk(self.given_ids, self.embeddings[rows], self.positions[documents], order)

    def runs(self) -> Ints:
        """Give the places that are taken as pairs: the first of a run, and the one after it."""
        ends = np.flatnonzero(np.diff(self.positions) != 1)
        first = self.positions[np.append(0, ends + 1)]
        return np.stack((first, self.positions[np.append(ends, len(self) - 1)] + 1), axis=1)


@dataclass(frozen=True)
class Judged:
    """The judged documents of a chunk: where they stand, and their embeddings."""

    chunk: int
    ids: list[str]
    places: Ints
    """Among the documents of the chunk."""
    positions: Ints
    placed: bool
    """Whether the positions were given."""
    embeddings: Any = None
    """A row for each; None where they are not needed any more."""


@dataclass(frozen=True)
class Surveyed:
    """What the first pass over a shard finds."""

    documents: int
    first_ids: list[str]
    types: dict[str, str]
    """Number types of the embeddings, and where each came first."""
    hashes: NDArray[np.uint64]
    """Of the ids; but for those that are consecutive numbers."""
    numbers: Ints
    """Ids that are consecutive numbers, as pairs: the first, and the one after the last."""
    following: Ints
    """Places of documents that follow one another, as pairs, from the start of the shard."""
    placed: Ints
    """Places that were given, as pairs."""
    judged: list[Judged]


@dataclass(frozen=True)
class Shard:
    """A run of chunks of a corpus, read wherever this is called."""

    products: Products
    open: Open
    name: str = "the corpus"

    def read(self, start: int = 0, finish: Callable[[], None] | None = None) -> Iterator[Chunk]:
        """Give the chunks, checked; the documents before them are `start`.

        `finish` waits until all that was given is done with. It is called before the next chunk is
        asked for, which may be made where the last one is, unless chunks are known to stay.
        """
        if getattr(self.open, "stays", False):
            finish = None
        chunk_numbers = count()  # not enumerate, which holds what it gave
        for given in self._given():
            with self._named(next(chunk_numbers)):
                chunk = _chunk(given, start, self.products)
            start += len(chunk)
            if len(chunk):
                yield chunk
            del given, chunk  # not held while the next one is made
            if finish is not None:
                finish()

    def survey(self, wanted: pl.Series) -> Surveyed:
        """Pass all chunks once: look at the ids, and take the embeddings of the wanted ones."""
        documents, first_ids, judged = 0, list[str](), list[Judged]()
        types: dict[str, str] = {}
        numbers, following, placed = ([np.empty((0, 2), np.int64)] for _ in range(3))
        hashes: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
        all_wanted = wanted.implode()
        chunk_numbers = count()
        for chunk in self.read():
            number = next(chunk_numbers)
            with self._named(number):
                ids = chunk.ids()
            if len(first_ids) < 2:
                first_ids = [*first_ids, *ids.head(2)][:2]
            documents += len(chunk)
            types.setdefault(str(chunk.embeddings.dtype), f"chunk {number} of {self.name}")
            (placed if chunk.placed else following).append(chunk.runs())
            if isinstance(chunk.given_ids, range) and chunk.given_ids.step == 1:
                numbers.append(np.array([[chunk.given_ids.start, chunk.given_ids.stop]]))
            else:
                hashes.append(hashed(ids))
            own = ids.is_in(all_wanted).to_numpy().nonzero()[0]
            if len(own):
                some = chunk.take(own)  # copies, not views of the chunk
                judged.append(
                    Judged(
                        number,
                        [chunk.id(document) for document in own.tolist()],
                        own,
                        some.positions,
                        chunk.placed,
                        some.embeddings,
                    )
                )
            del chunk
        return Surveyed(
            documents,
            first_ids,
            types,
            np.concatenate(hashes),
            np.concatenate(numbers),
            np.concatenate(following),
            np.concatenate(placed),
            judged,
        )

    def holders(self, hashes: pl.Series) -> list[str]:
        """Give the ids that have one of some hashes, as often as they come."""
        found: list[str] = []
        for chunk in self.read():
            ids = chunk.ids()
            found += ids.filter(ids.hash().is_in(hashes.implode())).to_list()
        return found

    def again(
        self, start: int, documents: int, judged: Sequence[Judged], finish: Callable[[], None]
    ) -> Iterator[Chunk]:
        """Pass the chunks again; refuse others than those of the first time.

        Parameters
        ----------
        start
            Documents of the corpus before the shard.
        documents, judged
            What the first pass found.
        finish
            Waits until all chunks that were given are done with.
        """
        passed = seen = 0
        by_chunk = {found.chunk: found for found in judged}
        chunk_numbers = count()
        for chunk in self.read(start, finish):
            number = next(chunk_numbers)
            passed += len(chunk)
            if number in by_chunk:
                self._check_again(chunk, by_chunk[number])
                seen += 1
            yield chunk
            del chunk
        check_passed(self.name, documents, passed)
        if seen != len(judged):
            raise InputError(
                f"{self.name} came in fewer chunks when it was passed again: chunks must give the "
                "same every time"
            )

    def _check_again(self, chunk: Chunk, judged: Judged) -> None:
        """Refuse judged documents of a chunk that do not stand where they stood before."""
        for place, document in zip(judged.places.tolist(), judged.ids, strict=True):
            if place >= len(chunk) or chunk.id(place) != document:
                raise InputError(
                    f"document {document!r} is not where it was when {self.name} was passed "
                    "first: chunks must give the same every time"
                )

    def _given(self) -> Iterator[Any]:
        try:
            chunks = self.open()
            if not isinstance(chunks, Iterable):
                raise InputError(
                    f"{self.name}: a function must make an iterator of chunks, not a "
                    f"{type(chunks).__name__}"
                )
            yield from chunks
        except OSError as error:
            raise InputError(f"{self.name} cannot be read ({one_line(error)})") from error

    @contextmanager
    def _named(self, number: int) -> Iterator[None]:
        """Say which chunk it is that is refused."""
        try:
            yield
        except InputError as error:
            raise InputError(f"chunk {number} of {self.name}: {error}") from None


def check_passed(name: str, documents: int, passed: int) -> None:
    """Refuse a corpus, or a shard, that has other documents when it is passed again."""
    if passed != documents:
        raise InputError(
            f"{name} had {documents:,} documents when it was passed first and {passed:,} when it "
            "was passed again: chunks must give the same every time"
        )


def _text_column(ids: Sequence[Any]) -> pl.Series:
    """Give ids as a column of text; they are text already, as a rule."""
    with suppress(TypeError):  # polars refuses all but text, and None, which is no id
        column = id_column(ids if isinstance(ids, list) else list(ids))
        if not column.null_count():
            return column
    return id_column(list(map(text_id, ids)))


def hashed(ids: pl.Series) -> NDArray[np.uint64]:
    """Hash ids, in every process alike."""
    return ids.hash().to_numpy()


def are_shards(chunks: Chunks) -> bool:
    """Whether chunks are made by functions: each can be called where it lies."""
    return callable(chunks) or (
        isinstance(chunks, Sequence) and len(chunks) > 0 and all(map(callable, chunks))
    )


def opened(chunks: Chunks) -> list[Open]:
    """Take the shards of a corpus that can be passed more than once, or say why not.

    Shards are functions that make an iterator each; all chunks in one iterable are one shard.
    """
    if callable(chunks):
        return [chunks]
    if not isinstance(chunks, Iterable):
        raise InputError(f"chunks must be an iterable of chunks, not a {type(chunks).__name__}")
    if isinstance(chunks, Iterator):
        raise InputError(
            "chunks can be passed only once, and the corpus is passed more often: give a list, or "
            "a function that makes the iterator (lambda: …)"
        )
    again: Any = chunks
    return list(again) if are_shards(chunks) else [_Listed(again)]


@dataclass(frozen=True)
class _Listed:
    """Chunks that are an iterable; those of a list or a tuple are all there at once."""

    chunks: Iterable[Any]

    @property
    def stays(self) -> bool:
        """Whether no chunk is made where another one was."""
        return isinstance(self.chunks, (list, tuple))

    def __call__(self) -> Iterable[Any]:
        """Give the chunks."""
        return self.chunks


def _chunk(given: Any, start: int, products: Products) -> Chunk:
    """Check a chunk, and put it in the order of positions."""
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3, 4):
        raise InputError("a chunk must be (document_ids, embeddings)")
    ids, embeddings = given[:2]
    if isinstance(ids, (str, set, frozenset, Iterator)) or not isinstance(ids, Iterable):
        raise InputError(
            "document ids must be a sequence that can be read again, in the order of the "
            f"embeddings, not {ids!r:.40}"
        )
    if not hasattr(ids, "__len__") or not hasattr(ids, "__getitem__"):
        ids = list(ids)
    if is_tensor(embeddings):
        embeddings = embeddings.detach()
    elif not isinstance(embeddings, np.ndarray):
        embeddings = np.asarray(embeddings)
    rows = whole_numbers("rows", given[3]) if len(given) == 4 else None
    if embeddings.ndim != 2 or len(ids) != len(embeddings if rows is None else rows):
        raise InputError(
            f"{len(ids)} document ids stand beside embeddings of the shape "
            f"{list(embeddings.shape)}; a row for each document is needed"
        )
    if rows is not None and rows.max(initial=-1) >= len(embeddings):
        raise InputError(f"rows name row {rows.max()} of {len(embeddings)} embeddings")
    if len(ids):
        products.check(embeddings)
    place = given[2] if len(given) > 2 else None
    positions, placed = places(start, place, len(ids)), place is not None
    in_order = not (np.diff(positions) < 0).any()
    if rows is None and in_order:
        return Chunk(ids, embeddings, positions, placed=placed)
    order = np.argsort(positions)
    if rows is None or len(np.unique(rows)) == len(embeddings) == len(rows):
        own = embeddings[order if rows is None else rows[order]]
        return Chunk(ids, own, positions[order], order, placed=placed)
    return Chunk(ids, embeddings, positions[order], order, rows[order], placed)
