"""Compare every view of every measure with a full enumeration of orders."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import oracle
import pytest
from hypothesis import assume, given, settings, strategies as st
from oracle import Doc
from quiet import quiet

import deadheat as dh
from deadheat.evaluation import rank_query
from deadheat.measures import MEASURES
from deadheat.measures.map import harmonic_sums
from deadheat.ties import build_groups
from deadheat.ties.lists import match_lists

PARAMETERS = {
    "nDCG": [{}, {"gain": "exp"}],
    "DCG": [{}, {"gain": "exp"}],
    "MRR": [{}, {"rel": 2}],
    "MAP": [
        {},
        {"rel": 2},
        {"divisor": "min"},
        {"divisor": "found"},
        {"divisor": "found", "rel": 2},
    ],
    "Recall": [{}, {"rel": 2}],
    "R_cap": [{}, {"rel": 2}],
    "Precision": [{}, {"rel": 2}],
    "F1": [{}, {"rel": 2}],
    "Hits": [{}, {"rel": 2}],
    "Success": [{}, {"rel": 2}],
    "R-Precision": [{}, {"rel": 2}],
    "RBP": [
        {},
        {"p": 0.5},
        {"rel": 2},
        {"gain": "scaled"},
        {"gain": "scaled", "rel": 2},
        {"gain": "linear"},
    ],
    "bpref": [{}, {"rel": 2}],
    "RBP-residual": [{}, {"p": 0.5}],
    "ERR": [{}, {"max_grade": 4}],
    "Judged": [{}],
}
CASES = [(m, p) for m in MEASURES for p in PARAMETERS[m.name]]

grades = st.sampled_from([None, -1, 0, 1, 1, 2, 3, 0.5])
docs = st.lists(
    st.builds(Doc, score=st.sampled_from([-math.inf, 0.25, 0.25, 0.5, 1e30]), grade=grades),
    min_size=1,
    max_size=7,
)
absent = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3)


def evaluate(measure: dh.Measure, docs: list[Doc], absent: list[float], **options: object):
    run = {"q": {f"d{i}": doc.score for i, doc in enumerate(docs)}}
    judged = {f"d{i}": doc.grade for i, doc in enumerate(docs) if doc.grade is not None}
    judged |= {f"absent{i}": grade for i, grade in enumerate(absent)}
    return dh.evaluate({"q": judged}, run, [measure], queries="all", **options).views[measure]


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize(("measure", "parameters"), CASES, ids=lambda v: str(v))
@settings(max_examples=150)
@given(docs=docs, absent=absent, cutoff=st.one_of(st.none(), st.integers(1, 9)))
def test_views_match_enumeration(backend, measure, parameters, docs, absent, cutoff):
    assume(oracle.n_orders(docs) <= 720)
    assume(absent or any(doc.grade is not None for doc in docs))
    parameters = {**parameters, "cutoff": None if measure.whole_list else cutoff}
    views = evaluate(measure(**parameters), docs, absent)
    truth = oracle.views(measure.name, docs, absent, **parameters)
    for view in ("expected", "best", "worst", "oblivious"):
        assert getattr(views, view)[0] == pytest.approx(truth[view], abs=1e-12), view
    assert (views.variance is None) == (not measure.has_variance)
    if measure.has_variance:
        assert views.variance[0] == pytest.approx(truth["variance"], abs=1e-12)


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_all_tied_group_of_seven_for_every_measure():
    """This case has 5,040 orders, more than the cases that hypothesis draws."""
    docs = [Doc(0.5, g) for g in (1, None, 2, 0, 1, None, 3)]
    for measure, cutoff in itertools.product(MEASURES, (3, None)):
        if measure.whole_list and cutoff:
            continue
        views = evaluate(measure(cutoff=cutoff), docs, [2])
        truth = oracle.views(measure.name, docs, [2], cutoff=cutoff)
        assert views.expected[0] == pytest.approx(truth["expected"], abs=1e-12)
        assert views.best[0] == pytest.approx(truth["best"], abs=1e-12)
        assert views.worst[0] == pytest.approx(truth["worst"], abs=1e-12)
        if views.variance is not None:
            assert views.variance[0] == pytest.approx(truth["variance"], abs=1e-12)


@given(
    lists=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30),
        min_size=1,
        max_size=8,
    ),
    cutoff=st.one_of(st.none(), st.integers(1, 40)),
)
def test_order_of_views(lists, cutoff):
    """Worst ≤ expected ≤ best, worst ≤ oblivious ≤ best, and the std is at most half the range."""
    scores = [[score for score, _ in row] for row in lists]
    relevance = [[grade for _, grade in row] for row in lists]
    assume(any(grade > 0 for row in relevance for grade in row))
    measures = [m if m.whole_list else m(cutoff=cutoff) for m in MEASURES]
    result = dh.evaluate_arrays(relevance, scores, measures)
    for views in result.views.values():
        assert (views.worst <= views.expected + 1e-12).all()
        assert (views.expected <= views.best + 1e-12).all()
        assert (views.worst <= views.oblivious + 1e-12).all()
        assert (views.oblivious <= views.best + 1e-12).all()
        if views.variance is not None:
            spread = (views.best - views.worst) / 2
            assert (np.sqrt(views.variance) <= spread + 1e-7).all()


@pytest.mark.parametrize(("measure", "parameters"), CASES)
def test_can_exceed_one_matches_the_largest_value(measure, parameters):
    """The documents have high grades and are ranked in ideal and in reverse order."""
    own = measure(**parameters)
    qrels = {"q": {f"d{i}": 3 for i in range(20)} | {"d20": 0}}
    runs = [{"q": {f"d{i}": float(i * s) for i in range(21)}} for s in (1, -1)]
    values = [quiet(dh.evaluate)(qrels, run, [own])[own].best for run in runs]
    assert (max(values) > 1 + 1e-12) == own.can_exceed_one


@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("score", ["distinct", "tied with equal grades"])
def test_views_are_equal_without_ties(measure, score):
    grades = [2, 0, 1, 0, 0, 1, 2, 0]
    scores = list(range(8, 0, -1)) if score == "distinct" else [9, 0, 5, 0, 0, 5, 9, 0]
    measure = measure if measure.whole_list else measure @ 6
    views = dh.evaluate_arrays([grades], [scores], [measure]).views[measure]
    for other in (views.worst, views.oblivious, views.expected):
        assert other[0] == pytest.approx(views.best[0], abs=1e-15)
    if views.variance is not None:
        assert views.variance[0] == pytest.approx(0, abs=1e-30)


def test_shared_sums_do_not_change_values():
    rng = np.random.default_rng(6)
    scores, labels = rng.integers(0, 5, (8, 12)) / 4, rng.integers(0, 4, (8, 12))
    measures = [
        measure(**parameters, **({} if cutoff is None else {"cutoff": cutoff}))
        for measure, parameters in CASES
        for cutoff in (None, 1, 4, 12, 50)
        if cutoff is None or not measure.whole_list
    ]
    together = dh.evaluate_arrays(labels, scores, measures)
    for measure in measures:
        # bpref makes both evaluations use the judged documents.
        alone = dh.evaluate_arrays(labels, scores, [measure, dh.measures.bpref])
        for view in ("expected", "best", "worst", "oblivious", "variance"):
            np.testing.assert_array_equal(
                getattr(together.views[measure], view),
                getattr(alone.views[measure], view),
                repr(measure),
            )


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e-9, 1e90])
@pytest.mark.parametrize("cutoff", [2, None])
def test_variance_of_very_small_and_large_grades(unit, cutoff):
    """The square of a grade of 1e-170 underflows to 0; the variance of nDCG must not."""
    graded = [(0.5, 3), (0.5, None), (0.25, 1), (0.25, 2), (0.25, 0)]
    docs = [Doc(score, g and g * unit) for score, g in graded]
    views = evaluate(dh.nDCG(cutoff=cutoff), docs, [2 * unit])
    truth = oracle.views("nDCG", docs, [2 * unit], cutoff=cutoff)
    for view in ("expected", "variance", "best", "worst"):
        assert getattr(views, view)[0] == pytest.approx(truth[view], rel=1e-12), view
    assert views.variance[0] > 0.001


def test_variance_does_not_depend_on_the_scale_of_grades():
    scores, grades = [[0.5, 0.5, 0.0, 0.0]] * 2, np.array([[3, 0, 1, 2]] * 2)
    alone = dh.evaluate_arrays(grades, scores, "nDCG").views[dh.nDCG]
    mixed = dh.evaluate_arrays(grades * [[1e-170], [1e90]], scores, "nDCG").views[dh.nDCG]
    assert mixed.variance == pytest.approx(alone.variance, rel=1e-12)


@pytest.mark.parametrize("grade", [1e-300, 1e-20, 1e-8, 1e-3, 0.5, 0.999])
def test_exponential_gains_of_small_grades_are_accurate(grade):
    x = Fraction(grade) * Fraction(math.log(2))
    series = float(sum(x**n / math.factorial(n) for n in range(1, 20)))
    for name, value in (("DCG(gain='exp')", series), ("ERR(max_grade=4)", series / 16)):
        result = dh.evaluate_arrays([[grade]], [[0.5]], name)
        assert result[name].best == pytest.approx(value, rel=1e-14, abs=0)


def test_exponential_gains_of_integer_grades_are_integers():
    grades = range(1, 50)
    result = dh.evaluate_arrays([[g] for g in grades], [[1.0]] * 49, "DCG(gain='exp')")
    assert result.views[dh.DCG(gain="exp")].best.tolist() == [2**g - 1 for g in grades]


def exact_ap_moments(c: int, g: int, r: int, ahead: int, places: int) -> tuple[float, float]:
    """Return mean and variance of a group's contribution to N·AP, from all orders in rationals."""
    values = []
    for chosen in itertools.combinations(range(g), r):
        total = Fraction(0)
        for nth, place in enumerate(chosen, 1):
            if place < places:
                total += Fraction(ahead + nth, c + place + 1)
        values.append(total)
    mean = sum(values) / len(values)
    return float(mean), float(sum((v - mean) ** 2 for v in values) / len(values))


@pytest.mark.parametrize("c", [0, 1, 63, 64, 65, 1_000, 100_000, 1_000_000])
@pytest.mark.parametrize(("g", "r"), [(2, 1), (6, 3), (9, 5), (10, 6)])
def test_average_precision_of_a_group_far_down_the_list(c, g, r):
    """The second moment is a difference of large sums; it must be accurate at any depth."""
    scores = np.concatenate([np.arange(c + 10, 10, -1), np.full(g, 5)])
    relevance = np.zeros(c + g, int)
    relevance[c : c + r] = 1
    for cutoff in (None, c + g - 1):
        measure = dh.MAP(cutoff=cutoff)
        views = dh.evaluate_arrays([relevance], [scores], [measure]).views[measure]
        places = g if cutoff is None else g - 1
        mean, variance = exact_ap_moments(c, g, r, 0, places)
        assert views.expected[0] == pytest.approx(mean / r, rel=1e-12)
        assert math.sqrt(views.variance[0]) == pytest.approx(math.sqrt(variance) / r, abs=1e-7)


@given(c=st.integers(0, 300), n=st.integers(0, 300))
def test_harmonic_sums_match_rationals(c, n):
    for power, total in enumerate(harmonic_sums(c, n), 1):
        exact = sum((Fraction(1, i**power) for i in range(c + 1, c + n + 1)), Fraction(0))
        assert total == pytest.approx(float(exact), rel=1e-14, abs=1e-18)


def test_reciprocal_rank_of_a_large_group_equals_the_full_sum():
    """The early-stopping sum over 10,000 tied documents equals the full sum."""
    g = 10_000
    for r in (1, 2, 40, 9_999):
        relevance = np.zeros(g, int)
        relevance[:r] = 1
        result = dh.evaluate_arrays([relevance], [np.zeros(g)], [dh.MRR, dh.Success @ 50])
        passing, expected = 1.0, []
        for t in range(g - r + 1):
            expected.append(passing * r / (g - t) / (t + 1))
            passing *= (g - r - t) / (g - t)
        assert result["MRR"].expected == pytest.approx(math.fsum(expected), rel=1e-13)
        miss = math.comb(g - r, 50) / math.comb(g, 50)
        assert result["Success@50"].expected == pytest.approx(1 - miss, rel=1e-12)


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("measure", [m for m in MEASURES if not m.whole_list], ids=str)
@settings(max_examples=30)
@given(
    docs=docs, cutoff=st.one_of(st.none(), st.integers(1, 9)), added=st.lists(grades, max_size=4)
)
def test_at_stake_bounds_the_effect_of_cut_documents(measure, docs, cutoff, added):
    """Documents below the last tie group change the value by at most `at_stake`."""
    measure = measure(cutoff=cutoff)
    absent = [3, *(grade for grade in added if grade is not None)]
    head = sorted((d for d in docs if d.score != -math.inf), key=lambda d: -d.score)
    assume(head)
    stakes = []
    for tail in ([0] * len(added), added):
        run = {"q": {f"d{i}": doc.score for i, doc in enumerate(head)}}
        run["q"] |= {f"e{i}": -math.inf for i in range(len(tail))}
        judged = {f"d{i}": doc.grade for i, doc in enumerate(head) if doc.grade is not None}
        judged |= {f"e{i}": grade for i, grade in enumerate(tail) if grade is not None}
        judged |= {f"absent{i}": grade for i, grade in enumerate(absent)}
        stakes.append(dh.evaluate({"q": judged}, run, [measure], queries="all").views[measure])
    judgements, lists = dh.read_qrels({"q": judged}), dh.read_run(run)
    matched, _ = match_lists(judgements, lists, queries="all", with_judged=True)
    most = measure.at_stake(build_groups(matched), np.array([len(head)]))
    if measure.name in ("RBP", "MRR", "Success", "RBP-residual"):
        assert abs(stakes[0].best - stakes[1].best) <= most + 1e-12
        assert np.isfinite(most)
    elif cutoff is not None and cutoff <= len(head):
        assert most == 0


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
@pytest.mark.parametrize("measure", ["RBP(gain='scaled')", "ERR"])
def test_highest_grade_is_taken_from_all_judgements(measure):
    """The value of a query does not depend on the other queries in the run."""
    qrels = {"q1": {"a": 1}, "q2": {"a": 2}}
    run = {query: {"a": 1.0} for query in qrels}
    both = dh.evaluate(qrels, run, measure).per_query["expected"][0]
    alone = dh.evaluate(qrels, {"q1": run["q1"]}, measure, queries="intersection")
    assert alone[measure].expected == both
    assert rank_query(qrels, run, "q1", measure).result[measure].expected == both
