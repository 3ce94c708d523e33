"""Rerankers: logits compared with direct computations, heads, prompts and errors."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from model_outputs import outputs_of

from deadheat.errors import InputError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("sentence_transformers")

import tiny_models as tiny  # noqa: E402

from deadheat.lab.models import (  # noqa: E402
    ClassifierReranker,
    PairPrompt,
    YesNoReranker,
    load_model,
)
from deadheat.provenance import ModelProvenance  # noqa: E402

PROMPT = PairPrompt(prefix="<|im_start|>", suffix="<|im_end|>\nAnswer:")
KINDS = ["xlm-roberta", "bert", "gte", "qwen-classifier", "qwen"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("rerankers")
    paths = {
        "xlm-roberta": tiny.xlm_roberta(root / "xlm-roberta"),
        "bert": tiny.bert(root / "bert"),
        "qwen-classifier": tiny.qwen_classifier(root / "qwen-classifier"),
        "qwen": tiny.qwen(root / "qwen"),
    }
    if hasattr(transformers, "GteConfig"):
        paths["gte"] = tiny.gte(root / "gte")
    return paths


def load(folders, kind, dtype="fp32", **options):
    if kind not in folders:
        pytest.skip("this version of transformers has no native gte class")
    if kind == "qwen":
        options.setdefault("prompt", PROMPT)
    return load_model(folders[kind], model_dtype=dtype, device="cpu", **options)


def compute_logits_directly(folder: Path, kind: str, query: str, document: str) -> torch.Tensor:
    """Compute one pair alone in FP32 with transformers, sharing no code with deadheat."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        if kind == "qwen":
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            text = (
                "<|im_start|><Instruct>: Given a web search query, retrieve relevant passages that "
                f"answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\nAnswer:"
            )
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0, -1]
            vocabulary = tokenizer.get_vocab()
            return torch.stack([logits[vocabulary["no"]], logits[vocabulary["yes"]]])
        auto = transformers.AutoModelForSequenceClassification
        model = auto.from_pretrained(folder, dtype=torch.float32)
        return model(**tokenizer(query, document, return_tensors="pt")).logits[0]


@pytest.mark.parametrize("kind", KINDS)
def test_logits_match_a_direct_computation(folders, kind):
    model = load(folders, kind, batch_size=8)
    actual = outputs_of(model, tiny.PAIRS).logits
    expected = torch.stack(
        [compute_logits_directly(folders[kind], kind, *pair) for pair in tiny.PAIRS[:6]]
    )
    torch.testing.assert_close(actual[:6], expected, rtol=1e-4, atol=1e-5)
    assert actual.shape == (len(tiny.PAIRS), 2 if kind in ("bert", "qwen") else 1)
    assert actual.std(dim=0).min() > 1e-3  # equal scores would make the comparison pointless


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("kind", KINDS)
def test_head_maps_hidden_states_to_logits(folders, kind, dtype):
    model = load(folders, kind, dtype)
    output = outputs_of(model, tiny.PAIRS, with_hidden=True)
    head = model.head()
    assert output.logits.dtype == output.hidden.dtype == head.weight.dtype
    assert str(output.logits.dtype).endswith(
        {"fp32": "32", "bf16": "bfloat16", "fp16": "16"}[dtype]
    )
    again = torch.nn.functional.linear(
        output.hidden.float(),
        head.weight.float(),
        None if head.bias is None else head.bias.float(),
    )
    tolerance = {"fp32": 1e-5, "bf16": 2**-7, "fp16": 2**-10}[dtype]
    torch.testing.assert_close(again, output.logits.float(), rtol=tolerance, atol=tolerance / 8)
    assert torch.equal(outputs_of(model, tiny.PAIRS).logits, output.logits)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_reproducible_and_resumable(folders, kind):
    first = load(folders, kind, "bf16", batch_size=3)
    batches = first.batches(tiny.PAIRS, with_hidden=True)
    again = load(folders, kind, "bf16", batch_size=3).batches(tiny.PAIRS)
    assert again.indices == batches.indices
    whole = [batches.run(number)[0] for number in range(len(batches))]
    for number in range(4, len(batches)):
        assert torch.equal(again.run(number)[0], whole[number])
    collected = outputs_of(first, tiny.PAIRS).logits
    for indices, logits in zip(batches.indices, whole, strict=True):
        assert torch.equal(collected[list(indices)], logits)
    assert sorted(i for indices in batches.indices for i in indices) == list(range(len(tiny.PAIRS)))


def test_batches_start_with_the_longest_inputs(folders):
    model = load(folders, "bert", batch_size=4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["bert"])
    lengths = [len(tokenizer(*pair)["input_ids"]) for pair in tiny.PAIRS]
    order = [i for indices in model.batches(tiny.PAIRS).indices for i in indices]
    assert order == sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    assert [len(indices) for indices in model.batches(tiny.PAIRS).indices] == [4] * 5


class LimitedMemory:
    """A forward hook that fails as a device does when more than ``rows`` rows are passed."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __call__(self, _module, _args, options) -> None:
        if len(options["input_ids"]) > self.rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")


def test_out_of_memory_error_suggests_a_smaller_batch(folders):
    model = load(folders, "bert", batch_size=8)
    model._model.register_forward_pre_hook(LimitedMemory(3), with_kwargs=True)
    with pytest.raises(InputError, match=r"8 inputs .* memory of cpu .* smaller batch size"):
        outputs_of(model, tiny.PAIRS)


def test_other_runtime_errors_are_not_reported_as_out_of_memory(folders):
    model = load(folders, "bert")

    def fail(*_args):
        raise RuntimeError("index out of range in self")

    model._model.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="index out of range"):
        outputs_of(model, tiny.PAIRS)


@pytest.mark.parametrize("kind", ["bert", "qwen"])
def test_long_inputs_are_truncated_and_counted(folders, kind):
    pairs = [("who won", "a horse " * 300), ("who won", "a horse")]
    limit = 100 if kind == "bert" else 200
    output = outputs_of(load(folders, kind, max_length=limit), pairs)
    assert (output.inputs.count, output.inputs.truncated) == (2, 1)
    assert output.provenance.max_length == limit
    longer = outputs_of(load(folders, kind, max_length=limit + 1), pairs)
    assert not torch.equal(output.logits[0], longer.logits[0])
    torch.testing.assert_close(output.logits[1], longer.logits[1])


def test_truncation_keeps_the_prefix_and_suffix_of_the_prompt(folders):
    model = load(folders, "qwen", max_length=200)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders["qwen"])
    rows = model._encode(["who won"], ["a horse " * 300])["input_ids"]
    assert rows.shape == (1, 200)
    text = tokenizer.decode(rows[0])
    assert text.startswith("<|im_start|><Instruct>: Given a web")
    assert text.endswith("<|im_end|>\nAnswer:")


def test_classes_are_reordered_so_that_the_relevant_one_is_last(tmp_path, folders):
    named = Path(shutil.copytree(folders["bert"], tmp_path / "named"))
    config = json.loads((named / "config.json").read_text())
    config["id2label"] = {"0": "Relevant", "1": "Irrelevant"}
    config["label2id"] = {"Relevant": 0, "Irrelevant": 1}
    (named / "config.json").write_text(json.dumps(config))
    swapped = load_model(str(named), model_dtype="fp32", device="cpu")
    plain = load(folders, "bert")
    assert swapped.provenance.outputs == ("Irrelevant", "Relevant")
    assert plain.provenance.outputs == ("LABEL_0", "LABEL_1")
    assert torch.equal(
        outputs_of(swapped, tiny.PAIRS).logits, outputs_of(plain, tiny.PAIRS).logits.flip(1)
    )
    assert torch.equal(swapped.head().weight, plain.head().weight.flip(0))


def test_kind_is_read_from_the_configuration(folders):
    assert isinstance(load(folders, "xlm-roberta"), ClassifierReranker)
    assert isinstance(load(folders, "qwen"), YesNoReranker)
    assert load(folders, "qwen").provenance.outputs == ("no", "yes")


def test_provenance_json_round_trip(folders):
    provenance = outputs_of(
        load(folders, "qwen", "bf16", attn_implementation="eager"), tiny.PAIRS
    ).provenance
    stored = json.loads(json.dumps(provenance.to_dict()))
    assert ModelProvenance.from_dict(stored) == provenance
    assert stored["attn_implementation"] == "eager"
    assert stored["model_dtype"] == "bf16"
    assert stored["revision"].startswith("sha256:")
    assert stored["prompt"]["suffix"] == "<|im_end|>\nAnswer:"
    assert stored["versions"]["torch"] == torch.__version__
    assert load(folders, "qwen").provenance.attn_implementation == "sdpa"


def test_revision_changes_with_the_weights(tmp_path):
    folder = tiny.bert(tmp_path / "model")
    before = load_model(folder, model_dtype="fp32", device="cpu").provenance.revision
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        model.classifier.bias += 1
    model.save_pretrained(folder)
    after = load_model(folder, model_dtype="fp32", device="cpu").provenance.revision
    assert before != after


def test_braces_in_instruction_and_texts_are_kept():
    prompt = replace(PROMPT, instruction="Find {document}")
    filled = prompt.fill("{instruction} {x}", "{query}")
    assert filled == "<Instruct>: Find {document}\n<Query>: {instruction} {x}\n<Document>: {query}"


def test_instruction_changes_the_logits(folders):
    plain = outputs_of(load(folders, "qwen"), tiny.PAIRS[:2])
    other = outputs_of(load(folders, "qwen", instruction="Find duplicates"), tiny.PAIRS[:2])
    assert other.provenance.prompt["instruction"] == "Find duplicates"
    assert not torch.equal(plain.logits, other.logits)


def test_prompt_of_an_unknown_model_uses_its_chat_template(tmp_path):
    tokenizer = tiny.qwen_tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    folder = tiny.qwen(tmp_path / "chat", tokenizer)
    prompt = load_model(folder, model_dtype="fp32", device="cpu").provenance.prompt
    assert prompt["prefix"].startswith("<|im_start|>user\nJudge whether the Document")
    assert prompt["suffix"] == "<|im_end|>\n<|im_start|>assistant\n"


def test_left_padding_does_not_shift_positions(tmp_path):
    torch.manual_seed(8)
    tokenizer = tiny.qwen_tokenizer()
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=len(tokenizer))
    folder = tiny.save(tmp_path / "gpt2", transformers.GPT2LMHeadModel(config), tokenizer)
    model = load_model(folder, model_dtype="fp32", device="cpu", prompt=PROMPT)
    together = outputs_of(model, tiny.PAIRS).logits
    alone = torch.cat([outputs_of(model, [pair]).logits for pair in tiny.PAIRS])
    torch.testing.assert_close(together, alone)


def test_softcapped_logits_have_no_head_regime(tmp_path):
    config = transformers.Gemma2Config(
        **tiny.QWEN_SIZES, vocab_size=301, final_logit_softcapping=0.5, sliding_window=64
    )
    torch.manual_seed(9)
    model = transformers.Gemma2ForCausalLM(config)
    folder = tiny.save(tmp_path / "gemma", model, tiny.qwen_tokenizer())
    model = load_model(folder, model_dtype="fp32", device="cpu", prompt=PROMPT)
    assert outputs_of(model, tiny.PAIRS).logits.abs().max() <= 0.5
    with pytest.raises(InputError, match=r"no plain linear layer .*native or hps"):
        outputs_of(model, tiny.PAIRS, with_hidden=True)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "queries must be a list of at least one"),
        ([("a", "b"), ("a", " \n")], r"documents\[1\] must be a text"),
        ([("", "b")], r"queries\[0\] must be a text"),
        ([("a", None)], r"documents\[0\] must be a text.* None\b"),
        (["ab"], r"pairs\[0\] is not a \(query, document\) pair"),
        ([("a", "b", "c")], r"pairs\[0\] is not a \(query, document\) pair"),
    ],
)
def test_invalid_pairs_are_rejected(folders, pairs, message):
    with pytest.raises(InputError, match=message):
        outputs_of(load(folders, "bert"), pairs)


def save_overflowing_model(folder: Path) -> Path:
    tiny.bert(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    with torch.no_grad():
        model.classifier.weight *= 1e6
    model.save_pretrained(folder)
    return folder


def test_fp16_overflow_names_the_input_and_suggests_bf16(tmp_path):
    folder = str(save_overflowing_model(tmp_path / "big"))
    with pytest.raises(InputError, match=r"fp16 gave NaN or infinity for input \d+ \('.*bf16"):
        outputs_of(load_model(folder, model_dtype="fp16", device="cpu"), tiny.PAIRS)
    fine = outputs_of(load_model(folder, model_dtype="bf16", device="cpu"), tiny.PAIRS)
    assert fine.logits.isfinite().all()


def test_tokenizer_without_a_yes_token(tmp_path):
    folder = tiny.qwen(tmp_path / "no-yes", tiny.qwen_tokenizer(words=("no", "perhaps")))
    with pytest.raises(InputError, match=r"no single token for 'yes'.*PairPrompt"):
        load_model(folder, model_dtype="fp32", device="cpu", prompt=PROMPT)
    prompt = replace(PROMPT, yes="perhaps")
    model = load_model(folder, model_dtype="fp32", device="cpu", prompt=prompt)
    assert model.provenance.outputs == ("no", "perhaps")


def test_prompt_longer_than_max_length_is_rejected(folders):
    with pytest.raises(InputError, match=r"max_length \d+ .*\d+ tokens of the prompt"):
        load(folders, "qwen", max_length=5)
