"""`deadheat leaderboard`: evaluate all runs of a board, and check published numbers."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from deadheat._internal.lazy import pl
from deadheat.cli.common import (
    MEASURES,
    NAN,
    SCORE_DTYPE,
    alpha_option,
    queries_option,
    tie_break_option,
)
from deadheat.cli.engines import engine_options, make_engine
from deadheat.cli.help import Command
from deadheat.cli.names import split_names
from deadheat.cli.output import Output, output_options, print_line, print_warnings
from deadheat.cli.progress import progress_bar
from deadheat.comparison.leaderboard import (
    Leaderboard,
    find_runs,
    leaderboard,
    leaderboards,
    read_manifest,
)
from deadheat.errors import DeadheatWarning, InputError
from deadheat.formats import RunLike
from deadheat.report import describe_leaderboard


@click.command(
    "leaderboard",
    cls=Command,
    example="deadheat leaderboard qrels.txt runs/ --published board.csv -o board.html",
)
@click.argument("qrels", type=click.Path(), metavar="QRELS|MANIFEST")
@click.argument("runs", nargs=-1, type=click.Path(), metavar="[NAME=]RUN...")
@MEASURES
@click.option(
    "--published",
    metavar="FILE",
    help="The board as published (CSV, TSV, JSONL, Parquet): a column of names or tags, and "
    "columns of measures. Each number is checked to its printed digits.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=MEASURE",
    help="Measure of a published column whose heading is no measure; NAME= drops the column. "
    "May be repeated.",
)
@click.option("--name-column", metavar="NAME", help="The published column with the run names.")
@click.option(
    "--group",
    metavar="NAME",
    help="A published column of words such as the team: also find the winner of each group.",
)
@click.option(
    "--allow-outside",
    is_flag=True,
    help="Allow files outside of the MANIFEST's folder: absolute paths, '..' or links.",
)
@tie_break_option(None, "the rule of the published numbers, or input")
@SCORE_DTYPE
@queries_option(None, "as in the published numbers, or judged")
@NAN
@click.option("--title", help="Name of the board. [default: its file]")
@click.option("--by", metavar="MEASURE", help="Show this measure. [default: the first]")
@click.option("--sort", metavar="COLUMN", help="Sort by a column. [default: official order]")
@click.option("--top", type=click.IntRange(min=1), help="Number of first runs to show.")
@alpha_option("Largest accepted chance that random tie-breaking reverses a decided pair.")
@engine_options(
    workers="Number of runs read at a time. [default: one per core, here or of the cluster]"
)
@output_options()
@click.pass_context
def command(
    ctx: click.Context,
    /,
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    published: str | None,
    columns: tuple[str, ...],
    allow_outside: bool,
    engine: dict[str, Any],
    title: str | None,
    by: str | None,
    sort: str | None,
    top: int | None,
    out: Output,
    **settings: Any,
) -> None:
    """Evaluate all runs of a leaderboard, and how ties change values, ranks and winners.

    RUNs are files, folders and patterns such as 'runs/*.xz', read one at a time. NAME=RUN gives
    a file another name; for a folder of Parquet files, it makes one run of them. With
    --published, every published number is checked, the default measures are those of the board,
    and the rule that reproduces the numbers is searched for. A MANIFEST (TOML) lists several
    boards in tables [[board]], each with its qrels, runs and published file. An output file that
    ends in .html is a page with everything, unless --format is given. Exit status: 0 fine, 1 some
    runs could not be evaluated (or, with --strict, there were warnings), 2 bad usage or input.
    """
    is_manifest = not runs and qrels.lower().endswith(".toml")
    if is_manifest and (published is not None or columns or measures or title):
        raise InputError(
            f"{qrels}: a manifest contains the published files, measures and titles of its boards; "
            "leave these options out"
        )
    specs = read_manifest(qrels, allow_outside=allow_outside) if is_manifest else []
    listed = [path for spec in specs for path in (spec["qrels"], *spec["runs"].values())]
    out.check(qrels, *runs, published, *listed, *(spec.get("published") for spec in specs))
    settings = {name: value for name, value in settings.items() if value is not None}
    settings["workers"] = engine["workers"]
    if engine["engine"] == "here":
        engine["workers"] = None  # workers are threads of this process
    settings["engine"] = make_engine(**engine)
    with progress_bar() as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)  # printed below
        settings["progress"] = progress
        if is_manifest:
            boards = leaderboards(qrels, allow_outside=allow_outside, **settings)
        else:
            boards = [
                leaderboard(
                    qrels,
                    _name_runs(runs, qrels, published),
                    measures or None,
                    published=published,
                    columns=_columns(columns),
                    name=title or "",
                    **settings,
                )
            ]
    shown: dict[str, Any] = {"measure": by, "sort": sort, "top": top}
    parts = [part for board in boards for part in board.parts(**shown)]
    for board in boards:
        print_warnings(board.warnings)
    default = click.core.ParameterSource.DEFAULT
    is_page = out.output is not None and Path(out.output).suffix.lower() in (".html", ".htm")
    finding = " ".join(describe_leaderboard(board) for board in boards)
    if is_page and ctx.get_parameter_source("style") is default:
        from deadheat.report.page import render_leaderboards

        out.write(render_leaderboards(boards))
        print_line(finding)
    elif out.style == "json":
        data = [board.to_dict() for board in boards]
        one = data[0] if len(data) == 1 else data
        out.write(json.dumps(one, indent=1, ensure_ascii=False))
    elif out.style == "csv":
        out.write(_csv(boards, shown))
    else:
        out.show(parts, finding)
    if any(board.failures or (out.strict and board.warnings) for board in boards):
        sys.exit(1)


def _name_runs(words: Sequence[str], *without: str | None) -> dict[str, RunLike]:
    """Return runs under their given names; runs without a name get that of their file."""
    runs = split_names(words)
    named: dict[str, RunLike] = {r.label: r.path for r in runs if r.label is not None}
    return named | find_runs([run.path for run in runs if run.label is None], without)


def _columns(words: Sequence[str]) -> dict[str, str | None]:
    """Parse NAME=MEASURE; the measure may contain =, the name cannot."""
    columns: dict[str, str | None] = {}
    for word in words:
        name, equals, measure = word.partition("=")
        if not equals or not name:
            raise InputError(f"--column {word}: use NAME=MEASURE, or NAME= to drop the column")
        columns[name] = measure or None
    return columns


def _csv(boards: Sequence[Leaderboard], shown: dict[str, Any]) -> str:
    """Return all rows, or the selected ones, as CSV; several boards one after another."""
    frames = [board.ranking(**shown) if any(shown.values()) else board.rows for board in boards]
    if len(boards) > 1:
        names = [pl.lit(board.name).alias("board") for board in boards]
        frames = [rows.select(name, pl.all()) for name, rows in zip(names, frames, strict=True)]
    return pl.concat(frames, how="diagonal").write_csv().rstrip("\n")
