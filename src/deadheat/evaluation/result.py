"""Results of an evaluation: every view of every measure, per query and averaged."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.fork_guard import check_fork
from deadheat._internal.lazy import pl
from deadheat._internal.packages import pandas_frame
from deadheat._internal.remarks import Remark, counted, counted_range, lines, texts
from deadheat.errors import InputError
from deadheat.evaluation.names import name_runs, run_name
from deadheat.formats import are_numbers, is_unicode
from deadheat.measures import Measure, parse_measure
from deadheat.provenance import Provenance
from deadheat.tables import Column, Printable, Table, number
from deadheat.ties import TieGroups

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]

VIEWS = ("expected", "std", "worst", "best", "range", "oblivious", "bias")
"""The views of a measure, in the order they are shown."""
SPAN = Column(("worst", "best"), "span", title="worst–best")
VIEW_COLUMNS = {
    "expected": Column("expected", bar=("worst", "best", "expected")),
    "std": Column("std", title="± tie std", drop_priority=1),
    "worst": Column("worst", drop_priority=2, instead=SPAN),
    "best": Column("best", drop_priority=2),
    "range": Column("range", drop_priority=3),
    "oblivious": Column("oblivious"),
    "bias": Column("bias", "signed"),
}
"""Title and format of each view in tables."""


@dataclass(frozen=True, eq=False)
class Views:
    """The views of one measure, a value per query. Two are equal if all values are equal."""

    expected: Floats
    """Mean over all orders of tied documents, E[M]."""
    best: Floats
    """Value when ties are broken in favour of the system."""
    worst: Floats
    """Value when ties are broken against the system."""
    oblivious: Floats
    """Value that a tool with this tie rule reports (M_obl)."""
    variance: Floats | None
    """Variance over all orders of tied documents; None if it is not computed (ERR)."""

    @property
    def range(self) -> Floats:
        """Best − worst."""
        return self.best - self.worst

    @property
    def std(self) -> Floats | None:
        """Standard deviation over all orders of tied documents; None if it is not computed."""
        return None if self.variance is None else np.sqrt(self.variance)

    @property
    def bias(self) -> Floats:
        """Oblivious − expected."""
        return self.oblivious - self.expected

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Views):
            return NotImplemented
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Summary:
    """The views of one measure, averaged over queries."""

    measure: str
    expected: float
    """Mean over queries of E[M], the number to report."""
    best: float
    worst: float
    oblivious: float
    """Mean over queries of M_obl, the value that a tool reports that ignores ties."""
    std: float | None
    """Tie std: the standard deviation of the mean under random tie-breaking."""
    sampling_error: float | None
    """Standard error of the expected value over queries; None for one query."""
    queries: int
    """Number of queries."""

    @property
    def range(self) -> float:
        """Best − worst: how much tie-breaking alone can change the value."""
        return self.best - self.worst

    @property
    def bias(self) -> float:
        """Oblivious − expected: the error of a tool that ignores ties."""
        return self.oblivious - self.expected

    def __float__(self) -> float:
        """Return the expected value, the number to report."""
        return self.expected

    def is_highest(self, rivals: Iterable[Summary]) -> bool:
        """Return whether this value is above all others under every tie order.

        False if there are no others.
        """
        best = [rival.best for rival in rivals]
        return bool(best) and self.worst > max(best)


@dataclass(frozen=True, repr=False)
class Result(Mapping[str, Summary], Printable):
    """The views of all measures, a mapping: ``result["nDCG@10"]`` is the summary of one measure.

    >>> import deadheat as dh
    >>> result = dh.evaluate({"q": {"d1": 1}}, {"q": {"d1": 0.5, "d2": 0.5}}, ["MRR"])
    >>> result["MRR"].expected, result["MRR"].range, result["MRR"].bias
    (0.75, 0.5, 0.25)
    >>> {name: float(summary) for name, summary in result.items()}
    {'MRR': 0.75}
    """

    query_ids: Sequence[str | int]
    """Ids of the queries: whole numbers if all were given as whole numbers, else text."""
    views: dict[Measure, Views]
    provenance: Provenance = field(default_factory=Provenance)
    """Where the numbers come from: sources, tie rule, options, model, dataset, versions."""
    remarks: tuple[Remark, ...] = ()
    """Warnings and notes about the numbers."""
    groups: TieGroups | None = field(default=None, repr=False, compare=False)
    """The tie groups, used by comparisons to sample tie orders; None in results read from files."""

    @property
    def query_names(self) -> list[str]:
        """Ids of the queries as text."""
        return list(map(str, self.query_ids))

    @property
    def name(self) -> str:
        """Name of the run: the label that the user gave it, or the name of its file."""
        return self.provenance.label or run_name(self.provenance.run)

    def named(self, label: str | None) -> Result:
        """Return the same result with another name; None keeps the name."""
        if label is None:
            return self
        return replace(self, provenance=replace(self.provenance, label=label))

    @property
    def warnings(self) -> list[str]:
        """Warnings about the input that change the meaning of the numbers."""
        return texts(self.remarks, "warning")

    @property
    def notes(self) -> list[str]:
        """Notes about the numbers; the first names the tie rule."""
        return [self.rule, *texts(self.remarks, "note")]

    @property
    def rule(self) -> str:
        """The tie rule of the oblivious values, as text."""
        return self.provenance.settings.note

    def __getitem__(self, measure: str | Measure) -> Summary:
        """Return the summary of a measure, by any of its names."""
        named = {repr(own): own for own in self.views}.get(str(measure))
        parsed = named or (measure if isinstance(measure, Measure) else parse_measure(str(measure)))
        if parsed not in self._summaries:
            raise KeyError(
                f"{parsed} was not evaluated; this result has {', '.join(map(repr, self.views))}"
            )
        return self._summaries[parsed]

    def get(self, measure: str | Measure, default: object = None, /) -> Any:
        """Return the summary of a measure, or `default` if it was not evaluated or is unknown."""
        try:
            return self[measure]
        except (KeyError, InputError):
            return default

    def __contains__(self, measure: object) -> bool:
        """Return whether the measure was evaluated, by any of its names."""
        return self.get(measure) is not None  # type: ignore[arg-type] # any text is looked up

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the measures, in the order requested."""
        return iter([repr(measure) for measure in self.views])

    def __len__(self) -> int:
        return len(self.views)

    @cached_property
    def _summaries(self) -> dict[Measure, Summary]:
        n = len(self.query_ids)
        return {
            measure: Summary(
                measure=repr(measure),
                expected=float(views.expected.mean()),
                best=float(views.best.mean()),
                worst=float(views.worst.mean()),
                oblivious=float(views.oblivious.mean()),
                std=None if views.variance is None else math.sqrt(float(views.variance.sum())) / n,
                sampling_error=float(views.expected.std(ddof=1)) / math.sqrt(n) if n > 1 else None,
                queries=n,
            )
            for measure, views in self.views.items()
        }

    @cached_property
    def aggregate(self) -> pl.DataFrame:
        """A row per measure, with all views averaged over queries."""
        rows = [{**asdict(s), "range": s.range, "bias": s.bias} for s in self.values()]
        types = dict.fromkeys((*VIEWS, "sampling_error"), pl.Float64)
        return pl.DataFrame(
            rows, {"measure": pl.String, **types, "queries": pl.Int64}, orient="row"
        )

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A row per query and measure, with all views."""
        check_fork()
        id_type = pl.Int64 if are_numbers(self.query_ids) else pl.String
        ids = pl.Series("query_id", self.query_ids, dtype=id_type).to_frame()
        views = ("expected", "best", "worst", "range", "std", "oblivious", "bias")
        return pl.concat(
            ids.with_columns(
                pl.lit(repr(measure)).alias("measure"),
                *(pl.lit(getattr(own, view), dtype=pl.Float64).alias(view) for view in views),
            )
            for measure, own in self.views.items()
        )

    def flat(
        self, prefix: str = "", at: str = "@", views: Sequence[str] = VIEWS, *, plain: bool = False
    ) -> dict[str, float]:
        """Return the means as a flat dict of floats, for experiment trackers.

        Values that are not computed are left out.

        Parameters
        ----------
        prefix
            Text before every name, such as ``"test/"``. Default: none.
        at
            Text before the cutoff: ``"_at_"`` for trackers that do not accept ``@``, the default.
        views
            The views to return, in this order. Default: all. The name of the expected value is that
            of the measure, without a suffix.
        plain
            Use only letters, digits and ``_`` after the prefix, and ``_at_`` before the cutoff.
            All trackers accept such names, including MLflow and Weights & Biases. Default: False.

        Examples
        --------
        >>> import deadheat as dh
        >>> result = dh.evaluate({"q": {"d1": 1}}, {"q": {"d1": 0.5, "d2": 0.5}}, ["MRR@10"])
        >>> result.flat("test/", at="_at_", views=["expected", "range"])
        {'test/MRR_at_10': 0.75, 'test/MRR_at_10_range': 0.5}
        """
        return flat_summaries(self.values(), prefix, at, views, plain=plain)

    def to_dict(self, *, per_query: bool = True) -> dict[str, object]:
        """Return the result as plain numbers, lists and strings; `from_dict` reads it back."""
        out: dict[str, object] = {
            "name": self.name,
            "provenance": self.provenance.to_dict(),
            "remarks": [remark.to_dict() for remark in self.remarks],
            "warnings": self.warnings,
            "notes": self.notes,
            "measures": {row.pop("measure"): row for row in self.aggregate.to_dicts()},
        }
        if per_query:
            out["per_query"] = {"query_id": list(self.query_ids)} | {
                repr(measure): {
                    name: None if values is None else values.tolist()
                    for name, values in vars(views).items()
                }
                for measure, views in self.views.items()
            }
        return out

    @classmethod
    def from_dict(cls, data: Any) -> Result:
        """Read the output of `to_dict`; raise `InputError` for anything else."""
        try:
            columns = dict(data["per_query"])
            query_ids = columns.pop("query_id")
            _check_ids(query_ids)
            views = {
                parse_measure(name): _read_views(f"per_query.{name}", column, len(query_ids))
                for name, column in columns.items()
            }
            if not views:
                raise ValueError("it has no measure")
            provenance, remarks = Provenance.from_dict(data["provenance"]), data["remarks"]
            return cls(query_ids, views, provenance, tuple(map(Remark.from_dict, remarks)))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            why = f"there is no field {error}" if isinstance(error, KeyError) else error
            raise InputError(
                f"this is not a stored deadheat result with its per-query values ({why}); "
                "`deadheat eval … --per-query --format json` writes one"
            ) from None

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read the output of `to_json`."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not valid JSON: {error}") from None
        return cls.from_dict(data)

    def to_pandas(self, *, per_query: bool = False) -> pd.DataFrame:
        """Return a pandas frame: a row per measure, or per query and measure."""
        return pandas_frame(self.per_query if per_query else self.aggregate)

    def parts(self, *, per_query: bool = False) -> list[Table]:
        """Return the table: a row per measure, or per query and measure."""
        return [results_table([self], per_query=per_query)]

    def __repr__(self) -> str:
        """Return a summary in one line; `print` shows the table."""
        shown = [f"{name} {number(float(summary))}" for name, summary in list(self.items())[:4]]
        more = [f"{len(self) - 4} more"] if len(self) > 4 else []
        queries = counted(len(self.query_ids), "query")
        return f"<Result {self.name}, {queries}: {', '.join(shown + more)}>"


def flat_summaries(
    summaries: Iterable[Summary],
    prefix: str = "",
    at: str = "@",
    views: Sequence[str] = VIEWS,
    *,
    plain: bool = False,
) -> dict[str, float]:
    """Return summaries as a flat dict; the arguments are those of `Result.flat`."""
    check_views(views)

    def name(summary: Summary, view: str) -> str:
        measure = summary.measure.replace("@", "_at_" if plain else at)
        if plain:
            measure = re.sub(r"\W+", "_", measure, flags=re.ASCII)
            measure = re.sub("_+", "_", measure).strip("_")
        return prefix + measure + ("" if view == "expected" else f"_{view}")

    return {
        name(summary, view): value
        for summary in summaries
        for view in views
        if (value := getattr(summary, view)) is not None
    }


def check_views(views: Sequence[str]) -> None:
    """Raise `InputError` unless all are names of views."""
    if isinstance(views, str) or any(view not in VIEWS for view in views):
        raise InputError(f"views must be some of {', '.join(VIEWS)}, not {views!r:.100}")


def results_table(results: Sequence[Result], *, per_query: bool = False) -> Table:
    """Return one table of several results: a row per run and measure, or run, query and measure."""
    check_fork()
    named = list(zip(name_results(results), results, strict=True))
    frames = [
        (result.per_query if per_query else result.aggregate).select(
            pl.lit(name).alias("run"),
            pl.col("^query_id$").cast(pl.String),
            pl.exclude("query_id"),
        )
        for name, result in named
    ]
    several = len(results) > 1
    words = [Column("run", "name")] if several else []
    words += [Column("query_id", "name", title="query")] if per_query else []
    if several:
        rules = dict.fromkeys(result.rule for result in results)
        remarks = {name: result.remarks for name, result in named}
        notes = [*rules, *lines(remarks, "note")]
    else:
        notes = results[0].notes
    queries = counted_range([len(result.query_ids) for result in results], "query")
    return Table(
        pl.concat(frames),
        [*words, Column("measure", "name"), *VIEW_COLUMNS.values()],
        title=queries if several else f"{named[0][0]} · {queries}",
        notes=notes,
        grouped=int(several),
    )


def name_results(results: Sequence[Result]) -> list[str]:
    """Return the name of each result: its label, or the name of its run (`name_runs`)."""
    origins = [result.provenance for result in results]
    return name_runs([origin.run for origin in origins], [origin.label for origin in origins])


def headline(measures: Iterable[Measure]) -> list[Measure]:
    """Choose the measures to show: all up to eight, else each at cutoff 10 or its largest.

    >>> from deadheat.measures import parse_measures
    >>> headline(parse_measures(["nDCG@1,3,5,10,20,50,100", "MAP", "Recall@5,20,100"]))
    [nDCG@10, MAP, Recall@100]
    """
    measures = list(measures)
    if len(measures) <= 8:
        return measures
    chosen: dict[Measure, Measure] = {}
    for measure in sorted(measures, key=lambda m: m.cutoff or 0):
        family = measure(cutoff=None)
        if family not in chosen or chosen[family].cutoff != 10:
            chosen[family] = measure
    return [measure for measure in measures if measure in chosen.values()]


LARGEST_VALUE = 1e150
"""Largest stored value that is accepted. No measure has larger ones, and their squares overflow."""
_NOISE = 1e-9
"""Values closer than this, absolutely or relatively, may differ by rounding only."""


def _read_views(field: str, columns: Mapping[str, object], n_queries: int) -> Views:
    """Read the stored views of a measure; `field` names them in messages."""
    read: dict[str, Any] = {}
    for name in ("expected", "best", "worst", "oblivious", "variance"):
        values, limit = columns[name], LARGEST_VALUE ** (2 if name == "variance" else 1)
        if name == "variance" and values is None:
            read[name] = None
        elif (
            isinstance(values, list)
            and len(values) == n_queries
            and all(type(x) in (int, float) and abs(x) <= limit for x in values)
        ):
            read[name] = np.array(values, np.float64)
        else:
            raise ValueError(
                f"{field}.{name} must be a list of {n_queries} numbers up to {limit:g}, "
                f"not {values!r:.60}"
            )
    views = Views(**read)
    noise = _NOISE * np.maximum(1, np.maximum(np.abs(views.best), np.abs(views.worst)))
    outside = (views.expected < views.worst - noise) | (views.expected > views.best + noise)
    if outside.any() or (views.variance is not None and (views.variance < 0).any()):
        raise ValueError(f"{field}: expected is not between worst and best, or a variance below 0")
    return views


def _check_ids(query_ids: list[str | int]) -> None:
    """Raise an error unless the ids are all distinct texts, or all distinct whole numbers."""
    are_texts = isinstance(query_ids, list) and all(
        isinstance(query, str) and is_unicode(query) for query in query_ids
    )
    if not (are_texts or are_numbers(query_ids)) or not 0 < len(set(query_ids)) == len(query_ids):
        raise ValueError(
            "per_query.query_id must be a list of distinct texts, or of distinct whole numbers"
        )
