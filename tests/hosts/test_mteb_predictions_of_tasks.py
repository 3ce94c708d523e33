"""`deadheat mteb` with judgements from MTEB tasks, compared with the values that MTEB reports."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from needed import import_host

mteb = import_host("mteb")

from mteb_tasks import Scorer, make_reranking_split, make_task, only_scores  # noqa: E402

from deadheat.cli import main  # noqa: E402
from deadheat.errors import InputError  # noqa: E402
from deadheat.integrations.mteb.predictions import evaluate_predictions  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")

TEXTS = [f"text {i % 7}" for i in range(60)]
NAMES = ["ndcg_at_10", "mrr_at_10", "map_at_10", "recall_at_5", "precision_at_3", "hit_rate_at_3"]


@pytest.fixture
def task(monkeypatch):
    """A task that MTEB loads by name, offline."""
    known_task = make_task(make_reranking_split(np.random.default_rng(1), TEXTS), name="KnownTask")
    real = mteb.get_task

    def get_task(name, **options):
        return known_task if name == "KnownTask" else real(name, **options)

    monkeypatch.setattr(mteb, "get_task", get_task)
    return known_task


def run_task(task, folder):
    options = {"cache": None, "show_progress_bar": False, "co2_tracker": False}
    model = Scorer(lambda q, d: int(d[-1]) % 3)
    return only_scores(mteb.evaluate(model, task, prediction_folder=folder, **options))


@pytest.mark.parametrize("option", ["none", "ignore_identical_ids", "skip_first_result"])
def test_values_match_mteb(task, tmp_path, option):
    setattr(task, option, True)
    if option != "none":  # every list contains its query, which MTEB stores and then excludes
        data = task.dataset["default"]["test"]
        corpus = data["corpus"].to_list()
        corpus += [{"id": q, "text": "text 2", "title": ""} for q in data["top_ranked"]]
        data["corpus"] = type(data["corpus"]).from_list(corpus)
        for query, listed in data["top_ranked"].items():
            listed.append(query)
    reported = run_task(task, tmp_path)
    (evaluated,) = evaluate_predictions(tmp_path, NAMES)
    for name, (measure, result) in zip(NAMES, evaluated.results, strict=True):
        assert result[measure].oblivious == pytest.approx(reported[name], abs=6e-6)
    assert not evaluated.remarks  # lists of candidates for reranking are complete


def test_command_line(task, tmp_path):
    reported = run_task(task, tmp_path)
    result = CliRunner().invoke(main, ["mteb", str(tmp_path), "-m", "nDCG@10", "--format", "json"])
    assert result.exit_code == 0, result.output
    assert "KnownTask" in result.stdout
    assert f"{reported['ndcg_at_10']:.4f}"[:5] in json.dumps(json.loads(result.stdout))


def test_task_of_another_type_is_refused(tmp_path):
    lists = {"q": {"a": 1.0}}
    path = tmp_path / "STS12_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": {}, "default": {"test": lists}}))
    with pytest.raises(InputError, match=r"STS12/default/test could not be loaded"):
        evaluate_predictions(tmp_path)


def test_judgements_that_cannot_be_loaded_are_reported(tmp_path):
    path = tmp_path / "NFCorpus_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": {}, "default": {"test": {"q": {"a": 1.0}}}}))
    with pytest.raises(InputError, match=r"could not be loaded .*--qrels NFCorpus/default/test="):
        evaluate_predictions(tmp_path)


def test_unknown_task_is_reported(tmp_path):
    path = tmp_path / "Nothing_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": {}, "default": {"test": {"q": {"a": 1.0}}}}))
    with pytest.raises(InputError, match=r"Nothing.*--qrels Nothing/default/test=FILE"):
        evaluate_predictions(tmp_path)
