"""`deadheat demo`: the paper's finding in a few seconds."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path

import click

from deadheat._internal.lazy import pl
from deadheat.cli.help import Command
from deadheat.cli.output import FORCE, Output, print_line
from deadheat.demo import MEASURE, MORE_MEASURES, Recording, recordings, write_files
from deadheat.errors import MissingPackageError
from deadheat.evaluation import VIEW_COLUMNS, evaluate_run
from deadheat.report.page import Collection, System, render_page
from deadheat.settings import EvalSettings
from deadheat.tables import Column, Table, number
from deadheat.ties import run_sizes

_COLUMNS = (
    Column("regime", "name"),
    Column("distinct", "share"),
    Column("oblivious", title="input\norder"),
    Column("pytrec_eval"),
    *(VIEW_COLUMNS[view] for view in ("expected", "range", "bias")),
)
_LEGEND = f"""\
{MEASURE} in percent, from recorded outputs of three models; no model is run.
  native      scores computed in BF16, as the model
  hps         scores computed in FP32 from BF16 logits or embeddings (the paper)
  head        the last linear layer in FP32, too
  head-logit  as head, ranked by log-odds instead of probability
distinct: share of distinct scores within a query. input order, pytrec_eval: the
value that a tool with this tie order reports. expected: mean over all orders.
range: best order minus worst order. bias: input order minus expected."""
_REPORT = "deadheat-demo.html"


@click.command("demo", cls=Command, example="deadheat demo --files demo")
@click.option(
    "--files",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write the example as TREC files to this folder, for `deadheat eval`.",
)
@click.option(
    "-o",
    "--report",
    type=click.Path(dir_okay=False),
    default=_REPORT,
    help="The web page to write. The default page is overwritten without --force.",
)
@FORCE
def command(files: Path | None, report: str, force: bool) -> None:
    """Show the effect of ties on recorded outputs of three real models (no model is run)."""
    out = Output(output=report, force=force or report == _REPORT)
    out.check()
    recorded = recordings()
    if files is not None:
        for recording in recorded.values():
            first, *others = write_files(recording, files)
            print_line(f"wrote {files / first}, {', '.join(others)}", err=True)
    shown = [recorded[name] for name in ("reranker", "softmax", "product")]
    reranker, untrained, embedder = shown
    Output(percent=True).show(
        [
            _LEGEND,
            _table(embedder, "FP32 products are enough"),
            _table(untrained, "HPS is not enough"),
            _explain_untrained(untrained),
            _table(reranker, "the paper's effect"),
            _conclude(reranker),
        ]
    )
    collections = list(map(_collection, shown))
    try:
        out.write(render_page(collections, title="deadheat demo", shown=MORE_MEASURES))
    except MissingPackageError as error:
        if report != _REPORT:
            raise
        print_line(f"No report page was written: {error}")
    else:
        print_line(f"Every query and its ties, to open in a browser: {report}")


def _row_name(regime: str) -> str:
    return "FP32" if regime == "fp32" else f"BF16 {regime}"


def _table(recording: Recording, story: str) -> Table:
    """Return a table with a row per regime of the recorded outputs."""
    rows = []
    by_ids = EvalSettings(tie_break="pytrec_eval")
    for regime, run in recording.runs.items():
        facts = run_sizes(run).facts
        pytrec = evaluate_run(recording.qrels, run, MORE_MEASURES, by_ids)[MEASURE]
        own = {
            "regime": _row_name(regime),
            "distinct": facts.distinct / facts.documents,
            "pytrec_eval": pytrec.oblivious,
        }
        rows += [own | row for row in recording.results[regime].aggregate.to_dicts()]
    frame = pl.DataFrame(rows).filter(measure=MEASURE)
    return Table(frame, _COLUMNS, f"{recording.model} ({recording.scoring}): {story}")


def _explain_untrained(recording: Recording) -> str:
    """Explain why HPS changes nothing if the last layer makes the ties."""
    head, fp32 = (recording.results[regime][MEASURE] for regime in ("head", "fp32"))
    forward = number(head.expected - fp32.expected, percent=True, signed=True)
    text = (
        "The last layer gives equal BF16 logits, so their FP32 scores are equal, too. That layer "
        f"in FP32 leaves no tie. The {forward} against FP32, on {head.queries} queries, comes from "
        "the BF16 forward pass and not from ties."
    )
    return textwrap.fill(text, 79)


def _conclude(recording: Recording) -> str:
    """Return sentences on the effect of ties and the effect of the forward pass."""
    summaries = {regime: result[MEASURE] for regime, result in recording.results.items()}
    words = partial(number, percent=True)
    fp32, native, logit = (summaries[regime] for regime in ("fp32", "native", "head-logit"))
    left = {regime: words(summary.range) for regime, summary in summaries.items()}
    sentences = (
        f"Conclusion: in input order BF16 seems to beat FP32, {words(native.oblivious)} > "
        f"{words(fp32.oblivious)}. Other orders of tied documents give {words(native.worst)} to "
        f"{words(native.best)}; the mean over all orders is {words(native.expected)}.",
        f"Ties cost {words(logit.expected - native.expected)} points. After the same BF16 forward "
        f"pass, HPS leaves a range of {left['hps']}, the last layer in FP32 {left['head']}, "
        f"ranking by its log-odds {left['head-logit']}.",
        f"The BF16 forward pass itself, without ties, changes {words(fp32.expected)} to "
        f"{words(logit.expected)}.",
    )
    return "\n".join(textwrap.fill(sentence, 79) for sentence in sentences)


def _collection(recording: Recording) -> Collection:
    """Return a recording as a collection for the report page."""
    systems = [
        System(result, _row_name(regime), recording.runs[regime])
        for regime, result in recording.results.items()
    ]
    collection = Collection(f"{recording.scoring}: {recording.model}", systems, recording.qrels)
    return collection.compare(MORE_MEASURES)
