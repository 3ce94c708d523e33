"""`deadheat mteb` on stored predictions, with judgements from files, so that MTEB is not needed."""

from __future__ import annotations

import json
import re

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
    write_predictions(tmp_path / "predictions", "Task", {"default": {"test": LISTS}})
    return tmp_path / "predictions"


@pytest.fixture
def qrels(tmp_path):
    path = tmp_path / "qrels.json"
    path.write_text(json.dumps(QRELS))
    return str(path)


def write_predictions(folder, task, content, meta=META):
    folder.mkdir(exist_ok=True)
    path = folder / f"{task}_predictions.json"
    path.write_text(json.dumps({"mteb_model_meta": meta, **content}))
    return path


def run_mteb(*args):
    result = CliRunner().invoke(main, ["mteb", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def get_rows(*args):
    result = run_mteb(*args, "--format", "csv")
    assert result.exit_code == 0, result.output
    header, *lines = result.stdout.strip().splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def get_error(*args):
    result = run_mteb(*args)
    assert result.exit_code == 2
    assert not result.stdout
    return result.stderr


def test_values_and_tie_rule_of_each_measure(folder, qrels):
    ndcg, mrr = get_rows(folder, "--qrels", qrels, "-m", "ndcg_at_1", "-m", "mrr_at_10")
    # By id descending b comes before a in q1, and c before b in q2.
    assert (float(ndcg["mteb"]), float(ndcg["expected"])) == (0.5, 0.5)
    assert (float(ndcg["range"]), float(ndcg["bias"])) == (1, 0)
    assert (float(mrr["mteb"]), float(mrr["expected"]), float(mrr["range"])) == (0.75, 0.75, 0.5)
    assert (ndcg["rule"], mrr["rule"]) == ("pytrec_eval", "id_desc")


def test_single_file_gives_the_same_rows_as_its_folder(folder, qrels):
    path = folder / "Task_predictions.json"
    assert get_rows(path, "--qrels", qrels) == get_rows(folder, "--qrels", qrels)


def test_all_tasks_subsets_and_splits_are_evaluated(folder, qrels, tmp_path):
    other = {q: {d: -s for d, s in listed.items()} for q, listed in LISTS.items()}
    write_predictions(folder, "Other", {"en": {"dev": other, "test": LISTS}, "de": {"test": LISTS}})
    reversed_qrels = tmp_path / "other.json"
    reversed_qrels.write_text(json.dumps({"q1": {"c": 1}, "q2": {"a": 1}}))
    options = ["--qrels", f"Task={qrels}", "--qrels", f"Other={qrels}"]
    rows = get_rows(folder, *options, "--qrels", f"Other/en/dev={reversed_qrels}", "-m", "MRR")
    places = [(row["task"], row["subset"], row["split"]) for row in rows]
    assert places == [
        ("Other", "en", "dev"),
        ("Other", "en", "test"),
        ("Other", "de", "test"),
        ("Task", "default", "test"),
    ]
    assert [float(row["expected"]) for row in rows] == [1, 0.75, 0.75, 0.75]


def test_unjudged_queries_are_dropped_with_a_warning(folder, qrels, tmp_path):
    few = tmp_path / "few.json"
    few.write_text(json.dumps({"q1": {"a": 1}}))
    result = run_mteb(folder, "--qrels", few, "--strict")
    assert result.exit_code == 1
    assert "1 query not judged" in result.stderr


def test_query_among_its_own_documents_is_reported(tmp_path, qrels):
    lists = {"q1": {"q1": 0.9, "a": 0.5}}
    write_predictions(tmp_path / "own", "Unknown", {"default": {"test": lists}})
    result = run_mteb(tmp_path / "own", "--qrels", qrels)
    assert re.search("1 query .*same id", result.stderr)


def test_table_explains_the_tie_rules(folder, qrels):
    text = run_mteb(folder, "--qrels", qrels).stdout
    assert "MTEB" in text
    assert "id_desc: document id, descending bytes" in text


class TestBadInput:
    def test_folder_without_predictions(self, tmp_path):
        assert "no predictions of MTEB" in get_error(tmp_path)
        assert f"{tmp_path / 'absent'}: not predictions" in get_error(tmp_path / "absent")

    def test_truncated_file(self, folder, qrels):
        path = folder / "Task_predictions.json"
        path.write_text(path.read_text()[:-20])
        error = get_error(folder, "--qrels", qrels)
        assert "Task_predictions.json: not predictions of MTEB" in error
        assert "run the task again" in error

    @pytest.mark.parametrize("content", ["[]", "3", '"text"'])
    def test_file_with_other_content(self, folder, content):
        (folder / "Task_predictions.json").write_text(content)
        assert "not predictions of MTEB" in get_error(folder)

    @pytest.mark.parametrize("lists", [[0, 1, 1], {"q1": [1, 2]}, {"accuracy": 0.5}])
    def test_task_that_is_not_retrieval(self, folder, qrels, lists):
        write_predictions(folder, "Sts", {"default": {"test": lists}})
        assert "Sts is not a retrieval" in get_error(folder, "--qrels", qrels)

    def test_predictions_of_several_models(self, folder, qrels):
        write_predictions(
            folder, "Other", {"default": {"test": LISTS}}, {"model_name": "you", "revision": "2"}
        )
        error = get_error(folder, "--qrels", qrels)
        assert "several models" in error

    def test_judgements_that_do_not_match(self, folder, qrels, tmp_path):
        other = tmp_path / "other.json"
        other.write_text(json.dumps({"x": {"a": 1}}))
        assert "none of the queries" in get_error(folder, "--qrels", other)
        error = get_error(folder, "--qrels", f"Tusk={qrels}")
        assert re.search("for Tusk, .*Task/default/test", error)
        assert "given twice" in get_error(folder, "--qrels", qrels, "--qrels", qrels)

    def test_scores_that_are_null_or_nan(self, folder, qrels):
        write_predictions(folder, "Task", {"default": {"test": {"q1": {"a": None}}}})
        assert "'q1'" in get_error(folder, "--qrels", qrels)
        write_predictions(folder, "Task", {"default": {"test": {"q1": {"a": float("nan")}}}})
        assert "NaN" in get_error(folder, "--qrels", qrels)

    def test_neither_judgements_nor_mteb(self, folder, monkeypatch):
        def raise_not_found(name):
            raise packages.PackageNotFoundError(name)

        from deadheat._internal import packages

        monkeypatch.setattr(packages, "requires", lambda name: ['mteb>=2.18,<3; extra == "mteb"'])
        monkeypatch.setattr(packages, "version", raise_not_found)
        error = get_error(folder)
        assert "without --qrels" in error
        assert packages.install_command("mteb") in error
