"""The layouts retrieval datasets come in, and what each holds.

*Current* (MTEB, BEIR): the tables ``corpus``, ``queries`` and ``qrels``, and for reranking
``top_ranked``; with several subsets each name has a prefix, ``en-corpus``.

*Rows* (MTEB before 2025): one table of ``query``, ``positive`` and ``negative``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.formats.frames import column_of, find_column, judgements_from_table
from deadheat.lab.datasets.sources import TableSource
from deadheat.lab.datasets.values import map_ids, read_lists, read_text_lists, read_texts


@dataclass
class Contents:
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


def read_contents(source: TableSource, subset: str | None, split: str | None) -> Contents:
    """Recognise the layout of a source and read one subset and split of it."""
    names = source.tables()
    subsets = [name.removesuffix("-corpus") for name in names if name.endswith("-corpus")]
    if subset == "default":
        subset = None
    if subset is None and "corpus" not in names and len(subsets) == 1:
        subset = subsets[0]
    prefix = f"{subset}-" if subset else ""
    if f"{prefix}corpus" in names:
        contents = _read_current(source, prefix, split)
    elif "corpus" in names and not subsets:
        raise InputError(f"{source.location} has no subsets; leave subset={subset!r} out")
    elif subsets:
        asked = f"has no subset {subset!r}" if subset else "has several subsets"
        raise InputError(f"{source.location} {asked}; pass subset= one of: {', '.join(subsets)}")
    else:
        contents = _read_rows(source, subset, split)
    contents.subset = subset
    return contents


def _read_current(source: TableSource, prefix: str, split: str | None) -> Contents:
    names = source.tables()

    def find(*choices: str) -> str:
        for choice in choices:
            if choice in names:
                return choice
        expected = " or ".join(repr(choice) for choice in choices)
        raise InputError(f"{source.location} has no table {expected}; found: {', '.join(names)}")

    # BEIR repositories on the hub keep their judgements in the config `default`.
    qrels = find(f"{prefix}qrels") if prefix else find("default", "qrels")
    split = _choose_split(source, qrels, split)

    def read(table: str) -> tuple[str, pl.DataFrame]:
        return f"{source.location}, {table}", source.read(table, _match_split(source, table, split))

    judgements, repeated = _read_judgements(
        f"{source.location}, {qrels}", source.read(qrels, split)
    )
    queries = _read_queries(*read(find(f"{prefix}queries", "query")))
    if f"{prefix}instruction" in names:
        location, frame = read(f"{prefix}instruction")
        instructions = read_texts(location, frame, "instruction")
        for query, instruction in map_ids(location, frame, "query_id", instructions).items():
            if query in queries:
                queries[query] = _append_instruction(queries[query], instruction)
    return Contents(
        queries=queries,
        corpus=_read_documents(*read(f"{prefix}corpus")),
        judgements=judgements,
        candidates=(
            _read_candidates(*read(f"{prefix}top_ranked"))
            if f"{prefix}top_ranked" in names
            else None
        ),
        repeated_judgements=repeated,
        split=split or None,
    )


def _read_rows(source: TableSource, subset: str | None, split: str | None) -> Contents:
    """Read rows of texts; row 7 becomes query ``q7`` with the documents ``q7-d0``, ``q7-d1``.

    Positives come first, as in MTEB and in the paper. Every text is a document of its own:
    a query that occurs twice stays two queries, and a text that occurs twice stays two
    documents, so that lists keep their length and copies tie as they did in the paper.
    """
    names = source.tables()
    table = subset or ("default" if "default" in names or len(names) != 1 else names[0])
    if table not in names:
        raise InputError(
            f"{source.location} is in no known layout; found the tables: "
            f"{', '.join(names) or 'none'}; expected corpus, queries, qrels (and top_ranked), or "
            f"rows of query, positive, negative in the table {table!r} (subset= names another)"
        )
    split = _choose_split(source, table, split)
    frame, location = source.read(table, split), f"{source.location}, {table}"
    texts = read_texts(location, frame, "query")
    positive = read_text_lists(location, frame, "positive")
    negative = read_text_lists(location, frame, "negative")
    queries = {f"q{number}": text for number, text in enumerate(texts)}
    corpus: dict[str, str] = {}
    judgements: dict[str, dict[str, float]] = {}
    for query, relevant, other in zip(queries, positive, negative, strict=True):
        documents = {f"{query}-d{place}": text for place, text in enumerate(relevant + other)}
        grades = [1.0] * len(relevant) + [0.0] * len(other)
        corpus.update(documents)
        judgements[query] = dict(zip(documents, grades, strict=True))
    candidates = {query: list(documents) for query, documents in judgements.items()}
    return Contents(queries, corpus, judgements, candidates, split=split or None, pooled=True)


def _choose_split(source: TableSource, table: str, split: str | None) -> str:
    """Choose the split to evaluate on: the one asked for, else ``test``, else the only one."""
    splits = source.splits(table)
    if split is None and "test" in splits:
        return "test"
    if split is None and len(splits) == 1:
        return splits[0]
    if split is not None and split in splits:
        return split
    named = [name for name in splits if name]
    if not named:
        raise InputError(f"{source.location}, {table} has no splits; leave split={split!r} out")
    asked = f"no split {split!r}" if split else "no split 'test'"
    choices = ", ".join(named)
    raise InputError(f"{source.location}, {table} has {asked}; pass split= one of: {choices}")


def _match_split(source: TableSource, table: str, split: str) -> str:
    """Choose the split of a table that belongs to the judgements' split."""
    splits = source.splits(table)
    if split in splits:
        return split
    if len(splits) == 1:
        return splits[0]
    raise InputError(
        f"{source.location}, {table} has no split {split!r} like the judgements, and more than one "
        f"other: {', '.join(splits)}; choose another split"
    )


def _read_queries(location: str, frame: pl.DataFrame) -> dict[str, str]:
    """Return the texts of queries, with instructions appended as MTEB does."""
    texts = read_texts(location, frame, "text")
    if find_column(frame, "instruction"):
        instructions = read_texts(location, frame, "instruction")
        texts = [_append_instruction(*pair) for pair in zip(texts, instructions, strict=True)]
    return map_ids(location, frame, "id", texts)


def _append_instruction(text: str, instruction: str) -> str:
    return f"{text} {instruction}" if instruction else text


def _read_documents(location: str, frame: pl.DataFrame) -> dict[str, str]:
    """Return title and text joined by a space and stripped, as MTEB does."""
    texts = read_texts(location, frame, "text")
    if find_column(frame, "title"):
        titles = read_texts(location, frame, "title")
        texts = [f"{title} {text}" for title, text in zip(titles, texts, strict=True)]
    return map_ids(location, frame, "id", [text.strip() for text in texts])


def _read_judgements(location: str, frame: pl.DataFrame) -> tuple[dict[str, dict[str, float]], int]:
    """Return grades by query and document, and how many rows only repeat another."""
    judged = judgements_from_table(location, frame)
    pairs = list(zip(judged.doc_ids.to_list(), judged.grades.tolist(), strict=True))
    bounds = zip(judged.query_ids, pairwise(judged.offsets.tolist()), strict=True)
    return {query: dict(pairs[a:b]) for query, (a, b) in bounds}, len(frame) - len(pairs)


def _read_candidates(location: str, frame: pl.DataFrame) -> dict[str, list[str]]:
    lists = map_ids(location, frame, "query_id", read_lists(location, frame, "doc_ids"))
    return {
        query: _check_list_ids(f"{location}, query {query!r}", documents)
        for query, documents in lists.items()
    }


def _check_list_ids(location: str, documents: list[Any]) -> list[str]:
    """Return the ids of the documents in one list; refuse one that occurs twice."""
    frame = pl.DataFrame([column_of("doc_id", documents)])
    return list(map_ids(location, frame, "doc_id", documents))
