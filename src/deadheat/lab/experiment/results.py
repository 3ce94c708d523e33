"""Read the folder of a study: results with their settings, scores, logits and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

from deadheat._internal.lazy import pl
from deadheat.errors import InputError
from deadheat.evaluation import Result
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.folder import CellFolder, ExperimentFolder, Manifest
from deadheat.provenance import ScoreFacts

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class StoredResult:
    """The stored result of one regime of one cell."""

    cell: CellFolder
    manifest: Manifest
    regime: str
    variant: str = ""
    """Settings that differ from those of other cells of the same model, dtype and dataset."""

    @property
    def model(self) -> str:
        """The model: its hub id or path, as given."""
        return self.manifest.model.model

    @property
    def model_dtype(self) -> str:
        """The dtype in which the model ran."""
        return self.manifest.model.model_dtype

    @property
    def dataset(self) -> str:
        """The name of the dataset, with subset and split if it has them."""
        return str(self.manifest.dataset)

    @property
    def short_name(self) -> str:
        """The model's label, or its name without owner or folder."""
        return self.manifest.label or Path(self.model).name

    @property
    def name(self) -> str:
        """The short name, with the variant if there are several."""
        return f"{self.short_name} ({self.variant})" if self.variant else self.short_name

    @property
    def is_reference(self) -> bool:
        """Whether this is the FP32 column of Table 1: the FP32 model, scored in FP32."""
        return self.model_dtype == "fp32" and self.regime == "native"

    @cached_property
    def result(self) -> Result:
        """The evaluation, with every query."""
        return self.cell.result(self.regime)

    @property
    def ties(self) -> ScoreFacts:
        """Documents scored, distinct scores (counted query by query), largest tie group."""
        return cast("ScoreFacts", self.result.provenance.scores)

    def scores(self) -> pl.DataFrame:
        """Read query_id, doc_id and score, in the order of the candidates; needs no torch."""
        return self.cell.scores(self.regime)

    def outputs(self) -> dict[str, torch.Tensor]:
        """Read the output of the model.

        Returns
        -------
        dict
            For a reranker, ``logits`` and, if it has a head, ``head_logits``: a row per candidate,
            in the order of `scores`. For a bi-encoder, ``queries`` and ``documents``.
        """
        return self.cell.outputs()

    def texts(self) -> RetrievalDataset:
        """Read queries, documents, candidates and judgements."""
        return self.folder.dataset(self.manifest.dataset_folder)

    @property
    def folder(self) -> ExperimentFolder:
        """The folder of the study."""
        return ExperimentFolder(self.cell.path.parents[1])


def load_results(folder: str | Path) -> list[StoredResult]:
    """Read the results of an experiment.

    Parameters
    ----------
    folder
        The folder of ``deadheat run --output``.

    Returns
    -------
    list of StoredResult
        Sorted by dataset, model and model dtype, then by regime: native, hps, head, others.
    """
    begun = [(cell.manifest, cell) for cell in ExperimentFolder(folder).cells()]
    begun.sort(key=lambda pair: (*_cell_key(pair[0]), *_compute_key(pair[0])))
    manifests = [manifest for manifest, _ in begun]
    results = [
        StoredResult(cell, manifest, regime, _variant(manifest, manifests))
        for manifest, cell in begun
        for regime in cell.regimes()
    ]
    if not results:
        raise InputError(f"{folder} contains no results yet; run the study to its end")
    return results


def _cell_key(manifest: Manifest) -> tuple[str, str, str]:
    return str(manifest.dataset), manifest.model.model, manifest.model.model_dtype


def _compute_key(manifest: Manifest) -> tuple[int, str, int]:
    """Return the sort key of the settings of a forward pass."""
    model = manifest.model
    return model.batch_size, model.attn_implementation, manifest.threads


def _variant(manifest: Manifest, others: Sequence[Manifest]) -> str:
    """Return the settings that differ from other cells of the same model, dtype and dataset."""
    alike = [other for other in others if _cell_key(other) == _cell_key(manifest)]
    differing = [
        f"{name} {value}"
        for name, value in manifest.settings.items()
        if any(other.settings.get(name) != value for other in alike)
    ]
    return ", ".join(differing)
