"""PyLate's ColBERT in high precision; `make test-pylate` runs this."""

from __future__ import annotations

import copy

import numpy as np
import pytest

reason = "PyLate is not installed; it needs an older sentence-transformers: `make test-pylate`"
pylate = pytest.importorskip("pylate", reason=reason)

import tiny_models  # noqa: E402
import torch  # noqa: E402
from pylate import models, scores  # noqa: E402

import deadheat as dh  # noqa: E402
from deadheat.errors import InputError  # noqa: E402

# Warnings of the library are not under test.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("error::deadheat.errors.DeadheatWarning"),
]

WORDS = ("heat", "race", "line", "horse", "mile", "nose", "stand", "dead", "won", "instant")
TEXTS = sorted({" ".join(words) for words in np.random.default_rng(0).choice(WORDS, (300, 5))})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny_models.bert_encoder(tmp_path_factory.mktemp("colbert") / "encoder")
    return models.ColBERT(str(folder), device="cpu").to(torch.bfloat16).eval()


def score(model, function):
    """Score one query with every text, one text at a time because their lengths differ."""
    query = model.encode(TEXTS[:1], is_query=True, convert_to_tensor=True)
    documents = model.encode(TEXTS, is_query=False, convert_to_tensor=True)
    return torch.stack([function(query[0][None], document[None])[0, 0] for document in documents])


def test_high_precision_scores_are_fp32(model):
    low = score(model, scores.colbert_scores)
    assert low.dtype == torch.bfloat16
    view = dh.high_precision(model)
    for function in (scores.colbert_scores, view.similarity):
        high = score(view, function)
        assert high.dtype == torch.float32
        assert len(low.unique()) < len(TEXTS) / 2 < 0.95 * len(TEXTS) < len(high.unique())


def test_similarity_of_the_view_casts_bf16_embeddings_to_fp32(model):
    def similarity(query, document):
        return dh.high_precision(model).similarity(query, document)

    def in_fp32(query, document):
        return scores.colbert_scores(query.float(), document.float())

    assert torch.equal(score(model, similarity), score(model, in_fp32))


def test_context_manager_applies_to_the_original_model(model):
    with dh.high_precision(model):
        assert score(model, scores.colbert_scores).dtype == torch.float32
    assert score(model, scores.colbert_scores).dtype == torch.bfloat16


def test_fp32_model_warns(model):
    with pytest.warns(dh.DeadheatWarning, match="ColBERT are FP32"):
        dh.high_precision(copy.deepcopy(model).float())


def test_low_precision_is_refused(model):
    with pytest.raises(InputError, match="ColBERT in low precision"):
        dh.low_precision(model)


def test_check_matches_direct_scoring_in_each_regime(model):
    from deadheat.lab.datasets import RetrievalDataset

    corpus = {f"d{i}": text for i, text in enumerate(TEXTS)}
    judged, lists = {"q": {"d0": 1, "d7": 1}}, {"q": list(corpus)}
    data = RetrievalDataset("tiny", {"q": TEXTS[0]}, corpus, judged, lists)
    report = dh.check(model, data, "MAP", batch_size=32)  # the default of encode
    for regime, scorer in {report.now: model, "hps": dh.high_precision(model)}.items():
        values = score(scorer, scorer.similarity).tolist()
        run = {"q": dict(zip(corpus, values, strict=True))}
        assert report.regimes[regime].result["MAP"] == dh.evaluate(judged, run, ["MAP"])["MAP"]
    assert report.regimes["hps"].tied < report.regimes[report.now].tied
    assert "as pylate" in report.effect
