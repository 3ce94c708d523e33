"""One forward pass per model, model dtype and dataset; everything else follows from it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from deadheat.datasets import RetrievalDataset
from deadheat.errors import DeadheatError, InputError
from deadheat.experiment.derive import evaluate_cell
from deadheat.experiment.store import Parts, Store, StoredCell, StoreError, check_settings
from deadheat.experiment.study import Cell, DatasetSpec, ModelSpec, Study
from deadheat.experiment.texts import listed_documents, load_texts, store_texts
from deadheat.models.batching import NotFiniteError
from deadheat.models.checkpoint import find_checkpoint
from deadheat.models.loading import installed_versions
from deadheat.scoring.regimes import SCORED, resolve_backend

if TYPE_CHECKING:
    import torch

    from deadheat.models import Batches, BiEncoder, Head, ModelOutput, Reranker

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Told what is running, how many of its batches are done, and how many there are."""


@dataclass(frozen=True)
class Failure:
    """A cell that could not be run, and why."""

    cell: Cell
    error: DeadheatError


def run_study(
    study: Study, folder: str | Path, *, progress: Progress | None = None
) -> list[Failure]:
    """Run the cells of a study that `folder` lacks, and evaluate all of them.

    Parameters
    ----------
    study
        What to run.
    folder
        Where everything is stored, batch by batch. A run that was ended, however it was, is
        continued by the same call, and ends with the same bytes.
    progress
        Called after every stored part of a forward pass.

    Returns
    -------
    list of Failure
        The cells that could not be run. The others are complete.

    Raises
    ------
    InputError
        The folder is in use, belongs to something else, or cannot be written to.
    """
    store = Store(folder, create=True)
    failures = []
    with store.lock():
        texts = _remembering(partial(_open_texts, store, study))
        for model in study.models:
            for dtype in study.model_dtypes:
                load = _remembering(partial(_load_model, study, model, dtype))
                for dataset in study.datasets:
                    cell = Cell(model, dtype, dataset)
                    try:
                        _CellRun(
                            study, cell, store.cell(cell), *texts(dataset), load, progress
                        ).run()
                    except StoreError:  # true of every cell
                        raise
                    except DeadheatError as error:
                        failures.append(Failure(cell, error))
    return failures


def _remembering(make: Callable[..., T]) -> Callable[..., T]:
    """Call a function once for every argument, whether it returns or says why it cannot."""

    @cache
    def outcome(*args: Any) -> tuple[T | None, DeadheatError | None]:
        try:
            return make(*args), None
        except StoreError:
            raise
        except DeadheatError as error:
            return None, error

    def call(*args: Any) -> T:
        value, error = outcome(*args)
        if error is not None:
            raise error
        return cast(T, value)

    return call


def _open_texts(
    store: Store, study: Study, spec: DatasetSpec
) -> tuple[RetrievalDataset, dict[str, Any]]:
    dataset, left_out = load_texts(study, spec)
    return dataset, store_texts(store, study, spec, dataset, left_out)


def _load_model(study: Study, spec: ModelSpec, dtype: str) -> Reranker | BiEncoder:
    from deadheat.models import load_model

    return load_model(
        spec.name,
        model_dtype=dtype,
        kind=spec.kind,  # type: ignore[arg-type]
        device=study.device,
        batch_size=study.batch_size,
        max_length=spec.max_length or study.max_length,
        trust_remote_code=study.trust_remote_code,
        revision=spec.revision,
        instruction=spec.instruction,
    )


@dataclass(frozen=True)
class _CellRun:
    study: Study
    cell: Cell
    stored: StoredCell
    dataset: RetrievalDataset
    dataset_provenance: dict[str, Any]
    load: Callable[[], Reranker | BiEncoder]
    progress: Progress | None

    def run(self) -> None:
        """Run what is missing of the forward pass, then score and evaluate."""
        if not self._is_complete():
            self._forward(self.load())
        kind = self.stored.manifest["model"]["kind"]
        earlier = [path.stem for path in sorted((self.stored.folder / "results").glob("*.json"))]
        evaluate_cell(
            self.stored,
            self.dataset,
            list(dict.fromkeys([*self._regimes(kind), *earlier])),
            self.study.wanted,
            self.study.depth if self.dataset.candidates is None else None,
        )

    def _regimes(self, kind: str) -> list[str]:
        """Return the regimes that this cell can have; in FP32 they are all one."""
        asked = list(self.study.regimes)
        if self.cell.model_dtype == "fp32" and asked:
            asked = ["native"]
        elif kind == "bi-encoder":
            asked = [regime for regime in asked if regime != "head"]
        regimes = asked + [SCORED + dtype for dtype in self.study.scoring_dtypes]
        if not regimes:
            raise InputError("a bi-encoder has no scoring head: choose the regime native or hps")
        return regimes

    @property
    def _asked(self) -> dict[str, Any]:
        """What the model's settings follow from, with the versions and the checkpoint."""
        study = self.study
        return {
            **asdict(self.cell.model),
            "model_dtype": self.cell.model_dtype,
            "batch_size": study.batch_size,
            "max_length": self.cell.model.max_length or study.max_length,
            "device": study.device,
            "trust_remote_code": study.trust_remote_code,
        }

    def _is_complete(self) -> bool:
        """Tell, without loading the model, whether nothing is left to run and nothing changed."""
        manifest = self.stored.manifest
        if not manifest or manifest["asked"] != self._asked:
            return False
        model, inputs = manifest["model"], self._inputs(manifest["model"]["kind"])
        found = find_checkpoint(self.cell.model.name, self.cell.model.revision)
        return (
            model["revision"] == found.revision
            and _numeric(model["versions"]) == _numeric(installed_versions())
            and _arithmetic().items() <= manifest["scoring"].items()
            and (manifest["scoring"]["head"] or "head" not in self._regimes(model["kind"]))
            and all(_sha256(each) == manifest["inputs"][s]["sha256"] for s, each in inputs.items())
            and not any(self._parts(s, each).gaps() for s, each in inputs.items())
        )

    def _forward(self, model: Reranker | BiEncoder) -> None:
        provenance = model.provenance.to_dict()
        kind = provenance["kind"]
        if kind != "bi-encoder" and self.dataset.candidates is None:
            raise InputError(
                f"a {kind} would read every document with every query: full-corpus candidates are "
                "for bi-encoders, choose --candidates bm25"
            )
        old = self.stored.manifest
        head = "head" in self._regimes(kind) or bool(old and old["scoring"]["head"])
        inputs = self._inputs(kind)
        plans = {stream: _plan(model, stream, each, head) for stream, each in inputs.items()}
        manifest = {
            "asked": self._asked,
            "model": provenance,
            "scoring": {"kind": self._scoring(provenance), "head": head, **_arithmetic()},
            "dataset": self.dataset_provenance,
            "inputs": {
                stream: {
                    "count": len(each),
                    "truncated": plans[stream].inputs.truncated,
                    "sha256": _sha256(each),
                }
                for stream, each in inputs.items()
            },
        }
        if old:
            check_settings(self.stored.folder, _comparable(old), _comparable(manifest))
        else:
            self.stored.write_manifest(manifest)

        weights = model.head() if head else None  # type: ignore[union-attr]
        for stream, plan in plans.items():
            self._run_stream(stream, plan, self._parts(stream, inputs[stream]), weights)

    def _run_stream(self, stream: str, plan: Batches[Any], parts: Parts, head: Head | None) -> None:
        """Run and store the missing parts of one stream of inputs."""
        gaps = parts.gaps()
        done = parts.count - sum(map(len, gaps))
        for gap in gaps:
            batches = plan.resume(gap.start * parts.step)
            run = iter(batches)
            for number in gap:
                self._tell(stream, done * parts.step, parts.batches)
                start = time.perf_counter()
                try:
                    outputs = list(islice(run, parts.step))
                except NotFiniteError as error:
                    raise InputError(f"{self._name(stream, error.index)}: {error}") from None
                middle = time.perf_counter()
                logits = [] if head is None else [_in_fp32(output, head) for _, output in outputs]
                end = time.perf_counter()
                mine = range(number * parts.step, (number + 1) * parts.step)
                halved = {k: n for k, n in batches.inputs.halved.items() if int(k) in mine}
                parts.write(number, _tensors(stream, outputs, logits), halved)
                self.stored.log(
                    stream=stream, part=number, forward=middle - start, head=end - middle
                )
                done += 1
        self._tell(stream, parts.batches, parts.batches)

    def _scoring(self, provenance: dict[str, Any]) -> str:
        outputs = len(provenance["outputs"])
        if outputs:
            return "sigmoid" if outputs == 1 else "softmax"
        return self.cell.model.similarity or ("dot" if provenance["normalised"] else "cosine")

    def _inputs(self, kind: str) -> dict[str, list[Any]]:
        """Return what a model of this kind reads: streams of texts, or of pairs of them."""
        queries, corpus = self.dataset.queries, self.dataset.corpus
        if kind == "bi-encoder":
            documents = [corpus[doc] for doc in listed_documents(self.dataset)]
            return {"queries": list(queries.values()), "documents": documents}
        return {"logits": [(queries[query], corpus[doc]) for query, doc in self._pairs()]}

    def _pairs(self) -> list[tuple[str, str]]:
        lists = self.dataset.candidates or {}
        return [(query, doc) for query, documents in lists.items() for doc in documents]

    def _name(self, stream: str, index: int) -> str:
        """Name one input of a stream."""
        if stream == "logits":
            query, doc = self._pairs()[index]
            return f"query {query!r} with document {doc!r}"
        if stream == "queries":
            return f"query {list(self.dataset.queries)[index]!r}"
        return f"document {listed_documents(self.dataset)[index]!r}"

    def _parts(self, stream: str, inputs: Sequence[Any]) -> Parts:
        return self.stored.parts(stream, len(inputs), self.study.batch_size)

    def _tell(self, stream: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(f"{self.cell}: {stream}", done, total)


def _arithmetic() -> dict[str, Any]:
    """Say what computes: on a CPU, FP32 sums depend on how many threads share them."""
    import torch

    return {"backend": resolve_backend(), "threads": torch.get_num_threads()}


def _plan(model: Any, stream: str, inputs: list[Any], head: bool) -> Batches[Any]:
    batches: Batches[Any] = (
        model.batches(inputs, with_hidden=head)
        if stream == "logits"
        else model.batches(inputs, "query" if stream == "queries" else "document")
    )
    return batches


def _in_fp32(output: ModelOutput, head: Head) -> torch.Tensor:
    from deadheat.scoring.torch_functions import head_logits

    assert output.hidden is not None
    return head_logits(output.hidden, head.weight, head.bias)


def _tensors(
    stream: str, outputs: list[tuple[tuple[int, ...], Any]], head_logits: list[torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Put some batches into one part: the inputs' places, and what the model gave for them."""
    import torch

    found = {"index": torch.tensor([i for indices, _ in outputs for i in indices])}
    name = "logits" if stream == "logits" else "vectors"
    found[stream] = torch.cat([getattr(output, name) for _, output in outputs])
    if head_logits:
        found["head_logits"] = torch.cat(head_logits)
    return found


def _comparable(manifest: dict[str, Any]) -> dict[str, Any]:
    """Leave of a manifest what numbers depend on; names of paths and our own version do not."""
    model = {name: value for name, value in manifest["model"].items() if name != "model"}
    return {
        **model,
        "outputs": list(model["outputs"]),
        "versions": _numeric(model["versions"]),
        "scoring": manifest["scoring"],
        "content_hash": manifest["dataset"]["content_hash"],
        "inputs": {stream: facts["sha256"] for stream, facts in manifest["inputs"].items()},
    }


def _numeric(versions: dict[str, str]) -> dict[str, str]:
    return {name: version for name, version in versions.items() if name != "deadheat"}


def _sha256(inputs: Sequence[Any]) -> str:
    """Return the hash of the inputs, in their order: batches are made of it."""
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
