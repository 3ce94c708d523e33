"""Measures that differ only in the cutoff."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from deadheat.measures import Measure

LOGARITHMIC = 20
"""The axis of cutoffs is logarithmic from this ratio of the last to the first cutoff on."""


def cutoff_families(measures: Iterable[Measure]) -> dict[Measure, list[Measure]]:
    """Return measures with several cutoffs, sorted by cutoff, by the measure without a cutoff.

    >>> from deadheat.measures.parse import parse_measures
    >>> cutoff_families(parse_measures("nDCG@10,1,MRR@10,MAP"))
    {nDCG: [nDCG@1, nDCG@10]}
    """
    families: dict[Measure, list[Measure]] = {}
    for measure in measures:
        if measure.cutoff:
            families.setdefault(measure(cutoff=None), []).append(measure)
    return {
        family: sorted(members, key=lambda measure: measure.cutoff or 0)
        for family, members in families.items()
        if len(members) > 1
    }


def coinciding(values: Mapping[str, object]) -> str:
    """Return a sentence on systems whose values are all equal: their curves coincide."""
    pairs = combinations(values, 2)
    return " ".join(f"{a} and {b} coincide." for a, b in pairs if values[a] == values[b])
