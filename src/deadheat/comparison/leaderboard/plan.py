"""What is evaluated, and how: measures, the setting of each, the column it is published in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from deadheat.comparison.leaderboard import rules as search
from deadheat.comparison.leaderboard.entries import Work, parts_of
from deadheat.comparison.leaderboard.published import PublishedBoard, PublishedColumn
from deadheat.comparison.leaderboard.rules import FoundRule, Gaps
from deadheat.comparison.leaderboard.sources import Source
from deadheat.formats import Judgements
from deadheat.measures import Measure
from deadheat.remarks import Remark, note, warning
from deadheat.settings import EvalSettings


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


def plan_told(
    board: PublishedBoard, asked: Sequence[Measure] | None, setting: EvalSettings
) -> Plan:
    """Evaluate all measures of a board, or those asked for, as told."""
    columns = {column.measure: column for column in reversed(board.columns)}
    stated = dict.fromkeys(column.measure for column in board.columns)
    measures = list(stated) if asked is None else list(asked)
    published = {measure: columns[measure] for measure in measures if measure in columns}
    return Plan(dict.fromkeys(measures, setting), published)


def plan_found(
    board: PublishedBoard,
    rows: Mapping[str, str],
    asked: Sequence[Measure] | None,
    sources: Sequence[Source],
    judgements: Judgements,
    work: Work[Gaps],
) -> Plan:
    """Evaluate all measures of a board, or those asked for, as it was made.

    Parameters
    ----------
    rows
        The board's names of the runs that are in it.
    work
        Applies a function to every run.
    """
    grades = np.unique(judgements.grades[judgements.grades > 0]).tolist()
    readings = {column.name: _readings(column, asked, grades) for column in board.columns}
    columns = [column for column in board.columns if readings[column.name]]
    listed = [source for source in sources if source.name in rows]

    def gaps(source: Source, precisions: Sequence[str | None]) -> Gaps:
        row = rows[source.name]
        numbers = {c.name: c.cells[row] for c in columns if row in c.cells}
        parts = parts_of(source, judgements, with_ranks=True)
        return search.gaps_of(parts, judgements, numbers, readings, precisions)

    rules: list[FoundRule] = []
    failures: dict[str, str] = {}
    held: list[Gaps] = []
    for precisions in search.PRECISIONS:
        of_runs, failed = work(partial(gaps, precisions=precisions), listed, "finding the rule")
        failures |= failed
        held += of_runs.values()
        rules = search.chosen_rules(columns, held)
        if all(rule.met == rule.of for rule in rules):
            break
        listed = [source for source in listed if source.name not in failures]
    remarks = [note(text) for text in search.disagreement(rules)]
    return _planned(board, asked, rules, failures, remarks)


def _readings(
    column: PublishedColumn, asked: Sequence[Measure] | None, grades: Sequence[float]
) -> list[Measure]:
    """What a column may be: every variant of its measure, or those of them that were asked for."""
    every = search.variants(column.measure, grades)
    if asked is None or column.measure in asked:
        return every
    return [measure for measure in every if measure in asked]


def _planned(
    board: PublishedBoard,
    asked: Sequence[Measure] | None,
    rules: Sequence[FoundRule],
    failures: dict[str, str],
    remarks: list[Remark],
) -> Plan:
    """Put the rules that were found together with what was asked for."""
    columns = {column.name: column for column in board.columns}
    by_measure: dict[Measure, FoundRule] = {}
    for rule in rules:
        first = by_measure.setdefault(rule.measure, rule)
        if first is not rule:
            pattern = "the columns {one} and {other} are both {measure}: the second is left out"
            names = {"one": first.column, "other": rule.column}
            remarks.append(warning(pattern, measure=repr(rule.measure), **names))
    found = {rule.stated: measure for measure, rule in by_measure.items()}
    measures = list(by_measure) if asked is None else [found.get(m, m) for m in asked]
    met = [rule.setting for rule in by_measure.values() if rule.known]
    usual = max(met, key=met.count) if met else EvalSettings()  # for what the board does not have
    return Plan(
        {m: by_measure[m].setting if m in by_measure else usual for m in measures},
        {m: columns[by_measure[m].column] for m in measures if m in by_measure},
        list(rules),
        failures,
        tuple(remarks),
    )
