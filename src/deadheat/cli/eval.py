"""`deadheat eval`: run files in, a table out."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from deadheat.cli.common import (
    check_output,
    evaluate_runs,
    output_options,
    run_options,
    show,
    write,
)
from deadheat.cli.engines import CLUSTER, WORKERS, make_cluster
from deadheat.cli.findings import describe_results
from deadheat.cli.help import Command
from deadheat.evaluation import results_table
from deadheat.measures import help as measures_help
from deadheat.report.citation import check_citable, citation, cited
from deadheat.settings import TIE_RULES


def _measures_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(measures_help.as_text())
        ctx.exit()


def _tie_rules_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo("How each --tie-break orders documents of equal score, and who does it:\n")
        for name, text in TIE_RULES.items():
            click.echo(f"{name}\n    {text}")
        ctx.exit()


@click.command(
    "eval",
    cls=Command,
    example="deadheat eval qrels.txt bm25.run.gz bf16=out/model.run -m nDCG@10,MRR@10",
)
@run_options
@CLUSTER
@WORKERS
@click.option("--per-query", is_flag=True, help="Show every query.")
@click.option(
    "--cite",
    is_flag=True,
    help="Tell it as a paper does: sentences, a table, a paragraph for the appendix, BibTeX.",
)
@output_options
@click.option(
    "--measures-help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_measures_help,
    help="Define every measure, with its edge cases.",
)
@click.option(
    "--tie-rules-help",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tie_rules_help,
    help="Explain the rules of --tie-break, and which tools follow them.",
)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    per_query: bool,
    cite: bool,
    percent: bool,
    style: str,
    wide: bool,
    output: str | None,
    force: bool,
    strict: bool,
    engine: str,
    ray_address: str | None,
    workers: int | None,
    **options: Any,
) -> None:
    """Evaluate one or more RUNs against QRELS, with every view of their ties.

    QRELS and RUN are TREC files, BEIR TSV, JSON, JSONL, CSV or Parquet, plain or compressed
    with gzip, zstd or xz; - is standard input. A RUN may also be a folder of Parquet files, in the
    order of their names, and need not fit in memory. NAME=RUN calls a run by another name. With
    --engine ray the workers of a cluster share files and folders, which they must find under the
    same paths. Exit status: 0 fine, 1 evaluated with problems (with --strict), 2 bad usage or
    input.
    """
    check_output(output, force=force, inputs=(qrels, *runs))
    if cite:
        check_citable(style, per_query=per_query)
    where = {"engine": engine, "ray_address": ray_address, "workers": workers}
    results = evaluate_runs(qrels, runs, measures, engine=make_cluster(where), **options)
    if cite and style == "table":
        show(citation(results, percent=percent), style, output, percent=percent, wide=wide)
    elif cite:
        write(cited(results, style, percent=percent), output)
    elif style == "json":
        data = [result.to_dict(per_query=per_query) for result in results]
        write(json.dumps(data, indent=1, ensure_ascii=False), output)
    else:
        table = results_table(results, per_query=per_query)
        finding = describe_results(results, percent=percent)
        show([table], style, output, percent=percent, wide=wide, finding=finding)
    if strict and any(result.warnings for result in results):
        sys.exit(1)
