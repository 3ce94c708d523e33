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
        in_queries = group_arrays(groups).in_queries
        selected = groups.grade >= lowest
        relevant = np.bincount(groups.group[selected], minlength=len(groups.size))
        query, ranks = groups.document_query[selected], groups.rank[selected]
        if not ((np.diff(query) > 0) | (np.diff(ranks) > 0)).all():
            ranks = ranks[np.lexsort((ranks, query))]
        groups.derived["relevant", lowest] = RelevantGroups(
            in_queries, groups.above, groups.size, relevant, ranks
        )
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
    return index.searchsorted(np.arange(n + 1))
