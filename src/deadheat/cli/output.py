"""Output of commands: options, checks of the output file, tables, warnings."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import click

from deadheat._internal.output import utf8, write_output
from deadheat._internal.remarks import Remark, lines
from deadheat.cli.help import F
from deadheat.cli.names import Named, split_name
from deadheat.errors import InputError, printable
from deadheat.tables import STYLES, Table, render, rich_parts

SUFFIXES = {
    ".txt": "table",
    ".md": "markdown",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
}
"""File endings and their formats."""


@dataclass(frozen=True)
class Output:
    """Values of the options of `output_options`: the format and target of the output."""

    style: str = "table"
    output: str | None = None
    """The file to write; None is standard output."""
    percent: bool = False
    wide: bool = False
    """Whether to print all columns, even if they do not fit into the terminal."""
    force: bool = False
    strict: bool = False

    @property
    def columns(self) -> int:
        """Width at which text is wrapped: that of the terminal, or 80 in a pipe or file."""
        here = self.output is None and on_terminal()
        return shutil.get_terminal_size().columns if here else 80

    def check(self, *inputs: str | Path | Named | None) -> None:
        """Raise InputError for bad files before any work is done.

        The output file must be writable, and standard input can be read only once.

        Parameters
        ----------
        inputs
            Files, folders, patterns, ``name=path`` and ``-`` (standard input) that the command
            reads. ``--force`` never replaces one of them.
        """
        sources = [_path_of(given) for given in inputs if given is not None]
        if sources.count("-") > 1:
            raise InputError("standard input (-) can be read only once; give a file for the others")
        path = self.output
        if path is None:
            return
        target = Path(path).resolve()
        exists = os.path.exists(target)  # noqa: PTH110 (False also for a name that is too long)
        if exists and not target.is_file():
            raise InputError(
                f"{path!r}: this is not a regular file; leave -o out and redirect instead"
            )
        if exists and not self.force:
            raise InputError(f"{path}: exists already; use --force to overwrite it")
        for given in sources if exists else ():
            if _is_read(target, given):
                raise InputError(
                    f"{path}: this file is also an input ({given}), and --force would replace it; "
                    "choose another output"
                )
        folder = target.parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise InputError(
                f"{path}: the folder {folder} does not exist or cannot be written to; choose "
                "another"
            )

    def write(self, text: str) -> None:
        """Write to standard output, or atomically to the file."""
        if self.output is None:
            _print(text)
            return
        write_output(self.output, utf8(f"{text}\n"), force=True)  # `check` has read --force
        print_line(f"wrote {self.output}", err=True)

    def show(
        self,
        parts: Sequence[str | Table],
        finding: str = "",
        data: Callable[[], object] | None = None,
    ) -> None:
        """Print sentences and tables in colour on a terminal, else write them as plain text.

        Parameters
        ----------
        finding
            Description of the numbers: the last line of the format ``table``.
        data
            Function that returns the content of the format ``json``. Default: that of the tables.
        """
        if self.style == "json" and data is not None:
            self.write(json.dumps(data(), indent=1, ensure_ascii=False))
            return
        if self.style == "table" and finding:
            parts = [*parts, finding]
        if self.style != "table" or self.output is not None or not on_terminal():
            self.write(render(parts, self.style, percent=self.percent))
            return
        from rich.console import Console

        console = Console()
        content = rich_parts(parts, percent=self.percent)
        if self.wide:
            console.width = 1000  # the largest width of a table
            console.width = console.measure(content).maximum
        console.print(content)

    def exit_if(self, warned: bool) -> None:
        """Exit with status 1 if --strict was given and there were warnings."""
        if self.strict and warned:
            sys.exit(1)


def options(*parts: Callable[..., Any]) -> Callable[[F], F]:
    """Combine several arguments and options, in the order of the help text."""

    def add(command: F) -> F:
        for part in reversed(parts):
            command = part(command)
        return command

    return add


def gather(
    argument: str, make: Callable[..., object], *parts: Callable[..., Any]
) -> Callable[[F], F]:
    """Combine options; the command receives what `make` returns for their values as `argument`."""

    def add(command: F) -> F:
        @functools.wraps(command)
        def collect(*args: object, **given: object) -> Any:
            values = {name: given.pop(name) for name in names}
            return command(*args, **given, **{argument: make(**values)})

        others = len(getattr(command, "__click_params__", ()))
        with_options: Any = options(*parts)(collect)
        names = [option.name for option in with_options.__click_params__[others:]]
        return with_options  # type: ignore[no-any-return]

    return add


def percent_option(*, default: bool) -> Callable[[F], F]:
    """Make the option --percent: print 73.53 or 0.7353."""
    return click.option(
        "--percent/--fraction",
        default=default,
        help="Print percent, as papers do (73.53), or fractions (0.7353).",
    )


def _choose_style(ctx: click.Context, _: click.Parameter, style: str | None) -> str:
    """Return the given format, or else the format of the output file's ending."""
    output = ctx.params.get("output")  # parsed first, because it is eager
    ending = Path(output or "").suffix.lower()
    named = SUFFIXES.get(ending)
    if style is None and ending and named is None:
        raise InputError(
            f"{output}: no format has this file ending; use one of {', '.join(SUFFIXES)}, or "
            "choose the format with --format"
        )
    return style or named or "table"


FORCE = click.option("--force", is_flag=True, help="Overwrite the output file if it exists.")
_OPTIONS: dict[str, Callable[..., Any]] = {
    "style": click.option(
        "--format",
        "style",
        type=click.Choice(STYLES),
        callback=_choose_style,
        help="csv and json have full precision. [default: the ending of the output file, or table]",
    ),
    "wide": click.option(
        "--wide", is_flag=True, help="Show all columns, even in a narrow terminal."
    ),
    "output": click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False),
        is_eager=True,  # its ending may choose the format
        help=f"Write to a file; its ending chooses the format: {', '.join(SUFFIXES)}.",
    ),
    "force": FORCE,
    "strict": click.option(
        "--strict", is_flag=True, help="Exit with status 1 if there were warnings."
    ),
}


def output_options(*names: str, percent: bool | None = False) -> Callable[[F], F]:
    """Add output options; the command receives them as one argument ``out`` of type `Output`.

    Parameters
    ----------
    names
        Options of the command, out of `style`, `wide`, `output`, `force` and `strict`. Default:
        all.
    percent
        The default of --percent; None leaves the option out.
    """
    added = [] if percent is None else [percent_option(default=percent)]
    return gather("out", Output, *added, *(_OPTIONS[name] for name in names or _OPTIONS))


def _path_of(given: str | Path | Named) -> str:
    if isinstance(given, str):
        given = split_name(given)
    return given.path if isinstance(given, Named) else str(given)


def _is_read(target: Path, given: str) -> bool:
    """Return whether an input is or contains a file, also under another name or by a link."""
    with suppress(AttributeError, OSError, ValueError):  # reading reports the error
        if given == "-":
            return os.path.samestat(os.fstat(sys.stdin.fileno()), target.stat())
        path = Path(given)
        # The folder of an experiment may also contain tables and pages made from it.
        within = "*/**/*" if (path / "experiment.json").is_file() else "**/*"
        matches = map(Path, glob(given, recursive=True))  # noqa: PTH207
        files = [path, path / "experiment.json", *path.glob(within), *matches]
        return any(file.exists() and target.samefile(file) for file in files)
    return False


def _print(text: str) -> None:
    if sys.stdout is None:
        raise InputError("standard output is closed; write to a file with -o")
    data = utf8(printable(text, keep="\n\t") if on_terminal() else text)
    is_binary = hasattr(sys.stdout, "buffer")  # not io.StringIO
    try:
        click.echo(data if is_binary else data.decode())  # UTF-8 in every locale
    except BrokenPipeError:  # the reader has closed the pipe
        raise
    except OSError as error:
        raise InputError(f"standard output cannot be written ({error.strerror})") from None


def on_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def print_remarks(remarks: Mapping[str, Sequence[Remark]], *, of: str = "run") -> None:
    """Print the warnings of several runs to standard error, each once."""
    print_warnings(lines(remarks, "warning", of=of))


def print_warnings(messages: Iterable[str]) -> None:
    """Print warnings to standard error."""
    for text in messages:
        print_line(f"warning: {text}", err=True)


def print_line(text: str, *, err: bool = False) -> None:
    """Print a line without control characters, which names in it may contain."""
    click.echo(printable(text), err=err)
