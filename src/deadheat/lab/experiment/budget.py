"""The error budget of a number: how far ties, compute settings and queries move it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields

import numpy as np

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.evaluation import headline
from deadheat.formats import stored_shards
from deadheat.lab.experiment.changes import Changes, compare_embeddings, compare_scores
from deadheat.lab.experiment.derive import group_texts, read_queries
from deadheat.lab.experiment.files import FolderError
from deadheat.lab.experiment.results import StoredResult, compute_key
from deadheat.lab.experiment.study import Compute
from deadheat.lab.experiment.table1 import every_measure
from deadheat.measures import Measure, parse_measures
from deadheat.tables import Column, Table

COMPUTE_SETTINGS = tuple(field.name for field in fields(Compute))
"""Settings of a forward pass that should not change its numbers."""

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
    every = every_measure(results)
    chosen = headline(every) if measures is None else parse_measures(measures)
    rows: list[dict[str, object]] = []
    notes: dict[str, None] = {}
    for variants in _group_variants(results):
        changes = None
        if len(variants) > 1:
            notes[f"compute: {' / '.join(_describe_ways(variants))}"] = None
            changes = _find_changes(variants)
        if len(variants) > 1 and changes is None:
            notes["scores: some are not compared; run all these ways again"] = None
        rows += [
            _make_row(variants, measure, changes)
            for measure in chosen
            if all(measure in stored.result.views for stored in variants)
        ]
    if not rows:
        evaluated = ", ".join(map(repr, every))
        raise InputError(f"none of these measures was evaluated; choose from {evaluated}")
    notes = notes or {
        "compute: not measured; give --batch-size, --attention or --threads twice": None
    }
    notes["ties, compute and queries are different kinds of error, and are not added up."] = None
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Table(frame, _COLUMNS, "The error budget of each number", list(notes), grouped=4)


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
    for variants in alike.values():
        variants.sort(key=lambda stored: compute_key(stored.manifest))
    return list(alike.values())


def _describe_ways(variants: Sequence[StoredResult]) -> list[str]:
    """Return the settings of each variant that differ between variants."""
    settings = [stored.manifest.settings for stored in variants]
    differing = [name for name in COMPUTE_SETTINGS if len({s.get(name) for s in settings}) > 1]
    return [", ".join(f"{n} {s.get(n, 'default')}" for n in differing) for s in settings]


def _find_changes(variants: Sequence[StoredResult]) -> Changes | None:
    """Compare the scores of variants; None if files of one are damaged or missing."""
    with suppress(FolderError):
        if all(stored.cell.has_scores(stored.regime) for stored in variants):
            return compare_scores([stored.scores() for stored in variants])
        return _compare_corpus(variants)
    return None


def _compare_corpus(variants: Sequence[StoredResult]) -> Changes:
    """Compare the scores of every query with the full corpus, which are too many to be stored."""
    orders, embeddings = [], []
    for stored in variants:
        paths, texts = zip(*stored.cell.streams()["documents"].indices(), strict=True)
        orders.append(np.concatenate(texts))
        queries = read_queries(stored.cell, stored.manifest, stored.regime)
        embeddings.append((queries, stored_shards(paths, tensor="documents", torch=True)))
    if not all(np.array_equal(order, orders[0]) for order in orders):
        raise FolderError(f"{variants[0].cell.path} and its variants differ in the order of texts")
    documents = [len(alike) for alike in group_texts(variants[0].texts()).values()]
    return compare_embeddings(embeddings, np.array(documents)[orders[0]])


def _make_row(
    variants: Sequence[StoredResult], measure: Measure, changes: Changes | None
) -> dict[str, object]:
    """Return the budget of one measure."""
    first = variants[0]
    summary = first.result[measure]
    expected = [stored.result[measure].expected for stored in variants]
    compared = changes if changes and changes.scores else None
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
        "changed": compared.changed / compared.scores if compared else None,
        "farthest": compared.farthest if compared else None,
    }
