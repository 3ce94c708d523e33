"""`deadheat check`: effect, cause and remedy of ties in a run or model."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

import click

from deadheat.cli.common import (
    BASE,
    COUNT,
    FILE,
    PROMPT,
    SCORE_DTYPE,
    TIE_BREAK,
    measures_option,
)
from deadheat.cli.help import Command
from deadheat.cli.names import split_name
from deadheat.cli.output import Output, gather, output_options, print_line, print_warnings
from deadheat.cli.progress import hide_other_bars, progress_bar
from deadheat.diagnosis import Check, check_run
from deadheat.errors import DeadheatWarning, InputError
from deadheat.settings import EvalSettings

_EXAMPLE = """deadheat check qrels.txt bf16.run
deadheat check --model ./my-cross-encoder --dataset ./dev --model-dtype bf16"""


@click.command("check", cls=Command, example=_EXAMPLE)
@click.argument("files", nargs=-1, type=FILE, metavar="[QRELS [NAME=]RUN]")
@click.option(
    "--model",
    type=FILE,
    help="Model to check instead of a run: hub id, folder (of a model or a PEFT adapter) or .gguf "
    "file.",
)
@click.option("--dataset", type=FILE, help="Dataset for the model: hub id, folder or file.")
@gather(
    "loading",
    dict,
    BASE,
    PROMPT,
    click.option("--model-dtype", default="bf16", help="Format of the model: bf16, fp16 or fp32."),
    click.option("--batch-size", type=COUNT, default=16, help="Inputs per forward pass."),
    click.option("--device", help="cpu, cuda, cuda:1, mps. [default: the fastest available]"),
)
@click.option(
    "--samples",
    type=COUNT,
    default=100,
    help="Number of queries for the model, evenly spaced in the dataset.",
)
@click.option(
    "--regime",
    help="Regime of your own code, as in `deadheat run`. [default: hps; native for FP32]",
)
@measures_option("Measures such as nDCG@10,MRR@10. [default: nDCG@10]")
@gather("settings", EvalSettings, TIE_BREAK, SCORE_DTYPE)
@click.option(
    "--max-range",
    type=click.FloatRange(min=0),
    help="Exit with status 1 if ties can move a measure by more than this, such as 0.01.",
)
@click.option("--details", is_flag=True, help="Also show the numbers as a table.")
@output_options("style", "wide", "output", "force", percent=True)
def command(
    files: tuple[str, ...],
    model: str | None,
    dataset: str | None,
    measures: tuple[str, ...],
    settings: EvalSettings,
    loading: dict[str, object],
    samples: int,
    regime: str | None,
    max_range: float | None,
    details: bool,
    out: Output,
) -> None:
    """Check whether ties affect your numbers, why, and what to change, in three lines.

    Give judgements and a run, or a model and a dataset. A model is run once; all precision
    regimes are computed from that forward pass, so the effect of the remedy is measured. Exit
    status: 0 fine, 1 ties can move a measure by more than --max-range, 2 bad usage or input.
    """
    out.check(*files, dataset)
    asked = list(measures) or "nDCG@10"
    if model is None and dataset is None and len(files) == 2:
        path, label = split_name(files[1])
        found = check_run(files[0], path, asked, **vars(settings))
        found = replace(found, name=label or found.name)
    elif model is not None and dataset is not None and not files:
        found = _check_model(
            model, loading, dataset, asked, samples=samples, regime=regime, **vars(settings)
        )
    else:
        raise InputError(
            "check needs judgements and one run (deadheat check QRELS RUN), or a model and a "
            "dataset (deadheat check --model MODEL --dataset DATASET --model-dtype bf16)"
        )
    print_warnings(found.warnings)
    parts = found.parts(details=details or out.style == "csv", width=out.columns)
    out.show(parts, data=found.to_dict)
    if max_range is not None and not found.ok(max_range):
        print_line(f"range {found.range:.4f} is above --max-range {max_range:g}", err=True)
        sys.exit(1)


def _check_model(
    name: str, loading: dict[str, Any], dataset: str, measures: Any, **options: Any
) -> Check:
    from deadheat.lab.check import check
    from deadheat.lab.models import load_model

    hide_other_bars()
    with progress_bar("loading the model") as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)  # the command prints them itself
        return check(load_model(name, **loading), dataset, measures, progress=progress, **options)
