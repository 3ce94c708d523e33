"""ranx: the same call, names and objects, and every tie view."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from needed import import_host

import deadheat as dh

original = import_host("ranx")

from deadheat.integrations import ranx as drop_in  # noqa: E402

# Warnings of the host libraries are not under test.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning"),
]

AT_K = ["hits", "hit_rate", "precision", "recall", "f1", "mrr", "map"]
GRADED = ["dcg", "dcg_burges", "ndcg", "ndcg_burges"]
NAMES = [
    *(name for name in (*AT_K, *GRADED)),
    *(f"{name}@{k}" for name in (*AT_K, *GRADED) for k in (1, 4, 20)),
    *("r-precision", "bpref", "rbp.95", "rbp.5", "rbp@8"),
    *(f"{name}@4-l2" for name in (*AT_K, *GRADED)),
    *("r-precision-l2", "bpref-l2", "rbp.8-l2", "ndcg-l3"),
]


def make_data(seed, *, tied):
    """Return judgements with grades 0 to 3, and a run; each has documents that the other lacks.

    ranx compiles again for each maximum length of ids, so all tests use the same.
    """
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for query in map(str, range(20)):
        judged = [f"d{i}" for i in rng.permutation(12)[:9]]
        qrels[query] = dict(zip(judged, [0, 0, 3, *rng.integers(0, 4, 6).tolist()], strict=True))
        listed = [f"d{i}" for i in rng.permutation(15)[: rng.integers(1, 14)]]
        scores = rng.integers(0, 4, 14) / 4 if tied else rng.permutation(14) / 14
        run[query] = dict(zip(listed, scores.tolist(), strict=False))
    return original.Qrels(qrels), original.Run(run, name="made")


@pytest.mark.parametrize("view", ["expected", "best", "worst", "oblivious"])
def test_measures_match_ranx_without_ties(view):
    qrels, run = make_data(0, tied=False)
    theirs = original.evaluate(qrels, run, NAMES, return_mean=False)
    ours = drop_in.evaluate(qrels, run, NAMES, return_mean=False, view=view)
    assert list(ours) == list(theirs)
    for name in NAMES:
        assert ours[name] == pytest.approx(theirs[name], abs=1e-12), name
        assert theirs[name].max() > 0


@pytest.mark.parametrize("seed", [1, 2])
def test_oblivious_view_matches_ranx(seed):
    qrels, run = make_data(seed, tied=True)
    theirs = original.evaluate(qrels, run, NAMES, return_mean=False)
    ours = drop_in.evaluate(qrels, run, NAMES, return_mean=False, view="oblivious")
    for name in NAMES:
        assert ours[name] == pytest.approx(theirs[name], abs=1e-12), name
    expected = drop_in.evaluate(qrels, run, NAMES, return_mean=False)
    assert abs(expected["ndcg"] - ours["ndcg"]).max() > 0.01


def test_unsorted_run_is_sorted_like_ranx():
    run = original.Run()
    for i in range(40):
        run.add_score("q", f"d{i}", i % 2)
    qrels = original.Qrels({"q": {f"d{i}": 1 for i in range(0, 40, 3)}})
    assert not run.sorted
    ours = drop_in.evaluate(qrels, run, "map", view="oblivious")
    assert run.sorted
    assert ours == pytest.approx(original.evaluate(qrels, run, "map"), abs=1e-12)


def test_return_types_match_ranx():
    qrels, run = make_data(3, tied=False)
    for options in ({}, {"return_std": True}, {"return_mean": False}):
        for metrics in ("ndcg@5", ["ndcg@5"], ["ndcg@5", "mrr"]):
            theirs = original.evaluate(qrels, run, metrics, **options)
            ours = drop_in.evaluate(qrels, run, metrics, **options)
            assert type(ours) is type(theirs) or isinstance(ours, float)
            if isinstance(theirs, dict):
                assert list(ours) == list(theirs)
                ours, theirs = list(ours.values()), list(theirs.values())
            np.testing.assert_equal(np.shape(ours), np.shape(theirs))
            if options.get("return_std") and metrics == ["ndcg@5", "mrr"]:
                assert ours[0] == pytest.approx(theirs[0], abs=1e-12)


def test_values_are_stored_in_the_run():
    qrels, run = make_data(3, tied=False)
    original.evaluate(qrels, run, ["ndcg@5", "mrr"], return_std=True)
    stored = dict(run.scores), dict(run.mean_scores), dict(run.std_scores)
    other = original.Run(run.to_dict(), name="other")
    drop_in.evaluate(qrels, other, ["ndcg@5", "mrr"], return_std=True)
    for theirs, ours in zip(
        stored, (other.scores, other.mean_scores, other.std_scores), strict=True
    ):
        assert list(ours) == list(theirs) == ["ndcg@5", "mrr"]
        for name in theirs:
            assert ours[name] == pytest.approx(theirs[name], abs=1e-12)
    drop_in.evaluate(qrels, other, "mrr", view="range")
    assert other.mean_scores["mrr_range"] == 0
    assert other.mean_scores["mrr"] == pytest.approx(run.mean_scores["mrr"])
    untouched = original.Run(run.to_dict())
    drop_in.evaluate(qrels, untouched, "mrr", save_results_in_run=False)
    assert not untouched.scores and not untouched.mean_scores


def test_evaluate_accepts_objects_of_ranx():
    qrels, run = make_data(1, tied=True)
    result = dh.evaluate(qrels, run, ["nDCG@5", "MRR"], queries="all")
    plain = dh.evaluate(qrels.to_dict(), run.to_dict(), ["nDCG@5", "MRR"], queries="all")
    assert result.flat() == plain.flat()
    assert result.name == "made"
    expected = drop_in.evaluate(qrels, run, ["ndcg@5", "mrr"])
    assert expected == pytest.approx(
        {"ndcg@5": result["nDCG@5"].expected, "mrr": result["MRR"].expected}
    )
    for view in ("range", "std", "bias", "worst", "best"):
        mean = drop_in.evaluate(qrels, run, "mrr", view=view)
        assert mean == pytest.approx(getattr(result["MRR"], view))


def test_save_result_in_a_run():
    qrels, run = make_data(1, tied=True)
    result = dh.evaluate(qrels, run, ["nDCG@5", "ERR@5"])
    drop_in.save(run, result)
    assert run.mean_scores == pytest.approx(result.flat())
    first = result.per_query.row(0, named=True)
    assert run.scores["nDCG@5_range"][first["query_id"]] == first["range"]
    assert "ERR@5_std" not in run.scores


def test_convert_to_objects_of_ranx(tmp_path):
    qrels, run = make_data(1, tied=True)
    file = tmp_path / "made.run"
    file.write_text(
        "".join(
            f"{q} Q0 {d} {i} {score} made\n"
            for q, docs in run.to_dict().items()
            for i, (d, score) in enumerate(docs.items(), 1)
        )
    )
    from_file = drop_in.to_run(file, name="file")
    assert isinstance(from_file, original.Run) and from_file.name == "file"
    assert from_file.to_dict() == run.to_dict()
    judged = drop_in.to_qrels(qrels.to_dict(), name="judged")
    assert isinstance(judged, original.Qrels) and judged.name == "judged"
    assert judged.to_dict() == qrels.to_dict()
    assert original.evaluate(judged, from_file, "hits") == original.evaluate(qrels, run, "hits")
    assert drop_in.to_run(run).to_dict() == run.to_dict()
    assert dh.read_run(run).to_dict() == run.to_dict()
    assert dh.read_qrels(qrels).to_dict() == qrels.to_dict()


def test_make_comparable():
    qrels = original.Qrels({"a": {"d10": 1}, "b": {"d10": 1}})
    run = original.Run({"a": {"d10": 0.5}, "c": {"d10": 0.5}})
    with pytest.raises(dh.InputError, match="make_comparable=True"):
        drop_in.evaluate(qrels, run, "mrr")
    with warnings.catch_warnings():
        warnings.simplefilter("error", dh.DeadheatWarning)
        assert drop_in.evaluate(qrels, run, "mrr", make_comparable=True) == 0.5
    assert run.get_query_ids() == ["a", "b"]
    assert dict(run.scores["mrr"]) == {"a": 1.0, "b": 0.0}


def test_queries_of_dicts_are_matched_by_their_ids():
    """ranx pairs the lists of two dicts by position and ignores query ids."""
    qrels = {"a": {"d1": 1}, "b": {"d2": 1}}
    run = {"b": {"d2": 0.5, "d1": 0.25}, "a": {"d1": 0.5, "d2": 0.25}}
    assert drop_in.evaluate(qrels, run, "mrr") == 1.0
    assert original.evaluate(qrels, run, "mrr") == 0.5
    assert drop_in.evaluate(qrels, run, "mrr", return_mean=False).tolist() == [1.0, 1.0]


def test_bpref_without_nonrelevant_judgements_is_not_nan():
    qrels, run = original.Qrels({"q": {"d10": 1}}), original.Run({"q": {"d10": 0.5}})
    assert np.isnan(original.evaluate(qrels, run, "bpref"))
    assert drop_in.evaluate(qrels, run, "bpref") == 1.0


def test_empty_lists_count_as_0():
    assert drop_in.evaluate({"q": {"d": 1}}, {"q": {}}, "mrr") == 0.0
    assert drop_in.evaluate({"q": {}}, {"q": {"d": 1.0}}, "mrr") == 0.0
    assert drop_in.evaluate({"q": {"d": 1}, "p": {}}, {"q": {"d": 1.0}, "p": {}}, "mrr") == 0.5


def test_module_forwards_to_ranx():
    assert drop_in.Run is original.Run and drop_in.fuse is original.fuse
    with pytest.raises(AttributeError):
        _ = drop_in.no_such_name


QRELS, RUN = {"q": {"d": 1}}, {"q": {"d": 1.0}}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: drop_in.evaluate(QRELS, RUN, "ndgc"), "did you mean nDCG"),
        (lambda: drop_in.evaluate(QRELS, RUN, [3]), "metrics must be names of ranx"),
        (lambda: drop_in.evaluate(QRELS, RUN, "mrr", view="mean"), "views must be some of"),
        (lambda: drop_in.evaluate(QRELS, RUN, "err", view="std"), "std of err is not computed"),
        (lambda: drop_in.evaluate([[1.0]], RUN, "mrr"), "qrels must be an object of ranx"),
        (lambda: drop_in.evaluate(QRELS, {"q": [1.0]}, "mrr"), "run must be an object of ranx"),
        (lambda: drop_in.evaluate(QRELS, {"q": {"d": float("nan")}}, "mrr"), "NaN"),
        (lambda: drop_in.evaluate({1: {"d": 1}, "1": {}}, RUN, "mrr"), "two queries have the same"),
        (lambda: drop_in.to_qrels({"q": {"d": 0.5}}), "whole grades"),
        (lambda: drop_in.to_run({}), "no scored documents"),
        (lambda: dh.evaluate(QRELS, original.Run(), "MRR"), "run: .*no scored documents"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(dh.InputError, match=message):
        call()


def test_missing_or_unsupported_ranx_is_reported(monkeypatch):
    from deadheat._internal import packages

    def raise_not_found(package):
        raise packages.PackageNotFoundError(package)

    monkeypatch.setattr(packages, "requires", lambda _: ['ranx<0.4,>=0.3.20; extra == "ranx"'])
    monkeypatch.setattr(packages, "version", raise_not_found)
    with pytest.raises(dh.MissingPackageError, match=r"'ranx': .*\[ranx\]"):
        drop_in.evaluate(QRELS, RUN, "mrr")
    monkeypatch.setattr(packages, "version", lambda _: "0.2.13")
    with pytest.raises(dh.InputError, match=r"supports ranx <0.4,>=0.3.20, but 0.2.13 is"):
        _ = drop_in.Run
