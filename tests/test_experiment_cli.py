"""`deadheat run`, its tables, and studies from options and files."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")

from experiment_folders import made, write_dataset  # noqa: E402

from deadheat.cli import main, run  # noqa: E402
from deadheat.errors import InputError  # noqa: E402
from deadheat.lab.experiment import (  # noqa: E402
    DatasetSpec,
    ModelSpec,
    Study,
    against_paper,
    every_measure,
    load_results,
    paper_study,
    read_study,
    table1,
    ties_table,
)
from deadheat.tables import render  # noqa: E402

__all__ = ["made"]


def invoke_run(*args: str, status: int = 0):
    outcome = CliRunner().invoke(main, ["run", *map(str, args)])
    assert outcome.exit_code == status, outcome.output
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)
    return outcome


def test_paper_study():
    study = paper_study()
    assert [model.name for model in study.models] == [
        "Qwen/Qwen3-Reranker-0.6B",
        "BAAI/bge-reranker-v2-m3",
        "Alibaba-NLP/gte-multilingual-reranker-base",
        "Qwen/Qwen3-Embedding-0.6B",
        "intfloat/multilingual-e5-large",
    ]
    assert study.datasets == (
        DatasetSpec("mteb/MIRACLReranking", subset="en", split="dev"),
        DatasetSpec("mteb/AskUbuntuDupQuestions", split="test"),
    )
    assert len(study.cells) == len(set(study.cells)) == 5 * 3 * 2
    assert {cell.model_dtype for cell in study.cells} == {"bf16", "fp16", "fp32"}
    assert study.regimes == ("native", "hps", "head")
    assert (study.batch_size, study.max_length) == ((16,), None)  # presets set the lengths
    expected = [f"{name}@{k}" for name in ("nDCG", "MRR", "MAP", "Recall") for k in range(1, 101)]
    assert list(map(repr, study.all_measures)) == expected
    assert paper_study(limit=3, device="cpu").limit == 3


def test_read_study_from_toml(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        """
        models = ["a/b", {name = "c/d", revision = "v1", similarity = "dot", max_length = 64}]
        datasets = ["e/f"]
        model_dtypes = ["bfloat16", "bf16", "fp32"]
        regimes = ["hps"]
        scoring_dtypes = ["fp8"]
        measures = ["nDCG", "MRR@10"]
        cutoffs = [1, 5]
        batch_size = 8
        trust_remote_code = true
        [extra]
        """.replace("[extra]", "")
    )
    study = read_study(path, limit=4, trust_remote_code=True)
    assert study.models[1] == ModelSpec("c/d", revision="v1", similarity="dot", max_length=64)
    assert (study.model_dtypes, study.scoring_dtypes) == (("bf16", "fp32"), ("fp8_e4m3",))
    assert list(map(repr, study.all_measures)) == ["nDCG@1", "nDCG@5", "MRR@10"]
    assert (study.batch_size, study.limit, study.trust_remote_code) == ((8,), 4, True)
    assert len(study.cells) == 4


def test_study_file_alone_cannot_allow_remote_code(tmp_path):
    path, out = tmp_path / "study.toml", tmp_path / "out"
    path.write_text("models = ['a/b', 'c/d']\ndatasets = ['e/f']\ntrust_remote_code = true")
    with pytest.raises(InputError) as caught:
        read_study(path)
    for fact in (str(path), "'a/b', 'c/d'", "--trust-remote-code", "trust_remote_code=True"):
        assert fact in str(caught.value)
    assert str(caught.value) in invoke_run("--study", path, "-o", out, status=2).stderr
    assert not out.exists()
    assert read_study(path, trust_remote_code=True).trust_remote_code
    assert not read_study(path, trust_remote_code=False).trust_remote_code
    path.write_text(path.read_text().replace("true", "false"))
    assert not read_study(path).trust_remote_code


def test_single_value_is_read_as_a_list(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("models = 'a'\ndatasets = {name = 'b'}\nregimes = 'hps'\ncutoffs = 3")
    assert read_study(path) == Study.of(models=["a"], datasets=["b"], regimes=["hps"], cutoffs=[3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models = ['a']\ndataset = ['b']", "unknown key 'dataset'; did you mean 'datasets'"),
        ("models = ['a']\ndatasets = ['b']\nspeed = 9", "unknown key 'speed'; known keys: models"),
        ("models = [{name='a', dtype='x'}]\ndatasets = ['b']", "models: unknown key 'dtype'"),
        ("models = [1]\ndatasets = ['b']", "names, or tables"),
        ("models = ['a']", "(--dataset)"),
        ("datasets = ['a']", "(--model)"),
        ("models = ['a']\ndatasets = ['b']\nbatch_size = '4'", "batch_size must be a whole number"),
        ("models = ['a']\ndatasets = ['b']\nbatch_size = true", "must be a whole number"),
        ("models = ['a']\ndatasets = ['b']\nlimit = 0", "limit must be at least 1"),
        ("models = ['a']\ndatasets = ['b']\ncutoffs = [0]", "cutoffs must be at least 1"),
        ("models = ['a']\ndatasets = ['b']\nregimes = ['high']", "unknown regime 'high'"),
        ("models = ['a']\ndatasets = ['b']\nmodel_dtypes = ['fp8']", "cannot be run in 'fp8_e4m3'"),
        ("models = ['a']\ndatasets = ['b']\nscoring_dtypes = ['int8']", "int8 has no sigmoid"),
        ("models = ['a']\ndatasets = ['b']\nmeasures = ['nDGC']", "did you mean nDCG"),
        ("models = ['a']\ndatasets = ['b']\ncandidates = 'all'", "must be one of given, bm25"),
        (
            "models = ['a']\ndatasets = ['b']\nregimes = []",
            "(--regime)",
        ),
        ("models = [{name='a', similarity='x'}]\ndatasets = ['b']", "one of dot, cosine"),
        ("models = [", "not valid TOML"),
        ("models = " + "[" * 50_000, "not valid TOML"),
    ],
)
def test_bad_study_raises_input_error(tmp_path, text, message):
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_study(path)
    assert message in str(caught.value)
    outcome = invoke_run("--study", path, "--output", tmp_path / "out", status=2)
    assert outcome.stderr.startswith("error: ") and outcome.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_bad_input_exits_with_one_error_line(made, tmp_path):
    model, data, out = made["sigmoid"], made["data"], tmp_path / "out"
    cases = [
        ((), "(--model)"),
        (("--model", model, "--dataset", tmp_path / "no"), "there is no folder or file"),
        (("--model", tmp_path / "no" / "model", "--dataset", data), "Hugging Face hub"),
        (("--model", model, "--dataset", data, "--split", "dev"), "leave split= out"),
        (("--model", model, "--split", "dev"), "--split needs --dataset"),
        (("--model", model, "--dataset", data, "--max-length", "9000"), "max_length 9000"),
        (("--model", model, "--dataset", data, "--device", "cuda:7"), "'cuda:7'"),
        (("--model", made["product"], "--dataset", data, "--regime", "head"), "no scoring head"),
        (("--paper", "--study", "x.toml"), "choose one"),
        (("--study", tmp_path / "no.toml"), "cannot be read"),
    ]
    for args, message in cases:
        outcome = invoke_run(*args, "--model-dtype", "bf16", "--output", out, status=2)
        assert message in outcome.stderr
        assert outcome.stderr.startswith("error: ") and outcome.stderr.count("\n") == 1
        assert outcome.stdout == ""


def test_run_prints_tables_of_its_results(made, tmp_path):
    args = ["--model", made["sigmoid"], "--model", made["product"], "--dataset", made["data"]]
    args += ["-m", "nDCG", "-m", "MRR@2", "-k", "3", "--batch-size", "4", "--max-length", "20"]
    args += ["--output", str(tmp_path / "out")]
    outcome = invoke_run(*args)
    assert re.search(r"data: .* 4 empty candidates", outcome.stderr)
    assert re.search(r"39 inputs \(logits\) .* 20 tokens", outcome.stderr)
    for name in (
        "native",
        "hps",
        "head",
        "oblivious",
        "expected",
        "range",
        "bias",
        "FP32",
        "distinct",
    ):
        assert name in outcome.stdout
    repeated = invoke_run(*args, "--format", "markdown")
    assert "| data | nDCG@3 | sigmoid | bf16 |" in repeated.stdout

    results = load_results(tmp_path / "out")
    rows = list(csv.DictReader(io.StringIO(render([table1(results)], "csv"))))
    stored = {(Path(r.model).name, r.model_dtype, r.regime): r for r in results}
    assert len(rows) == 4
    for row in rows:
        model, measure = row["model"], row["measure"]
        exact = stored[model, "fp32", "native"].result[measure]
        assert float(row["FP32_M"]) == exact.expected
        for regime in ("native", "hps", "head"):
            if (model, regime) == ("encoder", "head"):
                assert row["head_range"] == ""
                continue
            summary = stored[model, "bf16", regime].result[measure]
            views = [
                float(row[f"{regime}_{v}"]) for v in ("oblivious", "expected", "range", "bias")
            ]
            assert views == [summary.oblivious, summary.expected, summary.range, summary.bias]
    ties = ties_table(results).frame
    assert ties.filter(model="encoder")["regime"].to_list() == ["native", "hps", "native"]
    assert ties["distinct"].is_between(0, 1, closed="right").all()
    wide = render([table1(results)], "table", percent=True)
    narrow = render([table1(results)], "table", percent=True, width=100)
    assert max(map(len, narrow.splitlines())) <= 100 < max(map(len, wide.splitlines()))
    assert "regime" in narrow and narrow.count("│ hps ") == 2  # a block for each measure
    latex = render([table1(results)], "latex")
    assert r"\usepackage{booktabs,xcolor}" in latex
    body = [line.split(" & ") for line in latex.splitlines() if line.endswith(r"\\")]
    regimes = [cell for line in body for cell in line if cell in ("native", "hps", "head")]
    assert regimes == ["native", "hps", "head"] * 2  # a block for each measure and regime
    with pytest.raises(InputError, match=r"not evaluated: ERR;.* nDCG@3, MRR@2"):
        table1(results, ["ERR"])


def test_table_omits_some_of_many_measures(made, tmp_path):
    args = ["--model", made["sigmoid"], "--dataset", made["data"], "--output", str(tmp_path)]
    invoke_run(
        *args,
        "--model-dtype",
        "fp32",
        "-m",
        "nDCG",
        "-m",
        "MRR",
        *["-k", "1", "-k", "2", "-k", "3", "-k", "10", "-k", "20"],
    )
    results = load_results(tmp_path)
    text = render([table1(results)], "markdown")
    assert "MRR@10" in text and "nDCG@10" in text and "nDCG@20" not in text
    assert "| sigmoid | fp32 |" in text, "a model that was only run in FP32 has a row"
    assert len(every_measure(results)) == 10
    args = ["table", str(tmp_path), "--format", "csv"]
    assert len(CliRunner().invoke(main, args).stdout.splitlines()) == 1 + 10


def test_failing_cell_does_not_stop_other_cells(made, tmp_path):
    args = ["--model", str(tmp_path / "no"), "--model", made["sigmoid"], "--dataset", made["data"]]
    outcome = invoke_run(*args, "--model-dtype", "bf16", "--output", tmp_path / "out", status=2)
    assert outcome.stderr.startswith(f"error: {tmp_path / 'no'} in bf16 on")
    assert "sigmoid" in outcome.stdout
    assert Study.of(models=["a"], datasets=["b"]).cells[0].model_dtype == "bf16"


def test_interrupted_run_reports_the_output_folder(made, tmp_path, monkeypatch):
    args = ["--model", made["sigmoid"], "--dataset", made["data"], "--output", tmp_path / "out"]
    original = run.run_study

    def interrupt(study, folder, **options):
        original(study, folder, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_study", interrupt)
    outcome = invoke_run(*args, "--model-dtype", "bf16", "--batch-size", "16", status=130)
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith("stopped: ") and str(tmp_path / "out") in last
    assert "same command" in last
    assert outcome.stdout == "" and "Aborted" not in outcome.stderr
    monkeypatch.setattr(run, "run_study", original)
    outcome = invoke_run(*args, "--model-dtype", "bf16", "--batch-size", "16")
    assert "Ties can" in outcome.stdout.rpartition("\n\n")[2]


def test_renamed_model_reuses_its_cell(made, tmp_path):
    args = ["--dataset", made["data"], "--model-dtype", "bf16", "-o", tmp_path / "out"]
    text = invoke_run("--model", f"tiny={made['sigmoid']}", *args, "--format", "markdown").stdout
    assert "| tiny | bf16 |" in text
    repeated = invoke_run(
        "--model", f"small={made['sigmoid']}", *args, "--format", "markdown"
    ).stdout
    assert repeated == text.replace("tiny", "small"), "the same cell under another name"
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 1


def test_comparison_with_the_paper(made, tmp_path):
    """Run `deadheat run --paper` with tiny models that have the names of two presets."""
    bge = tmp_path / "bge-reranker-v2-m3"
    bge.symlink_to(made["sigmoid"])
    data = [write_dataset(tmp_path / name) for name in ("MIRACLReranking", "AskUbuntuDupQuestions")]
    args = ["--paper", "--model", made["yes-no"], "--model", str(bge), "--dataset", data[0]]
    args += ["--dataset", data[1], "--model-dtype", "bf16", "--model-dtype", "fp32"]
    invoke_run(*args, "--max-length", "150", "--output", str(tmp_path / "out"))
    results = load_results(tmp_path / "out")
    frame = against_paper(results).frame
    keys = ("measure", "model", "model_dtype", "regime", "view")
    rows = {tuple(row[key] for key in keys): row for row in frame.to_dicts()}
    # Three measures, two models, and nine numbers of each.
    assert len(rows) == len(frame) == 3 * 2 * 9
    published = {
        ("nDCG@10", "Qwen3-Reranker-0.6B", "bf16", "native", "range"): 0.2559,
        ("nDCG@10", "Qwen3-Reranker-0.6B", "fp32", "native", "expected"): 0.7353,
        ("MRR@10", "bge-reranker-v2-m3", "bf16", "hps", "bias"): 0.0010,
        ("MAP@3", "bge-reranker-v2-m3", "bf16", "hps", "expected"): 0.3184,
    }
    for key, number in published.items():
        assert rows[key]["paper"] == pytest.approx(number)
    stored = {(r.short_name, r.model_dtype, r.regime, r.dataset): r.result for r in results}
    for row in rows.values():
        key = (row["model"], row["model_dtype"], row["regime"], row["dataset"])
        summary = stored[key][row["measure"]]
        assert row["ours"] == getattr(summary, row["view"])
        assert row["difference"] == row["ours"] - row["paper"]
        inside = summary.worst <= row["paper"] <= summary.best
        assert row["within"] is (None if row["view"] in ("range", "bias") else inside)
    outcome = CliRunner().invoke(
        main, ["table", str(tmp_path / "out"), "--against-paper", "--wide"]
    )
    assert outcome.exit_code == 0
    assert "75.04" in outcome.output and "paper within" in outcome.output
    others = [r for r in results if r.regime == "head"]
    with pytest.raises(InputError, match="none of these results is in the paper's Table 1"):
        against_paper(others)
