"""`deadheat compare`: run files in, verdicts out."""

from __future__ import annotations

import sys
from typing import Any

import click

from deadheat.cli.common import (
    check_output,
    evaluate_runs,
    output_options,
    run_options,
    show,
    warn,
    write,
)
from deadheat.cli.findings import of_comparison
from deadheat.cli.help import Command
from deadheat.comparison import compared
from deadheat.comparison.align import checked, named
from deadheat.remarks import texts


@click.command(
    "compare",
    cls=Command,
    short_help="Compare runs in pairs: who is better whatever the tie-break?",
    example="deadheat compare qrels.txt bm25.run bf16.run fp32.run -m nDCG@10",
)
@run_options
@click.option("--baseline", metavar="RUN", help="Compare all others with this one, not all pairs.")
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Level of the tests over queries, and how likely random tie-breaking may at most be to "
    "reverse two systems.",
)
@click.option(
    "--resamples",
    type=click.IntRange(min=1),
    default=9999,
    show_default=True,
    help="Sign flips of the randomisation test, and samples of the bootstrap.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@output_options
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    baseline: str | None,
    alpha: float,
    resamples: int,
    seed: int,
    percent: bool,
    style: str,
    wide: bool,
    output: str | None,
    force: bool,
    strict: bool,
    **options: Any,
) -> None:
    """Compare RUNs in pairs: differences, what ties and queries leave open, a verdict.

    The verdict is the first that applies of: undecided: ties (random tie-breaking reverses the
    order too often), decision error (the oblivious numbers say the opposite of the
    expectations), undecided: queries (not significant over queries, after Holm's correction),
    A is better. Exit status: 0 fine, 1 compared with problems (with --strict), 2 bad usage or
    input.
    """
    check_output(output, force=force)
    results = evaluate_runs(qrels, runs, measures, **options)
    comparison = compared(
        named(results, checked),
        baseline=baseline,
        alpha=alpha,
        resamples=resamples,
        seed=seed,
        queries=options["queries"],
    )
    warn(texts(comparison.remarks, "warning"))  # those of the runs have been said
    if style == "json":
        write(comparison.to_json(), output)
    elif style == "csv":
        write(comparison.to_csv(), output)
    else:
        finding = of_comparison(comparison, percent=percent)
        show(comparison.tables(), style, output, percent=percent, wide=wide, finding=finding)
    if strict and comparison.warnings:
        sys.exit(1)
