"""`deadheat eval`: run files in, a table out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from deadheat.cli.common import check_output, explain, on_terminal, show_warnings, write
from deadheat.errors import DeadheatWarning, InputError
from deadheat.evaluation import DEFAULT_MEASURES, NAN_POLICIES, QUERY_POLICIES, evaluate
from deadheat.formats import read_qrels
from deadheat.measures import MEASURES
from deadheat.measures.parse import parse_measures
from deadheat.report.tables import render, rich_table
from deadheat.ties import TIE_RULES

_FORMATS = ("table", "markdown", "latex", "csv", "json")
_LONG = 200 << 20
"""Bytes of input from which on a progress bar is worth showing."""


def _measures_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(measures_help())
        ctx.exit()


@click.command("eval")
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    help="A measure such as nDCG@10; several cutoffs as nDCG@5,10. May be repeated. "
    f"[default: {', '.join(DEFAULT_MEASURES)}]",
)
@click.option(
    "--tie-break",
    type=click.Choice(list(TIE_RULES)),
    default="input",
    show_default=True,
    help="The rule of the tie-oblivious value. " + explain(TIE_RULES),
)
@click.option(
    "--tie-tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Treat scores at most this far apart, and chains of such scores, as tied.",
)
@click.option(
    "--queries",
    type=click.Choice(list(QUERY_POLICIES)),
    default="judged",
    show_default=True,
    help="Which queries count. " + explain(QUERY_POLICIES),
)
@click.option(
    "--nan",
    type=click.Choice(NAN_POLICIES),
    default="raise",
    show_default=True,
    help="Refuse NaN scores, or rank them last.",
)
@click.option("--per-query", is_flag=True, help="Show every query.")
@click.option("--percent", is_flag=True, help="Print as papers do: 73.53 for 0.7353.")
@click.option(
    "--format",
    "style",
    type=click.Choice(_FORMATS),
    default="table",
    show_default=True,
    help="csv and json give full precision.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write to a file.")
@click.option("--force", is_flag=True, help="Overwrite the output file if it exists.")
@click.option("--strict", is_flag=True, help="Exit with status 1 if anything was warned about.")
@click.option(
    "--measures-help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_measures_help,
    help="Define every measure, with its edge cases.",
)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    tie_break: str,
    tie_tolerance: float,
    queries: str,
    nan: str,
    per_query: bool,
    percent: bool,
    style: str,
    output: str | None,
    force: bool,
    strict: bool,
) -> None:
    """Evaluate one or more RUNs against QRELS, with every view of their ties.

    QRELS and RUN are TREC files, BEIR TSV, JSON, JSONL, CSV or Parquet, plain or compressed
    with gzip, zstd or xz; - is standard input. Exit status: 0 fine, 1 evaluated with problems
    (with --strict), 2 bad usage or input.
    """
    if [qrels, *runs].count("-") > 1:
        raise InputError("standard input (-) can be read only once")
    wanted = parse_measures(measures or DEFAULT_MEASURES)
    check_output(output, force=force)
    judgements = read_qrels(qrels)
    results = []
    for run in _with_progress(runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeadheatWarning)
            results.append(
                evaluate(
                    judgements,
                    run,
                    wanted,
                    tie_break=tie_break,
                    tie_tolerance=tie_tolerance,
                    queries=queries,
                    nan=nan,
                )
            )
    show_warnings(results)
    if style == "table" and output is None and on_terminal():
        Console().print(rich_table(results, percent=percent, per_query=per_query))
    else:
        write(render(results, style, percent=percent, per_query=per_query), output)
    if strict and any(result.warnings for result in results):
        sys.exit(1)


def measures_help() -> str:
    """Definition, edge cases and other names of every measure."""
    parts = []
    for measure in MEASURES:
        names = ", ".join(measure.aliases)
        doc = click.formatting.wrap_text(
            " ".join((type(measure).__doc__ or "").replace("``", "").split()),
            width=88,
            initial_indent="  ",
            subsequent_indent="  ",
        )
        parts.append(f"{measure.name}" + (f"  (also: {names})" if names else "") + f"\n{doc}")
    return "\n\n".join(parts)


def _with_progress(paths: tuple[str, ...]) -> Iterable[str]:
    """Paths one by one, under a progress bar if a person is watching a long job."""
    try:
        size = sum(Path(path).stat().st_size for path in paths if path != "-")
    except (OSError, ValueError):  # reading will say what is wrong
        return paths
    if size < _LONG or len(paths) < 2 or not sys.stderr.isatty():
        return paths
    return track(paths, "evaluating", console=Console(stderr=True), transient=True)
