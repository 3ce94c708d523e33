"""Views of tiny real sentence-transformers models, built from configurations."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

from deadheat.errors import DeadheatWarning, InputError
from deadheat.integrations.sentence_transformers import high_precision, low_precision
from deadheat.scoring import FORMATS, REGIMES

torch = pytest.importorskip("torch")
st = pytest.importorskip("sentence_transformers")

import tokenizers  # noqa: E402
import transformers  # noqa: E402
from packaging.version import Version  # noqa: E402

# Ignore warnings of the libraries; `TestWarnings` covers the warnings of deadheat.
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::deadheat.errors.DeadheatWarning"),
]
# From version 6 on the library casts logits and embeddings to FP32 by itself.
CASTS = Version(st.__version__) >= Version("6")

VOCABULARY = "yes no system user query document the cat dog sat on mat ran far tall red blue tree"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
TEMPLATE = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}"
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "initializer_range": 0.4,
}
TEXTS = [" ".join(words) for words in np.random.default_rng(0).choice(VOCABULARY.split(), (200, 6))]
PAIRS = [(TEXTS[0], text) for text in TEXTS]


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def save(folder, model_class, config):
    word_level = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token="[UNK]"))
    word_level.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    word_level.train_from_iterator(
        [VOCABULARY], tokenizers.trainers.WordLevelTrainer(special_tokens=SPECIAL)
    )
    word_level.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=word_level,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        chat_template=TEMPLATE,
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    model_class(config(vocab_size=len(tokenizer), **SHAPE)).save_pretrained(folder)
    return str(folder)


def classifier(folder, labels, architecture="Bert"):
    model_class = getattr(transformers, f"{architecture}ForSequenceClassification")
    config = getattr(transformers, f"{architecture}Config")
    path = save(folder, model_class, lambda **shape: config(num_labels=labels, **shape))
    return st.CrossEncoder(path, device="cpu").to(torch.bfloat16).eval()


@pytest.fixture(scope="module")
def one_logit(tmp_path_factory):
    return classifier(tmp_path_factory.mktemp("one"), 1)


@pytest.fixture(scope="module")
def two_logits(tmp_path_factory):
    return classifier(tmp_path_factory.mktemp("two"), 2, "XLMRoberta")


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    modules = pytest.importorskip(
        "sentence_transformers.cross_encoder.modules", reason="causal rerankers need 5.4 or later"
    )
    from sentence_transformers.base.modules import Transformer

    def config(**shape):
        return transformers.Qwen3Config(num_key_value_heads=1, head_dim=16, **shape)

    path = save(tmp_path_factory.mktemp("causal"), transformers.Qwen3ForCausalLM, config)
    body = Transformer(path, transformer_task="text-generation")
    yes, no = body.tokenizer.convert_tokens_to_ids(["yes", "no"])
    score = modules.LogitScore(true_token_id=yes, false_token_id=no)
    return st.CrossEncoder(modules=[body, score], device="cpu").to(torch.bfloat16).eval()


@pytest.fixture(scope="module")
def bi_encoder(tmp_path_factory):
    path = save(tmp_path_factory.mktemp("bi"), transformers.BertModel, transformers.BertConfig)
    return st.SentenceTransformer(path, device="cpu").to(torch.bfloat16).eval()


def predict(model, **options):
    return model.predict(PAIRS, batch_size=len(PAIRS), convert_to_tensor=True, **options)


def logits_of(model):
    own = model.activation_fn
    logits = predict(model, activation_fn=torch.nn.Identity())
    model.activation_fn = own  # version 5.0 keeps the argument
    return logits


def record_layer(model, layer):
    """Return the input and output of a layer while the model scores PAIRS, in batch order."""
    records = []
    hook = layer.register_forward_hook(lambda _, args, output: records.append((args[0], output)))
    predict(model)
    hook.remove()
    return records[0]


def assert_same_scores(scores, expected):
    """Compare sorted scores, because the library sorts a batch by length."""
    scores, expected = scores.double().sort().values, expected.double().sort().values
    torch.testing.assert_close(scores, expected, rtol=1e-6, atol=0)


def snapshot(model):
    return {
        "class": type(model),
        "attributes": {k: v for k, v in vars(model).items() if k != "_modules"},
        "modules": dict(model.named_modules()),
        "hooks": [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()],
        "tensors": {k: (id(v), v.clone()) for k, v in model.state_dict(keep_vars=True).items()},
    }


def assert_unchanged(model, before):
    after = snapshot(model)
    tensors, others = before["tensors"], before.keys() - {"tensors"}
    assert all(before[part] == after[part] for part in others)
    assert tensors.keys() == after["tensors"].keys()
    for name, (identity, values) in after["tensors"].items():
        assert identity == tensors[name][0]
        assert torch.equal(values, tensors[name][1])


VIEWS = {
    "hps": lambda model: high_precision(model, "hps"),
    "head": lambda model: high_precision(model, "head"),
    "low": lambda model: low_precision(model, "fp8_e5m2"),
}


class TestOneLogit:
    def test_high_precision_is_the_fp32_sigmoid_of_the_logits(self, one_logit):
        logits = logits_of(one_logit)
        assert torch.equal(logits, logits.bfloat16().float())
        scores = predict(high_precision(one_logit, "hps"))
        assert scores.dtype == torch.float32
        assert torch.equal(scores, logits.double().sigmoid().float())

    def test_equal_logits_get_equal_scores_in_any_batch(self, one_logit):
        view = high_precision(one_logit, "hps")
        scores = view.predict(PAIRS * 2, batch_size=33)
        logits = view.predict(PAIRS * 2, batch_size=33, activation_fn=torch.nn.Identity())
        assert len(np.unique(scores)) == len(np.unique(logits)) < len(logits)

    @pytest.mark.parametrize("dtype", [None, "bf16", "fp16"])
    def test_low_precision_is_the_torch_sigmoid_in_that_dtype(self, one_logit, dtype):
        logits = logits_of(one_logit)
        format = FORMATS[dtype or "bf16"]
        scores = predict(low_precision(one_logit, dtype))
        assert scores.dtype == format.torch
        assert torch.equal(scores, torch.sigmoid(logits.to(format.torch)))

    def test_fp8_scores_are_fp8_values(self, one_logit):
        scores = predict(low_precision(one_logit, "fp8"))
        assert torch.equal(scores, scores.to(torch.float8_e4m3fn).float())
        assert len(scores.unique()) < len(predict(low_precision(one_logit)).unique())

    def test_fp32_head_uses_the_bf16_hidden_state(self, one_logit):
        layer = one_logit.model.classifier
        hidden, _ = record_layer(one_logit, layer)
        assert hidden.dtype == torch.bfloat16
        logits = hidden.double() @ layer.weight.double().T + layer.bias.double()
        assert_same_scores(predict(high_precision(one_logit, "head")), logits[:, 0].sigmoid())

    def test_ties_decrease_from_native_to_hps_to_head(self, one_logit):
        views = (
            low_precision(one_logit),
            high_precision(one_logit, "hps"),
            VIEWS["head"](one_logit),
        )
        native, hps, head = (len(predict(view).unique()) for view in views)
        assert native < hps < head

    def test_custom_activation_runs_in_the_scoring_dtype(self, one_logit):
        logits = logits_of(one_logit)
        softplus = torch.nn.Softplus()
        low = predict(low_precision(one_logit), activation_fn=softplus)
        assert torch.equal(low, softplus(logits.bfloat16()))
        high = predict(high_precision(one_logit, "hps"), activation_fn=softplus)
        assert torch.equal(high, softplus(logits.double()).float())
        view = high_precision(one_logit, "hps")
        predict(view, activation_fn=softplus)
        # The next call uses the default again.
        assert torch.equal(predict(view), logits.double().sigmoid().float())

    def test_rank_uses_the_view(self, one_logit):
        view = high_precision(one_logit, "head")
        ranking = view.rank(TEXTS[0], TEXTS, batch_size=len(PAIRS))
        scores = predict(view).tolist()
        assert [float(hit["score"]) for hit in ranking] == sorted(scores, reverse=True)

    def test_view_can_be_pickled_for_a_worker_process(self, one_logit):
        view = high_precision(one_logit, "head")
        worker = getattr(type(view), "_multi_process_worker", None)
        _, again = pickle.loads(pickle.dumps((worker, view)))
        assert torch.equal(predict(again), predict(view))
        assert again.scoring == view.scoring == f"fp32, head: {REGIMES['head']}"

    def test_view_has_the_class_and_weights_of_the_model(self, one_logit):
        view = high_precision(one_logit, "head")
        assert isinstance(view, st.CrossEncoder)
        assert list(view.state_dict()) == list(one_logit.state_dict())
        assert view.num_labels == 1

    def test_view_of_a_view_replaces_the_regime(self, one_logit):
        again = high_precision(low_precision(one_logit, "fp8"), "hps")
        assert torch.equal(predict(again), predict(high_precision(one_logit, "hps")))


class TestTwoLogits:
    def test_softmax_runs_in_the_scoring_dtype(self, two_logits):
        logits = predict(two_logits).float()
        assert logits.shape == (len(PAIRS), 2)
        high = predict(high_precision(two_logits, "hps"), apply_softmax=True)
        assert torch.equal(high, logits.double().softmax(-1).float())
        low = predict(low_precision(two_logits), apply_softmax=True)
        assert low.dtype == torch.bfloat16
        assert torch.equal(low, logits.bfloat16().softmax(-1))
        as_activation = predict(low_precision(two_logits), activation_fn=torch.nn.Softmax(dim=-1))
        assert torch.equal(as_activation, low)

    def test_head_is_the_last_linear_layer(self, two_logits):
        layer = two_logits.model.classifier.out_proj
        hidden, _ = record_layer(two_logits, layer)
        logits = hidden.double() @ layer.weight.double().T + layer.bias.double()
        scores = predict(high_precision(two_logits, "head"), apply_softmax=True)
        assert_same_scores(scores[:, 1], logits.softmax(-1)[:, 1])


class TestCausal:
    def logits(self, model):
        hidden, logits = record_layer(model, model[0].model.lm_head)
        rows = [model[1].false_token_id, model[1].true_token_id]
        assert logits.dtype == torch.bfloat16
        return hidden[:, -1], logits[:, -1, rows]

    def test_logits_are_cast_before_their_difference(self, causal):
        _, logits = self.logits(causal)
        no, yes = logits.double().T
        hps = predict(high_precision(causal, "hps"))
        assert_same_scores(hps, (yes - no).sigmoid())
        inexact = logits[:, 1] - logits[:, 0]
        assert (inexact.double() != yes - no).float().mean() > 0.2
        assert_same_scores(predict(low_precision(causal)), inexact.sigmoid())
        assert len(hps.unique()) > len(inexact.float().sigmoid().unique())

    def test_library_casts_after_the_difference(self, causal):
        _, logits = self.logits(causal)
        upstream = predict(causal).float()
        assert len(upstream.unique()) <= len((logits[:, 1] - logits[:, 0]).unique())
        assert len(upstream.unique()) < len(predict(high_precision(causal, "hps")).unique())

    def test_head_uses_two_rows_of_the_output_matrix(self, causal):
        hidden, _ = self.logits(causal)
        weight = causal[0].model.lm_head.weight
        no, yes = (weight[i].double() for i in (causal[1].false_token_id, causal[1].true_token_id))
        expected = (hidden.double() @ yes - hidden.double() @ no).sigmoid()
        view = high_precision(causal, "head")
        assert_same_scores(predict(view), expected)
        assert len(predict(view).unique()) > len(predict(high_precision(causal, "hps")).unique())

    def test_single_token_is_scored_by_its_logit(self, causal):
        alone = type(causal[1])(true_token_id=causal[1].true_token_id)
        model = st.CrossEncoder(modules=[causal[0], alone], device="cpu")
        hidden, logits = self.logits(causal)
        identity = torch.nn.Identity()
        hps = predict(high_precision(model, "hps"), activation_fn=identity)
        assert_same_scores(hps, logits[:, 1])
        row = causal[0].model.lm_head.weight[alone.true_token_id].double()
        head = predict(high_precision(model, "head"), activation_fn=identity)
        torch.testing.assert_close(
            head.double().sort().values, (hidden.double() @ row).sort().values, rtol=1e-5, atol=1e-5
        )


class TestBiEncoder:
    @pytest.fixture
    def embeddings(self, bi_encoder):
        embeddings = bi_encoder.encode(TEXTS, convert_to_tensor=True, batch_size=len(TEXTS))
        assert embeddings.dtype == torch.bfloat16
        return embeddings

    @pytest.mark.parametrize("kind", ["cosine", "dot"])
    def test_similarity_in_high_and_low_precision(self, bi_encoder, embeddings, kind, monkeypatch):
        monkeypatch.setattr(bi_encoder, "similarity_fn_name", kind)
        wide = embeddings.double()
        low = embeddings
        if kind == "cosine":
            wide, low = (torch.nn.functional.normalize(x, dim=-1) for x in (wide, low))
        scores = high_precision(bi_encoder).similarity(embeddings, embeddings)
        assert scores.dtype == torch.float32
        torch.testing.assert_close(scores.double(), wide @ wide.T, rtol=1e-5, atol=1e-5)
        assert torch.equal(
            low_precision(bi_encoder).similarity(embeddings, embeddings), low @ low.T
        )
        for view, expected in (
            (high_precision(bi_encoder), (wide * wide.flip(0)).sum(-1)),
            (low_precision(bi_encoder), (low * low.flip(0)).sum(-1)),
        ):
            pairwise = view.similarity_pairwise(embeddings, embeddings.flip(0))
            torch.testing.assert_close(pairwise.double(), expected.double(), rtol=1e-5, atol=1e-5)

    def test_similarity_accepts_arrays_lists_and_single_embeddings(self, bi_encoder, embeddings):
        half = embeddings.half()
        for view in (high_precision(bi_encoder), low_precision(bi_encoder, "fp16")):
            expected = view.similarity(half, half)
            assert torch.equal(view.similarity(half.numpy(), list(half)), expected)
            torch.testing.assert_close(view.similarity(half[0], half), expected[:1])

    def test_embeddings_are_cast_before_normalisation(self, bi_encoder, embeddings):
        options = {"convert_to_tensor": True, "batch_size": len(TEXTS)}
        view = high_precision(bi_encoder)
        assert torch.equal(view.encode(TEXTS, **options), embeddings.float())
        unit = view.encode(TEXTS, normalize_embeddings=True, **options)
        assert unit.dtype == torch.float32
        torch.testing.assert_close(unit.norm(dim=-1), torch.ones(len(TEXTS)), rtol=0, atol=1e-6)
        low = low_precision(bi_encoder).encode(TEXTS, **options)
        assert torch.equal(low, embeddings)

    def test_unsupported_options_are_rejected(self, bi_encoder, embeddings, monkeypatch):
        with pytest.raises(InputError, match="no scoring head"):
            high_precision(bi_encoder, "head")
        view = low_precision(bi_encoder)
        monkeypatch.setattr(bi_encoder, "similarity_fn_name", "euclidean")
        with pytest.raises(InputError, match=r"in low precision: .* not euclidean"):
            low_precision(bi_encoder)
        view.similarity_fn_name = "euclidean"
        for score in (view.similarity, view.similarity_pairwise):
            with pytest.raises(InputError, match="not euclidean"):
                score(embeddings, embeddings)


class LateInteraction(st.SentenceTransformer):
    """Score token embeddings by MaxSim, as PyLate's ColBERT does."""

    @property
    def similarity_fn_name(self):
        return "MaxSim"

    @similarity_fn_name.setter
    def similarity_fn_name(self, name):
        pass

    def encode(self, texts):
        features = self.forward(self.tokenize(texts))
        return [
            torch.nn.functional.normalize(tokens[mask.bool()], dim=-1)
            for tokens, mask in zip(
                features["token_embeddings"], features["attention_mask"], strict=True
            )
        ]

    def similarity(self, embeddings1, embeddings2):
        return torch.stack(
            [
                torch.stack([(a @ b.T).max(-1).values.sum() for b in embeddings2])
                for a in embeddings1
            ]
        )


class TestLateInteraction:
    @pytest.fixture(scope="class")
    def model(self, bi_encoder):
        return LateInteraction(modules=[bi_encoder[0]], device="cpu").eval()

    def test_high_precision_casts_the_embeddings_of_tokens(self, model):
        with torch.no_grad():
            low = model.encode(TEXTS)
            high = high_precision(model).encode(TEXTS)
        assert low[0].dtype == torch.bfloat16
        assert high[0].dtype == torch.float32
        # The scores are computed from the embeddings of the view, not by its similarity method.
        native, hps = (model.similarity(tokens[:1], tokens)[0] for tokens in (low, high))
        assert len(native.unique()) < len(hps.unique())
        assert len(hps.unique()) > 0.9 * len(set(TEXTS))

    def test_embeddings_of_different_lengths_are_cast(self, model):
        texts = ["the cat", "the cat sat on the mat"]
        with torch.no_grad():
            embeddings = model.encode(texts)
            scores = high_precision(model).similarity(embeddings, embeddings)
        wide = [each.float() for each in embeddings]
        assert torch.equal(scores, model.similarity(wide, wide))

    def test_low_precision_is_rejected(self, model):
        for dtype in (None, "fp8"):
            with pytest.raises(InputError, match="LateInteraction in low precision"):
                low_precision(model, dtype)

    def test_high_precision_gives_no_warning(self, model):
        assert warning_messages(lambda: high_precision(model)) == []


def warning_messages(call):
    """Return the messages of the warnings that deadheat emits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, DeadheatWarning)]


class TestWarnings:
    """A view warns if and only if its scores equal those of the model."""

    @pytest.mark.parametrize("regime", ["hps", "head"])
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
    @pytest.mark.parametrize("name", ["one_logit", "two_logits", "causal"])
    def test_reranker_warns_only_if_scores_do_not_change(self, request, name, dtype, regime):
        model = copy.deepcopy(request.getfixturevalue(name)).to(dtype)
        messages = warning_messages(lambda: high_precision(model, regime))
        own, scores = predict(model), predict(high_precision(model, regime))
        if torch.allclose(own.double(), scores.double(), rtol=1e-5, atol=1e-5):
            assert len(messages) == 1
            assert f"regime='{regime}' gives the same scores" in messages[0]
        else:
            assert messages == []

    def test_warning_if_the_library_scores_in_fp32(self, one_logit):
        messages = warning_messages(lambda: high_precision(one_logit, "hps"))
        if not CASTS:
            assert messages == []
            return
        (message,) = messages
        assert "already scores in FP32" in message
        assert "regime='head'" in message

    def test_warning_for_an_fp32_model(self, one_logit, bi_encoder):
        for model in (one_logit, bi_encoder):
            fp32 = copy.deepcopy(model).float()
            (message,) = warning_messages(lambda fp32=fp32: high_precision(fp32))
            assert type(model).__name__ in message and "weights" in message and "FP32" in message
            (message,) = warning_messages(lambda fp32=fp32: low_precision(fp32))
            assert "does not lower its precision" in message
            assert warning_messages(lambda fp32=fp32: low_precision(fp32, "bf16")) == []
            assert warning_messages(lambda model=model: low_precision(model)) == []

    def test_bi_encoder_warns_only_if_scores_do_not_change(self, bi_encoder):
        messages = warning_messages(lambda: high_precision(bi_encoder))
        views = bi_encoder, high_precision(bi_encoder)
        embedded = [view.encode(TEXTS, convert_to_tensor=True) for view in views]
        own, scores = (v.similarity(e, e) for v, e in zip(views, embedded, strict=True))
        assert torch.equal(own.float(), scores) == CASTS
        assert len(messages) == CASTS
        assert all("model.similarity gives the same scores" in message for message in messages)

    def test_warning_if_the_library_keeps_the_head_in_fp32(self, one_logit):
        if not hasattr(one_logit, "set_keep_in_fp32_modules"):
            pytest.skip("sentence-transformers keeps layers in FP32 from 6.2 on")
        model = copy.deepcopy(one_logit)
        path = next(p for p, m in model.named_modules() if m is model.model.classifier)
        model.set_keep_in_fp32_modules([path])
        (message,) = warning_messages(lambda: high_precision(model, "head"))
        assert all(fact in message for fact in ("last layer", "CrossEncoder", "FP32"))
        assert_same_scores(predict(high_precision(model, "head")), predict(model))

    def test_warning_points_to_the_line_of_the_caller(self, one_logit):
        with pytest.warns(DeadheatWarning) as caught:
            high_precision(copy.deepcopy(one_logit).float())
        assert caught[0].filename == __file__


def test_head_with_two_names_runs_in_fp32(one_logit):
    """Replacing only the first name has no effect if the model uses the other one."""
    model = copy.deepcopy(one_logit)
    network = model.model
    vars(network)["_modules"] = {"alias": network.classifier, **network._modules}
    expected = predict(high_precision(one_logit, "head"))
    assert torch.equal(predict(high_precision(model, "head")), expected)
    assert not torch.equal(predict(model), expected)


class TestModelIsNotModified:
    @pytest.fixture(params=["one_logit", "two_logits", "causal"])
    def model(self, request):
        return request.getfixturevalue(request.param)

    @pytest.mark.parametrize("view", VIEWS)
    def test_view_does_not_change_the_model(self, model, view):
        expected = predict(model)
        before = snapshot(model)
        changed = not torch.equal(predict(VIEWS[view](model)).float(), expected.float())
        # Version 6 casts logits itself, except for causal models.
        assert changed or view == "hps"
        assert_unchanged(model, before)
        assert torch.equal(predict(model), expected)

    @pytest.mark.parametrize("view", VIEWS)
    def test_context_manager_changes_the_model_temporarily(self, model, view):
        expected = predict(model)
        before = snapshot(model)
        with VIEWS[view](model) as inside:
            scores = predict(model)
            assert torch.equal(scores, predict(inside))
            assert view == "hps" or not torch.equal(scores.float(), expected.float())
        assert_unchanged(model, before)
        assert torch.equal(predict(model), expected)

    @pytest.mark.parametrize("view", VIEWS)
    def test_context_manager_restores_the_model_after_an_error(self, model, view):
        def fail(scores):
            raise ZeroDivisionError

        before = snapshot(model)
        with pytest.raises(ZeroDivisionError), VIEWS[view](model):
            predict(model, activation_fn=fail)
        assert_unchanged(model, before)
        with pytest.raises(ZeroDivisionError):
            predict(VIEWS[view](model), activation_fn=fail)
        assert_unchanged(model, before)

    def test_context_manager_restores_a_bi_encoder(self, bi_encoder):
        before = snapshot(bi_encoder)
        with high_precision(bi_encoder):
            assert bi_encoder.encode(TEXTS[:2], convert_to_tensor=True).dtype == torch.float32
        assert_unchanged(bi_encoder, before)

    def test_nested_context_managers_are_rejected(self, one_logit):
        before = snapshot(one_logit)
        view = high_precision(one_logit, "hps")
        with view, pytest.raises(InputError, match="inside a precision block"):
            low_precision(one_logit)
        with view, pytest.raises(InputError, match="inside a precision block"), view:
            pass
        assert_unchanged(one_logit, before)
        with view:
            pass
        assert_unchanged(one_logit, before)


class TestRefusals:
    def test_unsupported_models_are_rejected(self):
        for other in (torch.nn.Linear(2, 1), "BAAI/bge-reranker-v2-m3"):
            for change in (high_precision, low_precision):
                with pytest.raises(InputError, match=r"cannot change how a .*torch_functions"):
                    change(other)

    def test_unsupported_regimes_and_formats_are_rejected(self, one_logit):
        with pytest.raises(InputError, match=r"use low_precision\(model\)"):
            high_precision(one_logit, "native")
        with pytest.raises(InputError, match="choose native, hps, head"):
            high_precision(one_logit, "fp32")
        with pytest.raises(InputError, match="int8 has no sigmoid"):
            low_precision(one_logit, "int8")

    def test_model_with_a_replaced_forward_is_rejected(self, one_logit):
        model = copy.deepcopy(one_logit)
        model.model.forward = model.model.forward
        with pytest.raises(InputError, match="forward of its own"):
            high_precision(model, "head")
