"""Tie rules: how a tie-oblivious tool happens to order documents of equal score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.ties.counter import TieCounter
from deadheat.ties.groups import Ints
from deadheat.ties.scores import Bounds

TIE_RULES = {
    "input": "the order of the input: the paper, Python's sorted, BEIR's own MRR",
    "id_desc": "document id, descending bytes: trec_eval 10, MTEB's MRR",
    "id_asc": "document id, ascending bytes: sentence-transformers' IR evaluator, RR@k of "
    "ir_measures",
    "rank": "the rank column of the run",
    "pytrec_eval": "scores cast to float32, then id descending: pytrec_eval, trec_eval 9, and so "
    "nDCG, MAP, Recall and P in MTEB and BEIR",
}

RULE_WORDS = {
    "input": "the input",
    "id_desc": "descending document ids",
    "id_asc": "ascending document ids",
    "rank": "the rank column",
    "pytrec_eval": "descending document ids, scores cast to float32",
}
"""What the rule orders ties by, as it is said under a table."""

Keys = Callable[[Ints], pl.Series]
"""Gives, for rows of the run, what the rule sorts tied documents by."""


def check_rule(rule: str) -> None:
    """Refuse a rule that does not exist."""
    if rule not in tuple(TIE_RULES):
        raise InputError(f"unknown tie rule {rule!r}: use one of {', '.join(TIE_RULES)}")


def ranks(
    rule: str,
    counter: TieCounter,
    scores: NDArray[Any],
    bounds: Bounds,
    ids: Keys | None = None,
    rank_column: Ints | None = None,
) -> Ints:
    """Ranks of the counter's documents when `rule` breaks the ties.

    `counter` has seen all of `scores`; `ids` gives the document ids of rows of `scores`.
    """
    if rule == "input":
        return counter.above + 1 + counter.before
    if rule == "rank":
        if rank_column is None:
            raise InputError("the tie rule 'rank' needs a run with a column of ranks")
        column = rank_column
        before = _before(counter, scores, bounds, lambda rows: pl.Series(column[rows]))
        return counter.above + 1 + before
    if ids is None:
        raise InputError(f"the tie rule {rule!r} needs document ids")
    if rule != "pytrec_eval":
        before = _before(counter, scores, bounds, ids, descending=rule == "id_desc")
        return counter.above + 1 + before
    with np.errstate(over="ignore"):  # as in C, a double beyond float32 becomes infinite
        scores = scores.astype(np.float32)
        score = counter.score.astype(np.float32)
    narrow = TieCounter(counter.n_queries, counter.query, score, counter.grade, counter.position)
    narrow.update(scores, bounds=bounds)
    rank = narrow.above + 1 + _before(narrow, scores, bounds, ids, descending=True)
    return reorder(rank, narrow.rows(bounds), counter.rows(bounds))


def reorder(values: Ints, rows: Ints, wanted: Ints) -> Ints:
    """Values of the rows `wanted`, from values given for `rows`."""
    order = np.argsort(rows)
    return values[order[np.searchsorted(rows[order], wanted)]]


def _before(
    counter: TieCounter,
    scores: NDArray[Any],
    bounds: Bounds,
    keys: Keys,
    *,
    descending: bool = False,
) -> Ints:
    """Per document: the tied candidates that an order by `keys` puts before it."""
    before = np.zeros(len(counter.query), np.int64)
    tied = np.flatnonzero(counter.equal > 1)
    if not len(tied):
        return before
    query, score = counter.query[tied], counter.score[tied]
    new = (query[1:] != query[:-1]) | (score[1:] != score[:-1])
    leaders = tied[np.concatenate(([True], new))]
    members = [
        bounds[0][q] + np.flatnonzero(scores[bounds[0][q] : bounds[1][q]] == score)
        for q, score in zip(counter.query[leaders], counter.score[leaders], strict=True)
    ]
    rows = np.concatenate(members)
    sizes = np.array([len(m) for m in members])
    frame = pl.DataFrame(
        {"group": np.repeat(np.arange(len(members)), sizes), "row": rows, "key": keys(rows)}
    ).sort("group", "key", descending=[False, descending], maintain_order=True)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    before[tied] = reorder(place, frame["row"].to_numpy(), counter.rows(bounds)[tied])
    return before
