"""The data of the query explorer: values and ranked lists, with documents by number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import numpy as np

from deadheat.engines import Progress
from deadheat.measures import Measure
from deadheat.report.page.collection import Collection, System
from deadheat.ties import rank_lists

EXPLORER_VIEWS = ("expected", "worst", "best", "oblivious")
DECIMALS = 6
"""Digits of the values of queries; the page shows fewer."""
QUERY_TEXT, DOCUMENT_TEXT = 600, 240
"""Number of characters of a text that are shown."""


def collection_data(
    collection: Collection,
    top: int,
    shown: Sequence[Measure],
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return the data of a collection for the script.

    Parameters
    ----------
    top
        Documents of each ranked list; 0 for none.
    shown
        Measures whose values are shown per query.
    progress
        Callback after each system.
    """
    queries = list(dict.fromkeys(q for s in collection.systems for q in s.result.query_names))
    documents: dict[str, int] = {}
    listed = []
    for system in collection.systems:
        values = _values(system, shown, queries)
        lists = _lists(system, collection, queries, top, documents)
        listed.append({"name": system.name, "values": values, "lists": lists})
        if progress is not None:
            progress("ranked lists", len(listed), len(collection.systems))
    return {
        "queries": queries,
        "queryTexts": _texts(queries, collection.queries, QUERY_TEXT),
        "cutoffs": {repr(m): m.cutoff or 0 for m in shown},
        "systems": listed,
        "documents": list(documents),
        "documentTexts": _texts(documents, collection.documents, DOCUMENT_TEXT),
    }


def _texts(ids: Iterable[str], of: Mapping[str, str], limit: int) -> list[str] | None:
    """Return the texts of ids, shortened; None if there are none."""
    if not of:
        return None
    lines = (" ".join(of.get(id_, "").split()) for id_ in ids)
    return [line if len(line) <= limit else line[:limit].rstrip() + " …" for line in lines]


def _values(
    system: System, shown: Sequence[Measure], queries: list[str]
) -> dict[str, list[list[float | None]]]:
    """Return every view of the shown measures per query; None if the system lacks the query."""
    rows = {query: i for i, query in enumerate(system.result.query_names)}
    values = {}
    for measure, views in system.result.views.items():
        if measure in shown:
            columns = (np.round(getattr(views, view), DECIMALS).tolist() for view in EXPLORER_VIEWS)
            values[repr(measure)] = [
                [column[rows[query]] if query in rows else None for query in queries]
                for column in columns
            ]
    return values


def _lists(
    system: System, collection: Collection, queries: list[str], top: int, documents: dict[str, int]
) -> list[list[Any]] | None:
    """Return per query four counts and its tie groups; `documents` numbers the ids.

    The counts are: retrieved documents; documents that tie with the last one shown but are not
    shown; relevant documents among them; relevant documents that were not retrieved. A tie group
    is the number of documents above it, its size, and [document, grade, score] of each document.
    """
    if system.run is None or collection.qrels is None or top < 1:
        return None
    settings = system.result.provenance.settings
    lists = rank_lists(system.run, collection.qrels, queries, top, settings)
    numbers = (documents.setdefault(doc, len(documents)) for doc in lists.doc_ids)
    grades = (None if np.isnan(grade) else grade for grade in lists.grades.tolist())
    scores = map(_shorten, lists.scores.tolist())
    above, size = lists.above.tolist(), lists.size.tolist()
    rows = zip(above, size, numbers, grades, scores, strict=True)
    counts = (lists.shown, lists.retrieved, lists.rest, lists.rest_relevant, lists.missing)
    found = []
    for shown, *others in zip(*(count.tolist() for count in counts), strict=True):
        groups = groupby(islice(rows, shown), itemgetter(0, 1))
        found.append([*others, [[*place, [row[2:] for row in group]] for place, group in groups]])
    return found


def _shorten(score: float) -> float | str:
    """Shorten a score: a float32 value needs fewer digits than a float64."""
    if not np.isfinite(score):
        return str(score)
    with np.errstate(over="ignore"):
        single = np.float32(score)
    return float(str(single)) if single == score else score
