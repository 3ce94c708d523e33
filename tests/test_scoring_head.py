"""The head is the layer whose output is the logits; lab and integration find the same one."""

from __future__ import annotations

import pytest
from model_outputs import outputs_of

from deadheat.errors import InputError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
st = pytest.importorskip("sentence_transformers")

import tiny_models as tiny  # noqa: E402

from deadheat.integrations.precision import regime_view  # noqa: E402
from deadheat.integrations.precision.surgery import find_scoring_head  # noqa: E402
from deadheat.integrations.sentence_transformers import high_precision  # noqa: E402
from deadheat.lab.models import ClassifierReranker, PairPrompt, load_model  # noqa: E402
from deadheat.scoring.head import PROBE  # noqa: E402

NO_HEAD = "linear layer of .* logits .*head regime.*native or hps"
HEADS = {
    "xlm_roberta": "classifier.out_proj",
    "bert": "classifier",
    "gte": "classifier",
    "qwen_classifier": "score",
    "qwen": "lm_head",
}


def reranker(folder):
    prompt = PairPrompt(prefix="<|im_start|>") if folder.name == "qwen" else None
    return load_model(folder, model_dtype="bf16", device="cpu", prompt=prompt)


def cross_encoder(folder):
    return st.CrossEncoder(str(folder), device="cpu").to(torch.bfloat16)


def head_logits_in_fp32(model):
    """Compute the logits of a reranker from its hidden states and head, both in FP32."""
    hidden, head = outputs_of(model, tiny.PAIRS, with_hidden=True).hidden, model.head()
    return hidden.float() @ head.weight.float().T + head.bias.float()


def predict(model):
    options = {"activation_fn": torch.nn.Identity(), "convert_to_tensor": True}
    return model.predict(tiny.PAIRS, batch_size=len(tiny.PAIRS), **options)


@pytest.mark.parametrize("name", HEADS)
def test_lab_and_integration_find_the_same_head(tmp_path, name):
    if name == "gte" and not hasattr(transformers, "GteConfig"):
        pytest.skip("this transformers has no native gte class")
    if name == "qwen":
        pytest.importorskip("sentence_transformers.cross_encoder.modules")
    folder = getattr(tiny, name)(tmp_path / name)
    lab_model, encoder = reranker(folder), cross_encoder(folder)
    for network, layer in (
        (lab_model._model, lab_model._head_layer),
        (encoder.model, find_scoring_head(encoder).layer),
    ):
        assert dict(network.named_modules())[HEADS[name]] is layer


def test_probe_starts_with_the_longer_pair():
    longer, shorter = (sum(map(len, pair)) for pair in PROBE)
    assert longer > shorter


@pytest.mark.parametrize("labels", [1, 2])
def test_unused_last_layer_is_not_the_head(tmp_path, labels):
    folder = tiny.bert(tmp_path / "bert", labels)
    lab_model, encoder = reranker(folder), cross_encoder(folder)
    expected = head_logits_in_fp32(lab_model), predict(high_precision(encoder, "head"))
    for network in (lab_model._model, encoder.model):
        network.spare = torch.nn.Linear(tiny.WIDTH, labels, dtype=torch.bfloat16)
    again = ClassifierReranker(lab_model._model, lab_model._tokenizer, lab_model.provenance)
    assert torch.equal(head_logits_in_fp32(again), expected[0])
    assert torch.equal(predict(high_precision(encoder, "head")), expected[1])


class Halve(torch.nn.Module):
    def forward(self, logits):
        return logits / 2


class Quantised(torch.nn.Linear):
    """A quantised layer: integer weights and a divisor."""

    def __init__(self, layer):
        super().__init__(layer.in_features, layer.out_features)
        weight = (layer.weight.detach() * 8).round().to(torch.int8)
        self.weight = torch.nn.Parameter(weight, requires_grad=False)
        self.bias = layer.bias

    def forward(self, hidden):
        weight = self.weight.to(hidden.dtype) / 8
        return torch.nn.functional.linear(hidden, weight, self.bias)


class Doubled(torch.nn.Linear):
    def __init__(self, layer):
        super().__init__(layer.in_features, layer.out_features)
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, hidden):
        return 2 * super().forward(hidden)


@pytest.mark.parametrize(
    "change",
    [lambda layer: torch.nn.Sequential(layer, Halve()), Quantised, Doubled],
    ids=["scaled", "quantised", "subclass"],
)
def test_head_regime_raises_if_no_linear_layer_gives_the_logits(tmp_path, change):
    folder = tiny.bert(tmp_path / "bert")
    lab_model, encoder = reranker(folder), cross_encoder(folder)
    for network in (lab_model._model, encoder.model):
        network.classifier = change(network.classifier)
    assert predict(encoder).isfinite().all()
    for call in (
        lambda: lab_model.head(),
        lambda: outputs_of(lab_model, tiny.PAIRS, with_hidden=True),
        lambda: high_precision(encoder, "head"),
    ):
        with pytest.raises(InputError, match=NO_HEAD):
            call()
    hps = predict(regime_view(encoder, "hps"))
    logits = outputs_of(lab_model, tiny.PAIRS).logits.float()
    torch.testing.assert_close(hps, logits, rtol=0.02, atol=0.02)


def test_every_batch_is_checked_for_the_head(tmp_path):
    model = reranker(tiny.bert(tmp_path / "bert"))
    assert model.head().weight.shape == (2, tiny.WIDTH)
    model._model.classifier = torch.nn.Sequential(model._model.classifier, Halve())
    with pytest.raises(InputError, match=NO_HEAD):
        outputs_of(model, tiny.PAIRS, with_hidden=True)
