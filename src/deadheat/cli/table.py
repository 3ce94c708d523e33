"""`deadheat table`: the paper's table from stored results."""

from __future__ import annotations

from pathlib import Path

import click

from deadheat.cli.common import (
    FORCE,
    OUTPUT,
    STYLE,
    WIDE,
    check_output,
    measures_option,
    percent_option,
    show,
)
from deadheat.cli.help import Command


@click.command(
    "table",
    cls=Command,
    example="deadheat table results/ -m nDCG@10 -o table.tex",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@measures_option(
    "Measures to show; may be repeated. [default: all, of very many those at cutoff 10]",
)
@STYLE
@WIDE
@percent_option(default=True)
@click.option("--ties", is_flag=True, help="Also what each regime leaves of ties.")
@click.option(
    "--budget", is_flag=True, help="Also what ties, computing and queries can do to each number."
)
@OUTPUT
@FORCE
def command(
    folder: Path,
    measures: tuple[str, ...],
    style: str,
    wide: bool,
    percent: bool,
    ties: bool,
    budget: bool,
    output: str | None,
    force: bool,
) -> None:
    """Print the paper's Table 1 from DIR, the folder of `deadheat run`.

    For each model FP32 M, then the oblivious and the expected value, range and bias of every
    regime. The highest expected value is bold only if it is the highest whatever the tie-break.
    """
    check_output(output, force=force, inputs=[folder])
    from deadheat.lab.experiment import (
        error_budget,
        every_measure,
        load_results,
        table1,
        ties_table,
    )

    results = load_results(folder)
    machine = style in ("csv", "json")  # has room for every measure
    tables = [table1(results, measures or (every_measure(results) if machine else None))]
    if ties:
        tables.append(ties_table(results))
    if budget:
        tables.append(error_budget(results, measures or None))
    show(tables, style, output, percent=percent, wide=wide)
