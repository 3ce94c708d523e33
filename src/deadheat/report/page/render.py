"""The page of results: the finding and the leaderboard first, every query, where all comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deadheat._internal.lazy import pl
from deadheat._internal.output import utf8
from deadheat._internal.remarks import counted, lines
from deadheat.comparison import VERDICTS
from deadheat.engines import Progress
from deadheat.errors import InputError
from deadheat.evaluation import VIEW_COLUMNS, Summary
from deadheat.measures import Measure
from deadheat.report.findings import describe_systems
from deadheat.report.page.cells import PageTable, Texts, page_table
from deadheat.report.page.collection import Collection
from deadheat.report.page.data import collection_data
from deadheat.report.page.leading import leading_table
from deadheat.report.page.shell import as_json, written
from deadheat.tables import DIGITS, Column, Table

_STYLES = ("page.css", "report.css")
_PARTS = ("page", "tables", "numbers", "intervals", "curves", "comparison", "queries", "report")


def render_page(
    collections: Sequence[Collection],
    *,
    title: str = "deadheat report",
    top: int = 20,
    shown: Sequence[Measure] | None = None,
    progress: Progress | None = None,
) -> str:
    """Write the page.

    Parameters
    ----------
    collections
        Systems, in collections of the same judgements.
    title
        Heading of the page.
    top
        Documents of each ranked list that the page holds; 0 leaves the lists out.
    shown
        Measures of the leaderboard, the comparison and the query explorer; those that
        `Collection.measures` gives unless named.
    progress
        Called with what is being done, how much of it is done, and how much there is.
    """
    if not collections:
        raise InputError("there is no result to report")
    pairs = [(collection, collection.measures(shown)) for collection in collections]
    data = [collection_data(collection, top, measures, progress) for collection, measures in pairs]
    first = [_static(collection, list(map(repr, measures))) for collection, measures in pairs]
    copies = [static["leading"].pop("copies") for static in first]
    scripts = {"collections": data, "copies": copies, "verdicts": VERDICTS}
    return written(
        "report.html",
        title=title,
        styles=_STYLES,
        scripts=[f"{name}.js" for name in _PARTS],
        collections=first,
        has_curves=any(d["families"] for d in data),
        has_budget=any(static["budget"] for static in first),
        top=top,
        data=as_json({**scripts, "top": top, "digits": DIGITS}),
    )


def _static(collection: Collection, shown: list[str]) -> dict[str, Any]:
    """What the template writes of a collection; it needs no script to be read."""
    results, comparison = collection.results, collection.comparison
    summaries = {
        name: {m: summary for m, summary in result.items() if m in shown}
        for name, result in results.items()
    }
    remarks = {name: result.remarks for name, result in results.items()}
    queries = len({query for result in results.values() for query in result.query_names})
    findings = (
        describe_systems(results, comparison, percent=percent, measures=shown)
        for percent in (False, True)
    )
    return {
        "name": collection.name,
        "size": f"{counted(len(results), 'system')}, {counted(queries, 'query')}",
        "finding": Texts(*findings),
        "rules": list(dict.fromkeys(result.rule for result in results.values())),
        "leading": leading_table(summaries, shown),
        "numbers": _numbers(summaries),
        "budget": collection.budget and page_table(collection.budget),
        "warnings": lines(remarks, "warning", of="system"),
        "notes": [*lines(remarks, "note", of="system"), *_without_lists(collection)],
        **_origins(collection),
    }


def _numbers(summaries: dict[str, dict[str, Summary]]) -> PageTable:
    """All views of all shown measures, in the columns that the terminal has."""
    rows = [
        {
            "system": utf8(name).decode(),
            "measure": measure,
            **{view: getattr(summary, view) for view in VIEW_COLUMNS},
        }
        for name, own in summaries.items()
        for measure, summary in own.items()
    ]
    labels = (Column("system", "name"), Column("measure", "name"))
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return page_table(Table(frame, [*labels, *VIEW_COLUMNS.values()]))


def _origins(collection: Collection) -> dict[str, object]:
    """Where the numbers come from: what all systems share, and what differs."""
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


def _without_lists(collection: Collection) -> list[str]:
    """Say which systems have no ranked lists, and why."""
    reasons: dict[str, list[str]] = {}
    for name, system in zip(collection.names, collection.systems, strict=True):
        if system.run is None:
            reasons.setdefault(system.no_run, []).append(name)
    every = len(collection.systems)
    return [
        f"no ranked lists{'' if len(names) == every else ' of ' + ', '.join(names)}: {why}"
        for why, names in reasons.items()
    ]
