"""Which way views are computed: in one compiled pass over tie groups, or by NumPy."""

from __future__ import annotations

from typing import Any

from deadheat.ties.groups import TieGroups

try:
    from deadheat.measures.compiled_passes import OnePass
except ImportError:  # no C compiler when deadheat was installed
    OnePass = None


def one_pass(groups: TieGroups) -> Any:
    """Give tie groups as the compiled passes take them; None where NumPy has to do.

    That is where nothing was compiled, and for groups that were made by hand, or made to grow, and
    do not lie inside their lists.
    """
    return groups.memo("one_pass", lambda: _taken(groups))


def _taken(groups: TieGroups) -> Any:
    if OnePass is None:
        return None
    try:
        taken = OnePass(
            groups.query,
            groups.above,
            groups.size,
            groups.group,
            groups.grade,
            groups.rank,
            groups.retrieved,
            groups.ideal_query,
        )
    except ValueError:  # arrays of other types, or with gaps
        return None
    return taken if taken.sound else None
