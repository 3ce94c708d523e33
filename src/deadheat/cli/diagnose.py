"""`deadheat diagnose`: where a run's ties are, where they come from, what they do."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import click

from deadheat.cli.common import FILE, MEASURES, SCORE_DTYPE, TIE_BREAK, check_standard_input
from deadheat.cli.findings import describe_diagnosis
from deadheat.cli.help import Command, parse_numbers
from deadheat.cli.names import split_name
from deadheat.cli.output import Output, output_options, print_remarks
from deadheat.diagnosis import diagnose
from deadheat.errors import DeadheatWarning, InputError

_LOGITS = """A Parquet, JSONL or CSV file with the columns query_id and logit (or logit_no and
logit_yes), perhaps head_logit and model_dtype, to find which step creates the ties."""
_WORST = "How many queries of the largest range to name per measure."
_ENOUGH = "A format is enough if E[M] moves, and ties can move it, by no more than this."
_LEVELS = """How fine must a scale of grades be: the measures on scales of so many values, as in
4,11,101. [default: scores that are grades, on finer scales]"""


@click.command("diagnose", cls=Command, example="deadheat diagnose qrels.txt bf16.run -m nDCG@10")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="[QRELS] [NAME=]RUN")
@click.option("--qrels", "qrels_path", metavar="QRELS", help="The judgements, by name.")
@MEASURES
@TIE_BREAK
@SCORE_DTYPE
@click.option(
    "--enough-within", "tolerance", type=click.FloatRange(min=0), default=0.001, help=_ENOUGH
)
@click.option("--worst", type=click.IntRange(min=0), default=5, help=_WORST)
@click.option("--logits", help=_LOGITS)
@click.option("--model-dtype", help="The dtype of the model that gave the logits, e.g. bf16.")
@click.option("--levels", callback=parse_numbers, help=_LEVELS)
@click.option("--details", is_flag=True, help="All measures, formats and queries.")
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
    """Diagnose the ties of RUN; with QRELS also what they do to measures.

    The files are those that eval reads. Exit status: 0 fine, 2 bad usage or input.
    """
    check_standard_input(*files, qrels_path, logits)
    out.check(*files, qrels_path, logits)
    given = [*([] if qrels_path is None else [qrels_path]), *files]
    if len(given) > 2:
        raise InputError(f"give judgements and one run, not {len(given)} files")
    qrels, path = given[0] if len(given) == 2 else None, given[-1]
    path, label = split_name(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)  # they are printed below
        diagnosis = diagnose(qrels, path, measures or None, logits=logits, **options)
    diagnosis = replace(diagnosis, name=label or diagnosis.name)
    print_remarks({diagnosis.name: diagnosis.remarks})
    if out.style == "json":
        out.write(diagnosis.to_json())
    else:
        parts = diagnosis.parts(percent=out.percent, details=details, width=out.columns)
        out.show(parts, "" if qrels else describe_diagnosis(diagnosis, path))
