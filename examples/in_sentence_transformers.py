"""A bi-encoder with BF16 and binary embeddings, evaluated over all orders of tied documents.

Needs `pip install '.[sentence-transformers]'`. Nothing is downloaded: the script creates the
collection and a tiny encoder with random weights.
"""

from __future__ import annotations

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

from deadheat.integrations.sentence_transformers import InformationRetrievalEvaluator, quantised

WORDS = ["heat", "race", "line", "horse", "mile", "nose", "stand", "dead", "won", "instant"]

rng = np.random.default_rng(0)
texts = sorted({" ".join(words) for words in rng.choice(WORDS, (3000, 4))})
corpus = {f"d{i}": text for i, text in enumerate(texts)}
queries = {f"q{i}": " ".join(rng.choice(WORDS, 3)) for i in range(30)}
relevant = {
    query: {d for d, text in corpus.items() if set(words.split()) <= set(text.split())}
    for query, words in queries.items()
}

vocabulary = {word: i for i, word in enumerate(["[UNK]", *WORDS])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
torch.manual_seed(0)
embedding = StaticEmbedding(tokenizer, embedding_weights=torch.randn(len(vocabulary), 32))
model = SentenceTransformer(modules=[embedding], device="cpu").to(torch.bfloat16)

print("scores    nDCG@10  worst   best")
for name, options in {
    "hps": {"regime": "hps"},
    "native": {"regime": "native"},
    "binary": {"score_functions": {"binary": quantised("binary")}},
    "rescored": {"score_functions": {"rescored": quantised("binary", rescore=True)}},
}.items():
    evaluator = InformationRetrievalEvaluator(queries, corpus, relevant, **options)
    metrics = evaluator(model)
    key = evaluator.primary_metric
    values = metrics[key], metrics[f"{key}_worst"], metrics[f"{key}_best"]
    print(f"{name:9} {values[0]:.4f}   {values[1]:.4f}  {values[2]:.4f}")
