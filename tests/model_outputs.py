"""Helper that runs a model of `deadheat.lab.models` over all inputs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def outputs_of(
    model: Any, inputs: Any, role: str | None = None, *, with_hidden: bool = False
) -> SimpleNamespace:
    """Return the output of a reranker or, with a role, of a bi-encoder, in the order of inputs."""
    options = {"role": role} if role else {"with_hidden": with_hidden}
    batches = model.batches(inputs, **options)
    rows, *hidden = batches.collect()
    return SimpleNamespace(
        logits=rows,
        vectors=rows,
        hidden=hidden[0] if hidden else None,
        provenance=model.provenance,
        inputs=batches.inputs,
    )
