"""Views of transformers models, and of rerankers of other libraries that run one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError, one_line
from deadheat.integrations.precision.surgery import with_fp32_layer
from deadheat.integrations.precision.views import Source, View, build_view
from deadheat.scoring import find_head

if TYPE_CHECKING:
    from torch import Tensor


TOKENS = (
    "a causal language model of transformers needs the tokens that score and its tokenizer, "
    "tokens=('no', 'yes'); tokens are for such a model only"
)


class TransformersView(View):
    """View of a sequence classifier, or of a causal language model with scoring tokens."""

    def forward(self, *args: object, **options: object) -> Any:
        """Run the model; in the regime hps its logits are FP32."""
        output = super().forward(*args, **options)  # type: ignore[misc]
        if self._deadheat.layer == "hps":
            if isinstance(output, tuple):
                raise InputError("logits in a tuple are not cast; call the model with return_dict")
            output["logits"] = output["logits"].float()
        return output

    @classmethod
    def prepare(cls, source: Source) -> dict[str, object]:
        """Find the head, and let it compute the logits that score in FP32."""
        model, name = source.model, f"this {type(source.model).__name__}"
        if source.layer not in ("hps", "head"):
            raise InputError(
                f"{name} returns logits, which other code scores; for low precision, pass them to "
                "deadheat.scoring.torch_functions with a dtype"
            )
        rows = list(source.tokens) or list(range(model.config.num_labels))
        _run_probe(model, source.tokens, rows)
        if source.layer == "hps":
            return {"_modules": model._modules}
        head = find_head(model, lambda: _run_probe(model, source.tokens, rows), rows)
        modules = with_fp32_layer(model._modules, head.layer, rows, keep_width=True)
        return {"_modules": modules}


class RerankerView(View):
    """View of a reranker that runs a transformers model."""

    _has_methods = False

    @classmethod
    def prepare(cls, source: Source) -> dict[str, object]:
        """Replace the reranker's model by a view of it."""
        reranker = source.model
        # A reranker with a causal model has the id of the token that it scores.
        tokens = (reranker.yes_loc,) if "yes_loc" in vars(reranker) else ()
        model = build_view(TransformersView, source._replace(model=reranker.model, tokens=tokens))
        changes = {"model": model}
        if "pool" in vars(reranker):  # FlagEmbedding's worker processes hold the model itself
            changes["pool"] = None
        return changes


def _run_probe(model: Any, tokens: tuple[int, ...], rows: list[int]) -> Tensor:
    """Run two short lists of token ids through a model, one at a time; return their logits."""
    import torch

    ids = [i for i in range(12) if i != model.config.pad_token_id]
    name = f"this {type(model).__name__}"
    logits = []
    try:
        with torch.no_grad():
            for each in (ids, ids[5:]):
                row = torch.tensor([each], device=model.device)
                inputs = {"input_ids": row, "attention_mask": torch.ones_like(row)}
                logits.append(model(**inputs).logits)
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"{name} gave no logits for a few token ids ({one_line(error)}); give a sequence "
            "classifier or a causal language model"
        ) from error
    shape = tuple(logits[0].shape)
    if (len(shape) == 3) != bool(tokens):
        raise InputError(f"{name} gives logits of the shape {list(shape)}: {TOKENS}")
    if max(rows) >= shape[-1]:
        raise InputError(f"{name} has {shape[-1]} logits, but none with the number {max(rows)}")
    return torch.cat([each[:, -1] if len(shape) == 3 else each for each in logits])[:, rows]
