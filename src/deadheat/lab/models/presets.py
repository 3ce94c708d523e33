"""The models of the paper: prompts, pooling and lengths from the documentation of their authors.

A checkpoint is recognised by its name: the hub id, a local folder of the same name, or a folder of
the hub's cache. Every value can be overridden in :func:`deadheat.lab.models.load_model`. Lengths
are those of the paper (Appendix E.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from deadheat.errors import InputError

Kind = Literal["cross-encoder", "yes-no", "bi-encoder"]

SEARCH_INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
JUDGE = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".'
)
PAIR_BODY = "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"


@dataclass(frozen=True)
class PairPrompt:
    """The prompt of a yes/no reranker: ``prefix``, ``body`` and ``suffix``.

    ``{instruction}``, ``{query}`` and ``{document}`` in the body are replaced. All other text is
    used literally, including special tokens. If an input is too long, only the body is truncated,
    so the question to the model is always complete.
    """

    prefix: str
    body: str = PAIR_BODY
    suffix: str = ""
    instruction: str = SEARCH_INSTRUCTION
    yes: str = "yes"
    no: str = "no"

    def fill(self, query: str, document: str) -> str:
        """Return the body for one pair; braces inside the texts are not replaced."""
        values = {"instruction": self.instruction, "query": query, "document": document}
        return re.sub(r"\{(instruction|query|document)\}", lambda m: values[m[1]], self.body)


@dataclass(frozen=True)
class TextPrompt:
    """The prompts of a bi-encoder: text before a query and before a document."""

    query: str = ""
    document: str = ""
    instruction: str = SEARCH_INSTRUCTION

    @property
    def query_prefix(self) -> str:
        """The query prompt with its instruction filled in."""
        return self.query.replace("{instruction}", self.instruction)


Prompt = TypeVar("Prompt", PairPrompt, TextPrompt)


def with_instruction(prompt: Prompt, instruction: str | None) -> Prompt:
    """Return the prompt with another instruction; refuse a prompt without ``{instruction}``."""
    if instruction is None:
        return prompt
    template = prompt.body if isinstance(prompt, PairPrompt) else prompt.query
    if "{instruction}" not in template:
        raise InputError(
            f"the prompt {template!r} does not contain '{{instruction}}', so the instruction "
            f"{instruction!r} cannot be used; pass another prompt, or no instruction"
        )
    return replace(prompt, instruction=instruction)


@dataclass(frozen=True)
class Preset:
    """Documented settings of a checkpoint that are not in its configuration files.

    ``pooling`` is used if a copy of the checkpoint has no ``modules.json``. The first of ``names``
    is the checkpoint that the paper evaluates.
    """

    names: tuple[str, ...]
    kind: Kind | None = None
    max_length: int | None = None
    prompt: PairPrompt | TextPrompt | None = None
    pooling: str | None = None


PRESETS = (
    Preset(
        names=("Qwen/Qwen3-Reranker-0.6B", "Qwen/Qwen3-Reranker-4B", "Qwen/Qwen3-Reranker-8B"),
        kind="yes-no",
        max_length=4096,
        prompt=PairPrompt(
            prefix=f"<|im_start|>system\n{JUDGE}<|im_end|>\n<|im_start|>user\n",
            suffix="<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
        ),
    ),
    Preset(names=("BAAI/bge-reranker-v2-m3",), kind="cross-encoder", max_length=4096),
    Preset(
        names=("Alibaba-NLP/gte-multilingual-reranker-base",), kind="cross-encoder", max_length=4096
    ),
    Preset(
        names=("Qwen/Qwen3-Embedding-0.6B", "Qwen/Qwen3-Embedding-4B", "Qwen/Qwen3-Embedding-8B"),
        kind="bi-encoder",
        max_length=4096,
        prompt=TextPrompt(query="Instruct: {instruction}\nQuery:"),
        pooling="lasttoken",
    ),
    Preset(
        names=("intfloat/multilingual-e5-large",),
        kind="bi-encoder",
        max_length=512,
        prompt=TextPrompt(query="query: ", document="passage: "),
        pooling="mean",
    ),
)


def find_preset(name: str) -> Preset | None:
    """Return the preset of a hub id, a folder of that name, or a folder of the hub's cache.

    Examples
    --------
    >>> find_preset("Qwen/Qwen3-Reranker-0.6B").max_length
    4096
    >>> find_preset("models/multilingual-e5-large").pooling
    'mean'
    >>> find_preset("my/own-reranker") is None
    True
    """
    return next((p for p in PRESETS if any(has_name(name, own) for own in p.names)), None)


def has_name(name: str, hub_id: str) -> bool:
    """Return whether a hub id, a folder or a folder of the hub's cache belongs to `hub_id`."""
    ending = re.escape(hub_id.split("/")[1])
    pattern = rf"(^|[/\\]|--){ending}([/\\]snapshots[/\\]\w+)?[/\\]?$"
    return re.search(pattern, name, re.I) is not None
