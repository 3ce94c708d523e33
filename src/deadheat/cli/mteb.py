"""`deadheat mteb`: how ties affect the scores of predictions that MTEB stored."""

from __future__ import annotations

from pathlib import Path

import click

from deadheat.cli.common import measures_option
from deadheat.cli.help import Command
from deadheat.cli.output import Output, output_options, print_remarks
from deadheat.errors import InputError


@click.command("mteb", cls=Command, example="deadheat mteb predictions/ -m nDCG@10 -o mteb.md")
@click.argument("folder", type=click.Path())
@measures_option(
    "A measure such as nDCG@10 or ndcg_at_10; may be repeated. "
    "[default: nDCG@10, MRR@10, MAP@10, Recall@100]",
)
@click.option(
    "--qrels",
    multiple=True,
    metavar="[TASK[/SUBSET[/SPLIT]]=]FILE",
    help="Judgements, in any format that eval reads. May be repeated. [default: those of the task "
    "in the installed MTEB]",
)
@output_options()
def command(folder: str, measures: tuple[str, ...], qrels: tuple[str, ...], out: Output) -> None:
    """Show how ties affect MTEB scores, from the predictions stored in FOLDER.

    FOLDER is the prediction_folder of mteb.evaluate, or one of its files. Every task, subset and
    split in it is evaluated. The table shows MTEB's value, the expected value, range and bias, and
    the rule by which MTEB broke ties. Exit status: 0 fine, 1 evaluated with problems (with
    --strict), 2 bad usage or input.
    """
    from deadheat.integrations.mteb import DEFAULT_MEASURES, evaluate_predictions, predictions_table

    given = _given(qrels)
    out.check(folder, *map(Path, given.values()))
    evaluated = evaluate_predictions(folder, measures or DEFAULT_MEASURES, qrels=given)
    print_remarks({one.predictions.name: one.remarks for one in evaluated}, of="split")
    out.show([predictions_table(evaluated)])
    out.exit_if(any(remark.level == "warning" for one in evaluated for remark in one.remarks))


def _given(qrels: tuple[str, ...]) -> dict[str, str]:
    """Parse ``NAME=FILE``; a file without a name is for all predictions."""
    given: dict[str, str] = {}
    for text in qrels:
        name, path = text.split("=", 1) if "=" in text else ("", text)
        if name in given:
            raise InputError(f"--qrels: {name or 'all tasks'} is given twice; leave one out")
        given[name] = path
    return given
