"""Compare systems: every pair or against a baseline, and all of them in ranks."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from deadheat.comparison import statistics
from deadheat.comparison.align import aligned, check_origins, checked, named, pairs_of
from deadheat.comparison.statistics import METHODS, sign
from deadheat.errors import DeadheatWarning, InputError
from deadheat.evaluation import DEFAULT_MEASURES, evaluate
from deadheat.formats import read_qrels
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.result import Result

COLUMNS = {
    "a": "system A",
    "b": "system B",
    "measure": "what they are compared in",
    "verdict": "one of `VERDICTS`",
    "difference": "expected value of A − expected value of B",
    "std": "tie std of the difference; None if the measure has no variance (ERR)",
    "lowest": "the difference with ties broken against A and for B, worst_A − best_B",
    "highest": "the difference with ties broken for A and against B, best_A − worst_B",
    "overlap": "whether the [worst, best] intervals meet, so that some tie-breaking reverses them",
    "a_wins": "probability that A beats B under random tie-breaking",
    "b_wins": "probability that B beats A under random tie-breaking",
    "probability_method": "how these probabilities were obtained, one of `METHODS`",
    "oblivious_difference": "oblivious value of A − oblivious value of B",
    "reversed": "whether the oblivious values order the systems against the expectations",
    "p_value": "two-sided paired randomisation test over queries; None for one query",
    "p_holm": "the p-value, corrected for all pairs and measures of the comparison",
    "interval_low": "start of the bootstrap interval of the difference over queries",
    "interval_high": "end of that interval; its level is 1 − alpha",
}
"""The columns of `Comparison.pairs`."""


@dataclass(frozen=True)
class Comparison:
    """What can be said of systems against each other; printed, two tables."""

    pairs: pl.DataFrame
    """A row per pair and measure; `COLUMNS` describes the columns."""
    ranking: pl.DataFrame
    """A row per measure and system, the highest expectation first. `rank` is by expectation,
    `best_rank` and `worst_rank` are what tie-breaking can make of it, `oblivious_rank` is by
    the oblivious value; equal values share the better rank."""
    settings: dict[str, Any]
    """Level, resamples, seed, baseline, number of queries, and the origin of every system."""
    warnings: list[str]
    """What about the input changes what the comparison means."""
    notes: list[str]
    """What a reader of the comparison should know."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and strings."""
        frames = {"pairs": self.pairs.to_dicts(), "ranking": self.ranking.to_dicts()}
        return {**vars(self), **frames}

    def to_json(self) -> str:
        """Everything as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_csv(self, *, ranking: bool = False) -> str:
        """Comma-separated values in full precision: the pairs, or the ranking."""
        return (self.ranking if ranking else self.pairs).write_csv().rstrip("\n")

    def to_markdown(self, *, percent: bool = False) -> str:
        """Give two Markdown tables: pairs and ranking."""
        return self._render("markdown", percent=percent)

    def _render(self, style: str, **options: bool) -> str:
        from deadheat.report.comparison import render

        return render(self, style, **options)

    def __str__(self) -> str:
        return self._render("table")

    def __rich__(self) -> Any:
        """Let rich print the tables in colour."""
        from deadheat.report.comparison import rich_tables

        return rich_tables(self)

    def _repr_html_(self) -> str:
        return self._render("html")


def compare(
    results_or_qrels: Any,
    runs: Any = None,
    measures: str | Measure | Iterable[Any] | None = None,
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
    seed: int = 0,
    queries: str = "judged",
    **options: Any,
) -> Comparison:
    """Compare systems: ``compare(results)`` or ``compare(qrels, runs, measures)``.

    Uncertainty from ties and uncertainty from having sampled these queries are kept apart:
    the first is in the tie std, the tie interval and the probabilities of winning, the second
    in the p-value and the bootstrap interval. `deadheat.comparison.verdict` says how both
    lead to one verdict.

    Parameters
    ----------
    results_or_qrels, runs, measures
        Results of `evaluate`, in a list or under names of your choice in a dict; they are
        compared in the measures they share. Or judgements, runs in a list or dict, and
        measures, to be evaluated first.
    baseline
        Name of the system to compare all others with; all pairs unless given.
    alpha
        Level of the tests and of the bootstrap interval (1 − alpha), and how likely random
        tie-breaking may at most be to reverse two systems that ties are said to leave in order.
    resamples, seed
        Sign flips of the randomisation test and samples of the bootstrap; all sign flips are
        taken where they are no more than `resamples`.
    queries
        Systems must have been evaluated on the same queries; ``"intersection"`` compares them
        on those they share. Also given to `evaluate`, as are all further options.

    Examples
    --------
    >>> import deadheat as dh
    >>> qrels = {f"q{i}": {"d1": 1} for i in range(8)}
    >>> first, tied = {"d1": 2.0, "d2": 1.0}, {"d1": 1.0, "d2": 1.0}
    >>> runs = {"first": dict.fromkeys(qrels, first), "tied": dict.fromkeys(qrels, tied)}
    >>> comparison = dh.compare(qrels, runs, ["MRR"])
    >>> comparison.pairs.select("difference", "lowest", "highest", "a_wins", "verdict").row(0)
    (0.25, 0.0, 0.5, 0.99609375, 'A is better')
    """
    _check_options(alpha, resamples, seed)
    if runs is not None:
        wanted = parse_measures(DEFAULT_MEASURES if measures is None else measures)
        options |= {"measures": wanted, "queries": queries}
        systems = named(runs, partial(evaluate, read_qrels(results_or_qrels), **options))
    elif options:
        raise InputError(f"{', '.join(options)}: these results have been evaluated already")
    else:
        systems = named(results_or_qrels, checked)
    names = pairs_of(systems, baseline)
    warned: list[str] = []
    check_origins(systems, warned)
    systems = aligned(systems, measures, queries, warned)
    n, tests = len(_first(systems).query_ids), len(names) * len(_first(systems))
    _check_power(n, tests, alpha, resamples, warned)
    pairs = _compared(systems, names, alpha, resamples, seed)
    for a, b in names:
        if _values(systems[a]) == _values(systems[b]):
            warned.append(f"{a} and {b} have the same values in every query: is it one run twice?")
    for text in warned:
        warnings.warn(text, DeadheatWarning, stacklevel=2)

    notes = [note for result in systems.values() for note in result.notes]
    notes += [f"A wins, {m}: {METHODS[m]}" for m in METHODS if m in pairs["probability_method"]]
    if n > 1:
        flips = f"all {2**n:,}" if 2**n <= resamples else f"{resamples:,} random"
        notes.append(
            f"p: paired randomisation test over queries, two-sided, {flips} sign flips, corrected "
            f"by Holm for {tests:,} comparison{'s' * (tests > 1)}; query interval: "
            f"{100 * (1 - alpha):g} % bootstrap, {resamples:,} samples, not corrected; seed {seed}"
        )
    given = {"alpha": alpha, "resamples": resamples, "seed": seed, "baseline": baseline}
    origins = {name: result.provenance for name, result in systems.items()}
    inherited = [f"{name}: {text}" for name, result in systems.items() for text in result.warnings]
    return Comparison(
        pairs,
        _ranking(systems),
        settings={**given, "queries": n, "systems": origins},
        warnings=inherited + warned,
        notes=list(dict.fromkeys(notes)),
    )


def _compared(
    systems: dict[str, Result],
    names: list[tuple[str, str]],
    alpha: float,
    resamples: int,
    seed: int,
) -> pl.DataFrame:
    """Compare every pair in every measure."""
    rows = [(a, b, m) for a, b in names for m in systems[a].views]
    differences = np.column_stack(
        [systems[a].views[m].expected - systems[b].views[m].expected for a, b, m in rows]
    )
    over_queries: list[Any] = [(None,) * 4] * len(rows)
    if len(differences) > 1:
        p_values = statistics.sign_flip_p_values(differences, resamples, seed)
        intervals = statistics.bootstrap_intervals(differences, alpha, resamples, seed)
        over_queries = np.vstack([p_values, statistics.holm(p_values), intervals]).T.tolist()
    table = []
    for (name_a, name_b, m), tests in zip(rows, over_queries, strict=True):
        a, b = systems[name_a][m], systems[name_b][m]
        difference, oblivious = a.expected - b.expected, a.oblivious - b.oblivious
        lowest, highest = a.worst - b.best, a.best - b.worst
        std = None if a.std is None or b.std is None else math.hypot(a.std, b.std)
        overlap = sign(lowest) <= 0 <= sign(highest)
        odds = statistics.chances(systems[name_a].views[m], systems[name_b].views[m])
        verdict = statistics.verdict(
            difference, oblivious, odds.a_wins, odds.b_wins, tests[1], alpha
        )
        ties = (difference, std, lowest, highest, overlap, *odds)
        against = sign(difference) * sign(oblivious) < 0
        table.append((name_a, name_b, a.measure, verdict, *ties, oblivious, against, *tests))
    floats = dict.fromkeys(
        ("std", "p_value", "p_holm", "interval_low", "interval_high"), pl.Float64
    )
    return pl.DataFrame(table, list(COLUMNS), schema_overrides=floats, orient="row")


def _ranking(systems: dict[str, Result]) -> pl.DataFrame:
    """Rank all systems in every measure."""
    frames = []
    for measure in _first(systems).views:
        of = [result[measure] for result in systems.values()]
        values = {
            view: np.array([getattr(summary, view) for summary in of], np.float64)
            for view in ("expected", "std", "worst", "best", "oblivious")
        }
        best_rank, worst_rank = statistics.rank_intervals(values["worst"], values["best"])
        places = {
            "rank": statistics.ranks(values["expected"]),
            "best_rank": best_rank,
            "worst_rank": worst_rank,
            "oblivious_rank": statistics.ranks(values["oblivious"]),
        }
        names = {"measure": [repr(measure)] * len(of), "system": list(systems)}
        frame = pl.DataFrame({**names, **places, **values}, nan_to_null=True)
        frames.append(frame.sort("rank", maintain_order=True))
    return pl.concat(frames)


def _first(systems: dict[str, Result]) -> Result:
    return next(iter(systems.values()))


def _values(result: Result) -> list[bytes]:
    """Everything that ties leave or take, to be compared bit by bit."""
    views = [(v.expected, v.best, v.worst) for v in result.views.values()]
    return [values.tobytes() for each in views for values in each]


def _check_options(alpha: float, resamples: int, seed: int) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, not {alpha!r}")
    for name, value, least in (("resamples", resamples, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name} must be a whole number from {least}, not {value!r}")


def _check_power(n: int, tests: int, alpha: float, resamples: int, warned: list[str]) -> None:
    """Warn where no difference could be significant."""
    least = tests * (2 / 2**n if 2**n <= resamples else 1 / (resamples + 1))
    if n == 1:
        warned.append("there is one query: nothing can be said about other queries")
    elif least > alpha:
        warned.append(
            f"with {n:,} queries, {resamples:,} resamples and {tests:,} comparisons no corrected "
            f"p-value can be below {min(least, 1):.2g}: none can reach {alpha:g}"
        )
