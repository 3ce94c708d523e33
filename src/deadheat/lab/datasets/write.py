"""Write a dataset in the layout that `load_dataset` reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from deadheat._internal.lazy import pl
from deadheat.formats import to_parquet
from deadheat.lab.datasets.dataset import RetrievalDataset


def write_dataset(dataset: RetrievalDataset, write: Callable[[str, bytes], None]) -> None:
    """Write the texts, judgements and candidates of a dataset.

    `load_dataset` of the folder returns a dataset with the same `content_hash`; name, split and
    revision are not part of the files. If the dataset has no lists, load it with
    ``candidates="full"``.

    Parameters
    ----------
    dataset
        A dataset from `load_dataset`.
    write
        Callback with the name and the bytes of each file: ``corpus.parquet``, ``queries.parquet``,
        ``qrels.parquet`` and, if there are candidate lists, ``top_ranked.parquet``.
    """
    # Judged documents without a text were empty; every judged document must be in the corpus.
    judged = (doc for grades in dataset.judgements.values() for doc in grades)
    empty = {doc: "" for doc in judged if doc not in dataset.corpus}
    tables = {
        "corpus": _make_texts({**dataset.corpus, **empty}),
        "queries": _make_texts(dataset.queries),
        "qrels": make_qrels(dataset),
    }
    if dataset.candidates is not None:
        tables["top_ranked"] = pl.DataFrame(
            {"query-id": list(dataset.candidates), "corpus-ids": list(dataset.candidates.values())},
            {"query-id": pl.String, "corpus-ids": pl.List(pl.String)},
        )
    for name, table in tables.items():
        write(f"{name}.parquet", to_parquet(table))


def make_qrels(dataset: RetrievalDataset) -> pl.DataFrame:
    """Return the judgements as a frame of ``query-id``, ``corpus-id`` and ``score``."""
    rows = [
        (query, doc, grade)
        for query, grades in dataset.judgements.items()
        for doc, grade in grades.items()
    ]
    schema = {"query-id": pl.String, "corpus-id": pl.String, "score": pl.Float64}
    return pl.DataFrame(rows, schema, orient="row")


def _make_texts(texts: Mapping[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"_id": list(texts), "text": list(texts.values())}, {"_id": pl.String, "text": pl.String}
    )
