"""Check the results of one figure, and write its caption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deadheat._internal.remarks import counted
from deadheat.comparison import align_systems, check_origins, check_result, name_systems
from deadheat.errors import InputError
from deadheat.evaluation import Result

Results = Result | Iterable[Result] | Mapping[str, Result]
"""One result, several results, or ``{label: result}``."""
_NAMED = 12
"""Largest number of systems whose names are in a caption."""


def comparable(results: Results) -> dict[str, Result]:
    """Return results by label, in their common measures; refuse different queries."""
    named = name_systems(results, check_result)
    if not named:
        raise InputError("no result given: a figure needs at least one")
    check_origins(named)
    return align_systems(named, None, "judged")[0]


def caption(what: str, results: Mapping[str, Result], line: str, band: str) -> str:
    """Return the caption: what is shown, for which queries, regimes and tie rule."""
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
    """Describe how the oblivious values break ties; per result if they differ."""
    rules = {}
    for label, result in results.items():
        settings = result.provenance.settings
        near = f", scores within {settings.tie_tolerance:g} tied" if settings.tie_tolerance else ""
        seen = f", scores {settings.rounding}" if settings.rounding else ""
        rules[label] = f"ties {settings.in_tie_order}{seen}{near}"
    if len(set(rules.values())) == 1:
        return next(iter(rules.values()))
    return "; ".join(f"{label}: {rule}" for label, rule in rules.items())
