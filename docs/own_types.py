"""Griffe extension: show the declared type and default of each parameter.

If parameters share a description, as ``qrels, run``, the parser of docstrings would show the type
and default of the first for all of them.
"""

from __future__ import annotations

from typing import Any

import griffe


class OwnTypes(griffe.Extension):
    """Take types and defaults from signatures and classes."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Correct the parameters that the docstring of a function describes."""
        _correct(func)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Correct the parameters and attributes that the docstring of a class describes."""
        if cls.parameters or not cls.bases:  # otherwise another library declares them
            _correct(cls)


def _correct(owner: griffe.Function | griffe.Class) -> None:
    for section in owner.docstring.parsed if owner.docstring else ():
        if section.kind is griffe.DocstringSectionKind.parameters:
            for described in section.value:
                if described.name in owner.parameters:
                    declared = owner.parameters[described.name]
                    described.annotation, described.value = declared.annotation, declared.default
        if section.kind is griffe.DocstringSectionKind.attributes:
            for described in section.value:
                if described.name in owner.members:
                    described.annotation = owner.members[described.name].annotation
