"""The forward pass of a cell, part by part, in this process or in a worker."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from deadheat.errors import InputError
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.derive import group_texts
from deadheat.lab.experiment.study import Compute, ModelSpec, Study, StudyCell
from deadheat.lab.models.batching import Batches
from deadheat.lab.models.biencoders import BiEncoder
from deadheat.lab.models.checkpoint import find_checkpoint
from deadheat.lab.models.device import choose_device
from deadheat.lab.models.loading import installed_versions
from deadheat.lab.models.rerankers import Head
from deadheat.provenance import InputFacts, ModelProvenance
from deadheat.scoring import Scoring, resolve_backend, torch_functions, uses_head

if TYPE_CHECKING:
    import torch

    from deadheat.lab.models import Reranker

PartOutput = dict[str, "torch.Tensor"]
"""The index of each input, and a row for it in every other tensor."""


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


def find_environment(model: ModelSpec, device: str | None) -> Environment:
    """Return the environment of the machine that this is called on."""
    return _environment(find_checkpoint(model.name, model.revision, model.base).revision, device)


def _environment(revision: str, device: str | None) -> Environment:
    import torch

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
_loaded: dict[tuple[Study, ModelSpec, str, Compute], Reranker | BiEncoder] = {}
"""The model that was loaded last; it is reused for further datasets."""


def load_cell_model(study: Study, cell: StudyCell) -> Reranker | BiEncoder:
    """Return the model of a cell; only the last one stays in memory."""
    from deadheat.lab.models import load_model

    key = (study, cell.model, cell.model_dtype, cell.compute)
    if key not in _loaded:
        forget_model()  # free its memory first
        _loaded[key] = load_model(
            cell.model.name,
            model_dtype=cell.model_dtype,
            device=study.device,
            batch_size=cell.compute.batch_size,
            attn_implementation=cell.compute.attention,
            max_length=cell.model.max_length or study.max_length,
            trust_remote_code=study.trust_remote_code,
            **{name: getattr(cell.model, name) for name in _OWN_OPTIONS},
        )
    return _loaded[key]


def forget_model() -> None:
    """Free the memory of the model that was loaded last."""
    _loaded.clear()


class PartTask(NamedTuple):
    """Some consecutive batches of a stream of inputs, which are run and stored together."""

    stream: str
    """``logits``, or ``queries`` or ``documents``."""
    number: int
    step: int
    """Batches in a part."""


class ForwardFacts(NamedTuple):
    """Facts about a forward pass after the model is loaded and the inputs are tokenized."""

    model: ModelProvenance
    function: str
    """Name of the function that computes scores from the model's output."""
    inputs: dict[str, InputFacts]
    """Per stream of inputs."""


@dataclass(frozen=True)
class ForwardPass:
    """The forward pass of a cell; calling it returns a worker that runs parts of it."""

    study: Study
    cell: StudyCell
    dataset: RetrievalDataset
    environment: Environment
    """The environment that every machine must have."""

    def __call__(self) -> Callable[[PartTask | None], ForwardFacts | PartOutput]:
        """Return a worker, which returns the output of a part or, for None, the facts."""
        use_threads(self.environment.threads)
        model = load_cell_model(self.study, self.cell)
        here = asdict(_environment(model.provenance.revision, self.study.device))
        for name, value in asdict(self.environment).items():
            if here[name] != value:
                raise InputError(
                    f"{platform.node()} differs from the machine of the first worker: its {name} "
                    f"is {here[name]}, not {value}, and scores depend on it; use machines of one "
                    "kind"
                )
        streams, head = plan_streams(model, self.dataset)
        needs_head = any(map(uses_head, self.study.regimes)) and self.cell.model_dtype != "fp32"
        if not isinstance(model, BiEncoder) and head is None and needs_head:
            model.head()  # raises the error
        facts = ForwardFacts(
            model.provenance,
            scoring_function(model.provenance, self.cell.model.similarity),
            {stream: batches.inputs for stream, batches in streams.items()},
        )

        def work(part: PartTask | None) -> ForwardFacts | PartOutput:
            return facts if part is None else _run_part(streams[part.stream], part, head)

        return work


def plan_streams(
    model: Reranker | BiEncoder, dataset: RetrievalDataset
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
    try:
        head = model.head()
    except InputError:  # no plain linear layer gives the logits
        head = None
    return {"logits": model.batches(list_pairs(dataset), with_hidden=head is not None)}, head


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


def _run_part(batches: Batches, part: PartTask, head: Head | None) -> PartOutput:
    """Return the output of the model for a part."""
    import torch

    first = part.number * part.step
    numbers = range(first, min(first + part.step, len(batches)))
    outputs = [batches.run(number) for number in numbers]
    places = [i for number in numbers for i in batches.indices[number]]
    tensors = {"index": torch.tensor(places)}
    tensors[part.stream] = torch.cat([output[0] for output in outputs])
    if head is not None:
        in_fp32 = [
            torch_functions.head_logits(hidden, head.weight, head.bias) for _, hidden in outputs
        ]
        tensors["head_logits"] = torch.cat(in_fp32)
    return tensors
