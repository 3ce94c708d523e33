"""Print the tie rules of vector libraries: a table for docs/recipes/vector-search.md.

    python benchmarks/vector_ties.py

All indexes have the same random codes of 64 bits. Ids are shuffled, so that their order differs
from the order of insertion. Each index returns the ten nearest documents of 100 queries. A rule is
named only if it holds for all ties of all lists.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from importlib.util import find_spec
from itertools import groupby, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hosts"))

import numpy as np
from vector_indexes import INDEXES, Built, Codes

import deadheat as dh
from deadheat.integrations import vector_search
from deadheat.integrations.vector_search.libraries import Lists

K = 10
DEEP = 500
"""Depth of the exact search, large enough for the whole tie group of the tenth neighbour."""
PACKAGES = {"faiss": "faiss-cpu", "qdrant_client": "qdrant-client"}
HEADER = (
    "| index | inside a tie | at the cut it keeps | recall@10 by ids | expected | by distance |\n"
    "|---|---|---|---|---|---|"
)


def main() -> None:
    codes = Codes.make(shuffled=True)
    print(HEADER)
    for name, (module, build) in INDEXES.items():
        if find_spec(module) is not None:
            print(row(name, build(codes), codes))
    used = dict.fromkeys(module for module, _ in INDEXES.values() if find_spec(module))
    named = (f"{PACKAGES.get(m, m)} {version(PACKAGES.get(m, m))}" for m in used)
    print(f"\n{', '.join(named)}.")


def row(name: str, built: Built, codes: Codes) -> str:
    """Return the row of one index in the table."""
    found = built.index.nearest(built.queries, K)
    inside, kept = find_rules(name, found, built, codes)
    recall = neighbour_recall(found, built, codes, named="faiss" not in name)
    numbers = "– | – | –"  # the distances of the index are not comparable
    if recall is not None:
        numbers = f"{recall.oblivious:.2f} | {recall.expected:.2f} | {recall.best:.3f}"
    return f"| {name} | {inside} | {kept} | {numbers} |"


def find_rules(name: str, found: Lists, built: Built, codes: Codes) -> tuple[str, str]:
    """Return the rule inside ties of a list, and that of the group at the cut."""
    place = np.empty(len(codes.ids), np.int64)
    place[codes.ids] = np.arange(len(codes.ids))
    keys = {"id": lambda ids: ids, "insertion": lambda ids: place[ids]}
    if name.startswith("faiss"):  # it has positions instead of ids
        keys = {"id": lambda ids: ids}
    groups = [
        np.array([doc for doc, _ in tie], np.int64)
        for ids, scores in found
        for _, tie in groupby(zip(ids.tolist(), scores.tolist(), strict=True), lambda x: x[1])
    ]
    completed = vector_search.complete_groups(
        built.index, built.queries, *([list_[i] for list_ in found] for i in (0, 1))
    )
    cuts = [
        (ids[scores == scores[-1]].astype(np.int64), int((scores[:K] == scores[-1]).sum()))
        for ids, scores in zip(completed.ids, completed.scores, strict=True)
    ]
    inside = kept = "no rule"
    for key, of in keys.items():
        for direction, sign in (("ascending", 1), ("descending", -1)):
            if all(a < b for group in groups for a, b in pairwise((sign * of(group)).tolist())):
                inside = f"{key} {direction}"
            end = "lowest" if sign > 0 else "highest"
            if all(set((sign * of(g))[:n]) == set(np.sort(sign * of(g))[:n]) for g, n in cuts):
                kept = f"{end} {'ids' if key == 'id' else 'places'}"
    return inside, kept


def neighbour_recall(
    found: Lists, built: Built, codes: Codes, *, named: bool
) -> dh.evaluation.Summary | None:
    """Return the recall relative to brute force, or None if the distances are not comparable.

    Brute force sorts ties by id.
    """
    ids = codes.ids if named else np.arange(len(codes.documents))
    distances = np.empty_like(codes.distances)
    distances[:, ids] = codes.distances
    order = np.argsort(distances, axis=1, kind="stable")[:, :DEEP]
    exact = dh.search_results(
        order, np.take_along_axis(distances, order, 1), larger_is_better=False
    )
    run = dh.search_results(
        [ids for ids, _ in found],
        [built.differing(scores) for _, scores in found],
        larger_is_better=False,
    )
    try:
        return dh.evaluation.neighbour_recall(run, exact)[f"Recall@{K}"]
    except dh.InputError:  # the distances of a quantiser differ from those of the codes
        return None


if __name__ == "__main__":
    main()
