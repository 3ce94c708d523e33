"""A diagnosis in the order it is read: sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import counted
from deadheat.diagnosis.what_if import fewest_enough
from deadheat.evaluation import VIEW_COLUMNS
from deadheat.tables import Column, Heading, Table, number

if TYPE_CHECKING:
    from deadheat.diagnosis.anatomy import Anatomy
    from deadheat.diagnosis.diagnose import Diagnosis, Effect
    from deadheat.diagnosis.origins import Origins

_CLASSES = (0, 1, 2, 5, 10, 100, 1_000, 10_000, 100_000, 10**12)
"""Bounds of the classes of size."""
_EXPECTED = replace(VIEW_COLUMNS["expected"], bar=None)
_ENOUGH = Column("enough", "flag")


def parts_of(
    diagnosis: Diagnosis, *, percent: bool = False, details: bool = False, width: int | None = None
) -> list[str | Table]:
    """Give what `deadheat.tables.render` writes of a diagnosis.

    Parameters
    ----------
    percent
        Whether the tables will be written in percent, and so the sentences, too.
    details
        All measures, formats and queries; otherwise those of the measure that ties move most, and
        formats that give the same numbers in one row.
    width
        Where the three lines at the beginning are broken; 80 columns unless given.
    """
    anatomy, origins, effect = diagnosis.anatomy, diagnosis.origins, diagnosis.effect
    return [
        Heading(f"Ties of {diagnosis.name}"),
        *([] if diagnosis.check is None else [diagnosis.check.lines(width)]),
        "\n".join(_facts(anatomy)),
        "\n".join(_grids(diagnosis)),
        *([_sizes(anatomy)] if details else [_size_line(anatomy)]),
        *([] if origins is None else [_origins(origins)]),
        *([] if effect is None else _effect(effect, anatomy, percent, details)),
        *(["\n".join(diagnosis.notes)] if diagnosis.notes else []),
    ]


def _table(
    rows: Sequence[dict[str, object]], title: str, *columns: Column, grouped: int = 0
) -> Table:
    return Table(pl.DataFrame(rows, infer_schema_length=None), columns, title, grouped=grouped)


def _facts(anatomy: Anatomy) -> Iterator[str]:
    yield (
        f"queries: {anatomy.queries:,} · documents: {anatomy.documents:,} · distinct scores: "
        f"{anatomy.distinct:.1%} · tied documents: {anatomy.tied / anatomy.documents:.1%}"
    )
    yield (
        f"largest tie group: {anatomy.largest:,} (query {anatomy.largest_query}, score "
        f"{anatomy.largest_score:g}) · lists that end inside a tie group: {anatomy.end_tied:,}"
    )
    if anatomy.float32_pairs:
        yield (
            f"Cast to float32, as trec_eval 9 and pytrec_eval do, the scores of "
            f"{counted(anatomy.float32_pairs, 'further pair')} would tie, in "
            f"{counted(anatomy.float32_queries, 'query')}; --score-dtype float32 evaluates them so."
        )


def _grids(diagnosis: Diagnosis) -> Iterator[str]:
    """The number grid, that of the logits, the scale of grades, and causes besides rounding."""
    grid, logits, scale = diagnosis.grid, diagnosis.logit_grid, diagnosis.scale
    chance = f"; chance for arbitrary numbers 2^-{grid.bits:.0f}" if grid.bits > 0 else ""
    doubt = f" Too few to exclude: {'; '.join(grid.not_excluded)}." if grid.not_excluded else ""
    yield (
        f"Number grid: {grid.statement}. Coarsest format that fits all scores "
        f"({grid.distinct:,} distinct{chance}).{doubt}"
    )
    if logits is not None:
        yield (
            f"Logits: {logits.statement}, as 16-bit logits are (tested on "
            f"{counted(logits.telling, 'score')}; chance for arbitrary numbers at most "
            f"2^-{logits.bits:.0f})."
        )
    if scale is not None:
        share = diagnosis.anatomy.documents / sum(diagnosis.anatomy.sizes.values())
        yield (
            f"Scale: {scale.used} values are used of the {scale.levels} from {scale.lowest:g} to "
            f"{scale.highest:g} in steps of {scale.step:g}, as grades are; on average {share:.1f} "
            "documents of a list share one."
        )
    for cause in diagnosis.causes:
        if cause.name != "points" or scale is None:  # the scale says so, too
            yield f"Not from this grid: {cause.name}. {cause.statement}."


def _size_rows(anatomy: Anatomy) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for low, high in pairwise(_CLASSES):
        own = {size: n for size, n in anatomy.sizes.items() if low < size <= high}
        if own:
            name = "–".join(f"{size:,}" for size in dict.fromkeys((min(own), max(own))))
            documents = sum(size * n for size, n in own.items())
            rows.append({"size": name, "groups": sum(own.values()), "documents": documents})
    return rows


def _size_line(anatomy: Anatomy) -> str:
    """Write the tie groups by size in one line."""
    rows = [f"{row['groups']:,} × {row['size']}" for row in _size_rows(anatomy)]
    return f"Tie groups (number × documents): {', '.join(rows)}."


def _sizes(anatomy: Anatomy) -> Table:
    rows = _size_rows(anatomy)
    columns = (Column("size", "name"), Column("groups", "count"), Column("documents", "count"))
    return _table(rows, "Tie groups by size", *columns)


def _origins(origins: Origins) -> Table:
    rest = "the head or the model" if origins.head is None else "the model (remains)"
    pairs = {
        "the scoring function (gone under hps)": origins.scoring,
        "the head (gone under head)": origins.head,
        rest: origins.model,
    }
    rows: list[dict[str, object]] = [
        {"tied by": name, "pairs": n} for name, n in pairs.items() if n is not None
    ]
    title = f"Tied pairs of the {origins.model_dtype} model: {origins.pairs:,}"
    return _table(rows, title, Column("tied by", "name"), Column("pairs", "count"))


def _effect(
    effect: Effect, anatomy: Anatomy, percent: bool, details: bool
) -> Iterator[str | Table]:
    given = [row for row in effect.what_if if row.format == "as given"]
    shown = {row.measure for row in given}
    if not details:
        shown = {max(given, key=lambda row: row.range).measure}
    judged = ", ".join(f"{share:.1%} of the first {k}" for k, share in effect.judged.items())
    across = ", ".join(f"rank {k} in {n:,}" for k, n in effect.straddling.items())
    across = (
        f" Of {effect.queries:,} judged queries, a tie group with a relevant document lies "
        f"across {across}."
        if across
        else ""
    )
    yield f"Judged documents, in expectation: {judged}.{across}"
    width, bias = VIEW_COLUMNS["range"], VIEW_COLUMNS["bias"]
    measure = [Column("measure", "name")] if details else []
    of = "" if details else f" of {next(iter(shown))}"
    worst = [row for row in effect.worst_queries if row["measure"] in shown]
    if worst:
        views = (VIEW_COLUMNS[view] for view in ("expected", "worst", "best"))
        columns = (*measure, Column("query_id", "name", title="query"), *views, width, bias)
        few = worst if details else worst[:3]
        title = f"Queries of the largest range{of}"
        yield _table(few, title, *columns, grouped=len(measure))
    columns = (Column("format", "name"), *measure, _EXPECTED, Column("change", "signed"))
    rows = [vars(row) for row in effect.what_if if row.measure in shown]
    title = f"What if: {of.removeprefix(' of ')}{' of ' * (not details)}the same scores, rounded"
    merged = rows if details else _merge(rows)
    yield _table(merged, title, *columns, width, bias, _ENOUGH, grouped=len(measure))
    yield "\n".join(_sentences(effect, percent, shown))
    if effect.scales:
        columns = (Column("levels", "count"), Column("how", "name", title="scores"), *measure)
        rows = [vars(row) for row in effect.scales if row.measure in shown]
        title = f"How fine must the scale be?{of.replace(' of ', ' ')}"
        yield _table(rows, title, *columns, _EXPECTED, width, _ENOUGH, grouped=len(measure))
        yield "\n".join(_scale_sentences(effect, percent, shown))
    if effect.cut_bounds:
        others = anatomy.end_tied - effect.cut_lists
        complete = (
            f" The others ({others:,}) hold all relevant documents of their queries, or these have "
            "none: deadheat assumes that nothing was cut off."
        )
        yield (
            f"Lists that end inside a tie group while relevant documents are missing, and so were "
            f"cut: {effect.cut_lists:,} of {anatomy.end_tied:,}.{complete if others else ''} "
            "Bounds, whatever was cut:"
        )
        ends = (VIEW_COLUMNS["worst"], VIEW_COLUMNS["best"])
        rows = list(map(vars, effect.cut_bounds))
        named = Column("measure", "name")
        yield _table(rows, "Bounds of the cut run", named, Column("lists", "count"), *ends)


def _merge(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Put formats that give the same numbers into one row.

    >>> _merge([{"format": name, "range": 0} for name in ("fp32", "3 decimals", "2 decimals")])
    [{'format': 'fp32, 2–3 decimals', 'range': 0}]
    """
    formats: dict[tuple[object, ...], list[str]] = {}
    for row in rows:
        format, *numbers = row.values()
        formats.setdefault(tuple(numbers), []).append(str(format))
    merged = []
    for values, names in formats.items():
        digits = sorted(int(name.split()[0]) for name in names if name[0].isdigit())
        words = [name for name in names if not name[0].isdigit()]
        if digits:
            ends = "–".join(map(str, dict.fromkeys((digits[0], digits[-1]))))
            words.append(f"{ends} decimal{'s' * (digits[-1] > 1)}")
        keys = list(rows[0])
        merged.append(dict(zip(keys, (", ".join(words), *values), strict=True)))
    return merged


def _sentences(effect: Effect, percent: bool, shown: set[str]) -> Iterator[str]:
    """Which formats are enough, a sentence per measure."""
    as_given = {row.measure: row.range for row in effect.what_if if row.format == "as given"}
    for measure, formats in effect.enough.items():
        if measure not in shown:
            continue
        goal = f"enough for {measure} ± {_within(effect, percent)} here"
        if formats:
            verb = "are" if formats[0].endswith("decimals") else "is"
            also = f"; so would be {' or '.join(formats[1:])}" if formats[1:] else ""
            yield f"{formats[0]} {verb} {goal}{also}."
        elif as_given[measure] > effect.tolerance:
            moved = number(as_given[measure], percent=percent)
            yield f"No format is {goal}: ties in the scores as given already move it by {moved}."
        else:
            yield f"No format that was tried is {goal}: keep the scores as they are."


def _scale_sentences(effect: Effect, percent: bool, shown: set[str]) -> Iterator[str]:
    """Which scale is enough, a sentence per measure, and how the scales were made."""
    for measure, row in fewest_enough(effect.scales).items():
        if measure not in shown:
            continue
        fewest = "None of these scales is"
        if row is not None:
            verb = "would be" if row.how == "refined" else "is"
            fewest = f"A scale of {row.levels:,} values {verb}"
        yield f"{fewest} enough for {measure} ± {_within(effect, percent)} here."
    if any(row.how == "rounded" for row in effect.scales):
        yield "rounded: the same scores on so many evenly spaced values."
    drawn = [row.bound - row.range for row in effect.scales if row.how == "refined"]
    if drawn:
        yield (
            "refined: each grade split into equal parts, its documents put into them at random, as "
            "if finer grades were used evenly and knew no more of relevance than these; the range "
            "is a mean over draws, its true mean no more than "
            f"{number(max(drawn), percent=percent)} larger (95 %). Whatever finer grades say that "
            "keep the order of these, no value leaves worst and best as given."
        )


def _within(effect: Effect, percent: bool) -> str:
    return f"{100 * effect.tolerance:g} points" if percent else f"{effect.tolerance:g}"
