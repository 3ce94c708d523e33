"""Arrays, tensors and lists of lists give the same result as dictionaries."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from ways_in import MEASURES, facts

import deadheat as dh

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")

NUMPY_TYPES = [
    np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint8, np.int16, np.int32,
    np.int64, np.uint64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2, ml_dtypes.int4,
]  # fmt: skip


def evaluate_as_dicts(scores, relevance, **options) -> list[tuple]:
    def number(x):
        return int(x) if isinstance(x, (int, np.integer)) else float(x)

    run = {str(q): {str(i): number(x) for i, x in enumerate(row)} for q, row in enumerate(scores)}
    qrels = {
        str(q): {str(i): float(x) for i, x in enumerate(row)} for q, row in enumerate(relevance)
    }
    return list(facts(dh.evaluate(qrels, run, MEASURES, **options)).values())


def evaluate_as_arrays(scores, relevance, **options) -> list[tuple]:
    return list(facts(dh.evaluate_arrays(relevance, scores, MEASURES, **options)).values())


@pytest.mark.parametrize("dtype", NUMPY_TYPES, ids=lambda t: np.dtype(t).name)
@given(data=st.data())
@settings(max_examples=20)
def test_arrays_of_every_type(dtype, data):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 6)))
    size = shape[0] * shape[1]
    values = data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 7]), min_size=size, max_size=size))
    grades = data.draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size))
    scores = np.array(values).astype(dtype).reshape(shape)
    relevance = np.array(grades).reshape(shape)
    assume((relevance > 0).any())
    truth = evaluate_as_dicts(scores, relevance)
    assert evaluate_as_arrays(scores, relevance) == truth
    assert evaluate_as_arrays(np.asfortranarray(scores), relevance.astype(np.float32)) == truth
    assert evaluate_as_arrays(np.repeat(scores, 2, axis=1)[:, ::2], relevance.tolist()) == truth
    assert evaluate_as_arrays(list(scores), [list(row) for row in relevance]) == truth


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i8", "<f2", ">i2"])
def test_arrays_of_either_byte_order(dtype):
    scores = np.array([[3, 1, 3, 2]], dtype)
    assert evaluate_as_arrays(scores, [[0, 1, 1, 0]]) == evaluate_as_dicts(scores, [[0, 1, 1, 0]])


@pytest.mark.parametrize(
    "row",
    [
        np.array([2**60, 2**60 + 1, 2**60 + 1, 5]),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 2, 5], np.uint64),
        np.array([-(2**63), -(2**63) + 1, -(2**63) + 1, 5]),
        [2**70, 2**70 + 1, 2**70 + 1, -5],
        [2**63 + 5, 2**63 + 6, 2**63 + 6, -5],
        [10**400, 10**400 + 1, 10**400 + 1, 0],
        np.array([1, 1 + np.finfo(np.longdouble).eps, 1 + np.finfo(np.longdouble).eps, 0]),
    ],
    ids=["int64", "uint64", "negative", "python", "mixed", "huge", "long double"],
)
def test_numbers_that_float64_cannot_distinguish(row):
    descending = [3, 2, 2, 1] if row[0] > row[1] else [1, 2, 2, 0 if row[3] < row[0] else 3]
    for labels in ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]):
        truth = evaluate_as_dicts([descending], [labels])
        assert evaluate_as_arrays([row], [labels]) == truth
        if isinstance(row, np.ndarray):
            assert evaluate_as_arrays(row[None], [labels]) == truth


def test_adjacent_low_precision_scores_stay_distinct():
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float16):
        bits = np.arange(64).astype(np.uint8 if np.dtype(dtype).itemsize == 1 else np.uint16)
        scores = np.concatenate([bits, bits]).view(dtype)[None]
        relevance = np.zeros(scores.shape, int)
        relevance[0, 40] = 1
        result = dh.evaluate_arrays(relevance, scores, ["MRR"])["MRR"]
        rank = 2 * (63 - 40) + 1
        assert (result.best, result.worst) == (1 / rank, 1 / (rank + 1))


def test_ragged_lists():
    scores = [[0.9, 0.5, 0.5, 0.5], [0.25], [1, 2, 2], np.array([1, 1], np.float16)]
    relevance = [[1, 0, 1, 0], [1], [0, 1, 0], (0, 1)]
    assert evaluate_as_arrays(scores, relevance) == evaluate_as_dicts(scores, relevance)
    assert evaluate_as_arrays(tuple(scores), tuple(relevance)) == evaluate_as_dicts(
        scores, relevance
    )


def test_arrays_with_unlisted_relevant_documents():
    run = {"q": {"a": 1.0, "b": 1.0}, "r": {"a": 1.0, "b": 2.0}}
    qrels = {"q": {"a": 1, "x": 1, "y": 1}, "r": {"b": 1}}
    truth = list(facts(dh.evaluate(qrels, run, ["nDCG", "MAP", "Recall"])).values())
    for n in ([3, 1], np.array([3, 1], np.uint64), np.array([3, 1], np.int8)):
        result = dh.evaluate_arrays(
            [[1, 0], [0, 1]], [[1.0, 1.0], [1.0, 2.0]], ["nDCG", "MAP", "Recall"], n_relevant=n
        )
        assert list(facts(result).values()) == truth


def test_negative_labels_give_one_note():
    result = dh.evaluate_arrays([[1, -1, -1]], [[3, 2, 1]], "nDCG")
    assert [note for note in result.notes if "below 0" in note] == [
        "2 judgements below 0: counted as not relevant"
    ]


@pytest.mark.parametrize(
    "name", ["bfloat16", "float16", "float32", "float64", "float8_e4m3fn", "int8", "uint8", "int64"]
)
def test_torch_tensors(name):
    torch = pytest.importorskip("torch")
    plain = [[3.0, 1.0, 3.0, 2.0], [1.0, 1.0, 1.0, 1.0]]
    labels = [[0, 1, 1, 0], [0, 0, 2, 1]]
    scores = torch.tensor(plain).to(getattr(torch, name))
    truth = evaluate_as_dicts(plain, labels)
    assert evaluate_as_arrays(scores, torch.tensor(labels)) == truth
    assert evaluate_as_arrays(scores, torch.tensor(labels).bool()) == evaluate_as_dicts(
        plain, np.array(labels) > 0
    )
    assert evaluate_as_arrays(list(scores), labels) == truth
    assert (
        evaluate_as_arrays(scores.T.contiguous().T, torch.tensor(labels, dtype=torch.bfloat16))
        == truth
    )


def test_torch_bfloat16_keeps_every_bit():
    torch = pytest.importorskip("torch")
    scores = torch.arange(0, 256, dtype=torch.int16).view(torch.bfloat16)[None].requires_grad_()
    relevance = torch.zeros(1, 256, dtype=torch.int64)
    relevance[0, 200] = 1
    result = dh.evaluate_arrays(relevance, scores, "MRR")["MRR"]
    assert (result.best, result.worst) == (1 / 56, 1 / 56)


def test_swapped_scores_and_relevance_give_a_warning():
    relevance, scores = [[1, 0, 1, 0]], [[0.9, 0.5, 0.5, 0.5]]
    assert not dh.evaluate_arrays(relevance, scores, ["Recall@2"]).warnings
    with pytest.warns(dh.DeadheatWarning, match="swapped"):
        dh.evaluate_arrays(scores, relevance, ["Recall@2"])
    with pytest.warns(dh.DeadheatWarning, match="swapped"):
        dh.evaluate_arrays(scores[0], relevance[0], "Recall@2", query=[0] * 4)


@pytest.mark.parametrize(
    ("relevance", "scores"),
    [
        ([[1.0, 0.0]], [[1, 0]]),  # float labels, and integer scores from a language model
        ([[0.5, 0.0]], [[0.25, 0.75]]),
        ([[0.5, 0.0]], [[12.0, 3.0]]),
        ([[True, False]], [[1, 0]]),
    ],
)
def test_arrays_that_could_be_swapped_are_used_as_given(relevance, scores):
    result = dh.evaluate_arrays(relevance, scores, ["nDCG"])
    grades = np.array(relevance, float)
    assert result == dh.evaluate_arrays(grades, np.array(scores, float), ["nDCG"])
