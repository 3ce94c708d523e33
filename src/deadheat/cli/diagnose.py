"""`deadheat diagnose`: where a run's ties are, where they come from, what they do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import click

from deadheat.cli.common import (
    FORCE,
    MEASURES,
    OUTPUT,
    PERCENT,
    SCORE_DTYPE,
    STYLE,
    TIE_BREAK,
    WIDE,
    check_output,
    check_standard_input,
    print_remarks,
    show,
    write,
)
from deadheat.cli.findings import describe_diagnosis
from deadheat.cli.help import Command
from deadheat.cli.names import split_name
from deadheat.diagnosis import diagnose
from deadheat.diagnosis.parts import parts_of
from deadheat.errors import DeadheatWarning, InputError
from deadheat.formats import read_qrels, read_run

_LOGITS = """A Parquet, JSONL or CSV file with the columns query_id and logit (or logit_no and
logit_yes), perhaps head_logit and model_dtype, to find where the ties were born."""
_WORST = "How many queries of the largest range to name per measure. [default: 5]"
_ENOUGH = "A format is enough if E[M] moves, and ties can move it, by no more than this."
_LEVELS = """How fine must a scale of grades be: the measures on scales of so many values, as in
4,11,101. [default: scores that are grades, on finer scales]"""
_TOLERANCE = click.FloatRange(min=0)


def _numbers(_: object, __: object, text: str | None) -> list[int] | None:
    """Read whole numbers between commas."""
    if text is None:
        return None
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise click.BadParameter(f"whole numbers between commas, as in 4,11,101, not {text!r}")
    return list(map(int, words))


@click.command(
    "diagnose",
    cls=Command,
    example="deadheat diagnose qrels.txt bf16.run -m nDCG@10",
)
@click.argument("files", nargs=-1, required=True, metavar="[QRELS] [NAME=]RUN")
@click.option("--qrels", "qrels_path", metavar="QRELS", help="The judgements, by name.")
@MEASURES
@TIE_BREAK
@SCORE_DTYPE
@click.option(
    "--enough-within",
    "tolerance",
    type=_TOLERANCE,
    default=0.001,
    show_default=True,
    help=_ENOUGH,
)
@click.option("--tolerance", "old_tolerance", type=_TOLERANCE, hidden=True)
@click.option("--worst", type=click.IntRange(min=0), default=5, help=_WORST)
@click.option("--logits", help=_LOGITS)
@click.option("--model-dtype", help="The dtype of the model that gave the logits, e.g. bf16.")
@click.option("--levels", callback=_numbers, help=_LEVELS)
@PERCENT
@STYLE
@WIDE
@OUTPUT
@FORCE
def command(
    files: tuple[str, ...],
    qrels_path: str | None,
    measures: tuple[str, ...],
    tolerance: float,
    old_tolerance: float | None,
    percent: bool,
    style: str,
    wide: bool,
    output: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Diagnose the ties of RUN; with QRELS also what they do to measures.

    The files are those that eval reads. Exit status: 0 fine, 2 bad usage or input.
    """
    check_standard_input(*files, qrels_path, options["logits"])
    check_output(output, force=force, inputs=(*files, qrels_path, options["logits"]))
    qrels, run = _qrels_and_run(files, qrels_path)
    named = split_name(run)
    enough = tolerance if old_tolerance is None else old_tolerance
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)  # they are printed below
        diagnosis = diagnose(qrels, named.path, measures or None, tolerance=enough, **options)
    diagnosis = replace(diagnosis, name=named.label or diagnosis.name)
    print_remarks({diagnosis.name: diagnosis.remarks})
    if style == "json":
        write(diagnosis.to_json(), output)
    else:
        finding = describe_diagnosis(diagnosis, qrels, named.path, percent=percent)
        parts = parts_of(diagnosis, percent=percent)
        show(parts, style, output, percent=percent, wide=wide, finding=finding)


def _qrels_and_run(files: Sequence[str], qrels: str | None) -> tuple[str | None, str]:
    """Tell judgements from run: judgements come first, and used to come last."""
    if len(files) == 1 or qrels is not None:
        if len(files) > 1:
            raise InputError(f"one run is diagnosed at a time, not {len(files)}")
        return qrels, files[0]
    if len(files) > 2:
        raise InputError(f"give judgements and one run, not {len(files)} files")
    first, second = files
    judgements = [word for word in files if _reads(read_qrels, word)]
    if len(judgements) == 2:  # grades and whole scores look alike
        judgements = [word for word in files if not _reads(read_run, word)]
        if len(judgements) != 1:
            raise InputError(
                f"either of {first} and {second} may be the judgements: say which with --qrels, "
                f"as in deadheat diagnose --qrels {first} {second}"
            )
    if judgements == [second]:
        return second, first
    return first, second  # if neither can be judgements, reading says why


def _reads(read: Callable[[str], Any], word: str) -> bool:
    """Whether a file can be read so; standard input, which is read but once, may be either."""
    path = split_name(word).path
    if path == "-":
        return True
    try:
        read(path)
    except InputError:
        return False
    return True
