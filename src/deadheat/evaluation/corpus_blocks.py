"""A corpus that passes by: its chunks, checked, and the scores of their documents in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats import Judgements
from deadheat.formats.ids import text_id
from deadheat.late import pl
from deadheat.numbers import exact_floats, is_tensor
from deadheat.packages import require
from deadheat.remarks import Remark, warning
from deadheat.scoring import Products
from deadheat.ties.checks import places, whole_numbers
from deadheat.ties.groups import Ints
from deadheat.ties.lists import JudgedLists

SCORES = 1 << 21
"""Scores of a block: as many documents are multiplied at once as give so many."""
FEWEST, MOST = 1 << 12, 1 << 16
"""Documents of a block, whatever the number of queries."""
BLOCKS = 32
"""In so many blocks a corpus is divided at least, down to the fewest documents of a block."""

Chunks = Iterable[Any] | Callable[[], Iterable[Any]]


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

    def __len__(self) -> int:
        return len(self.positions)

    def ids(self) -> list[str]:
        """Ids of the documents."""
        given = self.given_ids
        ids = given.tolist() if isinstance(given, np.ndarray) else list(given)
        if not set(map(type, ids)) <= {str}:
            ids = list(map(text_id, ids))
        return ids if self.order is None else [ids[i] for i in self.order.tolist()]

    def id(self, document: int) -> str:
        """Id of one document."""
        place = document if self.order is None else int(self.order[document])
        return text_id(self.given_ids[place])

    def row(self, document: int) -> int:
        """Row of one document among the embeddings."""
        return document if self.rows is None else int(self.rows[document])

    def first_document(self, row: int) -> int:
        """Find the first document that has a row of the embeddings."""
        return row if self.rows is None else int(np.flatnonzero(self.rows == row)[0])

    def spread(self, scores: Any, first: int, step: int) -> Iterator[tuple[Ints, Any]]:
        """Give positions and scores of all documents that have one of the rows from `first` on."""
        if self.rows is None:
            yield self.positions[first : first + scores.shape[1]], scores
            return
        own = np.flatnonzero((self.rows >= first) & (self.rows < first + scores.shape[1]))
        for start in range(0, len(own), step):
            some = own[start : start + step]
            yield self.positions[some], scores[:, self.rows[some] - first]

    def take(self, documents: Ints) -> Chunk:
        """Give some of the documents."""
        order = documents if self.order is None else self.order[documents]
        rows = documents if self.rows is None else self.rows[documents]
        return Chunk(self.given_ids, self.embeddings[rows], self.positions[documents], order)


@dataclass
class Judged:
    """A judged document: where it stands, and its embedding."""

    document: str
    position: int
    place: int
    """Among the documents of its chunk."""
    row: int
    """Among the embeddings of its chunk."""
    rows: int
    """Embeddings of its chunk."""
    embedding: Any
    """One row."""


@dataclass
class Corpus:
    """Queries, and the documents of a corpus that are scored with them block by block."""

    products: Products
    query_ids: list[str]
    chunks: Callable[[], Iterable[Any]]
    judged: dict[str, Judged] = field(default_factory=dict)
    """By document id, once `survey` has looked for them."""
    by_chunk: dict[int, list[str]] = field(default_factory=dict)
    documents: int = 0
    """Documents of the corpus, once `survey` has counted them."""
    first_ids: list[str] = field(default_factory=list)

    def survey(self, wanted: set[str]) -> None:
        """Pass all chunks once: count the documents, and find the wanted ones."""
        hashes = []
        for number, chunk in enumerate(self.read()):
            ids = chunk.ids()
            self.first_ids = self.first_ids or ids[:2]
            self.documents += len(ids)
            hashes.append(np.fromiter(map(hash, ids), np.int64, len(ids)))
            for place in [place for place, document in enumerate(ids) if document in wanted]:
                if ids[place] in self.judged:
                    raise _twice(ids[place])
                row, position = chunk.row(place), int(chunk.positions[place])
                own = chunk.embeddings[row : row + 1]
                own = own.clone() if is_tensor(own) else own.copy()  # not a view of the chunk
                rows = len(chunk.embeddings)
                self.judged[ids[place]] = Judged(ids[place], position, place, row, rows, own)
                self.by_chunk.setdefault(number, []).append(ids[place])
        if not self.documents:
            raise InputError("the corpus is empty: chunks gave no document")
        self._check_distinct(np.concatenate(hashes))

    def read(self) -> Iterator[Chunk]:
        """Give the chunks, checked."""
        position = 0
        for number, given in enumerate(self.chunks()):
            try:
                chunk = _chunk(given, position, self.products)
            except InputError as error:
                raise InputError(f"chunk {number} of the corpus: {error}") from None
            position += len(chunk)
            if len(chunk):
                yield chunk

    def blocks(self) -> Iterator[tuple[Ints, Any]]:
        """Give positions and scores of the documents, a block of a chunk at a time.

        The scores of a block are overwritten by those of the next.
        """
        documents, passed, scores, step = 0, 0, None, self._step()
        for number, chunk in enumerate(self.read()):
            passed += self._check_again(number, chunk)
            documents += len(chunk)
            rows = len(chunk.embeddings)
            for first in range(0, rows, step):
                scores = self._score(chunk, first, min(first + step, rows), scores)
                yield from chunk.spread(scores, first, step)
        if documents != self.documents or passed != len(self.judged):
            raise InputError(
                f"the corpus had {self.documents:,} documents when it was passed first and "
                f"{documents:,} when it was passed again: chunks must give the same both times"
            )

    def announced(self, lists: JudgedLists, rows: Ints) -> NDArray[Any]:
        """Score the documents of interest before the others, each at its place in a block.

        Parameters
        ----------
        rows
            Per query of `lists`: its row among the queries, where it has one.
        """
        by_position = {judged.position: judged for judged in self.judged.values()}
        distinct, document = np.unique(lists.position, return_inverse=True)
        buffer_of, place_of = np.empty((2, len(distinct)), np.int64)
        buffers = self._buffers([by_position[position] for position in distinct.tolist()])
        for number, (_, buffer) in enumerate(buffers):
            own = np.searchsorted(distinct, [judged.position for judged in buffer.values()])
            buffer_of[own], place_of[own] = number, list(buffer)
        scores: NDArray[Any] = np.empty(len(document), np.float32)
        for number, (length, buffer) in enumerate(buffers):
            entries = np.flatnonzero(buffer_of[document] == number)
            products = self._score_judged(length, buffer)
            row, place = rows[lists.query[entries]], place_of[document[entries]]
            values = exact_floats(products[row, place])
            scores = scores.astype(values.dtype, copy=False)
            scores[entries] = values
        return scores

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

    def _step(self) -> int:
        """Documents of a block."""
        room = min(SCORES // max(1, len(self.products)), self.documents // BLOCKS)
        return min(MOST, max(FEWEST, room))

    def score(self, chunk: Chunk) -> Any:
        """Score every query with the documents of a chunk."""
        return self._score(chunk, 0, len(chunk.embeddings))

    def _score(self, chunk: Chunk, first: int, last: int, out: Any = None) -> Any:
        try:
            return self.products(chunk.embeddings[first:last], out)
        except InputError as error:
            raise InputError(f"{self._culprit(chunk, first, last)}: {error}") from None

    def _score_judged(self, length: int, buffer: dict[int, Judged]) -> Any:
        """Score a block with judged documents at their places; copies of one fill the others."""
        order = list(buffer)
        source = np.zeros(length, np.int64)
        source[order] = np.arange(len(order))
        embeddings = [buffer[place].embedding for place in order]
        if is_tensor(embeddings[0]):
            rows = require("torch", "a corpus of tensors").cat(embeddings)
        else:
            rows = np.concatenate(embeddings)
        ids = [buffer[place].document for place in order]
        return self._score(Chunk(ids, rows[source], source, source), 0, length)

    def _culprit(self, chunk: Chunk, first: int, last: int) -> str:
        """Name the document of a block that cannot be scored."""
        for row in range(first, last):
            try:
                self.products(chunk.embeddings[row : row + 1])
            except InputError:
                return f"document {chunk.id(chunk.first_document(row))!r}"
        names = (chunk.id(chunk.first_document(row)) for row in (first, last - 1))
        return " to ".join(f"document {name!r}" for name in names)

    def _buffers(self, documents: list[Judged]) -> list[tuple[int, dict[int, Judged]]]:
        """Put documents into as few blocks as hold each at its own place in a block of its size."""
        blocks: dict[int, list[dict[int, Judged]]] = {}
        step = self._step()
        for judged in documents:
            place = judged.row % step
            length = min(step, judged.rows - (judged.row - place))
            buffers = blocks.setdefault(length, [])
            free = next((buffer for buffer in buffers if place not in buffer), None)
            if free is None:
                free = {}
                buffers.append(free)
            free[place] = judged
        return [(length, buffer) for length, buffers in blocks.items() for buffer in buffers]

    def _check_again(self, number: int, chunk: Chunk) -> int:
        """Count the judged documents of a chunk that stand where they stood before."""
        own = self.by_chunk.get(number, [])
        for document in own:
            place = self.judged[document].place
            if place >= len(chunk) or chunk.id(place) != document:
                raise InputError(
                    f"document {document!r} is not where it was when the corpus was passed first: "
                    "chunks must give the same both times"
                )
        return len(own)

    def _check_distinct(self, hashes: NDArray[np.int64]) -> None:
        """Refuse a document that comes twice, given the hashes of all ids."""
        hashes.sort()
        twice = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        seen: set[str] = set()
        for chunk in self.read() if twice else ():
            for document in chunk.ids():
                if hash(document) in twice:
                    if document in seen:
                        raise _twice(document)
                    seen.add(document)


def restartable(chunks: Chunks) -> Callable[[], Iterable[Any]]:
    """Take chunks that can be passed more than once, or say why not."""
    if callable(chunks):
        return chunks
    if not isinstance(chunks, Iterable):
        raise InputError(f"chunks must be an iterable of chunks, not a {type(chunks).__name__}")
    if isinstance(chunks, Iterator):
        raise InputError(
            "chunks can be passed only once, and the corpus is passed twice: give a list, or a "
            "function that makes the iterator (lambda: …)"
        )
    again: Iterable[Any] = chunks
    return lambda: again


def _chunk(given: Any, start: int, products: Products) -> Chunk:
    """Check a chunk, and put it in the order of positions."""
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3, 4):
        raise InputError("a chunk must be (document_ids, embeddings)")
    ids, embeddings = given[:2]
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InputError(f"document ids must be a sequence, not {ids!r:.40}")
    if not hasattr(ids, "__len__") or not hasattr(ids, "__getitem__"):
        ids = list(ids)
    if not is_tensor(embeddings) and not isinstance(embeddings, np.ndarray):
        embeddings = np.asarray(embeddings)
    rows = whole_numbers("rows", given[3]) if len(given) == 4 else None
    if embeddings.ndim != 2 or len(ids) != len(embeddings if rows is None else rows):
        raise InputError(
            f"{len(ids)} document ids stand beside embeddings of the shape "
            f"{list(embeddings.shape)}; a row for each document is needed"
        )
    if rows is not None and rows.max(initial=0) >= len(embeddings):
        raise InputError(f"rows name row {rows.max()} of {len(embeddings)} embeddings")
    if len(ids):
        products.check(embeddings)
    positions = places(start, given[2] if len(given) > 2 else None, len(ids))
    in_order = not (np.diff(positions) < 0).any()
    if rows is None and in_order:
        return Chunk(ids, embeddings, positions)
    order = np.argsort(positions)
    if rows is None or len(np.unique(rows)) == len(embeddings) == len(rows):
        own = embeddings[order if rows is None else rows[order]]
        return Chunk(ids, own, positions[order], order)
    return Chunk(ids, embeddings, positions[order], order, rows[order])


def _twice(document: str) -> InputError:
    return InputError(f"the corpus holds document {document!r} more than once; pass it once")
