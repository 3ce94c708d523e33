"""What each precision regime costs: its scoring, measured beside the forward pass it follows.

    python benchmarks/scoring_costs.py MODEL DATASET [--model-dtype bf16] [--inputs 64]

MODEL and DATASET are what `deadheat run` takes. A few inputs pass through the model; then their
logits or embeddings are scored in every regime, each as often as it takes to measure it. All times
are of one process on one machine, and only their ratios are printed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl

from deadheat.lab.datasets import load_dataset
from deadheat.lab.models import BiEncoder, load_model
from deadheat.scoring import score
from deadheat.scoring.torch_functions import head_logits
from deadheat.tables import Column, Table, render

COLUMNS = (
    Column("model", "name"),
    Column("model_dtype", "name", over="model", title="dtype"),
    Column("regime", "name"),
    Column("scoring", "ratio", over="scoring", title="× native"),
    Column("whole", "ratio", over="forward pass and scoring", title="× native"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("dataset")
    parser.add_argument("--model-dtype", default="bf16")
    parser.add_argument("--inputs", type=int, default=64)
    parser.add_argument("--candidates", default="given", choices=("given", "bm25", "full"))
    words = parser.parse_args()
    rows = costs(words.model, words.dataset, words.model_dtype, words.inputs, words.candidates)
    print(render([Table(pl.DataFrame(rows), COLUMNS, grouped=2)], "table"))


def costs(
    name: str,
    dataset: str,
    model_dtype: str,
    inputs: int,
    candidates: Any = "given",
    label: str | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Time the forward pass of some inputs, and their scoring in every regime.

    `options` are those of `deadheat.lab.models.load_model`.
    """
    data = load_dataset(dataset, candidates=candidates)
    model = load_model(name, model_dtype=model_dtype, **options)
    if isinstance(model, BiEncoder):
        documents, queries = list(data.corpus.values())[:inputs], list(data.queries.values())[:8]
        forward, (vectors,) = timed(model.batches(documents, "document").collect)
        (asked,) = model.batches(queries, "query").collect()
        function: Any = "dot" if model.provenance.normalised else "cosine"
        given: dict[str, Any] = {"queries": asked, "documents": vectors}
        steps = in_fp32_or_not(function, model_dtype, given)
    else:
        lists = data.candidates or {}
        pairs = [(data.queries[q], data.corpus[d]) for q, docs in lists.items() for d in docs]
        batches = model.batches(pairs[:inputs], with_hidden=True)
        forward, (outputs, hidden) = timed(batches.collect)
        head = model.head()
        function = "sigmoid" if outputs.shape[1] == 1 else "softmax"
        logits = {"logits": one_or_two(outputs)}
        steps = in_fp32_or_not(function, model_dtype, logits)

        def with_head(regime: str) -> Any:
            exact = head_logits(hidden, head.weight, head.bias)
            return score(
                function, regime=regime, model_dtype=model_dtype, head_logits=one_or_two(exact)
            )

        steps |= {regime: partial(with_head, regime) for regime in ("head", "head-logit")}
    seconds = {regime: timed(step)[0] for regime, step in steps.items()}
    return [
        {
            "model": label or name.rstrip("/").rpartition("/")[2],
            "model_dtype": model_dtype,
            "regime": regime,
            "scoring": spent / seconds["native"],
            "whole": (forward + spent) / (forward + seconds["native"]),
        }
        for regime, spent in seconds.items()
    ]


def in_fp32_or_not(
    function: Any, model_dtype: str, given: dict[str, Any]
) -> dict[str, Callable[[], Any]]:
    """Scoring under the regimes that need no more than the model's output."""
    return {
        regime: partial(score, function, regime=regime, model_dtype=model_dtype, **given)
        for regime in ("native", "hps")
    }


def one_or_two(logits: Any) -> Any:
    return logits.squeeze(1) if logits.shape[1] == 1 else logits


def timed(compute: Callable[[], Any]) -> tuple[float, Any]:
    """Compute at least three times and for half a second; return the fastest time and the value."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < 0.5:
        start = time.perf_counter()
        value = compute()
        times.append(time.perf_counter() - start)
    return min(times), value


if __name__ == "__main__":
    main()
