"""Tie rules: how a tie-oblivious tool happens to order documents of equal score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.forks import check_fork
from deadheat.late import pl
from deadheat.numbers import rounded
from deadheat.ties.counter import TieCounter
from deadheat.ties.groups import Ints, begins
from deadheat.ties.scores import Bounds

TieRule = Literal["input", "id_desc", "id_asc", "rank", "pytrec_eval"]
"""Name of a tie rule."""
TIE_RULES: dict[TieRule, str] = {
    "input": "the order of the input: the paper, Python's sorted, BEIR's own MRR",
    "id_desc": "document id, descending bytes: trec_eval 10, MTEB's MRR",
    "id_asc": "document id, ascending bytes: sentence-transformers' IR evaluator, RR@k of "
    "ir_measures",
    "rank": "the rank column of the run",
    "pytrec_eval": "scores cast to float32, then id descending: pytrec_eval, trec_eval 9, and so "
    "nDCG, MAP, Recall and P in MTEB and BEIR",
}
"""What each tie rule orders documents of equal score by, and who follows it."""

RULE_WORDS = {
    "input": "input order",
    "id_desc": "descending document ids",
    "id_asc": "ascending document ids",
    "rank": "the rank column",
    "pytrec_eval": "descending document ids, scores cast to float32",
}
"""What the rule orders ties by, as it is said under a table."""

Keys = Callable[[Ints], "pl.Series"]
"""Gives, for rows of the run, what the rule sorts tied documents by."""


@dataclass(frozen=True)
class RuleOrder:
    """How a rule orders the lists of a run: by the scores it sees, high to low, then by a key."""

    scores: NDArray[Any]
    key: Keys | None
    """None: equal scores stay in the order of the input."""
    descending: bool = False


def check_rule(rule: str) -> None:
    """Refuse a rule that does not exist."""
    if rule not in tuple(TIE_RULES):
        raise InputError(f"unknown tie rule {rule!r}: use one of {', '.join(TIE_RULES)}")


def rule_note(rule: str, score_dtype: str | None = None) -> str:
    """Say what an oblivious value is, for the notes under a table, and which scores all views see.

    >>> rule_note("id_desc", "fp32")
    'oblivious = as reported (descending document ids); all views: scores rounded to fp32'
    """
    seen = f"; all views: scores rounded to {score_dtype}" if score_dtype else ""
    return f"oblivious = as reported ({RULE_WORDS[rule]}){seen}"


def rule_order(
    rule: str,
    scores: NDArray[Any],
    ids: Keys | None = None,
    rank_column: Ints | None = None,
    exact: NDArray[Any] | None = None,
) -> RuleOrder:
    """Say by what a rule orders documents; all that depends on the rule's name is decided here.

    Parameters
    ----------
    scores
        Of all lists, float32 or float64, without NaN.
    ids
        Gives the document ids of rows of `scores`; the rules that sort by id need it.
    rank_column
        Per row of `scores`: its rank in the source; the rule ``rank`` needs it.
    exact
        The scores themselves, where `scores` are only places.
    """
    if rule == "input":
        return RuleOrder(scores, None)
    check_fork()
    if rule == "rank":
        if rank_column is None:
            raise InputError("the tie rule 'rank' needs a run with a column of ranks")
        column = rank_column
        return RuleOrder(scores, lambda rows: pl.Series(column[rows]))
    if ids is None:
        raise InputError(f"the tie rule {rule!r} needs document ids")
    if rule == "pytrec_eval":
        if exact is not None:
            nearest = rounded(exact)
            scores = np.where(np.isnan(nearest), -np.inf, nearest)  # NaN, where it ranks last
        with np.errstate(over="ignore"):  # as in C, a double beyond float32 becomes infinite
            scores = scores.astype(np.float32, copy=False)
    return RuleOrder(scores, ids, descending=rule != "id_asc")


def list_order(order: RuleOrder, start: int, stop: int, top: int | None = None) -> Ints:
    """Rows ``start:stop``, one query's list, as the rule orders them.

    Parameters
    ----------
    top
        Only the first rows, and those that the rule ties with the last of them.

    Examples
    --------
    >>> ids = pl.Series(["a", "b", "c"])
    >>> by_id = rule_order("id_desc", np.array([0.5, 0.5, 0.75]), ids.gather)
    >>> list_order(by_id, 0, 3)
    array([2, 1, 0])
    """
    own = order.scores[start:stop]
    rows = np.argsort(-own, kind="stable")
    if top is not None and top < len(rows):
        rows = rows[: int((own >= own[rows[top - 1]]).sum())] if top else rows[:0]
    if order.key is not None and len(rows):
        frame = pl.DataFrame({"score": own[rows], "key": order.key(start + rows)})
        by_rule = frame.select(
            pl.arg_sort_by("score", "key", descending=[True, order.descending], maintain_order=True)
        )
        rows = rows[by_rule.to_series().to_numpy()]
    in_order: Ints = start + rows
    return in_order


def ranks(order: RuleOrder, counter: TieCounter, scores: NDArray[Any], bounds: Bounds) -> Ints:
    """Ranks of the counter's documents in the lists that `order` puts in order.

    `counter` has seen all of `scores`. Only tied documents are sorted; the others' places are
    in the counts already.
    """
    seen = counter
    if order.scores is not scores:
        rows = counter.rows(bounds)
        seen = TieCounter.of(
            counter.n_queries,
            counter.query,
            order.scores[rows],
            counter.grade,
            counter.position,
            counter.unretrieved,
        )
        seen.add(order.scores, bounds, seen.rows(bounds))
    before = seen.before if order.key is None else _before(seen, order, order.key, bounds)
    rank = seen.above + 1 + before
    return rank if seen is counter else reorder(rank, seen.rows(bounds), counter.rows(bounds))


def reorder(values: Ints, rows: Ints, asked: Ints) -> Ints:
    """Values of the rows `asked`, from values given for `rows`."""
    order = np.argsort(rows)
    return values[order[np.searchsorted(rows[order], asked)]]


def _before(counter: TieCounter, order: RuleOrder, key: Keys, bounds: Bounds) -> Ints:
    """Per document: the tied candidates that an order by `key` puts before it."""
    before = np.zeros(len(counter.query), np.int64)
    tied = np.flatnonzero(counter.equal > 1)
    if not len(tied):
        return before
    leaders = tied[begins(counter.query[tied], counter.score[tied])]
    members = [
        bounds[0][q] + np.flatnonzero(order.scores[bounds[0][q] : bounds[1][q]] == score)
        for q, score in zip(counter.query[leaders], counter.score[leaders], strict=True)
    ]
    rows = np.concatenate(members)
    sizes = np.array([len(m) for m in members])
    frame = pl.DataFrame(
        {"group": np.repeat(np.arange(len(members)), sizes), "row": rows, "key": key(rows)}
    ).sort("group", "key", descending=[False, order.descending], maintain_order=True)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    before[tied] = reorder(place, frame["row"].to_numpy(), counter.rows(bounds)[tied])
    return before
