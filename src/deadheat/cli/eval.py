"""`deadheat eval`: evaluate run files and print a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from deadheat.cli.common import COUNT, evaluate_run_files, run_options
from deadheat.cli.engines import engine_options, make_engine
from deadheat.cli.findings import describe_results
from deadheat.cli.help import Command, text_option
from deadheat.cli.names import Named
from deadheat.cli.output import Output, output_options
from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, results_table
from deadheat.measures import help as measures_help
from deadheat.report import citation, latex_citation
from deadheat.settings import TIE_RULES, EvalSettings
from deadheat.tables import number


def _tie_rules_help() -> str:
    rules = "\n".join(f"{name}\n    {text}" for name, text in TIE_RULES.items())
    return f"How each --tie-break orders tied documents, and which tools use it:\n\n{rules}"


@click.command(
    "eval",
    cls=Command,
    example="deadheat eval qrels.txt bm25.run.gz bf16=out/model.run -m nDCG@10,MRR@10",
)
@run_options
@engine_options()
@click.option("--per-query", is_flag=True, help="Show a row per query.")
@click.option(
    "--sort", type=click.Choice(VIEWS), help="With --per-query: sort by this view, largest first."
)
@click.option("--top", type=COUNT, help="With --per-query: number of rows to show.")
@click.option(
    "--brief", is_flag=True, help="Print only expected values, one per line, like ir_measures."
)
@click.option(
    "--cite",
    is_flag=True,
    help="Write text for a paper: sentences, a table, a paragraph for the appendix, BibTeX.",
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
    runs: list[Named],
    measures: tuple[str, ...],
    settings: EvalSettings,
    engine: dict[str, Any],
    per_query: bool,
    sort: str | None,
    top: int | None,
    brief: bool,
    cite: bool,
    out: Output,
) -> None:
    """Evaluate one or more RUNs against QRELS: expected, best and worst value over tie orders.

    QRELS and RUN are TREC files, BEIR TSV, JSON, JSONL, CSV or Parquet, plain or compressed with
    gzip, zstd or xz; - is standard input. A RUN may also be a folder of Parquet files, which are
    read in the order of their names and need not fit in memory. NAME=RUN gives a run another
    name. With --engine ray, the workers of a cluster must find files and folders under the same
    paths. Exit status: 0 fine, 1 evaluated with problems (with --strict), 2 bad usage or input.
    """
    out.check(qrels, *runs)
    if (sort or top) and not per_query:
        raise InputError("--sort and --top need rows of queries; add --per-query")
    if cite and (per_query or out.style in ("csv", "json")):
        raise InputError(
            "--cite writes sentences about means; leave out --per-query, and use the format table, "
            "markdown, latex or html"
        )
    named = evaluate_run_files(qrels, runs, measures, settings, engine=make_engine(**engine))
    results = list(named.values())
    if cite and out.style == "latex":
        out.write(latex_citation(results, percent=out.percent))
    elif cite:
        out.show(citation(results, percent=out.percent))
    elif brief:
        several = len(named) > 1
        lines = [
            "\t".join([*[name] * several, measure, number(summary.expected, percent=out.percent)])
            for name, result in named.items()
            for measure, summary in result.items()
        ]
        out.write("\n".join(lines))
    else:
        table = results_table(results, per_query=per_query)
        if sort is not None:
            frame = table.frame.sort(sort, descending=True, nulls_last=True, maintain_order=True)
            table = replace(table, frame=frame, grouped=0)
        table = replace(table, frame=table.frame.head(top)) if top else table
        finding = describe_results(named, out) if out.style == "table" else ""
        out.show([table], finding, lambda: [r.to_dict(per_query=per_query) for r in results])
    out.exit_if(any(result.warnings for result in results))
