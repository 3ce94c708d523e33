"""`deadheat demo`: the paper's finding in a few seconds."""

from __future__ import annotations

from pathlib import Path

import click

from deadheat._internal.lazy import pl
from deadheat.cli.help import Command
from deadheat.cli.output import Output, check_output, print_line, print_written, write
from deadheat.demo import MEASURE, MORE_MEASURES, Recording, recordings, write_files
from deadheat.errors import DeadheatError
from deadheat.evaluation import VIEW_COLUMNS, Summary
from deadheat.report.page import Collection, System, is_page, render_page
from deadheat.tables import Column, Table, number
from deadheat.ties import run_sizes

_REGIMES = {
    "fp32": "FP32 model and scoring",
    "native": "BF16 native",
    "hps": "BF16, scored in FP32 (HPS)",
    "head": "BF16, last layer in FP32",
}
_COLUMNS = (
    Column("regime", "name", words=_REGIMES),
    Column("distinct", "share"),
    *(VIEW_COLUMNS[view] for view in ("oblivious", "expected", "range", "bias")),
)
_REPORT = "deadheat-demo.html"


@click.command("demo", cls=Command, example="deadheat demo --files demo")
@click.option(
    "--files",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write the example as TREC files to this folder, for `deadheat eval`.",
)
@click.option(
    "-o",
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"The web page to write; an older page there is replaced. [default: {_REPORT}]",
)
def command(files: Path | None, report: Path | None) -> None:
    """Show what ties do to recorded outputs of three real models (no model is run)."""
    recorded = list(recordings())
    if files is not None:
        for recording in recorded:
            write_files(recording, files)
        print_written(f"{files}/")
    softmax = {name: result[MEASURE] for name, result in recorded[0].results.items()}
    Output(percent=True).show([*map(_table, recorded), _finding(softmax)])
    try:
        target = str(report or _REPORT)
        check_output(target, force=is_page(Path(target)))
        page = render_page(
            list(map(_collection, recorded)), title="deadheat demo", shown=MORE_MEASURES
        )
        write(page, target)
    except DeadheatError as error:
        if report is not None:
            raise
        print_line(f"No report page was written: {error}")
    else:
        print_line(f"Every query and its ties, to open in a browser: {target}")


def _table(recording: Recording) -> Table:
    """What each regime makes of the recorded outputs."""
    rows = []
    for regime, result in recording.results.items():
        facts = run_sizes(recording.runs[regime]).facts
        summary = result.aggregate.row(by_predicate=pl.col("measure") == MEASURE, named=True)
        rows.append({"regime": regime, "distinct": facts.distinct / facts.documents, **summary})
    title = f"{recording.scoring}: {recording.model}, {MEASURE} in percent"
    return Table(pl.DataFrame(rows), _COLUMNS, title)


def _finding(softmax: dict[str, Summary]) -> str:
    """Say what the numbers mean."""

    def percent(value: float) -> str:
        return number(value, percent=True)

    fp32, native, head = softmax["fp32"], softmax["native"], softmax["head"]
    return (
        f"Oblivious, as reported (input order): BF16 beats FP32, {percent(native.oblivious)} > "
        f"{percent(fp32.oblivious)} (softmax).\n"
        f"True whatever the tie-break: BF16 lies between {percent(native.worst)} and "
        f"{percent(native.best)};\n"
        f"over all orders of tied documents it averages {percent(native.expected)} < "
        f"{percent(fp32.expected)}.\n"
        "Decision: that BF16 wins is an accident of the input order. HPS left every tie\n"
        "in place here, for they are born in the last layer; that layer in FP32, after\n"
        f"the same BF16 forward pass, leaves none: {percent(head.expected)}, range "
        f"{percent(head.range)}."
    )


def _collection(recording: Recording) -> Collection:
    """A recording as the report shows it."""
    systems = [
        System(result, {"regime": _REGIMES[regime]}, recording.runs[regime])
        for regime, result in recording.results.items()
    ]
    collection = Collection(f"{recording.scoring}: {recording.model}", systems, recording.qrels)
    return collection.compare(MORE_MEASURES)
