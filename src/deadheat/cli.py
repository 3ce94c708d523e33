"""The command line: words into calls."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import track

from deadheat import __version__
from deadheat.errors import DeadheatError, DeadheatWarning, InputError
from deadheat.evaluation import DEFAULT_MEASURES, NAN_POLICIES, QUERY_POLICIES, evaluate
from deadheat.formats import read_qrels
from deadheat.measures import MEASURES
from deadheat.measures.parse import parse_measures
from deadheat.report.tables import render, rich_table
from deadheat.result import Result
from deadheat.ties import BACKEND, TIE_RULES

_FORMATS = ("table", "markdown", "latex", "csv", "json")
_LONG = 200 << 20
"""Bytes of input from which on a progress bar is worth showing."""


class _Group(click.Group):
    """Shows a user's mistake as one message, never as a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DeadheatError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"deadheat {__version__} (counting pass: {BACKEND})")
        ctx.exit()


def _measures_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(measures_help())
        ctx.exit()


def _explain(choices: dict[str, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in choices.items()) + "."


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and which counting pass is active.",
)
def main() -> None:
    """Evaluate retrieval systems whose scores tie."""


@main.command("eval")
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
    help="The rule of the tie-oblivious value. " + _explain(TIE_RULES),
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
    help="Which queries count. " + _explain(QUERY_POLICIES),
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
def eval_command(
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
    if style == "table" and output is None and _on_terminal():
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


def show_warnings(results: Iterable[Result]) -> None:
    """Print what is wrong with the input to standard error."""
    for result in results:
        for text in result.warnings:
            click.echo(f"warning: {result.name}: {text}", err=True)


def check_output(path: str | None, *, force: bool) -> None:
    """Refuse an output path before any work is done for it."""
    if path is None:
        return
    if not path:
        raise InputError("the name of the output file is empty")
    target = Path(path).resolve()
    try:
        exists, regular = target.exists(), target.is_file()
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    if exists and not regular:
        raise InputError(f"{path}: this is not a regular file; leave -o out and redirect instead")
    if exists and not force:
        raise InputError(f"{path}: exists already; use --force to overwrite it")
    folder = target.parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise InputError(f"{path}: the folder {folder} is not there or cannot be written to")


def write(text: str, path: str | None) -> None:
    """Write to standard output, or to a file that appears only when it is complete."""
    if path is None:
        _print(text)
        return
    target = Path(path).resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".deadheat.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def _print(text: str) -> None:
    if sys.stdout is None:
        raise InputError("standard output is closed; write to a file with -o")
    try:
        # In a pipe or a file it is UTF-8, whatever the terminal speaks.
        click.echo(text if _on_terminal() else text.encode())
    except BrokenPipeError:  # the reader has seen enough
        raise
    except OSError as error:
        raise InputError(f"standard output cannot be written ({error.strerror})") from None


def _on_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _with_progress(paths: tuple[str, ...]) -> Iterable[str]:
    """Paths one by one, under a progress bar if a person is watching a long job."""
    try:
        size = sum(Path(path).stat().st_size for path in paths if path != "-")
    except (OSError, ValueError):  # reading will say what is wrong
        return paths
    if size < _LONG or len(paths) < 2 or not sys.stderr.isatty():
        return paths
    return track(paths, "evaluating", console=Console(stderr=True), transient=True)


if __name__ == "__main__":
    main()
