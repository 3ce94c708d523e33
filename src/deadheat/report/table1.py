"""The paper's Table 1 from stored results, and what each regime costs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deadheat.errors import InputError
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures

if TYPE_CHECKING:
    from deadheat.experiment import StoredResult

STYLES = ("table", "markdown", "latex", "csv")
VIEWS = {"oblivious": "M_obl", "expected": "E[M]", "range": "range", "bias": "bias"}
LATEX_VIEWS = {"oblivious": r"$M_{obl}$", "expected": r"$\mathbb{E}[M]$"}
FEW = 6
"""Measures beyond which only those at one cutoff are shown."""

Row = list[str | float | None]


def table1(
    results: Sequence[StoredResult],
    style: str = "table",
    *,
    measures: Iterable[Any] | None = None,
    percent: bool = True,
    width: int | None = None,
) -> str:
    """Write Table 1: for each model FP32 M, then the views of every regime by its name.

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
    chosen = None if measures is None else parse_measures(measures)
    if chosen is None and style != "csv":
        chosen = headline(results)
    regimes, rows = _rows(results, chosen)
    names = ["dataset", "measure", "model", "model dtype", "FP32 M"]
    header = names + [f"{regime} {VIEWS[view]}" for regime in regimes for view in VIEWS]
    if style == "csv":
        return to_csv(header, rows)
    scale = 100 if percent else 1
    cells = [
        [
            _number(value, scale, 2 if percent else 4, signed=name.endswith("bias"))
            for name, value in zip(header, row, strict=True)
        ]
        for row in rows
    ]
    meanings = {r.regime: r.result.provenance["regime_meaning"] for r in results}
    notes = ["M_obl = ties in the order of the candidates."]
    notes += [f"{regime} = {meanings[regime]}." for regime in regimes]
    notes += [_FP32_TIES] if any(_is_tied(result) for result in results) else []
    if style == "latex":
        return _latex(regimes, cells)
    text = render(header, cells, style, words=4, sections=2, notes=notes)
    if style == "table" and width is not None and len(text.splitlines()[0]) > width:
        header = [*names[:-1], "regime", names[-1], *VIEWS.values()]
        cells = [line for row in cells for line in _by_regime(row, regimes, len(names))]
        text = render(header, cells, style, words=5, sections=2, notes=notes)
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
    return render(header, cells, style, words=4, sections=2)


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


def _rows(
    results: Sequence[StoredResult], measures: list[Measure] | None
) -> tuple[list[str], list[Row]]:
    """Names of the regimes, and a row per dataset, measure, model and model dtype."""
    exact = {_cell(r)[:2]: r for r in results if r.model_dtype == "fp32" and r.regime == "native"}
    found: dict[tuple[str, str, str], dict[str, StoredResult]] = {}
    for result in results:
        alone = all(_cell(r)[:2] != _cell(result)[:2] or r.model_dtype == "fp32" for r in results)
        if result.model_dtype != "fp32" or alone or result.regime != "native":
            shown = found.setdefault(_cell(result), {})
            if result.model_dtype != "fp32" or result.regime != "native":
                shown[result.regime] = result
    regimes = list(dict.fromkeys(name for shown in found.values() for name in shown))
    every = dict.fromkeys(measure for result in results for measure in result.result.views)
    rows: list[Row] = []
    for dataset in dict.fromkeys(cell[0] for cell in found):
        for measure in measures or every:
            for cell, shown in found.items():
                if cell[0] != dataset:
                    continue
                row: Row = [dataset, repr(measure), short(cell[1]), cell[2]]
                row.append(_view(exact.get(cell[:2]), measure, "expected"))
                row += [_view(shown.get(name), measure, v) for name in regimes for v in VIEWS]
                if any(value is not None for value in row[4:]):
                    rows.append(row)
    if not rows:
        raise InputError("none of the measures asked for was evaluated")
    return regimes, rows


def _by_regime(row: list[str], regimes: list[str], names: int) -> Iterator[list[str]]:
    """Put the views of each regime into a row of its own."""
    for i, regime in enumerate(regimes):
        views = row[names + i * len(VIEWS) :][: len(VIEWS)]
        if any(view != "–" for view in views):
            yield [*row[: names - 1], regime, row[names - 1], *views]


def _view(result: StoredResult | None, measure: Measure, view: str) -> float | None:
    if result is None or measure not in result.result.views:
        return None
    return float(getattr(result.result[measure], view))


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


def render(
    header: list[str],
    rows: list[list[str]],
    style: str,
    *,
    words: int,
    sections: int,
    notes: Sequence[str] = (),
) -> str:
    """Write cells as a table for the terminal, Markdown or LaTeX.

    The first `words` columns are words; rows that share the first `sections` stand together.
    """
    if style == "markdown":
        rule = ["---" if i < words else "---:" for i in range(len(header))]
        lines = [header, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
        text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return "\n\n".join([text, " ".join(notes)]).rstrip()
    if style == "latex":
        return _tabular("l" * words + "r" * (len(header) - words), [_line(header)], rows)
    if style != "table":
        raise InputError(f"unknown table style {style!r}: use one of {', '.join(STYLES)}")
    table = Table(caption="\n".join(notes) or None, caption_justify="left")
    for i, name in enumerate(header):
        table.add_column(name.replace(" ", "\n"), justify="left" if i < words else "right")
    last: list[str] = []
    for row in rows:
        if last and row[:sections] != last[:sections]:
            table.add_section()
        same = row[:sections] == last[:sections]
        table.add_row(*(Text(c) for c in ([""] * sections + row[sections:] if same else row)))
        last = row
    wide = Console(file=io.StringIO(), width=1000, color_system=None)
    output = io.StringIO()
    Console(file=output, width=wide.measure(table).maximum, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in output.getvalue().splitlines())


def to_csv(header: list[str], rows: list[Row]) -> str:
    """Write rows in full precision."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow([name.replace(" ", "_") for name in header])
    writer.writerows(rows)
    return output.getvalue().rstrip("\n")


_ESCAPES = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "×": r"$\times$",
}


def _line(cells: Iterable[str]) -> str:
    return " & ".join("".join(_ESCAPES.get(c, c) for c in cell) for cell in cells) + r" \\"


def _latex(regimes: list[str], rows: list[list[str]]) -> str:
    """Write Table 1 with a heading over the columns of each regime."""
    top = ["", "", "", "", "FP32"] + [rf"\multicolumn{{4}}{{c}}{{{r}}}" for r in regimes]
    views = [LATEX_VIEWS.get(view, view) for view in VIEWS] * len(regimes)
    names = ["dataset", "measure", "model", "dtype", "$M$", *views]
    heads = [" & ".join(line) + r" \\" for line in (top, names)]
    return _tabular("l" * 4 + "r" * (len(names) - 4), heads, rows)


def _tabular(columns: str, heads: list[str], rows: list[list[str]]) -> str:
    lines = [*heads, r"\midrule", *map(_line, rows)]
    body = "\n".join(lines)
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}"
