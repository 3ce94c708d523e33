"""Read and evaluate predictions that MTEB stored (``prediction_folder=…``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deadheat._internal.lazy import pl
from deadheat._internal.packages import require_host
from deadheat._internal.remarks import Remark, warning
from deadheat.errors import InputError, one_line
from deadheat.evaluation import Result
from deadheat.formats import QrelsLike, judgements_from_dict, read_qrels, run_from_dict
from deadheat.integrations.base import ByQuery
from deadheat.integrations.mteb.scores import evaluate_as_mteb, without_first
from deadheat.measures import parse_measures
from deadheat.settings import TIE_RULES
from deadheat.tables import Column, Table

ENDING = "_predictions.json"
DEFAULT_MEASURES = ("nDCG@10", "MRR@10", "MAP@10", "Recall@100")


@dataclass(frozen=True)
class Predictions:
    """The ranked lists of one split of a task."""

    path: Path
    task: str
    subset: str
    split: str
    lists: ByQuery
    """Per query: the score of each document."""

    @property
    def name(self) -> str:
        """Task, subset and split, in the form of ``--qrels``."""
        return f"{self.task}/{self.subset}/{self.split}"

    @property
    def names(self) -> list[str]:
        """The names under which judgements may be given, most specific first."""
        return [self.name, f"{self.task}/{self.subset}", self.task, ""]


@dataclass(frozen=True)
class Evaluated:
    """The results for one split of a task; `oblivious` is the value that MTEB reported."""

    predictions: Predictions
    results: list[tuple[str, Result]]
    """Each measure, and the result with its value under MTEB's tie rule."""
    remarks: list[Remark]


def evaluate_predictions(
    folder: str | Path,
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    qrels: Mapping[str, QrelsLike] | None = None,
) -> list[Evaluated]:
    """Evaluate every task, subset and split in a folder of predictions, as MTEB does.

    Parameters
    ----------
    folder
        The ``prediction_folder`` of ``mteb.evaluate``, or one of its files.
    measures
        As for `deadheat.evaluate`.
    qrels
        Judgements by task, ``task/subset`` or ``task/subset/split``; an empty name is for all.
        Default: the judgements of the task in the installed MTEB.
    """
    names = list(map(repr, parse_measures(measures)))
    given = dict(qrels or {})
    found = read_predictions(Path(folder))
    if unused := set(given).difference(*(predictions.names for predictions in found)):
        raise InputError(
            f"judgements were given for {', '.join(sorted(unused))}, but the predictions are of "
            f"{', '.join(predictions.name for predictions in found)}"
        )
    return [_evaluate(predictions, given, names) for predictions in found]


def read_predictions(folder: Path) -> list[Predictions]:
    """Read all files of predictions in a folder; they must be of one model."""
    files = sorted(folder.glob(f"*{ENDING}")) if folder.is_dir() else [folder]
    contents = {path: _read(path) for path in files}
    metas = [content.pop("mteb_model_meta", None) for content in contents.values()]
    if any(meta != metas[0] for meta in metas):
        raise InputError(
            f"{folder}: the predictions are of several models; use one folder per model, or give "
            "one file at a time"
        )
    found = [split for path, content in contents.items() for split in _splits(path, content)]
    if not found:
        raise InputError(
            f"{folder}: contains no predictions of MTEB (lists in files TASK{ENDING}); write them "
            "with mteb.evaluate(…, prediction_folder=…)"
        )
    return found


def _read(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or not path.name.endswith(ENDING):
            raise ValueError(f"a JSON object in a file TASK{ENDING} is expected")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: not predictions of MTEB ({one_line(error)}); if MTEB was interrupted while "
            "writing them, run the task again"
        ) from None
    return content


def _splits(path: Path, content: Mapping[str, object]) -> Iterator[Predictions]:
    task = path.name.removesuffix(ENDING)
    for subset, splits in content.items():
        for split, lists in (splits if isinstance(splits, dict) else {"": splits}).items():
            if not isinstance(lists, dict) or not all(isinstance(v, dict) for v in lists.values()):
                raise InputError(
                    f"{path}: the predictions of {subset!r} are not ranked lists of documents; "
                    f"{task} is not a retrieval or reranking task"
                )
            yield Predictions(path, task, subset, split, lists)


def _load_task(predictions: Predictions, *, with_data: bool) -> tuple[Any, Any]:
    """Return the task of the installed MTEB, and its data of this split."""
    mteb = require_host("mteb", "mteb", "taking judgements from a task (without --qrels)")
    split, subset = predictions.split, predictions.subset
    try:
        task = mteb.get_task(predictions.task, eval_splits=[split], hf_subsets=[subset])
        if not with_data:
            return task, None
        task.load_data()
        task.convert_v1_dataset_format_to_v2(num_proc=None)
        return task, task.dataset[subset][split]
    except ImportError:
        raise
    except Exception as error:  # errors of MTEB, the hub, a dataset or its code
        raise InputError(
            f"{predictions.path}: the judgements of {predictions.name} could not be loaded from "
            f"MTEB ({one_line(error)}); give them with --qrels {predictions.name}=FILE"
        ) from None


def _evaluate(
    predictions: Predictions, given: Mapping[str, QrelsLike], names: Sequence[str]
) -> Evaluated:
    """Evaluate with the given judgements of a split, or with those of the installed task."""
    name = next((name for name in predictions.names if name in given), None)
    lists, remarks = predictions.lists, list[Remark]()
    task: Any = None
    try:
        task, data = _load_task(predictions, with_data=name is None)
    except (InputError, ImportError):
        if name is None:
            raise
        if own := sum(query in listed for query, listed in lists.items()):
            text = "{own:query} with a document of the same id, which some tasks of MTEB leave out"
            remarks.append(warning(text, own=own))
    if name is not None:
        judgements, complete = read_qrels(given[name]), False
    else:
        source = f"the task {predictions.task} of MTEB"
        judgements = judgements_from_dict(source, data["relevant_docs"])
        longest = max(map(len, lists.values()), default=0)
        complete = data["top_ranked"] is not None and longest < max(task.k_values)
    if getattr(task, "ignore_identical_ids", False):
        lists = {q: {d: s for d, s in listed.items() if d != q} for q, listed in lists.items()}
    if getattr(task, "skip_first_result", False):
        lists = {query: without_first(listed) for query, listed in lists.items()}
    run = run_from_dict(f"{predictions.path} ({predictions.name})", lists)
    counted = {query: docs for query, docs in judgements.to_dict().items() if query in lists}
    if not counted:
        raise InputError(
            f"{predictions.path}: none of the queries of {predictions.name} is judged in "
            f"{judgements.source}, for example {run.query_ids[0]!r}: are these its judgements?"
        )
    if unjudged := len(lists) - len(counted):
        text = "{unjudged:query} not judged, and left out, as MTEB does"
        remarks.append(warning(text, unjudged=unjudged))
    judgements = judgements_from_dict(judgements.source, counted)
    results = evaluate_as_mteb(judgements, replace(run, complete=complete), names)
    remarks += [remark for _, result in results for remark in result.remarks]
    return Evaluated(predictions, results, remarks)


def predictions_table(evaluated: Sequence[Evaluated]) -> Table:
    """Return a table of MTEB's values and their views: a row per split and measure."""
    views = ("expected", "std", "worst", "best", "range", "bias")
    rows = [
        {
            **{key: getattr(one.predictions, key) for key in ("task", "subset", "split")},
            "measure": name,
            "mteb": result[name].oblivious,
            **{view: getattr(result[name], view) for view in views},
            "rule": result.provenance.settings.tie_break,
            "queries": result[name].queries,
        }
        for one in evaluated
        for name, result in one.results
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None)
    varying = [name for name in ("subset", "split") if frame[name].n_unique() > 1]
    return Table(
        frame,
        [
            *(Column(name, "name") for name in ("task", *varying, "measure")),
            Column("mteb", title="MTEB"),
            Column("expected"),
            Column("std", title="± tie std", drop_priority=1),
            Column("range"),
            Column("bias", "signed"),
            Column("rule", "name", drop_priority=2),
        ],
        notes=[f"{rule}: {TIE_RULES[rule]}" for rule in dict.fromkeys(frame["rule"])],
        grouped=1 + len(varying),
    )
