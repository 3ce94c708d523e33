"""`high_precision` for transformers models: chosen regime, warnings and scores."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
st = pytest.importorskip("sentence_transformers")

import tiny_models as tiny  # noqa: E402

import deadheat as dh  # noqa: E402
from deadheat.errors import DeadheatWarning, InputError  # noqa: E402

# Ignore warnings of the libraries under test.
pytestmark = pytest.mark.filterwarnings("ignore")


WORDS = ("heat", "race", "line", "horse", "mile", "nose", "stand", "dead", "won", "instant")
PAIRS = [
    (tiny.QUERIES[0], " ".join(words))
    for words in sorted({tuple(row) for row in np.random.default_rng(0).choice(WORDS, (200, 5))})
]
TEXTS = [" ".join(pair) for pair in PAIRS]


def load(path, kind="SequenceClassification", dtype=torch.bfloat16):
    auto = getattr(transformers, f"AutoModelFor{kind}")
    return auto.from_pretrained(path, dtype=dtype).eval()


def classify(model, tokenizer, pairs=PAIRS):
    inputs = tokenizer([list(pair) for pair in pairs], padding=True, return_tensors="pt")
    with torch.no_grad():
        return model(**inputs).logits


def rerank(model, tokenizer, texts):
    """Score texts as the published example code of Qwen3-Reranker does."""
    no = tokenizer.convert_tokens_to_ids("no")
    yes = tokenizer.convert_tokens_to_ids("yes")
    inputs = tokenizer(texts, padding=True, return_tensors="pt").to(model.device)
    with torch.no_grad():
        last = model(**inputs).logits[:, -1, :]
        pair = torch.stack([last[:, no], last[:, yes]], dim=1)
        return torch.nn.functional.log_softmax(pair, dim=1)[:, 1].exp()


def warning_messages(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [str(w.message) for w in caught if issubclass(w.category, DeadheatWarning)]


def n_distinct(scores):
    return len(scores.unique())


@pytest.fixture(scope="module", params=["bert", "xlm_roberta", "qwen_classifier"])
def checkpoint(request, tmp_path_factory):
    return getattr(tiny, request.param)(tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    """Return a causal model with tied input and output embeddings, and its tokenizer."""
    path = tiny.qwen(tmp_path_factory.mktemp("causal"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(path, padding_side="left")
    return load(path, "CausalLM"), tokenizer


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory):
    path = tiny.xlm_roberta(tmp_path_factory.mktemp("cross-encoder"))
    return st.CrossEncoder(str(path), device="cpu").to(torch.bfloat16).eval()


class TestClassifier:
    def test_default_computes_the_last_layer_in_fp32(self, checkpoint):
        model, tokenizer = load(checkpoint), transformers.AutoTokenizer.from_pretrained(checkpoint)
        head = next(
            layer
            for layer in (getattr(model, "score", None), getattr(model, "classifier", None))
            if layer is not None
        )
        layer = head if isinstance(head, torch.nn.Linear) else head.out_proj
        recorded = []
        hook = layer.register_forward_hook(lambda _, inputs, output: recorded.append(inputs[0]))
        own = classify(model, tokenizer)
        hook.remove()
        view = dh.high_precision(model)
        logits = classify(view, tokenizer)
        assert isinstance(view, type(model))
        assert "head" in repr(view) and "head" in view.scoring
        assert own.dtype == torch.bfloat16 and logits.dtype == torch.float32
        hidden, weight = recorded[0].double(), layer.weight.double()
        exact = hidden @ weight.T + (0 if layer.bias is None else layer.bias.double())
        if exact.ndim == 3:  # a decoder uses the logits of the last token before the padding
            lengths = [len(tokenizer(*pair)["input_ids"]) for pair in PAIRS]
            exact = torch.stack([exact[i, n - 1] for i, n in enumerate(lengths)])
        torch.testing.assert_close(logits.double(), exact, rtol=1e-5, atol=1e-5)
        assert n_distinct(logits) > n_distinct(own)

    def test_hps_casts_logits_to_fp32(self, checkpoint):
        model, tokenizer = load(checkpoint), transformers.AutoTokenizer.from_pretrained(checkpoint)
        view = dh.high_precision(model, "hps")
        logits = classify(view, tokenizer)
        assert logits.dtype == torch.float32
        assert torch.equal(logits, classify(model, tokenizer).float())
        assert "hps" in repr(view)
        with pytest.raises(InputError, match="return_dict"):
            view(torch.tensor([[1, 2, 3]]), return_dict=False)

    def test_context_manager_changes_the_model_temporarily(self, checkpoint):
        model, tokenizer = load(checkpoint), transformers.AutoTokenizer.from_pretrained(checkpoint)
        own, before = classify(model, tokenizer), (type(model), dict(model.named_modules()))
        view = dh.high_precision(model)
        with view:
            assert torch.equal(classify(model, tokenizer), classify(view, tokenizer))
            assert "head" in repr(model)
        assert (type(model), dict(model.named_modules())) == before
        assert torch.equal(classify(model, tokenizer), own)
        again = pickle.loads(pickle.dumps(view))
        assert torch.equal(classify(again, tokenizer), classify(view, tokenizer))

    def test_fp32_model_gives_a_warning(self, checkpoint):
        model = load(checkpoint, dtype=torch.float32)
        for regime in (None, "hps"):
            (message,) = warning_messages(lambda regime=regime: dh.high_precision(model, regime))
            assert "FP32" in message and "use the model as it is" in message
        assert warning_messages(lambda: dh.high_precision(load(checkpoint))) == []

    def test_logits_are_cast_without_a_linear_last_layer(self, tmp_path):
        model = load(tiny.bert(tmp_path))
        model.classifier = torch.nn.Sequential(model.classifier, torch.nn.Tanh())
        view = dh.high_precision(model)
        assert ", hps:" in repr(view)
        with pytest.raises(InputError, match="no plain linear layer"):
            dh.high_precision(model, "head")


class TestCausal:
    def test_published_code_runs_inside_the_context_manager(self, causal):
        model, tokenizer = causal
        own = rerank(model, tokenizer, TEXTS)
        with dh.high_precision(model, tokenizer=tokenizer, tokens=("no", "yes")):
            scores = rerank(model, tokenizer, TEXTS)
            wide = model(torch.tensor([[1, 2, 3]])).logits
        assert n_distinct(scores) > n_distinct(own)
        assert wide.shape == (1, 3, model.config.vocab_size)
        rows = tokenizer.convert_tokens_to_ids(["no", "yes"])
        assert wide.isfinite().sum(dim=-1).tolist() == [[2, 2, 2]]
        assert wide[..., rows].isfinite().all()
        torch.testing.assert_close(
            wide[..., rows], model(torch.tensor([[1, 2, 3]])).logits[..., rows].float(),
            rtol=0.02, atol=0.02,
        )  # fmt: skip
        assert torch.equal(rerank(model, tokenizer, TEXTS), own)

    def test_hps_has_more_ties_than_the_head_regime(self, causal):
        """HPS, as the paper defines it, keeps the ties that the last layer creates."""
        model, tokenizer = causal
        with dh.high_precision(model, "hps", tokenizer=tokenizer, tokens=("no", "yes")):
            hps = rerank(model, tokenizer, TEXTS)
        assert hps.dtype == torch.float32
        with dh.high_precision(model, tokenizer=tokenizer, tokens=("no", "yes")):
            assert n_distinct(rerank(model, tokenizer, TEXTS)) > n_distinct(hps)

    def test_token_ids_work_without_a_tokenizer(self, causal):
        model, tokenizer = causal
        ids = tokenizer.convert_tokens_to_ids(["no", "yes"])
        assert "head" in repr(dh.high_precision(model, tokens=ids))

    def test_unsupported_models_and_options_are_rejected(self, causal, tmp_path):
        model, tokenizer = causal
        for options, message in (
            ({}, r"needs the tokens.*tokens=\('no', 'yes'\)"),
            ({"tokens": ("no", "yes")}, "tokens of the tokenizer"),
            ({"tokens": "yes", "tokenizer": tokenizer}, "tokens must be ids, or words"),
            ({"tokens": ("no", "perhaps"), "tokenizer": tokenizer}, "not .*'perhaps'"),
            ({"tokens": [10**6]}, "none with the number 1000000"),
        ):
            with pytest.raises(InputError, match=message):
                dh.high_precision(model, **options)
        classifier = load(tiny.bert(tmp_path / "bert"))
        with pytest.raises(InputError, match="such a model only"):
            dh.high_precision(classifier, tokens=[1, 2])
        with pytest.raises(InputError, match="low precision"):
            dh.low_precision(classifier)
        encoder = transformers.AutoModel.from_pretrained(tiny.bert_encoder(tmp_path / "encoder"))
        with pytest.raises(InputError, match="gave no logits"):
            dh.high_precision(encoder)


class TestCrossEncoder:
    def test_default_is_the_head_regime(self, cross_encoder):
        default, head, hps = (dh.high_precision(cross_encoder, r) for r in (None, "head", "hps"))
        scores, same, coarse = (v.predict(PAIRS) for v in (default, head, hps))
        assert (scores == same).all()
        assert len(set(scores.tolist())) > len(set(coarse.tolist()))
        assert repr(default) == repr(head) != repr(hps)
        assert ", head:" in default.scoring and ", hps:" in repr(hps)

    def test_bi_encoder_uses_hps(self, tmp_path):
        path = tiny.add_pooling(tiny.bert_encoder(tmp_path / "encoder"), "mean")
        view = dh.high_precision(st.SentenceTransformer(str(path), device="cpu").bfloat16())
        assert ", hps:" in repr(view)
        with pytest.raises(InputError, match="not by logits"):
            dh.high_precision(view, scores="logit")

    @pytest.mark.parametrize("regime", ["hps", "head"])
    def test_logit_scores_do_not_saturate(self, cross_encoder, regime):
        model = copy.deepcopy(cross_encoder)
        model.model.classifier.out_proj.bias.data += 30  # sigmoid(30) is 1 in FP32
        plain, view = (
            dh.high_precision(model, regime),
            dh.high_precision(model, regime, scores="logit"),
        )
        assert set(plain.predict(PAIRS).tolist()) == {1.0}
        logits = view.predict(PAIRS)
        assert logits.dtype == "float32" and len(set(logits.tolist())) > 1
        identity = plain.predict(PAIRS, activation_fn=torch.nn.Identity())
        assert logits.tolist() == identity.tolist()
        assert f"{regime}-logit" in repr(view) and "log-odds" in view.scoring

    def test_logit_score_of_two_labels_is_their_difference(self, tmp_path):
        path = tiny.xlm_roberta(tmp_path / "two", labels=2)
        model = st.CrossEncoder(str(path), device="cpu").to(torch.bfloat16).eval()
        logits = dh.high_precision(model).predict(PAIRS)
        scores = dh.high_precision(model, scores="logit").predict(PAIRS, apply_softmax=True)
        assert (scores[:, 1] == logits[:, 1] - logits[:, 0]).all()
        assert (scores[:, 0] == -scores[:, 1]).all()
        path = tiny.xlm_roberta(tmp_path / "three", labels=3)
        with pytest.raises(InputError, match="3 labels"):
            dh.high_precision(st.CrossEncoder(str(path), device="cpu"), scores="logit")

    def test_unchanged_scores_give_one_warning(self, cross_encoder):
        messages = warning_messages(lambda: dh.high_precision(cross_encoder, "hps"))
        if int(st.__version__.partition(".")[0]) >= 6:
            (message,) = messages
            assert "already scores in FP32" in message
            assert "regime='head'" in message
        assert warning_messages(lambda: dh.high_precision(cross_encoder)) == []
        assert warning_messages(lambda: dh.high_precision(cross_encoder, scores="logit")) == []
        assert (
            warning_messages(lambda: dh.high_precision(cross_encoder, "hps", scores="logit")) == []
        )

    def test_unsupported_head_falls_back_to_hps(self, cross_encoder):
        """The head regime needs a plain linear layer; otherwise logits are cast, with a warning."""
        model = copy.deepcopy(cross_encoder)
        layer = model.model.classifier.out_proj
        layer.register_forward_hook(lambda _, inputs, output: output * 0.5)
        messages = warning_messages(lambda: dh.high_precision(model))
        assert ", hps:" in repr(dh.high_precision(model))
        if int(st.__version__.partition(".")[0]) >= 6:
            (message,) = messages
            assert "FP32 weights" in message and "a plain linear layer" in message

    def test_invalid_options_are_rejected(self, cross_encoder):
        with pytest.raises(InputError, match="'probability' or 'logit'"):
            dh.high_precision(cross_encoder, scores="odds")
        with pytest.raises(InputError, match=r"only, not .*CrossEncoder"):
            dh.high_precision(cross_encoder, tokens=[1])
        for other in (torch.nn.Linear(2, 1), "BAAI/bge-reranker-v2-m3"):
            with pytest.raises(InputError, match=r"transformers PreTrainedModel, FlagEmbedding"):
                dh.high_precision(other)


def wikiqa(shared, number):
    folder = shared / "wikiqa" / "test"
    queries, documents = (
        (folder / name).read_text(encoding="utf-8").split("\n")[:number]
        for name in ("a.toks", "b.toks")
    )
    return list(zip(queries, documents, strict=True))


def test_trained_cross_encoder_has_fewer_ties(shared):
    path = shared / "models" / "wikiqa-cross-encoder"
    model, tokenizer = load(path), transformers.AutoTokenizer.from_pretrained(path)
    pairs = wikiqa(shared, 64)
    own, view = (
        classify(model, tokenizer, pairs),
        classify(dh.high_precision(model), tokenizer, pairs),
    )
    assert n_distinct(own) < n_distinct(view) == len(set(pairs))


@pytest.mark.slow
def test_real_causal_model_has_fewer_ties(shared, smollm2):
    model, tokenizer = smollm2._model, smollm2._tokenizer
    prompt = smollm2._prompt
    texts = [
        prompt.prefix + prompt.fill(query, document) + prompt.suffix
        for query, document in wikiqa(shared, 24)
    ]
    own = rerank(model, tokenizer, texts)
    with dh.high_precision(model, tokenizer=tokenizer, tokens=("no", "yes")):
        scores = rerank(model, tokenizer, texts)
    assert n_distinct(own) < n_distinct(scores)
    assert torch.equal(rerank(model, tokenizer, texts), own)
