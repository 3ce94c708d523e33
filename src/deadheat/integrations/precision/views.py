"""Shared parts of all views: construction, names, and use as a context manager."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from deadheat._internal.dtypes import Format
from deadheat.errors import InputError
from deadheat.integrations.precision.surgery import clone
from deadheat.scoring import describe_regime, ranks_by_logit

LOGIT = "-logit"
"""The end of the names of regimes that rank by log-odds."""


class Source(NamedTuple):
    """The model of a view, and how the view scores."""

    model: Any
    regime: str
    format: Format
    tokens: tuple[int, ...] = ()
    """The tokens of a causal language model whose logits are compared."""

    @property
    def layer(self) -> str:
        """The regime without the ending for log-odds: the layer from which FP32 is used."""
        return self.regime.removesuffix(LOGIT)

    @property
    def logit(self) -> bool:
        """Whether scores are log-odds."""
        return ranks_by_logit(self.regime)


class View:
    """Base of views: attributes and methods that a view adds to the class of its model."""

    _deadheat: Source
    _changes: dict[str, object]
    """Attributes that differ from those of the model."""
    _has_methods: ClassVar[bool] = True
    """Whether the view has methods of its own, not only other attributes."""

    @classmethod
    def prepare(cls, source: Source) -> dict[str, object]:
        """Return the attributes that a view changes."""
        raise NotImplementedError

    @property
    def scoring(self) -> str:
        """The scoring dtype and the regime in words."""
        _, regime, format, _ = self._deadheat
        return f"{format.name}, {regime}: {describe_regime(regime)}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, scores in {self.scoring}>"

    def __enter__(self) -> View:
        model = self._deadheat.model
        _check_outside(model)
        self._before = type(model), {name: vars(model)[name] for name in self._changes}
        if self._has_methods:
            model.__class__ = type(self)
        vars(model).update(self._changes, _deadheat=self._deadheat)
        return self

    def __exit__(self, *_: object) -> None:
        model = self._deadheat.model
        own, before = self._before
        if self._has_methods:
            model.__class__ = own
        vars(model).update(before)
        del vars(model)["_deadheat"]

    def __reduce__(self) -> tuple[object, ...]:
        # A worker process receives the model and builds its own view.
        return build_view, (type(self).__bases__[0], self._deadheat)


def build_view(kind: type[View], source: Source) -> Any:
    """Make a view of this kind for the model and the precision of `source`."""
    model = source.model
    _check_outside(model)
    changes = kind.prepare(source)
    classes: tuple[Any, Any] = kind, type(model)
    view = clone(model, _view_class(*classes))
    vars(view).update(changes, _deadheat=source, _changes=changes)
    return view


def source_of(model: object) -> Source | None:
    """Return the source of a view, or of a model inside a block; None for other objects."""
    source = getattr(model, "_deadheat", None)
    return source if isinstance(source, Source) else None


@lru_cache
def _view_class(kind: type[View], base: type) -> Any:
    names: dict[str, object] = {"__module__": base.__module__}
    worker = getattr(base, "_multi_process_worker", None)
    if worker is not None:  # sent to a worker process by the name of its class: the model's
        names["_multi_process_worker"] = staticmethod(worker)
    return type(base.__name__, (kind, base), names)


def _check_outside(model: object) -> None:
    if source_of(model) is not None:
        raise InputError("this model is inside a precision block already; leave that block first")
