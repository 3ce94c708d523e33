"""Shared parts of commands: arguments, options and the evaluation of run files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click

from deadheat.cli.help import F, complete_measures
from deadheat.cli.names import Named, split_names
from deadheat.cli.output import gather, options, print_remarks
from deadheat.cli.progress import progress_bar
from deadheat.engines import Engine
from deadheat.evaluation import (
    DEFAULT_MEASURES,
    Result,
    evaluate_runs,
    name_results,
    name_runs,
)
from deadheat.formats import read_qrels
from deadheat.measures import Measure, parse_measures
from deadheat.settings import (
    NAN_POLICIES,
    QUERY_POLICIES,
    SCORE_PRECISIONS,
    TIE_RULES,
    EvalSettings,
)

T = TypeVar("T")


def explain(choices: Mapping[T, str]) -> str:
    """Return choices and their meanings in one line, for a help text."""
    return "; ".join(f"{name}: {text}" for name, text in choices.items()) + "."


COUNT = click.IntRange(min=1)
"""The type of numbers of things."""
FILE = click.Path()
"""The type of file arguments; shells complete file names for it."""
QRELS = click.argument("qrels", type=FILE)
RUNS = click.argument(
    "runs",
    nargs=-1,
    required=True,
    type=FILE,
    metavar="[NAME=]RUN...",
    callback=lambda _, __, words: split_names(words),
)
BASE = click.option("--base", help="Base model of a PEFT adapter. [default: the one in its config]")
PROMPT = click.option(
    "--prompt",
    help="Prompt of a yes/no reranker: a text with {query} and {document}, and with the special "
    "tokens of the model. [default: the model's]",
)


def measures_option(help: str) -> Callable[[F], F]:
    """Make the option -m, which may be repeated."""
    return click.option(
        *("-m", "--measure", "measures"), multiple=True, shell_complete=complete_measures, help=help
    )


MEASURES = measures_option(
    "Measures such as nDCG@10,MRR@10; several cutoffs as nDCG@5,10. May be repeated. "
    f"[default: {', '.join(DEFAULT_MEASURES)}]",
)


def tie_break_option(default: str | None, meaning: str | None = None) -> Callable[[F], F]:
    """Make the option --tie-break; `meaning` describes the default."""
    return click.option(
        "--tie-break",
        type=click.Choice(list(TIE_RULES)),
        default=default,
        show_default=meaning,
        help="Order of tied documents in the oblivious value; `deadheat eval --tie-rules-help` "
        "explains the rules.",
    )


def queries_option(default: str | None, meaning: str | None = None) -> Callable[[F], F]:
    """Make the option --queries; `meaning` describes the default."""
    return click.option(
        "--queries",
        type=click.Choice(list(QUERY_POLICIES)),
        default=default,
        show_default=meaning,
        help=f"Queries to average over. {explain(QUERY_POLICIES)}",
    )


def alpha_option(help: str) -> Callable[[F], F]:
    """Make the option --alpha."""
    return click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.05,
        help=help,
    )


TIE_BREAK = tie_break_option("input")
SCORE_DTYPE = click.option(
    "--score-dtype",
    "--score-precision",
    "score_dtype",
    metavar=f"[{'|'.join(SCORE_PRECISIONS)}]",
    help="Round scores first, to match an evaluator that rounds scores: float32 in trec_eval 9 "
    "and pytrec_eval. [default: scores as given]",
)
NAN = click.option(
    "--nan",
    type=click.Choice(NAN_POLICIES),
    default="raise",
    help="Refuse NaN scores, or rank them last.",
)
evaluation_options = gather(
    "settings",
    EvalSettings,
    TIE_BREAK,
    SCORE_DTYPE,
    click.option(
        "--tie-tolerance",
        type=click.FloatRange(min=0),
        default=0.0,
        help="Treat scores that differ by at most this as tied, also in chains of such scores.",
    ),
    queries_option("judged"),
    NAN,
)
comparison_options = gather(
    "how",
    dict,
    click.option(
        "--baseline",
        metavar="SYSTEM",
        help="Compare all other runs with this one (name or file). [default: all pairs]",
    ),
    alpha_option(
        "Level of the tests over queries, and largest accepted chance that random tie-breaking "
        "reverses a decided pair."
    ),
    click.option(
        "--resamples",
        type=COUNT,
        default=9999,
        help="Number of sign flips and permutations of the tests over queries.",
    ),
    click.option("--seed", type=click.IntRange(min=0), default=0, help="Random seed of the tests."),
)
run_options = options(QRELS, RUNS, MEASURES, evaluation_options)


def evaluate_run_files(
    qrels: str,
    runs: Sequence[Named],
    measures: Sequence[str | Measure],
    settings: EvalSettings,
    *,
    engine: Engine | None = None,
) -> dict[str, Result]:
    """Evaluate run files, print their warnings, and return results by name."""
    parsed = parse_measures(measures or DEFAULT_MEASURES)
    judgements = read_qrels(qrels)
    paths = [run.path for run in runs]
    with progress_bar(delay=1) as progress:
        results = evaluate_runs(
            judgements, paths, parsed, settings, engine=engine, progress=progress
        )
    results = [result.named(run.label) for result, run in zip(results, runs, strict=True)]
    named = dict(zip(name_results(results), results, strict=True))
    print_remarks({name: result.remarks for name, result in named.items()})
    return named


def name_given(runs: Sequence[Named]) -> list[str]:
    """Return the names of runs: those that the user gave, else those of their files."""
    return name_runs([run.path for run in runs], [run.label for run in runs])
