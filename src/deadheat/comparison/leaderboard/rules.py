"""Find the rule behind published numbers: tie order, score precision, queries, measure variant.

The mean of every run is computed under every setting and in every variant, and compared with the
published columns. Lists and tie groups are built once per run, precision and tie rule, and reused
for all variants of a measure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from deadheat._internal.remarks import Remark, note, warning
from deadheat.comparison.leaderboard.entries import ApplyToRuns
from deadheat.comparison.leaderboard.published import (
    PublishedBoard,
    PublishedColumn,
    is_met,
    select_rows,
)
from deadheat.errors import InputError
from deadheat.evaluation import run_parts, views_of
from deadheat.formats import Judgements, Run, RunLike, is_folder, read_run, run_folder
from deadheat.measures import Measure
from deadheat.settings import QUERY_POLICIES, SCORE_PRECISIONS, EvalSettings
from deadheat.ties import Floats, MatchReport, build_groups, match_lists, prepare_scores

ORDERS = ("input", "id_desc", "id_asc", "rank")
"""Tie rules to try, the default first; pytrec_eval's rule is id_desc on float32 scores."""
PRECISIONS = (None, "float32", "fp16", "bf16")
"""Score precisions to try; the last two only if the first two do not reproduce all numbers."""
PERSISTENCE = (0.5, 0.8, 0.9, 0.95)
"""Values of RBP's p to try if a heading does not name one."""
ASPECTS = {"score_dtype": "score precision", "tie_break": "tie order", "queries": "queries"}
"""The parts of a setting, and their names."""
_MOST_GRADES = 6


@dataclass(frozen=True)
class FoundRule:
    """The rule that was found for a published column."""

    column: str
    """Its heading."""
    stated: Measure
    """The measure that the heading names."""
    measure: Measure
    """The variant of this measure that reproduces most of the numbers."""
    setting: EvalSettings
    met: int
    """Count of published numbers that this rule reproduces to their printed digits."""
    of: int
    """Count of published numbers of runs that could be read."""
    candidates: tuple[EvalSettings, ...]
    """Settings that reproduce as many numbers, and that also fit most other columns."""

    @property
    def known(self) -> bool:
        """Whether the definition of the column is known; see `is_known`."""
        return is_known(self.met, self.of)

    @property
    def undetermined(self) -> list[str]:
        """Names, out of `ASPECTS`, of the parts of the setting in which the candidates differ."""
        return [a for a in ASPECTS if len({getattr(s, a) for s in self.candidates}) > 1]

    def __str__(self) -> str:
        numbers, used = f"{self.met} of {self.of}", describe(self.setting)
        if not self.known:
            return (
                f"{self.column}: definition unknown, no rule meets more than {numbers} numbers; "
                f"evaluated here as {self.measure}, {used}"
            )
        undetermined = {aspect: ASPECTS[aspect] for aspect in self.undetermined}
        words = _aspect_words(self.setting).items()
        rule = [repr(self.measure), *(word for aspect, word in words if aspect not in undetermined)]
        text = f"{self.column}: {numbers} met with {', '.join(rule)}"
        if not undetermined:
            return text
        orders = list(dict.fromkeys(setting.tie_order for setting in self.candidates))
        if len(orders) == 2:
            undetermined["tie_break"] += f" ({orders[0]} or {orders[1]})"
        return (
            f"{text}; {' and '.join(undetermined.values())} not determined by these numbers "
            f"({len(self.candidates)} settings agree); used here: {used}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers, lists and strings."""
        return {
            **vars(self),
            "stated": repr(self.stated),
            "measure": repr(self.measure),
            "setting": vars(self.setting),
            "candidates": [vars(setting) for setting in self.candidates],
            "known": self.known,
            "undetermined": self.undetermined,
        }


def is_known(met: int, of: int) -> bool:
    """Return whether the definition is known: a rule reproduces more than half of the numbers.

    If few numbers are not reproduced, they may be mistakes. If most are not reproduced, the others
    may match by chance: the evaluator probably computed something else.
    """
    return 2 * met > of


def describe(settings: EvalSettings) -> str:
    """Describe settings in words."""
    return ", ".join(_aspect_words(settings).values())


def _aspect_words(settings: EvalSettings) -> dict[str, str]:
    """Return words for each of `ASPECTS`; the default choice of queries needs none."""
    dtype = settings.score_dtype
    names = {format: word for word, format in SCORE_PRECISIONS.items()}
    words = {
        "score_dtype": f"{names[dtype]} scores" if dtype else "scores as given",
        "tie_break": f"ties {settings.in_tie_order}",
    }
    if settings.queries != "judged":
        words["queries"] = f"queries={settings.queries!r}"
    return words


def find_rules(
    board: PublishedBoard,
    rows: Mapping[str, int],
    asked: Sequence[Measure] | None,
    runs: Mapping[str, RunLike],
    judgements: Judgements,
    apply_to_runs: ApplyToRuns,
) -> tuple[list[FoundRule], dict[str, str]]:
    """Find the rule of each published column; also return the runs that could not be read, and why.

    Parameters
    ----------
    rows
        A dict from the names of the runs to their rows in the board.
    asked
        Measures to find the rules of. Default: all of the board.
    apply_to_runs
        Function that applies a function to runs.
    """
    grades = np.unique(judgements.grades[judgements.grades > 0]).tolist()
    readings = {}
    for column in board.columns:
        own = variants(column.measure, grades)
        if asked is not None and column.measure not in asked:
            own = [measure for measure in own if measure in asked]
        if own:
            readings[column] = own
    measures = list(dict.fromkeys(measure for own in readings.values() for measure in own))
    listed = {name: run for name, run in runs.items() if name in rows}
    rules: list[FoundRule] = []
    for precisions in (PRECISIONS[:2], PRECISIONS):
        choices = product(precisions, ORDERS, QUERY_POLICIES)
        settings = [EvalSettings(o, queries=q, score_dtype=p) for p, o, q in choices]
        find = partial(_find_means, judgements=judgements, measures=measures, precisions=precisions)
        means, failures = apply_to_runs(find, listed, "finding the rule")
        if not means:
            break
        own_rows = [rows[name] for name in means]
        stacked = np.array(list(means.values()))
        rules = _choose_rules(readings, own_rows, settings, measures, stacked)
        if all(rule.met == rule.of for rule in rules):
            break
    return rules, failures


def choose_settings(
    rules: Sequence[FoundRule], asked: Sequence[Measure] | None
) -> dict[Measure, EvalSettings]:
    """Return the measures to evaluate and their settings: those of the rules, else the usual one.

    A measure is replaced by the variant that reproduces its published numbers.
    """
    found: dict[Measure, FoundRule] = {}
    for rule in rules:
        found.setdefault(rule.measure, rule)
    variant = {rule.stated: rule.measure for rule in reversed(rules)}
    known = [rule.setting for rule in rules if rule.known]
    usual = max(known, key=known.count) if known else EvalSettings()
    chosen = found if asked is None else [variant.get(measure, measure) for measure in asked]
    return {m: found[m].setting if m in found else usual for m in chosen}


def describe_conflicts(rules: Sequence[FoundRule]) -> list[Remark]:
    """Describe columns of the same measure, and columns that no common setting fits."""
    remarks = []
    first: dict[Measure, str] = {}
    for rule in rules:
        if (column := first.setdefault(rule.measure, rule.column)) != rule.column:
            both = f"{column} and {rule.column} are both {rule.measure}"
            remarks.append(warning(f"the columns {both}: the second is ignored"))
    known = [rule for rule in rules if rule.known]
    if known and not set.intersection(*(set(rule.candidates) for rule in known)):
        columns: dict[str, list[str]] = {}
        for rule in known:
            columns.setdefault(describe(rule.setting), []).append(rule.column)
        needs = "; ".join(f"{', '.join(own)}: {setting}" for setting, own in columns.items())
        different = f"so the board describes {len(columns)} different rankings"
        remarks.append(note(f"no rule fits all columns, {different}; {needs}"))
    return remarks


def variants(measure: Measure, grades: Sequence[float]) -> list[Measure]:
    """Return all variants that a measure's name may mean, the literal one first.

    Parameters
    ----------
    grades
        The positive grades of the judgements; each may be the lowest relevant grade.

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
        if name == "rel" and own is None:  # None means the lowest grade; whole grades as integers
            others = [int(g) if g == int(g) else g for g in sorted(grades)[1:_MOST_GRADES]]
        elif name == "p" and own == declared.default:
            others = list(PERSISTENCE)
        choices[name] = [own, *(other for other in others if other != own)]
    combined = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
    return [measure(**parameters) for parameters in combined]


def _find_means(
    source: RunLike,
    judgements: Judgements,
    measures: Sequence[Measure],
    precisions: Sequence[str | None],
) -> Floats:
    """Return the means of a run: a row per precision, tie order and policy, a column per measure.

    They are NaN for the order by ranks if the run has no ranks.
    """
    with_judged = any(measure.needs_judged for measure in measures)
    report, is_listed, parts = MatchReport(), [], []
    for own, run in _read_parts(source, judgements):
        lists, found = match_lists(own, run, queries="all", with_judged=with_judged)
        report += found
        is_listed += [query in run.query_index for query in lists.query_ids]
        part = np.full((len(precisions), len(ORDERS), len(measures), len(lists.query_ids)), np.nan)
        for i, precision in enumerate(precisions):
            rounded, _ = prepare_scores(run, EvalSettings(score_dtype=precision, nan="last"))
            for j, rule in enumerate(ORDERS):
                if rule != "rank" or run.ranks is not None:
                    groups = build_groups(lists._replace(run=rounded), EvalSettings(rule))
                    part[i, j] = [views.oblivious for views in views_of(groups, measures).values()]
        parts.append(part)
    n_relevant = int(judgements.has_relevant.sum())
    replace(report, counted=n_relevant).check(judgements, run.source)
    values = np.concatenate(parts, axis=-1)
    counted = {
        "judged": judgements.has_relevant,
        "intersection": np.array(is_listed),
        "all": np.ones(len(is_listed), np.bool_),
    }
    means = [values.compress(counted[policy], axis=-1).mean(axis=-1) for policy in QUERY_POLICIES]
    return np.stack(means, axis=2).reshape(-1, len(measures))


def _read_parts(source: RunLike, judgements: Judgements) -> Iterator[tuple[Judgements, Run]]:
    """Read a run with its ranks, if it has any; yield it in parts that fit in memory."""
    if is_folder(source):
        yield from run_parts(judgements, run_folder(source))
        return
    try:
        run = read_run(source, with_ranks=True)
    except InputError:
        run = read_run(source)
    yield judgements, run


def _choose_rules(
    readings: Mapping[PublishedColumn, Sequence[Measure]],
    rows: Sequence[int],
    settings: Sequence[EvalSettings],
    measures: Sequence[Measure],
    means: Floats,
) -> list[FoundRule]:
    """Choose for each column the rule that reproduces most of its numbers.

    Among equally good rules, prefer those that also fit most other columns, then the one that is
    tried first. A variant of the measure is chosen only if it reproduces more numbers than the
    measure that the heading names.

    Parameters
    ----------
    readings
        The variants of the measure of each column.
    rows
        Per run: its row in the board.
    means
        Per run: its means, a row per setting, a column per measure.
    """
    distinct = _find_distinct(settings, means)
    settings, means = [settings[i] for i in distinct], means[:, distinct]
    found = []
    n_columns = np.zeros(len(settings), np.int64)
    for column, variants_of in readings.items():
        own_means = means[:, :, [measures.index(measure) for measure in variants_of]]
        numbers = select_rows(column.numbers, rows)
        published, unit = numbers.select("published", "unit").to_numpy().T[:, :, None, None]
        met = is_met(own_means, published, unit).sum(axis=0)
        best = met.max(axis=1) == met.max()
        if of := numbers["published"].count():
            found.append((column, variants_of, of, met, best))
        if is_known(met.max(), of):
            n_columns += best
    rules = []
    for column, variants_of, of, met, best in found:
        candidates = np.flatnonzero(best & (n_columns == n_columns[best].max()))
        i = candidates[0]
        j = int(met[i].argmax())
        rules.append(
            FoundRule(
                column.name,
                column.measure,
                variants_of[j],
                settings[i],
                int(met[i, j]),
                of,
                tuple(settings[k] for k in candidates),
            )
        )
    return rules


def _find_distinct(settings: Sequence[EvalSettings], means: Floats) -> list[int]:
    """Return the indices of settings that can be computed and are not redundant.

    A choice of queries is redundant if it gives the same numbers as an earlier one. If every run
    has every judged query, all choices are the same.
    """
    policies: dict[str, Floats] = {}
    for policy in QUERY_POLICIES:
        own = means[:, [setting.queries == policy for setting in settings]]
        if not any(np.array_equal(own, other, equal_nan=True) for other in policies.values()):
            policies[policy] = own
    computed = np.asarray(~np.isnan(means).all(axis=(0, 2)))
    return [i for i, s in enumerate(settings) if computed[i] and s.queries in policies]
