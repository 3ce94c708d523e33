"""Write one small dataset as a folder, in every layout and format."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import polars as pl
import zstandard

Rows = list[dict[str, Any]]

CORPUS: Rows = [
    {"_id": "d1", "title": "Ties", "text": "Two horses, one line"},
    {"_id": "d2", "title": "", "text": 'A "photo finish"\nof 1.0'},
    {"_id": "d3", "title": None, "text": "Überholt — наравне 🏁"},
    {"_id": "d4", "title": "Empty", "text": ""},
    {"_id": "d5", "title": "", "text": ""},
]
QUERIES: Rows = [
    {"_id": "q2", "text": "graded"},
    {"_id": "q1", "text": "who won, and by how much?"},
    {"_id": "q3", "text": "nothing relevant"},
    {"_id": "q4", "text": "never judged"},
]
QRELS: Rows = [
    {"query-id": "q1", "corpus-id": "d2", "score": 1},
    {"query-id": "q1", "corpus-id": "d1", "score": 0},
    {"query-id": "q2", "corpus-id": "d3", "score": 2},
    {"query-id": "q2", "corpus-id": "d3", "score": 2},
    {"query-id": "q3", "corpus-id": "d1", "score": 0},
]
TOP_RANKED: Rows = [
    {"query-id": "q1", "corpus-ids": ["d3", "d1", "d2"]},
    {"query-id": "q2", "corpus-ids": ["d5", "d1"]},
    {"query-id": "q3", "corpus-ids": ["d1"]},
]
TABLES = {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS, "top_ranked": TOP_RANKED}


def write_table(path: Path, rows: Rows, file_format: str) -> Path:
    """Write rows to ``path`` plus the extension, compressed if the extension says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path = path.with_name(f"{path.name}.{file_format}")
    kind, _, compression = file_format.partition(".")
    if kind == "parquet":
        pl.DataFrame(rows).write_parquet(path)
        return path
    if kind in ("jsonl", "ndjson"):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, rows[0], delimiter="\t" if kind == "tsv" else ",")
        writer.writeheader()
        for row in rows:
            writer.writerow(
                {key: json.dumps(v) if isinstance(v, list) else v for key, v in row.items()}
            )
        text = stream.getvalue()
    compress = {"": bytes, "gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.compress}
    path.write_bytes(compress[compression](text.encode()))
    return path


def write_flat(folder: Path, file_format: str = "jsonl", **changed: Rows) -> Path:
    """Write ``corpus.jsonl``, ``queries.jsonl``, …; skip tables given as ``[]``."""
    for name, rows in (TABLES | changed).items():
        if rows:
            write_table(folder / name, rows, file_format)
    return folder


def write_snapshot(
    folder: Path, file_format: str = "parquet", subset: str = "", split: str = "test"
) -> Path:
    """Write ``corpus/test-00000-of-00001.parquet``, … and a README that lists the configs."""
    configs = []
    for name, rows in TABLES.items():
        config = f"{subset}-{name}" if subset else name
        write_table(folder / config / f"{split}-00000-of-00001", rows, file_format)
        configs.append((config, split, f"{config}/{split}-*"))
    write_readme(folder, configs)
    return folder


def write_readme(folder: Path, configs: list[tuple[str, str, str]]) -> None:
    """Add configs to the README, from which the hub's library reads them."""
    readme = folder / "README.md"
    text = readme.read_text().removesuffix("---\n") if readme.exists() else "---\nconfigs:\n"
    entries = [
        f"- config_name: {config}\n  data_files:\n  - split: {split}\n    path: {path}\n"
        for config, split, path in configs
    ]
    readme.write_text(text + "".join(entries) + "---\n")
