"""The forward pass of a cell, part by part, in whatever process runs it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.lab.datasets import RetrievalDataset
from deadheat.lab.experiment.derive import group_texts
from deadheat.lab.experiment.study import ModelSpec, Study, StudyCell
from deadheat.lab.models.batching import NotFiniteError
from deadheat.lab.models.checkpoint import find_checkpoint
from deadheat.lab.models.device import choose_device
from deadheat.lab.models.loading import installed_versions
from deadheat.provenance import InputFacts, ModelProvenance
from deadheat.scoring.regimes import resolve_backend

if TYPE_CHECKING:
    import torch

    from deadheat.lab.models import Batches, BiEncoder, Head, Reranker


@dataclass(frozen=True)
class Environment:
    """What the outputs of a model depend on besides texts and settings: where it runs."""

    revision: str
    """Of the checkpoint that is found there."""
    device: str
    backend: str
    threads: int
    """On a CPU, FP32 sums depend on how many threads share them."""
    versions: Mapping[str, str]


def find_environment(model: ModelSpec, device: str | None) -> Environment:
    """Return the environment of the machine that this is called on."""
    return _environment(find_checkpoint(model.name, model.revision).revision, device)


def _environment(revision: str, device: str | None) -> Environment:
    import torch

    versions = {name: v for name, v in installed_versions().items() if name != "deadheat"}
    threads = torch.get_num_threads()
    return Environment(revision, choose_device(device), resolve_backend(), threads, versions)


def use_threads(threads: int) -> int:
    """Set the number of threads of torch, and return the one before."""
    import torch

    before = torch.get_num_threads()
    if threads != before:
        torch.set_num_threads(threads)
    return before


@dataclass(frozen=True)
class PartTask:
    """Some consecutive batches of a stream of inputs: what is run and stored together."""

    stream: str
    """``logits``, or ``queries`` or ``documents``."""
    number: int
    step: int
    """Batches in a part."""


@dataclass(frozen=True)
class PartOutput:
    """The output of the model for a part."""

    tensors: dict[str, torch.Tensor]
    """The inputs' places, and a row for each in every other tensor."""
    halved: dict[str, int]


@dataclass(frozen=True)
class ForwardFacts:
    """What is known of a forward pass once the model is loaded and the inputs are tokenized."""

    model: ModelProvenance
    function: str
    """What makes scores of the model's output."""
    inputs: dict[str, InputFacts]
    """Per stream of inputs."""


@dataclass(frozen=True)
class ForwardPass:
    """The forward pass of a cell; calling it makes a worker for parts of it."""

    study: Study
    cell: StudyCell
    dataset: RetrievalDataset
    environment: Environment
    """That of every machine that takes part."""
    load: Callable[[], Reranker | BiEncoder]

    def __call__(self) -> Callable[[PartTask | None], ForwardFacts | PartOutput]:
        """Make a worker: it returns the output of a part or, for None, the facts of the whole."""
        use_threads(self.environment.threads)
        model = self.load()
        here = asdict(_environment(model.provenance.revision, self.study.device))
        for name, value in asdict(self.environment).items():
            if here[name] != value:
                raise InputError(
                    f"{platform.node()} differs from the machine of the first worker: its {name} "
                    f"is {here[name]} and not {value}; the scores would depend on which of them "
                    "ran what, so use machines of one kind"
                )
        return _Worker(self, model).work


class _Worker:
    def __init__(self, whole: ForwardPass, model: Reranker | BiEncoder) -> None:
        kind = model.provenance.kind
        if kind != "bi-encoder" and whole.dataset.candidates is None:
            raise InputError(
                f"a {kind} would read every document with every query: full-corpus candidates are "
                "for bi-encoders, choose --candidates bm25"
            )
        self._study, self._cell, self._dataset = whole.study, whole.cell, whole.dataset
        self._model: Any = model
        self._streams = self._inputs(kind)

    def work(self, part: PartTask | None) -> ForwardFacts | PartOutput:
        """Return the output of the model for a part; without one, the facts of the whole."""
        if part is None:
            model = self._model.provenance
            inputs = {
                stream: InputFacts(plan.inputs.count, plan.inputs.truncated)
                for stream, plan in self._plans.items()
            }
            return ForwardFacts(model, self._function(model), inputs)
        batches = self._plans[part.stream].resume(part.number * part.step)
        try:
            outputs = list(islice(batches, part.step))
        except NotFiniteError as error:
            raise InputError(f"{self._name_input(part.stream, error.index)}: {error}") from None
        return PartOutput(
            _join_tensors(part.stream, outputs, self._head), dict(batches.inputs.halved)
        )

    @cached_property
    def _plans(self) -> dict[str, Batches[Any]]:
        """Batches of every stream of inputs."""
        return {stream: self._plan(stream, texts) for stream, texts in self._streams.items()}

    def _plan(self, stream: str, texts: Sequence[Any]) -> Batches[Any]:
        batches: Batches[Any] = (
            self._model.batches(texts, with_hidden=self._head is not None)
            if stream == "logits"
            else self._model.batches(texts, "query" if stream == "queries" else "document")
        )
        return batches

    @cached_property
    def _head(self) -> Head | None:
        """The last layer of a reranker; None where it has none and none is asked for."""
        if self._model.provenance.kind == "bi-encoder":
            return None
        try:
            head: Head = self._model.head()
            return head
        except InputError:
            if "head" in self._study.regimes and self._cell.model_dtype != "fp32":
                raise
            return None

    def _function(self, model: ModelProvenance) -> str:
        """Return the function that makes scores of the model's output."""
        if model.outputs:
            return "sigmoid" if len(model.outputs) == 1 else "softmax"
        return self._cell.model.similarity or ("dot" if model.normalised else "cosine")

    def _inputs(self, kind: str) -> dict[str, list[Any]]:
        """Return what a model of this kind reads: streams of texts, or of pairs of them."""
        queries, corpus = self._dataset.queries, self._dataset.corpus
        if kind == "bi-encoder":
            documents = list(group_texts(self._dataset))
            return {"queries": list(queries.values()), "documents": documents}
        return {"logits": [(queries[query], corpus[doc]) for query, doc in self._pairs()]}

    def _pairs(self) -> list[tuple[str, str]]:
        lists = self._dataset.candidates or {}
        return [(query, doc) for query, documents in lists.items() for doc in documents]

    def _name_input(self, stream: str, index: int) -> str:
        """Name one input of a stream."""
        if stream == "logits":
            query, doc = self._pairs()[index]
            return f"query {query!r} with document {doc!r}"
        if stream == "queries":
            return f"query {list(self._dataset.queries)[index]!r}"
        return f"document {list(group_texts(self._dataset).values())[index][0]!r}"


def _join_tensors(
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
