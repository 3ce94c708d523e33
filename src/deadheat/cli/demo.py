"""`deadheat demo`: the paper's finding in a few seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from deadheat.cli.common import check_output, write
from deadheat.demo import MEASURE, Recording, recordings, write_files
from deadheat.errors import DeadheatError
from deadheat.evaluation import evaluate
from deadheat.formats import read_qrels, read_run
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.report.page import Collection, System, is_page, render_page

_VIEWS = ("oblivious", "expected", "range", "bias")
_REGIMES = {
    "fp32": "FP32 model and scoring",
    "native": "BF16 native",
    "hps": "BF16, scored in FP32 (HPS)",
    "head": "BF16, last layer in FP32",
}
_REPORT = "deadheat-demo.html"
_CUTOFFS = (1, 2, 3, 5, 10, 20)


@click.command("demo")
@click.option(
    "--files",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write the example as TREC files to this folder, for `deadheat eval`.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"The web page to write; an older page there is replaced. [default: {_REPORT}]",
)
def command(files: Path | None, report: Path | None) -> None:
    """Show what ties do to recorded outputs of three real models (no model is run)."""
    table = Table(title=f"{MEASURE} in percent", box=box.SIMPLE_HEAD)
    table.title_justify, table.show_edge, table.pad_edge = "left", False, False
    table.add_column("regime", no_wrap=True)
    for view in ("distinct", *_VIEWS):
        table.add_column(view, justify="right", no_wrap=True)
    softmax = None
    collections = []
    for recording in recordings():
        collections.append(_collection(recording))
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
    try:
        target = str(report or _REPORT)
        check_output(target, force=is_page(Path(target)))
        write(render_page(collections, title="deadheat demo", shown=_shown()), target)
    except DeadheatError as error:
        if report is not None:
            raise
        click.echo(f"No report page was written: {error}")
    else:
        click.echo(f"Every query and its ties, to open in a browser: {target}")


def _collection(recording: Recording) -> Collection:
    """A recording as the report shows it, at several cutoffs."""
    lists = list(zip(recording.query_ids, recording.doc_ids, recording.relevance, strict=True))
    qrels = read_qrels({q: dict(zip(docs, g.tolist(), strict=True)) for q, docs, g in lists})
    systems = []
    for regime, scores in recording.lists.items():
        run = read_run(
            {
                query: dict(zip(docs, values.tolist(), strict=True))
                for (query, docs, _), values in zip(lists, scores, strict=True)
            }
        )
        measures = [measure @ k for measure in _shown() for k in _CUTOFFS]
        result = evaluate(qrels, run, measures)
        origin = {"model": recording.model, "scoring": recording.scoring, "regime": regime}
        rest = {k: v for k, v in result.provenance.items() if k not in ("run", "qrels")}
        result = replace(result, provenance={**origin, **rest})
        systems.append(System(result, {"regime": _REGIMES[regime]}, run))
    return Collection(f"{recording.scoring}: {recording.model}", systems, qrels)


def _shown() -> list[Measure]:
    return parse_measures([MEASURE, "MRR@10"])
