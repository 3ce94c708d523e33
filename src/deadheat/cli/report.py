"""`deadheat report`: results in, one web page out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from deadheat.cli.common import (
    FORCE,
    MEASURES,
    check_output,
    evaluation_options,
    show_warnings,
    write,
)
from deadheat.errors import DeadheatWarning, InputError
from deadheat.evaluation import DEFAULT_MEASURES, evaluate
from deadheat.formats import read_qrels, read_run
from deadheat.measures import Measure
from deadheat.measures.parse import parse_measures
from deadheat.report.page import (
    Collection,
    System,
    collect,
    read_experiment,
    read_results,
    render_page,
)
from deadheat.result import short_names

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)


@click.command("report")
@click.argument("sources", nargs=-1, required=True, metavar="DIR|RESULT|RUN...")
@click.option("--qrels", help="Judgements: the sources are then run files to be evaluated.")
@MEASURES
@evaluation_options
@click.option(
    "--dataset",
    help="A folder, hub id or ir_datasets: id whose texts of queries and documents are shown.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Documents of each ranked list that the page holds; 0 for none.",
)
@click.option("--title", help="Heading of the page.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="report.html",
    show_default=True,
    help="The file to write.",
)
@FORCE
@click.pass_context
def command(
    ctx: click.Context,
    /,
    sources: tuple[str, ...],
    qrels: str | None,
    measures: tuple[str, ...],
    dataset: str | None,
    top: int,
    title: str | None,
    output: str,
    force: bool,
    **options: Any,
) -> None:
    """Write one self-contained web page about results.

    Give the folder of `deadheat run`; or files written by `deadheat eval --per-query --format
    json`, whose ranked lists are shown where the run files are still in place; or run files
    together with --qrels. With stored results, -m chooses what is shown query by query.
    """
    check_output(output, force=force)
    wanted = parse_measures(measures) if measures else None
    if qrels is not None:
        wanted = wanted or parse_measures(DEFAULT_MEASURES)
        collections = [_evaluated(qrels, sources, wanted, options)]
    else:
        default = click.core.ParameterSource.DEFAULT
        for name in options:
            if ctx.get_parameter_source(name) is not default:
                raise InputError(
                    f"--{name.replace('_', '-')} is about evaluating runs, and these results are "
                    "evaluated already; for run files, give the judgements with --qrels"
                )
        collections = _stored(sources)
        _check_measures(collections, wanted)
    if dataset is not None:
        collections = [_with_texts(collection, dataset) for collection in collections]
    show_warnings(system.result for each in collections for system in each.systems)
    page = render_page(collections, title=title or _title(collections), top=top, shown=wanted)
    write(page, output)
    click.echo(f"{output}: {len(page.encode()) / 1e6:.1f} MB, open it in a browser")


def _evaluated(
    qrels: str, paths: Sequence[str], wanted: list[Measure], options: dict[str, Any]
) -> Collection:
    """Evaluate run files in the measures asked for, and at more cutoffs for the curves."""
    if [qrels, *paths].count("-") > 1:
        raise InputError("standard input (-) can be read only once")
    judgements = read_qrels(qrels)
    more = [measure @ k for measure in wanted for k in CUTOFFS]
    runs = [read_run(path, with_ranks=options["tie_break"] == "rank") for path in paths]
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeadheatWarning)
        for run in runs:
            result = evaluate(judgements, run, wanted, **options)
            curves = evaluate(judgements, run, more, **options)
            results.append(replace(result, views={**result.views, **curves.views}))
    named = zip(results, short_names(results), runs, strict=True)
    systems = [System(result, {"system": name}, run) for result, name, run in named]
    return Collection(Path(qrels).name, systems, judgements)


def _stored(sources: Sequence[str]) -> list[Collection]:
    """Read experiments and files of results."""
    collections, results = [], []
    for source in map(Path, sources):
        if source.is_dir():
            collections += read_experiment(source)
        else:
            results += read_results(source)
    return collections + collect(results)


def _check_measures(collections: Sequence[Collection], wanted: list[Measure] | None) -> None:
    known = {m for each in collections for system in each.systems for m in system.result.views}
    for measure in wanted or ():
        if measure not in known:
            raise InputError(
                f"{measure} was not evaluated; the results have {', '.join(map(repr, known))}"
            )


def _with_texts(collection: Collection, name: str) -> Collection:
    from deadheat.datasets import load_dataset

    texts = load_dataset(name, candidates="full")
    return replace(collection, queries=texts.queries, documents=texts.corpus)


def _title(collections: Sequence[Collection]) -> str:
    return " · ".join(collection.name for collection in collections[:3])
