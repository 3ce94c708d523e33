"""The layouts retrieval datasets come in, and how each becomes one collection.

*Current* (MTEB, BEIR): the tables ``corpus``, ``queries`` and ``qrels``, and for reranking
``top_ranked``; with several subsets each name has a prefix, ``en-corpus``.

*Rows* (MTEB before 2025): one table of ``query``, ``positive`` and ``negative``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from deadheat.datasets.checks import grade_of, identifier, text_of, unique
from deadheat.datasets.tables import ALIASES, Source, Table
from deadheat.errors import InputError


@dataclass
class Collection:
    """What a source holds, before queries are dropped and candidates chosen."""

    queries: dict[str, str]
    corpus: dict[str, str]
    judgements: dict[str, dict[str, float]]
    candidates: dict[str, list[str]] | None
    repeated_judgements: int = 0
    subset: str | None = None
    split: str | None = None
    pooled: bool = False
    """Whether the corpus is only the candidates of all queries put together."""


def read_collection(source: Source, subset: str | None, split: str | None) -> Collection:
    """Recognise the layout of a source and read one subset and split of it."""
    names = source.tables()
    subsets = [name.removesuffix("-corpus") for name in names if name.endswith("-corpus")]
    if subset == "default":
        subset = None
    if subset is None and "corpus" not in names and len(subsets) == 1:
        subset = subsets[0]
    prefix = f"{subset}-" if subset else ""
    if f"{prefix}corpus" in names:
        collection = _read_current(source, prefix, split)
    elif "corpus" in names and not subsets:
        raise InputError(f"{source.where} has no subsets; leave subset={subset!r} out")
    elif subsets:
        asked = f"has no subset {subset!r}" if subset else "has several subsets"
        raise InputError(f"{source.where} {asked}; pass subset= one of: {', '.join(subsets)}")
    else:
        collection = _read_rows(source, subset, split)
    collection.subset = subset
    return collection


def _read_current(source: Source, prefix: str, split: str | None) -> Collection:
    names = source.tables()

    def find(*choices: str) -> str:
        for choice in choices:
            if choice in names:
                return choice
        expected = " or ".join(repr(choice) for choice in choices)
        raise InputError(f"{source.where} has no table {expected}; found: {', '.join(names)}")

    # BEIR repositories on the hub keep their judgements in the config `default`.
    qrels = find(f"{prefix}qrels") if prefix else find("default", "qrels")
    split = _main_split(source, qrels, split)

    def read(table: str) -> tuple[Table, str]:
        return source.read(table, _side_split(source, table, split)), f"{source.where}, {table}"

    judgements, repeated = _judgements(source.read(qrels, split), f"{source.where}, {qrels}")
    queries = _texts(*read(find(f"{prefix}queries", "query")))
    if f"{prefix}instruction" in names:
        _add_instructions(queries, *read(f"{prefix}instruction"))
    return Collection(
        queries=queries,
        corpus=_documents(*read(f"{prefix}corpus")),
        judgements=judgements,
        candidates=(
            _candidates(*read(f"{prefix}top_ranked")) if f"{prefix}top_ranked" in names else None
        ),
        repeated_judgements=repeated,
        split=split or None,
    )


def _read_rows(source: Source, subset: str | None, split: str | None) -> Collection:
    """Read rows of texts; row 7 becomes query ``q7`` with the documents ``q7-d0``, ``q7-d1``.

    Positives come first, as in MTEB and in the paper. Every text is a document of its own:
    a query that occurs twice stays two queries, and a text that occurs twice stays two
    documents, so that lists keep their length and copies tie as they did in the paper.
    """
    names = source.tables()
    table = subset or ("default" if "default" in names or len(names) != 1 else names[0])
    if table not in names:
        raise InputError(
            f"{source.where} is in no known layout; found the tables: {', '.join(names) or 'none'};"
            " expected corpus, queries, qrels (and top_ranked), or rows of query, positive, "
            f"negative in the table {table!r} (subset= names another)"
        )
    split = _main_split(source, table, split)
    rows, where = source.read(table, split), f"{source.where}, {table}"
    queries: dict[str, str] = {}
    corpus: dict[str, str] = {}
    judgements: dict[str, dict[str, float]] = {}
    candidates: dict[str, list[str]] = {}
    columns = (_column(rows, name, where) for name in ("query", "positive", "negative"))
    for number, (query, *lists) in enumerate(zip(*columns, strict=True)):
        query_id = f"q{number}"
        at = f"{where}, row {number + 1}"
        positive, negative = (_list(values, at) for values in lists)
        texts = [text_of(text, at) for text in positive + negative]
        documents = {f"{query_id}-d{place}": text for place, text in enumerate(texts)}
        grades = [1] * len(positive) + [0] * len(negative)
        queries[query_id] = text_of(query, at)
        corpus.update(documents)
        judgements[query_id] = dict(zip(documents, grades, strict=True))
        candidates[query_id] = list(documents)
    return Collection(queries, corpus, judgements, candidates, split=split or None, pooled=True)


def _main_split(source: Source, table: str, split: str | None) -> str:
    """Choose the split to evaluate on: the one asked for, else ``test``, else the only one."""
    found = source.splits(table)
    if split is None and "test" in found:
        return "test"
    if split is None and len(found) == 1:
        return found[0]
    if split is not None and split in found:
        return split
    named = [name for name in found if name]
    if not named:
        raise InputError(f"{source.where}, {table} has no splits; leave split={split!r} out")
    asked = f"no split {split!r}" if split else "no split 'test'"
    raise InputError(f"{source.where}, {table} has {asked}; pass split= one of: {', '.join(named)}")


def _side_split(source: Source, table: str, split: str) -> str:
    """Choose the split of a table that belongs to the judgements' split."""
    found = source.splits(table)
    if split in found:
        return split
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"{source.where}, {table} has no split {split!r} like the judgements, and more than one "
        f"other: {', '.join(found)}; choose another split"
    )


def _column(table: Table, name: str, where: str) -> list[Any]:
    for alias in ALIASES.get(name, (name,)):
        if alias in table:
            return table[alias]
    found = ", ".join(sorted(table)) or "none"
    raise InputError(f"{where} has no column {name!r}; columns found: {found}")


def _ids(table: Table, name: str, where: str) -> list[str]:
    values = _column(table, name, where)
    return [identifier(value, f"{where}, row {row}") for row, value in enumerate(values, start=1)]


def _texts(table: Table, where: str) -> dict[str, str]:
    ids = _ids(table, "id", where)
    texts = [text_of(text, where) for text in _column(table, "text", where)]
    if "instruction" in table:
        extra = (text_of(text, where) for text in table["instruction"])
        texts = [
            f"{text} {more}" if more else text for text, more in zip(texts, extra, strict=True)
        ]
    return unique(zip(ids, texts, strict=True), where)


def _add_instructions(queries: dict[str, str], table: Table, where: str) -> None:
    """Append each query's instruction to its text, as MTEB does."""
    ids = _ids(table, "query-id", where)
    values = _column(table, "instruction", where)
    for query, instruction in unique(zip(ids, values, strict=True), where).items():
        if query in queries and instruction:
            queries[query] += f" {text_of(instruction, where)}"


def _documents(table: Table, where: str) -> dict[str, str]:
    """Title and text joined by a space and stripped, as MTEB hands them to models."""
    ids = _ids(table, "id", where)
    texts = _column(table, "text", where)
    titles = table.get("title", [""] * len(texts))
    joined = (
        f"{text_of(title, where)} {text_of(text, where)}".strip()
        for title, text in zip(titles, texts, strict=True)
    )
    return unique(zip(ids, joined, strict=True), where)


def _judgements(table: Table, where: str) -> tuple[dict[str, dict[str, float]], int]:
    queries = _ids(table, "query-id", where)
    documents = _ids(table, "corpus-id", where)
    judgements: dict[str, dict[str, float]] = {}
    repeated = 0
    for query, document, value in zip(
        queries, documents, _column(table, "score", where), strict=True
    ):
        at = f"{where}, query {query!r}, document {document!r}"
        grades = judgements.setdefault(query, {})
        grade = grade_of(value, at)
        if grades.setdefault(document, grade) != grade:
            raise InputError(f"{at}: judged both {grades[document]} and {grade}; keep one")
        repeated += 1
    return judgements, repeated - sum(len(grades) for grades in judgements.values())


def _candidates(table: Table, where: str) -> dict[str, list[str]]:
    queries = _ids(table, "query-id", where)

    def lists() -> Iterator[list[str]]:
        for query, values in zip(queries, _column(table, "corpus-ids", where), strict=True):
            at = f"{where}, query {query!r}"
            documents = [identifier(value, at) for value in _list(values, at)]
            unique(((document, "") for document in documents), at)
            yield documents

    return unique(zip(queries, lists(), strict=True), where)


def _list(values: Any, where: str) -> list[Any]:
    """Return a list cell; CSV has none, so there it is a JSON array."""
    if isinstance(values, str):
        with suppress(json.JSONDecodeError):
            values = json.loads(values)
    if values is None:
        return []
    if not isinstance(values, list):
        raise InputError(f"{where}: expected a list (in CSV a JSON array), found {values!r:.60}")
    return values
