"""Rerankers: compute one logit, or two logits (no, yes), of a query and a document."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.lab.models.batching import Batches, Tensors, check_texts
from deadheat.lab.models.presets import JUDGE, PairPrompt
from deadheat.provenance import ModelProvenance
from deadheat.scoring import PROBE, find_head, head_input, last_position, watch

if TYPE_CHECKING:
    import torch

Pairs = Sequence[tuple[str, str]]

# Labels of the relevant class in two-logit classifiers.
YES_LABELS = {"yes", "true", "relevant", "positive"}


@dataclass(frozen=True)
class Head:
    """The rows of the last linear layer that compute the logits: ``hidden @ weight.T + bias``.

    Cast all three to FP32 to recompute the logits in FP32.
    """

    weight: torch.Tensor
    bias: torch.Tensor | None


class Reranker(ABC):
    """A model that reads a query and a document together.

    Attributes
    ----------
    provenance
        The settings of the model, which are stored in each output.
    """

    provenance: ModelProvenance
    _rows: list[int]
    """Indices of the head's outputs that are the logits."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._accepts = set(inspect.signature(model.forward).parameters)
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
        if model.config.pad_token_id is None:
            model.config.pad_token_id = tokenizer.pad_token_id

    def batches(self, pairs: Pairs, *, with_hidden: bool = False) -> Batches:
        """Return the run over (query, document) pairs, batch by batch.

        Its tensors are the logits, ``[n, 1]`` or ``[n, 2]`` in the order (no, yes), and the hidden
        states ``[n, d]``.

        Parameters
        ----------
        pairs
            Queries and documents; neither may be empty.
        with_hidden
            Also return the input of the last linear layer.
        """
        for index, pair in enumerate(pairs):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise InputError(f"pairs[{index}] is not a (query, document) pair: {pair!r}")
        queries, documents = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        check_texts(queries, "queries")
        check_texts(documents, "documents")

        def tokenize(part: slice) -> list[list[int]]:
            return self._ids(queries[part], documents[part])

        def forward(indices: Sequence[int]) -> Tensors:
            own = [queries[i] for i in indices], [documents[i] for i in indices]
            with watch([self._head_layer] if with_hidden else []) as activations:
                logits = self._run(*own)
            if not with_hidden:
                return (logits,)
            return logits, head_input(activations, self._rows, logits).cpu()

        return Batches.of(queries, tokenize, forward, self.provenance)

    def head(self) -> Head:
        """Return the rows of the last linear layer, in the order of the logits."""
        weight, bias = self._head_layer.weight.detach(), self._head_layer.bias
        rows = self._rows
        return Head(weight[rows].cpu(), None if bias is None else bias.detach()[rows].cpu())

    @abstractmethod
    def _ids(self, queries: list[str], documents: list[str]) -> list[list[int]]:
        """Return the tokens of every input before truncation."""

    @abstractmethod
    def _encode(self, queries: list[str], documents: list[str]) -> dict[str, torch.Tensor]:
        """Return the truncated and padded input of one forward pass."""

    def _run(self, queries: list[str], documents: list[str]) -> torch.Tensor:
        """Return the logits of one forward pass."""
        import torch

        inputs = self._encode(queries, documents)
        if "position_ids" in self._accepts and self._tokenizer.padding_side == "left":
            inputs["position_ids"] = (inputs["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)
        inputs = {name: tensor.to(self.provenance.device) for name, tensor in inputs.items()}
        options = {"logits_to_keep": 1} if "logits_to_keep" in self._accepts else {}
        with torch.no_grad():
            return last_position(self._model(**inputs, **options).logits)[:, self._rows].cpu()

    @cached_property
    def _head_layer(self) -> torch.nn.Linear:
        queries, documents = map(list, zip(*PROBE, strict=True))
        run = partial(self._run, queries, documents)
        return find_head(self._model, run, self._rows).layer


class ClassifierReranker(Reranker):
    """A sequence classifier with one logit (sigmoid) or two (softmax).

    Of two labels, the second is the relevant one, unless the name of the first label in the
    configuration means "relevant". Classifiers built on decoders are padded on the left.
    """

    def __init__(self, model: Any, tokenizer: Any, settings: ModelProvenance) -> None:
        labels = [str(model.config.id2label[i]) for i in range(model.config.num_labels)]
        if len(labels) > 2:
            raise InputError(
                f"{settings.model!r} has {len(labels)} labels ({', '.join(labels)}), but a "
                "reranker has one logit or two; choose another checkpoint"
            )
        if hasattr(model, "score"):  # transformers' name for the head of a decoder
            tokenizer.padding_side = "left"
        super().__init__(model, tokenizer)
        self._rows = list(range(len(labels)))
        if len(labels) == 2 and labels[0].lower() in YES_LABELS:
            self._rows.reverse()
        self.provenance = replace(settings, outputs=tuple(labels[row] for row in self._rows))

    def _ids(self, queries: list[str], documents: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self._tokenizer(queries, documents, verbose=False)["input_ids"]
        return ids

    def _encode(self, queries: list[str], documents: list[str]) -> dict[str, torch.Tensor]:
        return dict(
            self._tokenizer(
                queries,
                documents,
                padding=True,
                truncation="longest_first",
                max_length=self.provenance.max_length,
                return_tensors="pt",
            )
        )


class YesNoReranker(Reranker):
    """A causal language model with a yes/no question; its next-token logits are the logits.

    Inputs are padded on the left, so the last position is the last token of every row.
    """

    def __init__(
        self, model: Any, tokenizer: Any, settings: ModelProvenance, prompt: PairPrompt
    ) -> None:
        tokenizer.padding_side = "left"
        super().__init__(model, tokenizer)
        self._rows = [find_token(tokenizer, word) for word in (prompt.no, prompt.yes)]
        self._prompt = prompt
        self._prefix, self._suffix = (
            tokenizer(text, add_special_tokens=False)["input_ids"]
            for text in (prompt.prefix, prompt.suffix)
        )
        self.provenance = replace(settings, outputs=(prompt.no, prompt.yes), prompt=asdict(prompt))
        frame = len(self._prefix) + len(self._suffix)
        self._room = self.provenance.max_length - frame
        if self._room < 1:
            raise InputError(
                f"max_length {self.provenance.max_length} is too small for the {frame} tokens of "
                "the prompt; use a larger max_length"
            )

    def _ids(
        self, queries: list[str], documents: list[str], room: int | None = None
    ) -> list[list[int]]:
        texts = list(map(self._prompt.fill, queries, documents))
        bodies = self._tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        return [self._prefix + body[:room] + self._suffix for body in bodies]

    def _encode(self, queries: list[str], documents: list[str]) -> dict[str, torch.Tensor]:
        rows = self._ids(queries, documents, room=self._room)
        return dict(self._tokenizer.pad({"input_ids": rows}, return_tensors="pt", verbose=False))


def find_token(tokenizer: Any, word: str) -> int:
    """Return the id of a word that must be one token."""
    ids: list[int] = tokenizer.encode(word, add_special_tokens=False)
    if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
        raise InputError(
            f"the tokenizer has no single token for {word!r}, only "
            f"{tokenizer.convert_ids_to_tokens(ids)}; pass a PairPrompt with other yes and no words"
        )
    return ids[0]


def split_prompt(template: str, tokenizer: Any) -> PairPrompt:
    """Split a prompt around query and document, at special tokens, so that no token changes."""
    places = [template.find(place) for place in ("{query}", "{document}")]
    if min(places) < 0:
        raise InputError(f"the prompt {template!r} must contain {{query}} and {{document}}")
    special = "|".join(re.escape(str(t)) for t in tokenizer.added_tokens_decoder.values())
    found = list(re.finditer(special, template)) if special else []
    start = max((m.end() for m in found if m.end() <= min(places)), default=0)
    end = min((m.start() for m in found if m.start() > max(places)), default=len(template))
    return PairPrompt(template[:start], template[start:end], template[end:])


def make_chat_prompt(tokenizer: Any, name: str) -> PairPrompt:
    """Put the question of the paper's reranker into the chat template of another model."""
    if not tokenizer.chat_template:
        raise InputError(
            f"the tokenizer of {name!r} has no chat template, so its prompt is unknown; give "
            "one with {query} and {document}, by --prompt or prompt="
        )
    message = [{"role": "user", "content": f"{JUDGE}\n\nBODY"}]
    text = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    prefix, _, suffix = text.rpartition("BODY")
    return PairPrompt(prefix=prefix, suffix=suffix)
