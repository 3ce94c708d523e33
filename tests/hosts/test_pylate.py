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

# What the library warns about is its own.
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
    """Score one query with every text; each text alone, since they differ in length."""
    query = model.encode(TEXTS[:1], is_query=True, convert_to_tensor=True)
    documents = model.encode(TEXTS, is_query=False, convert_to_tensor=True)
    return torch.stack([function(query[0][None], document[None])[0, 0] for document in documents])


def test_both_ways_to_score_are_in_fp32(model):
    low = score(model, scores.colbert_scores)
    assert low.dtype == torch.bfloat16
    view = dh.high_precision(model)
    for function in (scores.colbert_scores, view.similarity):
        high = score(view, function)
        assert high.dtype == torch.float32
        assert len(low.unique()) < len(TEXTS) / 2 < 0.95 * len(TEXTS) < len(high.unique())


def test_embeddings_of_the_model_itself_are_cast_by_the_views_similarity(model):
    def similarity(query, document):
        return dh.high_precision(model).similarity(query, document)

    def in_fp32(query, document):
        return scores.colbert_scores(query.float(), document.float())

    assert torch.equal(score(model, similarity), score(model, in_fp32))


def test_a_block_holds_for_the_model_itself(model):
    with dh.high_precision(model):
        assert score(model, scores.colbert_scores).dtype == torch.float32
    assert score(model, scores.colbert_scores).dtype == torch.bfloat16


def test_a_model_in_fp32_has_nothing_to_gain(model):
    with pytest.warns(dh.DeadheatWarning, match="all weights of this ColBERT are FP32"):
        dh.high_precision(copy.deepcopy(model).float())


def test_maxsim_is_not_scored_in_low_precision(model):
    with pytest.raises(InputError, match="cannot score a ColBERT in low precision"):
        dh.low_precision(model)


def test_check_measures_what_high_precision_leaves(model):
    from deadheat.lab.datasets import RetrievalDataset

    corpus = {f"d{i}": text for i, text in enumerate(TEXTS)}
    judged, lists = {"q": {"d0": 1, "d7": 1}}, {"q": list(corpus)}
    data = RetrievalDataset("tiny", {"q": TEXTS[0]}, corpus, judged, lists)
    found = dh.check(model, data, "MAP", batch_size=32)  # that of encode
    for regime, own in {found.now: model, "hps": dh.high_precision(model)}.items():
        values = score(own, own.similarity).tolist()
        run = {"q": dict(zip(corpus, values, strict=True))}
        assert found.regimes[regime].result["MAP"] == dh.evaluate(judged, run, ["MAP"])["MAP"]
    assert found.regimes["hps"].tied < found.regimes[found.now].tied
    assert "as pylate" in found.effect
