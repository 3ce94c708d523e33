"""Kernels of measures: input arrays, compilation, thread safety, independence of queries."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pytest

import deadheat as dh
from deadheat.evaluation import views_of
from deadheat.formats import Run
from deadheat.measures import MEASURES
from deadheat.measures.base import Example
from deadheat.measures.kernel import KERNEL_VIEWS, is_compiled, run_kernel
from deadheat.measures.linear import CountingMeasure, linear_views
from deadheat.ties import BACKEND, build_groups
from deadheat.ties.lists import list_labelled

pytestmark = pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")


def groups_of(scores: np.ndarray, grades: np.ndarray) -> dh.ties.TieGroups:
    queries, length = scores.shape
    names, offsets = list(map(str, range(queries))), np.arange(queries + 1) * length
    run = Run("arrays", names, offsets, scores.reshape(-1), None)
    labels = grades.reshape(-1).astype(np.float64)
    lists, _ = list_labelled(run, labels, queries="all", with_judged=True)
    return build_groups(lists)


def example_groups() -> dh.ties.TieGroups:
    scores = np.array([[0.5, 0.5, 0.5, 0.25], [0.75, 0.5, 0.5, 0.5]])
    return groups_of(scores, np.array([[1, 0, 2, 1], [0, 1, 1, 0]]))


def test_kernels_are_compiled_if_counting_is():
    assert is_compiled(linear_views) == (BACKEND == "compiled")


def test_python_kernel_receives_lists():
    def kernel(values, out):
        assert values == [1, 2]
        out[0] = values

    assert not is_compiled(kernel)
    assert run_kernel(kernel, 2, np.array([1, 2]))[0].tolist() == [1, 2]


def test_value_of_a_query_does_not_depend_on_other_queries():
    """The values are bit-identical."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 9, (40, 60)).astype(np.float32)
    grades = rng.integers(0, 3, scores.shape) * (rng.random(scores.shape) < 0.1)
    grades[:, 0] = 2
    measures = [m if m.whole_list else m @ 10 for m in MEASURES]
    together = dh.evaluate_arrays(grades, scores, measures)
    alone = [dh.evaluate_arrays(grades[[q]], scores[[q]], measures) for q in range(len(scores))]
    for measure, views in together.views.items():
        for name in KERNEL_VIEWS:
            if (values := getattr(views, name)) is not None:
                ones = [getattr(one.views[measure], name)[0] for one in alone]
                np.testing.assert_array_equal(values, ones, err_msg=f"{measure} {name}")


@pytest.mark.parametrize(
    "change",
    [
        {"retrieved": np.array([2, 4])},  # a group that exceeds its list
        {"rank": np.array([1, 2, 3, 4, 0, 1, 2, 3])},
        {"rank": np.array([1, 2, 3, 4, 5, 1, 2, 3])},
        {"grade": np.array([0.0, 1, 2, 1, 0, 1, 1, 0])},  # ascending inside a group
        {"query": np.array([1, 1, 0, 0])},
        {"above": np.array([-1, 3, 0, 1])},
        {"size": np.array([2, 1, 1, 3])},  # more documents than places
        {"rank": np.array([1, 2, 3, 4])},
        {"group": np.array([0, 0, 0, 1, 2, 3, 3, 4])},
        {"ideal_query": np.array([0, 0, 0, 1, 7])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_invalid_tie_groups_are_rejected(change):
    with pytest.raises(dh.InputError, match="tie groups"):
        dh.evaluation.evaluate_groups(replace(example_groups(), **change), ["nDCG", "MAP"])


def test_tie_groups_accept_other_dtypes_and_strides():
    groups = example_groups()
    other = replace(
        groups,
        grade=groups.grade.astype(np.float32),
        rank=np.repeat(groups.rank, 2)[::2],
        size=groups.size.astype(np.int32),
    )
    names = [repr(measure) for measure in MEASURES]
    truth = dh.evaluation.evaluate_groups(groups, names)
    assert dh.evaluation.evaluate_groups(other, names).views == truth.views


def test_evaluated_tie_groups_can_be_pickled_and_copied():
    groups = example_groups()
    truth = views_of(groups, [dh.nDCG, dh.MAP])
    for other in (pickle.loads(pickle.dumps(groups)), deepcopy(groups)):
        assert views_of(other, [dh.nDCG, dh.MAP]) == truth


def test_tie_groups_can_be_shared_between_threads():
    groups = groups_of(
        np.random.default_rng(1).integers(0, 30, (300, 200)).astype(np.float64),
        np.random.default_rng(2).integers(0, 2, (300, 200)),
    )
    measures = [dh.MAP, dh.ERR @ 20, dh.measures.bpref, dh.nDCG @ 10]
    truth = views_of(replace(groups), measures)
    with ThreadPoolExecutor(4) as pool:
        for views in pool.map(lambda _: views_of(groups, measures), range(40)):
            assert views == truth


@dataclass(frozen=True, repr=False)
class RisingMeasure(CountingMeasure):
    """A linear measure whose weights increase with the rank."""

    name = "Rising"
    formula = "Rising@k = Σ 2 · rank, over relevant documents at ranks 1 … k"
    example = Example("Rising", ranked=(1,), working="2", value=2)

    def weight(self, rank):
        return 2.0 * rank

    def divisor(self, groups):
        return np.ones(groups.n_queries)


@pytest.mark.parametrize("cutoff", [None, 3])
def test_linear_measure_accepts_increasing_weights(cutoff):
    """Compare with all orders of five tied documents, two of them relevant."""
    measure = RisingMeasure(cutoff=cutoff)
    views = measure.views(groups_of(np.zeros((1, 5)), np.array([[0, 1, 0, 1, 0]])))[:, 0]
    last = cutoff or 5
    values = [
        sum(2 * rank for rank in (a, b) if rank <= last)
        for a in range(1, 6)
        for b in range(a + 1, 6)
    ]
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean) ** 2 for v in values) / len(values)
    oblivious = sum(2 * rank for rank in (2, 4) if rank <= last)
    # Best and worst are not checked: they assume that weights decrease with the rank.
    assert views[0] == pytest.approx(mean)
    assert views[3] == oblivious
    assert views[4] == pytest.approx(variance)
