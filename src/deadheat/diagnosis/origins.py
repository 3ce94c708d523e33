"""Find the step that ties documents: the scoring function, the head, or the model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.formats import Run, files, frames
from deadheat.scoring import Scoring, parse_format, score


@dataclass(frozen=True)
class Origins:
    """Counts of tied pairs (two documents of a query with equal native scores) by step.

    The parts add up to `pairs`.
    """

    model_dtype: str
    pairs: int
    scoring: int
    """Pairs that FP32 scoring separates (hps): the scoring function tied them."""
    head: int | None
    """Pairs that only the last layer in FP32 separates (head); None without head logits."""
    model: int
    """Pairs that remain: equal hidden states, for example of duplicate texts, or scores that
    saturate even in FP32. Without head logits, this includes pairs that the head tied."""


def find_origins(logits: object, model_dtype: object, run: Run) -> Origins:
    """Score logits in every regime, and count the tied pairs that each regime separates."""
    source, table = "logits", logits
    if isinstance(logits, (str, os.PathLike)):
        source, table = os.fspath(logits), files.table_from_file(logits, all_columns=True)
    elif not frames.is_table(logits):
        raise InputError(f"logits must be a table or a path to one, not {type(logits).__name__}")
    frame = frames.as_frame(source, table)
    dtype, frame = _of_one_dtype(source, frame, model_dtype)
    query = frames.column_ids(source, frame, "query_id")
    _check_same_lists(source, query, run)
    given = _logits(source, frame, query)
    kind: Scoring = "softmax" if isinstance(given["logits"], tuple) else "sigmoid"
    told_apart, tied = query.to_frame(), []
    for regime in ("native", "hps", "head")[: 1 + len(given)]:
        scores = score(kind, regime=regime, model_dtype=dtype, **given)
        told_apart = told_apart.with_columns(pl.Series(regime, scores))
        # Documents of a query that are tied in this regime and in all before it.
        size = told_apart.group_by(pl.all()).agg(pl.len().cast(pl.Int64))["len"]
        tied.append(int((size * (size - 1) // 2).sum()))
    head = tied[1] - tied[2] if len(tied) > 2 else None
    return Origins(dtype, tied[0], tied[0] - tied[1], head, tied[-1])


def _of_one_dtype(source: str, frame: pl.DataFrame, wanted: object) -> tuple[str, pl.DataFrame]:
    """Return the name of the model dtype, and its rows."""
    asked = [] if wanted is None else [parse_format(wanted).name]
    if "model_dtype" in frame.columns:
        formats = {name: parse_format(name).name for name in frame["model_dtype"].unique().sort()}
        asked = asked or list(formats.values())
        frame = frame.filter(pl.col("model_dtype").replace_strict(formats).is_in(asked))
    if len(asked) != 1:
        found = ", ".join(asked) or "none"
        raise InputError(f"{source}: exactly one model_dtype is needed, found {found}; give one")
    return asked[0], frame


def _logits(source: str, frame: pl.DataFrame, query: pl.Series) -> dict[str, Any]:
    """Return logits and, if recorded, head logits: a column each, or a tuple (no, yes)."""
    ends = ("",) if "logit" in frame.columns else ("_no", "_yes")
    given: dict[str, Any] = {}
    for name in ("logit", "head_logit"):
        columns = [name + end for end in ends]
        if set(columns) <= set(frame.columns):
            values = tuple(frames.column_numbers(source, frame, c, query) for c in columns)
            given[f"{name}s"] = values if len(ends) > 1 else values[0]
    if "logits" not in given:
        raise InputError(f"{source}: there is no column 'logit', nor 'logit_no' and 'logit_yes'")
    return given


def _check_same_lists(source: str, query: pl.Series, run: Run) -> None:
    counts = dict(query.value_counts().iter_rows())
    lengths = dict(zip(run.query_ids, np.diff(run.offsets).tolist(), strict=True))
    for q in {**lengths, **counts}:
        if counts.get(q, 0) != lengths.get(q, 0):
            raise InputError(
                f"{source}: query {q!r} has logits of {counts.get(q, 0)} documents, but "
                f"{lengths.get(q, 0)} documents in the run; give a logit for each of them"
            )
