"""The error budget of a number: how far ties, compute settings and queries move it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.lab.experiment.results import StoredResult
from deadheat.lab.experiment.study import COMPUTE_SETTINGS
from deadheat.lab.experiment.table1 import choose_measures
from deadheat.measures import Measure
from deadheat.tables import Column, Table

_COLUMNS = (
    Column("dataset", "name"),
    Column("model", "name"),
    Column("model_dtype", "name", over="model", title="dtype"),
    Column("regime", "name"),
    Column("measure", "name"),
    Column("expected"),
    Column("tie_std", over="ties", title="± std"),
    Column("tie_range", over="ties", title="range"),
    Column("compute_range", over="compute", title="moved"),
    Column("query_error", over="queries", title="± error"),
    Column("changed", "share", over="scores", title="changed"),
    Column("farthest", "distance", over="scores", title="farthest"),
)
_UNKNOWN: dict[str, float | None] = {"changed": None, "farthest": None}


def error_budget(
    results: Sequence[StoredResult], measures: Iterable[str | Measure] | None = None
) -> Table:
    """Return a table of each number's errors from ties, compute settings and queries.

    Parameters
    ----------
    results
        Results from `deadheat.lab.experiment.load_results`. Cells that differ only in batch size,
        attention or threads, and were evaluated on the same texts, are variants of one number.
    measures
        Measures to show. Default: all; of more than eight, each at one cutoff.

    Returns
    -------
    Table
        A row per model, dtype, dataset, regime and measure, with the expected value of the first
        variant. *ties*: its tie std and range. *compute*: how far the expected value moves between
        the variants; empty for one variant. *queries*: the standard error over queries. *scores*:
        the share of scores that differ between variants, and the largest difference.
    """
    chosen = choose_measures(results, measures)
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    for variants in _group_variants(results):
        changes = None
        if len(variants) > 1:
            ways = " / ".join(stored.variant or "default" for stored in variants)
            notes.append(f"compute: {ways}")
            changes = _compare_scores(variants)
            if changes is None:
                notes.append("scores: some are not stored or damaged, and not compared")
        for measure in chosen:
            evaluated = [stored for stored in variants if measure in stored.result.views]
            if evaluated:
                rows.append(_make_row(evaluated, measure) | (changes or _UNKNOWN))
    if not notes:
        notes.append("compute: not measured; give --batch-size, --attention or --threads twice")
    notes.append("ties, compute and queries are different kinds of error, and are not added up.")
    frame = pl.DataFrame(rows, infer_schema_length=None)
    title = "The error budget of each number"
    return Table(frame, _COLUMNS, title, list(dict.fromkeys(notes)), grouped=4)


def is_computed_twice(results: Sequence[StoredResult]) -> bool:
    """Return whether some number has more than one variant."""
    return any(len(variants) > 1 for variants in _group_variants(results))


def _group_variants(results: Sequence[StoredResult]) -> list[list[StoredResult]]:
    """Group results that differ only in how they were computed."""
    alike: dict[Hashable, list[StoredResult]] = {}
    for stored in results:
        settings = stored.manifest.settings.items()
        other = frozenset((name, value) for name, value in settings if name not in COMPUTE_SETTINGS)
        data = stored.result.provenance.dataset  # its candidate rule names the depth
        key = (stored.dataset, stored.model, stored.model_dtype, stored.regime, other)
        alike.setdefault((key, data and data.candidates), []).append(stored)
    return list(alike.values())


def _compare_scores(variants: Sequence[StoredResult]) -> dict[str, float] | None:
    """Compare the scores of variants; None if those of one are damaged or not stored.

    If each variant keeps its own best documents, only documents of all variants are compared.
    """
    try:
        scores = pl.concat([stored.scores() for stored in variants])
    except InputError:
        return None
    together = scores.group_by("query_id", "doc_id").agg(pl.col("score").cast(pl.Float64))
    of_all = together.filter(pl.col("score").list.len() == len(variants))["score"].list
    moved = (of_all.max() - of_all.min()).to_numpy()
    if not len(moved):
        return {}
    return {"changed": float(np.mean(moved > 0)), "farthest": float(moved.max())}


def _make_row(variants: Sequence[StoredResult], measure: Measure) -> dict[str, object]:
    """Return the budget of one measure."""
    first = variants[0]
    summary = first.result[measure]
    expected = [stored.result[measure].expected for stored in variants]
    return {
        "dataset": first.dataset,
        "model": first.short_name,
        "model_dtype": first.model_dtype,
        "regime": first.regime,
        "measure": repr(measure),
        "expected": summary.expected,
        "tie_std": summary.std,
        "tie_range": summary.range,
        "compute_range": max(expected) - min(expected) if len(expected) > 1 else None,
        "query_error": summary.sampling_error,
        "variants": len(variants),
    }
