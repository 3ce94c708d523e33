"""``load_dataset``: one way in for every source and layout."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from deadheat.datasets.bm25 import bm25_candidates
from deadheat.datasets.checks import check_references
from deadheat.datasets.dataset import Counts, RetrievalDataset
from deadheat.datasets.files import FolderSource
from deadheat.datasets.hub import open_hub
from deadheat.datasets.irds import PREFIX, IrDatasetsSource
from deadheat.datasets.layouts import Collection, read_collection
from deadheat.datasets.tables import Source
from deadheat.errors import DeadheatWarning, InputError

Candidates = Literal["given", "bm25", "full"]

BM25_DEPTH = 100


def load_dataset(
    name_or_path: str | Path,
    *,
    subset: str | None = None,
    split: str | None = None,
    revision: str | None = None,
    candidates: Candidates = "given",
    depth: int | None = None,
    limit: int | None = None,
) -> RetrievalDataset:
    """Load a retrieval or reranking dataset.

    Parameters
    ----------
    name_or_path
        A folder or file that exists (MTEB or BEIR layout; Parquet, JSON lines, CSV), an id
        such as ``ir_datasets:beir/scifact/test``, or else a dataset on the hub such as
        ``mteb/AskUbuntuDupQuestions``.
    subset
        Part of the dataset, often a language: ``en`` of ``mteb/MIRACLReranking``.
    split
        Default: ``test``, or the only split there is.
    revision
        Commit, tag or branch on the hub.
    candidates
        ``given``: the lists of the dataset; ``bm25``: the best documents by BM25; ``full``:
        the whole corpus for every query.
    depth
        Length at which candidate lists are cut; 100 for BM25 unless told, uncut otherwise.
    limit
        Keep only the first queries.

    Returns
    -------
    RetrievalDataset
        Queries without a relevant document are dropped, and counted in ``counts``.

    Raises
    ------
    InputError
        What was found cannot be evaluated; the message says where and what to do.
    MissingPackageError
        The source or BM25 needs a package that is not installed.
    """
    _check_options(candidates, depth, limit)
    source = _open(name_or_path, revision)
    collection = read_collection(source, subset, split)
    name = Path(name_or_path).resolve().name if Path(name_or_path).exists() else str(name_or_path)
    dataset = _select_queries(name, collection, source.where, candidates, limit)
    dataset = _choose_candidates(dataset, collection.pooled, candidates, depth)
    return replace(dataset, revision=source.revision)


def _check_options(candidates: str, depth: int | None, limit: int | None) -> None:
    if candidates not in get_args(Candidates):
        choices = ", ".join(get_args(Candidates))
        raise InputError(f"candidates={candidates!r} is unknown; choose one of: {choices}")
    for option, value in (("depth", depth), ("limit", limit)):
        if value is not None and value < 1:
            raise InputError(f"{option}={value} is too small; give 1 or more")
    if candidates == "full" and depth is not None:
        raise InputError("candidates='full' has no depth; leave depth out or use 'bm25'")


def _open(name_or_path: str | Path, revision: str | None) -> Source:
    name = str(name_or_path)
    path = Path(name_or_path).expanduser()
    if name.startswith(PREFIX) or path.exists():
        if revision is not None:
            raise InputError(f"only the hub has revisions; leave revision={revision!r} out")
        return IrDatasetsSource(name) if name.startswith(PREFIX) else FolderSource(path)
    if isinstance(name_or_path, Path) or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise InputError(f"there is no folder or file {name}; check the path")
    return open_hub(name, revision)


def _select_queries(
    name: str, collection: Collection, where: str, candidates: str, limit: int | None
) -> RetrievalDataset:
    """Check the collection as a whole, then keep the queries that can be evaluated."""
    judgements, lists = collection.judgements, collection.candidates
    if not collection.corpus or not collection.queries or not judgements:
        raise InputError(
            f"{where} is empty: {len(collection.queries)} queries, {len(collection.corpus)} "
            f"documents, {len(judgements)} judged queries; all three are needed"
        )
    for query in judgements:
        if query not in collection.queries:
            raise InputError(f"{where}: query {query!r} is judged but has no text; add the query")
    check_references(judgements, collection.corpus, "judges", where)
    judged = [query for query in collection.queries if query in judgements]
    relevant = [query for query in judged if any(grade > 0 for grade in judgements[query].values())]
    if candidates != "given":
        lists = None
    elif lists is None:
        raise InputError(
            f"{where} gives no candidate lists (top_ranked); pass candidates='bm25' or 'full'"
        )
    else:
        check_references(lists, collection.corpus, "lists", where)
    listed = [query for query in relevant if lists is None or lists.get(query)]
    unlisted = [query for query in relevant if lists is not None and not lists.get(query)]
    if unlisted:
        warnings.warn(
            f"{where}: {len(unlisted)} queries with relevant documents have no candidates, "
            f"{unlisted[0]!r} for one, and are dropped",
            DeadheatWarning,
            stacklevel=3,
        )
    if not listed:
        raise InputError(f"{where}: no query has both a relevant document and candidates")
    kept = listed[:limit]
    queries = {query: collection.queries[query] for query in kept}
    return RetrievalDataset(
        name=name,
        queries=queries,
        corpus=collection.corpus,
        judgements={query: judgements[query] for query in kept},
        candidates=None if lists is None else {query: lists[query] for query in kept},
        subset=collection.subset,
        split=collection.split,
        counts=Counts(
            queries_without_judgements=len(collection.queries) - len(judged),
            queries_without_relevant=len(judged) - len(relevant),
            queries_without_candidates=len(unlisted),
            queries_beyond_limit=len(listed) - len(kept),
            repeated_judgements=collection.repeated_judgements,
            empty_queries=sum(not text.strip() for text in queries.values()),
            empty_documents=sum(not text.strip() for text in collection.corpus.values()),
        ),
    )


def _choose_candidates(
    dataset: RetrievalDataset, pooled: bool, candidates: str, depth: int | None
) -> RetrievalDataset:
    """Set the candidate lists and the rule that made them."""
    if candidates != "given" and pooled:
        raise InputError(
            f"{dataset.name} has candidate lists but no corpus: its texts are judged for one query "
            "only, copies included; use candidates='given'"
        )
    if candidates == "full":
        return replace(dataset, candidate_rule="full corpus")
    if candidates == "bm25":
        lists, cut, rule = bm25_candidates(dataset.queries, dataset.corpus, depth or BM25_DEPTH)
        dataset = replace(dataset, candidate_rule=rule, cut_inside_ties=tuple(cut))
    else:
        given = dataset.candidates or {}
        lists = {query: documents[:depth] for query, documents in given.items()}
        rule = "given" if depth is None else f"given, first {depth}"
        dataset = replace(dataset, candidate_rule=rule)
    unreachable = sum(
        not any(grades.get(document, 0) > 0 for document in lists[query])
        for query, grades in dataset.judgements.items()
    )
    counts = replace(dataset.counts, queries_without_relevant_candidate=unreachable)
    return replace(dataset, candidates=lists, counts=counts)
