"""`deadheat diagnose`: where a run's ties are, where they come from, what they do."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import click
from rich.console import Console

from deadheat.cli.common import FORCE, TIE_BREAK, check_output, show_warnings, write
from deadheat.diagnosis import diagnose
from deadheat.errors import DeadheatWarning, InputError

_LOGITS = """A Parquet, JSONL or CSV file with the columns query_id and logit (or logit_no and
logit_yes), perhaps head_logit and model_dtype, to find where the ties were born."""
_WORST = "How many queries of the largest range to name per measure. [default: 5]"
_ENOUGH = "A format is enough if E[M] moves, and ties can move it, by no more than this."


@click.command("diagnose")
@click.argument("run")
@click.argument("qrels", required=False)
@click.option("-m", "--measure", "measures", multiple=True, help="A measure such as nDCG@10.")
@TIE_BREAK
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=0.001, show_default=True, help=_ENOUGH
)
@click.option("--worst", type=click.IntRange(min=0), default=5, help=_WORST)
@click.option("--logits", help=_LOGITS)
@click.option("--model-dtype", help="The dtype of the model that gave the logits, e.g. bf16.")
@click.option(
    "--format", "style", type=click.Choice(("table", "markdown", "json")), default="table"
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to a file.")
@FORCE
def command(
    run: str,
    qrels: str | None,
    measures: tuple[str, ...],
    style: str,
    output: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Diagnose the ties of RUN; with QRELS also what they do to measures.

    The files are those that eval reads. Exit status: 0 fine, 2 bad usage or input.
    """
    if [run, qrels, options["logits"]].count("-") > 1:
        raise InputError("standard input (-) can be read only once")
    check_output(output, force=force)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)
        found = diagnose(run, qrels, measures or None, **options)
    show_warnings([found])
    if style == "table" and output is None and sys.stdout.isatty():
        Console().print(found)
    else:
        texts = {"table": found.__str__, "markdown": found.to_markdown, "json": found.to_json}
        write(texts[style](), output)
