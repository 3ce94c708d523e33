"""`deadheat eval`: run files in, a table out."""

from __future__ import annotations

import json
from typing import Any

import click

from deadheat.cli.common import evaluate_runs, run_options
from deadheat.cli.engines import CLUSTER, ENGINE_OPTIONS, WORKERS, make_cluster
from deadheat.cli.findings import describe_results
from deadheat.cli.help import Command, text_option
from deadheat.cli.output import Output, output_options
from deadheat.evaluation import results_table
from deadheat.measures import help as measures_help
from deadheat.report import check_citable, citation, render_citation
from deadheat.settings import TIE_RULES


def _tie_rules_help() -> str:
    rules = "\n".join(f"{name}\n    {text}" for name, text in TIE_RULES.items())
    return f"How each --tie-break orders documents of equal score, and who does it:\n\n{rules}"


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
@output_options()
@text_option("--measures-help", measures_help.as_text, "Define every measure, with its edge cases.")
@text_option(
    "--tie-rules-help",
    _tie_rules_help,
    "Explain the rules of --tie-break, and which tools follow them.",
)
def command(
    qrels: str,
    runs: tuple[str, ...],
    measures: tuple[str, ...],
    per_query: bool,
    cite: bool,
    out: Output,
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
    out.check(qrels, *runs)
    if cite:
        check_citable(out.style, per_query=per_query)
    where = {name: options.pop(name) for name in ENGINE_OPTIONS if name in options}
    results = evaluate_runs(qrels, runs, measures, engine=make_cluster(where), **options)
    if cite and out.style == "table":
        out.show(citation(results, percent=out.percent))
    elif cite:
        out.write(render_citation(results, out.style, percent=out.percent))
    elif out.style == "json":
        data = [result.to_dict(per_query=per_query) for result in results]
        out.write(json.dumps(data, indent=1, ensure_ascii=False))
    else:
        table = results_table(results, per_query=per_query)
        out.show([table], describe_results(results, out))
    out.exit_if(any(result.warnings for result in results))
