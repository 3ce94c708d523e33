"""The type `Leaderboard`: every run with its values and ranks under all tie orders."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from deadheat._internal.lazy import pl
from deadheat._internal.packages import pandas_frame
from deadheat._internal.remarks import Level, Remark, counted, lines, texts
from deadheat.comparison.leaderboard.entries import Entry
from deadheat.comparison.leaderboard.rules import FoundRule
from deadheat.comparison.leaderboard.standings import DecisionError, Winner
from deadheat.comparison.leaderboard.tables import board_parts
from deadheat.errors import InputError
from deadheat.measures import Measure, parse_measure
from deadheat.settings import EvalSettings
from deadheat.tables import Part, Printable

if TYPE_CHECKING:
    import pandas as pd

ASCENDING = ("run", "rank", "best_rank", "worst_rank", "published_rank", "grid")
"""Columns that are sorted from low to high, as columns of words are."""


@dataclass(frozen=True, repr=False, eq=False)
class Leaderboard(Printable):
    """The evaluated runs of a board, the effect of ties, and the rule of its published numbers.

    The rule is the tie order, score precision and choice of queries that reproduces them. `rows`
    has these columns:

    - ``measure``, ``run``: their names
    - columns of words of the published board, such as the team
    - ``published``: the published value
    - ``unit``: one unit of the last printed digit of the published value
    - ``reproduced``: whether the oblivious value rounds to the published value
    - ``published_rank``: rank by the published value, among all runs of the board
    - ``expected``: mean over all orders of tied documents
    - ``std``: tie std, the standard deviation of the mean under random tie-breaking
    - ``worst``, ``best``: value with all ties broken against the run, and for it
    - ``range``: best − worst
    - ``oblivious``: value under the tie rule
    - ``bias``: oblivious − expected
    - ``rank``: rank by expected value; equal values share the better rank
    - ``best_rank``: rank with ties broken for this run and against all other runs
    - ``worst_rank``: rank with ties broken against this run and for all other runs
    - ``cut_lists``: lists cut inside a tie group that can change the digits of the measure
    - ``grid``: the number grid of its scores
    - ``queries``: number of queries that were averaged
    """

    name: str
    rows: pl.DataFrame
    """A row per measure and run, in the official order, with the columns above."""
    summary: pl.DataFrame
    """A row per measure: numbers of runs moved by ties and of reversed and undecided pairs, and
    Kendall's τ."""
    decision_errors: list[DecisionError]
    """Pairs whose official order contradicts their expected values, by measure; pairs at the top
    of the board first."""
    winners: list[Winner]
    """The first run in each measure: overall, and inside each group."""
    rules: list[FoundRule]
    """The rules found for the published columns; empty if there was no search."""
    settings: dict[Measure, EvalSettings]
    """How each measure was evaluated."""
    group: str | None
    alpha: float
    failures: dict[str, str]
    """Runs that could not be evaluated, and the reason."""
    entries: dict[str, Entry]
    """Per run name: the values of every query."""
    remarks: tuple[Remark, ...]
    """Warnings and notes on the board."""

    @property
    def measures(self) -> list[Measure]:
        """The measures; the one that gives the official order is first."""
        return list(self.settings)

    @property
    def unknown_definitions(self) -> list[dict[str, object]]:
        """Summary rows of the measures whose published values have an unknown definition."""
        return self.summary.filter(pl.col("official").is_null()).to_dicts()

    @property
    def warnings(self) -> list[str]:
        """Warnings about the input that change the meaning of the numbers."""
        failed = [f"{name} was not evaluated: {why}" for name, why in self.failures.items()]
        return [*failed, *texts(self.remarks, "warning"), *self._of_runs("warning")]

    @property
    def notes(self) -> list[str]:
        """How the numbers were computed."""
        rules: dict[str, list[str]] = {}
        for measure, setting in self.settings.items():
            rules.setdefault(setting.note, []).append(repr(measure))
        one = len(rules) == 1
        of = [rule if one else f"{', '.join(own)}: {rule}" for rule, own in rules.items()]
        return [*of, *texts(self.remarks, "note"), *self._of_runs("note")]

    def _of_runs(self, level: Level) -> list[str]:
        remarks = {
            name: [remark for result in entry.results.values() for remark in result.remarks]
            for name, entry in self.entries.items()
        }
        return lines(remarks, level)  # without repetitions: several measures may share a result

    def ranking(
        self,
        measure: str | Measure | None = None,
        *,
        sort: str | None = None,
        top: int | None = None,
    ) -> pl.DataFrame:
        """Return the rows of one measure.

        Parameters
        ----------
        measure
            A measure of the board. Default: the first.
        sort
            Column to sort by: numbers from high to low, ranks and words from low to high.
            Default: the official order.
        top
            Number of first rows to return. Default: all.
        """
        rows = self.rows.filter(measure=repr(self._measure(measure)))
        if sort is not None:
            if sort not in rows.columns:
                raise InputError(
                    f"cannot sort by {sort!r}: there is no such column; use one of "
                    f"{', '.join(rows.columns)}"
                )
            up = sort in ASCENDING or rows[sort].dtype == pl.String
            rows = rows.sort(sort, descending=not up, nulls_last=True, maintain_order=True)
        return rows if top is None else rows.head(top)

    def _measure(self, measure: str | Measure | None) -> Measure:
        if measure is None:
            return self.measures[0]
        parsed = measure if isinstance(measure, Measure) else parse_measure(measure)
        variants = [rule.measure for rule in self.rules if rule.stated == parsed]
        for own in (parsed, *variants):
            if own in self.settings:
                return own
        raise InputError(
            f"{parsed} was not evaluated; use one of {', '.join(map(repr, self.settings))}"
        )

    def parts(self, measure: str | Measure | None = None, **options: Any) -> list[Part]:
        """Return sentences and tables to print; the arguments are those of `ranking`."""
        return board_parts(self, self.ranking(measure, **options))

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers, lists and strings: everything except values of single queries."""
        return {
            "name": self.name,
            "rules": [rule.to_dict() for rule in self.rules],
            "settings": {repr(m): vars(setting) for m, setting in self.settings.items()},
            "rows": self.rows.to_dicts(),
            "summary": self.summary.to_dicts(),
            "decision_errors": [{**asdict(e), "text": str(e)} for e in self.decision_errors],
            "winners": [{**asdict(w), "contested": w.contested} for w in self.winners],
            "group": self.group,
            "alpha": self.alpha,
            "failures": self.failures,
            "warnings": self.warnings,
            "notes": self.notes,
        }

    def to_csv(self) -> str:
        """Return comma-separated values in full precision, a row per measure and run."""
        return self.rows.write_csv().rstrip("\n")

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas frame."""
        return pandas_frame(self.rows)

    def __repr__(self) -> str:
        """Return the number of runs and the measures; `print` shows the tables."""
        runs, measures = counted(len(self.entries), "run"), ", ".join(map(repr, self.settings))
        return f"<Leaderboard {self.name}, {runs}: {measures}>"
