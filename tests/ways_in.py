"""A run with its judgements, and a check that another input format gives identical results."""

from __future__ import annotations

import itertools
from pathlib import Path

import deadheat as dh

MEASURES = ["nDCG@3", "MRR", "MAP", "Recall@2", "Judged@3", "ERR"]

QRELS = {
    "q1": {"d1": 1, "d3": 2, "gone": 1, "d4": 0},
    "ü2": {"d#1": 1, '"quoted"': 3, "文書": 2, "d2": -1},
    "#3": {"d1": 0, "d2": 1},
    "7": {"10": 1, "11": 0},
}
RUN = {
    "q1": {"d1": 0.9, "d2": 0.5, "d3": 0.5, "d4": 0.5},
    "ü2": {"d2": 0.25, "d#1": 0.25, '"quoted"': -1.5, "文書": 0.25},
    "#3": {"d1": 1e-3, "d2": 1e-3},
    "7": {"12": 3.0, "10": 3.0, "11": 0.1},
}


def rows(nested: dict) -> list[tuple]:
    """Return rows of query, document and number."""
    return [(q, d, x) for q, docs in nested.items() for d, x in docs.items()]


def scattered(nested: dict) -> list[tuple]:
    """Return the rows with queries interleaved, in the same order within a query."""
    lists = [[(q, d, x) for d, x in docs.items()] for q, docs in nested.items()]
    return [row for turn in itertools.zip_longest(*lists) for row in turn if row]


def facts(result: dh.Result) -> dict:
    """Return all numbers of a result by query and measure."""
    return {
        (row["query_id"], row["measure"]): tuple(row.values())[2:]
        for row in result.per_query.iter_rows(named=True)
    }


def expected(**options) -> dict:
    return facts(dh.evaluate(QRELS, RUN, MEASURES, **options))


def same(qrels, run, **options) -> None:
    """Assert that judgements and run give the same result as QRELS and RUN."""
    actual = dh.evaluate(qrels, run, MEASURES, **options)
    assert facts(actual) == expected(**options)
    assert actual.warnings == dh.evaluate(QRELS, RUN, MEASURES, **options).warnings


def columns(nested: dict, names: tuple[str, str, str], order=rows) -> dict:
    return dict(zip(names, map(list, zip(*order(nested), strict=True)), strict=True))


def written(folder: Path, name: str, data: str | bytes) -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path
