"""LightGBM: tie-aware evaluation functions in real training."""

from __future__ import annotations

import numpy as np
import pytest
from needed import import_host

import deadheat as dh

lgb = import_host("lightgbm")

from deadheat.integrations.lightgbm import eval_metric, feval  # noqa: E402

# Warnings of the host libraries are not under test.
pytestmark = pytest.mark.filterwarnings("default")

PARAMETERS = {"objective": "lambdarank", "verbose": -1, "num_leaves": 4, "num_threads": 1}


def make_data(queries, seed):
    """Return features, labels 0 to 3 and group sizes; all labels of the first group are 0."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 20, queries)
    features = rng.normal(size=(sizes.sum(), 5)).round(1)
    noise = rng.normal(size=len(features))
    labels = np.clip((features[:, 0] + features[:, 1] + noise).round(), 0, 3).astype(int)
    labels[: sizes[0]] = 0
    return features, labels, sizes


TRAIN, VALID = make_data(40, 0), make_data(15, 1)


def train_booster(
    function, metric="None", rounds=6, init_scores=(None, None), weight=None, **options
):
    train_set = lgb.Dataset(TRAIN[0], TRAIN[1], group=TRAIN[2], init_score=init_scores[0])
    valid_set = lgb.Dataset(
        VALID[0],
        VALID[1],
        group=VALID[2],
        init_score=init_scores[1],
        weight=weight,
        reference=train_set,
    )
    history = {}
    callbacks = [lgb.record_evaluation(history), *options.pop("callbacks", [])]
    booster = lgb.train(
        {**PARAMETERS, "metric": metric, "eval_at": [3, 8], **options},
        train_set,
        rounds,
        valid_sets=[valid_set],
        feval=function,
        callbacks=callbacks,
    )
    return booster, history["valid_0"]


def test_oblivious_view_matches_lightgbm():
    function = feval(["ndcg@3,8", "map@3,8"], ["oblivious", "expected", "worst", "best"])
    _, history = train_booster(function, ["ndcg", "map"])
    for name in ("ndcg@3", "ndcg@8", "map@3", "map@8"):
        assert history[f"{name}_oblivious"] == pytest.approx(history[name], abs=1e-9)
        assert np.abs(np.subtract(history[f"{name}_expected"], history[name])).max() > 1e-3
        assert (np.array(history[f"{name}_worst"]) <= history[f"{name}_expected"]).all()
        assert (np.array(history[f"{name}_expected"]) <= history[f"{name}_best"]).all()


def test_views_match_lightgbm_without_ties():
    rng = np.random.default_rng(2)
    scores = [rng.permutation(len(part[0])).astype(float) for part in (TRAIN, VALID)]
    function = feval(["ndcg@3", "map@8"], ["expected", "worst", "best"])
    _, history = train_booster(
        function, ["ndcg", "map"], rounds=1, init_scores=scores, learning_rate=1e-9
    )
    for name in ("ndcg@3", "map@8"):
        values = [history[f"{name}_{view}"] for view in ("expected", "worst", "best")]
        assert values == pytest.approx(np.array([history[name]] * 3), abs=1e-9)


def test_query_weight_is_the_mean_document_weight():
    weight = np.random.default_rng(3).random(len(VALID[1]))
    _, history = train_booster(feval("map@3", ["oblivious"]), "map", weight=weight)
    assert history["map@3_oblivious"] == pytest.approx(
        history["map@3"], abs=1e-7
    )  # LightGBM uses float32


@pytest.mark.parametrize(("empty", "constant"), [(1.0, [1.0]), (0.0, [0.0]), (None, [])])
def test_a_query_without_a_relevant_document(empty, constant):
    booster, history = train_booster(
        feval("ndcg@3", ["expected", "best", "range", "std"], empty=empty), rounds=2
    )
    query = np.repeat(np.arange(len(VALID[2])), VALID[2])
    scores = booster.predict(VALID[0], raw_score=True)
    measure = dh.nDCG(gain="exp") @ 3
    result = dh.evaluate_arrays(VALID[1], scores, measure, query=query)
    views = result.views[measure]
    assert len(views.expected) == len(VALID[2]) - 1
    for view in ("expected", "best"):
        mean = np.mean([*getattr(views, view), *constant])
        assert history[f"ndcg@3_{view}"][-1] == pytest.approx(mean, abs=1e-12)
    n = len(views.expected) + len(constant)
    assert history["ndcg@3_range"][-1] == pytest.approx(views.range.sum() / n, abs=1e-12)
    assert history["ndcg@3_std"][-1] == pytest.approx(np.sqrt(views.variance.sum()) / n, abs=1e-12)


def test_early_stopping_uses_the_expected_value():
    stopping = lgb.early_stopping(3, first_metric_only=True, verbose=False)
    function = feval(["ndcg@3"], ["expected", "range"])
    booster, history = train_booster(function, rounds=60, callbacks=[stopping], learning_rate=0.5)
    values = history["ndcg@3_expected"]
    assert 1 <= booster.best_iteration == int(np.argmax(values)) + 1 <= len(values) - 3 < 57
    assert booster.best_score["valid_0"]["ndcg@3_expected"] == max(values)


def test_lgbm_ranker():
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
    _, history = train_booster(feval("ndcg@3"), rounds=2, learning_rate=0.5)
    assert values[:2] == pytest.approx(history["ndcg@3_expected"], abs=1e-12)


def test_names_of_lightgbm_and_names_of_deadheat():
    function = feval(["nDCG@3", dh.nDCG @ 3, "MRR", "map(rel=2)@5"])
    _, history = train_booster(function, rounds=1)
    assert list(history) == [
        "ndcg@3_expected",
        "nDCG@3_expected",
        "MRR_expected",
        "MAP(rel=2)@5_expected",
    ]
    assert history["ndcg@3_expected"] != history["nDCG@3_expected"]


def test_cross_validation():
    data = lgb.Dataset(TRAIN[0], TRAIN[1], group=TRAIN[2])
    history = lgb.cv(
        {**PARAMETERS, "metric": "None"}, data, 3, nfold=2, stratified=False, feval=feval("ndcg@3")
    )
    assert len(history["valid ndcg@3_expected-mean"]) == 3


LABELS = np.array([1, 0])


@pytest.mark.parametrize(
    ("call", "message"),
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
def test_bad_input_is_refused(call, message):
    with pytest.raises(dh.InputError, match=message):
        call()


def test_missing_or_unsupported_lightgbm_is_reported(monkeypatch):
    from deadheat._internal import packages

    def raise_not_found(package):
        raise packages.PackageNotFoundError(package)

    monkeypatch.setattr(packages, "requires", lambda _: ['lightgbm<5,>=4; extra == "lightgbm"'])
    monkeypatch.setattr(packages, "version", raise_not_found)
    with pytest.raises(dh.MissingPackageError, match=r"'lightgbm': .*\[lightgbm\]"):
        feval("ndcg@3")
    monkeypatch.setattr(packages, "version", lambda _: "3.3.5")
    with pytest.raises(dh.InputError, match=r"supports lightgbm <5,>=4, but 3.3.5 is installed"):
        eval_metric("ndcg@3")
