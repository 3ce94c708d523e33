"""Detect the form of judgements and runs, and read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from deadheat._internal.fork_guard import check_fork
from deadheat.errors import InputError
from deadheat.formats.columns import Columns
from deadheat.formats.dicts import judgements_from_dict, run_from_dict
from deadheat.formats.files import read_file
from deadheat.formats.folders import is_folder, run_folder
from deadheat.formats.frames import is_table, table_columns, tuple_columns
from deadheat.formats.types import Judgements, Run


class TableLike(Protocol):
    """A table of polars, pandas or pyarrow, with named columns."""

    @property
    def columns(self) -> object:
        """The columns, or their names."""


class RanxLike(Protocol):
    """A `Run` or `Qrels` of ranx."""

    def to_dict(self) -> Mapping[str, object]:
        """Return ``{query: {document: number}}``."""


Rows: TypeAlias = Mapping[Any, Any] | TableLike | Iterable[Sequence[object]] | RanxLike
QrelsLike: TypeAlias = str | os.PathLike[str] | Judgements | Rows
"""Judgements: a path, a dict of dicts, of sets or of lists of ids, a table, or tuples."""
RunLike: TypeAlias = str | os.PathLike[str] | Run | Rows
"""A run: a path, a dict of dicts or of lists of hits, a table, or tuples."""


def read_qrels(qrels: QrelsLike) -> Judgements:
    """Read judgements from a path, a dict, a table or an iterable of tuples.

    The values of a dict are, per query, a dict of grades, or a set or list of relevant documents
    (grade 1).

    >>> read_qrels({"q1": {"d1": 1, "d2": 0}, "q2": {"d3"}}).grades
    array([1., 0., 1.])
    """
    if isinstance(qrels, Judgements):
        return qrels
    source, rows = _read("relevance", "qrels", qrels)
    if isinstance(rows, Mapping):
        return judgements_from_dict(source, rows)
    return rows.to_judgements(source)  # type: ignore[union-attr]  # judgements are never a Run


def read_run(run: RunLike, *, with_ranks: bool = False, copy: bool = True) -> Run:
    """Read scored documents from a path, a dict, a table or an iterable of tuples.

    The values of a dict are, per query, a dict of scores, a list of (document, score) pairs, or a
    list of hits of a search service: dicts or objects with the names in
    `deadheat.formats.HIT_SHAPES`, or LangChain's (Document, score). A folder of Parquet files is
    one run, read in the order of the file names. `with_ranks` keeps the rank column of a TREC
    file, for the tie rule ``rank``. Without `copy`, a dict of dicts must not change while the run
    is in use.

    >>> read_run({"q1": {"d1": 0.5, "d2": 0.25}, "q2": [("d1", 0.75)]}).scores
    array([0.5 , 0.25, 0.75])
    """
    if isinstance(run, Run):
        return run
    source, rows = _read("score", "run", run, with_ranks=with_ranks)
    if isinstance(rows, Mapping):
        return run_from_dict(source, rows, copy=copy and rows is run)
    return rows if isinstance(rows, Run) else rows.to_run(source)


def _read(
    what: str, source: str, value: object, *, with_ranks: bool = False
) -> tuple[str, Mapping[Any, object] | Columns | Run]:
    """Detect the form of a value, and read it.

    Parameters
    ----------
    what
        The number to read for each document: ``relevance`` or ``score``.
    source
        Name of the value in messages, if it has no name of its own.

    Returns
    -------
    source, rows
        The name for messages; and a dict by query, columns, or a run (of a folder, or of a plain
        TREC file).
    """
    if isinstance(value, Mapping):
        return source, value
    if type(value).__module__.partition(".")[0] == "ranx" and hasattr(value, "to_dict"):
        return str(getattr(value, "name", None) or source), value.to_dict()
    check_fork()
    if what == "score" and is_folder(value):
        return source, run_folder(value).whole()
    if isinstance(value, (str, os.PathLike)):
        return read_file(value, what, with_ranks=with_ranks)
    if is_table(value):
        return source, table_columns(source, value, what)
    if isinstance(value, Iterable):
        return source, tuple_columns(source, value, what)
    kind = "judgements" if what == "relevance" else "a run"
    raise InputError(f"{kind} cannot be read from {type(value).__name__}")
