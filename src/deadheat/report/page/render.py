"""The page of results: finding, leaderboard, comparison, every query, and provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deadheat._internal.lazy import pl
from deadheat._internal.output import utf8
from deadheat._internal.remarks import counted, lines, note
from deadheat.comparison import VERDICTS, Comparison
from deadheat.engines import Progress
from deadheat.evaluation import VIEW_COLUMNS, Result
from deadheat.measures import Measure
from deadheat.report.families import cutoff_families
from deadheat.report.findings import describe_systems
from deadheat.report.page.cells import PageTable, Texts, page_table, texts
from deadheat.report.page.charts import curve_plot, height, interval_plot
from deadheat.report.page.collection import Collection, System, number_repeated
from deadheat.report.page.data import collection_data
from deadheat.report.page.leading import leading_table
from deadheat.report.page.shell import write_page
from deadheat.tables import DIGITS, Column, Table

_MANY_SYSTEMS = 20
"""With more systems, only pairs that are decided or contested by ties are shown."""
_OPEN = ("not significant", "not testable", "identical")
"""Verdicts on pairs that are neither."""


def render_page(
    collections: Sequence[Collection],
    *,
    title: str = "deadheat report",
    top: int = 20,
    shown: Sequence[Measure] | None = None,
    progress: Progress | None = None,
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    collections
        Systems, grouped by judgements.
    title
        Heading of the page.
    top
        Number of documents of each ranked list on the page; 0 for no lists.
    shown
        Measures of the leaderboard, the comparison and the query explorer. Default: those of
        `Collection.measures`.
    progress
        Callback with a description, the amount of work done, and the total amount.
    """
    names = number_repeated([collection.name for collection in collections])
    static, data = [], []
    for name, collection in zip(names, collections, strict=True):
        measures = collection.measures(shown)
        ordered = _sort_systems(collection, repr(measures[0]))
        content = _static(ordered, list(map(repr, measures)))
        found = collection_data(ordered, top, measures, progress)
        static.append({**content, "name": name})
        data.append({**found, "name": name, "first": content["first"]})
    return write_page(
        "report",
        title=title,
        collections=static,
        verdicts=VERDICTS,
        texts=texts,
        height=height,
        has_curves=any(content["curves"] for content in static),
        has_budget=any(content["budget"] for content in static),
        top=top,
        data={"collections": data, "digits": DIGITS},
    )


def _sort_systems(collection: Collection, measure: str) -> Collection:
    """Sort systems by their expected value, the highest first and those without it last."""

    def expected(system: System) -> float:
        return system.result[measure].expected if measure in system.result else -1.0

    return replace(collection, systems=sorted(collection.systems, key=expected, reverse=True))


def _static(collection: Collection, shown: list[str]) -> dict[str, Any]:
    """Return the values of the template for a collection."""
    results, comparison = collection.results, collection.comparison
    every = {name: dict(result) for name, result in results.items()}
    ranges = {name: own[shown[0]].range for name, own in every.items() if shown[0] in own}
    remarks = {
        system.name: [
            *system.result.remarks,
            *([] if system.run is not None else [note(f"no ranked lists: {system.no_run}")]),
        ]
        for system in collection.systems
    }
    queries = len({query for result in results.values() for query in result.query_names})
    findings = (
        describe_systems(results, comparison, percent=percent, measures=shown)
        for percent in (False, True)
    )
    families = cutoff_families(dict.fromkeys(m for r in results.values() for m in r.views))
    curves = {
        repr(measure): curve_plot(every, members)
        for members in families.values()
        for measure in members
        if repr(measure) in shown
    }
    return {
        "first": max(ranges, key=lambda name: ranges[name]),
        "size": f"{counted(len(results), 'system')}, {counted(queries, 'query')}",
        "finding": Texts(*findings),
        "rules": list(dict.fromkeys(result.rule for result in results.values())),
        "intervals": {m: interval_plot(every, m, comparison) for m in shown},
        "leading": leading_table(every, shown),
        "numbers": _numbers(results, shown),
        "curves": curves,
        "pairs": {m: _pairs(comparison, m) for m in shown},
        "not_compared": collection.not_compared,
        "compared": None if comparison is None else list(map(str, comparison.remarks)),
        "budget": collection.budget and page_table(collection.budget),
        "warnings": lines(remarks, "warning", of="system"),
        "notes": lines(remarks, "note", of="system"),
        **_origins(collection),
    }


def _pairs(comparison: Comparison | None, measure: str) -> dict[str, Any] | None:
    """Return the verdicts on pairs in a measure, and the number of pairs that are not shown."""
    if comparison is None or measure not in comparison.pairs["measure"]:
        return None
    _, every = comparison.parts(all_pairs=True)
    assert isinstance(every, Table)
    pairs = shown = every.frame.filter(pl.col("measure") == measure)
    if len(comparison.provenance) > _MANY_SYSTEMS:
        shown = pairs.filter(~pl.col("verdict").is_in(_OPEN))
    columns = [column for column in every.columns if column.of != "measure"]
    return {
        "table": page_table(Table(shown, columns)),
        "left_out": len(pairs) - len(shown),
        "verdicts": [verdict for verdict in VERDICTS if verdict in shown["verdict"]],
    }


def _numbers(results: Mapping[str, Result], measures: list[str]) -> PageTable:
    """Return all views of all shown measures, in the columns of the terminal table."""
    frames = [
        result.aggregate.select(pl.lit(utf8(name).decode()).alias("system"), pl.all())
        for name, result in results.items()
    ]
    frame = pl.concat(frames).filter(pl.col("measure").is_in(measures))
    labels = (Column("system", "name"), Column("measure", "name"))
    return page_table(Table(frame, [*labels, *VIEW_COLUMNS.values()]))


def _origins(collection: Collection) -> dict[str, object]:
    """Return the provenance of the numbers: shared by all systems, and different ones."""
    origins = {name: result.provenance.flat() for name, result in collection.results.items()}
    first = next(iter(origins.values()))
    facts = dict.fromkeys(fact for origin in origins.values() for fact in origin)
    differing = [fact for fact in facts if len({o.get(fact) for o in origins.values()}) > 1]
    return {
        "common": {fact: first[fact] for fact in facts if fact not in differing},
        "differing": differing,
        "origins": [
            (name, [origin.get(fact, "–") for fact in differing])
            for name, origin in origins.items()
        ],
    }
