"""A diagnosis in the order it is read: sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from deadheat._lazy import pl
from deadheat.diagnosis.anatomy import Anatomy
from deadheat.diagnosis.origins import Origins
from deadheat.diagnosis.what_if import OnScale, fewest_enough
from deadheat.evaluation import VIEW_COLUMNS
from deadheat.remarks import counted
from deadheat.tables import Column, Heading, Table, number

if TYPE_CHECKING:
    from deadheat.diagnosis.diagnose import Diagnosis, Effect

_CLASSES = (0, 1, 2, 5, 10, 100, 1_000, 10_000, 100_000, 10**12)
"""Bounds of the classes of size."""


def parts_of(diagnosis: Diagnosis, *, percent: bool = False) -> list[str | Table]:
    """Give what `deadheat.tables.render` writes of a diagnosis.

    Parameters
    ----------
    percent
        Whether the tables will be written in percent, and so the sentences, too.
    """
    anatomy, grid = diagnosis.anatomy, diagnosis.grid
    facts = (
        f"queries: {anatomy.queries:,} · documents: {anatomy.documents:,} · distinct scores: "
        f"{anatomy.distinct:.1%} · tied documents: {anatomy.tied / anatomy.documents:.1%}\n"
        f"largest tie group: {anatomy.largest:,} (query {anatomy.largest_query}, score "
        f"{anatomy.largest_score:g}) · lists that end inside a tie group: {anatomy.end_tied:,}"
    )
    chance = f"; arbitrary numbers would all be so with a chance of 2^-{grid.bits:.0f}"
    number_grid = (
        f"Number grid: {grid.statement}. Decided as the coarsest statement that holds for each of "
        f"the distinct scores ({grid.distinct:,}{chance if grid.bits > 0 else ''})."
    )
    if grid.not_excluded:
        number_grid += f" Too few to exclude: {'; '.join(grid.not_excluded)}."
    if (logits := diagnosis.logit_grid) is not None:
        number_grid += (
            f"\nLogits: {logits.statement}, as 16-bit logits are. Decided on the "
            f"{counted(logits.telling, 'score')} that could tell; as many arbitrary ones would lie "
            f"so with a chance of 2^-{logits.bits:.0f} at most."
        )
    if (scale := diagnosis.scale) is not None:
        share = anatomy.documents / sum(anatomy.sizes.values())
        number_grid += (
            f"\nScale: {scale.used} values are used of the {scale.levels} from {scale.lowest:g} to "
            f"{scale.highest:g} in steps of {scale.step:g}, as grades are; on average {share:.1f} "
            "documents of a list share one."
        )
    number_grid += "".join(
        f"\nOther than rounding to this grid: {cause.name}. {cause.statement}."
        for cause in diagnosis.causes
        if cause.name != "points" or diagnosis.scale is None  # which says so, too
    )
    if anatomy.float32_pairs:
        facts += (
            f"\nCast to float32, as trec_eval 9 and pytrec_eval do, the scores of "
            f"{counted(anatomy.float32_pairs, 'further pair')} would tie, in "
            f"{counted(anatomy.float32_queries, 'query')}: see score_dtype (--score-dtype)."
        )
    parts: list[str | Table] = [
        Heading(f"Ties of {Path(diagnosis.name).name}"),
        facts,
        number_grid,
        _sizes(anatomy),
    ]
    if diagnosis.origins is not None:
        parts.append(_origins(diagnosis.origins))
    if diagnosis.effect is not None:
        parts += _effect(diagnosis.effect, anatomy, percent)
    if diagnosis.notes:
        parts.append("\n".join(diagnosis.notes))
    return parts


def _sizes(anatomy: Anatomy) -> Table:
    rows = []
    for low, high in pairwise(_CLASSES):
        own = {size: n for size, n in anatomy.sizes.items() if low < size <= high}
        if own:
            name = f"{high}" if high == low + 1 else f"{low + 1:,}–{min(high, anatomy.largest):,}"
            documents = sum(size * n for size, n in own.items())
            rows.append({"size": name, "groups": sum(own.values()), "documents": documents})
    columns = (Column("size", "name"), Column("groups", "count"), Column("documents", "count"))
    return Table(pl.DataFrame(rows), columns, "Tie groups by size")


def _origins(origins: Origins) -> Table:
    rest = "the head or the model" if origins.head is None else "the model (remains)"
    pairs = {
        "the scoring function (gone under hps)": origins.scoring,
        "the head (gone under head)": origins.head,
        rest: origins.model,
    }
    rows = [{"tied by": name, "pairs": n} for name, n in pairs.items() if n is not None]
    columns = (Column("tied by", "name"), Column("pairs", "count"))
    title = f"Tied pairs of the {origins.model_dtype} model: {origins.pairs:,}"
    return Table(pl.DataFrame(rows), columns, title)


def _effect(effect: Effect, anatomy: Anatomy, percent: bool) -> Iterator[str | Table]:
    judged = ", ".join(f"{share:.1%} of the first {k}" for k, share in effect.judged.items())
    yield f"Judged documents, in expectation: {judged}."
    across = ", ".join(f"rank {k} in {n:,}" for k, n in effect.straddling.items())
    if across:
        yield (
            f"Of {effect.queries:,} judged queries, a tie group with a relevant document lies "
            f"across {across}."
        )
    measure = Column("measure", "name")
    if effect.worst_queries:
        columns = (
            measure,
            Column("query_id", "name", title="query"),
            *(VIEW_COLUMNS[view] for view in ("expected", "worst", "best", "range", "bias")),
        )
        frame = pl.DataFrame(effect.worst_queries, infer_schema_length=None)
        yield Table(frame, columns, "Queries of the largest range", grouped=1)
    columns = (
        Column("format", "name"),
        measure,
        replace(VIEW_COLUMNS["expected"], bar=None),
        Column("change", "signed"),
        VIEW_COLUMNS["range"],
        VIEW_COLUMNS["bias"],
        Column("enough", "flag"),
    )
    frame = pl.DataFrame(list(map(vars, effect.what_if)), infer_schema_length=None)
    yield Table(frame, columns, "What if: the same scores, rounded", grouped=1)
    yield "\n".join(_sentences(effect, percent))
    if effect.scales:
        yield from _scales(effect, percent)
    if effect.cut_bounds:
        others = anatomy.end_tied - effect.cut_lists
        complete = (
            f" The others ({others:,}) hold all relevant documents of their queries, or these have "
            "none, and are taken to be complete."
        )
        yield (
            f"Lists that end inside a tie group while relevant documents are missing, and so were "
            f"cut: {effect.cut_lists:,} of {anatomy.end_tied:,}.{complete if others else ''} "
            "Bounds, whatever was cut:"
        )
        columns = (measure, Column("lists", "count"), VIEW_COLUMNS["worst"], VIEW_COLUMNS["best"])
        frame = pl.DataFrame(list(map(vars, effect.cut_bounds)))
        yield Table(frame, columns, "Bounds of the cut run")


def _scales(effect: Effect, percent: bool) -> Iterator[str | Table]:
    """Give what other scales would do, and which of them is enough."""
    rows = effect.scales
    columns = (
        Column("levels", "count"),
        Column("how", "name", title="scores"),
        Column("measure", "name"),
        replace(VIEW_COLUMNS["expected"], bar=None),
        VIEW_COLUMNS["range"],
        Column("enough", "flag"),
    )
    frame = pl.DataFrame(list(map(vars, rows)))
    yield Table(frame, columns, "How fine must the scale be?", grouped=1)
    told = [
        f"{_fewest(row)} enough for {measure} ± {_within(effect, percent)} here."
        for measure, row in fewest_enough(rows).items()
    ]
    if any(row.how == "rounded" for row in rows):
        told.append("rounded: the same scores on so many evenly spaced values.")
    drawn = [row.bound - row.range for row in rows if row.how == "refined"]
    if drawn:
        told.append(
            "refined: each grade split into equal parts, its documents put into them at random, as "
            "if finer grades were used evenly and knew no more of relevance than these; the range "
            "is a mean over draws, its true mean no more than "
            f"{number(max(drawn), percent=percent)} larger (95 %). Whatever finer grades say that "
            "keep the order of these, no value leaves worst and best as given."
        )
    yield "\n".join(told)


def _fewest(row: OnScale | None) -> str:
    if row is None:
        return "None of these scales is"
    return f"A scale of {row.levels:,} values {'would be' if row.how == 'refined' else 'is'}"


def _within(effect: Effect, percent: bool) -> str:
    return f"{100 * effect.tolerance:g} points" if percent else f"{effect.tolerance:g}"


def _sentences(effect: Effect, percent: bool) -> Iterator[str]:
    """Which formats are enough, a sentence per measure."""
    as_given = {row.measure: row.range for row in effect.what_if if row.format == "as given"}
    for measure, formats in effect.enough.items():
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
