"""Which rule made these numbers: tie order, score precision, queries and variant of a measure.

A published column is held against every combination. Lists and tie groups are built once per
run, precision and tie rule; the variants of a measure only read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from deadheat.comparison.leaderboard.published import Cell, PublishedColumn
from deadheat.evaluation import QUERY_POLICIES, views_of
from deadheat.evaluation.views import need_judged
from deadheat.formats import Judgements, Run
from deadheat.measures import Measure
from deadheat.remarks import counted
from deadheat.ties import TieGroups, tie_groups
from deadheat.ties.groups import Floats
from deadheat.ties.lists import Fit, JudgedLists, fitted_lists, without_nan
from deadheat.ties.rules import rule_order
from deadheat.ties.scores import as_seen_in, score_format

ORDERS = ("id_desc", "id_asc", "input", "rank")
"""Tie rules to try, the likeliest first; that of pytrec_eval is id_desc on float32 scores."""
ORDER_WORDS = {
    "id_desc": "descending ids",
    "id_asc": "ascending ids",
    "input": "input order",
    "rank": "the rank column",
    "pytrec_eval": "descending ids, cast to float32",
}
"""What a rule orders ties by, in few words."""
PRECISIONS = ((None, "float32"), ("fp16", "bf16"))
"""Score precisions to try: the second lot only where the first leaves a number unmet."""
PERSISTENCE = (0.5, 0.8, 0.9, 0.95)
"""Values of RBP's p to try where a heading does not name one."""
_MOST_GRADES = 6


@dataclass(frozen=True)
class Setting:
    """How an evaluator ranks and averages."""

    tie_break: str = "input"
    score_dtype: str | None = None
    """What scores are rounded to before they are ranked; None for scores as given."""
    queries: str = "judged"

    @property
    def by_rank(self) -> bool:
        """Whether it needs the ranks of a run."""
        return self.tie_break == "rank"

    def __str__(self) -> str:
        scores = "scores as given" if self.score_dtype is None else f"{self.score_dtype} scores"
        which = "" if self.queries == "judged" else f", queries={self.queries!r}"
        return f"{scores}, ties by {ORDER_WORDS[self.tie_break]}{which}"


@dataclass(frozen=True)
class FoundRule:
    """What a published column was found to be."""

    column: str
    """Its heading."""
    stated: Measure
    """What the heading says."""
    measure: Measure
    """The variant of it that meets most of the numbers."""
    setting: Setting
    met: int
    """Published numbers that this rule gives, to their printed digits."""
    of: int
    """Published numbers of runs that could be read."""
    largest_gap: float
    """The largest distance between a published number and what the rule gives."""
    equally_good: tuple[Setting, ...]
    """All settings that meet as many."""

    def __str__(self) -> str:
        return f"{self.column}: {self.met} of {self.of} met with {self.measure}, {self.setting}"

    def to_dict(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            **vars(self),
            "stated": repr(self.stated),
            "measure": repr(self.measure),
            "setting": vars(self.setting),
            "equally_good": [vars(setting) for setting in self.equally_good],
        }


Gaps = dict[str, dict[tuple[Setting, Measure], tuple[bool, float]]]
"""Per column, setting and variant: whether the number is met, and how far off it is."""


def variants(measure: Measure, grades: Sequence[float]) -> list[Measure]:
    """All readings of a measure's name, that which it says first.

    Parameters
    ----------
    grades
        The positive grades of the judgements; each may be the lowest relevant one.

    Examples
    --------
    >>> from deadheat import parse_measure
    >>> variants(parse_measure("nDCG@20"), [1.0, 2.0])
    [nDCG@20, nDCG(gain='exp')@20]
    >>> variants(parse_measure("P@5"), [1.0, 2.0])
    [Precision@5, Precision(rel=2)@5]
    """
    choices: dict[str, list[Any]] = {}
    for name, declared in measure.parameters().items():
        own = getattr(measure, name)
        others: Sequence[Any] = list(declared.choices)
        if name == "rel" and own is None:
            others = list(map(_plain, sorted(grades)[1:_MOST_GRADES]))  # the lowest is in None
        elif name == "p" and own == declared.default:
            others = PERSISTENCE
        choices[name] = [own, *(other for other in others if other != own)]
    combined = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    return [measure(**parameters) for parameters in combined]


def _plain(grade: float) -> float:
    """Write whole grades without a point, as people do."""
    return int(grade) if grade == int(grade) else grade


def gaps_of(
    parts: Iterable[tuple[Judgements, Run]],
    judgements: Judgements,
    numbers: Mapping[str, Cell],
    readings: Mapping[str, Sequence[Measure]],
    precisions: Sequence[str | None],
) -> Gaps:
    """Hold the published numbers of one run against every setting and variant.

    Parameters
    ----------
    parts
        The run, or parts of it, each with the judgements of its queries.
    judgements
        All of them.
    numbers
        The run's number in each column that has one.
    readings
        The variants of the measure of each column.
    """
    wanted = dict.fromkeys(measure for column in numbers for measure in readings[column])
    top_grade = float(judgements.grades.max(initial=0))
    values: dict[Setting, dict[Measure, list[Floats]]] = {}
    fits: dict[str, Fit] = {}
    n_parts = 0
    for own, run in parts:
        n_parts += 1
        for settings, groups in _rankings(run, own, precisions, wanted, fits):
            ranked = replace(groups, top_grade=top_grade)
            for measure, views in views_of(ranked, wanted).items():
                for setting in settings:
                    values.setdefault(setting, {}).setdefault(measure, []).append(views.oblivious)
    for fit in fits.values():
        fit.check(judgements, run.source)
    found: Gaps = {column: {} for column in numbers}
    for setting, of_measures in values.items():
        for column, cell in numbers.items():
            for measure in readings[column]:
                known = of_measures[measure]
                if len(known) == n_parts:  # not every part may have ranks
                    mean = float(np.concatenate(known).mean())
                    gap = cell.met_by(mean), abs(mean - cell.value)
                    found[column][setting, measure] = gap
    return found


def _rankings(
    run: Run,
    judgements: Judgements,
    precisions: Sequence[str | None],
    measures: Iterable[Measure],
    fits: dict[str, Fit],
) -> Iterator[tuple[list[Setting], TieGroups]]:
    """Tie groups of a run under every setting; settings that rank the same queries together.

    How it fits the judgements is added to `fits`, by the policy of queries.
    """
    with_judged = need_judged(measures)
    alike: dict[tuple[str, ...], list[str]] = {}
    lists_of: dict[tuple[str, ...], JudgedLists] = {}
    for policy in QUERY_POLICIES:
        lists, fit = fitted_lists(judgements, run, queries=policy, with_judged=with_judged)
        fits[policy] = fits[policy] + fit if policy in fits else fit
        alike.setdefault(tuple(lists.query_ids), []).append(policy)
        lists_of[tuple(lists.query_ids)] = lists
    orders = [rule for rule in ORDERS if rule != "rank" or run.ranks is not None]
    for precision in precisions:
        seen = without_nan(as_seen_in(run, score_format(precision))[0], "last")
        for (queries, policies), rule in product(alike.items(), orders):
            lists = replace(lists_of[queries], scores=seen.scores, exact=seen.exact)
            order = rule_order(rule, lists.scores, run.documents.ids, run.ranks, lists.exact)
            groups = tie_groups(lists, order)
            yield [Setting(rule, precision, policy) for policy in policies], groups


def chosen_rules(columns: Sequence[PublishedColumn], runs: Sequence[Gaps]) -> list[FoundRule]:
    """Choose for each column the rule that meets most of its numbers.

    `runs` are the gaps of each run; those of one run may come in several parts.

    Among rules that meet as many, the one that also serves most other columns, and then the
    likeliest; a variant of the measure only where it meets more than what its name says.
    """
    totals = {column.name: _totals(column.name, runs) for column in columns}
    best = {name: _best_settings(total) for name, total in totals.items()}
    shared = Counter(setting for settings in best.values() for setting in settings)
    rules = []
    for column in columns:
        total, settings = totals[column.name], best[column.name]
        if not settings:
            continue  # no run has a number in it
        setting = max(settings, key=lambda setting: shared[setting])  # the first of the best
        measure = max(
            (measure for own, measure in total if own == setting),
            key=lambda measure: total[setting, measure][0],
        )
        met, _, gap = total[setting, measure]
        of = max(held for _, held, _ in total.values())
        stated, equal = column.measure, tuple(settings)
        rules.append(FoundRule(column.name, stated, measure, setting, met, of, gap, equal))
    return rules


_Totals = dict[tuple[Setting, Measure], tuple[int, int, float]]


def _totals(column: str, runs: Sequence[Gaps]) -> _Totals:
    """Numbers met, numbers held against, and the largest gap, per setting and variant."""
    totals: _Totals = {}
    for gaps in runs:
        for key, (met, gap) in gaps.get(column, {}).items():
            before, held, largest = totals.get(key, (0, 0, 0.0))
            totals[key] = before + met, held + 1, max(largest, gap)
    return totals


def _best_settings(total: _Totals) -> list[Setting]:
    most = max((met for met, _, _ in total.values()), default=0)
    return list(dict.fromkeys(s for (s, _), (met, _, _) in total.items() if met == most))


def disagreement(rules: Sequence[FoundRule]) -> list[str]:
    """Say which columns need which setting, where none serves all of them."""
    met = [rule for rule in rules if rule.met]
    if not met or set.intersection(*(set(rule.equally_good) for rule in met)):
        return []
    columns: dict[Setting, list[str]] = {}
    for rule in met:
        columns.setdefault(rule.setting, []).append(rule.column)
    needs = [f"{', '.join(own)}: {setting}" for setting, own in columns.items()]
    return [
        f"no rule serves all columns, so the board describes {len(columns)} different rankings; "
        + "; ".join(needs)
    ]


def unmet(rules: Sequence[FoundRule]) -> list[str]:
    """Say which columns keep numbers that no rule gives."""
    return [
        f"{rule.column}: no rule gives {counted(rule.of - rule.met, 'number')} of {rule.of}; with "
        f"{rule.measure}, {rule.setting}, the largest gap is {rule.largest_gap:.4f}"
        for rule in rules
        if rule.met < rule.of
    ]
