"""`deadheat compare`: rank run files, and compare them in pairs."""

from __future__ import annotations

from typing import Any

import click

from deadheat._internal.remarks import texts
from deadheat.cli.common import comparison_options, evaluate_run_files, run_options
from deadheat.cli.help import Command
from deadheat.cli.names import Named
from deadheat.cli.output import Output, output_options, print_warnings
from deadheat.cli.progress import progress_bar
from deadheat.comparison import compare_results
from deadheat.report import describe_comparison
from deadheat.settings import EvalSettings


@click.command(
    "compare",
    cls=Command,
    example="deadheat compare qrels.txt bm25.run bf16.run fp32.run -m nDCG@10",
)
@run_options
@comparison_options
@click.option(
    "--all-pairs",
    is_flag=True,
    help="Show every pair, also for many runs. [default: contested pairs; csv and json: all]",
)
@click.option(
    "--table",
    type=click.Choice(["ranking", "pairs"]),
    help="Show only one table. [default: both; in csv the pairs]",
)
@output_options()
def command(
    qrels: str,
    runs: list[Named],
    measures: tuple[str, ...],
    settings: EvalSettings,
    how: dict[str, Any],
    all_pairs: bool,
    table: str | None,
    out: Output,
) -> None:
    """Rank RUNs and compare them in pairs, with uncertainty from ties and from queries.

    The verdict on a pair is the first that applies: identical; undecided: ties (random
    tie-breaking may reverse the order); decision error (the oblivious values have the opposite
    order of the expected values); not testable (too few queries or resamples); not significant
    (over queries); A is better. P-values are corrected for the number of pairs in a measure: by
    Holm with a baseline or up to 4 runs, else by the randomised Tukey HSD test. For more than 4
    runs, the output shows the ranking, the number of each verdict, and the contested pairs.

    Exit status: 0 fine, 1 compared with problems (with --strict), 2 bad usage or input.
    """
    out.check(qrels, *runs)
    systems = evaluate_run_files(qrels, runs, measures, settings)
    with progress_bar("resampling") as progress:
        comparison = compare_results(systems, queries=settings.queries, progress=progress, **how)
    print_warnings(texts(comparison.remarks, "warning"))  # warnings of runs are already printed
    if out.style == "csv":
        out.write(comparison.to_csv(ranking=table == "ranking"))
    else:
        ranking, *pairs = comparison.parts(all_pairs=all_pairs)
        shown = {"ranking": [ranking], "pairs": pairs, None: [ranking, *pairs]}[table]
        finding = describe_comparison(comparison, percent=out.percent)
        out.show(shown, finding, comparison.to_dict)
    out.exit_if(bool(comparison.warnings))
