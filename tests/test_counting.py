"""The counting pass: compiled and NumPy agree to the bit, and counts add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deadheat as dh
from deadheat.formats import keys
from deadheat.measures import MEASURES
from deadheat.ties import BACKEND, TieCounter, counting, numpy_counting

compiled = pytest.mark.skipif(
    BACKEND != "compiled", reason="the counting pass was not compiled: no C compiler at install"
)


def random_case(seed: int, queries: int, length: int, documents: int, levels: int, dtype: type):
    """Lists in one row, and documents of interest in the order that `count_candidates` asks for."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, length + 1, queries)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    scores = rng.integers(-levels, levels, offsets[-1]).astype(dtype) / 3
    scores[rng.random(len(scores)) < 0.02] = np.inf
    scores[rng.random(len(scores)) < 0.02] = -np.inf
    per_query = rng.integers(0, documents + 1, queries)
    query = np.repeat(np.arange(queries), per_query)
    # Values that stand in the list and values that do not; rows inside and outside of it.
    values = (rng.integers(-levels, levels, len(query)) / 3).astype(dtype)
    rows = offsets[query] + rng.integers(-2, length + 3, len(query))
    order = np.lexsort((rows, -values, query))
    bounds = np.searchsorted(query, np.arange(queries + 1)).astype(np.int64)
    return scores, offsets[:-1], offsets[1:], bounds, values[order], rows[order]


def brute_force(scores, starts, stops, offsets, values, rows):
    out = []
    for q in range(len(starts)):
        for i in range(offsets[q], offsets[q + 1]):
            own = scores[starts[q] : stops[q]]
            before = scores[starts[q] : max(starts[q], min(stops[q], rows[i]))]
            out.append(
                ((own > values[i]).sum(), (own == values[i]).sum(), (before == values[i]).sum())
            )
    return np.array(out, np.int64).reshape(-1, 3).T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    seed=st.integers(0, 2**32),
    shape=st.sampled_from([(1, 1, 1, 2), (5, 20, 4, 6), (3, 400, 150, 900), (4, 50, 90, 3)]),
)
def test_count_is_brute_force_counting(backend, dtype, seed, shape):
    case = random_case(seed, *shape, dtype)
    found = counting.count_candidates(*case)
    np.testing.assert_array_equal(np.stack(found), brute_force(*case))


@compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_equals_numpy_on_long_lists(dtype):
    """Beyond the block of 2**20 and the change from few to many values."""
    from deadheat.ties import compiled_counting

    rng = np.random.default_rng(5)
    scores = rng.integers(0, 3_000, 2_500_000).astype(dtype)
    for documents in (1, 47, 48, 49, 2_000):
        rows = np.sort(rng.choice(len(scores), documents, replace=False))
        order = np.lexsort((rows, -scores[rows]))
        case = (
            scores,
            np.array([0]),
            np.array([len(scores)]),
            np.array([0, documents]),
            scores[rows][order],
            rows[order],
        )
        passes = (compiled_counting, numpy_counting)
        for ours, reference in zip(*(p.count_candidates(*case) for p in passes), strict=True):
            np.testing.assert_array_equal(ours, reference)


@compiled
@given(
    docs=st.lists(st.text(max_size=3), unique=True),
    wanted=st.lists(st.text(max_size=3), unique=True),
    other=st.one_of(st.none(), st.integers(), st.binary()),
)
def test_compiled_places_equal_pythons(docs, wanted, other):
    lists = dict.fromkeys(docs if other is None else [*docs, other], 0.0)
    numbered = dict(zip(wanted, range(len(wanted)), strict=True))
    assert keys.places_of(lists, numbered) == keys.python_places_of(lists, numbered)


@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64, np.int8, np.float16]))
def test_any_chunking_gives_the_same_groups(backend, data, dtype):
    """Pieces in any order, of any size, through one counter or through several."""
    seed = data.draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    queries, length = data.draw(st.sampled_from([(1, 1), (3, 7), (4, 60)]))
    scores = rng.integers(0, 4, (queries, length)).astype(dtype)
    relevance = rng.integers(0, 3, (queries, length)) * (rng.random((queries, length)) < 0.5)
    query, position = np.nonzero(relevance)
    documents = (query, scores[query, position], relevance[query, position], position)

    whole = TieCounter(queries, *documents)
    whole.update(scores)
    cuts = sorted(data.draw(st.lists(st.integers(0, length), max_size=5)))
    pieces = list(zip([0, *cuts], [*cuts, length], strict=True))
    one = TieCounter(queries, *documents)
    several = [TieCounter(queries, *documents) for _ in range(2)]
    for i, (start, stop) in enumerate(data.draw(st.permutations(pieces))):
        one.update(scores[:, start:stop], start)
        several[i % 2].update(scores[:, start:stop], start)
    for counter in (one, several[0] + several[1]):
        for name in ("query", "above", "size", "group", "grade", "rank", "retrieved"):
            expected, found = getattr(whole.groups(), name), getattr(counter.groups(), name)
            np.testing.assert_array_equal(found, expected, err_msg=name)


def test_a_stream_gives_the_values_of_the_whole_list():
    """The groups of a stream feed the measures like those of an array."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 50, (20, 3_000)).astype(np.float32)
    relevance = (rng.random(scores.shape) < 0.003) * rng.integers(1, 4, scores.shape)
    relevance[:, 7] = 1
    query, position = np.nonzero(relevance)
    counter = TieCounter(20, query, scores[query, position], relevance[query, position], position)
    for start in range(0, 3_000, 431):
        counter.update(scores[:, start : start + 431], start)
    groups = counter.groups()
    measures = [m @ 100 for m in MEASURES if not m.needs_judged]
    result = dh.evaluate_arrays(scores, relevance, measures)
    for measure in measures:
        np.testing.assert_array_equal(measure.expected(groups), result.views[measure].expected)
        np.testing.assert_array_equal(
            measure.at(groups, groups.rank), result.views[measure].oblivious
        )


def test_memory_of_a_stream_is_that_of_the_relevant_documents():
    counter = TieCounter(2, [0, 1], [0.5, 0.5], [1, 1])
    size = sum(v.nbytes for v in vars(counter).values() if isinstance(v, np.ndarray))
    for _ in range(3):
        counter.update(np.full((2, 10_000), 0.5))
    after = sum(v.nbytes for v in vars(counter).values() if isinstance(v, np.ndarray))
    assert after == size < 1_000
    assert counter.groups().size.tolist() == [30_000, 30_000]


@pytest.mark.parametrize(
    ("feed", "words"),
    [
        (lambda c: c.update(np.zeros((3, 4))), "shape"),
        (lambda c: c.update([[np.nan], [1.0]]), "NaN"),
        (lambda c: (c.update([[0.25], [0.5]]), c.groups()), "exactly as the stream does"),
        (lambda c: c + TieCounter(2, [0], [0.5], [1]), "same documents"),
    ],
)
def test_wrong_streams_are_refused(feed, words):
    counter = TieCounter(2, [0, 1], [0.5, 0.5], [1, 1])
    with pytest.raises(dh.InputError, match=words):
        feed(counter)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1], [0.5], [1, 1]), "same length"),
        (([2], [0.5], [1]), "query index"),
        (([0], [np.nan], [1]), "NaN"),
    ],
)
def test_wrong_documents_are_refused(arguments, words):
    with pytest.raises(dh.InputError, match=words):
        TieCounter(2, *arguments)
