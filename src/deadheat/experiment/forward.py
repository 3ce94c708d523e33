"""One forward pass per model, model dtype and dataset; everything else follows from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from deadheat.datasets import RetrievalDataset
from deadheat.errors import InputError
from deadheat.experiment.derive import evaluate_cell, listed_documents
from deadheat.experiment.folder import CellFolder, ExperimentFolder, Manifest, Parts
from deadheat.experiment.study import Cell, Study
from deadheat.models.batching import NotFiniteError
from deadheat.models.checkpoint import find_checkpoint
from deadheat.models.device import choose_device
from deadheat.models.loading import installed_versions
from deadheat.provenance import InputFacts, ModelProvenance, flatten
from deadheat.scoring.regimes import SCORED, resolve_backend

if TYPE_CHECKING:
    import torch

    from deadheat.models import Batches, BiEncoder, Head, Reranker

Progress = Callable[[str, int, int], None]
"""Told what is running, how many of its batches are done, and how many there are."""


@dataclass(frozen=True)
class CellRun:
    """A cell of a study on its way from texts to results."""

    study: Study
    cell: Cell
    folder: ExperimentFolder
    dataset: RetrievalDataset
    dataset_folder: str
    load: Callable[[], Reranker | BiEncoder]
    """Loads the model, once for all cells that need it."""
    progress: Progress | None

    def run(self) -> None:
        """Run what is missing of the forward pass, then score and evaluate."""
        manifest = self.stored.manifest
        if manifest is None or any(parts.gaps() for parts in self.stored.streams().values()):
            manifest = self._forward(self.load())
        regimes = dict.fromkeys([*self._regimes(manifest), *self.stored.regimes()])
        depth = self.study.depth if self.dataset.candidates is None else None
        evaluate_cell(
            self.stored, manifest, self.dataset, list(regimes), self.study.all_measures, depth
        )

    @cached_property
    def settings(self) -> dict[str, str]:
        """All that the outputs follow from, known before the model is loaded."""
        import torch

        study, model = self.study, self.cell.model
        checkpoint = find_checkpoint(model.name, model.revision)
        asked = {name: value for name, value in asdict(model).items() if name != "name"}
        texts = json.dumps([list(self.dataset.queries.items()), list(self.dataset.corpus)])
        settings = {
            **asked,
            "revision": checkpoint.revision,
            "max_length": model.max_length or study.max_length,
            "batch_size": study.batch_size,
            "device": choose_device(study.device),
            "trust_remote_code": study.trust_remote_code,
            "backend": resolve_backend(),
            "threads": torch.get_num_threads(),  # on a CPU, FP32 sums depend on it
            "versions": {n: v for n, v in installed_versions().items() if n != "deadheat"},
            "content": self.dataset.content_hash,
            "order": hashlib.sha256(texts.encode()).hexdigest(),
        }
        return {name: str(value) for name, value in flatten(settings) if value is not None}

    @cached_property
    def stored(self) -> CellFolder:
        """Where the outputs of these settings are, or will be."""
        return self.folder.cell(
            self.cell.model.name, self.cell.model_dtype, self.dataset_folder, self.settings
        )

    def _regimes(self, manifest: Manifest) -> list[str]:
        """Return the regimes that this cell can have; in FP32 they are all one."""
        asked = list(self.study.regimes)
        if self.cell.model_dtype == "fp32" and asked:
            asked = ["native"]
        elif manifest.model.kind == "bi-encoder":
            asked = [regime for regime in asked if regime != "head"]
        regimes = asked + [SCORED + dtype for dtype in self.study.scoring_dtypes]
        if not regimes:
            raise InputError("a bi-encoder has no scoring head: choose the regime native or hps")
        return regimes

    def _forward(self, model: Reranker | BiEncoder) -> Manifest:
        """Run and store the missing parts of every stream of inputs."""
        kind = model.provenance.kind
        if kind != "bi-encoder" and self.dataset.candidates is None:
            raise InputError(
                f"a {kind} would read every document with every query: full-corpus candidates are "
                "for bi-encoders, choose --candidates bm25"
            )
        head = self._head(model)
        inputs = self._inputs(kind)
        plans = {stream: _plan(model, stream, texts, head) for stream, texts in inputs.items()}
        manifest = Manifest(
            settings=self.settings,
            model=model.provenance,
            function=self._function(model.provenance),
            backend=self.settings["backend"],
            threads=int(self.settings["threads"]),
            dataset=self.dataset.provenance(),
            dataset_folder=self.dataset_folder,
            inputs={
                stream: InputFacts(plan.inputs.count, plan.inputs.truncated)
                for stream, plan in plans.items()
            },
        )
        self.stored.write_manifest(manifest)
        for stream, plan in plans.items():
            parts = self.stored.parts(stream, len(inputs[stream]), self.study.batch_size)
            self._run_stream(stream, plan, parts, head)
        return manifest

    def _head(self, model: Reranker | BiEncoder) -> Head | None:
        """Return the last layer of a reranker; None where it has none and none is asked for."""
        from deadheat.models import BiEncoder

        if isinstance(model, BiEncoder):
            return None
        try:
            return model.head()
        except InputError:
            if "head" in self.study.regimes and self.cell.model_dtype != "fp32":
                raise
            return None

    def _run_stream(self, stream: str, plan: Batches[Any], parts: Parts, head: Head | None) -> None:
        """Run and store the missing parts of one stream of inputs."""
        gaps = parts.gaps()
        done = parts.count - sum(map(len, gaps))
        for gap in gaps:
            batches = plan.resume(gap.start * parts.step)
            outputs = iter(batches)
            for number in gap:
                self._tell(stream, done * parts.step, parts.batches)
                try:
                    part = list(islice(outputs, parts.step))
                except NotFiniteError as error:
                    raise InputError(f"{self._name(stream, error.index)}: {error}") from None
                own = range(number * parts.step, (number + 1) * parts.step)
                halved = {k: n for k, n in batches.inputs.halved.items() if int(k) in own}
                parts.write(number, _tensors(stream, part, head), halved)
                done += 1
        self._tell(stream, parts.batches, parts.batches)

    def _function(self, model: ModelProvenance) -> str:
        """Say what makes scores of the model's output."""
        if model.outputs:
            return "sigmoid" if len(model.outputs) == 1 else "softmax"
        return self.cell.model.similarity or ("dot" if model.normalised else "cosine")

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

    def _tell(self, stream: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(f"{self.cell}: {stream}", done, total)


def _plan(model: Any, stream: str, texts: Sequence[Any], head: Head | None) -> Batches[Any]:
    batches: Batches[Any] = (
        model.batches(texts, with_hidden=head is not None)
        if stream == "logits"
        else model.batches(texts, "query" if stream == "queries" else "document")
    )
    return batches


def _tensors(
    stream: str, outputs: Sequence[tuple[tuple[int, ...], Any]], head: Head | None
) -> dict[str, torch.Tensor]:
    """Put some batches into one part: the inputs' places, and what the model gave for them."""
    import torch

    from deadheat.scoring.torch_functions import head_logits

    tensors = {"index": torch.tensor([i for indices, _ in outputs for i in indices])}
    name = "logits" if stream == "logits" else "vectors"
    tensors[stream] = torch.cat([getattr(output, name) for _, output in outputs])
    if head is not None:
        in_fp32 = [head_logits(output.hidden, head.weight, head.bias) for _, output in outputs]
        tensors["head_logits"] = torch.cat(in_fp32)
    return tensors
