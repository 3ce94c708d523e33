"""Views of sentence-transformers models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.integrations.precision.effects import scores_tokens
from deadheat.integrations.precision.surgery import clone, with_cast_logits, with_fp32_head
from deadheat.integrations.precision.views import Source, View
from deadheat.scoring import torch_functions

if TYPE_CHECKING:
    from torch import Tensor


class CrossEncoderView(View):
    """View of a CrossEncoder."""

    activation_fn: Any

    @classmethod
    def prepare(cls, source: Source) -> dict[str, object]:
        """Cast logits before their difference, or compute the head in FP32."""
        model = source.model
        if source.logit and model.num_labels > 2:
            raise InputError(
                f"a model of {model.num_labels} labels has no single logit of relevance; leave out "
                "scores='logit'"
            )
        if source.layer == "head":
            return {"_modules": with_fp32_head(model)}
        return {"_modules": with_cast_logits(model, source.format)}

    def predict(
        self,
        *args: object,
        activation_fn: Any = None,
        apply_softmax: object = False,
        **options: object,
    ) -> object:
        """Score pairs like the model, with activation and softmax in the scoring dtype."""
        import torch

        own, format, logit = self.activation_fn, self._deadheat.format, self._deadheat.logit
        activate = activation_fn or (torch.nn.Identity() if logit else own)

        def score(logits: Tensor) -> Tensor:
            scores: Tensor = torch_functions.cast(logits, format)
            if logit and scores.ndim > 1 and scores.shape[-1] == 2:
                scores = scores - scores.flip(-1)
            if hasattr(activate, "state_dict") and not activate.state_dict():  # no FP32 weights
                scores = torch_functions.widened(scores, format)
            scores = torch_functions.cast(activate(scores), format)
            if apply_softmax and not logit and scores.ndim > 1 and scores.shape[-1] > 1:
                probabilities = torch_functions.widened(scores, format).softmax(dim=-1)
                scores = torch_functions.cast(probabilities, format)
            return scores

        step = torch.nn.Identity()  # before 5.4 it must be a module
        vars(step)["forward"] = score
        try:
            return super().predict(*args, activation_fn=step, **options)  # type: ignore[misc]
        finally:
            self.activation_fn = own  # before 5.4 the argument would stay


class EncoderView(View):
    """View of a bi-encoder with one embedding per text or per token."""

    similarity_fn_name: Any

    @classmethod
    def prepare(cls, source: Source) -> dict[str, object]:
        """Change no module: the output embeddings are cast."""
        model = source.model
        if source.logit:
            raise InputError("a bi-encoder scores by similarity, not by logits; leave out scores")
        if source.layer == "head":
            raise InputError("a bi-encoder has no scoring head; use the regime hps")
        if source.layer != "hps":
            _low_precision_kind(clone(model, type(model)))
        return {"_modules": model._modules}

    def forward(self, *args: object, **options: object) -> dict[str, Tensor]:
        """Encode like the model; in high precision, all later steps and norms are in FP32."""
        features: dict[str, Tensor] = super().forward(*args, **options)  # type: ignore[misc]
        if self._deadheat.regime == "hps":
            # A late-interaction model has no embedding of a whole text, only of tokens.
            for scored in ("sentence_embedding", "token_embeddings"):
                if features.get(scored) is not None:
                    features[scored] = features[scored].float()
                    break
        return features

    def similarity(self, embeddings1: object, embeddings2: object, **options: object) -> Any:
        """Score each of the first embeddings with each of the second."""
        if self._deadheat.regime == "hps":
            a, b = self._as_fp32(embeddings1), self._as_fp32(embeddings2)
            return super().similarity(a, b, **options)  # type: ignore[misc]
        q, d = map(_as_tensor, (embeddings1, embeddings2))
        q, d = (x.unsqueeze(0) if x.ndim == 1 else x for x in (q, d))
        return torch_functions.product(q, d, self._deadheat.format, _low_precision_kind(self))

    def similarity_pairwise(
        self, embeddings1: object, embeddings2: object, **options: object
    ) -> Any:
        """Score each of the first embeddings with the second one at the same index."""
        if self._deadheat.regime == "hps":
            a, b = self._as_fp32(embeddings1), self._as_fp32(embeddings2)
            return super().similarity_pairwise(a, b, **options)  # type: ignore[misc]
        format, kind = self._deadheat.format, _low_precision_kind(self)
        q, d = (
            torch_functions.operand("embeddings", _as_tensor(x), format, kind)
            for x in (embeddings1, embeddings2)
        )
        return (q * d).sum(dim=-1).to(format.torch)

    def _as_fp32(self, embeddings: Any) -> Any:
        """Return embeddings in FP32; those of tokens remain a list of matrices."""
        if isinstance(embeddings, list | tuple) and scores_tokens(self):
            return [_as_tensor(matrix).float() for matrix in embeddings]
        return _as_tensor(embeddings).float()


def _as_tensor(values: object) -> Tensor:
    import torch

    if isinstance(values, list | tuple):
        return torch.stack(list(map(_as_tensor, values)))
    return torch.as_tensor(values)


def _low_precision_kind(model: Any) -> Any:
    """Return the similarity by which a model scores in low precision, dot or cosine."""
    kind = model.similarity_fn_name
    if kind not in ("dot", "cosine"):
        raise InputError(
            f"cannot score a {type(model).__name__} in low precision: its similarity must be dot "
            f"or cosine, not {kind}"
        )
    return kind
