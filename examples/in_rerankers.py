"""A yes/no reranker in BF16, scored by published code with the last layer in BF16 and in FP32.

Needs `pip install '.[models]'`. Nothing is downloaded: the script creates a tiny model with random
weights.
"""

from __future__ import annotations

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

import deadheat as dh

NO, YES = 1, 2

torch.manual_seed(0)
config = Qwen3Config(
    vocab_size=1000,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    initializer_range=0.2,
)
model = Qwen3ForCausalLM(config).to(torch.bfloat16).eval()
inputs = torch.randint(10, 1000, (300, 12))


@torch.no_grad()
def score() -> torch.Tensor:
    """Return the probability of yes, as the model card of Qwen3-Reranker computes it."""
    logits = model(inputs).logits[:, -1, :]
    pair = torch.stack([logits[:, NO], logits[:, YES]], dim=1)
    return torch.nn.functional.log_softmax(pair, dim=1)[:, 1].exp()


print("as published:", len(score().unique()), "distinct scores of", len(inputs))
for regime in ("hps", "head"):
    with dh.high_precision(model, regime, tokens=(NO, YES)) as view:
        print(f"{regime}:", len(score().unique()), "distinct scores;", view.scoring)
