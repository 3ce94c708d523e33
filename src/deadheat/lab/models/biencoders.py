"""Bi-encoders: compute one embedding per text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Literal

from deadheat.lab.models.batching import Batches, Tensors, check_texts
from deadheat.lab.models.presets import TextPrompt
from deadheat.provenance import ModelProvenance

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Role = Literal["query", "document"]


class BiEncoder:
    """A model that embeds queries and documents separately.

    Embeddings are the output of the checkpoint's last module, in the model's dtype. If that module
    normalises, it does so in the model's dtype: the norms of BF16 vectors are only close to 1, so
    the dot product and the cosine of such vectors differ.

    Attributes
    ----------
    provenance
        The settings of the model, which are stored in each output.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        settings: ModelProvenance,
        prompt: TextPrompt,
        *,
        normalize: bool,
    ) -> None:
        model.max_seq_length = settings.max_length
        self._model = model
        self._normalize = normalize
        self._prefixes = {"query": prompt.query_prefix, "document": prompt.document}
        self.provenance = replace(
            settings,
            prompt=asdict(prompt) if prompt.query or prompt.document else None,
            pooling=describe_modules(model) + (", Normalize" if normalize else ""),
            normalised=normalize or type(list(model)[-1]).__name__ == "Normalize",
        )

    def batches(self, texts: Sequence[str], role: Role) -> Batches:
        """Return the run over the texts, batch by batch.

        Parameters
        ----------
        texts
            Queries or documents; none may be empty.
        role
            ``"query"`` or ``"document"``: selects the prompt.
        """
        check_texts(texts, "queries" if role == "query" else "documents")
        prefix = self._prefixes[role]
        encode = self._model.encode_query if role == "query" else self._model.encode_document

        def tokenize(part: slice) -> list[list[int]]:
            prefixed = [prefix + text for text in texts[part]]
            ids: list[list[int]] = self._model.tokenizer(prefixed, verbose=False)["input_ids"]
            return ids

        def forward(indices: Sequence[int]) -> Tensors:
            vectors = encode(
                [texts[i] for i in indices],
                prompt=prefix,
                batch_size=len(indices),
                convert_to_tensor=True,
                show_progress_bar=False,
                normalize_embeddings=self._normalize,
            )
            return (vectors.detach().cpu().clone(),)

        return Batches.of(texts, tokenize, forward, self.provenance)


def find_own_prompt(model: SentenceTransformer) -> TextPrompt:
    """Return the prompts for queries and documents in the checkpoint's configuration."""
    prompts = model.prompts or {}
    names = ("document", "passage", "corpus")
    document = next(filter(None, map(prompts.get, names)), "")
    return TextPrompt(query=prompts.get("query") or "", document=document)


def describe_modules(model: SentenceTransformer) -> str:
    """Return the modules between token states and embedding, such as ``mean, Normalize``."""
    names = []
    for module in list(model)[1:]:
        old_mode = getattr(module, "get_pooling_mode_str", lambda: None)  # version 5
        mode = getattr(module, "pooling_mode", None) or old_mode() or type(module).__name__
        names.append(mode if isinstance(mode, str) else "+".join(mode))
    return ", ".join(names)
