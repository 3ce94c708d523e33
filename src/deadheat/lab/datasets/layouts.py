"""Read the layouts of retrieval datasets.

*Current* (MTEB, BEIR): the tables ``corpus``, ``queries`` and ``qrels``, and for reranking
``top_ranked``; with several subsets each name has a prefix, ``en-corpus``.

*Rows* (MTEB before 2025): one table of ``query``, ``positive`` and ``negative``.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.formats import (
    column_ids,
    column_of,
    find_column,
    needed_column,
    table_columns,
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
    if "corpus" in names and not subsets:
        raise InputError(f"{source.location} has no subsets; leave subset={subset!r} out")
    if subsets:
        asked = f"has no subset {subset!r}" if subset else "has several subsets"
        raise InputError(f"{source.location} {asked}; pass subset= one of: {', '.join(subsets)}")
    return replace(_read_rows(source, subset, split), subset=subset)


def _read_current(source: TableSource, prefix: str, split: str | None) -> RetrievalDataset:
    names = source.tables

    def find(*choices: str) -> str:
        for choice in choices:
            if choice in names:
                return choice
        expected = " or ".join(repr(choice) for choice in choices)
        raise InputError(f"{source.location} has no table {expected}; found: {', '.join(names)}")

    # BEIR repositories on the hub keep their judgements in the config `default`.
    qrels = find(f"{prefix}qrels") if prefix else find("default", "qrels")
    own_split = _choose_split(source, qrels, split)

    def read(table: str) -> tuple[str, pl.DataFrame]:
        frame = source.read(table, _match_split(source, table, own_split))
        return f"{source.location}, {table}", frame

    location, frame = read(qrels)
    judged = table_columns(location, frame, "relevance").to_judgements(location)
    repeated = len(frame) - len(judged.grades)
    grades = list(zip(judged.doc_ids, judged.grades.tolist(), strict=True))
    bounds = zip(judged.query_ids, pairwise(judged.offsets.tolist()), strict=True)
    queries = _read_texts_by_id(*read(find(f"{prefix}queries", "query")), after="instruction")
    if f"{prefix}instruction" in names:
        location, frame = read(f"{prefix}instruction")
        instructions = _read_texts(location, frame, "instruction")
        for query, text in _map_ids(location, frame, "query_id", instructions).items():
            if query in queries:
                queries[query] = _append(queries[query], text)
    corpus = _read_texts_by_id(*read(f"{prefix}corpus"), before="title")
    listed = f"{prefix}top_ranked"
    return RetrievalDataset(
        name=source.location,
        queries=queries,
        corpus={document: text.strip() for document, text in corpus.items()},
        judgements={query: dict(grades[first:last]) for query, (first, last) in bounds},
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
    if not names:
        raise InputError(f"{source.location}: no tables found; expected {_LAYOUTS}")
    table = subset or ("default" if "default" in names or len(names) != 1 else names[0])
    if table not in names:
        raise InputError(
            f"{source.location} has an unknown layout with the tables: "
            f"{', '.join(names)}; expected {_LAYOUTS} in the table {table!r} (subset= chooses "
            "another)"
        )
    split = _choose_split(source, table, split)
    frame, location = source.read(table, split), f"{source.location}, {table}"
    texts = _read_texts(location, frame, "query")
    queries = {f"q{number}": text for number, text in enumerate(texts)}
    positive, negative = (
        [
            [_check_text(value, location, name, row) for value in values]
            for row, values in enumerate(_read_lists(location, frame, name), start=1)
        ]
        for name in ("positive", "negative")
    )
    corpus: dict[str, str] = {}
    judgements: dict[str, dict[str, float]] = {}
    for query, relevant, other in zip(queries, positive, negative, strict=True):
        documents = {f"{query}-d{place}": text for place, text in enumerate(relevant + other)}
        grades = [1.0] * len(relevant) + [0.0] * len(other)
        corpus.update(documents)
        judgements[query] = dict(zip(documents, grades, strict=True))
    candidates = {query: list(documents) for query, documents in judgements.items()}
    return RetrievalDataset(
        source.location, queries, corpus, judgements, candidates, POOLED, split=split or None
    )


def _choose_split(source: TableSource, table: str, split: str | None) -> str:
    """Return the split to evaluate on: the given one, else ``test``, else the only one."""
    splits = source.list_splits(table)
    if (split or "test") in splits:
        return split or "test"
    if split is None and len(splits) == 1:
        return splits[0]
    named = [name for name in splits if name]
    if not named:
        raise InputError(f"{source.location}, {table} has no splits; leave split={split!r} out")
    raise InputError(
        f"{source.location}, {table} has no split {split or 'test'!r}; pass split= one of: "
        f"{', '.join(named)}"
    )


def _match_split(source: TableSource, table: str, split: str) -> str:
    """Return the split of a table that belongs to the judgements' split."""
    splits = source.list_splits(table)
    if split in splits or len(splits) == 1:
        return split if split in splits else splits[0]
    raise InputError(
        f"{source.location}, {table} has no split {split!r} as the judgements have, but several "
        f"others: {', '.join(splits)}; choose another split"
    )


def _read_texts_by_id(
    location: str, frame: pl.DataFrame, before: str | None = None, after: str | None = None
) -> dict[str, str]:
    """Map ids to texts; the texts of two optional columns are joined as in MTEB."""
    texts = _read_texts(location, frame, "text")
    if before and find_column(frame, before):
        titles = _read_texts(location, frame, before)
        texts = [f"{title} {text}" for title, text in zip(titles, texts, strict=True)]
    if after and find_column(frame, after):
        more = _read_texts(location, frame, after)
        texts = [_append(*pair) for pair in zip(texts, more, strict=True)]
    return _map_ids(location, frame, "id", texts)


def _append(text: str, instruction: str) -> str:
    return f"{text} {instruction}" if instruction else text


def _read_candidates(location: str, frame: pl.DataFrame) -> dict[str, list[str]]:
    """Map queries to the ids of their candidates; refuse a candidate that is listed twice."""
    lists = _map_ids(location, frame, "query_id", _read_lists(location, frame, "doc_ids"))
    candidates = {}
    for query, documents in lists.items():
        own = pl.DataFrame([column_of("doc_id", documents)])
        candidates[query] = list(_map_ids(f"{location}, query {query!r}", own, "doc_id", documents))
    return candidates


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
    values = enumerate(frame[column].to_list(), start=1)
    return [_check_text(value, location, column, row) for row, value in values]


def _check_text(value: object, location: str, column: str, row: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(
            f"{location}: the {column} of row {row}: expected text, found a {type(value).__name__} "
            f"({value!r:.60}); only datasets of plain text can be read"
        )
    return value


def _read_lists(location: str, frame: pl.DataFrame, name: str) -> list[list[object]]:
    """Return a column as lists; in CSV a cell is a JSON array."""
    column = needed_column(location, frame, name)
    lists: list[list[object]] = []
    for value in frame[column].to_list():
        own = value
        if isinstance(value, str):
            with suppress(ValueError, RecursionError):
                own = json.loads(value)
        if own is not None and not isinstance(own, list):
            raise InputError(
                f"{location}: the {column} of row {len(lists) + 1}: expected a list (in CSV a JSON "
                f"array), found {value!r:.60}"
            )
        lists.append(own or [])
    return lists
