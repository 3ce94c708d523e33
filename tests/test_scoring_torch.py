"""Torch scoring functions, compared with operations of torch and with the NumPy functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from deadheat.errors import InputError
from deadheat.scoring import FORMATS, functions, score

torch = pytest.importorskip("torch")

from deadheat.scoring import torch_functions  # noqa: E402

LOW = {"bf16": torch.bfloat16, "fp16": torch.float16}
EMBEDDINGS = {"dot": lambda x: x, "cosine": lambda x: torch.nn.functional.normalize(x, dim=-1)}


def finite_values(dtype: str) -> np.ndarray:
    values = np.arange(2**16, dtype=np.uint16).view(FORMATS[dtype].dtype).astype(np.float32)
    return values[np.isfinite(values)]


def to_tensor(values: np.ndarray, dtype: str):
    return torch.from_numpy(FORMATS[dtype].round(values)).to(LOW[dtype])


def float32(tensor) -> np.ndarray:
    return tensor.float().numpy()


@pytest.mark.parametrize("dtype", LOW)
def test_native_equals_torch_operations_bitwise(dtype):
    z = to_tensor(np.random.default_rng(1).normal(size=(5000, 2)) * 6, dtype)
    assert torch.equal(torch_functions.sigmoid(z, dtype), torch.sigmoid(z))
    assert torch.equal(torch_functions.softmax(z, dtype), torch.softmax(z, dim=-1)[:, 1])
    assert torch.equal(
        torch_functions.softmax((z[:, 0], z[:, 1]), dtype), torch.softmax(z, -1)[:, 1]
    )
    q, d = to_tensor(np.random.default_rng(2).normal(size=(2, 50, 96)), dtype)
    for kind, prepare in EMBEDDINGS.items():
        expected = prepare(q) @ prepare(d).T
        assert expected.dtype == LOW[dtype]
        assert torch.equal(torch_functions.product(q, d, dtype, kind), expected)


@pytest.mark.parametrize("dtype", LOW)
def test_hps_casts_to_fp32_first(dtype):
    z = to_tensor(np.random.default_rng(3).normal(size=(5000, 2)) * 6, dtype)
    exact = z.double()
    hps = torch_functions.softmax(z, "fp32")
    assert hps.dtype == torch.float32
    torch.testing.assert_close(hps.double(), exact.softmax(-1)[:, 1], rtol=1e-6, atol=0)
    torch.testing.assert_close(
        torch_functions.sigmoid(z, "fp32").double(), exact.sigmoid(), rtol=1e-6, atol=0
    )
    q, d = to_tensor(np.random.default_rng(4).normal(size=(2, 50, 96)), dtype)
    for kind, prepare in EMBEDDINGS.items():
        expected = prepare(q.double()) @ prepare(d.double()).T
        actual = torch_functions.product(q, d, "fp32", kind).double()
        torch.testing.assert_close(
            actual, expected, rtol=1e-5, atol=1e-4 if kind == "dot" else 1e-6
        )


@pytest.mark.parametrize("dtype", LOW)
def test_score_does_not_depend_on_position_in_the_batch(dtype):
    z = to_tensor(finite_values(dtype), dtype)
    together = torch_functions.sigmoid(z, "fp32")
    in_threes = torch.cat([torch_functions.sigmoid(few, "fp32") for few in z.split(3)])
    assert torch.equal(together, in_threes)


def test_numpy_and_torch_agree_on_hps_scores():
    z = finite_values("bf16")
    pairs = np.stack([z, np.random.default_rng(11).permutation(z)], axis=-1)
    for name, logits in (("sigmoid", z), ("softmax", pairs)):
        from_numpy, from_torch = (
            score(name, regime="hps", model_dtype="bf16", logits=logits, backend=backend)
            for backend in ("numpy", "torch")
        )
        assert (from_numpy != from_torch).mean() <= 0.001  # midway between two FP32 values
        np.testing.assert_allclose(from_numpy, from_torch, rtol=2**-23)


def test_numpy_sigmoid_equals_torch_for_all_finite_bf16_values():
    z = finite_values("bf16")
    assert len(z) == 65280
    np.testing.assert_array_equal(
        functions.sigmoid(z, "bf16"), float32(torch.sigmoid(to_tensor(z, "bf16")))
    )


def test_numpy_sigmoid_differs_for_few_fp16_values_by_one_step():
    z = finite_values("fp16")
    from_numpy, from_torch = (
        functions.sigmoid(z, "fp16"),
        float32(torch.sigmoid(to_tensor(z, "fp16"))),
    )
    assert (from_numpy != from_torch).sum() <= 10
    np.testing.assert_allclose(from_numpy, from_torch, rtol=2**-10)


def test_numpy_softmax_equals_torch_on_a_grid_of_bf16_logits():
    logits = np.concatenate([np.linspace(-30, 30, 1500), np.linspace(-200, 200, 500)])
    grid = np.unique(FORMATS["bf16"].round(logits))
    z = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    assert len(z) > 1_500_000
    from_torch = float32(torch.softmax(to_tensor(z, "bf16"), dim=-1)[:, 1])
    np.testing.assert_array_equal(functions.softmax(z, "bf16"), from_torch)


@pytest.mark.parametrize("dtype", LOW)
def test_numpy_softmax_differs_only_at_midpoints(dtype):
    z = np.random.default_rng(0).normal(size=(1_000_000, 2)) * 8
    z = FORMATS[dtype].round(z)
    from_numpy = functions.softmax(z, dtype)
    differ = from_numpy != float32(torch.softmax(to_tensor(z, dtype), dim=-1)[:, 1])
    assert differ.sum() <= 30
    # Where both differ, the FP32 score is halfway between two values of the format.
    step = np.spacing(from_numpy[differ].astype(FORMATS[dtype].dtype)).astype(np.float32)
    offset = np.abs(functions.softmax(z[differ], "fp32") - from_numpy[differ]) / step
    np.testing.assert_allclose(offset, 0.5, atol=2e-3)


@pytest.mark.parametrize("kind", ["dot", "cosine"])
@pytest.mark.parametrize(("dtype", "share"), [("bf16", 0.001), ("fp16", 0.005)])
@pytest.mark.parametrize("width", [64, 384, 1024])
def test_numpy_product_differs_rarely_by_one_step(dtype, share, width, kind):
    rng = np.random.default_rng(width)
    q, d = rng.normal(size=(50, width)), rng.normal(size=(1000, width))
    if kind == "dot":
        q, d = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, d))
    q, d = FORMATS[dtype].round(q), FORMATS[dtype].round(d)
    from_numpy = functions.product(q, d, dtype, kind)
    from_torch = float32(
        torch_functions.product(to_tensor(q, dtype), to_tensor(d, dtype), dtype, kind)
    )
    assert (from_numpy != from_torch).mean() <= share
    step = 2.0 ** -FORMATS[dtype].mantissa
    np.testing.assert_allclose(from_numpy, from_torch, rtol=step, atol=step / 8)


@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2"])
def test_fp8_is_scored_in_fp32_and_rounded(dtype):
    z = FORMATS[dtype].round(np.random.default_rng(5).normal(size=(500, 2)) * 4)
    scores = torch_functions.sigmoid(torch.from_numpy(z), dtype)
    assert scores.dtype == FORMATS[dtype].torch
    np.testing.assert_array_equal(float32(scores), functions.sigmoid(z, dtype))
    rounded = torch.from_numpy(z).to(FORMATS[dtype].torch)
    np.testing.assert_array_equal(
        float32(torch_functions.softmax(rounded, dtype)), functions.softmax(z, dtype)
    )
    np.testing.assert_array_equal(
        float32(torch_functions.product(rounded, rounded, dtype)), functions.product(z, z, dtype)
    )


def test_integer_and_binary_products_equal_numpy():
    rng = np.random.default_rng(6)
    ints = rng.integers(-128, 128, (20, 300)).astype(np.int8)
    bits = rng.random((20, 40)) < 0.5
    packed = np.packbits(bits, axis=1)
    for values, dtype, kind in (
        (ints, "int8", "dot"),
        (bits, "binary", "hamming"),
        (packed, "binary", "hamming"),
        ((packed.astype(np.int16) - 128).astype(np.int8), "binary", "hamming"),
    ):
        tensor = torch.from_numpy(values)
        np.testing.assert_array_equal(
            torch_functions.product(tensor, tensor, dtype, kind).numpy(),
            functions.product(values, values, dtype, kind),
        )


def test_head_logits_of_low_precision_hidden_states_are_fp32():
    rng = np.random.default_rng(8)
    hidden, weight = (
        to_tensor(rng.normal(size=(300, 128)), "bf16"),
        to_tensor(rng.normal(size=(2, 128)), "bf16"),
    )
    bias = to_tensor(rng.normal(size=2), "bf16")
    logits = torch_functions.head_logits(hidden, weight, bias)
    expected = hidden.double() @ weight.double().T + bias.double()
    torch.testing.assert_close(logits.double(), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        functions.head_logits(*map(float32, (hidden, weight, bias))), logits.numpy(), atol=1e-4
    )
    # The layer in BF16 gives fewer distinct values.
    native = torch.nn.functional.linear(hidden, weight, bias)
    assert len(native[:, 0].unique()) < len(logits[:, 0].unique()) == 300


@pytest.mark.parametrize("given", ["numpy", "ml_dtypes", "tensor"])
@pytest.mark.parametrize("regime", ["native", "hps"])
def test_score_accepts_arrays_and_tensors(regime, given):
    z = to_tensor(np.random.default_rng(9).normal(size=(1000, 2)) * 6, "bf16")
    logits = {"numpy": float32(z), "ml_dtypes": float32(z).astype(ml_dtypes.bfloat16), "tensor": z}
    scores = score("softmax", regime=regime, model_dtype=torch.bfloat16, logits=logits[given])
    wide = z if regime == "native" else z.double()
    assert scores.dtype == np.float32
    np.testing.assert_array_equal(scores, float32(torch.softmax(wide, -1)[:, 1]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.sigmoid(torch.tensor([])), "logits is empty"),
        (lambda t: t.sigmoid(torch.tensor([[0.0], [torch.nan]])), r"logits\[1, 0\] is nan"),
        (lambda t: t.sigmoid(torch.tensor([7e4]), "fp16"), "does not fit fp16"),
        (lambda t: t.sigmoid(torch.tensor([449.0]), "fp8_e4m3"), "does not fit fp8_e4m3"),
        (lambda t: t.sigmoid(torch.tensor([True])), "real numbers"),
        (lambda t: t.softmax(torch.zeros(4, 3)), r"\(no, yes\)"),
        (lambda t: t.softmax((torch.zeros(4), torch.zeros(3))), "of one shape"),
        (lambda t: t.product(torch.zeros(2, 3), torch.ones(2, 3), kind="cosine"), "length 0"),
        (lambda t: t.product(torch.full((1, 4), 200.0), torch.full((1, 4), 200.0), "fp16"), "inf"),
        (lambda t: t.product(torch.ones(2, 3), torch.ones(2, 4)), r"\[Q×D\]"),
        (lambda t: t.product(torch.ones(2, 3), torch.ones(2, 3), "int8"), "int8 or uint8"),
        (lambda t: t.head_logits(torch.ones(2, 3), torch.ones(1, 4)), r"weight \[C×H\]"),
    ],
)
def test_bad_tensors_raise(call, message):
    with pytest.raises(InputError, match=message):
        call(torch_functions)
