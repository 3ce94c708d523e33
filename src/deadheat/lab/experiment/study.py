"""Studies: models × model dtypes × datasets to run, and how each is scored and measured."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from deadheat._internal.dtypes import parse_float_format, parse_format
from deadheat.errors import InputError, suggest
from deadheat.evaluation import DEFAULT_MEASURES
from deadheat.lab.datasets.load import Candidates
from deadheat.lab.models.device import MODEL_DTYPES, check_model_dtype
from deadheat.lab.models.presets import PRESETS, Kind
from deadheat.measures import Measure, parse_measures
from deadheat.scoring import parse_regime

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Similarity = Literal["dot", "cosine"]
COMPUTE_SETTINGS = ("batch_size", "attention", "threads")
"""Settings of a forward pass that should not change its numbers, but do in low precision."""
DEFAULT_REGIMES = ("native", "hps", "head")
CANDIDATES: tuple[Candidates, ...] = get_args(Candidates)


@dataclass(frozen=True)
class ModelSpec:
    """A model by name, and values that replace those of its checkpoint or preset."""

    name: str
    revision: str | None = None
    kind: Kind | None = None
    base: str | None = None
    """The base model of a PEFT adapter. Default: the one in its configuration."""
    prompt: str | None = None
    """The prompt of a yes/no reranker, with ``{query}`` and ``{document}``."""
    instruction: str | None = None
    max_length: int | None = None
    similarity: Similarity | None = None
    """Product of a bi-encoder: ``dot`` or ``cosine``. Default: ``dot`` if the model normalises
    its embeddings, else ``cosine``."""
    label: str | None = None
    """Name in tables. Default: the last part of the model's name."""

    @property
    def short_name(self) -> str:
        """The name in tables."""
        return self.label or Path(self.name).name


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset by name, with its part and version."""

    name: str
    subset: str | None = None
    split: str | None = None
    revision: str | None = None


@dataclass(frozen=True)
class StudyCell:
    """One forward pass: a model in a dtype over a dataset."""

    model: ModelSpec
    model_dtype: str
    batch_size: int
    attention: str | None
    """The attention kernels: ``eager``, ``sdpa``, …. None is the choice of transformers."""
    threads: int | None
    """Threads of torch on a CPU. None is the choice of torch."""
    dataset: DatasetSpec

    def __str__(self) -> str:
        return f"{self.model.name} in {self.model_dtype} on {self.dataset.name}"


@dataclass(frozen=True)
class Study:
    """Cells to run, and the regimes and measures of their evaluation.

    `Study.of` makes a study from plain values and checks them.

    Attributes
    ----------
    regimes
        Names in `deadheat.scoring.REGIMES`. Bi-encoders have only ``native`` and ``hps``; other
        regimes are skipped. In FP32, ``native``, ``hps`` and ``head`` are the same, called
        ``native``, and the two regimes that rank by log-odds are the same, called ``hps-logit``.
    scoring_dtypes
        Further formats to score the model's output in; each is a regime such as ``scored-fp16``.
    measures, cutoffs
        A measure without a cutoff is evaluated at each of `cutoffs`.
    batch_size, attention, threads
        Settings of forward passes. With several values there are several forward passes, which
        `deadheat.lab.experiment.error_budget` compares.
    max_length
        Longest input, in tokens. Default: that of the model.
    limit
        Number of first queries of a dataset to use. Default: all.
    candidates, depth
        As for `deadheat.lab.datasets.load_dataset`; with ``full``, `depth` is the largest length
        of the ranked lists.
    """

    models: tuple[ModelSpec, ...] = ()
    datasets: tuple[DatasetSpec, ...] = ()
    model_dtypes: tuple[str, ...] = ("bf16", "fp32")
    regimes: tuple[str, ...] = DEFAULT_REGIMES
    scoring_dtypes: tuple[str, ...] = ()
    measures: tuple[str, ...] = DEFAULT_MEASURES
    cutoffs: tuple[int, ...] = ()
    batch_size: tuple[int, ...] = (16,)
    attention: tuple[str, ...] = ()
    threads: tuple[int, ...] = ()
    max_length: int | None = None
    limit: int | None = None
    candidates: Candidates = "given"
    depth: int | None = None
    device: str | None = None
    trust_remote_code: bool = False

    @classmethod
    def of(cls, location: str = "the study", /, **options: object) -> Study:
        """Make a study from plain values, for example those of a TOML file.

        Examples
        --------
        >>> study = Study.of(models=["a/b"], datasets=["c/d"], measures=["nDCG"], cutoffs=[1, 10])
        >>> study.all_measures
        [nDCG@1, nDCG@10]
        >>> Study.of("study.toml", models=["a/b"], dataset=["c/d"])
        Traceback (most recent call last):
        deadheat.errors.InputError: study.toml: unknown key 'dataset'; did you mean 'datasets'?
        """
        study = _make(cls, options, location)
        converted: dict[str, Any] = {
            name: tuple(dict.fromkeys(map(convert, getattr(study, name))))
            for name, convert in _CONVERTERS.items()
        }
        study = replace(study, **converted)
        required = {
            "model": study.models,
            "dataset": study.datasets,
            "model-dtype": study.model_dtypes,
            "regime": study.regimes or study.scoring_dtypes,
            "batch-size": study.batch_size,
        }
        for option, values in required.items():
            if not values:
                raise InputError(f"{location} has no {option}; give at least one (--{option})")
        parse_measures(study.measures)  # refuses unknown measures before anything is run
        return study

    @property
    def all_measures(self) -> list[Measure]:
        """The measures, each at its cutoffs."""
        measures: dict[Measure, None] = {}
        for measure in parse_measures(self.measures):
            fixed = measure.cutoff or not self.cutoffs
            measures |= dict.fromkeys([measure] if fixed else [measure @ k for k in self.cutoffs])
        return list(measures)

    @property
    def cells(self) -> list[StudyCell]:
        """The cells to run, model by model."""
        choices = product(
            self.models,
            self.model_dtypes,
            self.batch_size,
            self.attention or (None,),
            self.threads or (None,),
            self.datasets,
        )
        return [StudyCell(*choice) for choice in choices]


def read_study(path: str | Path, **words: object) -> Study:
    """Read a study from a TOML file whose keys are the fields of `Study`.

    Parameters
    ----------
    path
        The file. A model or dataset in it is a name, or a table of the fields of `ModelSpec` or
        `DatasetSpec`.
    words
        Fields that replace those of the file. A file that sets ``trust_remote_code`` is an error
        unless `trust_remote_code` is also passed here: a file alone cannot make code run.
    """
    try:
        options = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, too deep
        raise InputError(f"{path}: not valid TOML ({error})") from None
    study = Study.of(str(path), **{**options, **words})
    if study.trust_remote_code and "trust_remote_code" not in words:
        names = ", ".join(repr(model.name) for model in study.models)
        raise InputError(
            f"{path}: trust_remote_code = true would run the code that comes with {names}, but a "
            "file alone cannot allow that; read the code, then pass --trust-remote-code (in "
            "Python: read_study(path, trust_remote_code=True)), or remove the key from the file"
        )
    return study


def paper_study(**words: object) -> Study:
    """Return the study of the paper: its five models and two datasets in three model dtypes.

    Parameters
    ----------
    words
        Fields that replace those of the paper.
    """
    options = {
        "models": [preset.names[0] for preset in PRESETS],
        "datasets": [
            {"name": "mteb/MIRACLReranking", "subset": "en", "split": "dev"},
            {"name": "mteb/AskUbuntuDupQuestions", "split": "test"},
        ],
        "model_dtypes": MODEL_DTYPES,
        "measures": ["nDCG", "MRR", "MAP", "Recall"],
        "cutoffs": range(1, 101),
    }
    return Study.of("the study of the paper", **{**options, **words})


def _model_dtype(name: object) -> str:
    """Return the name of a format in which a model can run."""
    dtype = parse_format(name).name
    check_model_dtype(dtype)
    return dtype


_CONVERTERS: dict[str, Callable[[Any], str]] = {
    "model_dtypes": _model_dtype,
    "regimes": parse_regime,
    "scoring_dtypes": lambda name: parse_float_format(name).name,
}
Declared = TypeVar("Declared", Study, ModelSpec, DatasetSpec)


def _make(kind: type[Declared], options: Mapping[str, object], location: str) -> Declared:
    """Make a study or a part of it from plain values, which must have the declared types."""
    hints = get_type_hints(kind)
    for key in options:
        if key not in hints:
            hint = suggest(key, hints) or f"; known keys: {', '.join(hints)}"
            raise InputError(f"{location}: unknown key {key!r}{hint}")
    return kind(
        **{key: _read(hints[key], value, f"{location}: {key}") for key, value in options.items()}
    )


def _read(hint: Any, value: object, at: str) -> Any:
    """Return a value of the declared type; a single value is a list of one."""
    kinds = get_args(hint)
    if get_origin(hint) is tuple:
        several = isinstance(value, Iterable) and not isinstance(value, (str, Mapping))
        values: Iterable[object] = value if several else [value]  # type: ignore[assignment]
        return tuple(dict.fromkeys(_read(kinds[0], item, at) for item in values))
    if type(None) in kinds:
        return None if value is None else _read(kinds[0], value, at)
    if hint in (ModelSpec, DatasetSpec):
        options = {"name": value} if isinstance(value, str) else value
        if isinstance(options, Mapping) and options.get("name"):
            return _make(hint, options, at)
        if not isinstance(value, hint):
            raise InputError(f"{at} must contain names, or tables with a name, not {value!r}")
    elif get_origin(hint) is Literal:
        if value not in kinds:
            raise InputError(f"{at} must be one of {', '.join(kinds)}, not {value!r}")
    elif type(value) is not hint:  # not isinstance: True is an int
        word = {str: "text", int: "a whole number", bool: "true or false"}[hint]
        raise InputError(f"{at} must be {word}, not {value!r}")
    elif hint is int and value < 1:  # type: ignore[operator]
        raise InputError(f"{at} must be at least 1, not {value}")
    return value
