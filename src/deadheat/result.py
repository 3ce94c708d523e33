"""What an evaluation gives: every view of every measure, per query and on average."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Views:
    """The views of one measure, a value per query."""

    expected: Floats
    """Mean over all orders of tied documents, E[M]."""
    best: Floats
    """Value when ties are broken in favour of the system."""
    worst: Floats
    """Value when ties are broken against the system."""
    oblivious: Floats
    """Value of a tool that breaks ties by the named rule, M_obl."""
    variance: Floats | None
    """Variance over all orders of tied documents; None if it is not computed (ERR)."""


@dataclass(frozen=True)
class Summary:
    """The views of one measure, averaged over queries."""

    measure: str
    expected: float
    """Mean over queries of E[M], the number to report."""
    best: float
    worst: float
    oblivious: float
    """Mean over queries of M_obl, what a tie-oblivious tool reports."""
    std: float | None
    """Tie std: the standard deviation of the mean under random tie-breaking."""
    sampling_error: float | None
    """Standard error of the expected value from having sampled these queries; None for one."""
    queries: int
    """How many queries were averaged."""

    @property
    def range(self) -> float:
        """Best − worst: how far tie-breaking alone can move the number."""
        return self.best - self.worst

    @property
    def bias(self) -> float:
        """Oblivious − expected: what the tie-oblivious number owes to its tie rule."""
        return self.oblivious - self.expected


@dataclass(frozen=True)
class Result:
    """Views of all measures; ``result["nDCG@10"]`` is the summary of one.

    >>> import deadheat as dh
    >>> result = dh.evaluate({"q": {"d1": 1}}, {"q": {"d1": 0.5, "d2": 0.5}}, ["MRR"])
    >>> result["MRR"].expected, result["MRR"].range, result["MRR"].bias
    (0.75, 0.5, 0.25)
    """

    query_ids: list[str]
    views: dict[Measure, Views]
    provenance: dict[str, Any] = field(default_factory=dict)
    """Where the numbers come from: sources, tie rule, options, versions."""
    warnings: list[str] = field(default_factory=list)
    """What about the input changes what the numbers mean."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the numbers should know."""

    @property
    def name(self) -> str:
        """What was evaluated."""
        return str(self.provenance.get("run", "run"))

    def __getitem__(self, measure: str | Measure) -> Summary:
        """Summary of a measure, by any of its names."""
        wanted = measure if isinstance(measure, Measure) else parse_measure(str(measure))
        if wanted not in self._summaries:
            raise KeyError(
                f"{wanted} was not evaluated; this result has {', '.join(map(repr, self.views))}"
            )
        return self._summaries[wanted]

    def __contains__(self, measure: object) -> bool:
        """Whether the measure was evaluated, by any of its names."""
        try:
            return isinstance(measure, (str, Measure)) and bool(self[measure])
        except (KeyError, InputError):
            return False

    def __iter__(self) -> Iterator[Summary]:
        """Iterate over the summaries of the measures, in the order asked for."""
        return iter(self._summaries.values())

    def __len__(self) -> int:
        return len(self.views)

    @cached_property
    def _summaries(self) -> dict[Measure, Summary]:
        return {measure: _summarise(measure, views) for measure, views in self.views.items()}

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A row per query and measure, with all views."""
        return pl.concat(
            pl.DataFrame(
                {
                    "query_id": pl.Series(self.query_ids, dtype=pl.String),
                    "measure": pl.Series([repr(measure)], dtype=pl.String).new_from_index(
                        0, len(self.query_ids)
                    ),
                    "expected": v.expected,
                    "best": v.best,
                    "worst": v.worst,
                    "range": v.best - v.worst,
                    "std": pl.Series(
                        [None] * len(self.query_ids) if v.variance is None else np.sqrt(v.variance),
                        dtype=pl.Float64,
                    ),
                    "oblivious": v.oblivious,
                    "bias": v.oblivious - v.expected,
                }
            )
            for measure, v in self.views.items()
        )

    def to_dict(self, *, per_query: bool = True) -> dict[str, Any]:
        """Everything as plain numbers, lists and strings; `from_dict` reads it back."""
        out: dict[str, Any] = {
            "provenance": self.provenance,
            "warnings": self.warnings,
            "notes": self.notes,
            "measures": {s.measure: {**asdict(s), "range": s.range, "bias": s.bias} for s in self},
        }
        if per_query:
            out["per_query"] = {
                "query_id": list(self.query_ids),
                **{
                    repr(measure): {
                        name: None if values is None else values.tolist()
                        for name, values in vars(views).items()
                    }
                    for measure, views in self.views.items()
                },
            }
        return out

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Result:
        """Read what `to_dict` wrote."""
        try:
            columns = dict(data["per_query"])
            query_ids = columns.pop("query_id")
            views = {parse_measure(name): _views_from(each) for name, each in columns.items()}
            for name, view in ((n, v) for each in views.values() for n, v in vars(each).items()):
                if view is not None and view.shape != (len(query_ids),):
                    raise ValueError(f"{len(query_ids)} queries, but {name} of {view.shape}")
            return cls(query_ids, views, data["provenance"], data["warnings"], data["notes"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(
                f"this is not a stored deadheat result with its per-query values ({error!r})"
            ) from None

    def to_json(self, *, per_query: bool = True) -> str:
        """Everything as JSON; `from_json` reads it back without losing a bit."""
        return json.dumps(self.to_dict(per_query=per_query), indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read what `to_json` wrote."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}") from None
        return cls.from_dict(data)

    def to_csv(self, *, per_query: bool = False) -> str:
        """Comma-separated values: a row per measure, or per query and measure."""
        return self._render("csv", per_query=per_query)

    def to_markdown(self, *, percent: bool = False) -> str:
        """Give a Markdown table, a row per measure."""
        return self._render("markdown", percent=percent)

    def to_latex(self, *, percent: bool = False) -> str:
        """Give a LaTeX table (booktabs), a row per measure."""
        return self._render("latex", percent=percent)

    def _render(self, style: str, **options: bool) -> str:
        from deadheat.report.tables import render

        return render([self], style, **options)

    def __str__(self) -> str:
        return self._render("table")

    def __rich__(self) -> Any:
        """Let rich print the table in colour."""
        from deadheat.report.tables import rich_table

        return rich_table([self])

    def _repr_html_(self) -> str:
        return self._render("html")


def short_names(results: Sequence[Result]) -> list[str]:
    """Names of the runs, without their folders where that leaves them distinct."""
    short = [Path(result.name).name for result in results]
    return short if len(set(short)) == len(short) else [result.name for result in results]


def _views_from(columns: dict[str, Any]) -> Views:
    variance = columns["variance"]
    return Views(
        expected=np.array(columns["expected"], np.float64),
        best=np.array(columns["best"], np.float64),
        worst=np.array(columns["worst"], np.float64),
        oblivious=np.array(columns["oblivious"], np.float64),
        variance=None if variance is None else np.array(variance, np.float64),
    )


def _summarise(measure: Measure, views: Views) -> Summary:
    n = len(views.expected)
    variance = views.variance
    return Summary(
        measure=repr(measure),
        expected=float(views.expected.mean()),
        best=float(views.best.mean()),
        worst=float(views.worst.mean()),
        oblivious=float(views.oblivious.mean()),
        std=None if variance is None else math.sqrt(float(variance.sum())) / n,
        sampling_error=float(views.expected.std(ddof=1)) / math.sqrt(n) if n > 1 else None,
        queries=n,
    )
