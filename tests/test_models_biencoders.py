"""Bi-encoders: embeddings compared with direct computations, pooling, prompts, order of batches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from model_outputs import outputs_of

from deadheat.errors import InputError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

import tiny_models as tiny  # noqa: E402

from deadheat.lab.models import BiEncoder, TextPrompt, load_model  # noqa: E402

TEXTS = tiny.DOCUMENTS + tiny.QUERIES


def load(folder: Path, dtype: str = "fp32", **options) -> BiEncoder:
    model = load_model(folder, model_dtype=dtype, device="cpu", **options)
    assert isinstance(model, BiEncoder)
    return model


def embed_directly(folder: Path, text: str, pooling: str) -> torch.Tensor:
    """Embed one text alone in FP32 with transformers, sharing no code with deadheat."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    vector = states.mean(dim=0) if pooling == "mean" else states[-1]
    return vector / vector.norm()


@pytest.fixture(scope="module")
def mean_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.bert_encoder(tmp_path_factory.mktemp("mean") / "encoder")
    return tiny.add_pooling(folder, "mean", {"query": "find: ", "passage": "text: "})


@pytest.fixture(scope="module")
def last_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.qwen_encoder(tmp_path_factory.mktemp("last") / "encoder")
    return tiny.add_pooling(folder, "lasttoken")


def test_mean_pooling_uses_the_prompts_of_the_checkpoint(mean_encoder):
    model = load(mean_encoder, batch_size=4)
    queries, documents = outputs_of(model, TEXTS, "query"), outputs_of(model, TEXTS, "document")
    expected = torch.stack(
        [embed_directly(mean_encoder, "find: " + text, "mean") for text in TEXTS]
    )
    torch.testing.assert_close(queries.vectors, expected, rtol=1e-4, atol=1e-5)
    expected = torch.stack(
        [embed_directly(mean_encoder, "text: " + text, "mean") for text in TEXTS]
    )
    torch.testing.assert_close(documents.vectors, expected, rtol=1e-4, atol=1e-5)
    assert queries.provenance.pooling == "mean, Normalize" and queries.provenance.normalised
    assert queries.provenance.prompt["query"] == "find: "


def test_last_token_pooling_without_prompts(last_encoder):
    output = outputs_of(load(last_encoder, batch_size=4), TEXTS, "document")
    expected = torch.stack([embed_directly(last_encoder, text, "lasttoken") for text in TEXTS])
    torch.testing.assert_close(output.vectors, expected, rtol=1e-4, atol=1e-5)
    assert output.provenance.pooling == "lasttoken, Normalize"
    assert output.provenance.prompt is None


def test_embeddings_without_normalisation(tmp_path):
    folder = tiny.add_pooling(tiny.bert_encoder(tmp_path / "raw"), "mean", normalize=False)
    output = outputs_of(load(folder), TEXTS, "document")
    assert output.provenance.pooling == "mean" and not output.provenance.normalised
    unit = torch.stack([embed_directly(folder, text, "mean") for text in TEXTS])
    norms = output.vectors.norm(dim=1, keepdim=True)
    assert (norms - 1).abs().min() > 0.1
    torch.testing.assert_close(output.vectors / norms, unit, rtol=1e-4, atol=1e-5)


def test_default_prompt_for_other_tasks_is_ignored(last_encoder, tmp_path):
    folder = Path(shutil.copytree(last_encoder, tmp_path / "default"))
    config = {"prompts": {"cluster": "group: "}, "default_prompt_name": "cluster"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
    vectors = outputs_of(load(folder), TEXTS[:1], "document").vectors
    torch.testing.assert_close(vectors[0], embed_directly(last_encoder, TEXTS[0], "lasttoken"))


def test_static_embedding_model_is_rejected(tmp_path):
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    tokenizer = tiny.bert_tokenizer().backend_tokenizer
    static = modules.StaticEmbedding(tokenizer, embedding_dim=8)
    sentence_transformers.SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path))
    with pytest.raises(InputError, match="begins with StaticEmbedding"):
        load(tmp_path)


def test_custom_prompt(mean_encoder):
    model = load(mean_encoder, prompt=TextPrompt(query="{instruction}: "), instruction="who")
    expected = embed_directly(mean_encoder, "who: " + TEXTS[0], "mean")
    torch.testing.assert_close(outputs_of(model, TEXTS[:1], "query").vectors[0], expected)
    expected = embed_directly(mean_encoder, TEXTS[0], "mean")
    torch.testing.assert_close(outputs_of(model, TEXTS[:1], "document").vectors[0], expected)


@pytest.mark.parametrize(("dtype", "name"), [("bf16", "bfloat16"), ("fp16", "float16")])
def test_embeddings_keep_the_dtype_of_the_model(mean_encoder, dtype, name):
    vectors = outputs_of(load(mean_encoder, dtype), TEXTS, "document").vectors
    assert vectors.dtype == getattr(torch, name)
    norms = vectors.double().norm(dim=1)
    assert (norms != 1).all()
    torch.testing.assert_close(norms, torch.ones_like(norms), rtol=0.02, atol=0)


def test_batches_are_reproducible_and_resumable(last_encoder):
    model = load(last_encoder, "bf16", batch_size=2)
    batches = model.batches(TEXTS, "query")
    again = load(last_encoder, "bf16", batch_size=2).batches(TEXTS, "query")
    assert len(batches) == 5
    whole = [batches.run(number)[0] for number in range(5)]
    for number in range(2, 5):
        assert again.indices[number] == batches.indices[number]
        assert torch.equal(again.run(number)[0], whole[number])
    collected = outputs_of(model, TEXTS, "query").vectors
    for indices, vectors in zip(batches.indices, whole, strict=True):
        assert torch.equal(collected[list(indices)], vectors)


def test_long_texts_are_truncated_and_counted(mean_encoder):
    texts = ["horse " * 400, "horse"]
    short = outputs_of(load(mean_encoder, max_length=50), texts, "document")
    assert (short.inputs.count, short.inputs.truncated) == (2, 1)
    longer = outputs_of(load(mean_encoder, max_length=51), texts, "document")
    assert not torch.equal(short.vectors[0], longer.vectors[0])
    torch.testing.assert_close(short.vectors[1], longer.vectors[1])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "queries must be a list of at least one"),
        (["a", ""], r"queries\[1\] must be a text"),
        ("a text", "queries must be a list"),
        ([3], r"queries\[0\] must be a text.* 3\b"),
    ],
)
def test_invalid_texts_are_rejected(mean_encoder, texts, message):
    with pytest.raises(InputError, match=message):
        outputs_of(load(mean_encoder), texts, "query")


def test_nan_in_the_weights_is_reported(tmp_path):
    folder = tiny.bert_encoder(tmp_path / "damaged")
    model = transformers.AutoModel.from_pretrained(folder)
    with torch.no_grad():
        model.encoder.layer[1].output.dense.weight[0, 0] = float("nan")
    model.save_pretrained(folder)
    tiny.add_pooling(folder, "mean")
    with pytest.raises(InputError, match=r"fp32 gave NaN or infinity for input \d .* damaged"):
        outputs_of(load(folder), TEXTS, "document")


@pytest.mark.parametrize("named_in", ["modules.json", "router_config.json"])
def test_code_of_a_checkpoint_is_not_run_by_default(tmp_path, named_in):
    """sentence-transformers before version 6 runs it for checkpoints in a local folder."""
    folder = tiny.add_pooling(tiny.bert_encoder(tmp_path / "foreign"), "mean")
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    modules = json.loads((folder / "modules.json").read_text())
    if named_in == "modules.json":
        modules[2]["type"] = "own.Normalize"
    else:
        modules[2] |= {"type": "sentence_transformers.models.Router", "path": "2_Router"}
        router = {"types": {"query_0_X": "own.X"}, "structure": {"query": ["query_0_X"]}}
        (folder / "2_Router").mkdir()
        (folder / "2_Router" / named_in).write_text(json.dumps(router))
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match=r"foreign'.*--trust-remote-code"):
        load(folder)
    assert not (tmp_path / "ran").exists()
