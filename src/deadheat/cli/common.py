"""What commands share: options in words, warnings, output that is whole or not there."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from deadheat.errors import InputError
from deadheat.result import Result


def explain(choices: Mapping[str, str]) -> str:
    """Choices and their meanings in one line, for a help text."""
    return "; ".join(f"{name}: {text}" for name, text in choices.items()) + "."


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
        click.echo(text if on_terminal() else text.encode())
    except BrokenPipeError:  # the reader has seen enough
        raise
    except OSError as error:
        raise InputError(f"standard output cannot be written ({error.strerror})") from None


def on_terminal() -> bool:
    """Whether a person is watching standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
