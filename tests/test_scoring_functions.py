"""Formats, NumPy scoring functions, regimes applied to stored logits, and invalid input."""

from __future__ import annotations

import math
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from deadheat.errors import InputError, MissingPackageError
from deadheat.scoring import (
    FORMATS,
    REGIMES,
    describe_regime,
    hamming,
    head_logits,
    parse_format,
    product,
    regime_order,
    resolve_backend,
    score,
    scoring_format,
    scoring_provenance,
    sigmoid,
    softmax,
)

FLOATS = [name for name, f in FORMATS.items() if f.is_float]
RNG = np.random.default_rng(7)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("float32", "fp32"),
        ("BF16", "bf16"),
        ("bfloat16", "bf16"),
        ("torch.bfloat16", "bf16"),
        ("half", "fp16"),
        (np.float16, "fp16"),
        (np.dtype(np.float32), "fp32"),
        (ml_dtypes.bfloat16, "bf16"),
        ("float8_e4m3fn", "fp8_e4m3"),
        ("fp8-e5m2", "fp8_e5m2"),
        ("torch.int8", "int8"),
        ("binary", "binary"),
    ],
)
def test_parse_format_accepts_all_names_of_a_format(spelling, name):
    assert parse_format(spelling) is FORMATS[name]


@pytest.mark.parametrize(
    ("spelling", "hint"), [("bf61", "'bf16'"), ("flaot16", "'float16'"), ("zzz", "fp32, bf16")]
)
def test_unknown_format_suggests_the_nearest_name(spelling, hint):
    with pytest.raises(InputError, match=hint):
        parse_format(spelling)


@pytest.mark.parametrize("name", FLOATS)
def test_format_has_two_to_the_mantissa_values_between_half_and_one(name):
    format = FORMATS[name]
    grid = np.linspace(0.5, 1, 2**12 if name != "fp32" else 2, endpoint=False)
    if name != "fp32":
        assert len(np.unique(format.round(grid))) == 2**format.mantissa + 1  # 1.0 is the last
    assert (format.round(format.round(grid)) == format.round(grid)).all()


logit = st.floats(-80, 80, width=32)


@given(st.lists(logit, min_size=1, max_size=20))
def test_sigmoid_in_fp32_is_close_to_fp64(logits):
    expected = [1 / (1 + math.exp(-z)) for z in logits]
    np.testing.assert_allclose(sigmoid(logits), expected, rtol=4e-7)


@given(st.lists(st.tuples(logit, logit), min_size=1, max_size=20))
def test_softmax_in_fp32_is_close_to_fp64(pairs):
    expected = [1 / (1 + math.exp(no - yes)) for no, yes in pairs]
    np.testing.assert_allclose(softmax(pairs), expected, rtol=4e-7, atol=1e-45)
    no, yes = zip(*pairs, strict=True)
    np.testing.assert_array_equal(softmax((no, yes)), softmax(pairs))


@pytest.mark.parametrize("kind", ["dot", "cosine"])
def test_product_in_fp32_is_close_to_fp64(kind):
    q, d = RNG.normal(size=(5, 64)), RNG.normal(size=(40, 64))
    expected = q @ d.T
    if kind == "cosine":
        expected /= np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(d, axis=1)
    np.testing.assert_allclose(product(q, d, "fp32", kind), expected, atol=2e-5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_scores_are_values_of_their_format(dtype):
    z = RNG.normal(size=(200, 2)) * 4
    for scores in (sigmoid(z, dtype), softmax(z, dtype), product(z, z, dtype, "cosine")):
        assert scores.dtype == np.float32
        np.testing.assert_array_equal(scores, FORMATS[dtype].round(scores))


def test_logits_are_rounded_before_scoring():
    # BF16 rounds 3.01 to 3.015625.
    assert sigmoid([3.01], "bf16") == sigmoid([3.015625], "bf16")
    assert sigmoid([3.01], "fp8_e4m3") == sigmoid([3.0], "fp8_e4m3")


def test_saturated_sigmoid_is_exactly_zero_or_one():
    np.testing.assert_array_equal(sigmoid([-3e38, 3e38], "bf16"), [0, 1])


def test_integer_products_do_not_overflow():
    q = np.array([[-128] * 1024, [127] * 1024], np.int8)
    scores = product(q, q, "int8")
    assert scores.tolist() == [
        [128 * 128 * 1024, -128 * 127 * 1024],
        [-128 * 127 * 1024, 127**2 * 1024],
    ]
    unsigned = np.array([[255] * 4096], np.uint8)
    assert product(unsigned, unsigned, "int8").tolist() == [[255 * 255 * 4096]]


def test_hamming_counts_differing_bits_of_bool_and_packed_arrays():
    bits = RNG.random((12, 40)) < 0.5
    expected = [[-sum(a != b for a, b in zip(x, y, strict=True)) for y in bits] for x in bits]
    packed = np.packbits(bits, axis=1)
    shifted = (packed.astype(np.int16) - 128).astype(np.int8)
    for stored in (bits, packed, shifted):
        np.testing.assert_array_equal(hamming(stored, stored), expected)
        np.testing.assert_array_equal(product(stored, stored, "binary", "hamming"), expected)


def test_head_logits_equal_a_linear_layer():
    h, w, b = RNG.normal(size=(9, 32)), RNG.normal(size=(2, 32)), RNG.normal(size=2)
    np.testing.assert_allclose(head_logits(h, w, b), h @ w.T + b, atol=1e-5)
    np.testing.assert_allclose(head_logits(h, w), h @ w.T, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sigmoid([]), r"logits is empty \(shape \(0,\)\)"),
        (lambda: sigmoid([[0.0, 1.0], [2.0, np.nan]]), r"logits\[1, 1\] is nan"),
        (lambda: softmax([[0.0, np.inf]]), r"logits\[0, 1\] is inf.*bf16"),
        (lambda: sigmoid([1.0, 70000.0], "fp16"), r"70000 does not fit fp16 \(up to 65504\)"),
        (lambda: sigmoid([449.0], "fp8_e4m3"), "does not fit fp8_e4m3"),
        (lambda: sigmoid([1e300]), "does not fit fp32"),
        (lambda: sigmoid(["a"]), "real numbers"),
        (lambda: sigmoid([[1.0], [1.0, 2.0]]), "not a rectangular array"),
        (lambda: sigmoid([True, False]), "real numbers"),
        (lambda: sigmoid([1.0], "int8"), "int8 has no sigmoid"),
        (lambda: softmax([[1.0, 2.0, 3.0]]), r"\(no, yes\) of 2"),
        (lambda: softmax(3.0), r"\(no, yes\) of 2"),
        (lambda: softmax(([1.0], [1.0, 2.0])), "of one shape"),
        (lambda: softmax(([[1.0], [1.0, 2.0]], [1.0])), "not a rectangular array"),
        (lambda: softmax([[1.0, 2.0]], "binary"), "binary has no sigmoid or softmax"),
        (lambda: product([[1.0]], [[1.0, 2.0]]), r"\[Q×D\] and \[N×D\]"),
        (lambda: product([1.0], [1.0]), r"\[Q×D\] and \[N×D\]"),
        (
            lambda: product([[1.0]], [[1.0]], "bf16", "manhattan"),
            "manhattan .*bf16.* dot or cosine",
        ),
        (lambda: product([[1.0]], [[1.0]], "int8"), "must be int8 or uint8, not float64"),
        (lambda: product([[1.0]], [[1.0]], "bf16", "hamming"), "no hamming product of bf16"),
        (lambda: product([[True]], [[True]], "binary"), "no dot product of binary"),
        (lambda: product([[1]], [[1]], "int8", "cosine"), "no cosine product of int8"),
        (
            lambda: product([[0.0, 0.0]], [[1.0, 0.0]], kind="cosine"),
            "queries .*length 0",
        ),
        (lambda: product([[200.0] * 4], [[200.0] * 4], "fp16"), "product of 160000 .*fp16"),
        (lambda: product([[6e4] * 4], [[1.0] * 4], "fp16", "cosine"), "a length of 120000"),
        (lambda: product([[3e38] * 4], [[1.0] * 4], "fp32", "cosine"), "a length of inf"),
        (lambda: hamming(np.zeros((1, 1), np.int8), np.zeros((1, 1), np.uint8)), "one dtype"),
        (lambda: hamming([[0.5]], [[0.5]]), "must be int8 or uint8"),
        (lambda: head_logits([[1.0, 2.0]], [[1.0]]), r"weight \[C×H\]"),
        (lambda: head_logits([[1.0]], [[1.0]], [1.0, 2.0]), r"bias \[C\]"),
    ],
)
def test_bad_input_raises(call, message):
    with pytest.raises(InputError, match=message):
        call()


class TestScore:
    def test_native_rounds_scores_and_hps_does_not(self):
        logits = [6.75, 6.78125]
        options = {"model_dtype": "bf16", "logits": logits, "backend": "numpy"}
        assert score("sigmoid", regime="native", **options).tolist() == [1, 1]
        np.testing.assert_array_equal(score("sigmoid", regime="hps", **options), sigmoid(logits))

    def test_head_regime_scores_head_logits(self):
        scores = score(
            "softmax",
            regime="head",
            model_dtype="bf16",
            logits=([0.0], [1.0]),
            head_logits=([0.001], [1.003]),
            backend="numpy",
        )
        np.testing.assert_array_equal(scores, softmax([[0.001, 1.003]]))

    @pytest.mark.parametrize("backend", ["numpy", "auto"])
    def test_scored_regime_uses_the_logits_of_the_model(self, backend):
        logits = [6.75, 6.78125]
        options = {"model_dtype": "bf16", "logits": logits, "backend": backend}
        for dtype in ("fp16", "fp8_e5m2", "fp32"):
            scores = score("sigmoid", regime=f"scored-{dtype}", **options)
            np.testing.assert_array_equal(scores, sigmoid(logits, dtype))

    def test_two_logit_arrays_are_stacked_along_the_last_axis(self):
        scores = score(
            "softmax",
            regime="hps",
            model_dtype="bf16",
            logits=([0.0, 8.0], [1.0, 2.0]),
            backend="numpy",
        )
        np.testing.assert_array_equal(scores, softmax([[0.0, 1.0], [8.0, 2.0]]))

    @pytest.mark.parametrize("backend", ["numpy", "auto"])
    def test_log_odds_do_not_saturate_and_are_computed_in_fp32(self, backend):
        def scores(kind, regime, logits, dtype="bf16"):
            given = {"logits": logits, "head_logits": logits}
            return score(kind, regime=regime, model_dtype=dtype, backend=backend, **given).tolist()

        pairs = [[-9.0, 9.0], [-9.0625, 9.0]]  # in BF16 both differences are 18
        assert scores("softmax", "hps", pairs) == [1.0, 1.0]
        assert scores("softmax", "hps-logit", pairs) == [18.0, 18.0625]
        assert scores("softmax", "hps-logit", tuple(zip(*pairs, strict=True))) == [18.0, 18.0625]
        assert scores("sigmoid", "hps-logit", [18.0, 18.125]) == [18.0, 18.125]
        # Logits of the head may have values outside the model dtype.
        assert scores("softmax", "head-logit", [[0.0, 1.0009765625]]) == [1.0009765625]
        assert scores("sigmoid", "head-logit", [1.0009765625]) == [1.0009765625]

    @pytest.mark.parametrize("backend", ["numpy", "auto"])
    @pytest.mark.parametrize("regime", ["native", "hps"])
    def test_integer_embeddings_are_scored_exactly_in_both_regimes(self, backend, regime):
        q = np.array([[127, -128]], np.int8)
        options = {"regime": regime, "queries": q, "documents": q, "backend": backend}
        assert score("dot", model_dtype="int8", **options).tolist() == [[127**2 + 128**2]]
        assert score("hamming", model_dtype="binary", **options).tolist() == [[0]]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"kind": "relu"}, "unknown scoring 'relu'"),
            ({"regime": "high"}, "choose native, hps, head, hps-logit or head-logit"),
            ({"regime": "scored-bf61"}, "did you mean 'bf16'"),
            ({"regime": "scored-int8"}, "int8 has no sigmoid"),
            ({"regime": "scored-fp16", "logits": [70144.0]}, "does not fit fp16"),
            ({"regime": "head"}, "needs head_logits"),
            ({"logits": None}, "needs logits"),
            ({"kind": "dot"}, "needs queries"),
            ({"kind": "dot", "regime": "head"}, "embeddings have no logits"),
            ({"kind": "dot", "regime": "head-logit"}, "embeddings .*head-logit"),
            ({"kind": "cosine", "regime": "hps-logit"}, "embeddings .*hps-logit"),
            ({"regime": "head-logit"}, "needs head_logits"),
            ({"regime": "native-logit"}, "unknown regime"),
            ({"kind": "softmax", "regime": "hps-logit", "logits": [[1.0]]}, r"\(no, yes\) of 2"),
            (
                {
                    "kind": "softmax",
                    "regime": "hps-logit",
                    "logits": np.array([[-3e38, 3e38]], np.float32),
                    "model_dtype": "fp32",
                },
                "does not fit fp32",
            ),
            ({"logits": [1.0, 3.01]}, r"logits\[1\] = .*3.01.* is not a bf16 value"),
            ({"logits": [1.0, np.nan]}, r"logits\[1\] is nan"),
            ({"logits": [[1.0], [1.0, 2.0]]}, "not a rectangular array"),
            ({"logits": []}, "logits is empty"),
            ({"logits": [1.0], "head_logits": [[1.0], []], "regime": "head"}, "not a rectangular"),
            ({"logits": [1.0], "backend": "jax"}, "unknown backend 'jax'"),
            ({"model_dtype": "int8"}, "int8 has no sigmoid"),
        ],
    )
    def test_bad_input_raises(self, arguments, message):
        options = {"kind": "sigmoid", "regime": "native", "model_dtype": "bf16", "logits": [1.0]}
        with pytest.raises(InputError, match=message):
            score(**{"backend": "numpy", **options, **arguments})

    def test_missing_torch_falls_back_to_numpy_or_raises(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert resolve_backend() == "numpy"
        assert score("sigmoid", regime="native", model_dtype="bf16", logits=[0.0]) == 0.5
        with pytest.raises(MissingPackageError, match=r"'torch': .*pip install .*\[models\]"):
            score("sigmoid", regime="native", model_dtype="bf16", logits=[0.0], backend="torch")


def test_describe_regime_covers_all_regimes():
    assert list(REGIMES) == ["native", "hps", "head", "hps-logit", "head-logit"]
    assert sorted(["scored-fp16", *reversed(REGIMES)], key=regime_order) == [
        *REGIMES,
        "scored-fp16",
    ]
    assert {name: describe_regime(name) for name in REGIMES} == REGIMES
    assert describe_regime("scored-half").startswith("scoring in fp16 of model-dtype")
    with pytest.raises(InputError, match=r"'high'.* native, hps, head, hps-logit or head-logit"):
        describe_regime("high")


@pytest.mark.parametrize(
    ("regime", "model_dtype", "function", "expected"),
    [
        ("native", "bfloat16", "sigmoid", "bf16"),
        ("hps", "bf16", "softmax", "fp32"),
        ("head", "fp16", "sigmoid", "fp32"),
        ("head-logit", "bf16", "softmax", "fp32"),
        ("scored-e5m2", "bf16", "dot", "fp8_e5m2"),
        ("hps", "int8", "dot", "int8"),
        ("hps", "int8", "cosine", "fp32"),
    ],
)
def test_scoring_dtype_of_a_regime(regime, model_dtype, function, expected):
    assert scoring_format(regime, model_dtype, function).name == expected
    provenance = scoring_provenance(regime, model_dtype, function, "numpy")
    assert (provenance.regime, provenance.scoring_dtype, provenance.function) == (
        regime,
        expected,
        function,
    )
    assert provenance.model_dtype == parse_format(model_dtype).name
    assert (provenance.backend, provenance.threads) == ("numpy", None)


def test_scoring_provenance_stores_torch_threads():
    torch = pytest.importorskip("torch")
    provenance = scoring_provenance("hps", "bf16")
    assert (provenance.backend, provenance.threads) == ("torch", torch.get_num_threads())


def test_importing_scoring_does_not_import_torch():
    code = "import sys, deadheat.scoring; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
