"""`deadheat diagnose`: the ties of a run, their causes, and their effect on measures."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import click

from deadheat.cli.common import FILE, MEASURES, SCORE_DTYPE, TIE_BREAK
from deadheat.cli.findings import describe_diagnosis
from deadheat.cli.help import Command, parse_numbers
from deadheat.cli.names import split_name
from deadheat.cli.output import Output, output_options, print_remarks
from deadheat.diagnosis import diagnose
from deadheat.errors import DeadheatWarning, InputError

_LOGITS = """Logits, to find which step creates the ties: a Parquet, JSONL or CSV file with the
columns query_id and logit (or logit_no and logit_yes), and optionally head_logit and
model_dtype."""
_WORST = "Number of queries with the largest range to list per measure."
_ENOUGH = "A format is enough if the change of the expected value, and the range, are at most this."
_LEVELS = """Evaluate on scales with these numbers of values, such as 4,11,101, to find how fine a
scale of grades must be. [default: finer scales, for scores that are grades]"""


@click.command("diagnose", cls=Command, example="deadheat diagnose qrels.txt bf16.run -m nDCG@10")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="[QRELS] [NAME=]RUN")
@click.option("--qrels", "qrels_path", metavar="QRELS", help="The judgements, as an option.")
@MEASURES
@TIE_BREAK
@SCORE_DTYPE
@click.option(
    "--enough-within", "tolerance", type=click.FloatRange(min=0), default=0.001, help=_ENOUGH
)
@click.option("--worst", type=click.IntRange(min=0), default=5, help=_WORST)
@click.option("--logits", help=_LOGITS)
@click.option("--model-dtype", help="The dtype of the model of the logits, such as bf16.")
@click.option("--levels", callback=parse_numbers, help=_LEVELS)
@click.option("--details", is_flag=True, help="Show all measures, formats and queries.")
@output_options("style", "wide", "output", "force")
def command(
    files: tuple[str, ...],
    qrels_path: str | None,
    measures: tuple[str, ...],
    logits: str | None,
    details: bool,
    out: Output,
    **options: Any,
) -> None:
    """Diagnose the ties of RUN; with QRELS also their effect on measures.

    The file formats are those of eval. Exit status: 0 fine, 2 bad usage or input.
    """
    out.check(*files, qrels_path, logits)
    given = [*([] if qrels_path is None else [qrels_path]), *files]
    if len(given) > 2:
        raise InputError(f"give judgements and one run, not {len(given)} files")
    qrels, path = given[0] if len(given) == 2 else None, given[-1]
    path, label = split_name(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)  # printed below
        diagnosis = diagnose(qrels, path, measures or None, logits=logits, **options)
    diagnosis = replace(diagnosis, name=label or diagnosis.name)
    print_remarks({diagnosis.name: diagnosis.remarks})
    parts = diagnosis.parts(details=details, width=out.columns)
    out.show(parts, "" if qrels else describe_diagnosis(diagnosis, path), diagnosis.to_dict)
