"""Tables of a dataset of the ``ir_datasets`` package."""

from __future__ import annotations

from typing import Any

from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.packages import require

PREFIX = "ir_datasets:"


class IrDatasetsSource:
    """An ``ir_datasets`` dataset, shown as the tables of the current layout.

    Parameters
    ----------
    name
        ``ir_datasets:`` and the id, ``ir_datasets:beir/scifact/test``.
    """

    revision: str | None = None

    def __init__(self, name: str) -> None:
        library: Any = require("ir_datasets", f"Reading {name}")
        self.location = name
        try:
            self._data = library.load(name.removeprefix(PREFIX))
        except KeyError as error:
            raise InputError(f"ir_datasets has no dataset {name.removeprefix(PREFIX)!r}") from error

    def tables(self) -> list[str]:
        """Names of the tables the dataset can fill."""
        parts = {
            "corpus": self._data.has_docs(),
            "queries": self._data.has_queries(),
            "qrels": self._data.has_qrels(),
            "top_ranked": self._data.has_scoreddocs(),
        }
        return [name for name, present in parts.items() if present]

    def splits(self, table: str) -> list[str]:
        """Return one nameless split: the id already names it."""
        return [""]

    def read(self, table: str, split: str) -> pl.DataFrame:
        """Read a table; candidates keep the order of the package's scored documents."""
        data, text = self._data, pl.String
        if table == "top_ranked":
            pairs = [(scored.query_id, scored.doc_id) for scored in data.scoreddocs_iter()]
            frame = pl.DataFrame(pairs, {"query_id": text, "doc_id": text}, orient="row")
            return frame.group_by("query_id", maintain_order=True).agg(doc_ids="doc_id")
        if table == "qrels":
            judged = [(qrel.query_id, qrel.doc_id, qrel.relevance) for qrel in data.qrels_iter()]
            schema = {"query_id": text, "doc_id": text, "relevance": pl.Float64}
            return pl.DataFrame(judged, schema, orient="row")
        if table == "queries":
            rows = [(query.query_id, query.default_text()) for query in data.queries_iter()]
        else:
            rows = [(document.doc_id, document.default_text()) for document in data.docs_iter()]
        return pl.DataFrame(rows, {"id": text, "text": text}, orient="row")
