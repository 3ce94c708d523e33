"""Rerankers of FlagEmbedding and AnswerDotAI's `rerankers` with their last layer in FP32."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from needed import import_host

import_host("rerankers")

import tiny_models  # noqa: E402
import torch  # noqa: E402

import deadheat as dh  # noqa: E402
from deadheat.errors import DeadheatWarning, InputError  # noqa: E402

# Warnings of the libraries are not under test.
pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = ("heat", "race", "line", "horse", "mile", "nose", "stand", "dead", "won", "instant")
TEXTS = sorted({" ".join(words) for words in np.random.default_rng(0).choice(WORDS, (150, 5))})
QUERY = "what is a dead heat"


@pytest.fixture(scope="module", params=["flag", "flag-llm", "rerankers"])
def reranker(request, tmp_path_factory):
    """A reranker in BF16, and a function that returns the score of each text."""
    folder = tmp_path_factory.mktemp(request.param) / "model"
    if request.param == "rerankers":
        from rerankers import Reranker

        path = str(tiny_models.xlm_roberta(folder))
        options = {"dtype": torch.bfloat16, "device": "cpu", "verbose": 0}
        return Reranker(path, model_type="cross-encoder", **options), rank
    from FlagEmbedding import FlagLLMReranker, FlagReranker

    if request.param == "flag":
        model = FlagReranker(str(tiny_models.xlm_roberta(folder)), use_fp16=True, devices="cpu")
        model.model.bfloat16()  # on a CPU the library ignores use_fp16
        return model, compute_score
    tokenizer = tiny_models.qwen_tokenizer(words=("Yes", "No"))
    path = str(tiny_models.qwen(folder, tokenizer))
    return FlagLLMReranker(path, use_bf16=True, devices="cpu"), compute_score


def compute_score(reranker):
    return reranker.compute_score([(QUERY, text) for text in TEXTS])


def rank(reranker):
    results = reranker.rank(QUERY, TEXTS, doc_ids=list(range(len(TEXTS)))).results
    return [result.score for result in sorted(results, key=lambda result: result.doc_id)]


def collect_warnings(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [str(w.message) for w in caught if issubclass(w.category, DeadheatWarning)]


def test_view_has_more_distinct_scores(reranker):
    model, score = reranker
    original = score(model)
    view = dh.high_precision(model)
    scores = score(view)
    assert isinstance(view, type(model)) and ", head:" in repr(view)
    assert len(set(original)) < len(set(scores))
    np.testing.assert_allclose(scores, original, rtol=0.02, atol=0.02)
    assert score(model) == original


def test_context_manager_applies_to_the_original_reranker(reranker):
    model, score = reranker
    original, network = score(model), model.model
    view = dh.high_precision(model)
    with view:
        assert score(model) == score(view) != original
        with pytest.raises(InputError, match="inside a precision block"):
            dh.high_precision(model)
    assert score(model) == original and model.model is network


def test_a_view_that_changes_nothing_warns(reranker):
    model, score = reranker
    (text,) = collect_warnings(lambda: dh.high_precision(model, "hps"))
    assert "already scores in FP32" in text and "regime='head'" in text
    assert score(dh.high_precision(model, "hps")) == score(model)
    assert collect_warnings(lambda: dh.high_precision(model)) == []


def test_fp32_model_warns(tmp_path):
    from FlagEmbedding import FlagReranker

    model = FlagReranker(str(tiny_models.xlm_roberta(tmp_path / "model")), devices="cpu")
    (text,) = collect_warnings(lambda: dh.high_precision(model))
    assert "FP32" in text and "use the model as it is" in text


def test_other_rerankers_are_refused():
    from rerankers.models.ranker import BaseRanker

    class Other(BaseRanker):
        def __init__(self):
            pass

        def score(self, query, doc):
            return 0.0

        def rank(self, query, docs, doc_ids=None):
            return []

    with pytest.raises(InputError, match="rerankers TransformerRanker"):
        dh.high_precision(Other())
