"""``load_dataset``: load a dataset from any source, in any layout."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

from deadheat._internal.numbers import check_number
from deadheat._internal.remarks import counted, emit_warnings
from deadheat.errors import InputError, printable
from deadheat.lab.datasets.bm25 import bm25_candidates
from deadheat.lab.datasets.dataset import RetrievalDataset
from deadheat.lab.datasets.layouts import POOLED, read_contents
from deadheat.lab.datasets.sources import open_source

Candidates = Literal["given", "bm25", "full"]

BM25_DEPTH = 100
_NO_CANDIDATES = "queries without candidates"


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
    if candidates != "given":
        if contents.candidate_rule == POOLED:
            raise InputError(
                f"{source.location} has candidate lists but no corpus: each text is judged for one "
                "query only; use candidates='given'"
            )
        contents = replace(contents, candidates=None)
    elif contents.candidates is None:
        raise InputError(
            f"{source.location} has no candidate lists (top_ranked); pass candidates='bm25' or "
            "'full'"
        )
    _check_references(contents)
    usable, dropped = _drop_unusable(contents)
    if unlisted := dropped.get(_NO_CANDIDATES):
        emit_warnings(
            [
                f"{source.location}: {counted(len(unlisted), 'query')} with relevant documents but "
                f"no candidates, for example {unlisted[0]!r}: dropped"
            ]
        )
    queries = dict(islice(usable.queries.items(), limit))
    judgements = {query: usable.judgements[query] for query in queries}
    corpus, lists, rule = usable.corpus, usable.candidates, "full corpus"
    cut: list[str] = []
    if candidates == "bm25":
        lists, cut, rule = bm25_candidates(queries, corpus, depth or BM25_DEPTH)
    elif lists is not None:
        lists = {query: lists[query][:depth] for query in queries}
        rule = "given" if depth is None else f"given, first {depth}"
    if lists is not None:
        used = set().union(*lists.values(), *judgements.values())
        corpus = {doc: text for doc, text in corpus.items() if doc in used}
    left_out = {
        **{reason: len(names) for reason, names in dropped.items()},
        "queries beyond the limit": len(usable.queries) - len(queries),
        **usable.left_out,
    }
    name = Path(name_or_path).resolve().name if Path(name_or_path).exists() else str(name_or_path)
    return replace(
        usable,
        name=printable(name),  # a path may not be UTF-8
        queries=queries,
        corpus=corpus,
        judgements=judgements,
        candidates=lists,
        candidate_rule=rule,
        revision=source.revision,
        cut_inside_ties=tuple(cut),
        left_out={what: count for what, count in left_out.items() if count},
    )


def _check_references(contents: RetrievalDataset) -> None:
    """Raise InputError for judgements and candidates that refer to missing texts."""
    queries, corpus, judgements = contents.queries, contents.corpus, contents.judgements
    if unknown := [query for query in judgements if query not in queries]:
        raise InputError(f"{contents.name}: query {unknown[0]!r} is judged but has no text; add it")
    for verb, lists in (("judges", judgements), ("lists", contents.candidates or {})):
        missing = [(q, doc) for q, own in lists.items() for doc in own if doc not in corpus]
        if missing:
            query, document = missing[0]
            raise InputError(
                f"{contents.name}: query {query!r} {verb} document {document!r}, which is not in "
                f"the corpus ({len(missing)} such references in all); add the documents or remove "
                "the references"
            )


def _drop_unusable(contents: RetrievalDataset) -> tuple[RetrievalDataset, dict[str, list[str]]]:
    """Drop empty texts and queries that cannot be evaluated; also return these by the reason."""
    corpus = {doc: text for doc, text in contents.corpus.items() if text.strip()}
    given, lists, empty_candidates = contents.candidates, None, 0
    if given is not None:
        lists = {query: [doc for doc in own if doc in corpus] for query, own in given.items()}
        empty_candidates = sum(len(own) - len(lists[query]) for query, own in given.items())
    queries = {}
    dropped = defaultdict(list)
    for query, text in contents.queries.items():
        if not text.strip():
            dropped["empty queries"].append(query)
        elif query not in contents.judgements:
            dropped["queries without judgements"].append(query)
        elif not any(grade > 0 for grade in contents.judgements[query].values()):
            dropped["queries without a relevant document"].append(query)
        elif lists is not None and not lists.get(query):
            dropped[_NO_CANDIDATES].append(query)
        else:
            queries[query] = text
    if not queries or not corpus:
        counts = [f"{len(names)} {reason}" for reason, names in dropped.items()]
        raise InputError(
            f"{contents.name} has nothing to evaluate ({', '.join(counts) or 'no queries'}); it "
            "needs documents with text, and queries with text, relevant documents and candidates"
        )
    left_out = {
        **contents.left_out,
        "empty documents": len(contents.corpus) - len(corpus),
        "empty candidates": empty_candidates,
    }
    usable = replace(contents, queries=queries, corpus=corpus, candidates=lists, left_out=left_out)
    return usable, dropped
