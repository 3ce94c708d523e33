"""The paper's Table 1 from stored results, and a table of the ties in each regime."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.evaluation import VIEW_COLUMNS, Summary, headline
from deadheat.measures import Measure, parse_measures
from deadheat.scoring import describe_regime
from deadheat.tables import Column, Table

if TYPE_CHECKING:
    from deadheat.lab.experiment.results import StoredResult

_VIEW_COLUMNS = (
    replace(VIEW_COLUMNS["oblivious"], of=("oblivious", "std"), kind="significant"),
    replace(VIEW_COLUMNS["expected"], bold="certain"),
    replace(VIEW_COLUMNS["range"], drop_priority=2),
    replace(VIEW_COLUMNS["bias"], of=("bias", "std"), kind="significant signed", drop_priority=1),
)
NAMES = (
    Column("dataset", "name"),
    Column("measure", "name"),
    Column("model", "name"),
    Column("model_dtype", "name", over="model", title="dtype"),
)
_EXACT = Column("FP32_M", over="FP32", title="M", drop_priority=3)
_VIEWS = ("oblivious", "expected", "range", "bias", "std")
_EXACT_TIES = "FP32 M = the expected value, because the FP32 scores have ties, too"


def table1(
    results: Sequence[StoredResult], measures: Iterable[str | Measure] | None = None
) -> Table:
    """Return Table 1: for each model FP32 M, then the views of every regime.

    The highest expected value of a dataset, measure, dtype and regime is bold if it is the highest
    in every tie order: its worst value is above the best value of all others. Tie-breaking moves
    the oblivious value and the bias: digits that are smaller than the first digit of the tie std
    are grey, or x in plain text.

    Parameters
    ----------
    results
        Results from `deadheat.lab.experiment.load_results`.
    measures
        Measures to show. Default: all; of more than eight, each at one cutoff.
    """
    chosen = choose_measures(results, measures)
    shown = [(s, measure) for measure in chosen for s in results if measure in s.result.views]
    exact = {(s.dataset, m, s.name): s.result[m].expected for s, m in shown if s.is_reference}
    lines: dict[tuple[str, Measure, str, str], dict[str, Summary]] = {}
    for stored, measure in shown:
        if not stored.is_reference:
            line = lines.setdefault((stored.dataset, measure, stored.name, stored.model_dtype), {})
            line[stored.regime] = stored.result[measure]
    in_low = {line[:3] for line in lines}
    lines |= {(*name, "fp32"): {} for name in exact if name not in in_low}
    regimes = list(dict.fromkeys(regime for line in lines.values() for regime in line))
    wide: list[dict[str, object]] = []
    narrow: list[dict[str, Any]] = []
    for key in sorted(lines, key=lambda line: (line[0], chosen.index(line[1]))):
        dataset, measure, model, dtype = key
        names = {
            "dataset": dataset,
            "measure": repr(measure),
            "model": model,
            "model_dtype": dtype,
            "FP32_M": exact.get((dataset, measure, model)),
        }
        wide.append(dict(names))
        for regime, summary in lines[key].items():
            rivals = [
                other[regime]
                for name, other in lines.items()
                if (*name[:2], name[3]) == (dataset, measure, dtype) and regime in other
            ]
            rivals.remove(summary)
            views = {view: getattr(summary, view) for view in _VIEWS}
            views["certain"] = summary.is_highest(rivals)
            narrow.append({**names, "regime": regime, **views})
            wide[-1] |= {f"{regime}_{view}": value for view, value in views.items()}
    notes = list(dict.fromkeys(s.result.provenance.settings.note for s in results))
    notes += [f"{regime} = {describe_regime(regime)}" for regime in regimes]
    if any(s.is_reference and any(summary.range for summary in s.result.values()) for s in results):
        notes.append(_EXACT_TIES)
    if any(row["std"] for row in narrow):
        notes.append("grey digits, or x in plain text, lie below the tie std")
    if any(row["certain"] for row in narrow):
        notes.append("bold = the highest in every tie order")
    # One block per regime: models are compared within a regime.
    blocks = [(repr(measure), regime) for measure in chosen for regime in regimes]
    narrow.sort(key=lambda row: (row["dataset"], blocks.index((row["measure"], row["regime"]))))
    rows = Table(
        pl.DataFrame(narrow, infer_schema_length=None),
        [*NAMES[:2], Column("regime", "name"), *NAMES[2:], _EXACT, *_VIEW_COLUMNS],
        notes=notes,
        grouped=3,
    )
    regime_columns = [_rename_column(r, column) for r in regimes for column in _VIEW_COLUMNS]
    return Table(
        pl.DataFrame(wide, infer_schema_length=None),
        [*NAMES, _EXACT, *regime_columns],
        notes=notes,
        grouped=2,
        narrow=rows if narrow else None,  # in LaTeX, and in a narrow terminal
    )


def every_measure(results: Sequence[StoredResult]) -> list[Measure]:
    """Return all measures of the results."""
    return list(dict.fromkeys(m for stored in results for m in stored.result.views))


def choose_measures(
    results: Sequence[StoredResult], measures: Iterable[str | Measure] | None
) -> list[Measure]:
    """Return the measures to show; refuse those that were not evaluated."""
    every = every_measure(results)
    chosen = headline(every) if measures is None else parse_measures(measures)
    if missing := [repr(measure) for measure in chosen if measure not in every]:
        known = ", ".join(map(repr, headline(every)))
        raise InputError(f"not evaluated: {', '.join(missing)}; use measures such as {known}")
    return chosen


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
    dataset, _, model, dtype = NAMES
    columns = (
        dataset,
        model,
        dtype,
        Column("regime", "name"),
        Column("distinct", "ratio", over="distinct", title="share"),
        Column("largest", "count", over="largest", title="tie group"),
    )
    return Table(pl.DataFrame(rows), columns, grouped=2)


def _rename_column(regime: str, column: Column) -> Column:
    """Return the column of a view in the wide table."""
    return replace(
        column,
        of=tuple(f"{regime}_{source}" for source in column.sources),
        title=column.heading,
        over=regime,
        bold=f"{regime}_{column.bold}" if column.bold else "",
    )
