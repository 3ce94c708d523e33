"""`deadheat table`: the paper's table from stored results."""

from __future__ import annotations

from pathlib import Path

import click

from deadheat.cli.common import measures_option
from deadheat.cli.help import Command
from deadheat.cli.output import Output, output_options


@click.command("table", cls=Command, example="deadheat table results/ -m nDCG@10 -o table.tex")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@measures_option(
    "Measures to show; may be repeated. [default: all; of more than 8, one cutoff each]",
)
@click.option("--ties", is_flag=True, help="Also show the ties that remain under each regime.")
@click.option(
    "--budget", is_flag=True, help="Also show each number's error from ties, compute and queries."
)
@click.option(
    "--against-paper",
    is_flag=True,
    help="Also show the paper's numbers next to these, for rows that both have.",
)
@output_options("style", "wide", "output", "force", percent=True)
def command(
    folder: Path,
    measures: tuple[str, ...],
    ties: bool,
    budget: bool,
    against_paper: bool,
    out: Output,
) -> None:
    """Print the paper's Table 1 from DIR, the folder of `deadheat run`.

    The columns are FP32 M, then the oblivious and the expected value, range and bias of every
    regime. The highest expected value is bold only if it is the highest in every tie order.
    """
    out.check(folder)
    from deadheat.lab import experiment

    results = experiment.load_results(folder)
    machine = out.style in ("csv", "json")  # these formats have space for every measure
    shown = measures or (experiment.every_measure(results) if machine else None)
    tables = [experiment.table1(results, shown)]
    if ties:
        tables.append(experiment.ties_table(results))
    if against_paper:
        tables.append(experiment.against_paper(results))
    if budget:
        tables.append(experiment.error_budget(results, measures or None))
    out.show(tables)
