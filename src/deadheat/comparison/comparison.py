"""The type `Comparison`: the ranking of systems, and the verdict on every pair."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from deadheat._internal.lazy import pl
from deadheat._internal.packages import pandas_frame
from deadheat._internal.remarks import Remark, counted, lines, texts
from deadheat.comparison.statistics import VERDICTS
from deadheat.evaluation import SPAN, VIEW_COLUMNS
from deadheat.provenance import Provenance
from deadheat.tables import Column, Part, Printable, Table, Tint

if TYPE_CHECKING:
    import pandas as pd

TESTS = {
    "Holm": "paired randomisation test of each pair, corrected by Holm",
    "Tukey": "the larger p of the randomised Tukey HSD test of all systems and the pair's own test",
}
"""How p-values are corrected for the number of pairs compared in a measure."""
FEW_SYSTEMS = 4
"""Up to this many systems, each pair is tested separately and every pair is shown."""


@dataclass(frozen=True)
class Settings:
    """How systems were compared."""

    queries: int
    """Number of queries that all systems share."""
    alpha: float
    resamples: int
    seed: int
    baseline: str | None
    test: str | None
    """How p-values were corrected, one of `TESTS`; None for one query."""


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Printable):
    """The ranking of systems, and the verdict on each pair of them.

    `pairs` has these columns:

    - ``a``, ``b``, ``measure``: the names of systems A and B, and of the measure
    - ``verdict``: one of `VERDICTS`
    - ``difference``: expected value of A − expected value of B
    - ``std``: tie std of the difference; None if the measure has no variance (ERR)
    - ``lowest``: the difference with ties broken against A and for B, worst_A − best_B
    - ``highest``: the difference with ties broken for A and against B, best_A − worst_B
    - ``overlap``: whether the [worst, best] intervals overlap: some tie order reverses the pair
    - ``a_wins``, ``b_wins``: probability that A beats B, and B beats A, under random tie-breaking
    - ``probability_method``: how these probabilities were obtained, one of `METHODS`
    - ``probability_error``: largest distance of these probabilities from the true ones
    - ``oblivious_difference``: oblivious value of A − oblivious value of B
    - ``reversed``: whether the oblivious values order the pair opposite to the expected values
    - ``p_value``: two-sided paired randomisation test over queries; None for one query
    - ``p_corrected``: the p-value, corrected for the pairs compared in the measure (see `TESTS`)
    - ``interval_low``, ``interval_high``: Student's t interval of the difference over queries; its
      level is 1 − alpha
    """

    pairs: pl.DataFrame
    """A row per pair and measure, with the columns above."""
    ranking: pl.DataFrame
    """A row per measure and system, highest expected value first. `rank` is by expected value,
    `best_rank` and `worst_rank` are the best and worst rank that tie-breaking can give,
    `oblivious_rank` is by oblivious value. Equal values share the better rank."""
    settings: Settings
    provenance: dict[str, Provenance]
    """Where the result of each system comes from."""
    remarks: tuple[Remark, ...]
    """Warnings and notes on the comparison."""
    system_remarks: dict[str, tuple[Remark, ...]]
    """Warnings and notes on the result of each system."""

    @property
    def warnings(self) -> list[str]:
        """Warnings about the input that change the meaning of the numbers."""
        inherited = lines(self.system_remarks, "warning", of="system")
        return [*inherited, *texts(self.remarks, "warning")]

    @property
    def notes(self) -> list[str]:
        """How the numbers were computed."""
        rules = dict.fromkeys(origin.settings.note for origin in self.provenance.values())
        inherited = lines(self.system_remarks, "note", of="system")
        return [*rules, *inherited, *texts(self.remarks, "note")]

    @cached_property
    def verdicts(self) -> pl.DataFrame:
        """Number of pairs with each verdict: a row per measure and verdict that occurs."""
        better = pl.col("verdict").is_in(["A is better", "B is better"])
        verdict = pl.when(better).then(pl.lit("one is better")).otherwise("verdict")
        counts = self.pairs.group_by("measure", verdict.alias("verdict")).agg(
            pairs=pl.len(), reversed=pl.col("reversed").sum()
        )
        share = pl.col("pairs") / pl.col("pairs").sum().over("measure")
        measures = pl.Enum(self.pairs["measure"].unique(maintain_order=True))
        verdicts = pl.Enum(["one is better", *VERDICTS])
        order = pl.col("measure").cast(measures), pl.col("verdict").cast(verdicts)
        return counts.with_columns(share=share).sort(order)

    @cached_property
    def contested(self) -> pl.DataFrame:
        """Pairs whose order is not reliable, with the columns of `pairs`, by measure and rank.

        These are neighbours in the ranking whose order ties leave undecided or the oblivious
        values reverse, and all decision errors.
        """
        place = {key: i for i, key in enumerate(self.ranking["measure", "system"].iter_rows())}
        pairs = self.pairs["measure", "a", "b"].iter_rows()
        places = [sorted((place[measure, a], place[measure, b])) for measure, a, b in pairs]
        first, last = zip(*places, strict=True)
        found = self.pairs.with_columns(first=pl.Series(first), last=pl.Series(last))
        open_ = (pl.col("verdict") == "undecided: ties") | pl.col("reversed")
        wrong = pl.col("verdict") == "decision error"
        chosen = found.filter(wrong | ((pl.col("last") - pl.col("first") == 1) & open_))
        return chosen.sort("first", "last").select(self.pairs.columns)

    def parts(self, *, all_pairs: bool = False) -> list[Part]:
        """Return the ranking and the pairs: all pairs of few systems, else only contested pairs.

        Parameters
        ----------
        all_pairs
            Show every pair, also for many systems. Default: False.
        """
        queries = counted(self.settings.queries, "query")
        ranking = Table(self.ranking, RANKING, f"Ranking · {queries}", grouped=1)
        test = f"p ({self.settings.test})" if self.settings.test else "p"
        columns = [*PAIRS, Column("p_corrected", "probability", title=test, drop_priority=4)]
        several = len(self.provenance) > FEW_SYSTEMS and self.settings.baseline is None
        if all_pairs or not several:
            return [ranking, Table(self.pairs, columns, "A against B", self.notes, grouped=2)]
        verdicts = Table(self.verdicts, VERDICT_COUNTS, "Verdicts on all pairs", grouped=1)
        if self.contested.is_empty():
            nothing = "No two neighbours are contested by ties, and there is no decision error."
            return [ranking, replace(verdicts, notes=[nothing, *self.notes])]
        which = (
            f"{len(self.contested):,} of {len(self.pairs):,} comparisons: neighbours that ties "
            "leave undecided or the oblivious values reverse, and all decision errors"
        )
        columns.insert(0, columns.pop(2))  # the measure first
        notes = [which, *self.notes]
        contested = Table(self.contested, columns, "Contested: A against B", notes, grouped=1)
        return [ranking, verdicts, contested]

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain numbers, lists and strings."""
        return {
            "pairs": self.pairs.to_dicts(),
            "ranking": self.ranking.to_dicts(),
            "settings": asdict(self.settings),
            "systems": {name: origin.to_dict() for name, origin in self.provenance.items()},
            "warnings": self.warnings,
            "notes": self.notes,
        }

    def to_csv(self, *, ranking: bool = False) -> str:
        """Return comma-separated values in full precision: all pairs, or the ranking."""
        return (self.ranking if ranking else self.pairs).write_csv().rstrip("\n")

    def to_pandas(self) -> pd.DataFrame:
        """Return the pairs as a pandas frame."""
        return pandas_frame(self.pairs)

    def __repr__(self) -> str:
        """Return the number of systems, queries and verdicts; `print` shows the tables."""
        verdicts = self.pairs.group_by("verdict", maintain_order=True).len().iter_rows()
        counts = ", ".join(f"{n} × {verdict}" for verdict, n in verdicts)
        systems = counted(len(self.provenance), "system")
        queries = counted(self.settings.queries, "query")
        return f"<Comparison of {systems}, {queries}: {counts}>"


RANKING = (
    Column("measure", "name"),
    Column("system", "name"),
    Column("rank", "count"),
    Column(("best_rank", "worst_rank"), "ranks", title="under ties"),
    Column("oblivious_rank", "count", title="oblivious rank", drop_priority=3),
    VIEW_COLUMNS["expected"],
    VIEW_COLUMNS["std"],
    replace(VIEW_COLUMNS["worst"], instead=replace(SPAN, drop_priority=5)),
    VIEW_COLUMNS["best"],
    replace(VIEW_COLUMNS["oblivious"], drop_priority=4),
)
TINTS: dict[str, Tint] = {
    "A is better": "good",
    "B is better": "good",
    "decision error": "bad",
    "undecided": "open",
    "not significant": "open",
}
"""Colours of verdicts."""
PAIRS = (
    Column("a", "name", title="A"),
    Column("b", "name", title="B"),
    Column("measure", "name"),
    Column("verdict", "word", tints=TINTS),
    Column("difference", "signed", title="A − B"),
    VIEW_COLUMNS["std"],
    Column(("lowest", "highest"), "interval", title="tie interval", drop_priority=6),
    Column(
        ("a_wins", "probability_method", "probability_error"),
        "probability",
        title="A wins",
        drop_priority=5,
    ),
    Column("oblivious_difference", "signed", title="oblivious A − B", drop_priority=2),
    Column(("interval_low", "interval_high"), "interval", title="query interval", drop_priority=3),
)
VERDICT_COUNTS = (
    Column("measure", "name"),
    Column("verdict", "word"),
    Column("pairs", "count"),
    Column("share", "share"),
    Column("reversed", "count", title="oblivious reversed"),
)
