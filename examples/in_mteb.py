"""A BF16 reranker in MTEB: nDCG@10 and its tie range in three regimes.

Needs `pip install '.[mteb]'`. Nothing is downloaded: the script creates the task and a
tiny cross-encoder with random weights. With your own, use the last part.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from sentence_transformers import CrossEncoder
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from deadheat.integrations.mteb import evaluate

WORDS = ["heat", "race", "line", "horse", "mile", "nose", "stand", "dead", "won", "instant"]


class Races(AbsTaskRetrieval):
    """Thirty candidates for each of twenty queries, three of them relevant."""

    metadata = TaskMetadata(
        name="Races",
        type="Reranking",
        description="Made by an example.",
        dataset={"path": "none", "revision": "1"},
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
    )

    def load_data(self, **_: object) -> None:
        """Create queries, candidates and judgements."""
        rng = np.random.default_rng(0)
        texts = [" ".join(words) for words in rng.choice(WORDS, (200, 6))]
        corpus = {f"d{i}": text for i, text in enumerate(texts)}
        top = {f"q{i}": [str(d) for d in rng.choice(list(corpus), 30, False)] for i in range(20)}
        queries = [{"id": query, "text": " ".join(rng.choice(WORDS, 4))} for query in top]
        documents = [{"id": d, "text": text, "title": ""} for d, text in corpus.items()]
        split = {
            "queries": Dataset.from_list(queries),
            "corpus": Dataset.from_list(documents),
            "relevant_docs": {query: dict.fromkeys(docs[:3], 1) for query, docs in top.items()},
            "top_ranked": top,
        }
        self.dataset = {"default": {"test": split}}
        self.data_loaded = True


def tiny_reranker(folder: Path) -> CrossEncoder:
    """Return a cross-encoder with random weights in BF16."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: i for i, word in enumerate([*special, *WORDS])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", model_max_length=64
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=1,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": torch.bfloat16})


with tempfile.TemporaryDirectory() as folder:
    model = tiny_reranker(Path(folder))
    print("regime   MTEB    expected  worst   best")
    for regime in ("native", "hps", "head"):
        result = evaluate(model, Races(), regime=regime, cache=None, show_progress_bar=False)
        scores = result.task_results[0].scores["test"][0]
        expected, worst, best = (scores[f"ndcg_at_10_{v}"] for v in ("expected", "worst", "best"))
        print(f"{regime:8} {scores['ndcg_at_10']:.4f}  {expected:.4f}    {worst:.4f}  {best:.4f}")
