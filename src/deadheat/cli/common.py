"""What commands share: options, warnings, tables and output files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from glob import glob, has_magic
from pathlib import Path
from typing import Any, TypeVar

import click

from deadheat.cli.help import complete_measures
from deadheat.cli.names import split_name, split_names
from deadheat.cli.progress import progress_bar
from deadheat.engines import Engine
from deadheat.errors import InputError, printable
from deadheat.evaluation import (
    DEFAULT_MEASURES,
    Result,
    short_labels,
)
from deadheat.evaluation import evaluate_runs as run_all
from deadheat.formats import read_qrels
from deadheat.measures.parse import parse_measures
from deadheat.output import utf8, write_whole
from deadheat.remarks import Remark, lines
from deadheat.settings import (
    NAN_POLICIES,
    QUERY_POLICIES,
    SCORE_PRECISIONS,
    TIE_RULES,
    EvalSettings,
)
from deadheat.tables import STYLES, Table, render, rich_parts

F = TypeVar("F", bound=Callable[..., Any])

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


def measures_option(help: str) -> Callable[[F], F]:
    """Make the option -m, which may be repeated."""
    return click.option(
        *("-m", "--measure", "measures"),
        multiple=True,
        shell_complete=complete_measures,
        help=help,
    )


MEASURES = measures_option(
    "Measures such as nDCG@10,MRR@10; several cutoffs as nDCG@5,10. May be repeated. "
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
SCORE_DTYPE = click.option(
    "--score-dtype",
    "--score-precision",
    "score_dtype",
    type=click.Choice(list(SCORE_PRECISIONS)),
    help="Round scores first, to match an evaluator that does so: float32 in trec_eval 9 and "
    "pytrec_eval. [default: scores as they are]",
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
    SCORE_DTYPE,
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
        help="Sign flips and permutations of the tests over queries.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of the random numbers of the tests.",
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
    """Evaluate run files, given as PATH or NAME=PATH, and print the warnings."""
    named = split_names(runs)
    paths = [run.path for run in named]
    check_standard_input(qrels, *paths)
    parsed = parse_measures(measures or DEFAULT_MEASURES)
    judgements = read_qrels(qrels)
    settings = EvalSettings(**options)
    with progress_bar(delay=1) as progress:
        results = run_all(judgements, paths, parsed, settings, engine=engine, progress=progress)
    results = [result.named(run.label) for result, run in zip(results, named, strict=True)]
    print_remarks({result.name: result.remarks for result in results})
    return results


def check_standard_input(*sources: str | None) -> None:
    """Refuse to read standard input for two things."""
    if sources.count("-") > 1:
        raise InputError("standard input (-) can be read only once")


def print_remarks(remarks: Mapping[str, Sequence[Remark]], *, of: str = "run") -> None:
    """Print the warnings of several runs to standard error, each once."""
    print_warnings(lines(remarks, "warning", of=of))


def print_warnings(messages: Iterable[str]) -> None:
    """Print warnings to standard error."""
    for text in messages:
        print_line(f"warning: {text}", err=True)


def print_line(text: str, *, err: bool = False) -> None:
    """Print a line without control characters, which a name in it may hold."""
    click.echo(printable(text), err=err)


def labels_of(runs: Sequence[str]) -> list[str]:
    """Give the names of runs, or short ones for their paths; refuse a run that is given twice."""
    named = split_names(runs)
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
    """Print sentences and tables in colour on a terminal, else write them as plain text.

    Parameters
    ----------
    wide
        Tables as wide as they are, whatever the terminal's width.
    finding
        The last line of a table in the format ``table``: what the numbers mean.
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


def check_output(
    path: str | None, *, force: bool, inputs: Iterable[str | Path | None] = ()
) -> None:
    """Refuse an output path before any work is done for it.

    Parameters
    ----------
    force
        Accept a file that exists, unless it is one of `inputs`.
    inputs
        Files, folders, patterns, ``name=path`` and ``-`` (standard input) that the command reads.
    """
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
    if exists:
        for given in inputs:
            if given is not None and _is_among(target, given):
                raise InputError(
                    f"{path}: this command reads that file ({given}), and --force would replace "
                    "it: choose another output"
                )
    folder = target.parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise InputError(f"{path}: the folder {folder} is not there or cannot be written to")


def _is_among(target: Path, given: str | Path) -> bool:
    """Whether an input is a file, whatever the names and links that lead to it."""
    wanted = target.stat()
    for file in _files(given):
        try:
            found = os.fstat(file) if isinstance(file, int) else file.stat()
        except (OSError, ValueError):  # reading reports the error
            continue
        if os.path.samestat(found, wanted):
            return True
    return False


def _files(given: str | Path) -> Iterator[Path | int]:
    """Files that an input consists of; of standard input its number."""
    if given == "-":
        with suppress(AttributeError, OSError, ValueError):  # it is closed, or no file
            yield sys.stdin.fileno()
        return
    path = given if isinstance(given, Path) else Path(split_name(given).path)
    try:
        if path.is_dir():
            is_experiment = (path / "experiment.json").is_file()
            # Beside what an experiment stored, its folder may hold tables and pages made of it.
            yield from path.glob("*/**/*" if is_experiment else "**/*")
            yield path / "experiment.json"
        elif has_magic(str(path)) and not path.exists():
            yield from map(Path, glob(str(path), recursive=True))  # noqa: PTH207
        else:
            yield path
    except (OSError, ValueError):  # reading reports the error
        return


def write(text: str, path: str | None) -> None:
    """Write to standard output, or atomically to a file."""
    if path is None:
        _print(text)
        return
    try:
        write_whole(Path(path), utf8(f"{text}\n"))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    print_written(path)


def print_written(path: object) -> None:
    """Print to standard error that a file was written."""
    print_line(f"wrote {path}", err=True)


def _print(text: str) -> None:
    if sys.stdout is None:
        raise InputError("standard output is closed; write to a file with -o")
    try:
        if on_terminal():
            click.echo(printable(text, keep="\n\t"))
        elif hasattr(sys.stdout, "buffer"):  # a pipe or a file: UTF-8, whatever the locale
            click.echo(utf8(text))
        else:  # a stream of text only, such as io.StringIO
            click.echo(utf8(text).decode())
    except BrokenPipeError:  # the reader has seen enough
        raise
    except OSError as error:
        raise InputError(f"standard output cannot be written ({error.strerror})") from None


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()
