"""A diagnosis as sentences and tables: for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from deadheat.diagnosis.anatomy import Anatomy
from deadheat.diagnosis.diagnose import Diagnosis, Effect
from deadheat.report.grid import Grid, number

_BOUNDS = (0, 1, 2, 5, 10, 100, 1_000, 10_000, 100_000, 10**12)


def rich_report(diagnosis: Diagnosis) -> Group:
    """Build the page for a terminal."""
    parts: list[Any] = [Text(f"Ties of {Path(diagnosis.name).name}", style="bold")]
    for part in _parts(diagnosis):
        parts += ["", part.rich() if isinstance(part, Grid) else Text(part)]
    return Group(*parts)


def markdown_report(diagnosis: Diagnosis) -> str:
    """Write the page as Markdown."""
    parts = [f"# Ties of {Path(diagnosis.name).name}"]
    for part in _parts(diagnosis):
        table = isinstance(part, Grid)
        parts.append(f"## {part.title}\n\n{part.markdown()}" if table else part)
    return "\n\n".join(parts)


def _parts(diagnosis: Diagnosis) -> Iterator[Any]:
    anatomy, grid, origins = diagnosis.anatomy, diagnosis.grid, diagnosis.origins
    yield (
        f"queries: {anatomy.queries:,} · documents: {anatomy.documents:,} · distinct scores: "
        f"{anatomy.distinct:.1%} · tied documents: {anatomy.tied / anatomy.documents:.1%}\n"
        f"largest tie group: {anatomy.largest:,} (query {anatomy.largest_query}, score "
        f"{anatomy.largest_score:g}) · lists that end inside a tie group: {anatomy.end_tied:,}"
    )
    sure = f"; arbitrary numbers would all be so with a chance of 2^-{grid.bits:.0f}"
    doubt = f" Too few to exclude: {'; '.join(grid.not_excluded)}." if grid.not_excluded else ""
    yield (
        f"Number grid: {grid.statement}. Decided as the coarsest statement that holds for each of "
        f"the distinct scores ({grid.distinct:,}{sure * (grid.bits > 0)}).{doubt}"
    )
    yield _sizes(anatomy)
    if origins is not None:
        ends = ("the scoring function (gone under hps)", "the head (gone under head)")
        rest = "the model (remains)" if origins.head is not None else "the head or the model"
        pairs = zip((*ends, rest), (origins.scoring, origins.head, origins.model), strict=True)
        rows = [{"tied by": name, "pairs": n} for name, n in pairs if n is not None]
        title = f"Tied pairs of the {origins.model_dtype} model: {origins.pairs:,}"
        yield _table(title, ["tied by", "pairs"], rows)
    if diagnosis.effect is not None:
        yield from _effect(diagnosis.effect)
    if diagnosis.notes:
        yield "\n".join(diagnosis.notes)


def _sizes(anatomy: Anatomy) -> Grid:
    rows = []
    for low, high in pairwise(_BOUNDS):
        own = {size: n for size, n in anatomy.sizes.items() if low < size <= high}
        name = f"{high}" if high == low + 1 else f"{low + 1:,}–{min(high, anatomy.largest):,}"
        documents = sum(size * n for size, n in own.items())
        rows += [{"size": name, "groups": sum(own.values()), "documents": documents}] * bool(own)
    return _table("Tie groups by size", ["size", "groups", "documents"], rows)


def _effect(effect: Effect) -> Iterator[Any]:
    across = ", ".join(f"rank {k} in {n:,}" for k, n in effect.straddling.items())
    if across:
        yield (
            f"Of {effect.queries:,} judged queries, a tie group with a relevant document lies "
            f"across {across}."
        )
    columns = ["measure", "query_id", "expected", "worst", "best", "range", "bias"]
    if effect.worst_queries:
        yield _table("Queries of the largest range", columns, effect.worst_queries)
    columns = ["format", "measure", "expected", "change", "range", "bias", "enough"]
    yield _table("What if: the same scores, rounded", columns, map(vars, effect.what_if))
    yield "\n".join(_verdicts(effect))
    if effect.cut_bounds:
        yield f"Lists cut inside a tie group: {effect.cut_lists:,}. Bounds, whatever was cut:"
        columns = ["measure", "lists", "worst", "best"]
        yield _table("Bounds of the cut run", columns, map(vars, effect.cut_bounds))


def _verdicts(effect: Effect) -> Iterator[str]:
    """Which formats are enough, a sentence per measure."""
    given = {row.measure: row.range for row in effect.what_if if row.format == "as given"}
    for measure, formats in effect.enough.items():
        goal = f"enough for {measure} ± {effect.tolerance:g} here"
        if formats:
            verb = "are" if formats[0].endswith("decimals") else "is"
            also = f"; so would be {' or '.join(formats[1:])}" if formats[1:] else ""
            yield f"{formats[0]} {verb} {goal}{also}."
        elif given[measure] > effect.tolerance:
            moved = f"ties in the scores as given already move it by {given[measure]:.4f}"
            yield f"No format is {goal}: {moved}."
        else:
            yield f"No format that was tried is {goal}: keep the scores as they are."


def _table(title: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Grid:
    def cell(column: str, value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            return number(value, signed=column in ("bias", "change"))
        return f"{value:,}" if isinstance(value, int) else str(value)

    header = [column.removesuffix("_id") for column in columns]
    cells = [[cell(c, row[c]) for c in columns] for row in rows]
    repeated = len({row[0] for row in cells}) < len(cells)
    return Grid(header, cells, title, grouped=int(repeated))
