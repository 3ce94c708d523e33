"""`deadheat mteb` on stored predictions, with judgements from files: MTEB need not be there."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from deadheat.cli import main

LISTS = {
    "q1": {"a": 0.5, "b": 0.5, "c": 0.25},
    "q2": {"a": 0.1, "b": 0.7, "c": 0.7},
}
QRELS = {"q1": {"a": 1}, "q2": {"c": 1}}
META = {"model_name": "me/model", "revision": "1"}


@pytest.fixture
def folder(tmp_path):
    store(tmp_path / "predictions", "Task", {"default": {"test": LISTS}})
    return tmp_path / "predictions"


@pytest.fixture
def qrels(tmp_path):
    path = tmp_path / "qrels.json"
    path.write_text(json.dumps(QRELS))
    return str(path)


def store(folder, task, content, meta=META):
    folder.mkdir(exist_ok=True)
    path = folder / f"{task}_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": meta, **content}))
    return path


def deadheat(*words):
    done = CliRunner().invoke(main, ["mteb", *map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def table(*words):
    done = deadheat(*words, "--format", "csv")
    assert done.exit_code == 0, done.output
    header, *lines = done.stdout.strip().splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def refusal(*words):
    done = deadheat(*words)
    assert done.exit_code == 2
    assert not done.stdout
    return done.stderr


def test_the_value_the_truth_and_the_rule(folder, qrels):
    ndcg, mrr = table(folder, "--qrels", qrels, "-m", "ndcg_at_1", "-m", "mrr_at_10")
    # By id descending b comes before a in q1, and c before b in q2.
    assert (float(ndcg["mteb"]), float(ndcg["expected"])) == (0.5, 0.5)
    assert (float(ndcg["range"]), float(ndcg["bias"])) == (1, 0)
    assert (float(mrr["mteb"]), float(mrr["expected"]), float(mrr["range"])) == (0.75, 0.75, 0.5)
    assert (ndcg["rule"], mrr["rule"]) == ("pytrec_eval", "id_desc")


def test_one_file_does_too(folder, qrels):
    path = folder / "Task_predictions.json"
    assert table(path, "--qrels", qrels) == table(folder, "--qrels", qrels)


def test_every_task_subset_and_split(folder, qrels, tmp_path):
    other = {q: {d: -s for d, s in listed.items()} for q, listed in LISTS.items()}
    store(folder, "Other", {"en": {"dev": other, "test": LISTS}, "de": {"test": LISTS}})
    reversed_qrels = tmp_path / "other.json"
    reversed_qrels.write_text(json.dumps({"q1": {"c": 1}, "q2": {"a": 1}}))
    given = ["--qrels", f"Task={qrels}", "--qrels", f"Other={qrels}"]
    found = table(folder, *given, "--qrels", f"Other/en/dev={reversed_qrels}", "-m", "MRR")
    places = [(row["task"], row["subset"], row["split"]) for row in found]
    assert places == [
        ("Other", "en", "dev"),
        ("Other", "en", "test"),
        ("Other", "de", "test"),
        ("Task", "default", "test"),
    ]
    assert [float(row["expected"]) for row in found] == [1, 0.75, 0.75, 0.75]


def test_queries_that_are_not_judged_are_left_out_and_said(folder, qrels, tmp_path):
    few = tmp_path / "few.json"
    few.write_text(json.dumps({"q1": {"a": 1}}))
    done = deadheat(folder, "--qrels", few, "--strict")
    assert done.exit_code == 1
    assert "1 query not judged, and left out" in done.stderr


def test_a_query_among_its_own_documents_is_pointed_out(tmp_path, qrels):
    lists = {"q1": {"q1": 0.9, "a": 0.5}}
    store(tmp_path / "own", "Unknown", {"default": {"test": lists}})
    done = deadheat(tmp_path / "own", "--qrels", qrels)
    assert "1 query with a document of the same id" in done.stderr


def test_the_table_fits_and_explains_the_rules(folder, qrels):
    text = deadheat(folder, "--qrels", qrels).stdout
    assert "MTEB" in text
    assert "id_desc: document id, descending bytes" in text


class TestBadInput:
    def test_a_folder_without_predictions(self, tmp_path):
        assert "no predictions of MTEB" in refusal(tmp_path)
        assert f"{tmp_path / 'absent'}: not predictions" in refusal(tmp_path / "absent")

    def test_half_a_file(self, folder, qrels):
        path = folder / "Task_predictions.json"
        path.write_text(path.read_text()[:-20])
        error = refusal(folder, "--qrels", qrels)
        assert "Task_predictions.json: not predictions of MTEB" in error
        assert "run the task again" in error

    @pytest.mark.parametrize("content", ["[]", "3", '"text"'])
    def test_another_file(self, folder, content):
        (folder / "Task_predictions.json").write_text(content)
        assert "not predictions of MTEB" in refusal(folder)

    @pytest.mark.parametrize("lists", [[0, 1, 1], {"q1": [1, 2]}, {"accuracy": 0.5}])
    def test_a_task_that_is_not_retrieval(self, folder, qrels, lists):
        store(folder, "Sts", {"default": {"test": lists}})
        assert "Sts is not a retrieval or reranking task" in refusal(folder, "--qrels", qrels)

    def test_several_models(self, folder, qrels):
        store(folder, "Other", {"default": {"test": LISTS}}, {"model_name": "you", "revision": "2"})
        error = refusal(folder, "--qrels", qrels)
        assert "several models" in error

    def test_judgements_of_something_else(self, folder, qrels, tmp_path):
        other = tmp_path / "other.json"
        other.write_text(json.dumps({"x": {"a": 1}}))
        assert "none of the queries" in refusal(folder, "--qrels", other)
        error = refusal(folder, "--qrels", f"Tusk={qrels}")
        assert (
            "judgements were given for Tusk, but the predictions are of Task/default/test" in error
        )
        assert "given twice" in refusal(folder, "--qrels", qrels, "--qrels", qrels)

    def test_scores_that_are_none(self, folder, qrels):
        store(folder, "Task", {"default": {"test": {"q1": {"a": None}}}})
        assert "'q1'" in refusal(folder, "--qrels", qrels)
        store(folder, "Task", {"default": {"test": {"q1": {"a": float("nan")}}}})
        assert "NaN" in refusal(folder, "--qrels", qrels)

    def test_no_judgements_and_no_mteb(self, folder, monkeypatch):
        def absent(name):
            raise packages.PackageNotFoundError(name)

        from deadheat._internal import packages

        monkeypatch.setattr(packages, "requires", lambda name: ['mteb>=2.18,<3; extra == "mteb"'])
        monkeypatch.setattr(packages, "version", absent)
        error = refusal(folder)
        assert "without --qrels" in error
        assert packages.install_command("mteb") in error
