"""Read the layouts of retrieval datasets.

*Current* (MTEB, BEIR): the tables ``corpus``, ``queries`` and ``qrels``, and for reranking
``top_ranked``; with several subsets each name has a prefix, ``en-corpus``.

*Rows* (MTEB before 2025): one table of ``query``, ``positive`` and ``negative``.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.formats import (
    column_ids,
    find_column,
    needed_column,
    table_columns,
    text_id,
)
from deadheat.lab.datasets.dataset import RetrievalDataset
from deadheat.lab.datasets.sources import TableSource

V = TypeVar("V")


_LAYOUTS = "corpus, queries, qrels (and top_ranked), or rows of query, positive, negative"
POOLED = "given, in rows"
"""The candidate rule of rows of texts; their corpus is the union of all candidates."""


def read_contents(source: TableSource, subset: str | None, split: str | None) -> RetrievalDataset:
    """Recognise the layout of a source, and read one subset and split of it without checks."""
    names = source.tables
    subsets = [name.removesuffix("-corpus") for name in names if name.endswith("-corpus")]
    if subset == "default":
        subset = None
    if subset is None and "corpus" not in names and len(subsets) == 1:
        subset = subsets[0]
    prefix = f"{subset}-" if subset else ""
    if f"{prefix}corpus" in names:
        return replace(_read_current(source, prefix, split), subset=subset)
    if "corpus" in names or subsets:
        asked = f"has no subset {subset!r}" if subset else "has several subsets"
        known = f"pass subset= one of: {', '.join(subsets)}" if subsets else "leave subset= out"
        raise InputError(f"{source.location} {asked}; {known}")
    return replace(_read_rows(source, subset, split), subset=subset)


def _read_current(source: TableSource, prefix: str, split: str | None) -> RetrievalDataset:
    names, place = source.tables, source.location

    def find(*choices: str) -> str:
        for choice in choices:
            if choice in names:
                return choice
        expected = " or ".join(repr(choice) for choice in choices)
        raise InputError(f"{place} has no table {expected}; found: {', '.join(names)}")

    # BEIR repositories on the hub keep their judgements in the config `default`.
    qrels = find(f"{prefix}qrels") if prefix else find("default", "qrels")
    own_split = _choose_split(source, qrels, split or "test", or_only=split is None)

    def read(table: str) -> tuple[str, pl.DataFrame]:
        frame = source.read(table, _choose_split(source, table, own_split, or_only=True))
        return f"{place}, {table}", frame

    location, frame = read(qrels)
    judged = table_columns(location, frame, "relevance").to_judgements(location)
    repeated = len(frame) - len(judged.grades)

    location, frame = read(f"{prefix}corpus")
    corpus = _read_texts_by_id(location, frame, "text")
    if find_column(frame, "title"):
        titles = _read_texts_by_id(location, frame, "title")
        corpus = {doc: f"{titles[doc]} {text}" for doc, text in corpus.items()}

    location, frame = read(find(f"{prefix}queries", "query"))
    queries = _read_texts_by_id(location, frame, "text")
    instructions = {}
    if find_column(frame, "instruction"):
        instructions = _read_texts_by_id(location, frame, "instruction")
    elif f"{prefix}instruction" in names:
        table = read(f"{prefix}instruction")
        instructions = _read_texts_by_id(*table, "instruction", id_column="query_id")
    for query in queries:
        if instructions.get(query):
            queries[query] += f" {instructions[query]}"

    listed = f"{prefix}top_ranked"
    return RetrievalDataset(
        name=place,
        queries=queries,
        corpus={doc: text.strip() for doc, text in corpus.items()},
        judgements=judged.to_dict(),
        candidates=_read_candidates(*read(listed)) if listed in names else None,
        split=own_split or None,
        left_out={"repeated judgements": repeated},
    )


def _read_rows(source: TableSource, subset: str | None, split: str | None) -> RetrievalDataset:
    """Read rows of texts; row 7 becomes query ``q7`` with the documents ``q7-d0``, ``q7-d1``.

    Positives come first, as in MTEB and in the paper. Every text is a separate document: a query
    that occurs twice stays two queries, and a text that occurs twice stays two documents. So lists
    keep their length, and copies tie as in the paper.
    """
    names = source.tables
    table = subset or (names[0] if len(names) == 1 else "default")
    if table not in names:
        raise InputError(
            f"{source.location} has no known layout (tables: {', '.join(names) or 'none'}); "
            f"expected {_LAYOUTS} in the table {table!r} (subset= chooses another)"
        )
    split = _choose_split(source, table, split or "test", or_only=split is None)
    frame, location = source.read(table, split), f"{source.location}, {table}"
    queries: dict[str, str] = {}
    corpus: dict[str, str] = {}
    judgements: dict[str, dict[str, float]] = {}
    positives, negatives = (_read_lists(location, frame, name) for name in ("positive", "negative"))
    for row, text in enumerate(_read_texts(location, frame, "query")):
        query = f"q{row}"
        queries[query] = text
        documents = {
            f"{query}-d{place}": _check_text(value, location, "documents", row)
            for place, value in enumerate(positives[row] + negatives[row])
        }
        grades = [1.0] * len(positives[row]) + [0.0] * len(negatives[row])
        corpus.update(documents)
        judgements[query] = dict(zip(documents, grades, strict=True))
    candidates = {query: list(documents) for query, documents in judgements.items()}
    return RetrievalDataset(
        source.location, queries, corpus, judgements, candidates, POOLED, split=split or None
    )


def _choose_split(source: TableSource, table: str, split: str, *, or_only: bool) -> str:
    """Return a split of a table if it exists; with `or_only`, else the only split."""
    splits = source.list_splits(table)
    if split in splits:
        return split
    if or_only and len(splits) == 1:
        return splits[0]
    named = [name for name in splits if name]
    known = f"pass split= one of: {', '.join(named)}" if named else "leave split= out"
    raise InputError(f"{source.location}, {table} has no split {split!r}; {known}")


def _read_candidates(location: str, frame: pl.DataFrame) -> dict[str, list[str]]:
    """Map queries to the ids of their candidates; refuse a candidate that is listed twice."""
    candidates = {}
    lists = _map_ids(location, frame, "query_id", _read_lists(location, frame, "doc_ids"))
    for query, documents in lists.items():
        own = f"{location}, query {query!r}"
        candidates[query] = ids = [text_id(doc, own) for doc in documents]
        if len(set(ids)) < len(ids):
            twice = Counter(ids).most_common(1)[0][0]
            raise InputError(f"{own}: id {twice!r} occurs twice; keep one of the two")
    return candidates


def _read_texts_by_id(
    location: str, frame: pl.DataFrame, name: str, *, id_column: str = "id"
) -> dict[str, str]:
    """Map the ids of the rows to their texts in a column."""
    return _map_ids(location, frame, id_column, _read_texts(location, frame, name))


def _map_ids(location: str, frame: pl.DataFrame, name: str, values: list[V]) -> dict[str, V]:
    """Map the ids in a column to the values of their rows."""
    ids = column_ids(location, frame, name)
    mapping = dict(zip(ids.to_list(), values, strict=True))
    if len(mapping) < len(values):
        twice = ids.filter(ids.is_duplicated())[0]
        raise InputError(f"{location}: id {twice!r} occurs twice; keep one of the two")
    return mapping


def _read_texts(location: str, frame: pl.DataFrame, name: str) -> list[str]:
    """Return a column as texts; a missing value is empty."""
    column = needed_column(location, frame, name)
    return [
        _check_text(value, location, column, row)
        for row, value in enumerate(frame[column].to_list())
    ]


def _check_text(value: object, location: str, column: str, row: int) -> str:
    """Return the text at a row, counted from 0; a missing value is empty."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"{location}: the {column} of row {row + 1}: expected text, found a "
            f"{type(value).__name__} ({value!r:.60}); only datasets of plain text can be read"
        )
    return value


def _read_lists(location: str, frame: pl.DataFrame, name: str) -> list[list[object]]:
    """Return a column as lists; in CSV a cell is a JSON array."""
    column = needed_column(location, frame, name)
    lists: list[list[object]] = []
    for row, value in enumerate(frame[column].to_list(), start=1):
        if isinstance(value, str):
            with suppress(ValueError, RecursionError):
                value = json.loads(value)
        if value is not None and not isinstance(value, list):
            raise InputError(
                f"{location}: the {column} of row {row}: expected a list (in CSV a JSON array), "
                f"found {value!r:.60}"
            )
        lists.append(value or [])
    return lists
