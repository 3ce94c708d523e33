"""The scoring head: the linear layer whose output is a model's logits, found by running the model.

`deadheat.lab.models` and `deadheat.integrations` run a probe through a model and take the layer
that gave exactly the logits the model gave; no layer is taken for its name or its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadheat._internal.packages import require
from deadheat.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module

PROBE = (
    ("what is a dead heat", "A race in which several runners cross the line at the same instant."),
    ("who won", "Nobody."),
)
"""Two (query, document) pairs of different lengths, so that one is padded; the longer one first,
which is the order sentence-transformers runs them in."""


@dataclass(frozen=True)
class Activation:
    """What entered and left a linear layer in one forward pass."""

    layer: Linear
    hidden: Tensor
    output: Tensor


@contextmanager
def watch(layers: Iterable[Linear]) -> Iterator[list[Activation]]:
    """Collect the activations of some linear layers, for as long as the block runs."""
    activations: list[Activation] = []

    def keep(layer: Linear, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        activations.append(Activation(layer, inputs[0], output))

    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        yield activations
    finally:
        for hook in hooks:
            hook.remove()


def find_head(
    model: Module,
    run: Callable[[], Tensor],
    rows: Sequence[int],
    name: str,
    score: Callable[[Tensor], Tensor] | None = None,
) -> Activation:
    """Find the linear layer that gives a model's logits; an error where none does.

    Parameters
    ----------
    model
        A torch module.
    run
        Runs `PROBE` through the model and returns its logits, a row per pair; in one forward pass,
        or in one after another.
    rows
        Which outputs of the layer are the logits: those of a classifier's labels, or of no and yes.
    name
        What an error calls the model.
    score
        What the model makes of the logits, where it gives only that: a difference yes − no.
    """
    linear = require("torch", "finding a scoring head").nn.Linear
    layers = [m for m in model.modules() if isinstance(m, linear) and m.out_features > max(rows)]
    with watch(layers) as activations:
        logits = run()
    for layer in dict.fromkeys(activation.layer for activation in reversed(activations)):
        own = [activation for activation in activations if activation.layer is layer]
        if _gives(own, rows, logits, score) and all(map(_is_plain, own)):
            return own[0]
    raise _no_head(name)


def head_input(
    activations: Sequence[Activation], rows: Sequence[int], logits: Tensor, name: str
) -> Tensor:
    """Return the input of the head, a row per input of the model; check that it gave the logits."""
    if not _gives(activations, rows, logits):
        raise _no_head(name)
    return _join_rows([activation.hidden for activation in activations])


def last_position(tensor: Tensor) -> Tensor:
    """Return a row per input: the last one, where there is a row per token."""
    return tensor[:, -1] if tensor.ndim == 3 else tensor


def _gives(
    activations: Sequence[Activation],
    rows: Sequence[int],
    logits: Tensor,
    score: Callable[[Tensor], Tensor] | None = None,
) -> bool:
    """Return whether a layer's output is the logits, in every bit."""
    outputs = [activation.output for activation in activations]
    if any(last_position(output).ndim != 2 for output in outputs):
        return False
    own = _join_rows(outputs)[:, list(rows)]
    return _equal(own if score is None else score(own), logits)


def _is_plain(activation: Activation) -> bool:
    """Return whether a layer gave what its weight and bias give; a quantised one scales them."""
    import torch

    layer, dtype = activation.layer, activation.output.dtype
    if layer.weight.shape != (layer.out_features, layer.in_features) or layer.weight.is_meta:
        return False
    bias = None if layer.bias is None else layer.bias.to(dtype)
    with torch.no_grad():
        hidden, weight = activation.hidden.to(dtype), layer.weight.to(dtype)
        return _equal(torch.nn.functional.linear(hidden, weight, bias), activation.output)


def _equal(a: Tensor, b: Tensor) -> bool:
    """Compare across dtypes and devices; NaN equals NaN, for the caller to name its input."""
    a, b = a.cpu().double(), b.cpu().double()
    return a.shape == b.shape and bool(a.allclose(b, rtol=0, atol=0, equal_nan=True))


def _join_rows(tensors: Sequence[Tensor]) -> Tensor:
    import torch

    return torch.cat([last_position(tensor) for tensor in tensors])


def _no_head(name: str) -> InputError:
    return InputError(
        f"no plain linear layer of {name} gives its logits (it scales or caps them, or the layer "
        "is quantised or of a kind of its own): the head regime cannot be used with it, use native "
        "or hps"
    )
