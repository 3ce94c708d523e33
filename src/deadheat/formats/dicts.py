"""Dictionaries by query, as pytrec_eval, BEIR and MTEB use them, and search results.

Nothing here uses the threads of polars: a process that has read dictionaries may fork.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from itertools import accumulate, chain
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats.columns import check_grades
from deadheat.formats.ids import are_numbers, text_id, with_text_ids
from deadheat.formats.keys import plain_list
from deadheat.formats.types import DictDocuments, Ints, Judgements, Run
from deadheat.numbers import LARGEST_GRADE, as_array, exact_scores, number, rounded

ID_ATTRIBUTES = ("id", "doc_id", "node_id")
"""Attributes that hold the document id of search results that are objects with a ``score``."""
_EXACT_TYPES = {float, bool, np.bool_, np.float64, np.float32, np.float16}
"""Types of numbers that float64 holds exactly."""


def judgements_from_dict(source: str, qrels: Mapping[Any, Any]) -> Judgements:
    """Read ``{query: {document: grade}}``, or ``{query: relevant documents}``, of grade 1."""
    lists = _lists(source, qrels, "grade", _relevant)
    offsets, grades, exact, is_plain = _numbers(source, lists, "grade")
    if exact is not None:
        grades = rounded(exact)
    named = lists if is_plain else _name_documents(source, lists)
    doc_ids = list(map(str, chain.from_iterable(named.values())))
    if not doc_ids:
        raise InputError(f"{source}: there are no judgements in it")
    query_ids = list(lists)

    def place(row: int) -> tuple[str, str]:
        return query_ids[int(np.searchsorted(offsets, row, "right")) - 1], doc_ids[row]

    if not (np.abs(grades) <= LARGEST_GRADE).all():
        check_grades(source, grades, place)
    numbered = are_numbers(qrels)
    return Judgements(source, query_ids, offsets, doc_ids, grades, numbered)


def run_from_dict(source: str, run: Mapping[Any, Any], *, copy: bool = False) -> Run:
    """Read ``{query: {document: score}}`` or ``{query: [(document, score), …]}``.

    Use `copy` if the dict may change while the run is in use.
    """
    lists = _lists(source, run, "score", _pairs)
    if not lists:
        raise InputError(f"{source}: there are no scored documents in it")
    offsets, scores, exact, _ = _numbers(source, lists, "score")
    held = [dict(docs) if copy else docs for docs in lists.values()]
    documents = DictDocuments(source, list(lists), offsets, held)
    return Run(source, list(lists), offsets, scores, documents, exact=exact)


def is_ranx(value: object) -> TypeGuard[Any]:
    """Whether a value is a `Run` or `Qrels` of ranx."""
    return type(value).__module__.partition(".")[0] == "ranx" and hasattr(value, "to_dict")


def ranx_name(value: object, otherwise: str) -> str:
    """Give the name of an object of ranx, or `otherwise`."""
    return str(getattr(value, "name", None) or otherwise)


def _lists(
    source: str,
    outer: Mapping[Any, Any],
    what: str,
    other: Callable[[str, Any], dict[Any, Any] | None],
) -> dict[str, dict[Any, Any]]:
    """Check both levels, convert query ids to text, and leave out queries without documents.

    `other` reads the documents of a query that are not a dict.
    """
    lists: dict[str, dict[Any, Any]] = {}
    for query, docs in outer.items():
        name = text_id(query, f"{source}, a query")
        if name in lists:
            raise InputError(f"{source}: query {name!r} appears as a number and as text")
        if isinstance(docs, Mapping):
            lists[name] = docs if isinstance(docs, dict) else dict(docs)
            continue
        read = other(f"{source}, query {name!r:.60}", docs)
        if read is None:
            raise InputError(
                f"{source}: expected {{query: {{document: {what}}}}}, but query {query!r:.60} "
                f"holds a {type(docs).__name__}"
            )
        lists[name] = read
    return {name: docs for name, docs in lists.items() if docs}


def _relevant(at: str, docs: Any) -> dict[Any, Any] | None:
    """Give grade 1 to each of a query's relevant documents, a set or a list of ids."""
    if isinstance(docs, np.ndarray):
        docs = docs.tolist()
    if not isinstance(docs, (list, tuple, AbstractSet)):
        return None
    return {text_id(doc, at): 1 for doc in docs}


def _pairs(at: str, found: Any) -> dict[Any, Any] | None:
    """Read a query's search results: (document, score) pairs, or objects with an id and a score."""
    if not isinstance(found, (list, tuple)):
        return None
    scores: dict[Any, Any] = {}
    for i, item in enumerate(found):
        doc, score = _pair(f"{at}, entry {i}", item)
        if doc in scores:
            raise InputError(f"{at} lists document {doc!r} more than once; keep one score for it")
        scores[doc] = score
    return scores


def _pair(at: str, item: Any) -> tuple[str, Any]:
    """Give document and score of a search result; refuse an ambiguous pair."""
    if hasattr(item, "score"):
        named = next((name for name in ID_ATTRIBUTES if hasattr(item, name)), None)
        if named is not None:
            return text_id(getattr(item, named), at), item.score
    if not isinstance(item, (list, tuple)) or len(item) != 2 or isinstance(item[1], (str, bytes)):
        raise InputError(
            f"{at} is not (document, score): {item!r:.60}; groups of tied documents without scores "
            "are read by deadheat.ranked_groups"
        )
    doc, score = item
    if isinstance(item, list) and all(isinstance(value, (int, np.integer)) for value in item):
        raise InputError(
            f"{at}: {item!r:.60} may be a document and its score, or two tied documents; write the "
            "pair as a tuple, or give groups to deadheat.ranked_groups"
        )
    return text_id(doc, at), score


def _numbers(
    source: str, lists: dict[str, dict[Any, Any]], what: str
) -> tuple[Ints, NDArray[Any], NDArray[Any] | None, bool]:
    """Read the numbers of all lists, and check the ids of their documents.

    Returns the offsets, the numbers, the exact numbers where float64 cannot hold them, and whether
    all ids are text.
    """
    lengths = [len(docs) for docs in lists.values()]
    offsets = np.array([0, *accumulate(lengths)], np.int64)
    numbers = np.empty(offsets[-1])
    plain = True
    for docs, start in zip(lists.values(), offsets.tolist(), strict=False):
        if not plain_list(docs, numbers[start : start + len(docs)]):
            plain = False
    if plain:
        return offsets, numbers, None, True
    _name_documents(source, lists)
    values = [value for docs in lists.values() for value in docs.values()]
    if _EXACT_TYPES.issuperset(map(type, values)):
        return offsets, np.array(values, np.float64), None, False
    exact = [
        _number(source, query, doc, value, what)
        for query, docs in lists.items()
        for doc, value in docs.items()
    ]
    return offsets, *exact_scores(as_array(exact)), False


def _name_documents(source: str, lists: dict[str, dict[Any, Any]]) -> dict[str, dict[str, Any]]:
    """Convert the ids of all documents to text; refuse those that cannot be."""
    return {
        query: with_text_ids(docs, f"{source}, query {query!r}") for query, docs in lists.items()
    }


def _number(source: str, query: str, doc: object, value: object, what: str) -> Any:
    try:
        return number(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{source}: the {what} of document {doc!r} of query {query!r} is not a number: "
            f"{value!r:.60}"
        ) from None
