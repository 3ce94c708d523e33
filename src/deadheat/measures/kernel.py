"""Call the kernel of a measure, and prepare the arrays that kernels read.

A kernel is a function that computes the five views of a measure (`KERNEL_VIEWS`) for one query
after another. It is plain Python. If a C compiler was available at installation, Cython compiled
the module of the kernel with the types in the `.pxd` file of the same name. Otherwise the same
source is interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import NamedTuple

import numpy as np

from deadheat.ties import Floats, Ints, TieGroups

KERNEL_VIEWS = ("expected", "best", "worst", "oblivious", "variance")
"""Rows of the output of a kernel; oblivious is the value under the tie rule."""


class GroupArrays(NamedTuple):
    """The first arguments of the kernel of a measure with gains or grades."""

    in_queries: Ints
    """The groups of query ``q`` are ``in_queries[q]:in_queries[q + 1]``."""
    in_groups: Ints
    """The documents of group ``k`` are ``in_groups[k]:in_groups[k + 1]``."""
    above: Ints
    """Per group: ``c``, candidates above it."""
    size: Ints
    """Per group: ``g``, candidates in it."""
    rank: Ints
    """Per document: its rank under the tie rule."""


class RelevantGroups(NamedTuple):
    """The arguments of the kernel of a binary measure."""

    in_queries: Ints
    """The groups of query ``q`` are ``in_queries[q]:in_queries[q + 1]``."""
    above: Ints
    """Per group: ``c``, candidates above it."""
    size: Ints
    """Per group: ``g``, candidates in it."""
    relevant: Ints
    """Per group: ``r``, relevant documents in it; may be 0."""
    ranks: Ints
    """Per relevant document: its rank under the tie rule, ascending inside each query."""


def is_compiled(kernel: Callable[..., None]) -> bool:
    """Return whether a kernel is compiled."""
    return not isinstance(kernel, FunctionType)


def run_kernel(kernel: Callable[..., None], n_queries: int, *arguments: object) -> Floats:
    """Call a kernel and return its views: a row for each of `KERNEL_VIEWS`, a column per query.

    Parameters
    ----------
    kernel
        Called with `arguments` and an array of zeros of that shape, which it fills. A kernel that
        is not compiled gets lists instead of arrays, because Python reads their items much faster.
    """
    out = np.zeros((len(KERNEL_VIEWS), n_queries))
    if not is_compiled(kernel):
        arguments = tuple(a.tolist() if isinstance(a, np.ndarray) else a for a in arguments)
    kernel(*arguments, out)
    return out


def group_arrays(groups: TieGroups) -> GroupArrays:
    """Compute the offsets of groups and documents; cached for all measures."""
    if "arrays" not in groups.derived:
        in_queries = find_offsets(groups.query, groups.n_queries)
        in_groups = find_offsets(groups.group, len(groups.size))
        groups.derived["arrays"] = GroupArrays(
            in_queries, in_groups, groups.above, groups.size, groups.rank
        )
    arrays: GroupArrays = groups.derived["arrays"]
    return arrays


def relevant_groups(groups: TieGroups, lowest: float) -> RelevantGroups:
    """Select the documents whose grade is at least `lowest`; cached for all measures."""
    if ("relevant", lowest) not in groups.derived:
        in_queries, in_groups, *_ = group_arrays(groups)
        relevant, ranks = np.empty(len(groups.size), np.int64), np.empty(len(groups.rank), np.int64)
        n, ordered = select_relevant(
            in_queries, in_groups, groups.grade, groups.rank, lowest, relevant, ranks
        )
        ranks = ranks[:n]
        if not ordered:
            query = np.repeat(groups.query, relevant)
            ranks = ranks[np.lexsort((ranks, query))]
        selected = RelevantGroups(in_queries, groups.above, groups.size, relevant, ranks)
        groups.derived["relevant", lowest] = selected
    found: RelevantGroups = groups.derived["relevant", lowest]
    return found


def sort_by_rule(groups: TieGroups) -> Ints:
    """Return the documents sorted by query and, inside a query, by the tie rule."""
    return np.lexsort((groups.rank, groups.document_query))


def find_offsets(index: Ints, n: int) -> Ints:
    """Return the offsets of the entries of each number below `n` in a sorted index.

    >>> find_offsets(np.array([0, 0, 2]), 3)
    array([0, 2, 2, 3])
    """
    offsets = np.empty(n + 1, np.int64)
    fill_offsets(index, offsets)
    return offsets


def fill_offsets(index: Ints, out: Ints) -> None:
    """Fill ``out[i]`` with the number of entries of the sorted `index` that are below ``i``."""
    entry, entries = 0, len(index)
    for thing in range(len(out) - 1):
        out[thing] = entry
        while entry < entries and index[entry] == thing:
            entry += 1
    out[len(out) - 1] = entry


def select_relevant(
    in_queries: Ints,
    in_groups: Ints,
    grade: Floats,
    rank: Ints,
    lowest: float,
    relevant: Ints,
    ranks: Ints,
) -> tuple[int, bool]:
    """Count the relevant documents of each group, which come first in it, and copy their ranks.

    Returns their number, and whether the ranks ascend inside each query.
    """
    n = 0
    ordered = True
    for q in range(len(in_queries) - 1):
        last = 0
        for k in range(in_queries[q], in_queries[q + 1]):
            first = n
            for i in range(in_groups[k], in_groups[k + 1]):
                if grade[i] < lowest:
                    break
                ranks[n] = rank[i]
                if rank[i] < last:
                    ordered = False
                last = rank[i]
                n += 1
            relevant[k] = n - first
    return n, ordered
