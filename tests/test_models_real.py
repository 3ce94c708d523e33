"""Real checkpoints, if they are available: a trained cross-encoder, MiniLM and SmolLM2."""

from __future__ import annotations

import polars as pl
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

from model_outputs import outputs_of  # noqa: E402

from deadheat.lab.models import load_model  # noqa: E402
from deadheat.lab.models.rerankers import make_chat_prompt  # noqa: E402

QUESTIONS = ["what causes an eclipse", "who wrote the origin of species"]
PASSAGES = [
    "A solar eclipse happens when the Moon passes between the Earth and the Sun.",
    "On the Origin of Species is a work of scientific literature by Charles Darwin.",
    "The recipe needs two eggs and a cup of flour.",
]


@pytest.mark.parametrize(("dtype", "number"), [("fp32", 16), ("bf16", 48), ("fp16", 16)])
def test_cross_encoder_reproduces_recorded_logits(shared, recorded, dtype, number):
    queries, documents = (
        (shared / "wikiqa" / "test" / name).read_text(encoding="utf-8").split("\n")[:number]
        for name in ("a.toks", "b.toks")
    )
    pairs = list(zip(queries, documents, strict=True))
    full = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}[dtype]
    rows = pl.read_parquet(recorded / "cross-encoder-wikiqa.parquet").filter(model_dtype=full)
    path = shared / "models" / "wikiqa-cross-encoder"
    model = load_model(path, model_dtype=dtype, device="cpu")
    output = outputs_of(model, pairs, with_hidden=True)
    head = model.head()
    logits = output.logits.float().squeeze(1)
    recomputed = (output.hidden.float() @ head.weight.float().T + head.bias.float()).squeeze(1)
    # The recording used other batches, and in FP32 it used the weights before rounding to FP16.
    tolerance = {"fp32": 0.01, "bf16": 0.1, "fp16": 0.01}[dtype]
    for actual, column in [(logits, "logit"), (recomputed, "head_logit")]:
        expected = torch.tensor(rows[column].head(number).to_list())
        torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)
    if dtype == "fp32":
        options = {"dtype": torch.float32}
        reference = sentence_transformers.CrossEncoder(
            str(path), device="cpu", model_kwargs=options
        )
        expected = reference.predict(pairs[:8], batch_size=1, activation_fn=torch.nn.Identity())
        torch.testing.assert_close(logits[:8], torch.tensor(expected), rtol=0, atol=1e-5)
    if dtype == "bf16":
        assert len(recomputed.unique()) > len(logits.unique())


def test_minilm_ranks_the_answer_first(minilm):
    exact = load_model(minilm, model_dtype="fp32", device="cpu")
    queries, documents = (
        outputs_of(exact, QUESTIONS, "query"),
        outputs_of(exact, PASSAGES, "document"),
    )
    scores = queries.vectors @ documents.vectors.T
    assert scores.argmax(dim=1).tolist() == [0, 1]
    assert documents.provenance.pooling == "mean, Normalize"
    assert documents.provenance.max_length == 256
    coarse = outputs_of(load_model(minilm, model_dtype="bf16", device="cpu"), PASSAGES, "document")
    assert coarse.vectors.dtype == torch.bfloat16
    torch.testing.assert_close(coarse.vectors.float(), documents.vectors, rtol=0, atol=0.01)


@pytest.mark.slow
def test_load_smollm2_from_gguf(smollm2):
    pairs = [(question, passage) for question in QUESTIONS for passage in PASSAGES]
    output = outputs_of(smollm2, pairs, with_hidden=True)
    head = smollm2.head()
    assert output.logits.dtype == head.weight.dtype == torch.bfloat16
    recomputed = output.hidden.float() @ head.weight.float().T
    torch.testing.assert_close(recomputed, output.logits.float(), rtol=2**-8, atol=0)
    # Near 30, BF16 logits are 1/8 apart, so the head in FP32 has more distinct scores.
    own, exact = (logits[:, 1] - logits[:, 0] for logits in (output.logits.float(), recomputed))
    assert len(exact.unique()) > len(own.unique())
    chat = make_chat_prompt(smollm2._tokenizer, "SmolLM2")
    assert chat.suffix == "<|im_end|>\n<|im_start|>assistant\n"
