"""The paper's Table 1 from stored results, and what each regime costs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.report.grid import Grid
from deadheat.result import Summary

if TYPE_CHECKING:
    from deadheat.experiment import StoredResult

STYLES = ("table", "markdown", "latex", "csv", "html")
VIEWS = {"oblivious": "M_obl", "expected": "E[M]", "range": "range", "bias": "bias"}
LATEX_VIEWS = {"oblivious": r"$M_{obl}$", "expected": r"$\mathbb{E}[M]$"}
NAMES = ("dataset", "measure", "model", "model dtype", "FP32 M")
FEW = 6
"""Measures beyond which only those at one cutoff are shown."""

Row = list[str | float | None]


@dataclass(frozen=True)
class _Line:
    """A line of Table 1: what was run, and its summary in each regime."""

    dataset: str
    measure: Measure
    model: str
    model_dtype: str
    exact: Summary | None
    """The FP32 model."""
    regimes: dict[str, Summary]

    @property
    def words(self) -> list[str]:
        return [self.dataset, repr(self.measure), self.model, self.model_dtype]

    def values(self, regimes: Iterable[str]) -> Row:
        """All numbers, in full precision."""
        found = [self.regimes.get(regime) for regime in regimes]
        views: Row = [None if s is None else getattr(s, view) for s in found for view in VIEWS]
        return [None if self.exact is None else self.exact.expected, *views]

    def cells(self, regimes: Iterable[str], *, percent: bool) -> list[str]:
        """All numbers as they are shown.

        Tie-breaking moves the oblivious value and the bias: they have no digit below the first
        of the tie std. The expected value and the range do not depend on it.
        """
        scale, digits = (100, 2) if percent else (1, 4)
        found = [self.regimes.get(regime) for regime in regimes]
        cells = [_number(None if self.exact is None else self.exact.expected, scale, digits)]
        for summary in found:
            firm = digits if summary is None else standing_digits(summary.std, scale, digits)
            for view in VIEWS:
                value = None if summary is None else float(getattr(summary, view))
                shown = firm if view in ("oblivious", "bias") else digits
                cells.append(_number(value, scale, shown, signed=view == "bias"))
        return cells


def standing_digits(std: float | None, scale: int, digits: int) -> int:
    """Count the decimals that random tie-breaking leaves standing, at most `digits`.

    >>> standing_digits(0.0113, 100, 2), standing_digits(0.0003, 100, 2), standing_digits(0, 1, 4)
    (0, 2, 4)
    """
    if not std:
        return digits
    return min(digits, max(0, -math.floor(math.log10(scale * std))))


def table1(
    results: Sequence[StoredResult],
    style: str = "table",
    *,
    measures: Iterable[Any] | None = None,
    percent: bool = True,
    width: int | None = None,
) -> str:
    """Write Table 1: for each model FP32 M, then the views of every regime by its name.

    The highest expected value of a dataset, measure, dtype and regime is bold if it is the
    highest whatever the tie-break: its worst value lies above the best of all others.

    Parameters
    ----------
    results
        What `deadheat.experiment.load_results` gives.
    style
        One of `STYLES`; CSV has full precision and every measure.
    measures
        Those to show; all unless given, and of very many those at cutoff 10.
    percent
        Print as papers do: 73.53 for 0.7353.
    width
        Columns of the terminal: a table that is wider gets a row per regime instead.
    """
    if style not in STYLES:
        raise InputError(f"unknown table style {style!r}: use one of {', '.join(STYLES)}")
    chosen = None if measures is None else parse_measures(measures)
    if chosen is None and style != "csv":
        chosen = headline(results)
    regimes, lines = _lines(results, chosen)
    header = [*NAMES, *(f"{regime} {view}" for regime in regimes for view in VIEWS.values())]
    if style == "csv":
        return to_csv(header, [[*line.words, *line.values(regimes)] for line in lines])
    meanings = {r.regime: r.result.provenance["regime_meaning"] for r in results}
    notes = ["M_obl = ties in the order of the candidates."]
    notes += [f"{regime} = {meanings[regime]}." for regime in regimes]
    notes += [_FP32_TIES] if any(_is_tied(result) for result in results) else []
    best = {(i, regime) for i, line in enumerate(lines) for regime in _sure_wins(line, lines)}
    if any(summary.std for line in lines for summary in line.regimes.values()):
        notes.append("M_obl and bias are rounded at the first digit of their tie std.")
    if best:
        notes.append("Bold: the highest whatever the tie-break.")

    rows = [[*line.words, *line.cells(regimes, percent=percent)] for line in lines]
    at = len(NAMES) + list(VIEWS).index("expected")
    bold = frozenset((i, at + len(VIEWS) * regimes.index(regime)) for i, regime in best)
    grid = Grid(header, rows, "", notes, grouped=2, stacked=True, bold=bold)
    if style == "latex":
        return grid.latex(_latex_heading(regimes))
    if style == "markdown":
        return f"{grid.markdown()}\n\n{' '.join(notes)}"
    text = grid.render(style)
    if style == "table" and width is not None and len(text.splitlines()[0]) > width:
        return _narrow(lines, rows, regimes, notes, best).render(style)
    return text


def costs(results: Sequence[StoredResult], style: str = "table") -> str:
    """Write what each regime leaves of ties, and what it costs over native scoring.

    Seconds are those of the forward pass and of scoring; of `head` also of the last layer in FP32.
    """
    header = ["dataset", "model", "model dtype", "regime", "distinct", "largest tie group"]
    header += ["seconds", "× native", "scoring seconds", "scoring × native"]
    native = {_cell(result): result.seconds for result in results if result.regime == "native"}
    rows: list[Row] = []
    for result in results:
        ties, spent = result.ties, result.seconds
        base = native.get(_cell(result))
        scoring = spent["scoring"] + spent["head"]
        total = spent["forward"] + scoring
        rows.append(
            [
                result.dataset,
                short(result.model),
                result.model_dtype,
                result.regime,
                ties["distinct"] / ties["documents"],
                ties["largest"],
                total,
                total / (base["forward"] + base["scoring"]) if base else None,
                scoring,
                scoring / base["scoring"] if base else None,
            ]
        )
    if style == "csv":
        return to_csv(header, rows)
    digits = [0, 0, 0, 0, 4, 0, 2, 4, 5, 2]
    cells = [[_number(v, 1, d) for v, d in zip(row, digits, strict=True)] for row in rows]
    return Grid(header, cells, "", grouped=2, stacked=True).render(style)


def headline(results: Sequence[StoredResult]) -> list[Measure]:
    """Choose the measures to show: all if they are few, else those at cutoff 10 or the largest."""
    found = list(dict.fromkeys(measure for each in results for measure in each.result.views))
    if len(found) <= FEW:
        return found
    deepest = max(measure.cutoff or 0 for measure in found)
    cutoff = 10 if any(measure.cutoff == 10 for measure in found) else deepest
    return [measure for measure in found if measure.cutoff in (cutoff, None)]


def short(model: str) -> str:
    """Return a model's name without its owner or folder."""
    return Path(model).name


_FP32_TIES = "FP32 M is the expected value: the FP32 scores have ties of their own."


def _lines(
    results: Sequence[StoredResult], measures: list[Measure] | None
) -> tuple[list[str], list[_Line]]:
    """Names of the regimes, and a line per dataset, measure, model and model dtype."""
    exact = {_cell(r)[:2]: r for r in results if r.model_dtype == "fp32" and r.regime == "native"}
    low = {_cell(r)[:2] for r in results if r.model_dtype != "fp32"}
    found: dict[tuple[str, str, str], dict[str, StoredResult]] = {}
    for result in results:
        reference = result.model_dtype == "fp32" and result.regime == "native"
        if not reference:
            found.setdefault(_cell(result), {})[result.regime] = result
        elif _cell(result)[:2] not in low:  # a model that was run in FP32 alone
            found.setdefault(_cell(result), {})
    regimes = list(dict.fromkeys(name for shown in found.values() for name in shown))
    every = dict.fromkeys(measure for result in results for measure in result.result.views)
    lines = []
    for dataset in dict.fromkeys(cell[0] for cell in found):
        for measure in measures or every:
            for cell, shown in found.items():
                summaries = {regime: _summary(each, measure) for regime, each in shown.items()}
                line = _Line(
                    dataset,
                    measure,
                    short(cell[1]),
                    cell[2],
                    _summary(exact.get(cell[:2]), measure),
                    {regime: each for regime, each in summaries.items() if each is not None},
                )
                if cell[0] == dataset and (line.exact or line.regimes):
                    lines.append(line)
    if not lines:
        raise InputError("none of the measures asked for was evaluated")
    return regimes, lines


def _sure_wins(line: _Line, lines: Sequence[_Line]) -> Iterator[str]:
    """Regimes in which the line's worst value lies above the best of every other model."""
    for regime, summary in line.regimes.items():
        others = [
            other.regimes[regime]
            for other in lines
            if other is not line
            and (other.dataset, other.measure) == (line.dataset, line.measure)
            and (other.model_dtype, regime in other.regimes) == (line.model_dtype, True)
        ]
        if others and all(summary.worst > other.best for other in others):
            yield regime


def _narrow(
    lines: Sequence[_Line],
    rows: Sequence[list[str]],
    regimes: list[str],
    notes: list[str],
    best: set[tuple[int, str]],
) -> Grid:
    """Put the views of each regime into a row of its own."""
    header = [*NAMES[:-1], "regime", NAMES[-1], *VIEWS.values()]
    cells: list[list[str]] = []
    bold: set[tuple[int, int]] = set()
    for i, (line, row) in enumerate(zip(lines, rows, strict=True)):
        for j, regime in enumerate(regimes):
            if regime in line.regimes:
                views = row[len(NAMES) + j * len(VIEWS) :][: len(VIEWS)]
                if (i, regime) in best:
                    bold.add((len(cells), len(NAMES) + 1 + list(VIEWS).index("expected")))
                cells.append([*line.words, regime, row[len(NAMES) - 1], *views])
    return Grid(header, cells, "", notes, grouped=2, stacked=True, bold=frozenset(bold))


def _summary(result: StoredResult | None, measure: Measure) -> Summary | None:
    if result is None or measure not in result.result.views:
        return None
    return result.result[measure]


def _cell(result: StoredResult) -> tuple[str, str, str]:
    return result.dataset, result.model, result.model_dtype


def _is_tied(result: StoredResult) -> bool:
    if result.model_dtype != "fp32" or result.regime != "native":
        return False
    return any(summary.range > 0 for summary in result.result)


def _number(value: str | float | None, scale: int, digits: int, *, signed: bool = False) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    text = f"{scale * value:.{digits}f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return f"+{text}" if signed and float(text) > 0 else text


def to_csv(header: list[str], rows: list[Row]) -> str:
    """Write rows in full precision."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow([name.replace(" ", "_") for name in header])
    writer.writerows(rows)
    return output.getvalue().rstrip("\n")


def _latex_heading(regimes: list[str]) -> list[str]:
    """Write two lines: the regimes, each over its columns, and the names of these."""
    top = ["", "", "", "", "FP32"] + [rf"\multicolumn{{4}}{{c}}{{{r}}}" for r in regimes]
    views = [LATEX_VIEWS.get(view, view) for view in VIEWS] * len(regimes)
    return [" & ".join(top), " & ".join(["dataset", "measure", "model", "dtype", "$M$", *views])]
