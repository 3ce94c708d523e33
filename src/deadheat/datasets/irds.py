"""Tables of a dataset of the ``ir_datasets`` package."""

from __future__ import annotations

from typing import Any

from deadheat.datasets.tables import Table
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
        self.where = name
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

    def read(self, table: str, split: str) -> Table:
        """Columns of a table; candidates keep the order of the package's scored documents."""
        data = self._data
        if table == "top_ranked":
            lists: dict[str, list[str]] = {}
            for scored in data.scoreddocs_iter():
                lists.setdefault(scored.query_id, []).append(scored.doc_id)
            return {"query-id": list(lists), "corpus-ids": list(lists.values())}
        if table == "qrels":
            qrels = list(data.qrels_iter())
            return {
                "query-id": [qrel.query_id for qrel in qrels],
                "corpus-id": [qrel.doc_id for qrel in qrels],
                "score": [qrel.relevance for qrel in qrels],
            }
        if table == "queries":
            rows = [(query.query_id, query.default_text()) for query in data.queries_iter()]
        else:
            rows = [(document.doc_id, document.default_text()) for document in data.docs_iter()]
        return {"id": [row[0] for row in rows], "text": [row[1] for row in rows]}
