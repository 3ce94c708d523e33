"""Convert public test collections into folders that ``load_dataset`` reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CRANFIELD_GRADES = {1: 4, 2: 3, 3: 2, 4: 1, -1: 0}
"""Codes of Cranfield: 1 is a complete answer, 4 the least relevant one, -1 not relevant."""


def write_cranfield(source: Path, folder: Path) -> Path:
    """Write Cranfield as a BEIR folder: 225 queries, 1,400 documents, grades 0 to 4."""
    documents = _smart_records(source / "cran.all.1400")
    queries = _smart_records(source / "cran.qry")
    _write_json_lines(
        folder / "corpus.jsonl", (_cranfield_document(record) for record in documents)
    )
    # The judgements number queries by their position in the file, not by `.I`.
    _write_json_lines(
        folder / "queries.jsonl",
        ({"_id": str(number), "text": query["W"]} for number, query in enumerate(queries, start=1)),
    )
    judgements = []
    for line in (source / "cranqrel").read_text().splitlines():
        query, document, code = line.split()
        judgements.append((query, document, CRANFIELD_GRADES[int(code)]))
    _write_qrels(folder / "qrels" / "test.tsv", judgements)
    return folder


def write_wikiqa(source: Path, folder: Path, part: str = "test") -> Path:
    """Write a part of WikiQA as a reranking folder, with candidates in the order of the files."""
    columns = [
        (source / part / name).read_text(encoding="utf-8").splitlines()
        for name in ("id.txt", "a.toks", "b.toks", "sim.txt")
    ]
    queries: dict[str, str] = {}
    corpus: dict[str, str] = {}
    candidates: dict[str, list[str]] = {}
    judgements = []
    for line, (query, question, sentence, label) in enumerate(zip(*columns, strict=True)):
        document = f"a{line}"
        queries[query] = question
        corpus[document] = sentence
        candidates.setdefault(query, []).append(document)
        judgements.append((query, document, int(label)))
    _write_json_lines(folder / "queries.jsonl", _to_records(queries))
    _write_json_lines(folder / "corpus.jsonl", _to_records(corpus))
    _write_json_lines(
        folder / "top_ranked.jsonl",
        ({"query-id": query, "corpus-ids": listed} for query, listed in candidates.items()),
    )
    _write_qrels(folder / "qrels" / f"{part}.tsv", judgements)
    return folder


def _smart_records(path: Path) -> list[dict[str, str]]:
    """Return the records of a SMART file: `.I` starts a record; `.T`, `.W` and others, a field."""
    records: list[dict[str, str]] = []
    field = ""
    for line in path.read_text().splitlines():
        if line.startswith(".I "):
            records.append({"I": line[3:].strip()})
        elif len(line.strip()) == 2 and line.startswith("."):
            field = line.strip()[1]
            records[-1][field] = ""
        else:
            records[-1][field] = f"{records[-1][field]} {line.strip()}".strip()
    return records


def _cranfield_document(record: Mapping[str, str]) -> dict[str, str]:
    """Return title and abstract, without the title that the abstract repeats."""
    title = record["T"]
    return {"_id": record["I"], "title": title, "text": record["W"].removeprefix(title).strip()}


def _to_records(texts: Mapping[str, str]) -> Iterable[dict[str, str]]:
    return ({"_id": key, "text": text} for key, text in texts.items())


def _write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _write_qrels(path: Path, judgements: Iterable[tuple[str, str, int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{query}\t{document}\t{grade}\n" for query, document, grade in judgements]
    path.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines), encoding="utf-8")
