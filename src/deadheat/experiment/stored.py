"""Reading a DIR: results with what they are results of, scores, logits and texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from deadheat.datasets import RetrievalDataset
from deadheat.errors import InputError
from deadheat.experiment.store import Store, StoredCell, read_json
from deadheat.experiment.texts import read_texts
from deadheat.formats.files import table_from_file
from deadheat.result import Result
from deadheat.scoring.regimes import REGIMES

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class StoredResult:
    """One regime of one cell.

    Attributes
    ----------
    model, model_dtype, dataset, regime
        What the result is of; `dataset` is its name, with subset and split where it has them.
    path
        The file of the result, ``CELL/results/REGIME.json``.
    """

    model: str
    model_dtype: str
    dataset: str
    regime: str
    path: Path

    @cached_property
    def result(self) -> Result:
        """The evaluation, with every query."""
        try:
            return Result.from_json(self.path.read_text(encoding="utf-8"))
        except (OSError, InputError) as error:
            raise InputError(f"{self.path}: {error}; delete it and run again") from None

    @property
    def ties(self) -> dict[str, int]:
        """``documents`` scored, ``distinct`` scores (counted query by query), ``largest`` group."""
        return dict(self.result.provenance["ties"])

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds of the ``forward`` pass, the FP32 ``head`` where it is used, and ``scoring``."""
        stored = read_json(self._cell / "seconds.json")
        return {
            "forward": stored["forward"],
            "head": stored["head"] if self.regime == "head" else 0.0,
            "scoring": stored["scoring"][self.regime],
        }

    def scores(self) -> pl.DataFrame:
        """Read query_id, doc_id and score, candidates in their order; needs no torch."""
        path = self._cell / "scores" / f"{self.regime}.parquet"
        if not path.is_file():
            raise InputError(f"{path} does not exist: the full corpus was too long to be stored")
        return table_from_file(path)

    def outputs(self) -> dict[str, torch.Tensor]:
        """Read what the model gave.

        Returns
        -------
        dict
            For a reranker ``logits`` and, where stored, ``head_logits``: a row per candidate, in
            the order of `scores`. For a bi-encoder ``queries`` and ``documents``.
        """
        return StoredCell(self._cell).outputs()

    def texts(self) -> RetrievalDataset:
        """Read queries, documents, candidates and judgements."""
        folder = self.result.provenance["dataset"]["folder"]
        return read_texts(self._cell.parents[1] / "datasets" / folder)

    @property
    def _cell(self) -> Path:
        return self.path.parents[1]


def load_results(folder: str | Path) -> list[StoredResult]:
    """Read the results of an experiment.

    Parameters
    ----------
    folder
        What ``deadheat run --output`` wrote.

    Returns
    -------
    list of StoredResult
        By dataset and model, and for each model dtype the regimes native, hps, head, others.
    """
    order = list(REGIMES)
    found = [
        StoredResult(
            manifest["model"]["model"],
            manifest["model"]["model_dtype"],
            _dataset_name(manifest["dataset"]),
            path.stem,
            path,
        )
        for cell in Store(folder).cells()
        for manifest in [cell.manifest]
        for path in sorted((cell.folder / "results").glob("*.json"))
    ]
    if not found:
        raise InputError(f"{folder} holds no results yet: run the study to its end")
    return sorted(
        found,
        key=lambda r: (
            r.dataset,
            r.model,
            r.model_dtype,
            order.index(r.regime) if r.regime in order else len(order),
            r.regime,
        ),
    )


def _dataset_name(provenance: dict[str, Any]) -> str:
    parts = [provenance[name] for name in ("name", "subset", "split")]
    return " ".join(part for part in parts if part)
