"""Scores of quantised embeddings, as score functions for an evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deadheat._internal.packages import require
from deadheat.errors import InputError
from deadheat.scoring import Product, torch_functions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor

PRECISIONS = ("binary", "int8")


def quantised(
    precision: str, *, rescore: bool = False, ranges: Sequence[ArrayLike | Tensor] | None = None
) -> Callable[[ArrayLike | Tensor, ArrayLike | Tensor], Tensor]:
    """Return a function that scores queries and documents with quantised embeddings.

    Parameters
    ----------
    precision
        ``"binary"``: the sign of each dimension; the score is minus the number of dimensions that
        differ. ``"int8"``: each dimension on a grid of 256 values; the score is the dot product,
        an exact whole number.
    rescore
        Whether only documents are quantised, not queries, as in the second stage of a search with
        rescoring. Here every document is scored this way: there is no first stage, whose cut could
        split tie groups. Default: False.
    ranges
        For ``"int8"``: the smallest and the largest value of each dimension, ``[2, dimensions]``.
        A value outside gets the nearest value of the grid. Default: the ranges of the documents of
        the first call.

    Returns
    -------
    callable
        A score function for ``InformationRetrievalEvaluator(…, score_functions={"binary": …})``.

    Examples
    --------
    ::

        score = {"binary": quantised("binary"), "rescored": quantised("binary", rescore=True)}
        InformationRetrievalEvaluator(queries, corpus, relevant_docs, score_functions=score)
    """
    if precision not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
    torch = require("torch", "scoring quantised embeddings")
    kind: Product = "hamming" if precision == "binary" else "dot"

    def quantise(embeddings: Tensor) -> Tensor:
        """Return signs, or the index of each dimension on a grid of 256 values in its range."""
        nonlocal ranges
        if precision == "binary":
            return embeddings > 0
        if ranges is None:
            ranges = embeddings.amin(dim=0), embeddings.amax(dim=0)
        least, largest = (torch.as_tensor(x).to(embeddings) for x in ranges)
        step = (largest - least).clamp(min=torch.finfo(embeddings.dtype).tiny) / 255
        places: Tensor = ((embeddings - least) / step).round().clamp(0, 255) - 128
        return places.to(torch.int8)

    def score(queries: ArrayLike | Tensor, documents: ArrayLike | Tensor) -> Tensor:
        q, d = (torch.atleast_2d(torch.as_tensor(x).float()) for x in (queries, documents))
        d = quantise(d)  # before the queries: documents set the default ranges
        if not rescore:
            return torch_functions.product(quantise(q), d, precision, kind)
        return torch_functions.product(q, 2 * d.float() - 1 if precision == "binary" else d.float())

    return score
