"""`deadheat demo`: the paper's finding in a few seconds."""

from __future__ import annotations

from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from deadheat.demo import MEASURE, recordings, write_files

_VIEWS = ("oblivious", "expected", "range", "bias")
_REGIMES = {
    "fp32": "FP32 model and scoring",
    "native": "BF16 native",
    "hps": "BF16, scored in FP32 (HPS)",
    "head": "BF16, last layer in FP32",
}


@click.command("demo")
@click.option(
    "--files",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write the example as TREC files to this folder, for `deadheat eval`.",
)
def command(files: Path | None) -> None:
    """Show what ties do to recorded outputs of three real models (no model is run)."""
    table = Table(title=f"{MEASURE} in percent", box=box.SIMPLE_HEAD)
    table.title_justify, table.show_edge, table.pad_edge = "left", False, False
    table.add_column("regime", no_wrap=True)
    for view in ("distinct", *_VIEWS):
        table.add_column(view, justify="right", no_wrap=True)
    softmax = None
    for recording in recordings():
        results = recording.evaluate()
        softmax = softmax or results
        if files is not None:
            write_files(recording, files)
        table.add_section()
        table.add_row(f"[bold]{recording.scoring}: {recording.model}[/]")
        for regime, result in results.items():
            values = [f"{100 * getattr(result[MEASURE], view):.2f}" for view in _VIEWS]
            distinct = f"{100 * recording.distinct[regime]:.0f} %"
            table.add_row(f"  {_REGIMES[regime]}", distinct, *values)
    console = Console()
    console.print(table)
    assert softmax is not None
    fp32, native, head = (softmax[regime][MEASURE] for regime in ("fp32", "native", "head"))
    console.print(
        f"As reported, ties in input order: BF16 beats FP32, {100 * native.oblivious:.2f} > "
        f"{100 * fp32.oblivious:.2f} (softmax).\n"
        f"True whatever the tie-break: BF16 lies between {100 * native.worst:.2f} and "
        f"{100 * native.best:.2f};\n"
        f"over all orders of tied documents it averages {100 * native.expected:.2f} < "
        f"{100 * fp32.expected:.2f}.\n"
        "Decision: that BF16 wins is an accident of the input order. HPS left every tie\n"
        "in place here, for they are born in the last layer; that layer in FP32, after\n"
        f"the same BF16 forward pass, leaves none: {100 * head.expected:.2f}, range "
        f"{100 * head.range:.2f}.",
        highlight=False,
    )
