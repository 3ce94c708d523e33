"""The content of a page: systems, grouped by judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deadheat.comparison import Comparison, compare_if_possible
from deadheat.evaluation import Result, headline
from deadheat.formats import Judgements, Run
from deadheat.measures import Measure
from deadheat.tables import Table


@dataclass(frozen=True)
class System:
    """A result, the name of the system, and its run if given."""

    result: Result
    name: str
    run: Run | None = None
    no_run: str = "the scored documents were not given"
    """The reason if there is no run."""


@dataclass(frozen=True)
class Collection:
    """Systems with different names that were evaluated with the same judgements."""

    name: str
    systems: Sequence[System]
    qrels: Judgements | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    """Texts of queries by id, if known."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """Texts of documents by id, if known."""
    comparison: Comparison | None = None
    """The comparison of the systems."""
    not_compared: str = "the systems were not compared"
    """The reason if there is no comparison."""
    budget: Table | None = None
    """The error of each number from ties, compute settings and queries, if measured."""

    @property
    def results(self) -> dict[str, Result]:
        """The results by the names of their systems."""
        return {system.name: system.result for system in self.systems}

    def measures(self, shown: Sequence[Measure] | None = None) -> list[Measure]:
        """Return the measures of the leaderboard, the comparison and the query explorer.

        Default: all if there are few, else each at one cutoff: 10 if it was evaluated, otherwise
        the largest.
        """
        every = dict.fromkeys(m for system in self.systems for m in system.result.views)
        return headline(every) if shown is None else [m for m in every if m in shown]

    def compare(self, shown: Sequence[Measure] | None = None, **options: Any) -> Collection:
        """Return the collection with a comparison of its systems, or the reason for its lack.

        The measures are those of `measures`, the options those of `deadheat.compare`.
        """
        measures = self.measures(shown)
        comparison, why_not = compare_if_possible(self.results, measures, **options)
        return replace(self, comparison=comparison, not_compared=why_not)


def number_repeated(names: Sequence[str]) -> list[str]:
    """Make names distinct.

    >>> number_repeated(["hps", "native", "hps"])
    ['hps', 'native', 'hps (2)']
    """
    return [
        f"{name} ({names[:i].count(name) + 1})" if name in names[:i] else name
        for i, name in enumerate(names)
    ]
