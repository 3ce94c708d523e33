"""Datasets as a study stores them, in the layout that `deadheat.datasets` reads."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from deadheat.datasets import RetrievalDataset, load_dataset, write_dataset
from deadheat.datasets.write import qrels_of
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
from deadheat.formats.write import trec_qrels


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
    write_dataset(dataset, lambda name, data: write_file(folder / name, data))
    write_file(folder / "qrels.txt", trec_qrels(qrels_of(dataset)))
    write_json(mark, {"asked": asked, "provenance": described})
    return described


def read_texts(folder: Path) -> RetrievalDataset:
    """Read a stored dataset."""
    stored = read_json(folder / "dataset.json")
    lists = (folder / "top_ranked.parquet").is_file()
    try:
        provenance = stored["provenance"]
        kept = {name: provenance[name] for name in ("name", "subset", "split", "revision")}
        return replace(
            load_dataset(folder, candidates="given" if lists else "full"),
            **kept,
            candidate_rule=provenance["candidates"],
            left_out=provenance["left_out"],
        )
    except (KeyError, InputError) as error:
        raise StoreError(f"{folder} is damaged ({error}): delete it and run again") from None


def listed_documents(dataset: RetrievalDataset) -> list[str]:
    """Return the documents that are a candidate of some query, in the order of the corpus."""
    if dataset.candidates is None:
        return list(dataset.corpus)
    listed = {doc for documents in dataset.candidates.values() for doc in documents}
    return [doc for doc in dataset.corpus if doc in listed]
