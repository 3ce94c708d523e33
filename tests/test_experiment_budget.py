"""The error budget: ties, computing and queries, told apart."""

from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from experiment_folders import made

from deadheat.cli import main
from deadheat.errors import InputError
from deadheat.lab.experiment import (
    Study,
    budget,
    derive,
    error_budget,
    load_results,
    run_study,
)
from deadheat.lab.experiment.budget import is_computed_twice

__all__ = ["made"]


@pytest.fixture(scope="module")
def computed(made, tmp_path_factory):
    """One reranker in BF16, in two batch sizes, with two kinds of attention, on 1 and 2 threads."""
    folder = tmp_path_factory.mktemp("computed")
    study = Study.of(
        models=[made["sigmoid"]],
        datasets=[made["data"]],
        model_dtypes=["bf16"],
        measures=["nDCG@3", "MRR"],
        batch_size=[2, 8],
        attention=["eager", "sdpa"],
        threads=[1, 2],
    )
    assert len(study.cells) == 8
    assert run_study(study, folder) == []
    return load_results(folder)


def test_every_way_to_compute_is_a_cell_of_its_own(computed):
    ways = {
        (
            stored.manifest.model.batch_size,
            stored.manifest.model.attn_implementation,
            stored.manifest.threads,
        )
        for stored in computed
    }
    assert ways == {(b, a, t) for b in (2, 8) for a in ("eager", "sdpa") for t in (1, 2)}


def test_the_budget_says_how_far_computing_moves_scores_and_measures(computed):
    table = error_budget(computed)
    frame = table.frame
    assert frame.select("regime", "measure").rows() == [
        (regime, measure) for regime in ("native", "hps", "head") for measure in ("nDCG@3", "MRR")
    ]
    assert frame["variants"].to_list() == [8] * 6
    for regime in ("native", "hps", "head"):
        variants = [stored for stored in computed if stored.regime == regime]
        scores = np.array([stored.scores()["score"].to_list() for stored in variants])
        expected = [stored.result["MRR"].expected for stored in variants]
        [row] = frame.filter(regime=regime, measure="MRR").to_dicts()
        assert row["changed"] == (scores != scores[0]).any(axis=0).mean()
        assert row["farthest"] == (scores.max(axis=0) - scores.min(axis=0)).max()
        assert row["compute_range"] == max(expected) - min(expected)
        [way] = [
            stored
            for stored in variants
            if (stored.manifest.model.batch_size, stored.manifest.threads) == (2, 1)
            and stored.manifest.model.attn_implementation == "eager"
        ]
        first = way.result["MRR"]
        assert (row["tie_range"], row["query_error"]) == (first.range, first.sampling_error)
    assert frame["changed"].max() > 0, "BF16 depends on the batch"
    assert "threads 1, batch_size 2, attention eager / " in table.notes[0]


def test_lists_cut_at_a_depth_are_compared_document_by_document(made, tmp_path):
    """Each way keeps its own best documents: row by row they are not the same."""
    study = Study.of(
        models=[made["product"]],
        datasets=[made["data"]],
        model_dtypes=["bf16"],
        measures=["MRR"],
        candidates="full",
        depth=4,
        batch_size=[1, 8],
    )
    assert run_study(study, tmp_path) == []
    results = load_results(tmp_path)
    for row in error_budget(results).frame.to_dicts():
        one, other = (
            {(query, document): score for query, document, score in stored.scores().rows()}
            for stored in results
            if stored.regime == row["regime"]
        )
        moved = [abs(one[key] - other[key]) for key in one.keys() & other.keys()]
        assert row["changed"] == np.mean(np.array(moved) > 0)
        assert row["farthest"] == max(moved)


@pytest.fixture
def whole_corpus(made, tmp_path):
    """A bi-encoder in three batch sizes over the full corpus, two documents of which are alike."""

    def run(name: str, **words):
        study = Study.of(
            datasets=[made["data"]],
            model_dtypes=["bf16"],
            measures=["MRR"],
            candidates="full",
            **{"models": [made["product"]], "batch_size": [1, 3, 8], **words},
        )
        assert run_study(study, tmp_path / name) == []
        return load_results(tmp_path / name)

    return run


def test_scores_too_many_to_be_stored_are_not_compared(whole_corpus, monkeypatch):
    kept = error_budget(whole_corpus("stored")).frame
    assert kept["changed"].max() > 0
    monkeypatch.setattr(derive, "LONGEST_RUN", 0)
    long = whole_corpus("long")
    assert not list(long[0].folder.path.rglob("scores"))
    table = error_budget(long)
    assert table.frame["changed"].to_list() == [None, None] and NOT_COMPARED in table.notes
    others = table.frame.drop("changed", "farthest")
    assert others.rows() == kept.drop("changed", "farthest").rows()


NOT_COMPARED = "scores: some are not stored or damaged, and not compared"


def test_stored_scores_that_cannot_be_read_are_not_compared(computed, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(computed[0].folder.path, folder)
    scores = sorted(folder.glob("cells/*/scores/native.parquet"))[0]
    scores.write_bytes(scores.read_bytes()[:-1])
    table = error_budget(load_results(folder), ["MRR"])
    known = {row["regime"]: row["changed"] for row in table.frame.to_dicts()}
    assert known["native"] is None and known["hps"] is not None
    assert NOT_COMPARED in table.notes


def test_scores_that_no_two_ways_share_are_no_reason_to_run_again(computed, monkeypatch):
    monkeypatch.setattr(budget, "_compare_scores", lambda variants: {})
    table = error_budget(computed)
    assert table.frame["changed"].null_count() == table.frame["farthest"].null_count() == 6
    assert NOT_COMPARED not in table.notes


def cut_scores(cell):
    scores = cell.path / "scores" / "native.parquet"
    scores.write_bytes(scores.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("harm", "readable"),
    [
        (cut_scores, True),
        (lambda cell: shutil.rmtree(cell.path / "scores"), True),
        (lambda cell: (cell.path / "results" / "native.json").write_text("{"), False),
        (lambda cell: (cell.path / "manifest.json").unlink(), False),
    ],
    ids=["damaged", "missing", "result", "manifest"],
)
def test_damage_of_another_way_spoils_no_run(whole_corpus, made, monkeypatch, harm, readable):
    """What was run is complete, and its failures are told."""
    results = whole_corpus("long", batch_size=[1, 8])
    [other] = {stored.cell for stored in results if stored.manifest.model.batch_size == 8}
    harm(other)
    study = Study.of(
        models=[results[0].model, "nowhere/nothing"],
        datasets=[made["data"]],
        model_dtypes=["bf16"],
        measures=["MRR"],
        candidates="full",
        batch_size=[1],
    )
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = results[0].folder.path
    assert [each.cell.model.name for each in run_study(study, folder)] == ["nowhere/nothing"]
    if readable:
        table = error_budget(load_results(folder))
        assert table.frame.filter(regime="native")["changed"].to_list() == [None]
        assert NOT_COMPARED in table.notes


def test_lists_of_different_depths_are_not_variants(whole_corpus, monkeypatch):
    monkeypatch.setattr(derive, "LONGEST_RUN", 0)
    cut = whole_corpus("mixed", batch_size=[1], depth=4)
    (cut[0].cell.path / "scores" / f"{cut[0].regime}.parquet").unlink()  # by hand
    results = whole_corpus("mixed", batch_size=[8])
    assert not is_computed_twice(results)
    results = whole_corpus("mixed", batch_size=[1, 8])
    assert not list(results[0].folder.path.rglob("scores/*")), "those of the first lists are gone"
    assert results[0].folder.verify()[1] == []
    assert error_budget(results).frame["variants"].to_list() == [2, 2]


def test_without_a_second_way_nothing_is_said_of_computing(computed):
    alone = [computed[0]]
    assert is_computed_twice(computed) and not is_computed_twice(alone)
    table = error_budget(alone, ["MRR"])
    assert table.frame["compute_range"].to_list() == [None]
    assert "not measured" in table.notes[0]
    with pytest.raises(InputError, match=r"not evaluated: MAP; .*nDCG@3, MRR"):
        error_budget(alone, ["MAP"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"batch_size": []}, r"no batch-size; give at least one \(--batch-size\)"),
        ({"batch_size": [0]}, "at least 1, not 0"),
        ({"threads": "2"}, "must be a whole number"),
        ({"attention": 3}, "must be text"),
    ],
)
def test_ways_to_compute_that_cannot_be(words, message):
    with pytest.raises(InputError, match=message):
        Study.of(models=["a"], datasets=["b"], **words)


def test_unknown_attention_is_a_failure_of_its_cell(made, tmp_path):
    options = {"models": [made["sigmoid"]], "datasets": [made["data"]], "model_dtypes": ["bf16"]}
    study = Study.of(**options, attention=["eager", "telepathy"])
    [failure] = run_study(study, tmp_path)
    assert failure.cell.attention == "telepathy"
    assert "telepathy" in str(failure.error)


def test_the_command_line_shows_the_budget(made, tmp_path):
    def run(*words: str):
        done = CliRunner().invoke(main, list(words), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    ways = ["--batch-size", "2", "--batch-size", "8", "--threads", "1", "-m", "MRR"]
    model = ["--model", made["sigmoid"], "--dataset", made["data"], "--model-dtype", "bf16"]
    shown = run("run", *model, *ways, "--regime", "hps", "-o", str(tmp_path))
    assert "The error budget of each number" in shown
    assert "compute: batch_size 2 / batch_size 8" in shown
    frame = pl.read_csv(
        run("table", str(tmp_path), "--budget", "--format", "csv").split("\n\n")[1].encode()
    )
    assert frame["variants"].to_list() == [2]
    assert frame["compute_range"][0] is not None


def test_options_of_a_cluster_need_the_engine(made, tmp_path):
    words = ["run", "--model", "a", "--dataset", "b", "-o", str(tmp_path), "--workers", "2"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "--workers needs" in done.stderr and "--engine ray" in done.stderr
