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
        names = read_json(self.folder / "config.json").get("architectures") or [""]
        return str(names[0])

    @cached_property
    def modules(self) -> list[dict[str, Any]]:
        """The module list of a sentence-transformers checkpoint; empty for any other."""
        return list(read_json(self.folder / "modules.json"))

    def _find_kind(self) -> Kind | None:
        """Return the kind of model according to its configuration; None if that is unclear."""
        if self.adapter is not None:
            return ADAPTED_KINDS.get(read_json(self.adapter / ADAPTER).get("task_type"))
        if self.gguf is not None:
            return "yes-no"
        config = read_json(self.folder / "config_sentence_transformers.json")
        own_class = config.get("model_type", "SentenceTransformer")
        if self.modules and own_class == "SentenceTransformer":
            return "bi-encoder"
        if self.architecture.endswith("ForSequenceClassification"):
            return "cross-encoder"
        if self.architecture.endswith(("ForCausalLM", "LMHeadModel")):
            return "yes-no"
        return None

    def choose_kind(self, asked: Kind | None) -> Kind:
        """Return the kind of the model; refuse a kind that its configuration does not allow."""
        own = self._find_kind()
        if own is not None and asked not in (None, own):
            raise InputError(
                f"{self.name!r} is a {own} model ({self.architecture or 'GGUF'}), not a {asked}; "
                f"leave kind out or pass kind={own!r}"
            )
        if own is None and (asked != "bi-encoder" or self.modules or self.adapter):
            raise InputError(
                f"the kind of {self.name!r} is unknown: expected an architecture (config.json) "
                "…ForSequenceClassification or …ForCausalLM, a modules.json of a bi-encoder, or a "
                f"PEFT adapter with the task_type {' or '.join(ADAPTED_KINDS)}, found the "
                f"architecture {self.architecture!r}; pass kind='bi-encoder' to use an encoder "
                "with mean pooling"
            )
        return own or "bi-encoder"

    def weights(self) -> list[Path]:
        """Return the weight files; refuse pickled files."""
        folders = dict.fromkeys([self.folder, *(self.folder / m["path"] for m in self.modules)])
        safe = {folder: sorted(folder.glob("*.safetensors")) for folder in folders}
        pickled = [f for f in folders if not safe[f] and any(f.glob("pytorch_model*.bin"))]
        if pickled or not any(safe.values()):
            place = pickled[0] if pickled else self.folder
            raise InputError(
                f"{place} has no *.safetensors weights, and pickled "
                "weights (*.bin) are not read, because a pickle can run code; download the model "
                "completely, or save it again as safetensors"
            )
        return [file for files in safe.values() for file in files]

    def foreign_classes(self) -> list[str]:
        """Return the module classes of the checkpoint that are not in sentence-transformers.

        sentence-transformers before version 6 imports them from files of a local checkpoint, even
        without ``trust_remote_code``.
        """
        names = [module.get("type") for module in self.modules]
        for path in self.folder.rglob("router_config.json"):
            names += read_json(path).get("types", {}).values()
        for path in self.folder.rglob("wordembedding_config.json"):
            names.append(read_json(path).get("tokenizer_class"))
        return [name for name in names if name and not name.startswith("sentence_transformers.")]


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
    if not path.exists():
        return download(name, revision)
    packed = [file for file in [path, *path.glob("*")] if file.suffix == ".gguf"]
    if len(packed) != 1:
        raise InputError(
            f"{name!r} is not a model: it has no config.json, no modules.json, and {len(packed)} "
            ".gguf files; pass a folder with a model, the path of a .gguf file, or a hub id"
        )
    return Checkpoint(name, packed[0].parent, hash_files(packed), gguf=packed[0].name)


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
        raise InputError(
            f"the model {name!r} is not a local folder, and could not be downloaded from the "
            f"Hugging Face hub ({one_line(error)}); check the spelling, the connection and, for a "
            "gated model, `hf auth login`, or download it elsewhere and pass its folder"
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
