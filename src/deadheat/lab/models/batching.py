"""Batches: compose the inputs of each forward pass.

Low-precision results depend on the other inputs of a batch, so the composition is fixed. Inputs are
sorted by token count (after truncation to the maximum length), longest first; equal counts keep the
given order. The sorted list is cut into consecutive batches of ``batch_size``. A batch is padded to
its longest input. Batch ``i`` therefore depends only on the input list and the batch size, and a
run that continues at batch ``i`` gives the same results as an uninterrupted run. The longest batch
is the first, so a batch size that does not fit into memory fails at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadheat.engines import Progress
from deadheat.errors import InputError, one_line
from deadheat.provenance import InputFacts, ModelProvenance

if TYPE_CHECKING:
    import torch

Tensors = tuple["torch.Tensor", ...]


def plan_batches(lengths: Sequence[int], batch_size: int, max_length: int) -> list[list[int]]:
    """Return the indices of the inputs of every batch, from their untruncated token counts.

    Examples
    --------
    >>> plan_batches([3, 9, 3, 5, 12], batch_size=2, max_length=8)
    [[1, 4], [3, 0], [2]]
    """
    order = sorted(range(len(lengths)), key=lambda i: (-min(lengths[i], max_length), i))
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]


@dataclass(frozen=True)
class Batches:
    """A run over an input list, batch by batch; ``len`` is the number of batches."""

    indices: list[list[int]]
    """The inputs of every batch, as indices of the list."""
    inputs: InputFacts
    provenance: ModelProvenance
    """The settings of the model."""
    texts: Sequence[str]
    """A text of each input, for error messages."""
    forward: Callable[[Sequence[int]], Tensors]
    """Function that runs the model on the inputs at some indices of the list."""

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        tokenize: Callable[[slice], list[list[int]]],
        forward: Callable[[Sequence[int]], Tensors],
        settings: ModelProvenance,
    ) -> Batches:
        """Compose the batches; `tokenize` returns the untruncated tokens of some inputs."""
        steps = range(0, len(texts), 1000)  # a thousand at a time, to save memory
        lengths = [len(ids) for i in steps for ids in tokenize(slice(i, i + 1000))]
        inputs = InputFacts(len(texts), sum(length > settings.max_length for length in lengths))
        indices = plan_batches(lengths, settings.batch_size, settings.max_length)
        return cls(indices, inputs, settings, texts, forward)

    def __len__(self) -> int:
        return len(self.indices)

    def collect(self, progress: Progress | None = None) -> Tensors:
        """Run every batch and return the tensors, rows in the order of the input list."""
        import torch

        outputs = []
        for number in range(len(self)):
            outputs.append(self.run(number))
            if progress is not None:
                progress("running the model", number + 1, len(self))
        columns = zip(*outputs, strict=True)
        order = torch.tensor([i for indices in self.indices for i in indices]).argsort()
        return tuple(torch.cat(column)[order] for column in columns)

    def run(self, number: int) -> Tensors:
        """Return the tensors of one batch: a row for each position in ``indices[number]``."""
        indices, device = self.indices[number], self.provenance.device
        try:
            tensors = self.forward(indices)
        except RuntimeError as error:
            if "memory" not in str(error).lower():
                raise
            raise InputError(
                f"a batch of {len(indices)} inputs does not fit into the memory of {device} "
                f"({one_line(error)}); use a smaller batch size or max_length, or another device"
            ) from error
        for tensor in tensors:
            bad = (~tensor.isfinite()).any(dim=1)
            if bad.any():
                index = indices[int(bad.nonzero()[0])]
                raise InputError(
                    f"the model in {self.provenance.model_dtype} gave NaN or infinity for input "
                    f"{index} ({self.texts[index]!r:.80}); use model_dtype='bf16' or 'fp32' (FP16 "
                    "overflows beyond 65504), or another copy of the model (its weights may be "
                    "damaged)"
                )
        return tensors


def check_texts(texts: Sequence[str], what: str) -> None:
    """Raise InputError for empty texts, whose embeddings or logits have no meaning."""
    if isinstance(texts, str) or len(texts) == 0:
        raise InputError(f"{what} must be a list of at least one text, not {texts!r:.60}")
    for index, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise InputError(
                f"{what}[{index}] must be a text with words, not {text!r:.60}; add a text, or "
                "remove it from the candidates"
            )
