"""The numbers of the paper's Table 1, and a table that compares a study with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.lab.experiment.results import StoredResult
from deadheat.lab.experiment.table1 import NAMES
from deadheat.lab.models import PRESETS
from deadheat.lab.models.presets import has_name
from deadheat.tables import Column, Table

# Per model: FP32 M; then oblivious, expected, range and bias in BF16, and the same with HPS.
_TABLE_1 = {
    ("MIRACLReranking", "nDCG@10"): """
        Qwen/Qwen3-Reranker-0.6B 73.53 75.04 68.38 25.59 6.66 73.59 73.35 1.13 0.24
        BAAI/bge-reranker-v2-m3 74.61 75.59 74.54 3.90 1.05 74.63 74.57 0.16 0.06
        Alibaba-NLP/gte-multilingual-reranker-base 74.14 74.48 74.22 0.97 0.26 74.39 74.34 0.14 0.05
        Qwen/Qwen3-Embedding-0.6B 63.94 64.52 63.98 1.90 0.54 64.01 64.01 0.00 0.00
        intfloat/multilingual-e5-large 64.78 65.70 64.81 4.62 0.89 64.80 64.80 0.00 0.00""",
    ("MIRACLReranking", "MRR@10"): """
        Qwen/Qwen3-Reranker-0.6B 77.48 78.45 69.37 38.03 9.08 77.43 77.22 1.21 0.21
        BAAI/bge-reranker-v2-m3 79.58 80.68 79.17 6.72 1.51 79.66 79.56 0.19 0.10
        Alibaba-NLP/gte-multilingual-reranker-base 79.39 79.75 79.47 0.85 0.28 79.59 79.52 0.18 0.07
        Qwen/Qwen3-Embedding-0.6B 68.97 69.54 68.91 2.23 0.63 69.02 69.02 0.00 0.00
        intfloat/multilingual-e5-large 71.37 71.84 71.28 4.61 0.56 71.18 71.18 0.00 0.00""",
    ("AskUbuntuDupQuestions", "MAP@3"): """
        Qwen/Qwen3-Reranker-0.6B 31.20 33.28 31.13 4.03 2.15 31.58 31.29 0.57 0.29
        BAAI/bge-reranker-v2-m3 31.91 32.26 31.83 0.83 0.43 31.89 31.84 0.09 0.05
        Alibaba-NLP/gte-multilingual-reranker-base 30.83 31.23 30.75 0.93 0.48 30.69 30.67 0.03 0.02
        Qwen/Qwen3-Embedding-0.6B 29.54 30.10 29.65 0.87 0.45 29.69 29.69 0.00 0.00
        intfloat/multilingual-e5-large 29.13 31.31 29.47 3.54 1.84 29.70 29.70 0.00 0.00""",
}
_VIEWS = ("oblivious", "expected", "range", "bias")
_PLACES = [("fp32", "native", "expected")]
_PLACES += [("bf16", regime, view) for regime in ("native", "hps") for view in _VIEWS]
_COLUMNS = (
    *NAMES,
    Column("regime", "name"),
    Column("view", "word"),
    Column("paper"),
    Column("ours"),
    Column("difference", "signed"),
    Column("within", "flag", over="paper within", title="our ties"),
)


def against_paper(results: Sequence[StoredResult]) -> Table:
    """Return the numbers of the paper's Table 1 next to those of stored results.

    Parameters
    ----------
    results
        Results from `deadheat.lab.experiment.load_results`. Results that are not in the paper's
        table are left out.

    Returns
    -------
    Table
        Per dataset, measure, model, dtype, regime and view: the paper's number, the study's
        number, the difference, and whether the paper's number is between the worst and the best
        value over tie orders here. A range or a bias has no such bounds.
    """
    rows = [row for stored in results for row in _compare(stored)]
    if not rows:
        names = ", ".join(preset.names[0] for preset in PRESETS)
        raise InputError(
            "none of these results is in the paper's Table 1: nDCG@10 and MRR@10 of "
            f"MIRACLReranking (en), MAP@3 of AskUbuntuDupQuestions, with {names} in BF16 (native, "
            "hps) or FP32; run deadheat run --paper"
        )
    return Table(
        pl.DataFrame(rows, infer_schema_length=None),
        _COLUMNS,
        "Against the paper's Table 1",
        ["paper within our ties: between the worst and the best value over tie orders here"],
        grouped=5,
    )


def _compare(stored: StoredResult) -> Iterator[dict[str, object]]:
    origin = stored.manifest.dataset
    for (dataset, measure), lines in _TABLE_1.items():
        if Path(origin.name).name != dataset or origin.subset not in (None, "en", "default"):
            continue
        if measure not in map(repr, stored.result.views):
            continue
        summary = stored.result[measure]
        for name, *numbers in map(str.split, lines.strip().splitlines()):
            for (dtype, regime, view), number in zip(_PLACES, numbers, strict=True):
                of_this = (dtype, regime) == (stored.model_dtype, stored.regime)
                if not of_this or not has_name(stored.model, name):
                    continue
                paper, ours = float(number) / 100, getattr(summary, view)
                # The paper prints two decimals of a percentage.
                low, high = summary.worst - 5e-5, summary.best + 5e-5
                yield {
                    "dataset": stored.dataset,
                    "measure": measure,
                    "model": stored.name,
                    "model_dtype": dtype,
                    "regime": regime,
                    "view": view,
                    "paper": paper,
                    "ours": ours,
                    "difference": ours - paper,
                    "within": low <= paper <= high if view in _VIEWS[:2] else None,
                }
