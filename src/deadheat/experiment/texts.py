"""Datasets as a study stores them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl

from deadheat.datasets import RetrievalDataset
from deadheat.experiment.store import (
    Store,
    StoreError,
    check_settings,
    read_json,
    write_file,
    write_json,
)
from deadheat.experiment.study import DatasetSpec, Study
from deadheat.formats.write import to_parquet, trec_qrels


def store_texts(
    store: Store, study: Study, spec: DatasetSpec, dataset: RetrievalDataset
) -> dict[str, Any]:
    """Store a dataset, or check that it is the one in use; return where it comes from."""
    folder = store.dataset_folder(spec)
    asked = {
        "revision": spec.revision,
        "limit": study.limit,
        "candidates": study.candidates,
        "depth": study.depth,
    }
    described = {**dataset.provenance().to_dict(), "folder": folder.name}
    mark = folder / "dataset.json"
    if mark.is_file() and store.uses(folder):
        stored = read_json(mark)
        same = stored["provenance"]["content_hash"] == dataset.content_hash
        if not same or study.candidates == "full":  # whose depth cuts lists, not the dataset
            check_settings(folder, stored["asked"], asked)
        hash_now = {"content_hash": dataset.content_hash}
        check_settings(folder, stored["provenance"], {**stored["provenance"], **hash_now})
        return dict(stored["provenance"])
    shutil.rmtree(folder, ignore_errors=True)  # of a run that did not begin, or was killed here
    grades = [
        (query, doc, float(grade))
        for query, judged in dataset.judgements.items()
        for doc, grade in judged.items()
    ]
    tables = {
        "queries": _texts(dataset.queries),
        "documents": _texts(dataset.corpus),
        "judgements": pl.DataFrame(
            grades, {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64}, orient="row"
        ),
    }
    if dataset.candidates is not None:
        tables["candidates"] = pl.DataFrame(
            {"query_id": list(dataset.candidates), "doc_ids": list(dataset.candidates.values())}
        )
    for name, table in tables.items():
        write_file(folder / f"{name}.parquet", to_parquet(table))
    write_file(folder / "qrels.txt", trec_qrels(tables["judgements"]))
    write_json(mark, {"asked": asked, "provenance": described})
    return described


def read_texts(folder: Path) -> RetrievalDataset:
    """Read a stored dataset."""
    described = read_json(folder / "dataset.json")["provenance"]
    try:
        tables = {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}
        judgements: dict[str, dict[str, float]] = {}
        for query, doc, grade in tables["judgements"].iter_rows():
            judgements.setdefault(query, {})[doc] = grade
        return RetrievalDataset(
            described["name"],
            queries=dict(tables["queries"].iter_rows()),
            corpus=dict(tables["documents"].iter_rows()),
            judgements=judgements,
            candidates=dict(tables["candidates"].iter_rows()) if "candidates" in tables else None,
            candidate_rule=described["candidates"],
            subset=described["subset"],
            split=described["split"],
            revision=described["revision"],
        )
    except (KeyError, OSError, pl.exceptions.PolarsError) as error:
        raise StoreError(f"{folder} is damaged ({error}): delete it and run again") from None


def listed_documents(dataset: RetrievalDataset) -> list[str]:
    """Return the documents that are a candidate of some query, in the order of the corpus."""
    if dataset.candidates is None:
        return list(dataset.corpus)
    listed = {doc for documents in dataset.candidates.values() for doc in documents}
    return [doc for doc in dataset.corpus if doc in listed]


def _texts(texts: Any) -> pl.DataFrame:
    return pl.DataFrame({"id": list(texts), "text": list(texts.values())})
