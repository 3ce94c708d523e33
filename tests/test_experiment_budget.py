"""The error budget: separate effects of ties, computation and queries."""

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
def variant_results(made, tmp_path_factory):
    """Run a reranker in BF16 with two batch sizes, two attention kinds, and 1 and 2 threads."""
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


def test_every_combination_of_settings_is_a_cell(variant_results):
    settings = {
        (
            stored.manifest.model.batch_size,
            stored.manifest.model.attn_implementation,
            stored.manifest.threads,
        )
        for stored in variant_results
    }
    assert settings == {(b, a, t) for b in (2, 8) for a in ("eager", "sdpa") for t in (1, 2)}


def test_budget_of_changed_scores_and_measures(variant_results):
    table = error_budget(variant_results)
    frame = table.frame
    assert frame.select("regime", "measure").rows() == [
        (regime, measure) for regime in ("native", "hps", "head") for measure in ("nDCG@3", "MRR")
    ]
    assert frame["variants"].to_list() == [8] * 6
    for regime in ("native", "hps", "head"):
        variants = [stored for stored in variant_results if stored.regime == regime]
        scores = np.array([stored.scores()["score"].to_list() for stored in variants])
        expected = [stored.result["MRR"].expected for stored in variants]
        [row] = frame.filter(regime=regime, measure="MRR").to_dicts()
        assert row["changed"] == (scores != scores[0]).any(axis=0).mean()
        assert row["farthest"] == (scores.max(axis=0) - scores.min(axis=0)).max()
        assert row["compute_range"] == max(expected) - min(expected)
        [variant] = [
            stored
            for stored in variants
            if (stored.manifest.model.batch_size, stored.manifest.threads) == (2, 1)
            and stored.manifest.model.attn_implementation == "eager"
        ]
        summary = variant.result["MRR"]
        assert (row["tie_range"], row["query_error"]) == (summary.range, summary.sampling_error)
    assert frame["changed"].max() > 0, "BF16 depends on the batch"
    assert "threads 1, batch_size 2, attention eager / " in table.notes[0]


def test_lists_cut_at_a_depth_are_compared_by_document(made, tmp_path):
    """The lists have different documents, so scores are matched by document, not by row."""
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
def run_full_corpus(made, tmp_path):
    """Return a function that runs a bi-encoder over the full corpus, with three batch sizes."""

    def run(name: str, **options):
        study = Study.of(
            datasets=[made["data"]],
            model_dtypes=["bf16"],
            measures=["MRR"],
            candidates="full",
            **{"models": [made["product"]], "batch_size": [1, 3, 8], **options},
        )
        assert run_study(study, tmp_path / name) == []
        return load_results(tmp_path / name)

    return run


def test_scores_that_are_not_stored_are_not_compared(run_full_corpus, monkeypatch):
    stored = error_budget(run_full_corpus("stored")).frame
    assert stored["changed"].max() > 0
    monkeypatch.setattr(derive, "LONGEST_RUN", 0)
    long = run_full_corpus("long")
    assert not list(long[0].folder.path.rglob("scores"))
    table = error_budget(long)
    assert table.frame["changed"].to_list() == [None, None]
    assert has_note_on_missing_scores(table)
    others = table.frame.drop("changed", "farthest")
    assert others.rows() == stored.drop("changed", "farthest").rows()


def has_note_on_missing_scores(table) -> bool:
    return any("scores" in note and "not compared" in note for note in table.notes)


def test_damaged_scores_are_not_compared(variant_results, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(variant_results[0].folder.path, folder)
    scores = sorted(folder.glob("cells/*/scores/native.parquet"))[0]
    scores.write_bytes(scores.read_bytes()[:-1])
    table = error_budget(load_results(folder), ["MRR"])
    changed = {row["regime"]: row["changed"] for row in table.frame.to_dicts()}
    assert changed["native"] is None and changed["hps"] is not None
    assert has_note_on_missing_scores(table)


def test_variants_without_common_scores_have_no_note(variant_results, monkeypatch):
    monkeypatch.setattr(budget, "_compare_scores", lambda variants: {})
    table = error_budget(variant_results)
    assert table.frame["changed"].null_count() == table.frame["farthest"].null_count() == 6
    assert not has_note_on_missing_scores(table)


def truncate_scores(cell):
    scores = cell.path / "scores" / "native.parquet"
    scores.write_bytes(scores.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "readable"),
    [
        (truncate_scores, True),
        (lambda cell: shutil.rmtree(cell.path / "scores"), True),
        (lambda cell: (cell.path / "results" / "native.json").write_text("{"), False),
        (lambda cell: (cell.path / "manifest.json").unlink(), False),
    ],
    ids=["damaged", "missing", "result", "manifest"],
)
def test_damaged_variant_does_not_fail_other_runs(
    run_full_corpus, made, monkeypatch, damage, readable
):
    """The run completes and returns only its own failures."""
    results = run_full_corpus("long", batch_size=[1, 8])
    [other] = {stored.cell for stored in results if stored.manifest.model.batch_size == 8}
    damage(other)
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
        assert has_note_on_missing_scores(table)


def test_lists_of_different_depths_are_not_variants(run_full_corpus, monkeypatch):
    monkeypatch.setattr(derive, "LONGEST_RUN", 0)
    cut = run_full_corpus("mixed", batch_size=[1], depth=4)
    (cut[0].cell.path / "scores" / f"{cut[0].regime}.parquet").unlink()  # as a user may do
    results = run_full_corpus("mixed", batch_size=[8])
    assert not is_computed_twice(results)
    results = run_full_corpus("mixed", batch_size=[1, 8])
    assert not list(results[0].folder.path.rglob("scores/*")), (
        "scores of the first lists are deleted"
    )
    assert results[0].folder.verify()[1] == []
    assert error_budget(results).frame["variants"].to_list() == [2, 2]


def test_single_variant_has_no_compute_range(variant_results):
    single = [variant_results[0]]
    assert is_computed_twice(variant_results) and not is_computed_twice(single)
    table = error_budget(single, ["MRR"])
    assert table.frame["compute_range"].to_list() == [None]
    assert "not measured" in table.notes[0]
    with pytest.raises(InputError, match=r"not evaluated: MAP; .*nDCG@3, MRR"):
        error_budget(single, ["MAP"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": []}, r"no batch-size; .*\(--batch-size\)"),
        ({"batch_size": [0]}, "at least 1, not 0"),
        ({"threads": "2"}, "must be a whole number"),
        ({"attention": 3}, "must be text"),
    ],
)
def test_bad_variants_raise_input_error(options, message):
    with pytest.raises(InputError, match=message):
        Study.of(models=["a"], datasets=["b"], **options)


def test_unknown_attention_fails_its_cell(made, tmp_path):
    options = {"models": [made["sigmoid"]], "datasets": [made["data"]], "model_dtypes": ["bf16"]}
    study = Study.of(**options, attention=["eager", "telepathy"])
    [failure] = run_study(study, tmp_path)
    assert failure.cell.attention == "telepathy"
    assert "telepathy" in str(failure.error)


def test_command_line_prints_the_budget(made, tmp_path):
    def run(*args: str):
        outcome = CliRunner().invoke(main, list(args), catch_exceptions=False)
        assert outcome.exit_code == 0, outcome.output
        return outcome.stdout

    variants = ["--batch-size", "2", "--batch-size", "8", "--threads", "1", "-m", "MRR"]
    model = ["--model", made["sigmoid"], "--dataset", made["data"], "--model-dtype", "bf16"]
    output = run("run", *model, *variants, "--regime", "hps", "-o", str(tmp_path))
    assert "error budget" in output
    assert "compute: batch_size 2 / batch_size 8" in output
    frame = pl.read_csv(
        run("table", str(tmp_path), "--budget", "--format", "csv").split("\n\n")[1].encode()
    )
    assert frame["variants"].to_list() == [2]
    assert frame["compute_range"][0] is not None


def test_workers_option_requires_an_engine(made, tmp_path):
    args = ["run", "--model", "a", "--dataset", "b", "-o", str(tmp_path), "--workers", "2"]
    outcome = CliRunner().invoke(main, args)
    assert outcome.exit_code == 2
    assert "--workers needs" in outcome.stderr and "--engine ray" in outcome.stderr
