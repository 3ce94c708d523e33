"""BM25 on AskUbuntu: published values, ranges due to ties, and the effect of BF16 scores.

    python benchmarks/askubuntu.py [--format markdown]

Needs `../shared/data/askubuntu` next to the project. The published numbers are those of Lei et al.
(2016), Semi-supervised Question Retrieval with Gated Convolutions, Table 2.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

import deadheat as dh
from deadheat.tables import Column, Table, render

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "askubuntu"
MEASURES = ("MAP", "MRR", "P@1", "P@5")
PUBLISHED = {"dev": (52.0, 66.0, 51.9, 42.1), "test": (56.0, 68.0, 53.8, 42.5)}
COLUMNS = (
    Column("part", "name"),
    Column("measure", "name"),
    Column("published"),
    Column("input", over="BM25", title="input order"),
    Column(("worst", "best"), "span", over="BM25", title="tie orders"),
    Column("bf16_input", over="BF16", title="input order"),
    Column("bf16_positives", over="BF16", title="positives first"),
    Column("bf16_ids", over="BF16", title="ids"),
    Column("bf16_expected", over="BF16", title="expected"),
    Column(("bf16_worst", "bf16_best"), "span", over="BF16", title="tie orders"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--format", default="table")
    print(render([build_table()], parser.parse_args().format, percent=True))


def build_table() -> Table:
    """Return a row per part and measure."""
    rows = [row for part in PUBLISHED for row in compare(part)]
    notes = [
        "positives first: the order of MTEB 1.38; ids: today's MTEB (pytrec_eval's rule)",
        "tie orders: the worst and the best value over all orders of tied documents",
    ]
    return Table(pl.DataFrame(rows), COLUMNS, "BM25 on AskUbuntu, in percent", notes, grouped=1)


def compare(part: str) -> list[dict[str, object]]:
    """Evaluate the BM25 scores of a part, unchanged and cast to BF16 with three tie orders."""
    qrels = read_columns(DATA / f"{part}.qrels", 3, "relevance")
    run = read_columns(DATA / f"{part}-bm25.run.gz", 4, "score")
    positives = run.join(qrels, on=["query_id", "doc_id"], how="left", maintain_order="left")
    positives = positives.sort("relevance", descending=True, maintain_order=True)
    given = dh.evaluate(qrels, run, MEASURES)
    cast = dh.evaluate(qrels, run, MEASURES, score_dtype="bf16")
    first = dh.evaluate(qrels, positives.select(run.columns), MEASURES, score_dtype="bf16")
    ids = dh.evaluate(qrels, run, MEASURES, score_dtype="bf16", tie_break="pytrec_eval")
    return [
        {
            "part": part,
            "measure": measure,
            "published": published / 100,
            "input": given[measure].oblivious,
            "worst": given[measure].worst,
            "best": given[measure].best,
            "bf16_input": cast[measure].oblivious,
            "bf16_positives": first[measure].oblivious,
            "bf16_ids": ids[measure].oblivious,
            "bf16_expected": cast[measure].expected,
            "bf16_worst": cast[measure].worst,
            "bf16_best": cast[measure].best,
        }
        for measure, published in zip(MEASURES, PUBLISHED[part], strict=True)
    ]


def read_columns(path: Path, column: int, name: str) -> pl.DataFrame:
    """Read query, document and one further column of a TREC file."""
    frame = pl.read_csv(path, separator=" ", has_header=False)
    query, doc, number = (pl.nth(i) for i in (0, 2, column))
    ids = query.cast(pl.String).alias("query_id"), doc.cast(pl.String).alias("doc_id")
    return frame.select(*ids, number.alias(name))


if __name__ == "__main__":
    main()
