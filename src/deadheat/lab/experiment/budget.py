"""The error budget of a number: how far ties, computing and the choice of queries move it."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from deadheat._internal.lazy import pl
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation import headline
from deadheat.evaluation.corpus import stored_shards
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.changes import (
    Changes,
    compare_embeddings,
    compare_scores,
)
from deadheat.lab.experiment.derive import group_texts, read_queries
from deadheat.lab.experiment.files import FolderError, dump_json
from deadheat.lab.experiment.folder import ExperimentFolder, hash_short
from deadheat.lab.experiment.results import StoredResult, compute_key, load_results
from deadheat.lab.experiment.study import Compute
from deadheat.lab.experiment.table1 import every_measure
from deadheat.measures import Measure, parse_measures
from deadheat.tables import Column, Table

COMPUTE_SETTINGS = tuple(field.name for field in fields(Compute))
"""Settings of how a forward pass is computed; its numbers should not depend on them."""

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


@dataclass(frozen=True)
class _Variants:
    """Results of one model, dtype, dataset and regime, computed in different ways."""

    variants: Sequence[StoredResult]

    @property
    def first(self) -> StoredResult:
        return self.variants[0]

    @property
    def ways(self) -> list[str]:
        """How each was computed: the settings in which they differ."""
        settings = [stored.manifest.settings for stored in self.variants]
        differing = [name for name in COMPUTE_SETTINGS if len({s.get(name) for s in settings}) > 1]
        return [", ".join(f"{n} {s.get(n, 'default')}" for n in differing) for s in settings]

    @cached_property
    def changes(self) -> Changes | None:
        """Scores that are not the same in all variants; None where that is not known."""
        with suppress(FolderError):  # the files of one are damaged or missing
            if all(stored.cell.has_scores(stored.regime) for stored in self.variants):
                return compare_scores([stored.scores() for stored in self.variants])
            return self.first.folder.changes.read(
                self.changes_file, lambda data: Changes.from_dict(json.loads(data)["changes"])
            )
        return None

    @property
    def cells(self) -> list[str]:
        """The names of the cells of the variants."""
        return sorted(stored.cell.path.name for stored in self.variants)

    @property
    def changes_file(self) -> str:
        """The name of the file that says how far scores differ that are not stored."""
        return f"{self.first.regime}-{hash_short(self.cells)}.json"

    def compare(self, dataset: RetrievalDataset, progress: Progress | None) -> Changes:
        """Compare scores that are not stored: those of every query with the full corpus.

        Raises
        ------
        FolderError
            The embeddings of a variant are damaged or missing.
        """
        first, regime = self.first, self.first.regime
        orders, variants = [], []
        for stored in self.variants:
            paths, texts = zip(*stored.cell.streams()["documents"].indices(), strict=True)
            orders.append(np.concatenate(texts))
            queries = read_queries(stored.cell, stored.manifest, regime)
            variants.append((queries, stored_shards(paths, tensor="documents", torch=True)))
        if not all(np.array_equal(order, orders[0]) for order in orders):
            raise FolderError(f"{first.cell.path} and its variants differ in the order of texts")
        having = [len(documents) for documents in group_texts(dataset).values()]
        name = f"{first.short_name} {first.model_dtype} {Path(dataset.name).name}: {regime}"
        return compare_embeddings(
            variants,
            np.array(having)[orders[0]],
            None if progress is None else partial(progress, f"{name}, comparing"),
        )

    def row(self, measure: Measure) -> dict[str, object]:
        """The budget of one measure."""
        summary = self.first.result[measure]
        expected = [stored.result[measure].expected for stored in self.variants]
        changes = self.changes if len(expected) > 1 else None
        return {
            "dataset": self.first.dataset,
            "model": self.first.short_name,
            "model_dtype": self.first.model_dtype,
            "regime": self.first.regime,
            "measure": repr(measure),
            "expected": summary.expected,
            "tie_std": summary.std,
            "tie_range": summary.range,
            "compute_range": max(expected) - min(expected) if len(expected) > 1 else None,
            "query_error": summary.sampling_error,
            "variants": len(self.variants),
            "changed": changes and changes.share,
            "farthest": changes.farthest if changes and changes.scores else None,
        }


def error_budget(
    results: Sequence[StoredResult], measures: Iterable[str | Measure] | None = None
) -> Table:
    """Return the errors of each number side by side: of ties, of computing, of the queries.

    Parameters
    ----------
    results
        What `deadheat.lab.experiment.load_results` gives. Cells that differ in batch size,
        attention or threads alone, and were evaluated on the same texts, are variants of one
        number.
    measures
        Those to show; all unless given, and of very many each at one cutoff.

    Returns
    -------
    Table
        Per model, dtype, dataset, regime and measure the expected value of the first variant;
        *ties*: its tie std and range; *compute*: how far the expected value moves between the
        variants, nothing where there is one; *queries*: the standard error of having sampled
        these queries; *scores*: the share that differs between variants, and by how much at most.
    """
    every = every_measure(results)
    chosen = headline(every) if measures is None else parse_measures(measures)
    groups = _group_variants(results)
    rows = [
        group.row(measure)
        for group in groups
        for measure in chosen
        if all(measure in stored.result.views for stored in group.variants)
    ]
    if not rows:
        evaluated = ", ".join(map(repr, every))
        raise InputError(f"none of these measures was evaluated; choose from {evaluated}")
    several = [group for group in groups if len(group.variants) > 1]
    ways = dict.fromkeys(f"compute: {' / '.join(group.ways)}" for group in several)
    unknown = [group for group in several if group.changes is None]
    notes = [
        *(ways or ["compute: not measured; give --batch-size, --attention or --threads twice"]),
        *(["scores: some are not compared; run all these ways again"] if unknown else []),
        "ties, compute and queries are different kinds of error, and are not added up.",
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return Table(frame, _COLUMNS, "The error budget of each number", notes, grouped=4)


def compare_variants(
    folder: ExperimentFolder,
    ran: Mapping[Path, RetrievalDataset],
    progress: Progress | None = None,
) -> None:
    """Store how far scores differ that are too many to be stored themselves.

    Cells are not compared where a file of another cell is damaged or missing; `deadheat verify`
    names it.

    Parameters
    ----------
    ran
        The cells that were run or evaluated again; these are compared with their variants.
    """
    groups: list[_Variants] = []
    with suppress(FolderError):
        results = load_results(folder.path)
        long = [stored for stored in results if not stored.cell.has_scores(stored.regime)]
        own = {_identify(stored) for stored in long if stored.cell.path in ran}
        groups = _group_variants([stored for stored in long if _identify(stored) in own])
    for group in groups:
        paths = [stored.cell.path for stored in group.variants if stored.cell.path in ran]
        if not paths or len(group.variants) < 2:
            continue
        try:
            changes = group.compare(ran[paths[0]], progress)
        except FolderError:  # what was stored before may not hold any more
            folder.changes.remove(group.changes_file)
        else:
            about = {"cells": group.cells, "regime": group.first.regime}
            data = dump_json({**about, "changes": changes.to_dict()})
            folder.changes.write({group.changes_file: data})


def is_computed_twice(results: Sequence[StoredResult]) -> bool:
    """Whether some number was computed in more than one way."""
    return any(len(group.variants) > 1 for group in _group_variants(results))


def _group_variants(results: Sequence[StoredResult]) -> list[_Variants]:
    alike: dict[Hashable, list[StoredResult]] = {}
    for stored in results:
        data = stored.result.provenance.dataset  # its candidate rule names the depth
        alike.setdefault((_identify(stored), data and data.candidates), []).append(stored)
    return [
        _Variants(sorted(variants, key=lambda stored: compute_key(stored.manifest)))
        for variants in alike.values()
    ]


def _identify(stored: StoredResult) -> Hashable:
    """Return what identifies a result, apart from how it was computed."""
    settings = stored.manifest.settings.items()
    other = frozenset((name, value) for name, value in settings if name not in COMPUTE_SETTINGS)
    return stored.dataset, stored.model, stored.model_dtype, stored.regime, other
