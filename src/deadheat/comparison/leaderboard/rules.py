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
from deadheat.evaluation import views_of
from deadheat.evaluation.views import need_judged
from deadheat.formats import Judgements, Run
from deadheat.measures import Measure
from deadheat.settings import QUERY_POLICIES, SCORE_PRECISIONS, EvalSettings
from deadheat.ties import TieGroups, build_groups
from deadheat.ties.groups import Floats
from deadheat.ties.lists import JudgedLists, MatchReport, match_lists
from deadheat.ties.scores import prepare_scores

ORDERS = ("id_desc", "id_asc", "input", "rank")
"""Tie rules to try, the likeliest first; that of pytrec_eval is id_desc on float32 scores."""
PRECISIONS = ((None, "float32"), ("fp16", "bf16"))
"""Score precisions to try: the second lot only where the first leaves a number unmet."""
PERSISTENCE = (0.5, 0.8, 0.9, 0.95)
"""Values of RBP's p to try where a heading does not name one."""
ASPECTS = {"score_dtype": "score precision", "tie_break": "tie order", "queries": "queries"}
"""What a setting consists of."""
_MOST_GRADES = 6


def is_known(met: int, of: int) -> bool:
    """Whether the definition of published numbers is known: a rule meets more than half of them.

    A few unmet numbers among many may be mistakes. Where most are unmet, those that are met may
    be so by chance, and the evaluator computed something else.
    """
    return 2 * met > of


def n_choices(settings: EvalSettings) -> int:
    """Count the aspects in which settings are not the defaults."""
    return sum(getattr(settings, name) != getattr(EvalSettings, name) for name in ASPECTS)


def describe(settings: EvalSettings, aspects: Iterable[str] = ASPECTS) -> str:
    """Describe how an evaluator ranks and averages, or aspects of it.

    The default choice of queries is not mentioned.
    """
    dtype = settings.score_dtype
    names = {format: word for word, format in SCORE_PRECISIONS.items()}
    words = {
        "score_dtype": f"{names[dtype]} scores" if dtype else "scores as given",
        "tie_break": f"ties by {settings.tie_order}",
        "queries": "" if settings.queries == "judged" else f"queries={settings.queries!r}",
    }
    return ", ".join(words[name] for name in aspects if words[name])


@dataclass(frozen=True)
class FoundRule:
    """What a published column was found to be."""

    column: str
    """Its heading."""
    stated: Measure
    """What the heading says."""
    measure: Measure
    """The variant of it that meets most of the numbers."""
    setting: EvalSettings
    met: int
    """Published numbers that this rule gives, to their printed digits."""
    of: int
    """Published numbers of runs that could be read."""
    largest_gap: float
    """The largest distance between a published number and what the rule gives."""
    equally_good: tuple[EvalSettings, ...]
    """All settings that meet as many."""
    candidates: tuple[EvalSettings, ...]
    """Those of them that serve most of the columns: what all columns together leave open."""

    @property
    def known(self) -> bool:
        """Whether the definition of the column is known; see `is_known`."""
        return is_known(self.met, self.of)

    @property
    def undetermined(self) -> list[str]:
        """Parts of the setting, of `ASPECTS`, in which the candidates differ."""
        return [a for a in ASPECTS if len({getattr(s, a) for s in self.candidates}) > 1]

    def __str__(self) -> str:
        if not self.known:
            return (
                f"{self.column}: definition unknown, no rule meets more than {self.met} of "
                f"{self.of} numbers; evaluated here as {self.measure}, {describe(self.setting)}"
            )
        undetermined = self.undetermined
        determined = describe(self.setting, (a for a in ASPECTS if a not in undetermined))
        rule = f"{self.measure}, {determined}" if determined else f"{self.measure}"
        text = f"{self.column}: {self.met} of {self.of} met with {rule}"
        if not undetermined:
            return text
        what = " and ".join(map(self._undetermined_words, undetermined))
        return (
            f"{text}; {what} not determined by these numbers ({len(self.candidates)} settings "
            f"agree), the shortest is: {describe(self.setting)}"
        )

    def _undetermined_words(self, aspect: str) -> str:
        """Name a part of the setting; of only two tie orders that agree, also name these."""
        orders = list(dict.fromkeys(s.tie_order for s in self.candidates))
        two = f" ({orders[0]} or {orders[1]})" if len(orders) == 2 else ""
        return ASPECTS[aspect] + (two if aspect == "tie_break" else "")

    def to_dict(self) -> dict[str, Any]:
        """Give plain values."""
        return {
            **vars(self),
            "stated": repr(self.stated),
            "measure": repr(self.measure),
            "setting": vars(self.setting),
            "equally_good": [vars(setting) for setting in self.equally_good],
            "candidates": [vars(setting) for setting in self.candidates],
            "known": self.known,
            "undetermined": self.undetermined,
        }


Gaps = dict[str, dict[tuple[EvalSettings, Measure], tuple[bool, float]]]
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
    values: dict[EvalSettings, dict[Measure, list[Floats]]] = {}
    reports: dict[str, MatchReport] = {}
    n_parts = 0
    for own, run in parts:
        n_parts += 1
        for settings, groups in _rankings(run, own, precisions, wanted, reports):
            ranked = replace(groups, top_grade=top_grade)
            for measure, views in views_of(ranked, wanted).items():
                for setting in settings:
                    values.setdefault(setting, {}).setdefault(measure, []).append(views.oblivious)
    for report in reports.values():
        report.check(judgements, run.source)
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
    reports: dict[str, MatchReport],
) -> Iterator[tuple[list[EvalSettings], TieGroups]]:
    """Tie groups of a run under every setting; settings that rank the same queries together.

    How it reports the judgements is added to `reports`, by the policy of queries.
    """
    with_judged = need_judged(measures)
    alike: dict[tuple[str, ...], list[str]] = {}
    lists_of: dict[tuple[str, ...], JudgedLists] = {}
    for policy in QUERY_POLICIES:
        lists, report = match_lists(judgements, run, queries=policy, with_judged=with_judged)
        reports[policy] = reports[policy] + report if policy in reports else report
        alike.setdefault(tuple(lists.query_ids), []).append(policy)
        lists_of[tuple(lists.query_ids)] = lists
    orders = [rule for rule in ORDERS if rule != "rank" or run.ranks is not None]
    for precision in precisions:
        seen, _ = prepare_scores(run, EvalSettings(score_dtype=precision, nan="last"))
        for (queries, policies), rule in product(alike.items(), orders):
            groups = build_groups(lists_of[queries]._replace(run=seen), EvalSettings(rule))
            yield (
                [EvalSettings(rule, queries=policy, score_dtype=precision) for policy in policies],
                groups,
            )


def chosen_rules(columns: Sequence[PublishedColumn], runs: Sequence[Gaps]) -> list[FoundRule]:
    """Choose for each column the rule that meets most of its numbers.

    `runs` are the gaps of each run; those of one run may come in several parts.

    Among rules that meet as many, the one that also serves most other columns, and then the
    shortest; a variant of the measure only where it meets more than what its name says.
    """
    policies = _distinct_policies(runs)
    totals = {column.name: _totals(column.name, runs, policies) for column in columns}
    best = {name: _best_settings(total) for name, total in totals.items()}
    shared = Counter(s for name, own in best.items() if _met_by_most(totals[name]) for s in own)
    rules = []
    for column in columns:
        total, settings = totals[column.name], best[column.name]
        if not settings:
            continue  # no run has a number in it
        most = max(shared[setting] for setting in settings)
        candidates = tuple(setting for setting in settings if shared[setting] == most)
        setting = min(candidates, key=n_choices)  # the first of these
        measure = max(
            (measure for own, measure in total if own == setting),
            key=lambda measure: total[setting, measure][0],
        )
        met, _, gap = total[setting, measure]
        of = max(held for _, held, _ in total.values())
        found = column.measure, measure, setting, met, of, gap, tuple(settings), candidates
        rules.append(FoundRule(column.name, *found))
    return rules


def _distinct_policies(runs: Sequence[Gaps]) -> list[str]:
    """Give the policies of queries that differ from all before them in some number.

    Where every run has every judged query, all of them choose the same queries.
    """

    def alike(one: str, other: str) -> bool:
        return all(
            gap == gaps.get((replace(setting, queries=other), measure))
            for of_run in runs
            for gaps in of_run.values()
            for (setting, measure), gap in gaps.items()
            if setting.queries == one
        )

    distinct: list[str] = []
    for policy in QUERY_POLICIES:
        if not any(alike(policy, other) for other in distinct):
            distinct.append(policy)
    return distinct


_Totals = dict[tuple[EvalSettings, Measure], tuple[int, int, float]]


def _totals(column: str, runs: Sequence[Gaps], policies: Sequence[str]) -> _Totals:
    """Numbers met, numbers held against, and the largest gap, per setting and variant."""
    totals: _Totals = {}
    for gaps in runs:
        for key, (met, gap) in gaps.get(column, {}).items():
            if key[0].queries not in policies:
                continue
            before, held, largest = totals.get(key, (0, 0, 0.0))
            totals[key] = before + met, held + 1, max(largest, gap)
    return totals


def _best_settings(total: _Totals) -> list[EvalSettings]:
    most = max((met for met, _, _ in total.values()), default=0)
    return list(dict.fromkeys(s for (s, _), (met, _, _) in total.items() if met == most))


def _met_by_most(total: _Totals) -> bool:
    """Whether some rule meets most of the numbers of a column."""
    return any(is_known(met, held) for met, held, _ in total.values())


def disagreement(rules: Sequence[FoundRule]) -> list[str]:
    """Say which columns need which setting, where none serves all of them."""
    met = [rule for rule in rules if rule.known]
    if not met or set.intersection(*(set(rule.equally_good) for rule in met)):
        return []
    columns: dict[EvalSettings, list[str]] = {}
    for rule in met:
        columns.setdefault(rule.setting, []).append(rule.column)
    needs = [f"{', '.join(own)}: {setting}" for setting, own in columns.items()]
    return [
        f"no rule serves all columns, so the board describes {len(columns)} different rankings; "
        + "; ".join(needs)
    ]
