"""`deadheat plot`: run files in, a figure for a paper out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
import numpy as np

from deadheat.cli.common import (
    FORCE,
    PERCENT,
    QRELS,
    RUNS,
    SCORE_PRECISION,
    TIE_BREAK,
    check_output,
    check_standard_input,
    evaluate_runs,
    evaluation_options,
    labels_of,
    options,
    say,
    tell,
    wrote,
)
from deadheat.cli.help import Command, complete_measures
from deadheat.cli.names import labelled
from deadheat.comparison import ranking
from deadheat.comparison.align import aligned
from deadheat.errors import InputError
from deadheat.evaluation import evaluated, rank_query
from deadheat.formats import read_qrels, read_run
from deadheat.measures.parse import parse_measure, parse_measures
from deadheat.remarks import counted
from deadheat.report import figures
from deadheat.tables import number
from deadheat.ties.rules import rule_note
from deadheat.ties.sizes import run_sizes


@click.group("plot")
def command() -> None:
    """Draw a figure for a paper: PNG, SVG or PDF.

    The caption, which names the tie rule and the number of queries, is printed and stored in
    the file's metadata.
    """


_LABEL = click.option(
    "--label",
    "labels",
    multiple=True,
    help="Name of a run in the figure; once for each RUN. [default: the file names]",
)
_OUTPUT = options(
    click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False),
        required=True,
        help="The file to write; its ending, .png, .svg or .pdf, names the format.",
    ),
    FORCE,
    click.option(
        "--width",
        type=click.Choice(list(figures.WIDTHS)),
        default="column",
        show_default=True,
        help="One column, or the full width, of a two-column paper.",
    ),
)


@command.command(
    "curves",
    cls=Command,
    short_help="Draw measures against the cutoff.",
    example="deadheat plot curves qrels.txt bm25.run bf16.run -m nDCG -o curves.pdf",
)
@QRELS
@RUNS
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    default=("nDCG",),
    shell_complete=complete_measures,
    show_default=True,
    help="A measure; each gets a panel. May be repeated.",
)
@click.option(
    "-k",
    "--cutoffs",
    default="1..10",
    show_default=True,
    help="Cutoffs of measures given without: numbers and ranges, such as 1..10,20,50.",
)
@_LABEL
@PERCENT
@evaluation_options
@_OUTPUT
def _curves(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    cutoffs: str,
    labels: tuple[str, ...],
    percent: bool,
    output: str,
    force: bool,
    width: str,
    **options: Any,
) -> None:
    """Draw measures of one or more RUNs against the cutoff k."""
    _check(output, force, qrels, *runs)
    names = _labels(runs, labels)
    ks = _cutoffs(cutoffs)
    at_cutoffs = []
    for measure in parse_measures(measures):
        at_cutoffs += [measure @ k for k in ks] if measure.cutoff is None else [measure]
    results = dict(zip(names, evaluate_runs(qrels, runs, at_cutoffs, **options), strict=True))
    _save(figures.curves(results, percent=percent, width=width), output)


@command.command(
    "compare",
    cls=Command,
    short_help="Draw runs as intervals from worst to best.",
    example="deadheat plot compare qrels.txt bm25.run bf16.run -m nDCG@10 -o compare.pdf",
)
@QRELS
@RUNS
@click.option("-m", "--measure", default="nDCG@10", show_default=True, help="The measure.")
@_LABEL
@PERCENT
@evaluation_options
@_OUTPUT
def _compare(
    qrels: str,
    runs: tuple[str, ...],
    measure: str,
    labels: tuple[str, ...],
    percent: bool,
    output: str,
    force: bool,
    width: str,
    **options: Any,
) -> None:
    """Draw two or more RUNs as intervals [worst, best] and join those that overlap."""
    _check(output, force, qrels, *runs)
    names = _labels(runs, labels)
    parsed = parse_measure(measure)
    results = dict(zip(names, evaluate_runs(qrels, runs, [parsed], **options), strict=True))
    _save(figures.comparison(results, parsed, percent=percent, width=width), output)


@command.command(
    "ranks",
    cls=Command,
    short_help="Draw the ranks that tie-breaking can give to runs.",
    example="deadheat plot ranks qrels.txt runs/*.run -m nDCG@10 -o ranks.pdf",
)
@QRELS
@RUNS
@click.option("-m", "--measure", default="nDCG@10", show_default=True, help="The measure.")
@_LABEL
@click.option(
    "--group-by",
    metavar="PATTERN",
    help="Colour runs by what this regular expression finds in their labels: its first group, or "
    "all of it. [^_.-]+ is the first word, often the team.",
)
@evaluation_options
@_OUTPUT
def _ranks(
    qrels: str,
    runs: tuple[str, ...],
    measure: str,
    labels: tuple[str, ...],
    group_by: str | None,
    output: str,
    force: bool,
    width: str,
    **options: Any,
) -> None:
    """Draw the ranks of two or more RUNs, and those that tie-breaking can give them."""
    _check(output, force, qrels, *runs)
    names = _labels(runs, labels)
    parsed = parse_measure(measure)
    groups = None if group_by is None else _groups(names, group_by)
    systems = dict(zip(names, evaluate_runs(qrels, runs, [parsed], **options), strict=True))
    systems, _ = aligned(systems, [parsed], options["queries"])
    queries = counted(len(systems[names[0]].query_ids), "query")
    rule = rule_note(options["tie_break"], options["score_dtype"])
    plot = figures.rank_intervals(
        ranking(systems), groups=groups, what=f"{parsed!r} of {queries}", width=width
    )
    _save(replace(plot, caption=f"{plot.caption} {rule[0].upper()}{rule[1:]}."), output)


def _groups(names: Sequence[str], pattern: str) -> dict[str, str]:
    """Group names by what a regular expression finds in them; without a find, in no group.

    >>> _groups(["bm25-a", "bm25-b", "x"], "(bm25)")
    {'bm25-a': 'bm25', 'bm25-b': 'bm25'}
    """
    try:
        finds = {name: re.search(pattern, name) for name in names}
    except re.error as error:
        raise InputError(f"--group-by {pattern!r} is no regular expression ({error})") from None
    found = {name: find[find.re.groups and 1] for name, find in finds.items() if find}
    return {name: group for name, group in found.items() if group}


@command.command(
    "list",
    cls=Command,
    short_help="Draw the ranked list of one query with its tie groups.",
    example="deadheat plot list qrels.txt bf16.run --query 28 -o list.pdf",
)
@QRELS
@click.argument("run", metavar="[NAME=]RUN")
@click.option("--query", help="The id of the query. [default: that of the largest range]")
@click.option("-m", "--measure", default="Recall@10", show_default=True, help="The measure.")
@click.option(
    "--rows",
    type=click.IntRange(min=5),
    default=24,
    show_default=True,
    help="Shorten a longer list to about this many rows.",
)
@TIE_BREAK
@SCORE_PRECISION
@_OUTPUT
def _list(
    qrels: str,
    run: str,
    query: str | None,
    measure: str,
    rows: int,
    output: str,
    force: bool,
    width: str,
    **options: Any,
) -> None:
    """Draw the ranked list of one query of RUN with its tie groups."""
    _check(output, force, qrels, run)
    if query is None:
        query = _most_moved(qrels, run, measure, options)
    ranked = rank_query(qrels, labelled(run).path, query, measure, **options)
    say({run: ranked.result.remarks})
    _save(figures.ranked_list(ranked, rows=rows, width=width), output)


@command.command(
    "sizes",
    cls=Command,
    short_help="Draw how large the tie groups are.",
    example="deadheat plot sizes bm25.run bf16.run -o sizes.pdf",
)
@RUNS
@_LABEL
@_OUTPUT
def _sizes(
    runs: tuple[str, ...], labels: tuple[str, ...], output: str, force: bool, width: str
) -> None:
    """Draw how large the tie groups of one or more RUNs are."""
    _check(output, force, *runs)
    names = _labels(runs, labels)
    paths = [labelled(run).path for run in runs]
    sizes = {name: run_sizes(read_run(path)) for name, path in zip(names, paths, strict=True)}
    _save(figures.tie_sizes(sizes, width=width), output)


def _check(output: str, force: bool, *sources: str) -> None:
    """Refuse what cannot be read or written before any work is done."""
    figures.check_ending(output)
    check_output(output, force=force)
    check_standard_input(*sources)


def _labels(runs: tuple[str, ...], labels: tuple[str, ...]) -> list[str]:
    if not labels:
        return labels_of(runs)
    if len(labels) != len(runs) or len(set(labels)) < len(labels):
        raise InputError(f"give each of the {len(runs)} runs a --label of its own, or none at all")
    return list(labels)


def _cutoffs(text: str) -> list[int]:
    """Read numbers and ranges.

    >>> _cutoffs("1..3,10")
    [1, 2, 3, 10]
    """
    cutoffs: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        try:
            part_cutoffs = range(int(first), int(last if dots else first) + 1)
        except ValueError:
            part_cutoffs = range(0)
        if not part_cutoffs or part_cutoffs[0] < 1 or part_cutoffs[-1] > 10_000:
            raise InputError(
                f"cannot read the cutoffs {text!r}: write numbers and ranges from 1 to 10000, "
                "such as 1..10,20"
            )
        cutoffs.update(part_cutoffs)
    return sorted(cutoffs)


def _most_moved(qrels: str, run: str, measure: str, options: dict[str, Any]) -> str:
    """Find the query that ties move most, and say which it is."""
    if "-" in (qrels, labelled(run).path):
        raise InputError("standard input is read once: name the query with --query")
    parsed = parse_measure(measure)
    source = read_run(labelled(run).path, with_ranks=options["tie_break"] == "rank")
    result = evaluated(read_qrels(qrels), source, [parsed], **options)
    views = result.views[parsed]
    most = int(np.argmax(views.best - views.worst))
    query, moved = result.query_names[most], number(float(views.best[most] - views.worst[most]))
    tell(f"query {query}: of all queries ties move {parsed} most in it, by {moved}", err=True)
    return query


def _save(plot: figures.Plot, output: str) -> None:
    plot.save(output, force=True)
    wrote(output)
    tell(plot.caption)
