"""Tiny checkpoints with random weights, built with the configuration classes of transformers.

The vocabularies contain the words and letters of a few sentences. Special tokens and the layout of
pairs are those of the model family.
"""

from __future__ import annotations

import json
import re
import string
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tokenizers import (  # noqa: E402
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (  # noqa: E402
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3ForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
    XLMRobertaModel,
)

QUERIES = ["what is a dead heat", "how long is a furlong", "who won the race", "why do horses run"]
DOCUMENTS = [
    "A dead heat is a race in which several runners cross the line at the same instant.",
    "A furlong is an eighth of a mile.",
    "The bay mare won by a nose, and nobody in the stand believed it until the photograph came.",
    "Horses run because they can.",
    "No.",
]
PAIRS = [(query, document) for query in QUERIES for document in DOCUMENTS]
TEXT = " ".join([*QUERIES, *DOCUMENTS, "yes no query: passage: Instruct: Query:"])

WIDTH = 32
LAYERS = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES = {**LAYERS, "intermediate_size": 64, "initializer_range": 0.2}
QWEN_SIZES = {**SIZES, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 8192}


def bert_tokenizer() -> PreTrainedTokenizerFast:
    # A trainer would give another vocabulary in every process.
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted(set(re.findall(r"\w+|[^\w\s]", TEXT)) | set(string.ascii_letters))
    pieces = [*special, *words, *(f"##{letter}" for letter in string.ascii_letters)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=512,
    )


def roberta_tokenizer(max_length: int = 8192) -> PreTrainedTokenizerFast:
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    words = sorted({f"▁{word}" for word in TEXT.split()})
    letters = sorted({*TEXT, *string.ascii_letters, "▁"} - {" "})
    likelihoods = [*((piece, 0.0) for piece in special), *((word, -5.0) for word in words)]
    likelihoods += [(letter, -10.0) for letter in letters]
    tokenizer = Tokenizer(models.Unigram(likelihoods, unk_id=special.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
    )


def qwen_tokenizer(
    *, words: tuple[str, ...] = ("yes", "no"), ends_text: bool = False
) -> PreTrainedTokenizerFast:
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + len(special) + 40,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([*words * 200, "Query Document Instruct"], trainer)
    if ends_text:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<|endoftext|>",
        eos_token="<|im_end|>",
        model_max_length=8192,
        model_input_names=["input_ids", "attention_mask"],
    )


def save(folder: Path, model: torch.nn.Module, tokenizer: PreTrainedTokenizerFast) -> Path:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def xlm_roberta(folder: Path, labels: int = 1) -> Path:
    torch.manual_seed(1)
    tokenizer = roberta_tokenizer()
    config = XLMRobertaConfig(
        **SIZES,
        vocab_size=len(tokenizer),
        max_position_embeddings=8194,
        type_vocab_size=1,
        num_labels=labels,
    )
    return save(folder, XLMRobertaForSequenceClassification(config), tokenizer)


def bert(folder: Path, labels: int = 2) -> Path:
    torch.manual_seed(2)
    tokenizer = bert_tokenizer()
    config = BertConfig(**SIZES, vocab_size=len(tokenizer), num_labels=labels)
    return save(folder, BertForSequenceClassification(config), tokenizer)


def gte(folder: Path) -> Path:
    from transformers import GteConfig, GteForSequenceClassification

    torch.manual_seed(3)
    tokenizer = roberta_tokenizer()
    config = GteConfig(**SIZES, vocab_size=len(tokenizer), num_labels=1)
    return save(folder, GteForSequenceClassification(config), tokenizer)


def qwen_classifier(folder: Path) -> Path:
    torch.manual_seed(4)
    tokenizer = qwen_tokenizer()
    config = Qwen3Config(**QWEN_SIZES, vocab_size=len(tokenizer), num_labels=1, pad_token_id=0)
    return save(folder, Qwen3ForSequenceClassification(config), tokenizer)


def qwen(folder: Path, tokenizer: PreTrainedTokenizerFast | None = None) -> Path:
    torch.manual_seed(5)
    tokenizer = tokenizer or qwen_tokenizer()
    config = Qwen3Config(**QWEN_SIZES, vocab_size=len(tokenizer), tie_word_embeddings=True)
    return save(folder, Qwen3ForCausalLM(config), tokenizer)


def bert_encoder(folder: Path) -> Path:
    torch.manual_seed(6)
    tokenizer = bert_tokenizer()
    return save(folder, BertModel(BertConfig(**SIZES, vocab_size=len(tokenizer))), tokenizer)


def bert_masked(folder: Path) -> Path:
    torch.manual_seed(8)
    tokenizer = bert_tokenizer()
    return save(folder, BertForMaskedLM(BertConfig(**SIZES, vocab_size=len(tokenizer))), tokenizer)


def e5_encoder(folder: Path) -> Path:
    torch.manual_seed(7)
    tokenizer = roberta_tokenizer(max_length=512)
    config = XLMRobertaConfig(
        **SIZES, vocab_size=len(tokenizer), max_position_embeddings=514, type_vocab_size=1
    )
    return save(folder, XLMRobertaModel(config), tokenizer)


def qwen_encoder(folder: Path) -> Path:
    return qwen(folder, qwen_tokenizer(ends_text=True))


def add_pooling(
    folder: Path, mode: str, prompts: dict[str, str] | None = None, *, normalize: bool = True
) -> Path:
    """Write the files that make a folder a sentence-transformers checkpoint."""
    names = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    modules = [
        {
            "idx": i,
            "name": str(i),
            "path": "" if i == 0 else f"{i}_{name}",
            "type": f"sentence_transformers.models.{name}",
        }
        for i, name in enumerate(names)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {
        "word_embedding_dimension": WIDTH,
        "pooling_mode_mean_tokens": mode == "mean",
        "pooling_mode_lasttoken": mode == "lasttoken",
    }
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    if prompts:
        (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return folder
