"""Ignore the warnings of public functions; pytest turns warnings into errors."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import deadheat as dh

P = ParamSpec("P")
R = TypeVar("R")


def quiet(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that ignores every `DeadheatWarning`. Use it only in the main thread."""

    @functools.wraps(function)
    def without_warnings(*args: P.args, **options: P.kwargs) -> R:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dh.DeadheatWarning)
            return function(*args, **options)

    return without_warnings
