"""BEIR: the same script with one changed import."""

from __future__ import annotations

import pytest
from needed import import_host
from quiet import quiet

import deadheat as dh

import_host("beir")

# Warnings of the host libraries are not under test.
pytestmark = pytest.mark.filterwarnings("default")

QRELS = {"q1": {"d1": 1}, "q2": {"d1": 2, "d2": 1, "d3": 0}, "none": {"d1": 0}}
TIED = {
    "q1": {"d0": 0.5, "d1": 0.5, "d2": 0.5, "q1": 0.9},  # BEIR drops a query from its own list
    "q2": {"d1": 0.5, "d3": 0.5, "d2": 0.25},
    "none": {"d1": 1.0},
}
UNTIED = {"q1": {"d0": 0.5, "d1": 0.4}, "q2": {"d1": 0.1, "d3": 0.3}, "none": {"d1": 1.0}}


def run_beir(monkeypatch, results, patched=True, **options):
    """Run BEIR's evaluation; if `patched`, with pytrec_eval of deadheat."""
    from beir.retrieval import evaluation

    if patched:
        from deadheat.integrations import pytrec_eval

        monkeypatch.setattr(evaluation, "pytrec_eval", pytrec_eval)
    lists = {query: dict(docs) for query, docs in results.items()}
    return evaluation.EvaluateRetrieval.evaluate(QRELS, lists, [1, 3], **options)


def test_patched_import_reports_expected_values(monkeypatch):
    lists = {query: {d: s for d, s in docs.items() if d != query} for query, docs in TIED.items()}
    names = ["nDCG@1", "nDCG@3", "MAP@1", "MAP@3", "Recall@1", "Recall@3", "P@1", "P@3"]
    result = quiet(dh.evaluate)(QRELS, lists, names, queries="all")
    expected = [round(summary.expected, 5) for summary in result.values()]
    reported = [value for values in run_beir(monkeypatch, TIED) for value in values.values()]
    assert reported == expected
    monkeypatch.undo()
    oblivious = run_beir(monkeypatch, TIED, patched=False)
    assert [value for values in oblivious for value in values.values()] != expected


def test_values_are_unchanged_without_ties(monkeypatch):
    original = run_beir(monkeypatch, UNTIED, patched=False)
    assert run_beir(monkeypatch, UNTIED) == original
    assert original[0]["NDCG@3"] > 0


def test_runs_and_qrels_can_be_exchanged_with_beir(tmp_path):
    from beir.datasets.data_loader import GenericDataLoader
    from beir.retrieval.evaluation import EvaluateRetrieval

    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "d{i}", "text": "text", "title": ""}}\n' for i in range(4))
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "a"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\n")
    _, _, qrels = GenericDataLoader(str(tmp_path)).load("test")
    file = tmp_path / "made.run"
    file.write_text("q1 Q0 d0 1 0.5 made\nq1 Q0 d1 2 0.25 made\n")
    results = dh.read_run(file).to_dict()
    ndcg, *_ = EvaluateRetrieval.evaluate(qrels, results, [2])
    assert ndcg["NDCG@2"] == round(dh.evaluate(qrels, file, "nDCG@2")["nDCG@2"].expected, 5)
    judged = dh.read_qrels(tmp_path / "qrels" / "test.tsv").to_dict()
    assert judged == qrels
