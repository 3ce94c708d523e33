"""Build judgements and runs from columns of ids and numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.numbers import Numbers, exact_scores, rounded
from deadheat.errors import InputError
from deadheat.formats.types import ColumnDocuments, Ints, Judgements, Run


class Columns(NamedTuple):
    """Judgements or scored documents, one per row."""

    query: pl.Series
    doc: pl.Series
    numbers: Numbers
    """Grades or scores."""
    ranks: Ints | None = None
    numbered: bool = False
    """Whether the queries were given as whole numbers."""

    def to_judgements(self, source: str) -> Judgements:
        """Group judgements by query; drop repetitions, raise an error for conflicting grades."""
        given = self.numbers
        grade = rounded(given) if given.dtype.kind == "O" else np.asarray(given, np.float64)
        frame = pl.DataFrame({"query": self.query, "doc": self.doc, "grade": grade})
        if frame.select(pl.struct("query", "doc").is_duplicated().any()).item():
            frame = frame.unique(maintain_order=True)
            twice = frame.filter(pl.struct("query", "doc").is_duplicated())
            if len(twice):
                q, d = twice[0, "query"], twice[0, "doc"]
                different = twice.filter(query=q, doc=d)["grade"].to_list()
                raise InputError(
                    f"{source}: document {d!r} of query {q!r} is judged with different grades "
                    f"({', '.join(f'{g:g}' for g in different)}); keep one of them"
                )
        query_ids, offsets, order = _group(frame["query"])
        frame = frame if order is None else frame[order]
        grades = frame["grade"].to_numpy()
        doc_ids = frame["doc"].to_list()
        return Judgements(source, query_ids, offsets, doc_ids, grades, self.numbered)

    def to_run(self, source: str) -> Run:
        """Group scored documents by query; raise an error for a document that is listed twice."""
        doc, ranks = self.doc, self.ranks
        if not len(doc):
            raise InputError(f"{source}: there are no scored documents in it")
        scores, exact = exact_scores(self.numbers)
        query_ids, offsets, order = _group(self.query)
        if order is not None:
            doc, scores = doc.gather(order), scores[order]
            ranks = None if ranks is None else ranks[order]
            exact = None if exact is None else exact[order]
        documents = ColumnDocuments(source, query_ids, offsets, doc)
        return Run(source, query_ids, offsets, scores, documents, ranks, exact=exact)


def _group(query: pl.Series) -> tuple[list[str], Ints, Ints | None]:
    """Apply `group_stretches` to a column of queries."""
    stretches = query.rle().struct.unnest()
    return group_stretches(stretches["value"], stretches["len"].to_numpy())


def group_stretches(query: pl.Series, lengths: Ints) -> tuple[list[str], Ints, Ints | None]:
    """Return the distinct queries, their offsets, and the order that sorts the rows by query.

    Queries are in the order of their first row. The order is None if the rows of each query are
    adjacent already, as in nearly every file.

    Parameters
    ----------
    query, lengths
        Per stretch of adjacent rows of one query: the query, and the number of rows.
    """
    distinct = query.unique(maintain_order=True)
    order = None
    if len(distinct) < len(query):
        numbered = pl.DataFrame({"query": distinct}).with_row_index("code")
        stretches = pl.DataFrame({"query": query})
        codes = stretches.join(numbered, on="query", maintain_order="left")["code"].to_numpy()
        if (np.diff(codes.astype(np.int64)) < 0).any():
            order = np.argsort(np.repeat(codes, lengths), kind="stable")
        lengths = np.bincount(codes, lengths, minlength=len(distinct))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return distinct.to_list(), offsets, order
