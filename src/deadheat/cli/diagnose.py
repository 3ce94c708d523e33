"""`deadheat diagnose`: where a run's ties are, where they come from, what they do."""

from __future__ import annotations

from typing import Any

import click

from deadheat.cli.common import (
    FORCE,
    OUTPUT,
    SCORE_PRECISION,
    STYLE,
    TIE_BREAK,
    WIDE,
    check_output,
    check_standard_input,
    say,
    show,
    write,
)
from deadheat.diagnosis import diagnose
from deadheat.diagnosis.parts import parts_of

_LOGITS = """A Parquet, JSONL or CSV file with the columns query_id and logit (or logit_no and
logit_yes), perhaps head_logit and model_dtype, to find where the ties were born."""
_WORST = "How many queries of the largest range to name per measure. [default: 5]"
_ENOUGH = "A format is enough if E[M] moves, and ties can move it, by no more than this."


@click.command("diagnose")
@click.argument("run")
@click.argument("qrels", required=False)
@click.option("-m", "--measure", "measures", multiple=True, help="A measure such as nDCG@10.")
@TIE_BREAK
@SCORE_PRECISION
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=0.001, show_default=True, help=_ENOUGH
)
@click.option("--worst", type=click.IntRange(min=0), default=5, help=_WORST)
@click.option("--logits", help=_LOGITS)
@click.option("--model-dtype", help="The dtype of the model that gave the logits, e.g. bf16.")
@STYLE
@WIDE
@OUTPUT
@FORCE
def command(
    run: str,
    qrels: str | None,
    measures: tuple[str, ...],
    style: str,
    wide: bool,
    output: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Diagnose the ties of RUN; with QRELS also what they do to measures.

    The files are those that eval reads. Exit status: 0 fine, 2 bad usage or input.
    """
    check_standard_input(run, qrels, options["logits"])
    check_output(output, force=force)
    diagnosis = diagnose.quiet(run, qrels, measures or None, **options)
    say({diagnosis.name: diagnosis.remarks})
    if style == "json":
        write(diagnosis.to_json(), output)
    else:
        show(parts_of(diagnosis), style, output, wide=wide)
