"""Effect, cause and remedy of ties in three lines: the types, and the check of a run's scores."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deadheat._internal.lazy import pl
from deadheat._internal.remarks import counted
from deadheat.diagnosis.what_if import MOST
from deadheat.evaluation import (
    VIEW_COLUMNS,
    Result,
    Summary,
    cut_lists,
    evaluate_run,
    results_table,
)
from deadheat.formats import Judgements, Run
from deadheat.measures import Measure
from deadheat.settings import EvalSettings
from deadheat.tables import Column, Part, Printable, Table, render

if TYPE_CHECKING:
    from deadheat.diagnosis.diagnose import Diagnosis

NEGLIGIBLE = 1e-4
"""If the ranges of two remedies differ by less than this, the cheaper one is recommended."""
MAIN = 0.5
"""A cause is the main cause if it explains this share of the tied documents."""
FEW = 10
"""A run with this many documents per distinct score has few values."""
_FLOAT_GRIDS = {"bf16": "a BF16", "fp16": "an FP16", "fp8_e4m3": "an FP8", "fp8_e5m2": "an FP8"}
_FP32 = "model = deadheat.high_precision(model)"
_LOGIT = 'model = deadheat.high_precision(model, scores="logit")'
REMEDIES = {
    "hps": 'compute the scores in FP32: model = deadheat.high_precision(model, regime="hps")',
    "head": f"compute the last layer in FP32: {_FP32}",
    "hps-logit": (
        "rank by FP32 logits instead of probabilities: model = deadheat.high_precision(model, "
        'regime="hps", scores="logit")'
    ),
    "head-logit": f"compute the last layer in FP32 and rank by its logits: {_LOGIT}",
}
"""Regimes that remove ties, cheapest first: description and call of each."""
_MEASURES_GAIN = "deadheat check --model measures the gain"
_ADVICE = {
    "grid": (
        f"if {{format}} model gave them, compute its last step in FP32: {_FP32}; {_MEASURES_GAIN}",
        "head",
    ),
    "logits": (f"{REMEDIES['head']}; {_MEASURES_GAIN}", "head"),
    "saturation": (f"if these are probabilities, rank by logits: {_LOGIT}", "head-logit"),
    "decimals": ("if the scores were rounded for the file, write all digits", "more digits"),
    "whole numbers": ("if binary or int8 vectors gave them, rescore with floats", "rescore"),
    "constant tails": ("if these documents were not scored, leave them out", "leave out"),
    "fused ranks": ("if the system has a second key (best rank), break ties by it", "second key"),
    "few values": ("if the system has finer scores, use them", "finer scores"),
    "equal scores": ("if these documents are duplicates, remove them", "deduplicate"),
}
"""Remedy, and kind of remedy, for each cause that can be found in the scores."""


class Finding(NamedTuple):
    """A cause or a remedy."""

    text: str
    kind: str = "none"


NOTHING = Finding("nothing to do")


@dataclass(frozen=True)
class CheckedRegime:
    """The result of a model's output under one regime."""

    result: Result
    documents: int
    tied: int
    """Number of documents that have the same score as another document of their query."""
    duplicates: int = 0
    """Number of these documents that also have the same text as the other document."""


@dataclass(frozen=True, repr=False)
class Check(Printable):
    """Whether ties decide the numbers of a run or model, why, and what to change."""

    name: str
    """Name of the run or model."""
    effect: str
    cause: str
    cause_kind: str
    """``"none"``, ``"scoring"``, ``"head"``, ``"saturation"``, ``"duplicates"``, ``"grid"``,
    ``"logits"``, ``"few values"``, ``"decimals"``, ``"equal scores"``, …"""
    remedy: str
    remedy_kind: str
    """``"none"``, ``"hps"``, ``"head"``, ``"hps-logit"``, ``"head-logit"``, ``"deduplicate"``,
    ``"more digits"``, ``"more documents"``, ``"expectation"``, …"""
    result: Result
    """Every view of every measure, with the current scores."""
    regimes: Mapping[str, CheckedRegime] = field(default_factory=dict)
    """For a model: the result of each regime, from the same forward pass."""
    now: str = ""
    """For a model: the regime in which its scores are computed now."""

    @property
    def range(self) -> float:
        """The largest range of all measures: the most that ties can move a number."""
        return most_moved(self.result.values()).range

    @property
    def warnings(self) -> list[str]:
        """Warnings about the input that change the meaning of the numbers."""
        return self.result.warnings

    def ok(self, max_range: float = 0.01) -> bool:
        """Return whether ties move every measure by at most `max_range`, such as 0.01."""
        return self.range <= max_range

    def table(self, style: str = "table", *, percent: bool = True) -> str:
        """Return the numbers behind the three lines as a table.

        Parameters
        ----------
        style
            ``"table"``, ``"markdown"``, ``"latex"``, ``"csv"``, ``"json"`` or ``"html"``.
        percent
            Whether to print 73.53 for 0.7353; ``"csv"`` and ``"json"`` never do. Default: True.
        """
        return render([self.as_table()], style, percent=percent)

    def as_table(self) -> Table:
        """Return a row per measure; for a model, a row per regime and measure."""
        if not self.regimes:
            return results_table([self.result])
        rows = [
            {"regime": name + " (now)" * (name == self.now), "tied": regime.tied, **row}
            for name, regime in self.regimes.items()
            for row in regime.result.aggregate.to_dicts()
        ]
        views = ("expected", "worst", "best", "range", "oblivious", "bias")
        columns = [Column("regime", "name"), Column("tied", "count"), Column("measure", "name")]
        columns += [VIEW_COLUMNS[view] for view in views]
        documents = self.regimes[self.now].documents
        title = f"{Path(self.name).name}: {documents:,} documents, one forward pass"
        return Table(pl.DataFrame(rows), columns, title, self.result.notes, grouped=2)

    def to_dict(self) -> dict[str, object]:
        """Return everything as plain numbers, lists and strings."""
        names = ("name", "effect", "cause", "remedy", "cause_kind", "remedy_kind", "range")
        regimes = {
            name: {"documents": own.documents, "tied": own.tied, "measures": _values(own.result)}
            for name, own in self.regimes.items()
        }
        facts = {name: getattr(self, name) for name in names}
        return {**facts, "measures": _values(self.result), "regimes": regimes}

    def parts(self, *, details: bool = False, width: int | None = None) -> list[Part]:
        """Return the three lines; with `details` also the table."""
        return [self.lines(width), *([self.as_table()] if details else [])]

    def lines(self, width: int | None = None) -> str:
        """Return the three lines, wrapped at a width with a hanging indent. Default: 80 columns."""
        texts = {"Effect": self.effect, "Cause": self.cause, "Remedy": self.remedy}
        return "\n".join(hang(name, text, width or 80) for name, text in texts.items())

    def __repr__(self) -> str:
        """Return the name and the effect in one line; `print` shows the three lines."""
        return f"<Check of {self.name}: {self.effect}>"


def _values(result: Result) -> object:
    return result.to_dict(per_query=False)["measures"]


def hang(name: str, text: str, width: int) -> str:
    """Return a text after its name, wrapped at a width with a hanging indent."""
    wrapper = textwrap.TextWrapper(
        max(width, 40), f"{name:9}", " " * 9, break_on_hyphens=False, break_long_words=False
    )
    return wrapper.fill(text)


def most_moved(summaries: Iterable[Summary]) -> Summary:
    """Return the first summary with the largest range."""
    return max(summaries, key=lambda summary: summary.range)


def describe_range(summary: Summary, settings: EvalSettings) -> str:
    """Return a sentence on how far ties can move a measure, in percentage points."""
    write = _writer(summary.range or 0.001)
    rule = "pytrec_eval's rule" if settings.tie_break == "pytrec_eval" else settings.tie_order
    if not summary.range:
        value = write(summary.expected)
        return f"ties cannot move your numbers: {summary.measure} is {value} in every order"
    return (
        f"ties can move {summary.measure} by {write(summary.range)} points "
        f"({write(summary.worst)}–{write(summary.best)}; mean over tie orders "
        f"{write(summary.expected)}, {rule} {write(summary.oblivious)})"
    )


def _writer(scale: float) -> Callable[[float], str]:
    """Return a function that formats percent, with enough digits for differences of this size."""
    digits = min(max(1, 1 - math.floor(math.log10(100 * scale))), 9)
    return lambda value: f"{100 * value:.{digits}f}"


def report_expectation(summary: Summary) -> str:
    """Return the advice to report the mean over tie orders, which is valid for every cause."""
    write = _writer(summary.range)
    std = "" if summary.std is None else f" ± {write(summary.std)}"
    return f"report the mean over tie orders ({write(summary.expected)}{std}) and the range"


def check_scores(
    diagnosis: Diagnosis, judgements: Judgements, run: Run, measures: Sequence[Measure]
) -> Check:
    """Evaluate a run, and find effect, cause and remedy from its scores."""
    settings = diagnosis.settings
    result = evaluate_run(judgements, run, measures, settings)
    anatomy, summary = diagnosis.anatomy, most_moved(result.values())
    effect = describe_range(summary, settings)
    tied = f"{anatomy.tied:,} of {anatomy.documents:,} documents are tied"
    cause, remedy = Finding("no two documents of a query have the same score"), NOTHING
    if summary.range:
        cause = find_cause(diagnosis)
        remedy = _find_remedy(cause.kind, diagnosis, summary)
        cause = cause._replace(text=f"{tied}; {cause.text}")
    elif anatomy.tied:
        cause = Finding(f"{tied}, but no order of them changes a value")
    if anatomy.float32_pairs and not summary.range:
        float32 = replace(settings, score_dtype="fp32")
        moved = most_moved(evaluate_run(judgements, run, measures, float32).values())
        if moved.range:
            effect += (
                f"; but in float32, which pytrec_eval and trec_eval 9 use, ties can move "
                f"{moved.measure} by {_writer(moved.range)(moved.range)} points"
            )
            pairs = counted(anatomy.float32_pairs, "further pair")
            tool = "evaluate with a tool that keeps float64, such as deadheat or trec_eval 10"
            cause = Finding(f"the cast to float32 ties {pairs} of documents", "float32")
            remedy = Finding(tool, "float64")
    assert result.groups is not None
    cut = int(np.any([cut_lists(result.groups, m) for m in result.views], axis=0).sum())
    if cut:
        lists = counted(cut, "list")
        effect += f"; {lists} may have been cut inside a tie, which may move it further"
        more = "if the lists were cut at a rank, retrieve more documents or cut at a score"
        if remedy is NOTHING:
            cause = Finding(f"{tied}; {lists} of the run end inside a tie group", "cut lists")
            remedy = Finding(more, "more documents")
        else:
            remedy = remedy._replace(text=f"{remedy.text}; {more}")
    return Check(diagnosis.name, effect, *cause, *remedy, result)


def choose_regime(ranges: Mapping[str, float], now: str) -> str:
    """Return the cheapest regime whose range is close to the smallest; this may be `now`.

    >>> choose_regime({"native": 0.27, "hps": 0.0045, "head": 0.0015, "head-logit": 0.0}, "hps")
    'head-logit'
    """
    smallest = min(ranges.values())
    if ranges[now] <= smallest:
        return now
    close = (name for name in REMEDIES if ranges.get(name, 1.0) <= smallest + NEGLIGIBLE)
    return next(close, now)


def check_regimes(
    name: str,
    regimes: Mapping[str, CheckedRegime],
    *,
    now: str,
    model_dtype: str,
    how: str,
    cost: Mapping[str, float],
    sampled: bool = False,
) -> Check:
    """Find effect, cause and remedy from the scores of a model under every regime.

    Parameters
    ----------
    name
        Name of the model.
    regimes
        The evaluation of every regime.
    now
        The regime that the user's code computes.
    model_dtype
        The format that the model ran in.
    how
        Description of the code that scores in `now`, and the number of queries.
    cost
        Per regime: the time that it adds, as a share of the forward pass.
    sampled
        Whether the dataset has more queries than were used.
    """
    given = regimes[now]
    summary, format = most_moved(given.result.values()), model_dtype.upper()
    effect = f"{describe_range(summary, given.result.provenance.settings)}; {how}"
    ranges = {name: most_moved(own.result.values()).range for name, own in regimes.items()}
    chosen = choose_regime(ranges, now)
    left = regimes[chosen]
    tied = f"{given.tied:,} of {given.documents:,} documents are tied"
    copies = f"{left.duplicates:,} of them copies of another text in the list"
    remedy = NOTHING
    if not summary.range:
        unmoved = f"{tied}, but no order of them changes a value" if given.tied else "no ties"
        cause = Finding(f"{unmoved}; the model ran in {format}")
        if sampled and given.tied:
            remedy = Finding("nothing to do for these queries; check more with --samples")
    elif chosen != now:
        measured = left.result[summary.measure]
        write = _writer(measured.range or 0.001)
        value = write(measured.worst) + (f"–{write(measured.best)}" if measured.range else "")
        after = f"leaves {left.tied:,} of {left.documents:,} documents tied"
        after += f" ({copies})" if left.duplicates else ""
        after += f", {summary.measure} {value}"
        after += f", forward pass + {100 * cost[chosen]:.1f} %" if chosen in cost else ""
        text, kind = _explain_regimes(ranges, chosen, format)
        cause = Finding(f"{tied}; {text}", kind)
        remedy = Finding(f"{REMEDIES[chosen]}; {after}", chosen)
    elif left.duplicates >= MAIN * left.tied:
        cause = Finding(f"{tied}, {copies}; the model ran in {format}", "duplicates")
        remedy = Finding("remove the copies from the candidate lists", "deduplicate")
    else:
        fp32 = "its scores are FP32 already"
        why = fp32 if model_dtype == "fp32" else "FP32 scoring separates none of them"
        cause = Finding(f"{tied}; the model ran in {format}, and {why}", "model")
        remedy = Finding(report_expectation(summary), "expectation")
    return Check(name, effect, *cause, *remedy, given.result, dict(regimes), now)


def _explain_regimes(ranges: Mapping[str, float], chosen: str, format: str) -> Finding:
    """Return the step that made the ties which a regime removes."""
    if chosen == "hps":
        return Finding(f"the scoring function in {format} makes them", "scoring")
    saturated = "probabilities near 1 are too coarse even in FP32"
    by_logit = chosen.endswith("-logit")
    if chosen == "hps-logit" or (by_logit and ranges.get("head", 0) >= ranges.get("hps", 0)):
        return Finding(saturated, "saturation")
    layer = f"the last layer makes them: its {format} logits are already tied"
    return Finding(f"{layer}, and {saturated}" if by_logit else layer, "head")


def find_cause(diagnosis: Diagnosis) -> Finding:
    """Find the cause of the ties in the scores alone."""
    grid, logits, anatomy = diagnosis.grid, diagnosis.logit_grid, diagnosis.anatomy
    scale = diagnosis.scale
    main = {cause.name for cause in diagnosis.causes if cause.documents >= MAIN * anatomy.tied}
    format = _float_grid(diagnosis)
    is_full = grid.name.startswith(("fp32", "fp64"))
    full = f"full {grid.name[:4].upper()} numbers" if is_full else f"numbers of {grid.name}"
    if "fused ranks" in main:
        return Finding("most scores are sums of 1 / (60 + rank)", "fused ranks")
    if scale is not None:
        ends = f"from {scale.lowest:g} to {scale.highest:g} in steps of {scale.step:g}"
        return Finding(f"all scores are among {scale.used} values {ends}", "few values")
    few = Finding(f"the run has only {counted(grid.distinct, 'distinct score')}", "few values")
    if grid.not_excluded:
        return few
    if anatomy.saturated >= MAIN * anatomy.tied and not format:
        text = "at least half of these are above 0.9999, where probabilities saturate"
        return Finding(text, "saturation")
    if format:
        both = ", and so do the logits that they are sigmoids of" if logits else ""
        return Finding(f"all scores lie on {format} grid{both}", "grid")
    if logits is not None:
        is_even = "/" in logits.name
        of = f"multiples of {logits.name}" if is_even else f"{logits.name.upper()} values"
        return Finding(f"the scores are {full}, but the logits are already tied ({of})", "logits")
    if grid.distinct <= MOST and FEW * grid.distinct <= anatomy.documents:
        return few
    if "constant tails" in main:
        return Finding("most share the last score of their list", "constant tails")
    if "plateaus" in main:
        return Finding("they form large groups far from other scores", "plateaus")
    if grid.name == "integer":
        return Finding("all scores are whole numbers", "whole numbers")
    if re.fullmatch("[1-8] decimals?", grid.name):  # scores with more were not rounded for a file
        return Finding(f"all scores have at most {grid.name}", "decimals")
    return Finding(f"the scores are {full}, with no sign of coarser rounding", "equal scores")


def _float_grid(diagnosis: Diagnosis) -> str:
    """Return the low-precision format that fits all scores, with its article, or an empty text."""
    return _FLOAT_GRIDS.get(diagnosis.grid.name.partition(",")[0], "")


def _find_remedy(cause: str, diagnosis: Diagnosis, summary: Summary) -> Finding:
    """Choose the remedy for a cause; it is conditional if scores alone cannot prove it."""
    expectation = report_expectation(summary)
    if cause not in _ADVICE:
        return Finding(expectation, "expectation")
    advice, kind = _ADVICE[cause]
    if kind in REMEDIES:
        return Finding(advice.format(format=_float_grid(diagnosis)), kind)
    return Finding(f"{advice}; otherwise {expectation}", kind)
