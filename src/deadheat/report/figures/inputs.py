"""Results that may stand in one figure, and the words about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deadheat._internal.remarks import counted
from deadheat.errors import InputError
from deadheat.evaluation import Result, name_results, same_judgements
from deadheat.measures import Measure

Results = Result | Iterable[Result] | Mapping[str, Result]
"""One result, several, or several by the labels they get in the figure."""
_NAMED = 12
"""Up to so many systems are named in a caption, too."""


def comparable(results: Results) -> dict[str, Result]:
    """Give results by label; refuse those with different judgements or queries."""
    if isinstance(results, Mapping) and not isinstance(results, Result):
        named = dict(results)
    else:
        listed = [results] if isinstance(results, Result) else list(results)
        labels = name_results(listed)
        if len(set(labels)) < len(labels):
            raise InputError("two of the runs have the same name: give each a label of its own")
        named = dict(zip(labels, listed, strict=True))
    if not named:
        raise InputError("no result given: a figure needs at least one")
    (first, result), *others = named.items()
    for label, other in others:
        if not same_judgements(result, other):
            raise InputError(
                f"{first!r} and {label!r} were evaluated with different judgements: "
                f"{result.provenance.judgements} and {other.provenance.judgements}"
            )
        ours, theirs = set(result.query_names), set(other.query_names)
        if ours != theirs:
            raise InputError(
                f"{first!r} and {label!r} were evaluated on different queries ({len(ours)} and "
                f"{len(theirs)}, {len(ours & theirs)} in common): evaluate them on the same ones"
            )
    return named


def common_measures(results: Mapping[str, Result]) -> list[Measure]:
    """Measures that every result holds, in the order of the first."""
    first, *others = results.values()
    measures = [m for m in first.views if all(m in other.views for other in others)]
    if not measures:
        have = (f"{k!r} has {', '.join(map(repr, r.views))}" for k, r in results.items())
        raise InputError(f"the results have no measure in common: {'; '.join(have)}")
    return measures


def caption(what: str, results: Mapping[str, Result], line: str, band: str) -> str:
    """Say what is shown, for which queries and regimes, by which tie rule and signs."""
    queries = counted(len(next(iter(results.values())).query_ids), "query")
    systems = []
    for label, result in results.items():
        scoring = result.provenance.scoring
        systems.append(label if scoring is None else f"{label} ({scoring})")
    names = f": {'; '.join(systems)}" if len(systems) <= _NAMED else ""
    return (
        f"{what}, mean of {queries}{names}. "
        f"{line}: expected value over all orders of tied documents; ×: oblivious value "
        f"({tie_rule(results)}); {band}: from worst to best order of tied documents."
    )


def tie_rule(results: Mapping[str, Result]) -> str:
    """Say how the oblivious values break ties, for each result where they differ."""
    rules = {}
    for label, result in results.items():
        settings = result.provenance.settings
        near = f", scores within {settings.tie_tolerance:g} tied" if settings.tie_tolerance else ""
        seen = f", scores {settings.rounding}" if settings.rounding else ""
        rules[label] = f"ties by {settings.tie_order}{seen}{near}"
    if len(set(rules.values())) == 1:
        return next(iter(rules.values()))
    return "; ".join(f"{label}: {rule}" for label, rule in rules.items())
