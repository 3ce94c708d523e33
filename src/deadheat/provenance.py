"""Provenance of outputs, scores and results.

Facts that code uses have their own fields; free text is for readers only.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from deadheat.errors import InputError
from deadheat.settings import EvalSettings

R = TypeVar("R", bound="Record")


class Record:
    """A dataclass of plain values that can be written to and read from JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, lists and dicts."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # type: ignore[call-overload]
        return plain

    @classmethod
    def from_dict(cls: type[R], data: object) -> R:
        """Read the output of `to_dict`; raise `InputError` for anything else."""
        record: R = _read(cls, data, cls.__name__)
        return record

    def flat(self) -> dict[str, str]:
        """Return every fact as text; nested facts have names such as ``model.batch_size``.

        >>> Provenance(run="a.run", dataset=DatasetProvenance("cranfield")).flat()["dataset.name"]
        'cranfield'
        """
        return {name: str(value) for name, value in flatten(self.to_dict()) if value is not None}


@dataclass(frozen=True)
class DatasetProvenance(Record):
    """The dataset that a number was computed on."""

    name: str
    """The hub id, the name of the folder, or the ``ir_datasets:`` id."""
    subset: str | None = None
    split: str | None = None
    revision: str | None = None
    """Commit of the hub; None if unknown."""
    content_hash: str | None = None
    """SHA-256 of texts, candidates and judgements, independent of the file format."""
    candidates: str | None = None
    """How the candidates were selected, as text."""
    queries: int | None = None
    documents: int | None = None
    pairs: int | None = None
    cut_inside_ties: int = 0
    """Number of queries whose candidate list was cut inside a tie group."""
    unreachable: int = 0
    """Number of queries without a relevant candidate; they are kept, and score 0."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What was dropped when the dataset was loaded: kind → number."""

    def __str__(self) -> str:
        return " ".join(part for part in (self.name, self.subset, self.split) if part)


@dataclass(frozen=True)
class ModelProvenance(Record):
    """All settings that a logit or an embedding depends on, besides the texts."""

    model: str
    """Hub id or path, as given."""
    revision: str
    """Commit of the hub, or ``sha256:…`` of the weight files of a local checkpoint."""
    kind: str
    """``cross-encoder``, ``yes-no`` or ``bi-encoder``."""
    model_dtype: str
    """``fp32``, ``bf16`` or ``fp16``."""
    device: str
    batch_size: int
    """Batch size. Low-precision outputs depend on it, and on `max_length`."""
    max_length: int
    attn_implementation: str
    """The attention kernels that transformers used."""
    trust_remote_code: bool
    outputs: tuple[str, ...] = ()
    """Names of the logits in the order of their columns; empty for a bi-encoder."""
    normalised: bool = False
    """Whether the model returns embeddings of length 1, up to the precision of its dtype."""
    pooling: str | None = None
    """How token states are pooled into an embedding, as text."""
    prompt: Mapping[str, str] | None = None
    """The prompt templates of queries and documents."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the libraries that compute the numbers."""


@dataclass(frozen=True)
class InputFacts(Record):
    """Facts about the inputs of a forward pass."""

    count: int
    truncated: int = 0
    """Inputs that were cut at the model's `max_length`."""
    halved: Mapping[str, int] = field(default_factory=dict)
    """Batches that version 0.1 split: number of the batch → size of a part."""


@dataclass(frozen=True)
class ScoringProvenance(Record):
    """How scores were computed from a model's output."""

    regime: str
    """``native``, ``hps``, ``head``, or ``scored-FORMAT`` for scoring in a further format."""
    model_dtype: str
    scoring_dtype: str
    function: str | None = None
    """``sigmoid``, ``softmax``, ``dot``, ``cosine`` or ``hamming``."""
    backend: str | None = None
    """``torch`` or ``numpy``."""
    threads: int | None = None
    """Number of threads. FP32 sums on a CPU depend on it."""

    def __str__(self) -> str:
        return (
            f"model dtype {self.model_dtype}, scoring dtype {self.scoring_dtype}, "
            f"regime {self.regime}"
        )


@dataclass(frozen=True)
class ScoreFacts(Record):
    """Numbers of scores and of ties."""

    documents: int
    distinct: int
    """Number of distinct scores per query, summed over queries."""
    largest: int
    """Number of documents in the largest tie group."""
    judged_only: bool = False
    """Whether only tie groups with a judged document were counted, as on a corpus too large to
    sort. The numbers are then about these groups."""


@dataclass(frozen=True)
class Provenance(Record):
    """Provenance of a result."""

    run: str = "run"
    """The run: a path, or a name."""
    qrels: str | None = None
    """The source of the judgements; None if they have none."""
    settings: EvalSettings = field(default_factory=EvalSettings)
    """Options of the evaluation."""
    dataset: DatasetProvenance | None = None
    model: ModelProvenance | None = None
    scoring: ScoringProvenance | None = None
    inputs: Mapping[str, InputFacts] = field(default_factory=dict)
    """Per stream of inputs of the forward pass: ``logits``, ``queries``, ``documents``."""
    scores: ScoreFacts | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of deadheat and of the packages that computed the result."""
    label: str | None = None
    """The user's name for the run."""

    @classmethod
    def from_dict(cls, data: object) -> Provenance:
        """Read the output of `to_dict`, also of version 0.1, whose settings were fields here."""
        own = {declared.name for declared in fields(EvalSettings)}
        if isinstance(data, Mapping) and not own.isdisjoint(data):
            rest = {name: value for name, value in data.items() if name not in own}
            data = rest | {"settings": {name: data[name] for name in own & data.keys()}}
        return super().from_dict(data)

    @property
    def judgements(self) -> str | None:
        """Name of the judgements: the dataset if it is known, else their source."""
        return self.qrels if self.dataset is None else str(self.dataset)


def flatten(data: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the dotted name and the value of every leaf of nested dicts.

    >>> list(flatten({"a": {"b": 1}, "c": 2}))
    [('a.b', 1), ('c', 2)]
    """
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _read(hint: Any, value: object, name: str) -> Any:
    """Convert a value from JSON to the type that a field declares."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        present = next(option for option in arguments if option is not type(None))
        return None if value is None else _read(present, value, name)
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, Mapping):
        known = {declared.name for declared in fields(hint)}
        if unknown := sorted(map(str, value.keys() - known)):
            raise _other_version(name, f"an unknown {unknown[0]!r}")
        hints = get_type_hints(hint)
        given = {key: _read(hints[key], item, f"{name}.{key}") for key, item in value.items()}
        try:
            return hint(**given)
        except TypeError as error:  # a field is missing
            raise _other_version(name, str(error)) from None
    if origin is not None and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return {str(key): _read(arguments[1], item, f"{name}.{key}") for key, item in value.items()}
    if origin is tuple and isinstance(value, list):
        return tuple(_read(arguments[0], item, name) for item in value)
    if hint is float and type(value) is int:
        with suppress(OverflowError):
            return float(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise _other_version(name, f"{value!r:.60}")


def _other_version(name: str, what: str) -> InputError:
    return InputError(
        f"{name} has {what}, which this version of deadheat does not write: read the file with the "
        "version that wrote it, or evaluate again"
    )
