"""A run with its judgements, and whether another way in gives the same result, to the bit."""

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
    return [(q, d, x) for q, docs in nested.items() for d, x in docs.items()]


def scattered(nested: dict) -> list[tuple]:
    """The rows with those of a query apart; the order inside a query stays."""
    lists = [[(q, d, x) for d, x in docs.items()] for q, docs in nested.items()]
    return [row for turn in itertools.zip_longest(*lists) for row in turn if row]


def facts(result: dh.Result) -> dict:
    """Everything numeric in a result, by query."""
    return {
        (row["query_id"], row["measure"]): tuple(row.values())[2:]
        for row in result.per_query.iter_rows(named=True)
    }


def expected(**options) -> dict:
    return facts(dh.evaluate(QRELS, RUN, MEASURES, **options))


def same(qrels, run, **options) -> None:
    found = dh.evaluate(qrels, run, MEASURES, **options)
    assert facts(found) == expected(**options)
    assert found.warnings == dh.evaluate(QRELS, RUN, MEASURES, **options).warnings


def columns(nested: dict, names: tuple[str, str, str], order=rows) -> dict:
    return dict(zip(names, map(list, zip(*order(nested), strict=True)), strict=True))


def written(folder: Path, name: str, data: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path
