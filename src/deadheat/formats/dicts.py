"""Dictionaries by query, as pytrec_eval, BEIR and MTEB use them, and search results.

Nothing here uses the threads of polars: a process that has read dictionaries may fork.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set as AbstractSet
from itertools import accumulate, chain
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.numbers import FloatArray, as_array, exact_scores, number, rounded
from deadheat.errors import InputError
from deadheat.formats.hits import read_hits
from deadheat.formats.ids import are_numbers, text_id, with_text_ids
from deadheat.formats.keys import plain_list
from deadheat.formats.types import DictDocuments, Ints, Judgements, Run

Docs: TypeAlias = dict[Any, object]
"""Numbers by document."""
Key = TypeVar("Key")
_EXACT_TYPES = {float, bool, np.bool_, np.float64, np.float32, np.float16}
"""Number types that float64 can hold exactly."""


def judgements_from_dict(source: str, qrels: Mapping[Key, object]) -> Judgements:
    """Read ``{query: {document: grade}}``, or ``{query: relevant documents}`` with grade 1."""
    lists, offsets, numbers, exact = _read_lists(source, qrels, "grade", _relevant)
    doc_ids = list(map(str, chain.from_iterable(lists.values())))
    grades = np.asarray(numbers if exact is None else rounded(exact), np.float64)
    return Judgements(source, list(lists), offsets, doc_ids, grades, are_numbers(qrels))


def run_from_dict(source: str, run: Mapping[Key, object], *, copy: bool = False) -> Run:
    """Read ``{query: {document: score}}`` or ``{query: hits}``; see `read_hits`.

    `copy` is needed if the dict may change while the run is in use.
    """
    lists, offsets, numbers, exact = _read_lists(source, run, "score", _hits)
    if not lists:
        raise InputError(f"{source}: there are no scored documents in it")
    documents = DictDocuments(offsets, [dict(docs) if copy else docs for docs in lists.values()])
    return Run(source, list(lists), offsets, numbers, documents, exact=exact)


def _read_lists(
    source: str,
    outer: Mapping[Key, object],
    what: str,
    read_other: Callable[[str, object], Docs | None],
) -> tuple[dict[str, Docs], Ints, FloatArray, NDArray[np.object_] | None]:
    """Check and convert the ids and numbers of both levels; leave out queries without documents.

    `read_other` reads the documents of a query that are not a dict.

    Returns
    -------
    lists, offsets, numbers, exact
        Per query: a dict whose keys are the document ids, as text. Then the offsets of the
        queries, and the two outputs of `exact_scores` for all numbers.
    """
    lists: dict[str, Docs] = {}
    at_query = f"{source}, a query"
    for query, docs in outer.items():
        name = text_id(query, at_query)
        if name in lists:
            raise InputError(f"{source}: query {name!r} appears as a number and as text")
        if isinstance(docs, Mapping):
            lists[name] = docs if isinstance(docs, dict) else dict(docs)
            continue
        read = read_other(f"{source}, query {name!r:.60}", docs)
        if read is None:
            raise InputError(
                f"{source}: expected {{query: {{document: {what}}}}}, but query {query!r:.60} "
                f"holds a {type(docs).__name__}"
            )
        lists[name] = read
    lists = {name: docs for name, docs in lists.items() if docs}
    offsets = np.array([0, *accumulate(map(len, lists.values()))], np.int64)
    floats = np.empty(offsets[-1])
    starts = zip(lists.values(), offsets.tolist(), strict=False)
    if all(plain_list(docs, floats[start : start + len(docs)]) for docs, start in starts):
        return lists, offsets, floats, None
    lists = {q: with_text_ids(docs, f"{source}, query {q!r}") for q, docs in lists.items()}
    return lists, offsets, *_read_numbers(source, lists, what)


def _read_numbers(
    source: str, lists: dict[str, Docs], what: str
) -> tuple[FloatArray, NDArray[np.object_] | None]:
    """Return the numbers of all lists as `exact_scores` does."""
    values = [value for docs in lists.values() for value in docs.values()]
    if _EXACT_TYPES.issuperset(map(type, values)):
        return np.array(values, np.float64), None
    numbers = []
    for query, docs in lists.items():
        for doc, value in docs.items():
            try:
                numbers.append(number(value))
            except (TypeError, ValueError, OverflowError):
                raise InputError(
                    f"{source}: the {what} of document {doc!r} of query {query!r} is not a number: "
                    f"{value!r:.60}"
                ) from None
    return exact_scores(as_array(numbers))


def _relevant(at: str, docs: object) -> Docs | None:
    """Return grade 1 for each relevant document of a query, a set or a list of ids."""
    if isinstance(docs, np.ndarray):
        docs = docs.tolist()
    if not isinstance(docs, (list, tuple, AbstractSet)):
        return None
    return {text_id(doc, at): 1 for doc in docs}


def _hits(at: str, hits: object) -> Docs | None:
    """Read the hits of a query; raise an error for a document that is listed twice."""
    if not isinstance(hits, (list, tuple)):
        return None
    scores: Docs = {}
    for doc, score in read_hits(at, hits, is_oriented=False):
        name = text_id(doc, at)
        if name in scores:
            raise InputError(f"{at} lists document {name!r} more than once; keep one score for it")
        scores[name] = score
    return scores
