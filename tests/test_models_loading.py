"""Loading checkpoints: detection of their kind, presets of the paper, rejected input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from model_outputs import outputs_of

from deadheat.errors import InputError, MissingPackageError
from deadheat.lab.models import PRESETS, PairPrompt, TextPrompt, find_preset, load_model
from deadheat.lab.models.batching import plan_batches

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sentence_transformers")

import tiny_models as tiny  # noqa: E402


def load(folder: Path | str, dtype: str = "fp32", **options):
    return load_model(folder, model_dtype=dtype, **{"device": "cpu", **options})


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.xlm_roberta(tmp_path_factory.mktemp("reranker") / "reranker")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny.bert_encoder(tmp_path_factory.mktemp("encoder") / "encoder")
    return tiny.add_pooling(folder, "mean")


def test_import_does_not_load_torch():
    code = "import sys, deadheat.lab.models; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_presets_are_the_models_of_the_paper():
    assert {(preset.names[0], preset.kind, preset.max_length) for preset in PRESETS} == {
        ("Qwen/Qwen3-Reranker-0.6B", "yes-no", 4096),
        ("BAAI/bge-reranker-v2-m3", "cross-encoder", 4096),
        ("Alibaba-NLP/gte-multilingual-reranker-base", "cross-encoder", 4096),
        ("Qwen/Qwen3-Embedding-0.6B", "bi-encoder", 4096),
        ("intfloat/multilingual-e5-large", "bi-encoder", 512),
    }


@pytest.mark.parametrize(
    "name",
    [
        "BAAI/bge-reranker-v2-m3",
        "copies/bge-reranker-v2-m3/",
        "hub/models--BAAI--bge-reranker-v2-m3/snapshots/953dc6f6f85a1b2dbfca4c34a2796e7dde08d41e",
    ],
)
def test_find_preset_by_name(name):
    assert find_preset(name).names == ("BAAI/bge-reranker-v2-m3",)
    assert find_preset(name.replace("v2", "v1")) is None


def test_preset_qwen3_reranker(tmp_path):
    folder = tiny.qwen(tmp_path / "Qwen3-Reranker-0.6B")
    model = load(folder)
    query, document = tiny.PAIRS[0]
    text = (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
        'and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
        "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
        f"answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer.decode(model._encode([query], [document])["input_ids"][0]) == text
    direct = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        logits = direct(**tokenizer(text, return_tensors="pt")).logits[0, -1]
    expected = logits[tokenizer.convert_tokens_to_ids(["no", "yes"])]
    torch.testing.assert_close(outputs_of(model, [(query, document)]).logits[0], expected)
    assert model.provenance.max_length == 4096


@pytest.mark.parametrize("name", ["bge-reranker-v2-m3", "gte-multilingual-reranker-base"])
def test_preset_cross_encoders(tmp_path, name):
    if name.startswith("gte") and not hasattr(transformers, "GteConfig"):
        pytest.skip("this version of transformers has no native gte class")
    model = load((tiny.gte if name.startswith("gte") else tiny.xlm_roberta)(tmp_path / name))
    output = outputs_of(model, tiny.PAIRS[:3])
    assert output.logits.shape == (3, 1)
    assert output.provenance.max_length == 4096
    assert output.provenance.prompt is None


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize(
    ("name", "build", "pooling", "query", "document", "length"),
    [
        (
            "Qwen3-Embedding-0.6B",
            tiny.qwen_encoder,
            "lasttoken",
            "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
            "Query:",
            "",
            4096,
        ),
        ("multilingual-e5-large", tiny.e5_encoder, "mean", "query: ", "passage: ", 512),
    ],
)
def test_preset_bi_encoders(tmp_path, name, build, pooling, query, document, length, bare):
    folder = build(tmp_path / name)
    if not bare:
        tiny.add_pooling(folder, pooling)
    elif name.startswith("Qwen"):
        config = json.loads((folder / "config.json").read_text())
        config["architectures"] = ["Qwen3Model"]
        (folder / "config.json").write_text(json.dumps(config))
    model = load(folder)
    text = tiny.DOCUMENTS[0]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    plain = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32)
    for prefix, output in [
        (query, outputs_of(model, [text, "x"], "query")),
        (document, outputs_of(model, [text, "x"], "document")),
    ]:
        with torch.no_grad():
            states = plain(**tokenizer(prefix + text, return_tensors="pt")).last_hidden_state[0]
        vector = states.mean(dim=0) if pooling == "mean" else states[-1]
        torch.testing.assert_close(output.vectors[0], vector / vector.norm(), rtol=1e-4, atol=1e-5)
        assert output.provenance.max_length == length
        assert output.provenance.pooling == f"{pooling}, Normalize"


def test_batch_plan_matches_the_documentation():
    plan = plan_batches([5, 7, 7, 5, 20, 30], batch_size=4, max_length=10)
    assert plan == [[4, 5, 1, 2], [0, 3]]


def test_max_length_defaults_to_that_of_the_checkpoint(reranker, encoder):
    assert load(reranker).provenance.max_length == 8192
    assert load(encoder).provenance.max_length == 512


@pytest.mark.parametrize("length", [0, 1, 8193])
def test_unsupported_max_length_is_rejected(reranker, length):
    with pytest.raises(InputError, match=f"max_length {length} .*2 to 8192 tokens"):
        load(reranker, max_length=length)


def test_wrong_kind_is_rejected(reranker, encoder):
    with pytest.raises(InputError, match=r"is a bi-encoder model .*not a cross-encoder"):
        load(encoder, kind="cross-encoder")
    with pytest.raises(InputError, match=r"is a cross-encoder model .*not a bi-encoder"):
        load(reranker, kind="bi-encoder")


def test_classifier_without_head_weights_is_rejected(tmp_path):
    folder = tiny.bert_encoder(tmp_path / "headless")
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertForSequenceClassification"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"no weights for classifier\.bias, "):
        load(folder)


def test_plain_encoder_needs_a_kind(tmp_path):
    folder = tiny.bert_encoder(tmp_path / "plain")
    with pytest.raises(InputError, match=r"kind of .* unknown.*'BertModel'.*kind='bi-encoder'"):
        load(folder)
    provenance = load(folder, kind="bi-encoder").provenance
    assert provenance.pooling == "mean, Normalize" and provenance.normalised


def test_load_reranker_saved_by_sentence_transformers(tmp_path, reranker):
    library = pytest.importorskip("sentence_transformers")
    library.CrossEncoder(str(reranker), device="cpu").save_pretrained(str(tmp_path / "saved"))
    saved, plain = load(tmp_path / "saved"), load(reranker)
    assert saved.provenance.kind == "cross-encoder"
    assert torch.equal(outputs_of(saved, tiny.PAIRS).logits, outputs_of(plain, tiny.PAIRS).logits)


def test_sparse_encoder_is_rejected(tmp_path):
    folder = tiny.add_pooling(tiny.bert_encoder(tmp_path / "sparse"), "mean")
    (folder / "config_sentence_transformers.json").write_text('{"model_type": "SparseEncoder"}')
    for kind in (None, "bi-encoder"):
        with pytest.raises(InputError, match=r"kind of .* unknown"):
            load(folder, kind=kind)


def test_classifier_with_three_labels_is_rejected(tmp_path):
    folder = tiny.bert(tmp_path / "nli", labels=3)
    with pytest.raises(InputError, match="3 labels"):
        load(folder)


def test_causal_model_without_chat_template_needs_a_prompt(tmp_path):
    folder = tiny.qwen(tmp_path / "base")
    with pytest.raises(InputError, match=r"no chat template.*\{query\} and \{document\}.*--prompt"):
        load(folder)


def test_model_that_does_not_exist(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        InputError, match=r"'no/such-model' is not a local.* not be downloaded from .* hub"
    ):
        load("no/such-model")
    with pytest.raises(InputError, match=r"hf auth login"):
        load("./no/such/folder")


def test_load_from_the_hub_cache(tmp_path, monkeypatch):
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--someone--ranker"
    tiny.xlm_roberta(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    model = load("someone/ranker")
    assert model.provenance.model == "someone/ranker"
    assert model.provenance.revision == commit


def test_folder_without_a_model_is_rejected(tmp_path):
    with pytest.raises(InputError, match=r"config\.json.*modules\.json.*\b0 \.gguf"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"has no \*\.safetensors weights"):
        load(tmp_path)
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(InputError, match="not a model"):
        load(tmp_path / "note.txt")


def test_pickled_weights_are_rejected(tmp_path):
    folder = tiny.bert(tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"anything")
    with pytest.raises(InputError, match=r"pickled has no .*pickle can run code"):
        load(folder)


def test_damaged_files_are_rejected(tmp_path):
    folder = tiny.bert(tmp_path / "damaged")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(InputError, match=r"cannot be loaded \("):
        load(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json is not JSON"):
        load(folder)


def test_remote_code_is_not_run_by_default(tmp_path):
    folder = tiny.bert(tmp_path / "foreign")
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "unheard-of"
    config["auto_map"] = {
        "AutoConfig": "code.OwnConfig",
        "AutoModelForSequenceClassification": "code.OwnForSequenceClassification",
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    with pytest.raises(InputError, match=r"--trust-remote-code .*trust_remote_code=True"):
        load(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "fp8_e4m3"}, "'fp8_e4m3'.*bf16, fp16, fp32"),
        ({"device": "abacus"}, "device 'abacus' .*cpu"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"attn_implementation": "abacus"}, "(?s)cannot be loaded .*eager and sdpa"),
        ({"instruction": "Find it"}, "no instruction"),
        ({"prompt": TextPrompt(query="q: ")}, "takes no prompt, not TextPrompt"),
    ],
)
def test_invalid_options_are_rejected(reranker, options, message):
    with pytest.raises(InputError, match=message):
        load(reranker, **options)


def test_prompt_of_the_wrong_type_is_rejected(encoder):
    with pytest.raises(InputError, match=r"TextPrompt, not PairPrompt"):
        load(encoder, prompt=PairPrompt(prefix=""))
    with pytest.raises(InputError, match=r"prompt .*'\{instruction\}'"):
        load(encoder, prompt=TextPrompt(query="q: "), instruction="Find it")


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_unavailable_device_is_rejected(reranker):
    with pytest.raises(InputError, match="'cuda:0' is not available"):
        load(reranker, device="cuda:0")


@pytest.mark.parametrize("package", ["torch", "transformers", "sentence_transformers"])
def test_missing_package_is_named(reranker, encoder, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"'{package}': .*pip install .*\[models\]'"):
        load(encoder if package == "sentence_transformers" else reranker)
