"""``load_model``: load a model of any kind."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from deadheat._internal.dtypes import FORMATS
from deadheat._internal.packages import find_versions, require
from deadheat.errors import InputError, one_line
from deadheat.formats import open_safetensors
from deadheat.lab.models.biencoders import BiEncoder, find_own_prompt
from deadheat.lab.models.checkpoint import Checkpoint, find_checkpoint
from deadheat.lab.models.device import check_model_dtype, choose_device
from deadheat.lab.models.presets import (
    Kind,
    PairPrompt,
    Preset,
    TextPrompt,
    find_preset,
    with_instruction,
)
from deadheat.lab.models.rerankers import (
    ClassifierReranker,
    Reranker,
    YesNoReranker,
    make_chat_prompt,
    split_prompt,
)
from deadheat.provenance import ModelProvenance

PACKAGES = ("torch", "transformers", "sentence-transformers", "tokenizers", "deadheat")
HEAD_WEIGHT = re.compile(r"\.(score|classifier|out_proj)\.weight$")
"""Names of the last layer of a classifier in transformers."""
_PROMPTS: dict[Kind, tuple[type, ...]] = {
    "cross-encoder": (),
    "yes-no": (PairPrompt, str),
    "bi-encoder": (TextPrompt,),
}
"""Types of the prompts of each kind of model."""
# Position embeddings of these models begin after the padding index.
OFFSET_POSITIONS = {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer"}


def load_model(
    name_or_path: str | PathLike[str],
    *,
    model_dtype: str,
    kind: Kind | None = None,
    device: str | None = None,
    batch_size: int = 16,
    max_length: int | None = None,
    attn_implementation: str | None = None,
    trust_remote_code: bool = False,
    revision: str | None = None,
    prompt: str | PairPrompt | TextPrompt | None = None,
    instruction: str | None = None,
    base: str | None = None,
) -> Reranker | BiEncoder:
    """Load a reranker or a bi-encoder from the hub, a folder or a GGUF file.

    Only safetensors and GGUF weights are read, never pickled ones.

    Parameters
    ----------
    name_or_path
        Hub id, local folder, ``.gguf`` file, or ``owner/repository/file.gguf``. A PEFT adapter is
        merged into its base model in FP32, then cast to `model_dtype`.
    model_dtype
        ``fp32``, ``bf16`` or ``fp16``: the format of weights and computation. GGUF weights are
        expanded to it.
    kind
        ``cross-encoder``, ``yes-no`` or ``bi-encoder``. Default: read from the checkpoint.
    device
        ``cpu``, ``cuda``, ``cuda:1``, ``mps``. Default: the fastest available.
    batch_size
        Inputs per forward pass. Low-precision results depend on it; the paper uses 16.
    max_length
        Longest input in tokens, including the prompt. Default: that of the preset, else that of
        the checkpoint.
    attn_implementation
        ``eager``, ``sdpa``, ``flash_attention_2``…. Default: the choice of transformers.
    trust_remote_code
        Whether to run Python code that comes with the checkpoint. Default: False.
    revision
        Branch, tag or commit of the hub.
    prompt
        For a yes/no reranker, the whole text with ``{query}`` and ``{document}``, or a
        `PairPrompt`; for a bi-encoder, a `TextPrompt`. Default: that of the preset, else that of
        the checkpoint.
    instruction
        The task sentence inside the prompt, for models whose prompt has one.
    base
        The base model of a PEFT adapter. Default: the one in its configuration.
    """
    require("torch", "running a model")
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, not {batch_size}")
    name = str(name_or_path)
    device = choose_device(device)
    check_model_dtype(model_dtype)
    checkpoint = find_checkpoint(name, revision, base)
    preset = find_preset(name) or Preset(names=())
    kind = checkpoint.choose_kind(kind or preset.kind)
    accepted = _PROMPTS[kind]
    if prompt is not None and not isinstance(prompt, accepted):
        names = " or ".join(own.__name__ for own in accepted) or "no prompt"
        raise InputError(f"a {kind} model takes {names}, not {type(prompt).__name__}")
    if kind == "cross-encoder" and instruction is not None:
        raise InputError(f"{name!r} is a cross-encoder, which has no instruction; leave it out")
    prompt = prompt or preset.prompt
    options: dict[str, object] = {
        "dtype": FORMATS[model_dtype].torch,
        "use_safetensors": checkpoint.gguf is None,
        "trust_remote_code": trust_remote_code,
    }
    if attn_implementation is not None:
        options["attn_implementation"] = attn_implementation
    if kind == "bi-encoder":
        encoder = _load_bi_encoder(checkpoint, preset.pooling or "mean", options, device)
        config, own_length = encoder[0].auto_model.config, encoder.max_seq_length
    else:
        model, tokenizer = _load_reranker(checkpoint, kind, options, device)
        config, own_length = model.config, tokenizer.model_max_length
    settings = ModelProvenance(
        model=name,
        revision=checkpoint.revision,
        kind=kind,
        model_dtype=model_dtype,
        device=device,
        batch_size=batch_size,
        max_length=_choose_length(max_length, preset.max_length or own_length, config),
        attn_implementation=str(config._attn_implementation),
        trust_remote_code=trust_remote_code,
        versions=installed_versions(),
    )
    if kind == "cross-encoder":
        return ClassifierReranker(model, tokenizer, settings)
    if kind == "yes-no":
        if isinstance(prompt, str):
            prompt = split_prompt(prompt, tokenizer)
        pair = prompt if isinstance(prompt, PairPrompt) else make_chat_prompt(tokenizer, name)
        return YesNoReranker(model, tokenizer, settings, with_instruction(pair, instruction))
    text = prompt if isinstance(prompt, TextPrompt) else find_own_prompt(encoder)
    bare = not checkpoint.modules
    return BiEncoder(encoder, settings, with_instruction(text, instruction), normalize=bare)


def installed_versions() -> dict[str, str]:
    """Return the versions of the packages that compute logits and embeddings."""
    return find_versions(PACKAGES)


def _load_reranker(
    checkpoint: Checkpoint, kind: Kind, options: dict[str, object], device: str
) -> tuple[Any, Any]:
    """Return the model and its tokenizer."""
    transformers = require("transformers", "running a reranker")
    auto = (
        transformers.AutoModelForSequenceClassification
        if kind == "cross-encoder"
        else transformers.AutoModelForCausalLM
    )
    folder, adapter, dtype = checkpoint.folder, checkpoint.adapter, options["dtype"]
    file: dict[str, object] = {}
    if checkpoint.gguf is not None:
        require("gguf", "reading a GGUF file")
        file = {"gguf_file": checkpoint.gguf}
        if hasattr(transformers, "GgufConfig"):  # else weights may stay packed, computed in FP32
            options = {**options, "quantization_config": transformers.GgufConfig(dequantize=True)}
    saved: dict[str, Any] = {}
    if adapter is not None:
        peft = require("peft", "running a PEFT adapter")
        options = {**options, "dtype": FORMATS["fp32"].torch}  # merged in FP32, cast afterwards
        saved = _read_shapes(adapter)
        heads = [shape[0] for name, shape in saved.items() if HEAD_WEIGHT.search(name)]
        if kind == "cross-encoder" and heads:
            options["num_labels"] = heads[-1]
    trust = {"trust_remote_code": options["trust_remote_code"]}
    with _explain_errors(checkpoint):
        if adapter is not None and (adapter / "tokenizer_config.json").is_file():
            tokenizer = transformers.AutoTokenizer.from_pretrained(adapter, **trust)
        else:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **file, **trust)
        model, report = auto.from_pretrained(folder, output_loading_info=True, **file, **options)
        missing = [
            key for key in sorted(report["missing_keys"]) if not any(s.endswith(key) for s in saved)
        ]
        if adapter is not None and not missing:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of peft about transformers
                warnings.filterwarnings("error", ".*Found missing adapter keys")
                model = peft.PeftModel.from_pretrained(model, adapter).merge_and_unload()
            for weight in model.parameters():  # buffers stay in FP32, as in a merged checkpoint
                weight.data = weight.data.to(dtype)
        model.to(device).eval()
    if missing:
        raise InputError(
            f"{checkpoint.name!r} has no weights for {', '.join(missing)}; they would be random, "
            f"so it cannot be used as a {kind}"
        )
    return model, tokenizer


def _read_shapes(folder: Path) -> dict[str, Any]:
    """Return the shapes of the tensors of a PEFT adapter by their names."""
    shapes = {}
    for path in folder.glob("*.safetensors"):
        with open_safetensors(path) as file:
            shapes.update({name: file.get_slice(name).get_shape() for name in file.keys()})  # noqa: SIM118
    return shapes


def _load_bi_encoder(
    checkpoint: Checkpoint, pooling: str, options: dict[str, object], device: str
) -> Any:
    """Return the model; `pooling` is used if the checkpoint has no modules.json."""
    library = require("sentence_transformers", "running a bi-encoder")
    if not options["trust_remote_code"] and checkpoint.foreign_classes():
        raise _untrusted_code(checkpoint)
    with _explain_errors(checkpoint):
        model = library.SentenceTransformer(
            str(checkpoint.folder),
            device=device,
            trust_remote_code=options["trust_remote_code"],
            model_kwargs=options,
        )
    if not hasattr(model[0], "auto_model"):
        raise InputError(
            f"{checkpoint.name!r} begins with {type(model[0]).__name__}, not with a transformer, "
            "so its model dtype and attention cannot be set; choose another checkpoint"
        )
    if not checkpoint.modules:
        model[1] = type(model[1])(model[0].auto_model.config.hidden_size, pooling)
    for module in list(model)[1:]:
        module.to(dtype=options["dtype"])
    return model.eval()


def _choose_length(asked: int | None, usual: int | None, config: Any) -> int:
    limit = getattr(config, "max_position_embeddings", None) or 10**6
    if config.model_type in OFFSET_POSITIONS:
        limit -= (config.pad_token_id or 0) + 1
    if asked is not None and not 2 <= asked <= limit:
        raise InputError(
            f"max_length {asked} is outside the range of this model; use 2 to {limit} tokens"
        )
    return int(asked or min(usual or limit, limit))


@contextmanager
def _explain_errors(checkpoint: Checkpoint) -> Iterator[None]:
    """Turn the errors of a library that loads a checkpoint into an InputError with advice."""
    try:
        yield
    except Exception as error:  # transformers, tokenizers and safetensors each have their own
        if "trust_remote_code" in str(error):
            raise _untrusted_code(checkpoint) from error
        raise InputError(
            f"{checkpoint.name!r} cannot be loaded ({one_line(error)}); check that the checkpoint "
            "is complete and that transformers supports it with this attention (eager and sdpa "
            "need no further package)"
        ) from error


def _untrusted_code(checkpoint: Checkpoint) -> InputError:
    return InputError(
        f"{checkpoint.name!r} contains its own code, which is not run by default; read the code, "
        "then pass --trust-remote-code (in Python: trust_remote_code=True)"
    )
