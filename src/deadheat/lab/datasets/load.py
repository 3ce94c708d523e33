"""``load_dataset``: load a dataset from any source, in any layout."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from deadheat._internal.numbers import check_number
from deadheat._internal.remarks import counted, emit_warnings
from deadheat.errors import InputError
from deadheat.lab.datasets.bm25 import bm25_candidates
from deadheat.lab.datasets.dataset import RetrievalDataset
from deadheat.lab.datasets.layouts import POOLED, read_contents
from deadheat.lab.datasets.sources import open_source

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
        An existing folder or file (MTEB or BEIR layout; Parquet, JSON lines, CSV), an id such as
        ``ir_datasets:beir/scifact/test``, or a dataset on the hub such as
        ``mteb/AskUbuntuDupQuestions``.
    subset
        Part of the dataset, often a language: ``en`` of ``mteb/MIRACLReranking``.
    split
        Split of the dataset. Default: ``test``, or the only split.
    revision
        Commit, tag or branch on the hub.
    candidates
        ``given``: the lists of the dataset; ``bm25``: the best documents by BM25; ``full``: the
        whole corpus for every query.
    depth
        Largest length of candidate lists. Default: 100 for BM25, otherwise no limit.
    limit
        Number of first queries to keep. Default: all.

    Returns
    -------
    RetrievalDataset
        Queries without a relevant document are dropped, as in the paper. Empty documents, which
        models do not accept, are removed from the candidates; a relevant one counts as not
        retrieved. Queries that are empty, or have no candidates left, are dropped. ``left_out``
        contains all these counts.

    Warns
    -----
    DeadheatWarning
        Queries with relevant documents have no candidates, and are dropped.

    Raises
    ------
    InputError
        The data cannot be evaluated; the message contains the place and the remedy.
    MissingPackageError
        The source or BM25 needs a package that is not installed.
    """
    if candidates not in get_args(Candidates):
        choices = ", ".join(get_args(Candidates))
        raise InputError(f"candidates={candidates!r} is unknown; choose one of: {choices}")
    for option, value in (("depth", depth), ("limit", limit)):
        check_number(option, 1 if value is None else value, least=1)
    if candidates == "full" and depth is not None:
        raise InputError("candidates='full' has no depth; leave depth out or use 'bm25'")
    source = open_source(name_or_path, revision)
    contents = read_contents(source, subset, split)
    name = Path(name_or_path).resolve().name if Path(name_or_path).exists() else str(name_or_path)
    name = os.fsencode(name).decode(errors="backslashreplace")  # a path may not be UTF-8
    if candidates != "given":
        if contents.candidate_rule == POOLED:
            raise InputError(
                f"{name} has candidate lists but no corpus: each text is judged for one query "
                "only; use candidates='given'"
            )
        contents = replace(contents, candidates=None)
    _check_contents(contents, source.location)
    if candidates == "given" and contents.candidates is None:
        raise InputError(
            f"{source.location} has no candidate lists (top_ranked); pass candidates='bm25' or "
            "'full'"
        )
    listed, dropped = _select_queries(contents, source.location)
    if unlisted := dropped["queries without candidates"]:
        emit_warnings(
            [
                f"{source.location}: {counted(len(unlisted), 'query')} with relevant documents but "
                f"no candidates, for example {unlisted[0]!r}: dropped"
            ]
        )
    dropped["queries beyond the limit"] = listed[limit:] if limit else []
    queries = {query: contents.queries[query] for query in listed[:limit]}
    lists, rule = contents.candidates, "full corpus"
    cut: list[str] = []
    if candidates == "bm25":
        lists, cut, rule = bm25_candidates(queries, contents.corpus, depth or BM25_DEPTH)
    elif lists is not None:
        lists = {query: lists[query][:depth] for query in queries}
        rule = "given" if depth is None else f"given, first {depth}"
    dataset = replace(
        contents,
        name=name,
        queries=queries,
        candidates=lists,
        candidate_rule=rule,
        revision=source.revision,
        cut_inside_ties=tuple(cut),
        left_out={**{what: len(names) for what, names in dropped.items()}, **contents.left_out},
    )
    return _drop_empty_texts(dataset, source.location)


def _check_contents(contents: RetrievalDataset, location: str) -> None:
    """Raise InputError for contents that are empty, or that refer to missing texts."""
    queries, corpus, judgements = contents.queries, contents.corpus, contents.judgements
    if not corpus or not queries or not judgements:
        raise InputError(
            f"{location} is empty: {len(queries)} queries, {len(corpus)} documents, "
            f"{len(judgements)} judged queries; all three are needed"
        )
    if unknown := [query for query in judgements if query not in queries]:
        raise InputError(f"{location}: query {unknown[0]!r} is judged but has no text; add it")
    for verb, lists in (("judges", judgements), ("lists", contents.candidates or {})):
        missing = [(q, doc) for q, own in lists.items() for doc in own if doc not in corpus]
        if missing:
            query, document = missing[0]
            raise InputError(
                f"{location}: query {query!r} {verb} document {document!r}, which is not in the "
                f"corpus ({len(missing)} such references in all); add the documents or remove the "
                "references"
            )


def _select_queries(
    contents: RetrievalDataset, location: str
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the queries that can be evaluated, and the others by the reason to drop them."""
    lists, judgements, queries = contents.candidates, contents.judgements, list(contents.queries)
    conditions: dict[str, Callable[[str], object]] = {
        "queries without judgements": lambda query: query in judgements,
        "queries without a relevant document": lambda query: any(
            grade > 0 for grade in judgements[query].values()
        ),
        "queries without candidates": lambda query: lists is None or lists.get(query),
    }
    dropped = {}
    for what, fits in conditions.items():
        dropped[what] = [query for query in queries if not fits(query)]
        queries = [query for query in queries if fits(query)]
    if not queries:
        raise InputError(f"{location}: no query has both a relevant document and candidates")
    return queries, dropped


def _drop_empty_texts(dataset: RetrievalDataset, location: str) -> RetrievalDataset:
    """Drop empty texts, and documents that are then neither listed nor judged."""
    corpus = {doc: text for doc, text in dataset.corpus.items() if text.strip()}
    queries = {query: text for query, text in dataset.queries.items() if text.strip()}
    left_out = {
        **dataset.left_out,
        "empty queries": len(dataset.queries) - len(queries),
        "empty documents": len(dataset.corpus) - len(corpus),
    }
    lists = dataset.candidates
    if lists is not None:
        texts = {query: [doc for doc in lists[query] if doc in corpus] for query in queries}
        left_out["empty candidates"] = sum(len(lists[q]) - len(texts[q]) for q in queries)
        lists = {query: documents for query, documents in texts.items() if documents}
        left_out["queries left without candidates"] = len(queries) - len(lists)
        queries = {query: queries[query] for query in lists}
        used = {doc for documents in lists.values() for doc in documents}
        used.update(doc for query in queries for doc in dataset.judgements[query])
        corpus = {doc: text for doc, text in corpus.items() if doc in used}
    if not queries or not corpus:
        raise InputError(f"{location}: all queries or all documents are empty; add texts")
    return replace(
        dataset,
        queries=queries,
        corpus=corpus,
        judgements={query: dataset.judgements[query] for query in queries},
        candidates=lists,
        left_out={what: count for what, count in left_out.items() if count},
    )
