"""Haystack: the tie-aware evaluator in real pipelines over an in-memory store."""

from __future__ import annotations

import inspect
import warnings
from importlib.metadata import version

import pytest
from needed import import_host

import deadheat as dh

import_host("haystack")

from haystack import Document, Pipeline  # noqa: E402
from haystack.components.evaluators import (  # noqa: E402
    DocumentMAPEvaluator,
    DocumentMRREvaluator,
    DocumentNDCGEvaluator,
    DocumentRecallEvaluator,
)
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever  # noqa: E402
from haystack.document_stores.in_memory import InMemoryDocumentStore  # noqa: E402

from deadheat.integrations.haystack import TieAwareDocumentEvaluator  # noqa: E402

# Warnings of the host libraries are not under test.
pytestmark = pytest.mark.filterwarnings("default")

TEXTS = ["our dead heat", "the dead heat", "one dead heat", "race", "the race was won", "nothing"]
VERSION = tuple(map(int, version("haystack-ai").split(".")[:2]))
HOSTS = {
    "MRR": DocumentMRREvaluator(),
    "MAP": DocumentMAPEvaluator(),
    "nDCG": DocumentNDCGEvaluator(),
    "Recall": DocumentRecallEvaluator(mode="multi_hit"),
    "Success": DocumentRecallEvaluator(mode="single_hit"),
}


def make_documents(*scored):
    return [Document(content=text, score=score) for text, score in scored]


def test_pipeline_reports_tie_views():
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in TEXTS])
    search = Pipeline()
    search.add_component("bm25", InMemoryBM25Retriever(store))
    questions = {"heat": "the dead heat", "race": "race"}
    retrieved = [search.run({"bm25": {"query": q}})["bm25"]["documents"] for q in questions]
    assert retrieved[0][0].score == retrieved[0][1].score  # texts of the same length tie
    truth = [[Document(content=text)] for text in questions.values()]
    evaluation = Pipeline()
    evaluation.add_component("ties", TieAwareDocumentEvaluator(["MRR", "nDCG@2"]))
    evaluation.add_component("mrr", DocumentMRREvaluator())
    data = {"ground_truth_documents": truth, "retrieved_documents": retrieved}
    found = evaluation.run({"ties": data, "mrr": data})
    first = (1 + 1 / 2 + 1 / 3) / 3
    assert found["ties"]["individual_scores"] == pytest.approx([first, 1])
    assert found["ties"]["score"] == pytest.approx((first + 1) / 2)
    assert found["ties"]["metrics"]["MRR"] == found["ties"]["score"]
    assert found["ties"]["metrics"]["MRR_oblivious"] == pytest.approx(found["mrr"]["score"])
    assert found["ties"]["metrics"]["nDCG@2_range"] > 0
    assert isinstance(found["ties"]["result"], dh.Result)


CASES = [
    ([[("a", None)]], [[("b", 0.9), ("a", 0.8), ("c", 0.7)]]),
    ([[("a", None), ("x", None)], [("b", None)]], [[("a", 0.9)], [("c", 0.2), ("b", 0.1)]]),
    ([[("a", None)], [("a", None)], []], [[], [("b", 0.5)], [("a", 0.5)]]),
    ([[("a", None), ("a", None), ("b", None)]], [[("a", 0.9), ("c", 0.8), ("a", 0.7)]]),
    ([[("a", 1.0), ("b", 0.5), ("x", 2.0)]], [[("b", 0.9), ("c", 0.8), ("a", 0.7)]]),
]


@pytest.mark.parametrize(("truth", "retrieved"), CASES)
@pytest.mark.parametrize("name", HOSTS)
def test_values_match_haystack_without_ties(name, truth, retrieved):
    has_duplicates = any(len({text for text, _ in row}) < len(row) for row in [*truth, *retrieved])
    if VERSION < (3, 1) and (name == "MAP" or has_duplicates):
        pytest.skip("before 3.1, MAP divides by the documents found, and duplicates count again")
    data = [make_documents(*row) for row in truth], [make_documents(*row) for row in retrieved]
    theirs = HOSTS[name].run(*data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dh.DeadheatWarning)
        ours = TieAwareDocumentEvaluator([name]).run(*data)
    assert ours["individual_scores"] == pytest.approx(theirs["individual_scores"])
    assert ours["score"] == pytest.approx(theirs["score"])
    assert ours["metrics"][f"{name}_range"] == 0


def test_document_comparison_field():
    def document(id_, page, score=None):
        return Document(id=id_, content="text", meta={"file": {"page": page}}, score=score)

    truth = [[document("a", 7)]]
    retrieved = [[document("b", 7, 0.9), document("a", 8, 0.8)]]
    for field, value in (("id", 0.5), ("meta.file.page", 1.0), ("meta.file.none", 0.0)):
        evaluator = TieAwareDocumentEvaluator("MRR", document_comparison_field=field)
        assert evaluator.run(truth, retrieved)["score"] == value


def test_duplicate_document_counts_once_at_its_highest_score():
    truth = [make_documents(("a", None))]
    retrieved = [make_documents(("a", 0.2), ("b", 0.5), ("a", 0.9))]
    assert TieAwareDocumentEvaluator("MRR").run(truth, retrieved)["score"] == 1
    assert TieAwareDocumentEvaluator("Precision@3").run(truth, retrieved)["score"] == (
        pytest.approx(1 / 3)
    )


def test_pipeline_serialization_round_trip():
    evaluation = Pipeline()
    evaluation.add_component(
        "ties",
        TieAwareDocumentEvaluator(
            [dh.MAP(divisor="min") @ 3, "mrr"],
            ["expected", "range"],
            document_comparison_field="id",
        ),
    )
    trusted = {}
    if "allowed_modules" in inspect.signature(Pipeline.loads).parameters:
        trusted = {"allowed_modules": ["deadheat.integrations.haystack"]}
    loaded = Pipeline.loads(evaluation.dumps(), **trusted).get_component("ties")
    assert loaded.measures == ["MAP(divisor='min')@3", "MRR"]
    assert loaded.views == ["expected", "range"] and loaded.document_comparison_field == "id"


ONE = [make_documents(("a", None))]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TieAwareDocumentEvaluator("ndgc"), "did you mean nDCG"),
        (lambda: TieAwareDocumentEvaluator("MRR", ["mean"]), "views must be some of"),
        (
            lambda: TieAwareDocumentEvaluator("MRR", document_comparison_field="name"),
            "must be 'content', 'id' or 'meta.KEY', not 'name'",
        ),
        (lambda: TieAwareDocumentEvaluator("MRR").run([], []), "0 lists of ground_truth"),
        (lambda: TieAwareDocumentEvaluator("MRR").run(ONE, []), "1 lists .* and 0 of"),
        (lambda: TieAwareDocumentEvaluator("MRR").run(ONE, ONE), "question 0: .* has no score"),
        (
            lambda: TieAwareDocumentEvaluator("MRR").run(
                [make_documents(("a", 1.0), ("b", None))], [make_documents(("a", 1.0))]
            ),
            "give all or none",
        ),
        (
            lambda: TieAwareDocumentEvaluator("MRR").run(
                ONE, [make_documents(("a", float("nan")))]
            ),
            "NaN",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(dh.InputError, match=message):
        call()


def test_missing_or_unsupported_haystack_is_reported(monkeypatch):
    import importlib

    from deadheat._internal import packages
    from deadheat.integrations import haystack as ours

    def raise_not_found(package):
        raise packages.PackageNotFoundError(package)

    monkeypatch.setattr(packages, "requires", lambda _: ['haystack-ai<4,>=2; extra == "haystack"'])
    monkeypatch.setattr(packages, "version", raise_not_found)
    with pytest.raises(dh.MissingPackageError, match=r"'haystack-ai': .*\[haystack\]"):
        importlib.reload(ours)
    monkeypatch.setattr(packages, "version", lambda _: "1.26.4")
    with pytest.raises(dh.InputError, match=r"supports haystack-ai <4,>=2, but 1.26.4 is"):
        importlib.reload(ours)
