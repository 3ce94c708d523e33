"""The paper's Table 1 from stored results, and what each regime leaves of ties."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.evaluation import VIEW_COLUMNS, Summary, headline
from deadheat.late import pl
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.scoring.regimes import describe_regime
from deadheat.tables import Column, Table
from deadheat.ties.rules import rule_note

if TYPE_CHECKING:
    from deadheat.experiment.results import StoredResult

_VIEWS = (
    replace(VIEW_COLUMNS["oblivious"], of=("oblivious", "std"), kind="firm"),
    replace(VIEW_COLUMNS["expected"], bold="certain", bar=None),
    replace(VIEW_COLUMNS["range"], gives_way=2),
    replace(VIEW_COLUMNS["bias"], of=("bias", "std"), kind="firm signed", gives_way=1),
)
_NAMES = (
    Column("dataset", "name"),
    Column("measure", "name"),
    Column("model", "name"),
    Column("model_dtype", "name", over="model", title="dtype"),
)
_EXACT = Column("FP32_M", over="FP32", title="M", latex="$M$", gives_way=3)
_EXACT_TIES = "FP32 M = the expected value, for the FP32 scores have ties of their own"


def table1(results: Sequence[StoredResult], measures: Iterable[Any] | None = None) -> Table:
    """Give Table 1: for each model FP32 M, then the views of every regime by its name.

    The highest expected value of a dataset, measure, dtype and regime is bold if it is the
    highest whatever the tie-break: its worst value lies above the best of all others.
    Tie-breaking moves the oblivious value and the bias: their digits below the first of the tie
    std are grey, or an x.

    Parameters
    ----------
    results
        What `deadheat.experiment.load_results` gives.
    measures
        Those to show; all unless given, and of very many each at one cutoff.
    """
    every = every_measure(results)
    chosen = headline(every) if measures is None else parse_measures(measures)
    if missing := [repr(measure) for measure in chosen if measure not in every]:
        some = ", ".join(map(repr, headline(every)))
        more = f" and {len(every) - len(headline(every))} more" if headline(every) != every else ""
        raise InputError(f"not evaluated: {', '.join(missing)}; there are {some}{more}")
    lines = [line for measure in chosen for line in _lines(results, measure)]
    lines.sort(key=lambda line: line.dataset)
    regimes = list(dict.fromkeys(regime for line in lines for regime in line.regimes))
    notes = list(dict.fromkeys(rule_note(s.result.provenance.tie_break) for s in results))
    notes += [f"{regime} = {describe_regime(regime)}" for regime in regimes]
    if any(s.is_reference and any(summary.range for summary in s.result.values()) for s in results):
        notes.append(_EXACT_TIES)
    if any(summary.std for line in lines for summary in line.regimes.values()):
        notes.append("grey digits, or x: ties make them meaningless, they lie below the tie std")
    if any(_is_certain(line, regime, lines) for line in lines for regime in line.regimes):
        notes.append("bold = the highest whatever the tie-break")
    return _wide(lines, regimes, notes)


def every_measure(results: Sequence[StoredResult]) -> list[Measure]:
    """Measures that some result holds."""
    return list(dict.fromkeys(m for stored in results for m in stored.result.views))


def ties_table(results: Sequence[StoredResult]) -> Table:
    """Tell what each regime leaves of ties: distinct scores, and the largest tie group."""
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
class _Line:
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


def _lines(results: Sequence[StoredResult], measure: Measure) -> list[_Line]:
    """Lines of one measure: a model in each dtype but FP32, which is the column FP32 M.

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
        _Line(dataset, measure, model, dtype, exact.get((dataset, model)), regimes)
        for (dataset, model, dtype), regimes in {**low, **alone}.items()
    ]


def _is_certain(line: _Line, regime: str, lines: Sequence[_Line]) -> bool:
    """Whether the line's worst value lies above the best of every other model."""
    rivals = [
        other.regimes[regime]
        for other in lines
        if other is not line
        and (other.dataset, other.measure) == (line.dataset, line.measure)
        and (other.model_dtype, regime in other.regimes) == (line.model_dtype, True)
    ]
    return line.regimes[regime].is_highest(rivals)


def _views(line: _Line, regime: str, lines: Sequence[_Line]) -> dict[str, Any]:
    """Views of a line in one regime, nothing where it was not run."""
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


def _wide(lines: Sequence[_Line], regimes: Sequence[str], notes: Sequence[str]) -> Table:
    """Put the regimes side by side; in a narrow terminal each has a row of its own."""
    wide, narrow = [], []
    for line in lines:
        views = {regime: _views(line, regime, lines) for regime in regimes}
        named = {f"{r}_{name}": value for r in regimes for name, value in views[r].items()}
        wide.append({**line.row, **named})
        narrow += [{**line.row, "regime": r, **views[r]} for r in line.regimes]
    columns = [*_NAMES, _EXACT, *(_of(regime, column) for regime in regimes for column in _VIEWS)]
    rows = Table(
        pl.DataFrame(narrow, infer_schema_length=None),
        [*_NAMES, Column("regime", "name"), _EXACT, *_VIEWS],
        notes=notes,
        grouped=2,
    )
    frame = pl.DataFrame(wide, infer_schema_length=None)
    return Table(frame, columns, notes=notes, grouped=2, narrow=rows if narrow else None)


def _of(regime: str, column: Column) -> Column:
    """The column of a view in the wide table."""
    return replace(
        column,
        of=tuple(f"{regime}_{source}" for source in column.sources),
        title=column.heading,
        over=regime,
        bold=f"{regime}_{column.bold}" if column.bold else "",
    )
