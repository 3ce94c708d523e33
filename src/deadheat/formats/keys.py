"""Places of keys in a dictionary: what a run's input order means for a dict."""

from __future__ import annotations

from typing import Any


def python_places_of(docs: dict[Any, Any], wanted: dict[str, int]) -> list[int] | None:
    """Place of each wanted key in the order of `docs`, −1 where it is not in it.

    `wanted` numbers its keys from 0. None if a key of `docs` is not a string.
    """
    if not all(isinstance(key, str) for key in docs):
        return None
    places = dict(zip(docs, range(len(docs)), strict=True))
    return [places.get(key, -1) for key in wanted]


try:
    from deadheat.formats.compiled_keys import places_of as places_of
except ImportError:  # no C compiler when deadheat was installed
    places_of = python_places_of
