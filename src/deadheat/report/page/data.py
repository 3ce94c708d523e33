"""The data of a page as compact JSON: numbers are packed, ids are numbered."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deadheat._internal.numbers import FloatArray
from deadheat._internal.remarks import texts
from deadheat.comparison import VERDICTS
from deadheat.engines import Progress
from deadheat.measures import Measure
from deadheat.report.families import cutoff_families
from deadheat.report.page.collection import Collection, System
from deadheat.ties import rank_lists

VIEWS = ("expected", "worst", "best", "oblivious")
QUERY_TEXT, DOCUMENT_TEXT = 600, 240
"""Characters of a text that are shown."""
PAIR = (
    *("difference", "std", "lowest", "highest", "a_wins", "b_wins", "probability_error"),
    "oblivious_difference",
    *("p_corrected", "interval_low", "interval_high"),
)
"""Numbers that the page shows of a pair."""
_SIGNED = (
    *("difference", "oblivious_difference", "lowest", "highest"),
    *("interval_low", "interval_high"),
)
"""Those that change their sign where the pair is seen from its other system."""
Packed = list[str]


def collection_data(
    collection: Collection, top: int, shown: Sequence[Measure], progress: Progress | None = None
) -> dict[str, Any]:
    """Return the data of a collection for the script.

    Parameters
    ----------
    top
        Documents of each ranked list; 0 for none.
    shown
        Measures whose values are given query by query.
    progress
        Called after each system.
    """
    systems = collection.systems
    queries = list(dict.fromkeys(q for system in systems for q in system.result.query_names))
    measures = dict.fromkeys(m for system in systems for m in system.result.views)
    place = {query: i for i, query in enumerate(queries)}
    documents: dict[str, int] = {}
    listed = []
    for name, system in zip(collection.names, systems, strict=True):
        means = {
            s.measure: [s.expected, s.worst, s.best, s.oblivious, s.std]
            for s in system.result.values()
        }
        values = _values(system, shown, place)
        lists = _lists(system, collection, queries, top, documents)
        labels = dict(system.labels)
        listed.append(
            {"name": name, "labels": labels, "means": means, "values": values, "lists": lists}
        )
        if progress is not None:
            progress("ranked lists", len(listed), len(systems))
    return {
        "name": collection.name,
        "queries": queries,
        "queryTexts": _texts(queries, collection.queries, QUERY_TEXT),
        "families": {
            repr(family): [{"name": repr(m), "k": m.cutoff} for m in members]
            for family, members in cutoff_families(measures).items()
        },
        "familyOf": {repr(m): repr(m(cutoff=None)) for m in shown},
        "cutoffs": {repr(m): m.cutoff or 0 for m in shown},
        "shown": [repr(m) for m in shown],
        "systems": listed,
        "documents": list(documents),
        "documentTexts": _texts(documents, collection.documents, DOCUMENT_TEXT),
        "comparison": _comparison(collection),
    }


def _texts(ids: Iterable[str], of: Mapping[str, str], limit: int) -> list[str] | None:
    """Return the texts of ids, shortened; None if there are none."""
    if not of:
        return None
    lines = (" ".join(of.get(id_, "").split()) for id_ in ids)
    return [line if len(line) <= limit else line[:limit].rstrip() + " …" for line in lines]


def _values(system: System, shown: Sequence[Measure], place: dict[str, int]) -> dict[str, Packed]:
    """Return every view of the shown measures per query; NaN where the system lacks the query."""
    rows = np.array([place[query] for query in system.result.query_names])
    values = {}
    for measure, views in system.result.views.items():
        if measure in shown:
            columns = np.full((len(VIEWS), len(place)), np.nan, np.float32)
            columns[:, rows] = [getattr(views, view) for view in VIEWS]
            values[repr(measure)] = _pack(columns, "<f4")
    return values


def _lists(
    system: System, collection: Collection, queries: list[str], top: int, documents: dict[str, int]
) -> dict[str, Packed] | None:
    """Return the packed ranked lists; `documents` numbers the ids."""
    if system.run is None or collection.qrels is None or top < 1:
        return None
    settings = system.result.provenance.settings
    lists = rank_lists(system.run, collection.qrels, queries, top, settings)
    numbers = [documents.setdefault(doc, len(documents)) for doc in lists.doc_ids]
    grades, grade = np.unique(lists.grades, return_inverse=True)  # NaN: not judged
    counts = ("shown", "retrieved", "rest", "rest_relevant", "missing", "above", "size")
    return {
        **{name: _counts(getattr(lists, name)) for name in counts},
        "documents": _counts(np.array(numbers, np.int64)),
        "scores": _pack(lists.scores, "<f4" if _fits_float32(lists.scores) else "<f8"),
        "grades": _pack(grades, "<f4"),
        "grade": _counts(grade),
    }


def _comparison(collection: Collection) -> dict[str, object]:
    """Per measure the systems by rank and every pair of them once, or why there are none."""
    comparison = collection.comparison
    if comparison is None:
        said = f"Not compared: {collection.not_compared}."
        return {"measures": {}, "notes": [], "warnings": [said]}
    number = {name: i for i, name in enumerate(collection.names)}
    verdicts = list(VERDICTS)
    measures = {}
    for ranking in comparison.ranking.partition_by("measure", maintain_order=True):
        measure, place = ranking["measure"][0], {s: i for i, s in enumerate(ranking["system"])}
        pairs = comparison.pairs.filter(measure=measure).to_dicts()
        seen = [pair if place[pair["a"]] < place[pair["b"]] else _swap(pair) for pair in pairs]
        measures[measure] = {
            "order": [number[name] for name in place],
            "ranks": ranking.select("best_rank", "worst_rank").rows(),
            "a": _counts([number[pair["a"]] for pair in seen]),
            "b": _counts([number[pair["b"]] for pair in seen]),
            "verdict": _counts([verdicts.index(pair["verdict"]) for pair in seen]),
            **{n: _pack(np.array([p[n] for p in seen], np.float64), "<f4") for n in PAIR},
        }
    return {
        "measures": measures,
        "warnings": texts(comparison.remarks, "warning"),
        "notes": texts(comparison.remarks, "note"),
    }


def _swap(pair: dict[str, Any]) -> dict[str, Any]:
    """Return a pair with A and B exchanged."""
    turned = {
        **{"a": "b", "b": "a", "a_wins": "b_wins", "b_wins": "a_wins"},
        **{"lowest": "highest", "highest": "lowest"},
        **{"interval_low": "interval_high", "interval_high": "interval_low"},
    }
    swapped = {name: pair[turned.get(name, name)] for name in pair}
    for name in _SIGNED:
        swapped[name] = None if swapped[name] is None else -swapped[name]
    other = {"A is better": "B is better", "B is better": "A is better"}
    return {**swapped, "verdict": other.get(pair["verdict"], pair["verdict"])}


def _fits_float32(values: FloatArray) -> bool:
    with np.errstate(over="ignore"):
        return np.array_equal(values.astype(np.float32), values, equal_nan=True)


def _counts(values: ArrayLike) -> Packed:
    """Pack whole numbers from 0 on in the shortest type that holds them."""
    most = np.max(values, initial=0)
    return _pack(values, "<u1" if most < 1 << 8 else "<u2" if most < 1 << 16 else "<i4")


def _pack(values: ArrayLike, dtype: str) -> Packed:
    """Pack numbers as [type, base64 of their bytes]."""
    return [dtype[-2:], base64.b64encode(np.asarray(values).astype(dtype).tobytes()).decode()]
