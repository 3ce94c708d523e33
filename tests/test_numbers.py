"""Tensors whose values cannot be read directly are rejected by every reader."""

from __future__ import annotations

import pytest

import deadheat as dh
from deadheat._internal.numbers import exact_floats
from deadheat.errors import InputError
from deadheat.scoring import functions, score

torch = pytest.importorskip("torch")

from deadheat.scoring import torch_functions  # noqa: E402

VALUES = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
UNREADABLE = {
    "meta": lambda: VALUES.to("meta"),
    "sparse_coo": lambda: VALUES.to_sparse(),
    "sparse_csr": lambda: VALUES.to_sparse_csr(),
    "quantised": lambda: torch.quantize_per_tensor(VALUES, 0.1, 0, torch.qint8),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
}
READERS = {
    "exact_floats": exact_floats,
    "evaluate_arrays": lambda x: dh.evaluate_arrays(VALUES, x, "MRR"),
    "relevance": lambda x: dh.evaluate_arrays(x, VALUES, "MRR"),
    "numpy": functions.sigmoid,
    "score": lambda x: score("softmax", regime="hps", model_dtype="bf16", logits=x),
    "sigmoid": torch_functions.sigmoid,
    "softmax": torch_functions.softmax,
    "softmax of two": lambda x: torch_functions.softmax((VALUES, x)),
    "product": lambda x: torch_functions.product(VALUES, x),
    "int8 product": lambda x: torch_functions.product(x, x, "int8"),
    "head": lambda x: torch_functions.head_logits(x, VALUES),
}


@pytest.mark.filterwarnings("ignore")  # torch warns about its prototype features
@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("reader", READERS)
def test_unreadable_tensor_is_rejected(reader, kind):
    with pytest.raises(InputError, match="must be a dense tensor"):
        READERS[reader](UNREADABLE[kind]())


def test_lazily_negated_tensor_is_read():
    assert exact_floats(torch._neg_view(VALUES)).tolist() == [[-1, -2], [-3, -4]]
