"""The sentences and tables of a diagnosis, in the order in which they are printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import counted
from deadheat.diagnosis.what_if import coarsest_enough
from deadheat.evaluation import VIEW_COLUMNS
from deadheat.tables import Column, Heading, Table

if TYPE_CHECKING:
    from deadheat.diagnosis.anatomy import Anatomy
    from deadheat.diagnosis.diagnose import Diagnosis, Effect
    from deadheat.diagnosis.origins import Origins

_MEASURE = Column("measure", "name")
_FORMAT, _LEVELS = Column("format", "name"), Column("levels", "count")
_HOW, _CHANGE = Column("how", "name", title="scores"), Column("change", "signed")
_BOUND, _ENOUGH = Column("bound", title="range\nat most"), Column("enough", "flag")
_EXPECTED, _RANGE, _BIAS = (VIEW_COLUMNS[view] for view in ("expected", "range", "bias"))


def parts_of(
    diagnosis: Diagnosis, *, details: bool = False, width: int | None = None
) -> list[str | Table]:
    """Return the sentences and tables of a diagnosis for `deadheat.tables.render`.

    Parameters
    ----------
    details
        Whether to include all measures and all formats. Default: only the measure that ties move
        most.
    width
        Width at which the first three lines are wrapped. Default: 80 columns.
    """
    anatomy, origins, effect = diagnosis.anatomy, diagnosis.origins, diagnosis.effect
    return [
        Heading(f"Ties of {diagnosis.name}"),
        *([] if diagnosis.check is None else [diagnosis.check.lines(width)]),
        "\n".join(_facts(anatomy)),
        "\n".join(_grids(diagnosis)),
        *([] if origins is None else [_origins(origins)]),
        *([] if effect is None else _effect(effect, details)),
        *(["\n".join(diagnosis.notes)] if diagnosis.notes else []),
    ]


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
            f"{counted(anatomy.float32_pairs, 'further pair')} would tie; --score-dtype float32 "
            "evaluates them so."
        )


def _grids(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the number grid, the grid of the logits, the scale of grades, and other causes."""
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
            f"{counted(logits.distinct, 'score')}; chance for arbitrary numbers at most "
            f"2^-{logits.bits:.0f})."
        )
    if scale is not None:
        yield (
            f"Scale: {scale.used} values are used of the {scale.levels} from {scale.lowest:g} to "
            f"{scale.highest:g} in steps of {scale.step:g}, as grades are."
        )
    for cause in diagnosis.causes:
        yield f"Ties with another cause: {cause.name}. {cause.statement}."


def _origins(origins: Origins) -> str:
    head = "head or the "
    if origins.head is not None:
        head = f"head (gone under head): {origins.head:,}; by the "
    return (
        f"Tied pairs of the {origins.model_dtype} model: {origins.pairs:,}. Tied by the scoring "
        f"function (gone under hps): {origins.scoring:,}; by the {head}model: {origins.model:,}."
    )


def _effect(effect: Effect, details: bool) -> Iterator[str | Table]:
    as_given = [row for row in effect.what_if if row.how == "as given"]
    most_moved = max(as_given, key=lambda row: row.range)
    shown = [row.measure for row in (as_given if details else [most_moved])]

    def enough(what: str, found: Mapping[str, Sequence[str]]) -> str:
        """Return a line per measure on the coarsest formats or scales that are enough."""
        return "\n".join(
            f"Coarsest {what} enough for {measure} ± {effect.tolerance:g}: "
            f"{', '.join(coarsest) or 'none'}."
            for measure, coarsest in found.items()
        )

    def table(rows: Sequence[dict[str, object]], title: str, *columns: Column) -> Table:
        """Return a table of the measures that are shown."""
        frame = pl.DataFrame(rows, infer_schema_length=None)
        return Table(frame.filter(pl.col("measure").is_in(shown)), columns, title, grouped=1)

    judged = ", ".join(f"{share:.1%} of the first {k}" for k, share in effect.judged.items())
    yield f"Judged documents, in expectation: {judged}."
    if effect.worst_queries:
        columns = (_MEASURE, Column("query_id", "name", title="query"), *VIEW_COLUMNS.values())
        yield table(effect.worst_queries, "Queries of the largest range", *columns)
    if details:
        columns = (_MEASURE, _FORMAT, _EXPECTED, _CHANGE, _RANGE, _BIAS, _ENOUGH)
        yield table(list(map(vars, effect.what_if)), "What if the scores were rounded", *columns)
    yield enough("formats", effect.enough)
    if effect.scales:
        columns = (_MEASURE, _LEVELS, _HOW, _EXPECTED, _RANGE, _BOUND, _ENOUGH)
        yield table(list(map(vars, effect.scales)), "How fine must the scale be?", *columns)
        scales = [row.format for row in effect.scales]
        yield enough("scale", coarsest_enough(effect.scales[::-1], [scales]))
        if any(row.how == "refined" for row in effect.scales):
            yield (
                "refined: each grade is split into equal parts, and its documents are put into "
                "them at random. This assumes that finer grades are used evenly and carry no more "
                "information on relevance. The range is a mean over draws, with an upper bound of "
                "its true mean (95 %)."
            )
