"""Time of scoring in each precision regime, relative to native scoring.

    python benchmarks/scoring_costs.py MODEL DATASET [--model-dtype bf16] [--inputs 64]

MODEL and DATASET are arguments of `deadheat run`. The model runs on a few inputs; their logits or
embeddings are scored in all regimes. Times are of one process, with and without the forward pass,
and only their ratios are printed.
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
    given = parser.parse_args()
    rows = time_regimes(
        given.model, given.dataset, given.model_dtype, given.inputs, given.candidates
    )
    print(render([Table(pl.DataFrame(rows), COLUMNS, grouped=2)], "table"))


def time_regimes(
    name: str,
    dataset: str,
    model_dtype: str,
    inputs: int,
    candidates: Any = "given",
    label: str | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Time the forward pass of some inputs, and their scoring in all regimes.

    `options` are those of `deadheat.lab.models.load_model`.
    """
    data = load_dataset(dataset, candidates=candidates)
    model = load_model(name, model_dtype=model_dtype, **options)
    if isinstance(model, BiEncoder):
        documents, queries = list(data.corpus.values())[:inputs], list(data.queries.values())[:8]
        forward, (vectors,) = time_call(model.batches(documents, "document").collect)
        (query_vectors,) = model.batches(queries, "query").collect()
        function: Any = "dot" if model.provenance.normalised else "cosine"
        given: dict[str, Any] = {"queries": query_vectors, "documents": vectors}
        steps = native_and_hps(function, model_dtype, given)
    else:
        lists = data.candidates or {}
        pairs = [(data.queries[q], data.corpus[d]) for q, docs in lists.items() for d in docs]
        batches = model.batches(pairs[:inputs], with_hidden=True)
        forward, (outputs, hidden) = time_call(batches.collect)
        head = model.head()
        function = "sigmoid" if outputs.shape[1] == 1 else "softmax"
        logits = {"logits": squeeze_single(outputs)}
        steps = native_and_hps(function, model_dtype, logits)

        def with_head(regime: str) -> Any:
            exact = head_logits(hidden, head.weight, head.bias)
            return score(
                function, regime=regime, model_dtype=model_dtype, head_logits=squeeze_single(exact)
            )

        steps |= {regime: partial(with_head, regime) for regime in ("head", "head-logit")}
    seconds = {regime: time_call(step)[0] for regime, step in steps.items()}
    return [
        {
            "model": label or name.rstrip("/").rpartition("/")[2],
            "model_dtype": model_dtype,
            "regime": regime,
            "scoring": duration / seconds["native"],
            "whole": (forward + duration) / (forward + seconds["native"]),
        }
        for regime, duration in seconds.items()
    ]


def native_and_hps(
    function: Any, model_dtype: str, given: dict[str, Any]
) -> dict[str, Callable[[], Any]]:
    """Return the functions that score a model's output in the regimes native and hps."""
    return {
        regime: partial(score, function, regime=regime, model_dtype=model_dtype, **given)
        for regime in ("native", "hps")
    }


def squeeze_single(logits: Any) -> Any:
    """Remove the last axis of single logits."""
    return logits.squeeze(1) if logits.shape[1] == 1 else logits


def time_call(compute: Callable[[], Any]) -> tuple[float, Any]:
    """Call a function at least three times and for half a second; return best time and value."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < 0.5:
        start = time.perf_counter()
        value = compute()
        times.append(time.perf_counter() - start)
    return min(times), value


if __name__ == "__main__":
    main()
