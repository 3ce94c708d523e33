"""Find the files of a checkpoint by its name, and its kind of model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from deadheat._internal.packages import require
from deadheat.errors import InputError, one_line
from deadheat.lab.models.presets import Kind

ADAPTER = "adapter_config.json"
ADAPTED_KINDS: dict[str, Kind] = {"CAUSAL_LM": "yes-no", "SEQ_CLS": "cross-encoder"}
"""Kinds of model by the task of a PEFT adapter."""
# Pickled weights (*.bin, *.pt) are never downloaded.
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja", "*.py"]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on this machine: a folder, and for a GGUF model the file in it.

    For a PEFT adapter, the folder is that of its base model.
    """

    name: str
    folder: Path
    revision: str
    gguf: str | None = None
    adapter: Path | None = None
    """The folder of the adapter."""

    @cached_property
    def architecture(self) -> str:
        """The class name in ``config.json``; empty if there is none."""
        names = self._json("config.json").get("architectures") or [""]
        return str(names[0])

    @cached_property
    def modules(self) -> list[dict[str, Any]]:
        """The module list of a sentence-transformers checkpoint; empty for any other."""
        return list(self._json("modules.json"))

    @property
    def kind(self) -> Kind | None:
        """The kind of model according to its configuration; None if that is unclear."""
        if self.adapter is not None:
            return ADAPTED_KINDS.get(read_json(self.adapter / ADAPTER).get("task_type"))
        if self.gguf is not None:
            return "yes-no"
        config = self._json("config_sentence_transformers.json")
        if (
            self.modules
            and config.get("model_type", "SentenceTransformer") == "SentenceTransformer"
        ):
            return "bi-encoder"
        if self.architecture.endswith("ForSequenceClassification"):
            return "cross-encoder"
        if self.architecture.endswith(("ForCausalLM", "LMHeadModel")):
            return "yes-no"
        return None

    def check_kind(self, asked: Kind | None) -> Kind:
        """Return the kind of the model; refuse a kind that its configuration does not allow."""
        own = self.kind
        if own is None and self.adapter is not None:
            tasks = " or ".join(ADAPTED_KINDS)
            raise InputError(
                f"{self.name!r} is a PEFT adapter whose task_type is not {tasks}; merge it into "
                "its base model (merge_and_unload), save that, and pass the folder"
            )
        if own is None and (asked != "bi-encoder" or self.modules):
            raise InputError(
                f"the kind of {self.name!r} is unknown: the architecture in its config.json is "
                f"{self.architecture or '(none)'!r}, not …ForSequenceClassification or "
                "…ForCausalLM (rerankers), and it has no modules.json (bi-encoders); pass "
                "kind='bi-encoder' to use an encoder with mean pooling"
            )
        if own is not None and asked is not None and asked != own:
            raise InputError(
                f"{self.name!r} is a {own} model ({self.architecture or 'GGUF'}), not a {asked}; "
                f"leave kind out or pass kind={own!r}"
            )
        return asked or own or "bi-encoder"

    def weights(self) -> list[Path]:
        """Return the weight files; refuse pickled files."""
        files: list[Path] = []
        for folder in {self.folder: None, **{self.folder / m["path"]: None for m in self.modules}}:
            safe = sorted(folder.glob("*.safetensors"))
            pickled = [] if safe else sorted(folder.glob("pytorch_model*.bin"))
            if pickled:
                raise InputError(
                    f"{pickled[0]} is not read, because a pickle can run code; save the model "
                    "again as safetensors"
                )
            files += safe
        if not files:
            raise InputError(
                f"{self.name!r} has no *.safetensors weights, and pickled weights are not read; "
                "download it completely, or save it again as safetensors"
            )
        return files

    def foreign_classes(self) -> list[str]:
        """Return the module classes of the checkpoint that are not in sentence-transformers.

        sentence-transformers before version 6 imports them from files of a local checkpoint, even
        without ``trust_remote_code``.
        """
        names = [module.get("type") for module in self.modules]
        for path in self.folder.rglob("router_config.json"):
            names += self._json(path.relative_to(self.folder)).get("types", {}).values()
        for path in self.folder.rglob("wordembedding_config.json"):
            names.append(self._json(path.relative_to(self.folder)).get("tokenizer_class"))
        return [name for name in names if name and not name.startswith("sentence_transformers.")]

    def _json(self, name: str | Path) -> Any:
        return read_json(self.folder / name)


def read_json(path: Path) -> Any:
    """Read a configuration file; a missing file is treated as empty."""
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}); download the model again") from error


def find_checkpoint(name: str, revision: str | None, base: str | None = None) -> Checkpoint:
    """Find a checkpoint: a local folder or GGUF file, else the hub (or its cache).

    The name of a GGUF file on the hub is ``owner/repository/file.gguf``. `base` is the base model
    of a PEFT adapter. Default: the one in its configuration.
    """
    own = _find_own(name, revision)
    if own.modules or not (own.folder / ADAPTER).is_file():
        if base is not None:
            raise InputError(f"{name!r} is not a PEFT adapter (no {ADAPTER}); leave base out")
        return own
    config = read_json(own.folder / ADAPTER)
    trained_on = base or config.get("base_model_name_or_path")
    if not trained_on:
        raise InputError(f"{own.folder / ADAPTER} contains no base model; pass one (--base)")
    try:
        found = _find_own(trained_on, None if base else config.get("revision"))
    except InputError as error:
        raise InputError(f"the base of {name!r}: {error} (choose another with --base)") from error
    revision = f"{own.revision}+{found.revision}"
    return replace(found, name=name, revision=revision, adapter=own.folder)


def _find_own(name: str, revision: str | None) -> Checkpoint:
    path = Path(name).expanduser()
    if any((path / file).is_file() for file in ("config.json", "modules.json", ADAPTER)):
        checkpoint = Checkpoint(name, path, revision="")
        return replace(checkpoint, revision=hash_files(checkpoint.weights()))
    if path.is_dir():
        packed = sorted(path.glob("*.gguf"))
        if len(packed) != 1:
            raise InputError(
                f"the folder {name!r} contains no single model: no config.json, no modules.json, "
                f"and {len(packed)} .gguf files; pass another folder or the path of a .gguf file"
            )
        path = packed[0]
    if path.is_file() and path.suffix == ".gguf":
        return Checkpoint(name, path.parent, hash_files([path]), gguf=path.name)
    if path.exists():
        raise InputError(f"{name!r} is not a model; pass a folder, a .gguf file or a hub id")
    return download(name, revision)


def download(name: str, revision: str | None) -> Checkpoint:
    """Download a checkpoint from the Hugging Face hub, or find it in the hub's cache."""
    hub = require("huggingface_hub", "loading a model from the hub")
    is_gguf = name.endswith(".gguf")
    repository, _, file = name.rpartition("/") if is_gguf else (name, "", "")
    try:
        folder = hub.snapshot_download(
            repository, revision=revision, allow_patterns=[file] if is_gguf else HUB_FILES
        )
    except Exception as error:  # every network library underneath has its own exceptions
        offline = (hub.errors.LocalEntryNotFoundError, hub.errors.OfflineModeIsEnabled)
        if isinstance(error, offline):
            reason = "the Hugging Face hub cannot be reached"
        else:
            reason = f"it could not be downloaded from the Hugging Face hub ({one_line(error)})"
        raise InputError(
            f"the model {name!r} is not a local folder, and {reason}; check the spelling, the "
            "connection and, for a gated model, `hf auth login`, or download it elsewhere and pass "
            "its folder"
        ) from error
    checkpoint = Checkpoint(name, Path(folder), Path(folder).name, gguf=file or None)
    if not is_gguf:
        checkpoint.weights()
    return checkpoint


def hash_files(files: list[Path]) -> str:
    """Return a hash of weight files, to detect a changed local checkpoint."""
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 22):
                total.update(chunk)
    return f"sha256:{total.hexdigest()[:32]}"
