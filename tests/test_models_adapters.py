"""PEFT adapters, which are merged in FP32 and then cast, and prompts given as one text."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner
from model_outputs import outputs_of

from deadheat.cli import main
from deadheat.errors import InputError, MissingPackageError
from deadheat.lab.datasets import RetrievalDataset, write_dataset
from deadheat.lab.models import load_model
from deadheat.lab.models.rerankers import split_prompt

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sentence_transformers")

import tiny_models as tiny  # noqa: E402

PROMPT = "<|im_start|>{document} answers {query}?<|im_end|>yes or no"
PAIRS = [("what is it", "a race that two runners win"), ("who won", "nobody")]


def save_random_adapter(base: Path, folder: Path, task: str, **options) -> Path:
    """Save an adapter with random weights for a base model, in the format that training writes."""
    peft = pytest.importorskip("peft")
    auto = {
        "CAUSAL_LM": transformers.AutoModelForCausalLM,
        "SEQ_CLS": transformers.AutoModelForSequenceClassification,
        "FEATURE_EXTRACTION": transformers.AutoModel,
    }[task]
    torch.manual_seed(0)
    config = peft.LoraConfig(
        r=4, target_modules=["q_proj", "v_proj"], task_type=task, init_lora_weights=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # from peft, about transformers
        model = peft.get_peft_model(auto.from_pretrained(base, **options), config)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return tiny.qwen(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def adapter(tmp_path_factory, base) -> Path:
    return save_random_adapter(base, tmp_path_factory.mktemp("adapter") / "mine", "CAUSAL_LM")


def load(folder: Path, dtype: str = "bf16", **options):
    return load_model(str(folder), model_dtype=dtype, device="cpu", **options)


def test_adapter_is_merged_in_fp32_before_the_cast(base, adapter, tmp_path):
    peft = pytest.importorskip("peft")
    plain = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        merged = peft.PeftModel.from_pretrained(plain, adapter).merge_and_unload()
    tiny.save(tmp_path / "merged", merged, tiny.qwen_tokenizer())
    for dtype in ("bf16", "fp32"):
        adapted = load(adapter, dtype, prompt=PROMPT)
        reference = load(tmp_path / "merged", dtype, prompt=PROMPT)
        logits, expected = outputs_of(adapted, PAIRS).logits, outputs_of(reference, PAIRS).logits
        # FP32 sums can round differently when the weights lie elsewhere in memory.
        torch.testing.assert_close(logits, expected, rtol=0, atol=0 if dtype == "bf16" else 1e-6)
        assert (
            logits - outputs_of(load(base, dtype, prompt=PROMPT), PAIRS).logits
        ).abs().max() > 0.01
        assert adapted.head().weight.dtype == logits.dtype
    assert adapted.provenance.model == str(adapter)
    assert adapted.provenance.revision.count("sha256:") == 2  # of the adapter and of its base


def test_base_option_replaces_the_base_of_the_adapter(base, adapter, tmp_path):
    config = json.loads((adapter / "adapter_config.json").read_text())
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "adapter_model.safetensors").write_bytes(
        (adapter / "adapter_model.safetensors").read_bytes()
    )
    missing_base = {**config, "base_model_name_or_path": str(tmp_path / "no-such.gguf")}
    (moved / "adapter_config.json").write_text(json.dumps(missing_base))
    with pytest.raises(InputError, match=r"the base of .*--base"):
        load(moved, prompt=PROMPT)
    loaded = load(moved, prompt=PROMPT, base=str(base))
    reference = load(adapter, prompt=PROMPT)
    assert torch.equal(outputs_of(loaded, PAIRS).logits, outputs_of(reference, PAIRS).logits)
    (moved / "adapter_config.json").write_text(json.dumps({"task_type": "CAUSAL_LM"}))
    with pytest.raises(InputError, match=r"no base model.*--base"):
        load(moved, prompt=PROMPT)
    with pytest.raises(InputError, match="not a PEFT adapter"):
        load(base, base=str(base))


def test_classifier_adapter_includes_its_head(base, tmp_path):
    folder = save_random_adapter(base, tmp_path / "scorer", "SEQ_CLS", num_labels=1, pad_token_id=0)
    model = load(folder)
    assert model.provenance.kind == "cross-encoder"
    assert outputs_of(model, PAIRS).logits.shape == (2, 1)
    assert torch.equal(outputs_of(load(folder), PAIRS).logits, outputs_of(model, PAIRS).logits)


def test_adapter_for_an_unsupported_task_is_rejected(base, tmp_path):
    folder = save_random_adapter(base, tmp_path / "embedder", "FEATURE_EXTRACTION")
    with pytest.raises(InputError, match="task_type CAUSAL_LM or SEQ_CLS"):
        load(folder)


@pytest.mark.filterwarnings("ignore::deadheat.DeadheatWarning")
def test_check_command_accepts_base_and_prompt(base, adapter, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(adapter, moved)
    required = {"task_type": "CAUSAL_LM", "peft_type": "LORA"}
    config = json.loads((moved / "adapter_config.json").read_text())
    del config["base_model_name_or_path"]
    (moved / "adapter_config.json").write_text(json.dumps(config | required))
    (tmp_path / "data").mkdir()
    corpus = {f"d{i}": text for i, text in enumerate(tiny.DOCUMENTS)}
    queries = {f"q{i}": text for i, text in enumerate(tiny.QUERIES)}
    data = RetrievalDataset(
        "tiny",
        queries,
        corpus,
        {query: {"d0": 1} for query in queries},
        {query: list(corpus) for query in queries},
    )
    write_dataset(data, lambda name, content: (tmp_path / "data" / name).write_bytes(content))

    def check(*args: object):
        options = ["check", "--model", moved, "--dataset", tmp_path / "data", "--device", "cpu"]
        return CliRunner().invoke(main, list(map(str, [*options, *args])))

    assert "--base" in check("--prompt", PROMPT).stderr
    result = check("--base", base)
    assert result.exit_code == 2 and "--prompt" in result.stderr
    result = check("--base", base, "--prompt", PROMPT)
    assert result.exit_code == 0, result.output
    assert "Remedy" in result.stdout


def test_missing_peft_error_names_the_extra(adapter, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(MissingPackageError, match=r"pip install .*\[models\]"):
        load(adapter, prompt=PROMPT)


def test_splitting_a_prompt_keeps_its_tokens():
    tokenizer = tiny.qwen_tokenizer()
    prompt = split_prompt(PROMPT, tokenizer)
    assert (prompt.prefix, prompt.body) == ("<|im_start|>", "{document} answers {query}?")
    assert prompt.suffix == "<|im_end|>yes or no"
    for query, document in PAIRS:
        parts = (prompt.prefix, prompt.fill(query, document), prompt.suffix)
        ids = [i for part in parts for i in tokenizer(part)["input_ids"]]
        assert ids == tokenizer("".join(parts))["input_ids"]
    assert split_prompt("{query} {document}", tokenizer).body == "{query} {document}"
    with pytest.raises(InputError, match=r"prompt .*\{query\} and \{document\}"):
        split_prompt("does it answer {query}?", tokenizer)
