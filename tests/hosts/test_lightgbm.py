"""LightGBM: functions of evaluation that see ties, in real training."""

from __future__ import annotations

import numpy as np
import pytest
from needed import needs

import deadheat as dh

lgb = needs("lightgbm")

from deadheat.integrations.lightgbm import eval_metric, feval  # noqa: E402

# What the hosts warn about is theirs.
pytestmark = pytest.mark.filterwarnings("default")

PARAMETERS = {"objective": "lambdarank", "verbose": -1, "num_leaves": 4, "num_threads": 1}


def made(queries, seed):
    """Features, labels 0 to 3 and sizes of groups; the labels of the first group are all 0."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 20, queries)
    features = rng.normal(size=(sizes.sum(), 5)).round(1)
    noise = rng.normal(size=len(features))
    labels = np.clip((features[:, 0] + features[:, 1] + noise).round(), 0, 3).astype(int)
    labels[: sizes[0]] = 0
    return features, labels, sizes


TRAIN, VALID = made(40, 0), made(15, 1)


def trained(function, metric="None", rounds=6, init_scores=(None, None), weight=None, **options):
    train = lgb.Dataset(TRAIN[0], TRAIN[1], group=TRAIN[2], init_score=init_scores[0])
    valid = lgb.Dataset(
        VALID[0],
        VALID[1],
        group=VALID[2],
        init_score=init_scores[1],
        weight=weight,
        reference=train,
    )
    found = {}
    callbacks = [lgb.record_evaluation(found), *options.pop("callbacks", [])]
    booster = lgb.train(
        {**PARAMETERS, "metric": metric, "eval_at": [3, 8], **options},
        train,
        rounds,
        valid_sets=[valid],
        feval=function,
        callbacks=callbacks,
    )
    return booster, found["valid_0"]


def test_the_oblivious_view_is_what_lightgbm_says():
    function = feval(["ndcg@3,8", "map@3,8"], ["oblivious", "expected", "worst", "best"])
    _, found = trained(function, ["ndcg", "map"])
    for name in ("ndcg@3", "ndcg@8", "map@3", "map@8"):
        assert found[f"{name}_oblivious"] == pytest.approx(found[name], abs=1e-9)
        assert np.abs(np.subtract(found[f"{name}_expected"], found[name])).max() > 1e-3
        assert (np.array(found[f"{name}_worst"]) <= found[f"{name}_expected"]).all()
        assert (np.array(found[f"{name}_expected"]) <= found[f"{name}_best"]).all()


def test_without_ties_every_view_is_what_lightgbm_says():
    rng = np.random.default_rng(2)
    scores = [rng.permutation(len(part[0])).astype(float) for part in (TRAIN, VALID)]
    function = feval(["ndcg@3", "map@8"], ["expected", "worst", "best"])
    _, found = trained(function, ["ndcg", "map"], rounds=1, init_scores=scores, learning_rate=1e-9)
    for name in ("ndcg@3", "map@8"):
        values = [found[f"{name}_{view}"] for view in ("expected", "worst", "best")]
        assert values == pytest.approx(np.array([found[name]] * 3), abs=1e-9)


def test_queries_have_the_mean_weight_of_their_documents():
    weight = np.random.default_rng(3).random(len(VALID[1]))
    _, found = trained(feval("map@3", ["oblivious"]), "map", weight=weight)
    assert found["map@3_oblivious"] == pytest.approx(found["map@3"], abs=1e-7)  # floats there


@pytest.mark.parametrize(("empty", "worth"), [(1.0, [1.0]), (0.0, [0.0]), (None, [])])
def test_a_query_without_a_relevant_document(empty, worth):
    booster, found = trained(
        feval("ndcg@3", ["expected", "best", "range", "std"], empty=empty), rounds=2
    )
    query = np.repeat(np.arange(len(VALID[2])), VALID[2])
    scores = booster.predict(VALID[0], raw_score=True)
    measure = dh.nDCG(gain="exp") @ 3
    result = dh.evaluate_arrays(VALID[1], scores, measure, query=query)
    views = result.views[measure]
    assert len(views.expected) == len(VALID[2]) - 1
    for view in ("expected", "best"):
        mean = np.mean([*getattr(views, view), *worth])
        assert found[f"ndcg@3_{view}"][-1] == pytest.approx(mean, abs=1e-12)
    n = len(views.expected) + len(worth)
    assert found["ndcg@3_range"][-1] == pytest.approx(views.range.sum() / n, abs=1e-12)
    assert found["ndcg@3_std"][-1] == pytest.approx(np.sqrt(views.variance.sum()) / n, abs=1e-12)


def test_training_stops_by_the_expectation():
    stopping = lgb.early_stopping(3, first_metric_only=True, verbose=False)
    function = feval(["ndcg@3"], ["expected", "range"])
    booster, found = trained(function, rounds=60, callbacks=[stopping], learning_rate=0.5)
    values = found["ndcg@3_expected"]
    assert 1 <= booster.best_iteration == int(np.argmax(values)) + 1 <= len(values) - 3 < 57
    assert booster.best_score["valid_0"]["ndcg@3_expected"] == max(values)


def test_the_ranker_of_scikit_learn_shape():
    ranker = lgb.LGBMRanker(**PARAMETERS, n_estimators=40, learning_rate=0.5, metric="None")
    ranker.fit(
        TRAIN[0],
        TRAIN[1],
        group=TRAIN[2],
        eval_set=[VALID[:2]],
        eval_group=[VALID[2]],
        eval_metric=eval_metric("ndcg@3"),
        callbacks=[lgb.early_stopping(3, verbose=False)],
    )
    values = ranker.evals_result_["valid_0"]["ndcg@3_expected"]
    assert ranker.best_iteration_ == int(np.argmax(values)) + 1
    _, found = trained(feval("ndcg@3"), rounds=2, learning_rate=0.5)
    assert values[:2] == pytest.approx(found["ndcg@3_expected"], abs=1e-12)


def test_names_mean_what_lightgbm_means_and_measures_what_they_are():
    function = feval(["nDCG@3", dh.nDCG @ 3, "MRR", "map(rel=2)@5"])
    _, found = trained(function, rounds=1)
    assert list(found) == [
        "ndcg@3_expected",
        "nDCG@3_expected",
        "MRR_expected",
        "MAP(rel=2)@5_expected",
    ]
    assert found["ndcg@3_expected"] != found["nDCG@3_expected"]


def test_cross_validation():
    data = lgb.Dataset(TRAIN[0], TRAIN[1], group=TRAIN[2])
    found = lgb.cv(
        {**PARAMETERS, "metric": "None"}, data, 3, nfold=2, stratified=False, feval=feval("ndcg@3")
    )
    assert len(found["valid ndcg@3_expected-mean"]) == 3


LABELS = np.array([1, 0])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: feval("ndgc@3"), "did you mean nDCG"),
        (lambda: feval("ndcg@3", ["mean"]), "views must be some of"),
        (lambda: feval("ndcg@3", ["bias"]), "'bias'"),
        (lambda: feval("ndcg@3", empty="skip"), "empty must be a number or None"),
        (lambda: eval_metric("MRR")(LABELS, LABELS, None, None), "no queries.*`group`"),
        (lambda: eval_metric("MRR")(LABELS, np.ones((2, 2)), None, [2]), "one score for each"),
        (lambda: eval_metric("ERR", ["std"])(LABELS, LABELS, None, [2]), "std of ERR is not"),
        (lambda: eval_metric("MRR")(LABELS, [np.nan, 1], None, [2]), "the score is NaN"),
        (lambda: eval_metric("MRR", empty=None)([0, 0], LABELS, None, [2]), "no query .*weight"),
    ],
)
def test_bad_input_is_refused(call, says):
    with pytest.raises(dh.InputError, match=says):
        call()


def test_without_lightgbm_the_extra_is_named(monkeypatch):
    from deadheat._internal import packages

    def absent(package):
        raise packages.PackageNotFoundError(package)

    monkeypatch.setattr(packages, "requires", lambda _: ['lightgbm<5,>=4; extra == "lightgbm"'])
    monkeypatch.setattr(packages, "version", absent)
    with pytest.raises(dh.MissingPackageError, match=r"'lightgbm': .*\[lightgbm\]"):
        feval("ndcg@3")
    monkeypatch.setattr(packages, "version", lambda _: "3.3.5")
    with pytest.raises(dh.InputError, match=r"supports lightgbm <5,>=4, but 3.3.5 is installed"):
        eval_metric("ndcg@3")
