"""The content of a page: systems, grouped by judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deadheat.comparison import Comparison
from deadheat.evaluation import Result, headline
from deadheat.formats import Judgements, Run
from deadheat.measures import Measure
from deadheat.tables import Table


@dataclass(frozen=True)
class System:
    """A result, and its run if given."""

    result: Result
    labels: Mapping[str, str]
    """Labels of the system: ``{"system": "bm25.run"}``, or model, model dtype and regime."""
    run: Run | None = None
    no_run: str = "the scored documents were not given"
    """The reason if there is no run."""


@dataclass(frozen=True)
class Collection:
    """Systems that were evaluated with the same judgements."""

    name: str
    systems: Sequence[System]
    qrels: Judgements | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    """Texts of queries by id, if known."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """Texts of documents by id, if known."""
    comparison: Comparison | None = None
    """The comparison of the systems, by their `names`."""
    not_compared: str = "the systems were not compared"
    """The reason if there is no comparison."""
    budget: Table | None = None
    """The error of each number from ties, compute settings and queries, if measured."""

    @property
    def names(self) -> list[str]:
        """A name for each system: the labels in which systems differ, and a number if needed."""
        columns = {
            label: [system.labels.get(label, "–") for system in self.systems]
            for label in self.systems[0].labels
        }
        telling = [column for column in columns.values() if len(set(column)) > 1]
        rows = zip(*(telling or columns.values()), strict=True)
        return number_repeated([" · ".join(row) for row in rows])

    @property
    def results(self) -> dict[str, Result]:
        """The results by the `names` of their systems."""
        return dict(zip(self.names, (system.result for system in self.systems), strict=True))

    def measures(self, shown: Sequence[Measure] | None = None) -> list[Measure]:
        """Return the measures of the leaderboard, the comparison and the query explorer.

        Default: all if there are few, else each at one cutoff: 10 if it was evaluated, otherwise
        the largest.
        """
        every = dict.fromkeys(m for system in self.systems for m in system.result.views)
        return headline(every) if shown is None else [m for m in every if m in shown]


def number_repeated(names: Sequence[str]) -> list[str]:
    """Make names distinct.

    >>> number_repeated(["hps", "native", "hps"])
    ['hps', 'native', 'hps (2)']
    """
    return [
        f"{name} ({names[:i].count(name) + 1})" if name in names[:i] else name
        for i, name in enumerate(names)
    ]
