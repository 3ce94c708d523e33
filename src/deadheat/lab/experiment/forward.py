"""The forward pass of a cell, part by part, in this process or in a worker."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from deadheat.errors import InputError
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.folder import Manifest, Part, PartOutput
from deadheat.lab.experiment.study import ModelSpec, Study, StudyCell
from deadheat.lab.models.batching import Batches
from deadheat.lab.models.biencoders import BiEncoder
from deadheat.lab.models.checkpoint import find_checkpoint
from deadheat.lab.models.device import choose_device
from deadheat.lab.models.loading import installed_versions
from deadheat.lab.models.rerankers import Head
from deadheat.provenance import ModelProvenance, flatten
from deadheat.scoring import Scoring, resolve_backend, torch_functions, uses_head

if TYPE_CHECKING:
    from deadheat.lab.models import Reranker


@dataclass(frozen=True)
class Environment:
    """Properties of the machine on which the outputs of a model depend."""

    revision: str
    """Revision of the checkpoint on that machine."""
    device: str
    backend: str
    threads: int
    """Number of threads; on a CPU, FP32 sums depend on it."""
    versions: Mapping[str, str]


def find_environment(
    model: ModelSpec, device: str | None, revision: str | None = None
) -> Environment:
    """Return the environment of this machine; `revision` is that of a loaded model."""
    import torch

    revision = revision or find_checkpoint(model.name, model.revision, model.base).revision
    versions = {name: v for name, v in installed_versions().items() if name != "deadheat"}
    threads = torch.get_num_threads()
    return Environment(revision, choose_device(device), resolve_backend(), threads, versions)


def use_threads(threads: int) -> int:
    """Set the number of threads of torch, and return the previous number."""
    import torch

    before = torch.get_num_threads()
    if threads != before:
        torch.set_num_threads(threads)
    return before


_OWN_OPTIONS = ("kind", "revision", "prompt", "instruction", "base")
"""Fields of a `ModelSpec` that are options of `load_model`."""
_loaded: dict[tuple[Study, StudyCell], Reranker | BiEncoder] = {}
"""The model that was loaded last; it is reused for further datasets."""


def load_cell_model(study: Study, cell: StudyCell) -> Reranker | BiEncoder:
    """Return the model of a cell; only the last one stays in memory."""
    from deadheat.lab.models import load_model

    key = study, replace(cell, dataset=study.datasets[0])  # one model for all datasets
    if key not in _loaded:
        forget_model()  # free its memory first
        _loaded[key] = load_model(
            cell.model.name,
            model_dtype=cell.model_dtype,
            device=study.device,
            batch_size=cell.batch_size,
            attn_implementation=cell.attention,
            max_length=cell.model.max_length or study.max_length,
            trust_remote_code=study.trust_remote_code,
            **{name: getattr(cell.model, name) for name in _OWN_OPTIONS},
        )
    return _loaded[key]


def forget_model() -> None:
    """Free the memory of the model that was loaded last."""
    _loaded.clear()


@dataclass(frozen=True)
class ForwardPass:
    """The forward pass of a cell; calling it returns a worker that runs parts of it."""

    study: Study
    cell: StudyCell
    dataset: RetrievalDataset
    dataset_folder: str
    environment: Environment
    """The environment that every machine must have."""

    @cached_property
    def settings(self) -> dict[str, str]:
        """All settings that determine the outputs and are known before the model is loaded."""
        study, model, dataset = self.study, self.cell.model, self.dataset
        asked = {name: own for name, own in asdict(model).items() if name not in ("name", "label")}
        texts = json.dumps([list(dataset.queries.items()), list(dataset.corpus)])
        # Each text is encoded once.
        repeated = sum(len(documents) - 1 for documents in group_texts(dataset).values())
        settings = {
            **asked,
            **asdict(self.environment),
            "max_length": model.max_length or study.max_length,
            "batch_size": self.cell.batch_size,
            "attention": self.cell.attention,
            "trust_remote_code": study.trust_remote_code,
            "content": dataset.content_hash,
            "order": hashlib.sha256(texts.encode()).hexdigest(),
            "repeated_texts": repeated or None,
        }
        return {name: str(value) for name, value in flatten(settings) if value is not None}

    def __call__(self) -> Callable[[Part | None], Manifest | PartOutput]:
        """Return a worker, which returns the output of a part or, for None, the manifest."""
        use_threads(self.environment.threads)
        model = load_cell_model(self.study, self.cell)
        here = vars(find_environment(self.cell.model, self.study.device, model.provenance.revision))
        for name, value in vars(self.environment).items():
            if here[name] != value:
                raise InputError(
                    f"{platform.node()} differs from the machine of the first worker: its {name} "
                    f"is {here[name]}, not {value}, and scores depend on it; use machines of one "
                    "kind"
                )
        needs_head = any(map(uses_head, self.study.regimes)) and self.cell.model_dtype != "fp32"
        streams, head = plan_streams(model, self.dataset, needs_head=needs_head)
        manifest = Manifest(
            settings=self.settings,
            model=model.provenance,
            function=scoring_function(model.provenance, self.cell.model.similarity),
            backend=self.environment.backend,
            threads=self.environment.threads,
            dataset=self.dataset.provenance(),
            dataset_folder=self.dataset_folder,
            inputs={stream: batches.inputs for stream, batches in streams.items()},
            label=self.cell.model.label,
        )

        def work(part: Part | None) -> Manifest | PartOutput:
            if part is None:
                return manifest
            return run_batches(streams[part.stream], part.batches, part.stream, head)

        return work


def plan_streams(
    model: Reranker | BiEncoder, dataset: RetrievalDataset, *, needs_head: bool = False
) -> tuple[dict[str, Batches], Head | None]:
    """Return the batches of each stream of inputs, and the head of a reranker if it is found."""
    if isinstance(model, BiEncoder):
        return {
            "queries": model.batches(list(dataset.queries.values()), "query"),
            "documents": model.batches(list(group_texts(dataset)), "document"),
        }, None
    if dataset.candidates is None:
        raise InputError(
            f"a {model.provenance.kind} would score every document with every query, but "
            "full-corpus candidates are for bi-encoders only; choose --candidates bm25"
        )
    head = None
    try:
        head = model.head()
    except InputError:  # no plain linear layer gives the logits
        if needs_head:
            raise
    return {"logits": model.batches(list_pairs(dataset), with_hidden=head is not None)}, head


def group_texts(dataset: RetrievalDataset) -> dict[str, list[str]]:
    """Return the distinct texts of the listed documents, each with its document ids.

    A text is encoded and scored once, so its documents tie exactly: the last bit of a product may
    depend on the position of its row.
    """
    lists = dataset.candidates
    listed = dataset.corpus if lists is None else {doc for own in lists.values() for doc in own}
    documents: dict[str, list[str]] = {}
    for doc, text in dataset.corpus.items():
        if doc in listed:
            documents.setdefault(text, []).append(doc)
    return documents


def list_pairs(dataset: RetrievalDataset) -> list[tuple[str, str]]:
    """Return the texts of every query with each of its candidates."""
    lists = dataset.candidates or {}
    return [(dataset.queries[q], dataset.corpus[doc]) for q, own in lists.items() for doc in own]


def scoring_function(model: ModelProvenance, similarity: Scoring | None = None) -> Scoring:
    """Return the name of the function that computes scores from the model's output.

    `similarity` replaces the product of a bi-encoder.
    """
    if model.outputs:
        return "sigmoid" if len(model.outputs) == 1 else "softmax"
    return similarity or ("dot" if model.normalised else "cosine")


def run_batches(
    batches: Batches, numbers: Iterable[int], stream: str, head: Head | None
) -> PartOutput:
    """Run some batches of a stream; a head adds the logits of the last layer in FP32."""
    import torch

    index: list[int] = []
    rows, in_fp32 = [], []
    for number in numbers:
        output, *hidden = batches.run(number)
        index += batches.indices[number]
        rows.append(output)
        if head is not None:
            in_fp32.append(torch_functions.head_logits(hidden[0], head.weight, head.bias))
    outputs = {"index": torch.tensor(index), stream: torch.cat(rows)}
    if head is not None:
        outputs["head_logits"] = torch.cat(in_fp32)
    return outputs
