"""The compiled passes over tie groups against the measures' own definitions in NumPy."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deadheat as dh
from deadheat.evaluation import views_of
from deadheat.measures import MEASURES, RBP, passes
from deadheat.measures.passes import one_pass
from deadheat.ties import tie_groups
from deadheat.ties.lists import labelled_lists

pytestmark = [
    pytest.mark.skipif(
        passes.OnePass is None, reason="the passes were not compiled: no C compiler at install"
    ),
    pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning"),
]
VIEWS = ("expected", "best", "worst", "oblivious", "variance")


def groups_of(scores: np.ndarray, grades: np.ndarray, n_relevant: Any = None) -> dh.TieGroups:
    queries, length = scores.shape
    lists, _ = labelled_lists(
        list(map(str, range(queries))),
        scores.reshape(-1),
        np.arange(queries + 1) * length,
        grades.reshape(-1).astype(np.float64),
        n_relevant,
        queries="all",
        with_judged=True,
    )
    return tie_groups(lists)


def by_numpy(groups: dh.TieGroups, measures: list[dh.Measure]) -> dict[dh.Measure, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "OnePass", None)
        return views_of(replace(groups), measures)


def assert_same(groups: dh.TieGroups, measures: list[dh.Measure], rel: float = 1e-11) -> None:
    theirs = by_numpy(groups, measures)
    for measure, views in views_of(groups, measures).items():
        for name in VIEWS:
            ours, numpys = getattr(views, name), getattr(theirs[measure], name)
            assert (ours is None) == (numpys is None)
            if ours is not None:
                np.testing.assert_allclose(ours, numpys, rel, 1e-14, err_msg=f"{measure} {name}")


def variants(cutoff: int | None, rel: float | None) -> list[dh.Measure]:
    """Every measure with this cutoff, and with other gains, divisors and grades that count."""
    cut = [m if m.whole_list else m(cutoff=cutoff) for m in MEASURES]
    more = [m(rel=rel) for m in cut if "rel" in m.parameters()]
    more += [m(gain="exp") for m in cut if m.name in ("DCG", "nDCG")]
    more += [dh.MAP(divisor="min", cutoff=cutoff), RBP(gain="scaled"), RBP(gain="linear", p=0.3)]
    return list(dict.fromkeys(cut + more))


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32),
    queries=st.integers(1, 5),
    length=st.sampled_from([1, 2, 7, 30, 300]),
    levels=st.sampled_from([1, 3, 20, 10**6]),
    share=st.sampled_from([0.02, 0.3, 1.0]),
    more=st.integers(0, 3),
    cutoff=st.one_of(st.none(), st.sampled_from([1, 3, 10, 100, 10**6])),
    rel=st.one_of(st.none(), st.sampled_from([1.0, 2.0, 9.0])),
)
def test_every_view_equals_numpys(seed, queries, length, levels, share, more, cutoff, rel):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, levels, (queries, length)).astype(np.float64)
    grades = rng.integers(-1, 4, scores.shape) * (rng.random(scores.shape) < share)
    groups = groups_of(scores, grades, (grades > 0).sum(axis=1) + more)
    measures = variants(cutoff, rel)
    assert one_pass(groups) is not None
    assert_same(groups, measures)


@pytest.mark.parametrize("size", [9, 65, 5_000, 70_000, 10**6])
@pytest.mark.parametrize("above", [0, 1, 63, 64, 10_000])
def test_large_groups(above, size):
    """Past every number at which a formula or a table ends."""
    for relevant in (1, 2, 40):
        n = min(relevant, size)
        groups = dh.TieGroups(
            query=np.zeros(1, np.int64),
            above=np.array([above]),
            size=np.array([size]),
            group=np.zeros(n, np.int64),
            grade=np.sort(1.0 + np.arange(n) % 3)[::-1].copy(),
            rank=above + 1 + np.arange(n) * (size // n),
            retrieved=np.array([above + size]),
            ideal_query=np.zeros(n, np.int64),
            ideal_grade=np.sort(1.0 + np.arange(n) % 3)[::-1].copy(),
            zeros=np.zeros(1, np.int64),
        )
        assert one_pass(groups) is not None
        for cutoff in (None, above + 5, above + 1_000):
            assert_same(groups, variants(cutoff, 2.0), rel=1e-8)


def test_grades_of_any_size():
    """The squares of the smallest and largest gains are no numbers any more."""
    scores = np.array([[1.0, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    for grade in (5e-324, 1e-200, 1e-3, 1e15, 1e150):
        groups = groups_of(scores, np.array([[1, 0, 0.5, 1, 0], [1, 0.5, 0, 0, 0]]) * grade)
        measures = [dh.nDCG, dh.nDCG @ 2, dh.DCG @ 3]
        if grade > 1e-300:  # old versions of NumPy warn of the smallest number divided by itself
            measures.append(RBP(gain="scaled"))
        assert_same(groups, measures)


def test_a_query_alone_is_evaluated_as_among_others():
    """To the last bit: each is passed over by itself."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 9, (40, 60)).astype(np.float32)
    grades = rng.integers(0, 3, scores.shape) * (rng.random(scores.shape) < 0.1)
    grades[:, 0] = 2
    measures = [m if m.whole_list else m @ 10 for m in MEASURES]
    together = dh.evaluate_arrays(scores, grades, measures)
    alone = [dh.evaluate_arrays(scores[[q]], grades[[q]], measures) for q in range(len(scores))]
    for measure, views in together.views.items():
        for name in VIEWS:
            if (values := getattr(views, name)) is not None:
                ones = [getattr(one.views[measure], name)[0] for one in alone]
                np.testing.assert_array_equal(values, ones, err_msg=f"{measure} {name}")


def some_groups() -> dh.TieGroups:
    scores = np.array([[0.5, 0.5, 0.5, 0.25], [0.75, 0.5, 0.5, 0.5]])
    return groups_of(scores, np.array([[1, 0, 2, 1], [0, 1, 1, 0]]))


@pytest.mark.parametrize(
    "change",
    [
        {"retrieved": np.array([2, 4])},  # a group that leaves its list
        {"rank": np.array([1, 2, 3, 4, 0, 1, 2, 3])},
        {"rank": np.array([1, 2, 3, 4, 5, 1, 2, 3])},
        {"grade": np.array([0.0, 1, 2, 1, 0, 1, 1, 0])},  # rising inside a group
        {"query": np.array([1, 1, 0, 0])},
        {"above": np.array([-1, 3, 0, 1])},
        {"size": np.array([2, 1, 1, 3])},  # more documents than places
        {"grade": np.array([2, 1, 0, 1, 0, 1, 1, 0], np.float32)},
        {"rank": np.arange(16)[::2]},
        {"rank": np.array([1, 2, 3, 4])},
        {"group": np.array([0, 0, 0, 1, 2, 3, 3, 4])},
        {"ideal_query": np.array([0, 0, 0, 1, 7])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_groups_that_no_list_has_are_left_to_numpy(change):
    """Nothing outside of an array is looked at, whatever the groups say."""
    groups = some_groups()
    assert one_pass(groups) is not None
    assert one_pass(replace(groups, **change)) is None


def test_groups_can_be_stored_and_copied_after_they_were_evaluated():
    groups = some_groups()
    truth = views_of(groups, [dh.nDCG, dh.MAP])
    for other in (pickle.loads(pickle.dumps(groups)), deepcopy(groups)):
        assert views_of(other, [dh.nDCG, dh.MAP]) == truth


def test_threads_share_groups():
    groups = groups_of(
        np.random.default_rng(1).integers(0, 30, (300, 200)).astype(np.float64),
        np.random.default_rng(2).integers(0, 2, (300, 200)),
    )
    measures = [dh.MAP, dh.ERR @ 20, dh.bpref, dh.nDCG @ 10]
    truth = views_of(replace(groups), measures)
    one_pass(groups)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: views_of(groups, measures), range(40)):
            assert found == truth


def test_a_measure_that_computes_otherwise_than_its_base_is_taken_at_its_word():
    """The compiled pass of the base knows nothing of it."""

    class Halved(type(dh.Recall)):
        name = "Halved"

        def at(self, groups, rank):
            return super().at(groups, rank) / 2

        def expected(self, groups):
            return super().expected(groups) / 2

    class Weighted(type(dh.Hits)):
        name = "Weighted"

        def weight(self, rank):
            return 2.0 * rank

        def weight_sums(self, rank):
            rank = rank.astype(np.float64)
            return rank * (rank + 1), 4 * rank * (rank + 1) * (2 * rank + 1) / 6

    groups = some_groups()
    assert_same(groups, [Halved(), Halved(cutoff=2), Weighted(), Weighted(cutoff=3)])
    halved = views_of(groups, [Halved(cutoff=2), dh.Recall @ 2])
    assert (halved[Halved(cutoff=2)].best == halved[dh.Recall @ 2].best / 2).all()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("linear", (np.ones(7), np.ones(2), np.full(2, 10), None, None, None)),
        ("linear", (np.ones(8), np.ones(1), np.full(2, 10), None, None, None)),
        ("linear", (np.ones(8), np.ones(2), np.full(3, 10), None, None, None)),
        ("linear", (np.ones(8), np.ones(2), np.full(2, 4), *[np.ones(4), *[np.ones(5, "g")] * 2])),
        ("linear", (np.ones(8), np.ones(2), np.full(2, 4), *[np.ones(5), *[np.ones(4, "g")] * 2])),
        ("ideal", (np.ones(4), np.ones(9), 3)),
        ("ideal", (np.ones(5), np.ones(3), 3)),
        ("reciprocal_rank", (1.0, np.full(1, 10), 8)),
        ("success", (1.0, np.full(3, 10))),
        ("average_precision", (1.0, np.ones(1), np.full(2, 10))),
        ("average_precision", (1.0, np.ones(2), np.full(1, 10))),
        ("preference", (1.0, np.ones(2), np.ones(1))),
        ("expected_reciprocal_rank", (np.ones(7), np.full(2, 10), 8)),
        ("expected_reciprocal_rank", (np.ones(8), np.full(1, 10), 8)),
    ],
)
def test_arrays_of_other_lengths_are_refused(name, arguments):
    with pytest.raises(IndexError, match="must fit the tie groups"):
        getattr(one_pass(some_groups()), name)(*arguments)
