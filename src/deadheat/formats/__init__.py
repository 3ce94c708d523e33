"""Read judgements and runs from files, tables, dictionaries, arrays and search results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from deadheat._fork_guard import check_fork
from deadheat.errors import InputError
from deadheat.formats import dicts, files, folders, frames
from deadheat.formats.search import ranked_groups, search_results
from deadheat.formats.types import Judgements, Run

__all__ = [
    "Judgements",
    "QrelsLike",
    "Run",
    "RunLike",
    "ranked_groups",
    "read_qrels",
    "read_run",
    "search_results",
]


class TableLike(Protocol):
    """A table with named columns: of polars, pandas or pyarrow."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""


class RanxLike(Protocol):
    """A `Run` or `Qrels` of ranx."""

    def to_dict(self) -> Any:
        """Give ``{query: {document: number}}``."""


Rows: TypeAlias = Mapping[Any, Any] | TableLike | Iterable[Sequence[Any]]
QrelsLike: TypeAlias = str | os.PathLike[str] | Judgements | Rows | RanxLike
"""What judgements may be: a path, a dict of dicts, of sets or lists of ids, a table, tuples."""
RunLike: TypeAlias = str | os.PathLike[str] | Run | Rows | RanxLike
"""What a run may be: a path, a dict of dicts or of lists of pairs, a table, tuples."""


def read_qrels(qrels: QrelsLike) -> Judgements:
    """Read judgements from a path, a dict, a table or an iterable of tuples.

    A dict holds a dict of grades for each query, or a set or list of relevant documents, which get
    grade 1.

    >>> read_qrels({"q1": {"d1": 1, "d2": 0}, "q2": {"d3"}}).grades
    array([1., 0., 1.])
    """
    if isinstance(qrels, Judgements):
        return qrels
    if isinstance(qrels, Mapping):
        return dicts.judgements_from_dict("qrels", qrels)
    if dicts.is_ranx(qrels):
        return dicts.judgements_from_dict(dicts.ranx_name(qrels, "qrels"), qrels.to_dict())
    check_fork()
    if isinstance(qrels, (str, os.PathLike)):
        return files.judgements_from_file(qrels)
    if frames.is_table(qrels):
        return frames.judgements_from_table("qrels", qrels)
    if isinstance(qrels, Iterable):
        return frames.judgements_from_tuples("qrels", qrels)
    raise InputError(f"judgements cannot be read from a {type(qrels).__name__}")


def read_run(run: RunLike, *, with_ranks: bool = False, copy: bool = True) -> Run:
    """Read scored documents from a path, a dict, a table or an iterable of tuples.

    A dict holds a dict of scores for each query, or a list of (document, score) pairs, or of
    objects with an id and a score. The path of a folder of Parquet files stands for the run that
    they are together, read in the order of their names. `with_ranks` keeps the rank column of a
    TREC file, for the tie rule ``rank``. Without `copy` a dict of dicts must not change while the
    run is in use.

    >>> read_run({"q1": {"d1": 0.5, "d2": 0.25}, "q2": [("d1", 0.75)]}).scores
    array([0.5 , 0.25, 0.75])
    """
    if isinstance(run, Run):
        return run
    if isinstance(run, Mapping):
        return dicts.run_from_dict("run", run, copy=copy)
    if dicts.is_ranx(run):
        return dicts.run_from_dict(dicts.ranx_name(run, "run"), run.to_dict())
    check_fork()
    if folders.is_folder(run):
        return folders.run_folder(run).whole()
    if isinstance(run, (str, os.PathLike)):
        return files.run_from_file(run, with_ranks=with_ranks)
    if frames.is_table(run):
        return frames.run_from_table("run", run)
    if isinstance(run, Iterable):
        return frames.run_from_tuples("run", run)
    raise InputError(f"a run cannot be read from a {type(run).__name__}")
