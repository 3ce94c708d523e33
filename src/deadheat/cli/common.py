"""What commands share: options in words, remarks, output that is whole or not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from deadheat.cli.help import complete_measures
from deadheat.cli.names import labelled_runs
from deadheat.engines import Engine
from deadheat.errors import InputError, printable
from deadheat.evaluation import (
    DEFAULT_MEASURES,
    NAN_POLICIES,
    QUERY_POLICIES,
    Result,
    evaluated_runs,
    short_labels,
)
from deadheat.formats import read_qrels
from deadheat.measures.parse import parse_measures
from deadheat.output import utf8, write_whole
from deadheat.remarks import Remark, lines
from deadheat.tables import STYLES, Table, render, rich_parts
from deadheat.ties import TIE_RULES
from deadheat.ties.scores import SCORE_PRECISIONS

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_LONG = 200 << 20
"""Bytes of input from which on a progress bar is worth showing."""
_WIDEST = 1000
"""Columns that a table takes at most."""


def explain(choices: Mapping[Any, str]) -> str:
    """Choices and their meanings in one line, for a help text."""
    return "; ".join(f"{name}: {text}" for name, text in choices.items()) + "."


def options(*parts: Callable[[F], F]) -> Callable[[F], F]:
    """Put several arguments and options together, in the order of the help text."""

    def add(command: F) -> F:
        for part in reversed(parts):
            command = part(command)
        return command

    return add


QRELS = click.argument("qrels")
RUNS = click.argument("runs", nargs=-1, required=True, metavar="[NAME=]RUN...")
MEASURES = click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    shell_complete=complete_measures,
    help="Measures such as nDCG@10,MRR@10; several cutoffs as nDCG@5,10. May be repeated. "
    f"[default: {', '.join(DEFAULT_MEASURES)}]",
)
TIE_BREAK = click.option(
    "--tie-break",
    type=click.Choice(list(TIE_RULES)),
    default="input",
    show_default=True,
    help="The rule of the oblivious value, the number as reported; `deadheat eval "
    "--tie-rules-help` explains the rules.",
)
SCORE_PRECISION = click.option(
    "--score-precision",
    "score_dtype",
    type=click.Choice(list(SCORE_PRECISIONS)),
    help="Round scores first, as the evaluator does whose numbers are to be met: float32 in "
    "trec_eval 9 and pytrec_eval. [default: scores as they are]",
)


def percent_option(*, default: bool) -> Callable[[F], F]:
    """Choose between 73.53 and 0.7353."""
    return click.option(
        "--percent/--fraction",
        default=default,
        show_default=True,
        help="Print as papers do, 73.53, or as a fraction, 0.7353.",
    )


PERCENT = percent_option(default=False)


def _style(ctx: click.Context, _: click.Parameter, style: str | None) -> str:
    """Choose the format by the ending of the output file; refuse an ending that contradicts it."""
    output = ctx.params.get("output")  # it is read first
    named = SUFFIXES.get(Path(output or "").suffix.lower())
    if style is not None and named not in (None, style):
        raise InputError(
            f"{output} has the ending of {named}, and --format asks for {style}: leave --format "
            "out, or choose another ending"
        )
    return style or named or "table"


SUFFIXES = {
    ".txt": "table",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
}
"""The format that the ending of a file asks for."""
STYLE = click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    callback=_style,
    help="csv and json give full precision. [default: table, or by the ending of the output]",
)
WIDE = click.option("--wide", is_flag=True, help="All columns, however narrow the terminal is.")
OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    is_eager=True,  # the format may follow from its ending
    help=f"Write to a file; its ending names the format: {', '.join(SUFFIXES)}.",
)
FORCE = click.option("--force", is_flag=True, help="Overwrite the output file if it exists.")
NAN = click.option(
    "--nan",
    type=click.Choice(NAN_POLICIES),
    default="raise",
    show_default=True,
    help="Refuse NaN scores, or rank them last.",
)
evaluation_options = options(
    TIE_BREAK,
    SCORE_PRECISION,
    click.option(
        "--tie-tolerance",
        type=click.FloatRange(min=0),
        default=0.0,
        help="Treat scores at most this far apart, and chains of such scores, as tied.",
    ),
    click.option(
        "--queries",
        type=click.Choice(list(QUERY_POLICIES)),
        default="judged",
        show_default=True,
        help="Which queries count. " + explain(QUERY_POLICIES),
    ),
    NAN,
)
comparison_options = options(
    click.option(
        "--baseline",
        metavar="SYSTEM",
        help="Compare all others with this one, not all pairs; by its name or file.",
    ),
    click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.05,
        show_default=True,
        help="Level of the tests over queries, and how likely random tie-breaking may at most be "
        "to reverse two systems.",
    ),
    click.option(
        "--resamples",
        type=click.IntRange(min=1),
        default=9999,
        show_default=True,
        help="Sign flips and permutations of the tests, and samples of the bootstrap.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Of the random numbers of tests and bootstrap.",
    ),
)
run_options = options(QRELS, RUNS, MEASURES, evaluation_options)
output_options = options(
    PERCENT,
    STYLE,
    WIDE,
    OUTPUT,
    FORCE,
    click.option("--strict", is_flag=True, help="Exit with status 1 if anything was warned about."),
)


def evaluate_runs(
    qrels: str,
    runs: Sequence[str],
    measures: Sequence[Any],
    *,
    engine: Engine | None = None,
    **options: Any,
) -> list[Result]:
    """Evaluate run files, each perhaps under a name, and say what is wrong with them."""
    named = labelled_runs(runs)
    paths = [run.path for run in named]
    check_standard_input(qrels, *paths)
    parsed = parse_measures(measures or DEFAULT_MEASURES)
    judgements = read_qrels(qrels)
    watched = _watched_by_a_person(paths)
    results = evaluated_runs(judgements, paths, parsed, engine=engine, watched=watched, **options)
    results = [result.named(run.label) for result, run in zip(results, named, strict=True)]
    say({result.name: result.remarks for result in results})
    return results


def check_standard_input(*sources: str | None) -> None:
    """Refuse to read standard input for two things."""
    if sources.count("-") > 1:
        raise InputError("standard input (-) can be read only once")


def _watched_by_a_person(paths: Sequence[str]) -> Callable[[Iterable[T]], Iterable[T]]:
    """Give what passes on results as they come, under a bar if a person is watching a long job."""
    try:
        size = sum(_size(Path(path)) for path in paths if path != "-")
    except (OSError, ValueError):  # reading will say what is wrong
        return iter
    if size < _LONG or len(paths) < 2 or not sys.stderr.isatty():
        return iter
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return lambda results: track(results, "evaluating", len(paths), console=console, transient=True)


def _size(path: Path) -> int:
    """Bytes of a file, or of the files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def say(remarks: Mapping[str, Sequence[Remark]], *, of: str = "run") -> None:
    """Print what is wrong with the input to standard error, each thing once."""
    warn(lines(remarks, "warning", of=of))


def warn(said: Iterable[str]) -> None:
    """Print warnings to standard error."""
    for text in said:
        tell(f"warning: {text}", err=True)


def tell(text: str, *, err: bool = False) -> None:
    """Print a sentence, so that no name in it gives orders to the terminal."""
    click.echo(printable(text), err=err)


def labels_of(runs: Sequence[str]) -> list[str]:
    """Give the names of runs, or short ones for their paths; refuse a run that is given twice."""
    named = labelled_runs(runs)
    short = iter(short_labels([run.path for run in named if run.label is None]))
    return [run.label or next(short) for run in named]


def show(
    parts: Sequence[str | Table],
    style: str,
    output: str | None = None,
    *,
    percent: bool = False,
    wide: bool = False,
    finding: str = "",
) -> None:
    """Print sentences and tables in colour where a person is watching, else write them.

    Parameters
    ----------
    wide
        Tables as wide as they are, whatever the terminal's width.
    finding
        What it all means, in plain words, as the last line of a table for people.
    """
    if style == "table" and finding:
        parts = [*parts, finding]
    if style == "table" and output is None and on_terminal():
        from rich.console import Console

        console = Console()
        content = rich_parts(parts, percent=percent)
        if wide:
            console.width = Console(width=_WIDEST).measure(content).maximum
        console.print(content)
    else:
        write(render(parts, style, percent=percent), output)


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
    try:
        write_whole(Path(path), utf8(f"{text}\n"))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    wrote(path)


def wrote(path: object) -> None:
    """Say that a file is there, to standard error: standard output is for what was asked for."""
    tell(f"wrote {path}", err=True)


def _print(text: str) -> None:
    if sys.stdout is None:
        raise InputError("standard output is closed; write to a file with -o")
    try:
        # In a pipe or a file it is UTF-8, whatever the terminal speaks.
        click.echo(printable(text, keep="\n\t") if on_terminal() else utf8(text))
    except BrokenPipeError:  # the reader has seen enough
        raise
    except OSError as error:
        raise InputError(f"standard output cannot be written ({error.strerror})") from None


def on_terminal() -> bool:
    """Whether a person is watching standard output."""
    return sys.stdout is not None and sys.stdout.isatty()
