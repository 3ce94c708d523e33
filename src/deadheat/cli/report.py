"""`deadheat report`: write one web page about results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from deadheat.cli.common import (
    MEASURES,
    comparison_options,
    evaluation_options,
)
from deadheat.cli.help import Command
from deadheat.cli.names import split_names
from deadheat.cli.output import FORCE, Output, print_line, print_remarks
from deadheat.cli.pages import evaluate_collection, group_results, read_experiment
from deadheat.cli.progress import progress_bar
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES, name_results, read_results
from deadheat.measures import Measure, parse_measures
from deadheat.report.page import Collection, render_page
from deadheat.settings import EvalSettings


@click.command(
    "report",
    cls=Command,
    example="deadheat report --qrels qrels.txt bm25.run bf16.run -o report.html",
)
@click.argument("sources", nargs=-1, required=True, type=click.Path(), metavar="DIR|RESULT|RUN...")
@click.option(
    "--qrels", help="Judgements. Without --runs, the sources are then run files to evaluate."
)
@click.option(
    "--runs",
    multiple=True,
    metavar="RUN",
    help="A run file of stored results, to show its ranked lists; needs --qrels. May be repeated.",
)
@MEASURES
@evaluation_options
@comparison_options
@click.option(
    "--dataset",
    help="Dataset with the texts of queries and documents: a folder, hub id or ir_datasets: id.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=20,
    help="Number of documents of each ranked list on the page; 0 for none.",
)
@click.option("--title", help="Heading of the page.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="report.html",
    help="The file to write.",
)
@FORCE
def command(
    sources: tuple[str, ...],
    qrels: str | None,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    settings: EvalSettings,
    how: dict[str, object],
    dataset: str | None,
    top: int,
    title: str | None,
    output: str,
    force: bool,
) -> None:
    """Write one self-contained web page about results.

    The sources are one of: the folder of `deadheat run`; files written by `deadheat eval
    --per-query --format json`, with --runs and --qrels to show ranked lists; or run files with
    --qrels. With stored results, -m chooses the measures that are shown per query. Only files
    given on the command line are read, never a path inside a stored result.
    """
    out = Output(output=output, force=force)
    out.check(qrels, *runs, *sources, dataset)
    asked = parse_measures(measures) if measures else None
    if runs and qrels is None:
        raise InputError("--runs needs the judgements of the runs; add --qrels")
    with progress_bar() as progress:
        if qrels is not None and not runs:
            asked = asked or parse_measures(DEFAULT_MEASURES)
            collections = [
                evaluate_collection(qrels, split_names(sources), asked, settings, progress)
            ]
        else:
            if settings != EvalSettings():
                raise InputError(
                    "these results are evaluated already, so leave out --tie-break, --score-dtype, "
                    "--tie-tolerance, --queries and --nan; for run files, give the judgements with "
                    "--qrels"
                )
            folders = [source for source in sources if Path(source).is_dir()]
            files = [source for source in sources if source not in folders]
            collections = [c for each in folders for c in read_experiment(Path(each), progress)]
            results = [result for file in files for result in read_results(Path(file))]
            collections += group_results(results, qrels, runs)
            _check_measures(collections, asked)
        if dataset is not None:
            from deadheat.lab.datasets import load_dataset

            texts = load_dataset(dataset, candidates="full")
            collections = [
                replace(collection, queries=texts.queries, documents=texts.corpus)
                for collection in collections
            ]
        collections = [collection.compare(asked, **how) for collection in collections]
        if how["baseline"] is not None and not any(c.comparison for c in collections):
            raise InputError(collections[0].not_compared)
        title = title or " · ".join(collection.name for collection in collections[:3])
        page = render_page(collections, title=title, top=top, shown=asked, progress=progress)
    results = [system.result for collection in collections for system in collection.systems]
    named = zip(name_results(results), results, strict=True)
    print_remarks({name: result.remarks for name, result in named}, of="system")
    out.write(page)
    print_line(f"Open {output} in a browser.")


def _check_measures(collections: Sequence[Collection], asked: list[Measure] | None) -> None:
    systems = [system for collection in collections for system in collection.systems]
    known = dict.fromkeys(measure for system in systems for measure in system.result.views)
    if unknown := [measure for measure in asked or () if measure not in known]:
        names = ", ".join(map(repr, known))
        raise InputError(f"{unknown[0]} was not evaluated; use one of {names}")
