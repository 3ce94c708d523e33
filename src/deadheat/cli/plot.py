"""`deadheat plot`: draw figures for a paper from run files."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import click
import numpy as np

from deadheat._internal.remarks import counted
from deadheat.cli.common import (
    QRELS,
    RUNS,
    SCORE_DTYPE,
    TIE_BREAK,
    evaluate_run_files,
    evaluation_options,
    measures_option,
    name_given,
)
from deadheat.cli.help import Command, F, parse_numbers
from deadheat.cli.names import Named, split_name
from deadheat.cli.output import (
    FORCE,
    Output,
    gather,
    options,
    percent_option,
    print_line,
    print_remarks,
)
from deadheat.comparison import align_systems, ranking
from deadheat.errors import InputError
from deadheat.evaluation import evaluate_run, rank_query
from deadheat.formats import Judgements, Run, read_qrels, read_run
from deadheat.measures import Measure, parse_measure, parse_measures
from deadheat.report import figures
from deadheat.settings import EvalSettings
from deadheat.tables import number
from deadheat.ties import run_sizes


@click.group("plot")
def command() -> None:
    """Draw a figure for a paper: PNG, SVG or PDF.

    The caption, which names the tie rule and the number of queries, is printed and stored in
    the file's metadata.
    """


_OUTPUT = options(
    click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False),
        required=True,
        help="The file to write; its ending chooses the format: .png, .svg or .pdf.",
    ),
    FORCE,
    click.option(
        "--width",
        type=click.Choice(list(figures.WIDTHS)),
        default="column",
        help="Width: one column of a two-column paper, or the full page.",
    ),
)


_RUN_OPTIONS = options(QRELS, RUNS, evaluation_options, _OUTPUT)
_PERCENT = percent_option(default=False)


def _measure_option(default: str = "nDCG@10") -> Callable[[F], F]:
    """Make the option for one measure; the command receives it parsed."""
    return click.option(
        "-m",
        "--measure",
        default=default,
        callback=lambda _, __, text: parse_measure(text),
        help="The measure.",
    )


def _figure(name: str, example: str) -> Callable[[Callable[..., figures.Plot]], click.Command]:
    """Make a subcommand from a function that draws; it checks the files and saves the figure."""

    def add(draw: Callable[..., figures.Plot]) -> click.Command:
        @functools.wraps(draw)
        def run(output: str, force: bool, **given: Any) -> None:
            figures.check_ending(output)
            inputs = given.get("qrels"), given.get("run"), *given.get("runs", ())
            Output(output=output, force=force).check(*inputs)
            plot = draw(**given)
            plot.save(output, force=True)
            print_line(f"wrote {output}", err=True)
            print_line(plot.caption)

        return command.command(name, cls=Command, example=example)(run)

    return add


@_figure("curves", "deadheat plot curves qrels.txt bm25.run bf16.run -m nDCG -o curves.pdf")
@measures_option("A measure; each gets a panel. May be repeated. [default: nDCG]")
@click.option(
    "-k",
    "--cutoffs",
    default="1..10",
    callback=parse_numbers,
    help="Cutoffs of measures without a cutoff: numbers and ranges, such as 1..10,20,50.",
)
@_PERCENT
@_RUN_OPTIONS
def _curves(
    measures: tuple[str, ...], cutoffs: list[int], percent: bool, width: str, **given: Any
) -> figures.Plot:
    """Draw measures of one or more RUNs against the cutoff k."""
    at_cutoffs: list[Measure] = []
    for measure in parse_measures(measures or ["nDCG"]):
        at_cutoffs += [measure @ k for k in cutoffs] if measure.cutoff is None else [measure]
    systems = evaluate_run_files(measures=at_cutoffs, **given)
    return figures.curves(systems, percent=percent, width=width)


@_figure("compare", "deadheat plot compare qrels.txt bm25.run bf16.run -m nDCG@10 -o compare.pdf")
@_measure_option()
@_PERCENT
@_RUN_OPTIONS
def _compare(measure: Measure, percent: bool, width: str, **given: Any) -> figures.Plot:
    """Draw RUNs as intervals from worst to best; join overlapping ones."""
    systems = evaluate_run_files(measures=[measure], **given)
    return figures.comparison(systems, measure, percent=percent, width=width)


def _pattern(_: object, __: object, text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise InputError(f"--group-by {text!r}: not a regular expression ({error})") from None


@_figure("ranks", "deadheat plot ranks qrels.txt runs/*.run -m nDCG@10 -o ranks.pdf")
@_measure_option()
@click.option(
    "--group-by",
    metavar="PATTERN",
    callback=_pattern,
    help="Colour runs by the match of this regular expression in their labels: its first group, or "
    "the whole match. [^_.-]+ is the first word, often the team.",
)
@_RUN_OPTIONS
def _ranks(
    measure: Measure, group_by: re.Pattern[str] | None, width: str, **given: Any
) -> figures.Plot:
    """Draw the ranks that tie-breaking can give to RUNs."""
    systems = evaluate_run_files(measures=[measure], **given)
    groups = None if group_by is None else _groups(systems, group_by)
    systems, _ = align_systems(systems, [measure], given["settings"].queries)
    first = next(iter(systems.values()))
    what = f"{measure!r} of {counted(len(first.query_ids), 'query')}"
    plot = figures.rank_intervals(ranking(systems), groups=groups, what=what, width=width)
    rule = first.provenance.settings.note
    return replace(plot, caption=f"{plot.caption} {rule[0].upper()}{rule[1:]}.")


def _groups(names: Iterable[str], pattern: re.Pattern[str]) -> dict[str, str]:
    """Return the group of each name in which a regular expression finds one.

    >>> _groups(["bm25-a", "bm25-b", "x"], re.compile("(bm25)"))
    {'bm25-a': 'bm25', 'bm25-b': 'bm25'}
    """
    finds = {name: pattern.search(name) for name in names}
    found = {name: find[pattern.groups and 1] for name, find in finds.items() if find}
    return {name: group for name, group in found.items() if group}


@_figure("list", "deadheat plot list qrels.txt bf16.run --query 28 -o list.pdf")
@QRELS
@click.argument("run", type=click.Path(), metavar="[NAME=]RUN")
@click.option("--query", help="The id of the query. [default: the query with the largest range]")
@_measure_option("Recall@10")
@click.option(
    "--rows",
    type=click.IntRange(min=5),
    default=24,
    help="Shorten a longer list to about this many rows.",
)
@gather("settings", EvalSettings, TIE_BREAK, SCORE_DTYPE)
@_OUTPUT
def _list(
    qrels: str,
    run: str,
    query: str | None,
    measure: Measure,
    rows: int,
    settings: EvalSettings,
    width: str,
) -> figures.Plot:
    """Draw the ranked list of one query of RUN with its tie groups."""
    judgements = read_qrels(qrels)
    source = read_run(split_name(run).path, with_ranks=settings.needs_ranks)
    if query is None:
        query = _most_moved(judgements, source, measure, settings)
    ranked = rank_query(judgements, source, query, measure, settings)
    print_remarks({run: ranked.result.remarks})
    return figures.ranked_list(ranked, rows=rows, width=width)


@_figure("sizes", "deadheat plot sizes bm25.run bf16.run -o sizes.pdf")
@RUNS
@_OUTPUT
def _sizes(runs: list[Named], width: str) -> figures.Plot:
    """Draw the sizes of the tie groups of one or more RUNs."""
    sizes = [run_sizes(read_run(run.path)) for run in runs]
    return figures.tie_sizes(dict(zip(name_given(runs), sizes, strict=True)), width=width)


def _most_moved(judgements: Judgements, run: Run, measure: Measure, settings: EvalSettings) -> str:
    """Return the query that ties move most, and print its name."""
    result = evaluate_run(judgements, run, [measure], settings)
    ranges = result.views[measure].best - result.views[measure].worst
    query = result.query_names[int(np.argmax(ranges))]
    moved = number(float(ranges.max()))
    print_line(f"query {query}: largest range of {measure}, {moved}", err=True)
    return query
