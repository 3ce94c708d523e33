"""Datasets as a study uses and stores them: only texts that a model can read."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from deadheat.datasets import RetrievalDataset, load_dataset
from deadheat.errors import InputError
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


def load_texts(study: Study, spec: DatasetSpec) -> tuple[RetrievalDataset, dict[str, int]]:
    """Load a dataset without what no model reads, and count what was left out.

    Models refuse empty texts. An empty document is no candidate: if it is relevant, it counts as
    not retrieved. A query that is empty, or has no candidate left, is dropped.
    """
    dataset = load_dataset(
        spec.name,
        subset=spec.subset,
        split=spec.split,
        revision=spec.revision,
        candidates=study.candidates,  # type: ignore[arg-type]
        depth=None if study.candidates == "full" else study.depth,
        limit=study.limit,
    )
    corpus = {doc: text for doc, text in dataset.corpus.items() if text.strip()}
    queries = {query: text for query, text in dataset.queries.items() if text.strip()}
    left_out = {"empty queries": len(dataset.queries) - len(queries)}
    lists = dataset.candidates
    if lists is None:
        left_out["empty documents"] = len(dataset.corpus) - len(corpus)
    else:
        kept = {query: [doc for doc in lists[query] if doc in corpus] for query in queries}
        left_out["empty candidates"] = sum(len(lists[q]) - len(kept[q]) for q in queries)
        lists = {query: documents for query, documents in kept.items() if documents}
        left_out["queries left without candidates"] = len(queries) - len(lists)
        queries = {query: queries[query] for query in lists}
        used = {doc for documents in lists.values() for doc in documents}
        used.update(doc for query in queries for doc in dataset.judgements[query])
        corpus = {doc: text for doc, text in corpus.items() if doc in used}
    if not queries or not corpus:
        raise InputError(f"{spec.name}: nothing is left to run, its queries or documents are empty")
    judgements = {query: dataset.judgements[query] for query in queries}
    return (
        replace(dataset, queries=queries, corpus=corpus, judgements=judgements, candidates=lists),
        {what: count for what, count in left_out.items() if count},
    )


def store_texts(
    store: Store, study: Study, spec: DatasetSpec, dataset: RetrievalDataset, left_out: Any
) -> dict[str, Any]:
    """Store a dataset, or check that it is the one in use; return where it comes from."""
    folder = store.dataset_folder(spec)
    asked = {
        "revision": spec.revision,
        "limit": study.limit,
        "candidates": study.candidates,
        "depth": study.depth,
    }
    described = {**dataset.provenance(), "left_out": left_out, "folder": folder.name}
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
