"""A ColBERT model of PyLate in BF16, scored in BF16 and in FP32.

Needs `pip install '.[pylate]'`. Nothing is downloaded: the script creates a tiny model with random
weights.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from pylate import models, scores
from transformers import BertConfig, BertModel, BertTokenizerFast

import deadheat as dh

WORDS = ["heat", "race", "line", "horse", "mile", "nose", "stand", "dead", "won", "instant"]

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    vocabulary = Path(folder, "vocab.txt")
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]"]
    vocabulary.write_text("\n".join([*special, *WORDS, "."]), encoding="utf-8")
    BertTokenizerFast(str(vocabulary)).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(special) + len(WORDS) + 1,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
    )
    BertModel(config).save_pretrained(folder)
    model = models.ColBERT(folder, device="cpu").to(torch.bfloat16).eval()

texts = sorted({" ".join(words) for words in np.random.default_rng(0).choice(WORDS, (300, 5))})
for name, encoder in (("BF16", model), ("FP32", dh.high_precision(model))):
    query = encoder.encode(texts[:1], is_query=True, convert_to_tensor=True)[0]
    documents = encoder.encode(texts, is_query=False, convert_to_tensor=True)
    found = [scores.colbert_scores(query[None], document[None]).item() for document in documents]
    print(f"MaxSim in {name}:", len(set(found)), "distinct scores of", len(texts))
