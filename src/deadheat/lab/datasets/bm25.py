"""Candidate lists from BM25, through the ``bm25s`` package."""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from deadheat._internal.packages import require

K1, B = 1.5, 0.75


def bm25_candidates(
    queries: Mapping[str, str], corpus: Mapping[str, str], depth: int
) -> tuple[dict[str, list[str]], list[str], str]:
    """Rank the corpus for every query and keep the first ``depth`` documents.

    Scores are those of ``bm25s`` (Lucene's formula, k1 = 1.5, b = 0.75) over lower-cased words of
    two or more letters. There are no stop words and no stemming, so no language has an advantage.
    ``bm25s`` itself keeps arbitrary documents of those that tie at the cut; here equal scores keep
    the order of the corpus. A document without a word of the query scores zero, but can still be
    part of a list.

    Parameters
    ----------
    queries, corpus
        Texts by id.
    depth
        Length of the lists; a smaller corpus is ranked as a whole.

    Returns
    -------
    tuple
        The documents of each query, best first; the queries whose list was cut between
        documents of equal score; and the rule as text.
    """
    library = require("bm25s", "BM25 candidates")
    documents = list(corpus)
    tokenize = partial(library.tokenize, stopwords=None, return_ids=False, show_progress=False)
    words = tokenize(list(corpus.values()))
    # A corpus without words cannot be indexed, and every score is zero.
    index = library.BM25(method="lucene", k1=K1, b=B)
    vocabulary: Container[str] = set()
    if any(words):
        index.index(words, show_progress=False)
        vocabulary = index.vocab_dict
    candidates: dict[str, list[str]] = {}
    cut_inside_ties = []
    for query, tokens in zip(queries, tokenize(list(queries.values())), strict=True):
        known = [word for word in tokens if word in vocabulary]
        scores = index.get_scores(known) if known else np.zeros(len(documents), np.float32)
        best, inside_tie = select_top(scores, depth)
        candidates[query] = [documents[place] for place in best]
        if inside_tie:
            cut_inside_ties.append(query)
    rule = f"bm25 top {depth} (bm25s {library.__version__}, lucene, k1={K1}, b={B})"
    return candidates, cut_inside_ties, rule


def select_top(scores: npt.NDArray[np.float32], depth: int) -> tuple[list[int], bool]:
    """Return the indices of the ``depth`` highest scores, and whether the cut splits a tie group.

    Examples
    --------
    >>> select_top(np.array([1.0, 3.0, 1.0, 2.0]), 3)
    ([1, 3, 0], True)
    """
    if depth >= len(scores):
        return np.argsort(-scores, kind="stable").tolist(), False
    lowest = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    kept = np.flatnonzero(scores >= lowest)
    order = kept[np.argsort(-scores[kept], kind="stable")]
    return order[:depth].tolist(), len(kept) > depth
