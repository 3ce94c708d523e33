"""`deadheat verify`: check the files of a stored experiment."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from deadheat._internal.remarks import counted
from deadheat.cli.help import Command
from deadheat.cli.output import Output, output_options
from deadheat.tables import Column, Table


@click.command("verify", cls=Command, example="deadheat verify results/")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@output_options("style", percent=None)
def command(folder: Path, out: Output) -> None:
    """Check the files of a stored experiment by their hashes.

    DIR is the folder of `deadheat run`. The output lists files that are damaged, missing, not
    written by deadheat, or, after an interrupted run, not complete. `deadheat run` checks the files
    that it uses in the same way. Exit status: 0 all files are unchanged, 1 some are not, 2 bad
    usage or no such folder.
    """
    import polars as pl

    from deadheat.lab.experiment import ADVICE, ExperimentFolder

    sound, faults = ExperimentFolder(folder).verify()
    title = f"{folder}: {counted(sound, 'file')} as written, {counted(len(faults), 'fault')}"
    rows = [
        (str(fault.path.relative_to(folder)), fault.what, ADVICE[fault.what]) for fault in faults
    ]
    frame = pl.DataFrame(rows, dict.fromkeys(("file", "fault", "advice"), pl.String), orient="row")
    columns = (Column("fault", "name"), Column("file", "name"))
    advice = [f"A file that {text}." for text in frame["advice"].unique(maintain_order=True)]
    table = Table(frame, columns, title=title, notes=advice)
    out.show([table] if faults or out.style in ("csv", "json") else [title])
    if faults:
        sys.exit(1)
