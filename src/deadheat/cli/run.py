"""`deadheat run`: run models on datasets and print the paper's table."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import click

from deadheat.cli.common import BASE, PROMPT, explain, measures_option
from deadheat.cli.engines import GPUS, engine_options, make_engine
from deadheat.cli.findings import describe_experiment
from deadheat.cli.help import Command
from deadheat.cli.names import split_name
from deadheat.cli.output import Output, output_options, print_line, print_remarks
from deadheat.cli.progress import hide_other_bars, progress_bar
from deadheat.errors import InputError
from deadheat.evaluation import DEFAULT_MEASURES
from deadheat.lab.experiment import (
    CANDIDATES,
    DEFAULT_REGIMES,
    Failure,
    StoredResult,
    Study,
    error_budget,
    is_computed_twice,
    load_results,
    paper_study,
    read_study,
    run_study,
    table1,
    ties_table,
)
from deadheat.lab.models import MODEL_DTYPES
from deadheat.scoring import REGIMES


@click.command(
    "run",
    cls=Command,
    example="deadheat run --model small=BAAI/bge-reranker-v2-m3 \\\n"
    "    --dataset mteb/AskUbuntuDupQuestions --model-dtype bf16 -o results/",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="[NAME=]MODEL",
    help="Hub id, folder (of a model or a PEFT adapter) or .gguf file; NAME=MODEL gives it another "
    "name. May be repeated.",
)
@BASE
@PROMPT
@click.option(
    "--dataset", "datasets", multiple=True, help="Hub id, folder or file. May be repeated."
)
@click.option("--subset", help="Part of the dataset, such as a language.")
@click.option("--split", help="Split of the dataset. [default: test, or the only one]")
@click.option("--revision", help="Commit, tag or branch of the dataset on the hub.")
@click.option(
    "--model-dtype",
    "model_dtypes",
    multiple=True,
    help=f"Format of the model: {', '.join(MODEL_DTYPES)}. May be repeated. [default: bf16, fp32]",
)
@click.option(
    "--regime",
    "regimes",
    multiple=True,
    help="How scores are computed; all regimes use one forward pass. "
    + explain(REGIMES)
    + f" May be repeated. [default: {', '.join(DEFAULT_REGIMES)}, if the model has them]",
)
@click.option(
    "--scoring-dtype",
    "scoring_dtypes",
    multiple=True,
    help="Also score the model's output in this format, such as fp8_e4m3. May be repeated.",
)
@measures_option(
    f"Measures such as nDCG@10,MRR@10, or nDCG with -k. [default: {', '.join(DEFAULT_MEASURES)}]",
)
@click.option(
    "-k", "--cutoff", "cutoffs", multiple=True, type=int, help="Cutoff of measures without one."
)
@click.option(
    "--batch-size",
    type=int,
    multiple=True,
    help="Inputs per forward pass. If this or one of the next two is given several times: run with "
    "each value, and report how far scores and measures move. [default: 16]",
)
@click.option("--attention", multiple=True, help="eager, sdpa, … [default: transformers' choice]")
@click.option(
    "--threads", type=int, multiple=True, help="Threads of torch on a CPU. [default: torch's]"
)
@click.option("--max-length", type=int, help="Longest input, in tokens. [default: the model's]")
@click.option("--limit", type=int, help="Number of first queries of a dataset to use.")
@click.option(
    "--candidates",
    type=click.Choice(CANDIDATES),
    help="Documents to score: the dataset's lists, the best by BM25, or (bi-encoders only) the "
    "full corpus, by exact search. [default: given]",
)
@click.option("--depth", type=int, help="Largest length of candidate or full-corpus lists.")
@click.option("--device", help="cpu, cuda, cuda:1, mps. [default: the fastest available]")
@click.option(
    "--trust-remote-code",
    is_flag=True,
    default=None,
    help="Run Python code that comes with a checkpoint. A study file alone cannot allow it.",
)
@click.option("--study", "file", type=click.Path(), help="Study as TOML; options replace its keys.")
@click.option("--paper", is_flag=True, help="The paper's study: five models, two datasets.")
@click.option(
    "-o",
    "--output",
    "folder",
    required=True,
    type=click.Path(),
    help="Folder to store everything in.",
)
@engine_options(GPUS)
@output_options("style", "wide", percent=True)
def command(engine: dict[str, Any], out: Output, **options: Any) -> None:
    """Score candidates under several precision regimes, evaluate each, and store everything.

    There is one forward pass for each model, model dtype and dataset. Logits or embeddings are
    stored batch by batch; the same command continues an interrupted run. Exit status: 0 fine, 2
    bad usage or input, or a cell (model, dtype and dataset) that could not be run.
    """
    study, folder = _study(options), options["folder"]
    try:
        workers = make_engine(**engine)
        hide_other_bars()
        with progress_bar("loading models and data") as progress:
            failures = run_study(study, folder, progress=progress, engine=workers)
    except KeyboardInterrupt:
        kept = f"stopped: every finished batch is stored in {folder}"
        print_line(f"{kept}; run the same command to continue", err=True)
        sys.exit(130)
    for line in _errors(failures):
        print_line(line, err=True)
    if len(failures) < len(study.cells):
        results = load_results(folder)
        print_remarks({_named(stored): stored.result.remarks for stored in results}, of="result")
        for line in notes(results):
            print_line(f"note: {line}", err=True)
        tables = [table1(results), ties_table(results)]
        tables += [error_budget(results)] if is_computed_twice(results) else []
        out.show(tables, describe_experiment(results, out))
    if failures:
        sys.exit(2)


def _named(stored: StoredResult) -> str:
    return f"{stored.name} in {stored.model_dtype} on {stored.dataset}, {stored.regime}"


def _study(options: dict[str, Any]) -> Study:
    """Return the study of a file, of the paper or of the options; options replace other values."""
    of_models = {name: options[name] for name in ("base", "prompt")}
    of_datasets = {name: options[name] for name in ("subset", "split", "revision")}
    for owner, own in (("model", of_models), ("dataset", of_datasets)):
        for name, value in own.items():
            if value and not options[f"{owner}s"]:
                raise InputError(f"--{name} needs --{owner}")
    named = {field.name: options[field.name] for field in fields(Study)}
    named["models"] = [
        {"name": path, "label": label, **of_models}
        for path, label in map(split_name, options["models"])
    ]
    named["datasets"] = [{"name": name, **of_datasets} for name in options["datasets"]]
    words = {name: value for name, value in named.items() if value not in (None, (), [])}
    if options["paper"] and options["file"]:
        raise InputError("--paper and --study cannot be combined; choose one")
    if options["paper"]:
        return paper_study(**words)
    if options["file"]:
        return read_study(options["file"], **words)
    return Study.of("the command", **words)


def _errors(failures: list[Failure]) -> Iterator[str]:
    """Yield a line for each distinct error."""
    cells: dict[str, list[str]] = {}
    for failure in failures:
        cells.setdefault(str(failure.error), []).append(str(failure.cell))
    for error, of in cells.items():
        yield f"error: {of[0]}{f' and {len(of) - 1} more' if of[1:] else ''}: {error}"


def notes(results: Sequence[StoredResult]) -> list[str]:
    """Return notes on truncated inputs and dropped data, each once."""
    found = []
    for stored in results:
        origin = stored.result.provenance
        cell = f"{stored.name} in {stored.model_dtype} on {stored.dataset}"
        for stream, facts in origin.inputs.items():
            if facts.truncated and origin.model is not None:
                of = f"{facts.truncated:,} of {facts.count:,} inputs ({stream})"
                found.append(f"{cell}: {of} were cut at {origin.model.max_length} tokens")
        left_out = stored.manifest.dataset.left_out.items()
        found += [f"{stored.dataset}: left out {n:,} {what}" for what, n in left_out]
    return list(dict.fromkeys(found))
