"""Results that may stand in one figure, and the words about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from deadheat.errors import InputError
from deadheat.measures import Measure
from deadheat.result import Result

Results = Result | Iterable[Result] | Mapping[str, Result]
"""One result, several, or several by the labels they get in the figure."""


def comparable(results: Results) -> dict[str, Result]:
    """Results by label; refuse those that say nothing about each other."""
    if isinstance(results, Result):
        results = [results]
    if not isinstance(results, Mapping):
        listed = list(results)
        results = dict(zip(short_names([each.name for each in listed]), listed, strict=True))
    if not results:
        raise InputError("no result given: a figure needs at least one")
    for key in ("dataset", "qrels"):
        names = {Path(str(result.provenance.get(key))).name for result in results.values()}
        if len(names) > 1:
            raise InputError(f"the results are of different {key}: {', '.join(sorted(names))}")
    first, *others = results
    for label in others:
        ours, theirs = (set(results[each].query_ids) for each in (first, label))
        if ours != theirs:
            raise InputError(
                f"{first!r} and {label!r} were evaluated on different queries ({len(ours)} and "
                f"{len(theirs)}, {len(ours & theirs)} in common): evaluate them on the same ones"
            )
    return dict(results)


def short_names(paths: Sequence[str]) -> list[str]:
    """Names of files without their folders, where that leaves them distinct."""
    for names in ([Path(path).name for path in paths], list(paths)):
        if len(set(names)) == len(names):
            return names
    raise InputError("two of the runs have the same name: give each a label of its own (--label)")


def common_measures(results: Mapping[str, Result]) -> list[Measure]:
    """Measures that every result holds, in the order of the first."""
    first, *others = results.values()
    measures = [m for m in first.views if all(m in other.views for other in others)]
    if not measures:
        each = (f"{k!r} has {', '.join(map(repr, r.views))}" for k, r in results.items())
        raise InputError(f"the results have no measure in common: {'; '.join(each)}")
    return measures


def caption(what: str, results: Mapping[str, Result], line: str, band: str) -> str:
    """Say what is shown, for which queries and regimes, by which tie rule and signs."""
    n = len(next(iter(results.values())).query_ids)
    systems = []
    for label, result in results.items():
        keys = ("model_dtype", "scoring_dtype", "regime")
        known = {key.replace("_", " "): result.provenance.get(key) for key in keys}
        told = ", ".join(f"{key} {value}" for key, value in known.items() if value)
        systems.append(f"{label} ({told})" if told else label)
    return (
        f"{what}, mean of {n:,} {'query' if n == 1 else 'queries'}: {'; '.join(systems)}. "
        f"{line}: expected value over all orders of tied documents; ×: oblivious value "
        f"({tie_rule(results)}); {band}: from worst to best order of tied documents."
    )


def tie_rule(results: Mapping[str, Result]) -> str:
    """Say how the oblivious values break ties, for each result where they differ."""
    rules = {}
    for label, result in results.items():
        notes = [note for note in result.notes if note.startswith("oblivious = ")]
        words = notes[0].removeprefix("oblivious = ") if notes else "tie rule not recorded"
        tolerance = result.provenance.get("tie_tolerance", 0)
        rules[label] = words + (f", scores within {tolerance:g} tied" if tolerance else "")
    if len(set(rules.values())) == 1:
        return next(iter(rules.values()))
    return "; ".join(f"{label}: {rule}" for label, rule in rules.items())
