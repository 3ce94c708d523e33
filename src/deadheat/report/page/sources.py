"""What a report is about: systems, in collections of the same judgements."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from deadheat.errors import DeadheatWarning, InputError
from deadheat.evaluation import evaluate
from deadheat.formats import Judgements, Run, read_qrels, read_run
from deadheat.result import Result, short_names


@dataclass(frozen=True)
class System:
    """A result, and the run behind it where it is at hand."""

    result: Result
    labels: Mapping[str, str]
    """What tells systems apart: ``{"system": "bm25.run"}``, or model, model dtype and regime."""
    run: Run | None = None
    no_run: str = "the scored documents were not given"
    """Why the run is not at hand."""


@dataclass(frozen=True)
class Collection:
    """Systems that were evaluated with the same judgements."""

    name: str
    systems: Sequence[System]
    qrels: Judgements | None = None
    queries: Mapping[str, str] = field(default_factory=dict)
    """Texts of queries, where they are at hand."""
    documents: Mapping[str, str] = field(default_factory=dict)
    """Texts of documents, where they are at hand."""

    @property
    def names(self) -> list[str]:
        """A name for each system: the labels that tell it from others, else a number, too."""
        columns = {
            label: [system.labels.get(label, "–") for system in self.systems]
            for label in self.systems[0].labels
        }
        telling = [column for column in columns.values() if len(set(column)) > 1]
        names = [" · ".join(row) for row in zip(*(telling or columns.values()), strict=True)]
        return [
            f"{name} ({names[:i].count(name) + 1})" if name in names[:i] else name
            for i, name in enumerate(names)
        ]


def read_results(path: Path) -> list[Result]:
    """Read a file of one stored result, or of a list of them."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not a stored result, which is JSON ({error}); for run files, give the "
            "judgements with --qrels"
        ) from None
    items = data if isinstance(data, list) else [data]
    if not items:
        raise InputError(f"{path}: there is no result in it")
    return [_checked(str(path), item) for item in items]


def _checked(path: str, data: Any) -> Result:
    """Read a result, and refuse one whose parts do not fit together."""
    if isinstance(data, dict) and "measures" in data and "per_query" not in data:
        raise InputError(
            f"{path}: the values of single queries are missing; write it again with "
            "`deadheat eval … --per-query --format json`"
        )
    try:
        result = Result.from_dict(data)
        ids = result.query_ids
        fits = (
            isinstance(result.provenance, dict)
            and all(isinstance(text, str) for text in [*ids, *result.warnings, *result.notes])
            and len(ids) == len(set(ids)) > 0
            and len(result.views) > 0
        )
        for views in result.views.values():
            given = [values for values in vars(views).values() if values is not None]
            fits &= all(v.shape == (len(ids),) and np.isfinite(v).all() for v in given)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    if not fits:
        raise InputError(f"{path}: a damaged result: its queries and values do not fit together")
    return result


def read_experiment(folder: Path) -> list[Collection]:
    """Read what `deadheat run` stored: a collection per dataset."""
    from deadheat.experiment import StoredResult, load_results

    groups: dict[str, list[StoredResult]] = {}
    for stored in load_results(folder):
        groups.setdefault(stored.dataset, []).append(stored)
    collections = []
    for name, group in groups.items():
        texts = group[0].texts()
        systems = []
        for stored in group:
            labels = {
                "model": Path(stored.model).name,
                "model dtype": stored.model_dtype,
                "regime": stored.regime,
            }
            try:
                systems.append(System(stored.result, labels, read_run(stored.scores())))
            except InputError as error:
                systems.append(System(stored.result, labels, None, str(error)))
        qrels = read_qrels(texts.judgements)
        collections.append(Collection(name, systems, qrels, texts.queries, texts.corpus))
    return collections


def collect(results: Iterable[Result]) -> list[Collection]:
    """Sort results by the judgements they were computed with, and find the runs behind them."""
    groups: dict[Any, list[Result]] = {}
    for result in results:
        source = result.provenance.get("qrels")
        key = str(Path(source).resolve()) if isinstance(source, str) else tuple(result.query_ids)
        groups.setdefault(key, []).append(result)
    names = [
        Path(str(group[0].provenance.get("qrels", f"collection {i}"))).name
        for i, group in enumerate(groups.values(), 1)
    ]
    return [_collection(n, group) for n, group in zip(names, groups.values(), strict=True)]


def _collection(name: str, results: Sequence[Result]) -> Collection:
    qrels: Judgements | None = None
    systems = []
    for result, short in zip(results, short_names(results), strict=True):
        run, why = None, "the result does not name its run and judgements"
        sources = [result.provenance.get(key) for key in ("qrels", "run")]
        if all(isinstance(source, str) for source in sources):
            try:
                qrels = qrels or read_qrels(sources[0])
                run = _same_run(result, qrels, str(sources[1]))
            except InputError as error:
                why = str(error)
        systems.append(System(result, {"system": short}, run, why))
    return Collection(name, systems, qrels)


def _same_run(result: Result, qrels: Judgements, path: str) -> Run:
    """Read the run behind a result, and make sure that it still is what was evaluated."""
    asked = result.provenance
    rule = asked.get("tie_break", "input")
    run = read_run(path, with_ranks=rule == "rank")
    measure = next(iter(result.views))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)
        options = {k: asked[k] for k in ("tie_tolerance", "queries", "nan") if k in asked}
        again = evaluate(qrels, run, measure, tie_break=rule, **options)
    same = again.query_ids == result.query_ids and np.allclose(
        again.views[measure].expected, result.views[measure].expected, rtol=0, atol=1e-9
    )
    if not same:
        raise InputError(f"{path} or its judgements have changed since the evaluation")
    return run
