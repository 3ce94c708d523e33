"""`deadheat table`: the paper's table from stored results."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from deadheat.cli.common import FORCE, check_output, on_terminal, write
from deadheat.report.table1 import STYLES, costs, table1


@click.command("table")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    help="A measure to show; may be repeated. [default: all, of very many those at cutoff 10]",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    default="table",
    show_default=True,
    help="csv gives full precision.",
)
@click.option("--fraction", is_flag=True, help="Write 0.7353 instead of 73.53.")
@click.option("--costs", "with_costs", is_flag=True, help="Also what each regime costs.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to a file.")
@FORCE
def command(
    folder: Path,
    measures: tuple[str, ...],
    style: str,
    fraction: bool,
    with_costs: bool,
    output: str | None,
    force: bool,
) -> None:
    """Print the paper's Table 1 from DIR, the folder of `deadheat run`.

    For each model FP32 M, then the oblivious and the expected value, range and bias of every
    regime. The highest expected value is bold only if it is the highest whatever the tie-break.
    """
    check_output(output, force=force)
    from deadheat.experiment import load_results

    results = load_results(folder)
    width = shutil.get_terminal_size().columns if output is None and on_terminal() else None
    text = table1(results, style, measures=measures or None, percent=not fraction, width=width)
    write(f"{text}\n\n{costs(results, style)}" if with_costs else text, output)
