"""Which rule made these numbers: tie order, score precision, queries and variant of a measure.

A published column is compared with every combination. Lists and tie groups are built once per
run, precision and tie rule; the variants of a measure only read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

import numpy as np

from deadheat._internal.remarks import Remark, note, warning
from deadheat.comparison.leaderboard.entries import Workers, read_parts
from deadheat.comparison.leaderboard.published import Cell, PublishedBoard, PublishedColumn
from deadheat.comparison.leaderboard.sources import Source
from deadheat.evaluation import views_of
from deadheat.formats import Judgements, Run
from deadheat.measures import Measure
from deadheat.settings import QUERY_POLICIES, SCORE_PRECISIONS, EvalSettings
from deadheat.ties import (
    Floats,
    JudgedLists,
    MatchReport,
    TieGroups,
    build_groups,
    match_lists,
    prepare_scores,
)

ORDERS = ("id_desc", "id_asc", "input", "rank")
"""Tie rules to try, the likeliest first; that of pytrec_eval is id_desc on float32 scores."""
PRECISIONS = ((None, "float32"), ("fp16", "bf16"))
"""Score precisions to try: the second pair only where the first leaves a number unmet."""
PERSISTENCE = (0.5, 0.8, 0.9, 0.95)
"""Values of RBP's p to try where a heading does not name one."""
ASPECTS = {"score_dtype": "score precision", "tie_break": "tie order", "queries": "queries"}
"""What a setting consists of."""
_MOST_GRADES = 6
Gaps = dict[str, dict[tuple[EvalSettings, Measure], tuple[bool, float]]]
"""Per column, setting and variant: whether the number of a run is met, and how far off it is."""


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
        words = {aspect: ASPECTS[aspect] for aspect in undetermined}
        orders = list(dict.fromkeys(setting.tie_order for setting in self.candidates))
        if len(orders) == 2:
            words["tie_break"] += f" ({orders[0]} or {orders[1]})"
        return (
            f"{text}; {' and '.join(words.values())} not determined by these numbers "
            f"({len(self.candidates)} settings agree), the shortest is: {describe(self.setting)}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
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


def is_known(met: int, of: int) -> bool:
    """Whether the definition of published numbers is known: a rule meets more than half of them.

    A few unmet numbers among many may be mistakes. Where most are unmet, those that are met may
    be so by chance, and the evaluator computed something else.
    """
    return 2 * met > of


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
class Plan:
    """What is evaluated, and how."""

    settings: dict[Measure, EvalSettings]
    columns: dict[Measure, PublishedColumn] = field(default_factory=dict)
    """Where each measure is published, if it is."""
    rules: list[FoundRule] = field(default_factory=list)
    """What the columns were found to be, where that was searched for."""
    failures: dict[str, str] = field(default_factory=dict)
    """Runs that could not be read in the search, and why."""
    remarks: tuple[Remark, ...] = ()


def plan_given(
    board: PublishedBoard, asked: Sequence[Measure] | None, setting: EvalSettings
) -> Plan:
    """Plan to evaluate all measures of a board, or those asked for, under one setting."""
    columns: dict[Measure, PublishedColumn] = {}
    for column in board.columns:
        columns.setdefault(column.measure, column)
    measures = list(columns) if asked is None else asked
    published = {measure: columns[measure] for measure in measures if measure in columns}
    return Plan(dict.fromkeys(measures, setting), published)


def plan_found(
    board: PublishedBoard,
    rows: Mapping[str, str],
    asked: Sequence[Measure] | None,
    sources: Sequence[Source],
    judgements: Judgements,
    workers: Workers,
) -> Plan:
    """Plan to evaluate all measures of a board, or those asked for, as the board was made.

    Parameters
    ----------
    rows
        The board's names of the runs that are in it.
    workers
        Read the runs.
    """
    grades = np.unique(judgements.grades[judgements.grades > 0]).tolist()
    readings = {
        column.name: [
            measure
            for measure in variants(column.measure, grades)
            if asked is None or column.measure in asked or measure in asked
        ]
        for column in board.columns
    }
    columns = [column for column in board.columns if readings[column.name]]
    listed = [source for source in sources if source.name in rows]

    def find_gaps(source: Source, precisions: Sequence[str | None]) -> Gaps:
        row = rows[source.name]
        numbers = {c.name: c.cells[row] for c in columns if row in c.cells}
        parts = read_parts(source, judgements, with_ranks=True)
        return _find_gaps(parts, judgements, numbers, readings, precisions)

    rules: list[FoundRule] = []
    failures: dict[str, str] = {}
    gaps: list[Gaps] = []
    for precisions in PRECISIONS:
        find = partial(find_gaps, precisions=precisions)
        found, failed = workers.apply(find, listed, "finding the rule")
        failures |= failed
        gaps += found.values()
        rules = _choose_rules(columns, gaps)
        if all(rule.met == rule.of for rule in rules):
            break
        listed = [source for source in listed if source.name not in failures]

    remarks = _note_disagreement(rules)
    by_measure: dict[Measure, FoundRule] = {}
    for rule in rules:
        first = by_measure.setdefault(rule.measure, rule)
        if first is not rule:
            pattern = "the columns {one} and {other} are both {measure}: the second is left out"
            names = {"one": first.column, "other": rule.column}
            remarks.append(warning(pattern, measure=repr(rule.measure), **names))
    variant = {rule.stated: measure for measure, rule in by_measure.items()}
    measures = list(by_measure) if asked is None else [variant.get(m, m) for m in asked]
    met = [rule.setting for rule in by_measure.values() if rule.known]
    usual = max(met, key=met.count) if met else EvalSettings()  # for what the board does not have
    named = {column.name: column for column in columns}
    return Plan(
        {m: by_measure[m].setting if m in by_measure else usual for m in measures},
        {m: named[by_measure[m].column] for m in measures if m in by_measure},
        rules,
        failures,
        tuple(remarks),
    )


def _note_disagreement(rules: Sequence[FoundRule]) -> list[Remark]:
    """Note which columns need which setting, where none serves all of them."""
    met = [rule for rule in rules if rule.known]
    if not met or set.intersection(*(set(rule.equally_good) for rule in met)):
        return []
    columns: dict[EvalSettings, list[str]] = {}
    for rule in met:
        columns.setdefault(rule.setting, []).append(rule.column)
    needs = [f"{', '.join(own)}: {setting}" for setting, own in columns.items()]
    return [
        note(
            f"no rule serves all columns, so the board describes {len(columns)} different "
            f"rankings; {'; '.join(needs)}"
        )
    ]


def variants(measure: Measure, grades: Sequence[float]) -> list[Measure]:
    """Return all readings of a measure's name, that which it says first.

    Parameters
    ----------
    grades
        The positive grades of the judgements; each may be the lowest relevant one.

    Examples
    --------
    >>> from deadheat.measures import parse_measure
    >>> variants(parse_measure("nDCG@20"), [1.0, 2.0])
    [nDCG@20, nDCG(gain='exp')@20]
    >>> variants(parse_measure("P@5"), [1.0, 2.0])
    [Precision@5, Precision(rel=2)@5]
    """
    choices: dict[str, list[object]] = {}
    for name, declared in measure.parameters().items():
        own = getattr(measure, name)
        others: list[object] = list(declared.choices)
        if name == "rel" and own is None:  # the lowest grade is in None; whole grades as integers
            others = [int(g) if g == int(g) else g for g in sorted(grades)[1:_MOST_GRADES]]
        elif name == "p" and own == declared.default:
            others = list(PERSISTENCE)
        choices[name] = [own, *(other for other in others if other != own)]
    combined = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    return [measure(**parameters) for parameters in combined]


def _find_gaps(
    parts: Iterable[tuple[Judgements, Run]],
    judgements: Judgements,
    numbers: Mapping[str, Cell],
    readings: Mapping[str, Sequence[Measure]],
    precisions: Sequence[str | None],
) -> Gaps:
    """Compare the published numbers of one run with every setting and variant.

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
    values: dict[tuple[EvalSettings, Measure], list[Floats]] = {}
    reports: dict[str, MatchReport] = {}
    n_parts = 0
    for own, run in parts:
        n_parts += 1
        for settings, groups in _rank_all(run, own, precisions, wanted, reports):
            ranked = replace(groups, top_grade=top_grade)
            for measure, views in views_of(ranked, wanted).items():
                for setting in settings:
                    values.setdefault((setting, measure), []).append(views.oblivious)
    for report in reports.values():
        report.check(judgements, run.source)
    means = {
        key: float(np.concatenate(of_parts).mean())
        for key, of_parts in values.items()
        if len(of_parts) == n_parts  # not every part may have ranks
    }
    return {
        column: {
            key: (cell.met_by(mean), abs(mean - cell.value))
            for key, mean in means.items()
            if key[1] in readings[column]
        }
        for column, cell in numbers.items()
    }


def _rank_all(
    run: Run,
    judgements: Judgements,
    precisions: Sequence[str | None],
    measures: Iterable[Measure],
    reports: dict[str, MatchReport],
) -> Iterator[tuple[list[EvalSettings], TieGroups]]:
    """Yield the tie groups of a run under every setting, with the settings that give them.

    How the run matches the judgements is added to `reports`, by the policy of queries.
    """
    with_judged = any(measure.needs_judged for measure in measures)
    alike: dict[tuple[str, ...], tuple[JudgedLists, list[str]]] = {}
    for policy in QUERY_POLICIES:
        lists, report = match_lists(judgements, run, queries=policy, with_judged=with_judged)
        reports[policy] = reports[policy] + report if policy in reports else report
        alike.setdefault(tuple(lists.query_ids), (lists, []))[1].append(policy)
    orders = [rule for rule in ORDERS if rule != "rank" or run.ranks is not None]
    for precision in precisions:
        seen, _ = prepare_scores(run, EvalSettings(score_dtype=precision, nan="last"))
        for (lists, policies), rule in product(alike.values(), orders):
            settings = [EvalSettings(rule, queries=p, score_dtype=precision) for p in policies]
            yield settings, build_groups(lists._replace(run=seen), EvalSettings(rule))


def _choose_rules(columns: Sequence[PublishedColumn], runs: Sequence[Gaps]) -> list[FoundRule]:
    """Choose for each column the rule that meets most of its numbers.

    Among rules that meet as many, the one that also serves most other columns, and then the
    one with most defaults; a variant of the measure only where it meets more than what its name
    says. `runs` are the gaps of each run; those of one run may come in several parts.
    """
    policies = _distinct_policies(runs)
    totals: dict[str, dict[tuple[EvalSettings, Measure], tuple[int, int, float]]] = {}
    best: dict[str, list[EvalSettings]] = {}
    shared: Counter[EvalSettings] = Counter()
    for column in columns:
        total = totals[column.name] = {}
        for gaps in runs:
            for key, (is_met, gap) in gaps.get(column.name, {}).items():
                if key[0].queries in policies:
                    met, of, largest = total.get(key, (0, 0, 0.0))
                    total[key] = met + is_met, of + 1, max(largest, gap)
        most = max((met for met, _, _ in total.values()), default=0)
        settings = [setting for (setting, _), (met, _, _) in total.items() if met == most]
        best[column.name] = list(dict.fromkeys(settings))
        if any(is_known(met, of) for met, of, _ in total.values()):
            shared.update(best[column.name])
    rules = []
    for column in columns:
        total, settings = totals[column.name], best[column.name]
        if not settings:
            continue  # no run has a number in it
        most = max(shared[setting] for setting in settings)
        candidates = tuple(setting for setting in settings if shared[setting] == most)
        setting = min(candidates, key=_n_choices)  # the first of these
        measure = max(
            (measure for own, measure in total if own == setting),
            key=lambda measure: total[setting, measure][0],
        )
        met, _, gap = total[setting, measure]
        of = max(n for _, n, _ in total.values())
        found = column.measure, measure, setting, met, of, gap, tuple(settings), candidates
        rules.append(FoundRule(column.name, *found))
    return rules


def _n_choices(settings: EvalSettings) -> int:
    """Count the aspects in which settings are not the defaults."""
    return sum(getattr(settings, name) != getattr(EvalSettings, name) for name in ASPECTS)


def _distinct_policies(runs: Sequence[Gaps]) -> list[str]:
    """Return the policies of queries that differ from all before them in some number.

    Where every run has every judged query, all of them choose the same queries.
    """
    distinct: dict[str, list[dict[tuple[EvalSettings, Measure], tuple[bool, float]]]] = {}
    for policy in QUERY_POLICIES:
        own = [
            {
                (replace(s, queries="judged"), m): gap
                for (s, m), gap in gaps.items()
                if s.queries == policy
            }
            for run in runs
            for gaps in run.values()
        ]
        if own not in distinct.values():
            distinct[policy] = own
    return list(distinct)
