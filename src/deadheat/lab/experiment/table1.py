"""The paper's Table 1 from stored results, and a table of the ties in each regime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deadheat._lazy import pl
from deadheat.errors import InputError
from deadheat.evaluation import VIEW_COLUMNS, Summary, headline
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.scoring.regimes import describe_regime
from deadheat.tables import Column, Table

if TYPE_CHECKING:
    from deadheat.lab.experiment.results import StoredResult

_VIEW_COLUMNS = (
    replace(VIEW_COLUMNS["oblivious"], of=("oblivious", "std"), kind="significant"),
    replace(VIEW_COLUMNS["expected"], bold="certain", bar=None),
    replace(VIEW_COLUMNS["range"], drop_priority=2),
    replace(VIEW_COLUMNS["bias"], of=("bias", "std"), kind="significant signed", drop_priority=1),
)
_NAMES = (
    Column("dataset", "name"),
    Column("measure", "name"),
    Column("model", "name"),
    Column("model_dtype", "name", over="model", title="dtype"),
)
_EXACT = Column("FP32_M", over="FP32", title="M", latex="$M$", drop_priority=3)
_EXACT_TIES = "FP32 M = the expected value, because the FP32 scores have ties, too"


def table1(results: Sequence[StoredResult], measures: Iterable[Any] | None = None) -> Table:
    """Return Table 1: for each model FP32 M, then the views of every regime by its name.

    The highest expected value of a dataset, measure, dtype and regime is bold if it is the
    highest whatever the tie-break: its worst value lies above the best of all others.
    Tie-breaking moves the oblivious value and the bias: their digits below the first of the tie
    std are grey, or an x.

    Parameters
    ----------
    results
        What `deadheat.lab.experiment.load_results` gives.
    measures
        Those to show; all unless given, and of very many each at one cutoff.
    """
    every = every_measure(results)
    chosen = headline(every) if measures is None else parse_measures(measures)
    if missing := [repr(measure) for measure in chosen if measure not in every]:
        some = ", ".join(map(repr, headline(every)))
        more = f" and {len(every) - len(headline(every))} more" if headline(every) != every else ""
        raise InputError(f"not evaluated: {', '.join(missing)}; there are {some}{more}")
    lines = [line for measure in chosen for line in _make_lines(results, measure)]
    lines.sort(key=lambda line: line.dataset)
    regimes = list(dict.fromkeys(regime for line in lines for regime in line.regimes))
    notes = list(dict.fromkeys(s.result.provenance.settings.note for s in results))
    notes += [f"{regime} = {describe_regime(regime)}" for regime in regimes]
    if any(s.is_reference and any(summary.range for summary in s.result.values()) for s in results):
        notes.append(_EXACT_TIES)
    if any(summary.std for line in lines for summary in line.regimes.values()):
        notes.append("grey digits, or x: ties make them meaningless, they lie below the tie std")
    if any(_is_certain(line, regime, lines) for line in lines for regime in line.regimes):
        notes.append("bold = the highest whatever the tie-break")
    return _make_table(lines, regimes, notes)


def every_measure(results: Sequence[StoredResult]) -> list[Measure]:
    """Return the measures that some result holds."""
    return list(dict.fromkeys(m for stored in results for m in stored.result.views))


def ties_table(results: Sequence[StoredResult]) -> Table:
    """Return a table of the ties in each regime: distinct scores, and the largest tie group."""
    rows = [
        {
            "dataset": stored.dataset,
            "model": stored.name,
            "model_dtype": stored.model_dtype,
            "regime": stored.regime,
            "distinct": stored.ties.distinct / stored.ties.documents,
            "largest": stored.ties.largest,
        }
        for stored in results
    ]
    dataset, _, model, dtype = _NAMES
    columns = (
        *(dataset, model, dtype, Column("regime", "name")),
        Column("distinct", "ratio", over="distinct", title="share"),
        Column("largest", "count", over="largest", title="tie group"),
    )
    return Table(pl.DataFrame(rows), columns, grouped=2)


@dataclass(frozen=True)
class _Row:
    """A line of Table 1: what was run, and its summary in each regime."""

    dataset: str
    measure: Measure
    model: str
    model_dtype: str
    exact: Summary | None
    """Of the FP32 model."""
    regimes: dict[str, Summary]

    @property
    def row(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "measure": repr(self.measure),
            "model": self.model,
            "model_dtype": self.model_dtype,
            "FP32_M": None if self.exact is None else self.exact.expected,
        }


def _make_lines(results: Sequence[StoredResult], measure: Measure) -> list[_Row]:
    """Return the lines of one measure: a model in each dtype but FP32, which is the column FP32 M.

    A model that was run in FP32 alone has a line of its own, without regimes.
    """
    exact: dict[tuple[str, str], Summary] = {}
    low: dict[tuple[str, str, str], dict[str, Summary]] = {}
    for stored in results:
        if measure not in stored.result.views:
            continue
        if stored.is_reference:
            exact[stored.dataset, stored.name] = stored.result[measure]
        else:
            cell = (stored.dataset, stored.name, stored.model_dtype)
            low.setdefault(cell, {})[stored.regime] = stored.result[measure]
    in_low = {cell[:2] for cell in low}
    alone: dict[tuple[str, str, str], dict[str, Summary]] = {
        (*cell, "fp32"): {} for cell in exact if cell not in in_low
    }
    return [
        _Row(dataset, measure, model, dtype, exact.get((dataset, model)), regimes)
        for (dataset, model, dtype), regimes in {**low, **alone}.items()
    ]


def _is_certain(line: _Row, regime: str, lines: Sequence[_Row]) -> bool:
    """Whether the line's worst value lies above the best of every other model."""
    rivals = [
        other.regimes[regime]
        for other in lines
        if other is not line
        and (other.dataset, other.measure) == (line.dataset, line.measure)
        and (other.model_dtype, regime in other.regimes) == (line.model_dtype, True)
    ]
    return line.regimes[regime].is_highest(rivals)


def _list_views(line: _Row, regime: str, lines: Sequence[_Row]) -> dict[str, Any]:
    """Return the views of a line in one regime; all None where it was not run."""
    summary = line.regimes.get(regime)
    if summary is None:
        return dict.fromkeys(("oblivious", "expected", "range", "bias", "std", "certain"))
    return {
        "oblivious": summary.oblivious,
        "expected": summary.expected,
        "range": summary.range,
        "bias": summary.bias,
        "std": summary.std,
        "certain": _is_certain(line, regime, lines),
    }


def _make_table(lines: Sequence[_Row], regimes: Sequence[str], notes: Sequence[str]) -> Table:
    """Put the regimes side by side; in a narrow terminal each has a row of its own."""
    wide, narrow = [], []
    for line in lines:
        views = {regime: _list_views(line, regime, lines) for regime in regimes}
        named = {f"{r}_{name}": value for r in regimes for name, value in views[r].items()}
        wide.append({**line.row, **named})
        narrow += [{**line.row, "regime": r, **views[r]} for r in line.regimes]
    columns = [
        *_NAMES,
        _EXACT,
        *(_rename_column(regime, column) for regime in regimes for column in _VIEW_COLUMNS),
    ]
    rows = Table(
        pl.DataFrame(narrow, infer_schema_length=None),
        [*_NAMES, Column("regime", "name"), _EXACT, *_VIEW_COLUMNS],
        notes=notes,
        grouped=2,
    )
    frame = pl.DataFrame(wide, infer_schema_length=None)
    return Table(frame, columns, notes=notes, grouped=2, narrow=rows if narrow else None)


def _rename_column(regime: str, column: Column) -> Column:
    """Return the column of a view in the wide table."""
    return replace(
        column,
        of=tuple(f"{regime}_{source}" for source in column.sources),
        title=column.heading,
        over=regime,
        bold=f"{regime}_{column.bold}" if column.bold else "",
    )
