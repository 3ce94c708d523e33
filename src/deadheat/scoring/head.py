"""Find the scoring head, the linear layer whose output is the logits of a model, by running it.

`deadheat.lab.models` and `deadheat.integrations` run a probe through a model, and use the layer
whose output is exactly the logits. The name and the place of a layer do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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

_NO_HEAD = (
    "no plain linear layer of the model gives its logits (the model scales or caps them, or the "
    "layer is quantised or of a special type): the head regime cannot be used with it, use "
    "native or hps"
)


@dataclass(frozen=True)
class Activation:
    """Input and output of a linear layer in one forward pass."""

    layer: Linear
    hidden: Tensor
    output: Tensor


@contextmanager
def watch(layers: Iterable[Linear]) -> Iterator[list[Activation]]:
    """Collect the activations of some linear layers inside the block."""
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
    *,
    subtracts: bool = False,
) -> Activation:
    """Return the linear layer whose output is the logits; raise `InputError` if there is none.

    Parameters
    ----------
    model
        A torch module.
    run
        Runs `PROBE` through the model, in one forward pass or several, and returns its logits, a
        row per pair.
    rows
        The outputs of the layer that are the logits: those of the labels, or of no and yes.
    subtracts
        Whether the model returns the difference of its two logits, yes − no.
    """
    linear = require("torch", "finding a scoring head").nn.Linear
    layers = [m for m in model.modules() if isinstance(m, linear) and m.out_features > max(rows)]
    with watch(layers) as activations:
        logits = run()
    for layer in dict.fromkeys(activation.layer for activation in reversed(activations)):
        own = [activation for activation in activations if activation.layer is layer]
        if _gives(own, rows, logits, subtracts) and all(map(_is_plain, own)):
            return own[0]
    raise InputError(_NO_HEAD)


def logit_rows(model: Any) -> tuple[list[int], bool]:
    """Return the outputs of a CrossEncoder's last layer that are its logits: labels, or no and yes.

    Also return whether the model returns their difference.
    """
    score = next((m for m in model.children() if type(m).__name__ == "LogitScore"), None)
    if score is None:
        return list(range(model.num_labels)), False
    rows = [i for i in (score.false_token_id, score.true_token_id) if i is not None]
    return rows, len(rows) == 2


def head_input(activations: Sequence[Activation], rows: Sequence[int], logits: Tensor) -> Tensor:
    """Return the input of the head, a row per input of the model; check that its output matches."""
    if not _gives(activations, rows, logits):
        raise InputError(_NO_HEAD)
    return _join_rows([activation.hidden for activation in activations])


def last_position(tensor: Tensor) -> Tensor:
    """Return one row per input: the last one if there is a row per token."""
    return tensor[:, -1] if tensor.ndim == 3 else tensor


def _gives(
    activations: Sequence[Activation],
    rows: Sequence[int],
    logits: Tensor,
    subtracts: bool = False,
) -> bool:
    """Return whether the output of a layer is bit-identical to the logits."""
    outputs = [activation.output for activation in activations]
    if any(last_position(output).ndim != 2 for output in outputs):
        return False
    own = _join_rows(outputs)[:, list(rows)]
    return _equal(own[:, 1:] - own[:, :1] if subtracts else own, logits)


def _is_plain(activation: Activation) -> bool:
    """Return whether the output is that of weight and bias; a quantised layer scales them."""
    import torch

    layer, dtype = activation.layer, activation.output.dtype
    if layer.weight.shape != (layer.out_features, layer.in_features) or layer.weight.is_meta:
        return False
    bias = None if layer.bias is None else layer.bias.to(dtype)
    with torch.no_grad():
        hidden, weight = activation.hidden.to(dtype), layer.weight.to(dtype)
        return _equal(torch.nn.functional.linear(hidden, weight, bias), activation.output)


def _equal(a: Tensor, b: Tensor) -> bool:
    """Return whether tensors of any dtype and device are equal; NaN equals NaN."""
    a, b = a.cpu().double(), b.cpu().double()
    return a.shape == b.shape and bool(a.allclose(b, rtol=0, atol=0, equal_nan=True))


def _join_rows(tensors: Sequence[Tensor]) -> Tensor:
    import torch

    return torch.cat([last_position(tensor) for tensor in tensors])
