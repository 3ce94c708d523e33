"""Dictionaries of dictionaries: the shape of pytrec_eval, BEIR and MTEB.

Polars' threads do no work here: a process that has read dictionaries may fork.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats.columns import check_grades
from deadheat.formats.ids import id_column, text_id, with_text_ids
from deadheat.formats.keys import plain_list
from deadheat.formats.shapes import DictDocuments, Ints, Judgements, Run
from deadheat.numbers import as_array, exact_scores, number, rounded

_EXACT_TYPES = {float, bool, np.bool_, np.float64, np.float32, np.float16}
"""Types of numbers that NumPy can be given to make float64 of: it holds each of them."""


def judgements_from_dict(source: str, qrels: Mapping[Any, Any]) -> Judgements:
    """Read ``{query: {document: grade}}``."""
    lists = {query: docs for query, docs in _lists(source, qrels, "grade").items() if docs}
    offsets, grades, exact = _numbers(source, lists, "grade")
    if exact is not None:
        grades = rounded(exact)
    named = [with_text_ids(docs, f"{source}, query {query!r}") for query, docs in lists.items()]
    doc_ids = list(chain.from_iterable(named))
    if not doc_ids:
        raise InputError(f"{source}: there are no judgements in it")
    query_ids = list(lists)

    def place(row: int) -> tuple[str, str]:
        return query_ids[int(np.searchsorted(offsets, row, "right")) - 1], doc_ids[row]

    check_grades(source, grades, place)
    return Judgements(source, query_ids, offsets, id_column(doc_ids), grades)


def run_from_dict(source: str, run: Mapping[Any, Any], *, copy: bool = False) -> Run:
    """Read ``{query: {document: score}}``; `copy` it if it may change while the run is in use."""
    lists = {query: docs for query, docs in _lists(source, run, "score").items() if docs}
    if not lists:
        raise InputError(f"{source}: there are no scored documents in it")
    offsets, scores, exact = _numbers(source, lists, "score")
    held = [dict(docs) if copy else docs for docs in lists.values()]
    documents = DictDocuments(source, list(lists), offsets, held)
    return Run(source, list(lists), offsets, scores, documents, exact=exact)


def is_ranx(value: Any) -> TypeGuard[Any]:
    """Tell whether a value is a `Run` or `Qrels` of ranx, which give themselves as a dict."""
    return type(value).__module__.partition(".")[0] == "ranx" and hasattr(value, "to_dict")


def ranx_name(value: Any, otherwise: str) -> str:
    """Give the name that an object of ranx has, if any."""
    return str(getattr(value, "name", None) or otherwise)


def _lists(source: str, outer: Mapping[Any, Any], what: str) -> dict[str, dict[Any, Any]]:
    """Check the two levels, and name the queries by text."""
    lists: dict[str, dict[Any, Any]] = {}
    for query, docs in outer.items():
        if not isinstance(docs, Mapping):
            raise InputError(
                f"{source}: expected {{query: {{document: {what}}}}}, but query {query!r:.60} "
                f"holds a {type(docs).__name__}"
            )
        name = text_id(query, f"{source}, a query")
        if name in lists:
            raise InputError(f"{source}: query {name!r} appears as a number and as text")
        lists[name] = docs if isinstance(docs, dict) else dict(docs)
    return lists


def _numbers(
    source: str, lists: dict[str, dict[Any, Any]], what: str
) -> tuple[Ints, NDArray[Any], NDArray[Any] | None]:
    """Where each list begins, its numbers, and exactly where float64 cannot hold them."""
    lengths = [len(docs) for docs in lists.values()]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    numbers = np.empty(offsets[-1])
    plain = True
    for (query, docs), start in zip(lists.items(), offsets.tolist(), strict=False):
        if not plain_list(docs, numbers[start : start + len(docs)]):
            with_text_ids(docs, f"{source}, query {query!r}")
            plain = False
    if plain:
        return offsets, numbers, None
    values = [value for docs in lists.values() for value in docs.values()]
    if _EXACT_TYPES.issuperset(map(type, values)):
        return offsets, np.array(values, np.float64), None
    exact = [
        _number(source, query, doc, value, what)
        for query, docs in lists.items()
        for doc, value in docs.items()
    ]
    return offsets, *exact_scores(as_array(exact))


def _number(source: str, query: str, doc: Any, value: Any, what: str) -> Any:
    try:
        return number(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{source}: the {what} of document {doc!r} of query {query!r} is not a number: "
            f"{value!r:.60}"
        ) from None
