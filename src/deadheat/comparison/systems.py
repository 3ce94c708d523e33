"""Compare systems: every pair or against a baseline, and all of them in ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from deadheat.comparison import statistics
from deadheat.comparison.align import aligned, check_origins, checked, named, pairs_of
from deadheat.comparison.statistics import METHODS, sign
from deadheat.errors import InputError
from deadheat.evaluation import (
    DEFAULT_MEASURES,
    SPAN,
    VIEW_COLUMNS,
    Result,
    evaluated,
    short_labels,
    short_names,
)
from deadheat.formats import read_qrels, read_run
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.packages import pandas_frame
from deadheat.provenance import Provenance
from deadheat.remarks import Remark, announcing, counted, lines, note, texts, warning
from deadheat.tables import Column, Table, Tint, render, rich_parts
from deadheat.ties.rules import rule_note

if TYPE_CHECKING:
    import pandas as pd

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
class Settings:
    """How systems were compared."""

    queries: int
    """How many queries all systems share."""
    alpha: float
    resamples: int
    seed: int
    baseline: str | None


@dataclass(frozen=True, repr=False)
class Comparison:
    """What can be said of systems against each other; printed, two tables."""

    pairs: pl.DataFrame
    """A row per pair and measure; `COLUMNS` describes the columns."""
    ranking: pl.DataFrame
    """A row per measure and system, the highest expectation first. `rank` is by expectation,
    `best_rank` and `worst_rank` are what tie-breaking can make of it, `oblivious_rank` is by
    the oblivious value; equal values share the better rank."""
    settings: Settings
    provenance: dict[str, Provenance]
    """Where the result of each system comes from."""
    remarks: tuple[Remark, ...]
    """What a reader of the comparison should know."""
    system_remarks: dict[str, tuple[Remark, ...]]
    """What a reader of each system's result should know."""

    @property
    def warnings(self) -> list[str]:
        """What about the input changes what the comparison means."""
        inherited = lines(self.system_remarks, "warning", of="system")
        return [*inherited, *texts(self.remarks, "warning")]

    @property
    def notes(self) -> list[str]:
        """What else a reader of the comparison should know."""
        rules = dict.fromkeys(
            rule_note(origin.tie_break, origin.score_dtype) for origin in self.provenance.values()
        )
        inherited = lines(self.system_remarks, "note", of="system")
        return [*rules, *inherited, *texts(self.remarks, "note")]

    @property
    def labels(self) -> dict[str, str]:
        """What each system is called in tables: its name, shortened if nobody chose it."""
        names, runs = list(self.provenance), [origin.run for origin in self.provenance.values()]
        unnamed = names == short_names(runs)
        return dict(zip(names, short_labels(runs) if unnamed else names, strict=True))

    def tables(self) -> list[Table]:
        """Give the ranking, and the pairs: first what ties leave open, then what queries do."""
        queries = counted(self.settings.queries, "query")
        ranking, pairs = (
            [replace(c, words=self.labels) if c.of in ("system", "a", "b") else c for c in columns]
            for columns in (RANKING, PAIRS)
        )
        return [
            Table(self.ranking, ranking, f"Ranking · {queries}", grouped=1),
            Table(self.pairs, pairs, "A against B", self.notes, grouped=2),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, lists and strings."""
        return {
            "pairs": self.pairs.to_dicts(),
            "ranking": self.ranking.to_dicts(),
            "settings": asdict(self.settings),
            "systems": {name: origin.to_dict() for name, origin in self.provenance.items()},
            "warnings": self.warnings,
            "notes": self.notes,
        }

    def to_json(self) -> str:
        """Everything as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def to_csv(self, *, ranking: bool = False) -> str:
        """Comma-separated values in full precision: the pairs, or the ranking."""
        return (self.ranking if ranking else self.pairs).write_csv().rstrip("\n")

    def to_markdown(self, *, percent: bool = False) -> str:
        """Give two Markdown tables: ranking and pairs."""
        return render(self.tables(), "markdown", percent=percent)

    def to_pandas(self) -> pd.DataFrame:
        """Give the pairs as a pandas frame."""
        return pandas_frame(self.pairs)

    def __repr__(self) -> str:
        """Say in a line what it is; `print` shows the tables."""
        verdicts = self.pairs.group_by("verdict", maintain_order=True).len().iter_rows()
        said = ", ".join(f"{n} × {verdict}" for verdict, n in verdicts)
        systems = counted(len(self.provenance), "system")
        queries = counted(self.settings.queries, "query")
        return f"<Comparison of {systems}, {queries}: {said}>"

    def __str__(self) -> str:
        return render(self.tables(), "table")

    def __rich__(self) -> Any:
        """Let rich print the tables in colour."""
        return rich_parts(self.tables())

    def _repr_html_(self) -> str:
        return render(self.tables(), "html")


RANKING = (
    Column("measure", "name"),
    Column("system", "name"),
    Column("rank", "count"),
    Column(("best_rank", "worst_rank"), "ranks", title="under ties"),
    Column("oblivious_rank", "count", title="oblivious rank", gives_way=3),
    VIEW_COLUMNS["expected"],
    VIEW_COLUMNS["std"],
    replace(VIEW_COLUMNS["worst"], instead=replace(SPAN, gives_way=5)),
    VIEW_COLUMNS["best"],
    replace(VIEW_COLUMNS["oblivious"], gives_way=4),
)
TINTS: dict[str, Tint] = {
    "A is better": "good",
    "B is better": "good",
    "decision error": "bad",
    "undecided": "open",
}
"""Colours of verdicts."""
PAIRS = (
    Column("a", "name", title="A"),
    Column("b", "name", title="B"),
    Column("measure", "name"),
    Column("verdict", "word", tints=TINTS),
    Column("difference", "signed", title="A − B", bar=("lowest", "highest", "difference")),
    VIEW_COLUMNS["std"],
    Column(("lowest", "highest"), "interval", title="tie interval", gives_way=6),
    Column(("a_wins", "probability_method"), "probability", title="A wins", gives_way=5),
    Column("oblivious_difference", "signed", title="oblivious A − B", gives_way=2),
    Column(("interval_low", "interval_high"), "interval", title="query interval", gives_way=3),
    Column("p_holm", "probability", title="p (Holm)", gives_way=4),
)


@announcing
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
    if runs is not None:
        parsed = parse_measures(DEFAULT_MEASURES if measures is None else measures)
        judgements = read_qrels(results_or_qrels)
        with_ranks = options.get("tie_break") == "rank"

        def result_of(run: Any) -> Result:
            source = read_run(run, with_ranks=with_ranks)
            return evaluated(judgements, source, parsed, queries=queries, **options)

        systems = named(runs, result_of)
    elif options:
        raise InputError(f"{', '.join(options)}: these results have been evaluated already")
    else:
        systems = named(results_or_qrels, checked)
    return compared(
        systems,
        measures,
        baseline=baseline,
        alpha=alpha,
        resamples=resamples,
        seed=seed,
        queries=queries,
    )


def compared(
    systems: dict[str, Result],
    measures: Any = None,
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    resamples: int = 9999,
    seed: int = 0,
    queries: str = "judged",
) -> Comparison:
    """Compare named results as `compare` does, without a word: what to know is on the result."""
    _check_options(alpha, resamples, seed)
    names = pairs_of(systems, baseline)
    remarks = check_origins(systems)
    systems, alignment = aligned(systems, measures, queries)
    n, tests = len(_first(systems).query_ids), len(names) * len(_first(systems))
    pairs = _pairs(systems, names, alpha, resamples, seed)
    remarks += alignment + _power(n, tests, alpha, resamples) + _identical(systems, names)
    remarks += [
        note(f"A wins, {method}: {meaning}")
        for method, meaning in METHODS.items()
        if method in pairs["probability_method"]
    ]
    if n > 1:
        flips = f"all {2**n:,}" if 2**n <= resamples else f"{resamples:,} random"
        remarks.append(
            note(
                "p: paired randomisation test over queries, two-sided, {flips} sign flips, "
                "corrected by Holm for {tests:comparison}; query interval: {level} % bootstrap, "
                "{resamples:sample}, not corrected; seed {seed}",
                flips=flips,
                tests=tests,
                level=f"{100 * (1 - alpha):g}",
                resamples=resamples,
                seed=seed,
            )
        )
    return Comparison(
        pairs,
        _ranking(systems),
        Settings(n, alpha, resamples, seed, baseline),
        {name: result.provenance for name, result in systems.items()},
        tuple(remarks),
        {name: result.remarks for name, result in systems.items()},
    )


def _pairs(
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
    return [
        values.tobytes()
        for views in result.views.values()
        for values in (views.expected, views.best, views.worst)
    ]


def _check_options(alpha: float, resamples: int, seed: int) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be between 0 and 1, not {alpha!r}")
    for name, value, least in (("resamples", resamples, 1), ("seed", seed, 0)):
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name} must be a whole number from {least}, not {value!r}")


def _power(n: int, tests: int, alpha: float, resamples: int) -> list[Remark]:
    """Warn where no difference could be significant."""
    if n == 1:
        return [warning("there is one query: nothing can be said about other queries")]
    least = tests * (2 / 2**n if 2**n <= resamples else 1 / (resamples + 1))
    if least <= alpha:
        return []
    return [
        warning(
            "with {n:query}, {resamples:resample} and {tests:comparison} no corrected p-value can "
            "be below {least}: none can reach {alpha}",
            n=n,
            resamples=resamples,
            tests=tests,
            least=f"{min(least, 1):.2g}",
            alpha=f"{alpha:g}",
        )
    ]


def _identical(systems: dict[str, Result], names: list[tuple[str, str]]) -> list[Remark]:
    """Warn of systems that look like one run given twice."""
    values = {name: _values(result) for name, result in systems.items()}
    pattern = "{a} and {b} have the same values in every query: is it one run twice?"
    return [warning(pattern, a=a, b=b) for a, b in names if values[a] == values[b]]
