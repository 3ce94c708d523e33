"""Parse ``name=path``: runs and models with a name that the user chooses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from deadheat.errors import InputError


class Named(NamedTuple):
    """A path, and the user's name for it."""

    path: str
    label: str | None = None


def split_name(word: str) -> Named:
    """Parse ``name=path``; a path that exists is never split, even if it contains ``=``.

    >>> split_name("bm25=runs/a.run"), split_name("runs/k1=0.9/a.run").label
    (Named(path='runs/a.run', label='bm25'), None)
    """
    label, equals, path = word.partition("=")
    if not (equals and label.strip() and path) or "/" in label or os.path.exists(word):  # noqa: PTH110
        return Named(word)
    return Named(path, label.strip())


def split_names(words: Sequence[str]) -> list[Named]:
    """Parse the given runs; refuse a run that is given twice."""
    runs = list(map(split_name, words))
    names = [run.label or run.path for run in runs]
    for run, name in zip(runs, names, strict=True):
        if names.count(name) > 1:
            raise InputError(
                f"{name} is given twice; leave one out, or give one of them another name, such as "
                f"again={run.path}"
            )
    return runs
