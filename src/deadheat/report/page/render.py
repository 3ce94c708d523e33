"""The page: a template, one script, one style sheet, the data and the charting library."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from deadheat.comparison import VERDICTS
from deadheat.errors import InputError
from deadheat.evaluation import Summary, headline
from deadheat.measures import Measure
from deadheat.packages import own_version, require
from deadheat.remarks import texts
from deadheat.report.page.collection import Collection, System
from deadheat.tables import DIGITS, number
from deadheat.ties.ranked import RankedLists, ranked_lists
from deadheat.ties.scores import as_seen_in, score_format

VIEWS = ("expected", "worst", "best", "oblivious")
QUERY_TEXT, DOCUMENT_TEXT = 600, 240
"""Characters of a text that are shown."""
_PAIR = ["a", "b", "measure", "verdict", "difference", "std", "lowest", "highest", "a_wins"]
_PAIR += ["b_wins", "oblivious_difference", "p_corrected", "interval_low", "interval_high"]


def render_page(
    collections: Sequence[Collection],
    *,
    title: str = "deadheat report",
    top: int = 20,
    shown: Sequence[Measure] | None = None,
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
        Measures of the table, the comparison and the query explorer. Unless given, all where
        they are few, else each at one cutoff: 10 where it was evaluated, or the largest.
    """
    jinja2 = require("jinja2", "a report page")
    plotly = require("plotly.offline", "a report page")
    if not collections:
        raise InputError("there is no result to report")
    own = files(__package__)
    scripts = [plotly.get_plotlyjs(), (own / "page.js").read_text(encoding="utf-8")]
    data = [_data(collection, top, shown_measures(collection, shown)) for collection in collections]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters["number"] = lambda value, **how: number(value, **how).replace("-", "−")
    page = environment.from_string((own / "template.html").read_text(encoding="utf-8")).render(
        title=title,
        collections=[_static(c, d["shown"]) for c, d in zip(collections, data, strict=True)],
        partial=any(sum(map(len, d["families"].values())) > len(d["shown"]) for d in data),
        top=top,
        version=own_version(),
        hashes=[base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts],
        css=(own / "page.css").read_text(encoding="utf-8"),
        scripts=scripts,
        data=_json({"collections": data, "verdicts": VERDICTS, "top": top, "digits": DIGITS}),
    )
    return re.sub("[\ud800-\udfff]", "\ufffd", page)  # half a character cannot be written


def shown_measures(collection: Collection, asked: Sequence[Measure] | None) -> list[Measure]:
    """Measures of the table, the comparison and the query explorer."""
    measures = dict.fromkeys(m for system in collection.systems for m in system.result.views)
    return headline(measures) if asked is None else [m for m in measures if m in asked]


def is_page(path: Path) -> bool:
    """Tell whether a file is a page that this module wrote."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b'<meta name="generator" content="deadheat' in file.read(1000)


def _json(data: Any) -> str:
    """JSON that no content of it can end early when it stands in a script element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _static(collection: Collection, shown: list[str]) -> dict[str, Any]:
    """What the template writes of a collection: origin, remarks, table."""
    systems, names = collection.systems, collection.names
    origins = [system.result.provenance.flat() for system in systems]
    facts = list(dict.fromkeys(fact for origin in origins for fact in origin))
    differing = [fact for fact in facts if len({origin.get(fact) for origin in origins}) > 1]
    return {
        "name": collection.name,
        "queries": len({query for system in systems for query in system.result.query_names}),
        "common": {fact: origins[0][fact] for fact in facts if fact not in differing},
        "differing": differing,
        "origins": [
            (name, [origin.get(fact, "–") for fact in differing])
            for name, origin in zip(names, origins, strict=True)
        ],
        "remarks": _remarks(collection),
        "labels": list(systems[0].labels),
        "shown": shown,
        "rows": [
            (name, system.labels, _summaries(system, shown))
            for name, system in zip(names, systems, strict=True)
        ],
        "no_lists": {n: s.no_run for n, s in zip(names, systems, strict=True) if s.run is None},
    }


def _summaries(system: System, shown: list[str]) -> dict[str, Summary | None]:
    """Summaries of the shown measures; None where the system was not evaluated in one."""
    evaluated = dict(system.result)
    return {measure: evaluated.get(measure) for measure in shown}


def _remarks(collection: Collection) -> list[tuple[str, str, list[str]]]:
    """Level, text and systems of every remark; no systems where it is true of all."""
    of: dict[tuple[str, str], list[str]] = {}
    for name, system in zip(collection.names, collection.systems, strict=True):
        for level, said in (("warning", system.result.warnings), ("note", system.result.notes)):
            for text in said:
                of.setdefault((level, text), []).append(name)
    everybody = len(collection.systems)
    return [(*remark, names if len(names) < everybody else []) for remark, names in of.items()]


def _data(collection: Collection, top: int, shown: list[Measure]) -> dict[str, Any]:
    """What the script shows of a collection."""
    systems = collection.systems
    queries = list(dict.fromkeys(q for system in systems for q in system.result.query_names))
    measures = list(dict.fromkeys(m for system in systems for m in system.result.views))
    place = {query: i for i, query in enumerate(queries)}
    documents: dict[str, int] = {}
    return {
        "name": collection.name,
        "queries": queries,
        "queryTexts": _texts(queries, collection.queries, QUERY_TEXT),
        "families": _families(measures),
        "cutoffs": {repr(m): m.cutoff or 0 for m in shown},
        "shown": [repr(m) for m in shown],
        "systems": [
            {
                "name": name,
                "labels": dict(system.labels),
                "means": {
                    s.measure: [s.expected, s.worst, s.best, s.oblivious, s.std]
                    for s in system.result.values()
                },
                "values": _values(system, shown, place),
                "lists": _lists(system, collection, queries, top, documents),
            }
            for name, system in zip(collection.names, systems, strict=True)
        ],
        "documents": list(documents),
        "documentTexts": _texts(documents, collection.documents, DOCUMENT_TEXT),
        "comparison": _comparison(collection),
    }


def _families(measures: list[Measure]) -> dict[str, list[dict[str, Any]]]:
    """Measures that differ in the cutoff only, by cutoff; without one only if it is alone."""
    families: dict[Measure, list[Measure]] = {m(cutoff=None): [] for m in measures}
    for measure in sorted(measures, key=lambda m: m.cutoff or 0):
        families[measure(cutoff=None)].append(measure)
    return {
        repr(family): [
            {"name": repr(m), "k": m.cutoff} for m in members if m.cutoff or len(members) == 1
        ]
        for family, members in families.items()
    }


def _texts(ids: Iterable[str], texts: Any, limit: int) -> list[str] | None:
    """Texts of these ids, cut; None where there are none."""
    if not texts:
        return None
    lines = (" ".join(texts.get(id_, "").split()) for id_ in ids)
    return [line if len(line) <= limit else line[:limit].rstrip() + " …" for line in lines]


def _values(system: System, shown: list[Measure], place: dict[str, int]) -> dict[str, Any]:
    """Every view of the shown measures, query by query; NaN where the system lacks the query."""
    rows = np.array([place[query] for query in system.result.query_names])
    values = {}
    for measure, views in system.result.views.items():
        if measure in shown:
            columns = np.full((len(VIEWS), len(place)), np.nan, np.float32)
            columns[:, rows] = [getattr(views, view) for view in VIEWS]
            values[repr(measure)] = _packed(columns, "<f4")
    return values


def _lists(
    system: System, collection: Collection, queries: list[str], top: int, documents: dict[str, int]
) -> dict[str, Any] | None:
    """The ranked lists in few bytes; `documents` numbers the ids."""
    if system.run is None or collection.qrels is None or top < 1:
        return None
    origin = system.result.provenance
    run, _ = as_seen_in(system.run, score_format(origin.score_dtype))
    lists: RankedLists = ranked_lists(
        run,
        collection.qrels,
        queries,
        top,
        rule=origin.tie_break,
        tolerance=origin.tie_tolerance,
        nan=origin.nan,
    )
    numbers = [documents.setdefault(doc, len(documents)) for doc in lists.doc_ids]
    counts = ("shown", "retrieved", "rest", "rest_relevant", "missing", "above", "size")
    return {
        **{name: _packed(getattr(lists, name), "<i4") for name in counts},
        "documents": _packed(np.array(numbers), "<i4"),
        "scores": _packed(lists.scores, "<f4" if _fits_float32(lists.scores) else "<f8"),
        "grades": _packed(lists.grades, "<f4"),
    }


def _fits_float32(values: Any) -> bool:
    with np.errstate(over="ignore"):
        return np.array_equal(values.astype(np.float32), values, equal_nan=True)


def _packed(values: Any, dtype: str) -> list[str]:
    """Numbers as [type, base64 of their bytes]."""
    return [dtype[-2:], base64.b64encode(np.asarray(values).astype(dtype).tobytes()).decode()]


def _comparison(collection: Collection) -> dict[str, Any]:
    """Pairs of systems with their verdicts, or why there are none."""
    comparison = collection.comparison
    if comparison is None:
        said = f"Not compared: {collection.not_compared}."
        return {"columns": _PAIR, "pairs": [], "notes": [], "warnings": [said]}
    index = {name: i for i, name in enumerate(collection.names)}
    return {
        "columns": _PAIR,
        "pairs": [
            [index[side["a"]], index[side["b"]], *(side[name] for name in _PAIR[2:])]
            for pair in comparison.pairs.select(_PAIR).to_dicts()
            for side in (pair, _other_side(pair))
        ],
        "warnings": texts(comparison.remarks, "warning"),
        "notes": texts(comparison.remarks, "note"),
    }


def _other_side(pair: dict[str, Any]) -> dict[str, Any]:
    """A pair as seen from B."""
    swapped = {"A is better": "B is better", "B is better": "A is better"}

    def minus(name: str) -> float | None:
        return None if pair[name] is None else -pair[name]

    return {
        **pair,
        **{"a": pair["b"], "b": pair["a"], "a_wins": pair["b_wins"], "b_wins": pair["a_wins"]},
        **{name: minus(name) for name in ("difference", "oblivious_difference")},
        **{"lowest": minus("highest"), "highest": minus("lowest")},
        **{"interval_low": minus("interval_high"), "interval_high": minus("interval_low")},
        "verdict": swapped.get(pair["verdict"], pair["verdict"]),
    }
