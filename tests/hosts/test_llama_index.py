"""LlamaIndex: the tie-aware evaluator over real in-memory indexes."""

from __future__ import annotations

import warnings

import pytest
from needed import import_host

import deadheat as dh

import_host("llama-index")

from llama_index.core import MockEmbedding, VectorStoreIndex  # noqa: E402
from llama_index.core.base.embeddings.base import BaseEmbedding  # noqa: E402
from llama_index.core.evaluation import RetrieverEvaluator as Original  # noqa: E402
from llama_index.core.postprocessor import SimilarityPostprocessor  # noqa: E402
from llama_index.core.postprocessor.types import BaseNodePostprocessor  # noqa: E402
from llama_index.core.retrievers import BaseRetriever  # noqa: E402
from llama_index.core.schema import NodeWithScore, TextNode  # noqa: E402

from deadheat.integrations.llama_index import RetrieverEvaluator, result_of  # noqa: E402

# Warnings of the host libraries are not under test.
pytestmark = pytest.mark.filterwarnings("default")

NAMES = ["hit_rate", "mrr", "precision", "recall", "ap", "ndcg"]


class LetterEmbedding(BaseEmbedding):
    """Embed a text by the letters that it contains, so that many texts tie."""

    def _get_text_embedding(self, text):
        return [1.0 if letter in text else 0.0 for letter in "abcdefgh"]

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


class FixedRetriever(BaseRetriever):
    """Retrieve fixed nodes with fixed scores."""

    def __init__(self, scores):
        self.scores = scores
        super().__init__()

    def _retrieve(self, _):
        return [
            NodeWithScore(node=TextNode(id_=name, text=name), score=score)
            for name, score in self.scores
        ]


def build_index(texts, embedding=None):
    nodes = [TextNode(id_=text, text=text) for text in texts]
    return VectorStoreIndex(nodes, embed_model=embedding or LetterEmbedding())


def test_views_of_a_tied_list():
    retriever = build_index(["ab", "ac", "ad", "e"]).as_retriever(similarity_top_k=4)
    evaluator = RetrieverEvaluator.from_metric_names(NAMES, retriever=retriever)
    values = evaluator.evaluate("a", expected_ids=["ac"]).metric_vals_dict
    assert values["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert (values["mrr_best"], values["mrr_worst"]) == (1, pytest.approx(1 / 3))
    assert values["hit_rate"] == values["recall"] == 1 and values["precision"] == 0.25
    original = Original.from_metric_names(NAMES, retriever=retriever)
    theirs = original.evaluate("a", expected_ids=["ac"]).metric_vals_dict
    assert {name: values[f"{name}_oblivious"] for name in NAMES} == pytest.approx(theirs)
    assert theirs["mrr"] != values["mrr"]


def test_values_match_llama_index_without_ties():
    retriever = FixedRetriever([(name, 1 - i / 10) for i, name in enumerate("fbadce")])
    evaluator = RetrieverEvaluator.from_metric_names(NAMES, ["expected"], retriever=retriever)
    original = Original.from_metric_names(NAMES, retriever=retriever)
    for expected in (["a"], ["a", "e", "x"], ["x"], list("abcdef")):
        theirs = original.evaluate("q", expected_ids=expected)
        ours = evaluator.evaluate("q", expected_ids=expected)
        assert ours.metric_vals_dict == pytest.approx(theirs.metric_vals_dict)
        assert ours.retrieved_ids == theirs.retrieved_ids
        assert ours.retrieved_texts == theirs.retrieved_texts


def test_postprocessors_are_applied_first():
    retriever = build_index(["ab", "ac", "abcdefgh"]).as_retriever(similarity_top_k=3)
    options = {
        "retriever": retriever,
        "node_postprocessors": [SimilarityPostprocessor(similarity_cutoff=0.5)],
    }
    evaluator = RetrieverEvaluator.from_metric_names(["mrr"], ["expected"], **options)
    result = evaluator.evaluate("a", expected_ids=["abcdefgh"])
    original = Original.from_metric_names(["mrr"], **options)
    theirs = original.evaluate("a", expected_ids=["abcdefgh"])
    assert sorted(result.retrieved_ids) == sorted(theirs.retrieved_ids) == ["ab", "ac"]
    assert result.metric_vals_dict == theirs.metric_vals_dict == {"mrr": 0}


def test_result_of_many_queries():
    index = build_index(["ab", "ac", "ad", "b", "bc"])
    retriever = index.as_retriever(similarity_top_k=5)
    evaluator = RetrieverEvaluator.from_metric_names(["mrr@3"], retriever=retriever)
    queries = {"a": ["ac"], "b": ["b", "ab"], "c": ["ad"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dh.DeadheatWarning)
        results = [evaluator.evaluate(q, expected_ids=ids) for q, ids in queries.items()]
        result = result_of(results, ["MRR@3", "nDCG@3"])
    assert result.query_ids == list(queries)
    mean = sum(r.metric_vals_dict["mrr@3"] for r in results) / 3
    assert result["MRR@3"].expected == pytest.approx(mean)
    assert result["nDCG@3"].range > 0


def test_llama_index_metrics_alone():
    from llama_index.core.evaluation.retrieval.metrics import MRR

    retriever = build_index(["ab", "ac"], MockEmbedding(embed_dim=4)).as_retriever()
    evaluator = RetrieverEvaluator(metrics=[MRR()], retriever=retriever)
    values = evaluator.evaluate("a", expected_ids=["ab"]).metric_vals_dict
    assert list(values) == ["mrr"]


def test_llama_index_metrics_with_tie_aware_metrics():
    from llama_index.core.evaluation.retrieval.metrics import MRR

    class Own(MRR):
        metric_name = "own"

    evaluator = RetrieverEvaluator.from_metric_names(
        ["mrr"], ["expected"], metrics=[Own()], retriever=FixedRetriever([("a", 1.0), ("b", 1.0)])
    )
    values = evaluator.evaluate("q", expected_ids=["b"]).metric_vals_dict
    assert values == {"mrr": 0.75, "own": 0.5}


def test_a_query_that_retrieves_nothing_counts_as_0():
    evaluator = RetrieverEvaluator.from_metric_names(["mrr"], retriever=FixedRetriever([]))
    values = evaluator.evaluate("q", expected_ids=["a"]).metric_vals_dict
    assert set(values.values()) == {0.0} and len(values) == 7


def test_list_cut_inside_a_tie_group_warns():
    retriever = build_index(["ab", "ac", "ad"]).as_retriever(similarity_top_k=2)
    evaluator = RetrieverEvaluator.from_metric_names(["mrr"], retriever=retriever)
    missed = ({"ab", "ac", "ad"} - {n.node_id for n in retriever.retrieve("a")}).pop()
    with pytest.warns(dh.DeadheatWarning, match="cut inside a tie group"):
        evaluator.evaluate("a", expected_ids=[missed])


class DuplicateNodes(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes * 2


def evaluate_list(scores, expected=("a",), names=("mrr",), postprocessors=None):
    evaluator = RetrieverEvaluator.from_metric_names(
        names, retriever=FixedRetriever(scores), node_postprocessors=postprocessors
    )
    return evaluator.evaluate("question", expected_ids=list(expected))


def evaluate_with_llama_index():
    original = Original.from_metric_names(["mrr"], retriever=FixedRetriever([("a", 1.0)]))
    return original.evaluate("question", expected_ids=["a"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluate_list([("a", None)]), "'question': node 'a' has no score"),
        (
            lambda: evaluate_list([("a", 1.0)], postprocessors=[DuplicateNodes()]),
            "node 'a' was retrieved twice",
        ),
        (lambda: evaluate_list([("a", float("nan"))]), "NaN"),
        (lambda: evaluate_list([("a", 1.0)], expected=[]), "no expected id"),
        (lambda: evaluate_list([("a", 1.0)], names=["ndgc"]), "did you mean nDCG"),
        (
            lambda: RetrieverEvaluator.from_metric_names(
                ["mrr"], ["mean"], retriever=FixedRetriever([])
            ),
            "views must be some of",
        ),
        (lambda: result_of([evaluate_with_llama_index()], "MRR"), "'question' has no scores"),
        (lambda: result_of([evaluate_list([("a", 1.0)])] * 2, "MRR"), "evaluated twice"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(dh.InputError, match=message):
        call()


def test_missing_or_unsupported_llama_index_is_reported(monkeypatch):
    import importlib

    from deadheat._internal import packages
    from deadheat.integrations import llama_index as ours

    def raise_not_found(package):
        raise packages.PackageNotFoundError(package)

    needed = ['llama-index-core<0.15,>=0.12; extra == "llama-index"']
    monkeypatch.setattr(packages, "requires", lambda _: needed)
    monkeypatch.setattr(packages, "version", raise_not_found)
    with pytest.raises(dh.MissingPackageError, match=r"'llama-index-core': .*\[llama-index\]"):
        importlib.reload(ours)
    monkeypatch.setattr(packages, "version", lambda _: "0.9.48")
    with pytest.raises(dh.InputError, match=r"supports llama-index-core .*, but 0.9.48 is"):
        importlib.reload(ours)
