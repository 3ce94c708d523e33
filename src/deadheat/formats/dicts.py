"""Dictionaries of dictionaries: the shape of pytrec_eval, BEIR and MTEB."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.formats.columns import judgements_from_columns
from deadheat.formats.shapes import DictDocuments, Judgements, Run, id_column, text_id
from deadheat.numbers import exact_floats


def judgements_from_dict(source: str, qrels: Mapping[Any, Any]) -> Judgements:
    """Read ``{query: {document: grade}}``."""
    lists = _lists(source, qrels, "grade")
    lengths = [len(docs) for docs in lists.values()]
    query = id_column(list(lists)).gather(np.repeat(np.arange(len(lists)), lengths))
    doc = id_column([text_id(doc) for docs in lists.values() for doc in docs])
    return judgements_from_columns(source, query, doc, _numbers(source, lists, "grade"))


def run_from_dict(source: str, run: Mapping[Any, Any], *, copy: bool = False) -> Run:
    """Read ``{query: {document: score}}``; `copy` it if it may change while the run is in use."""
    lists = {query: docs for query, docs in _lists(source, run, "score").items() if docs}
    scores = _numbers(source, lists, "score")
    if not len(scores):
        raise InputError(f"{source}: there are no scored documents in it")
    lengths = [len(docs) for docs in lists.values()]
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    held = [dict(docs) if copy else docs for docs in lists.values()]
    documents = DictDocuments(source, list(lists), offsets, held)
    if np.max(scores) >= 2.0**53 or np.min(scores) <= -(2.0**53):
        # Beyond 2**53 float64 makes ties of integers that differ.
        raw = list(chain.from_iterable(docs.values() for docs in lists.values()))
        if all(isinstance(x, (int, np.integer)) for x in raw):
            scores = exact_floats(raw)
    return Run(source, list(lists), offsets, scores, documents)


def _lists(source: str, outer: Mapping[Any, Any], number: str) -> dict[str, dict[Any, Any]]:
    """Check the two levels, and name the queries by text."""
    lists: dict[str, dict[Any, Any]] = {}
    for query, docs in outer.items():
        if not isinstance(docs, Mapping):
            raise InputError(
                f"{source}: expected {{query: {{document: {number}}}}}, but query {query!r} "
                f"holds a {type(docs).__name__}"
            )
        name = query if type(query) is str else text_id(query)
        if name in lists:
            raise InputError(f"{source}: query {name!r} appears as a number and as text")
        lists[name] = docs if isinstance(docs, dict) else dict(docs)
    return lists


def _numbers(source: str, lists: dict[str, dict[Any, Any]], number: str) -> NDArray[np.float64]:
    count = sum(map(len, lists.values()))
    values = chain.from_iterable(map(dict.values, lists.values()))
    try:
        return np.fromiter(values, np.float64, count)
    except (TypeError, ValueError, OverflowError):
        for query, docs in lists.items():
            for doc, value in docs.items():
                try:
                    float(value)
                except (TypeError, ValueError, OverflowError):
                    raise InputError(
                        f"{source}: the {number} of document {doc!r} of query {query!r} is not "
                        f"a number: {value!r}"
                    ) from None
        raise
