"""What commands share: options in words, warnings, output that is whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from deadheat.diagnosis import Diagnosis
from deadheat.errors import InputError
from deadheat.result import Result


def explain(choices: Mapping[str, str]) -> str:
    """Choices and their meanings in one line, for a help text."""
    return "; ".join(f"{name}: {text}" for name, text in choices.items()) + "."


def show_warnings(results: Iterable[Result | Diagnosis]) -> None:
    """Print what is wrong with the input to standard error."""
    for result in results:
        for text in result.warnings:
            click.echo(f"warning: {result.name}: {text}", err=True)


def check_output(path: str | None, *, force: bool) -> None:
    """Refuse an output path before any work is done for it."""
    if path is None:
        return
    if Path(path).exists() and not force:
        raise InputError(f"{path}: exists already; use --force to overwrite it")
    folder = Path(path).resolve().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise InputError(f"{path}: the folder {folder} is not there or cannot be written to")


def write(text: str, path: str | None) -> None:
    """Write to standard output, or to a file that appears only when it is complete."""
    if path is None:
        click.echo(text)
        return
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.resolve().parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InputError(f"{path}: cannot be written ({error.strerror})") from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
