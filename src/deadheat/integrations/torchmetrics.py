"""torchmetrics: every view of ties as a `Metric`, for training loops and Lightning."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from deadheat._internal.remarks import counted
from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, Summary, check_views, evaluate_scores, flat_summaries
from deadheat.integrations.base import ALL_QUERIES, Measures, load_host
from deadheat.measures import ERR, RBP, parse_measures

if TYPE_CHECKING:
    from torch import Tensor

_host: Any = load_host("torchmetrics", "torchmetrics")
_torch = load_host("torch", "torchmetrics")

EMPTY_TARGET_ACTIONS = ("neg", "pos", "skip", "error")
"""What a query without a relevant document counts as, in the words of torchmetrics."""
_SUMMED = ("expected", "best", "worst", "oblivious", "variance")
"""The values that are added up over queries: a column of the states each."""
_BITS = 50
"""Sums are kept in units of 2^-50, whole numbers: the same however queries are divided."""


class TieAwareRetrieval(_host.Metric):  # type: ignore[misc]
    """Measures of retrieval with every view of ties; called as the host's retrieval metrics are.

    `update` and `forward` take ``preds``, ``target`` and ``indexes`` of one shape. The states are
    counts and sums over queries, reduced by sum: they do not grow with the data, several processes
    give what one gives, and no precision that a model is cast to changes them. So all documents of
    a query must come in one call.

    Parameters
    ----------
    measures
        As for `deadheat.evaluate`. Documents of a target above 0 are relevant, and the target is
        the grade.
    views
        What `compute` gives of each measure, under the names of `deadheat.Result.flat`. One
        measure and one view given as texts make it a tensor instead of a dict.
    empty_target_action
        What a query without a relevant document counts as: ``"neg"`` 0, ``"pos"`` 1, ``"skip"``
        leaves it out, ``"error"`` refuses it.
    ignore_index
        Documents of this target are left out.
    numbering
        ``"run"``: every query has a number of its own, and one that comes twice is refused, as
        its documents would count as two queries. ``"batch"``: every call numbers its queries
        from the start.
    at
        What stands before the cutoff in a name, for loggers that refuse ``@``.
    options
        Those of every `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> metric = TieAwareRetrieval("MRR", views="expected")
    >>> indexes, target = torch.tensor([0, 0, 1]), torch.tensor([1, 0, 1])
    >>> metric(torch.tensor([0.5, 0.5, 0.5]), target, indexes=indexes).item()
    0.875
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    # The states.
    whole: Tensor
    fraction: Tensor
    queries: Tensor
    numbers: list[Tensor] | Tensor

    def __init__(
        self,
        measures: Measures,
        views: str | Sequence[str] = VIEWS,
        *,
        empty_target_action: Literal["neg", "pos", "skip", "error"] = "neg",
        ignore_index: int | None = None,
        numbering: Literal["run", "batch"] = "run",
        at: str = "@",
        **options: object,
    ) -> None:
        super().__init__(**options)
        self.measures = parse_measures(measures)
        self.views = (views,) if isinstance(views, str) else tuple(views)
        check_views(self.views)
        for measure in self.measures:
            open_scale = getattr(measure, "max_grade", 0) is None
            if open_scale or (
                measure.name == RBP.name and getattr(measure, "gain", "") == "scaled"
            ):
                raise InputError(
                    f"{measure!r} depends on the highest grade of all queries, which is not known "
                    "in a batch: " + ("give it max_grade" if open_scale else "choose another gain")
                )
        for name, value, choices in (
            ("empty_target_action", empty_target_action, EMPTY_TARGET_ACTIONS),
            ("numbering", numbering, ("run", "batch")),
        ):
            if value not in choices:
                raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r:.60}")
        if ignore_index is not None and not isinstance(ignore_index, int):
            raise InputError(f"ignore_index must be a whole number, not {ignore_index!r:.60}")
        self.empty_target_action = empty_target_action
        self.ignore_index = ignore_index
        self.numbering = numbering
        self.at = at
        self._one = isinstance(views, str) and len(self.measures) == 1
        zeros = _torch.zeros(len(self.measures), len(_SUMMED), dtype=_torch.long)
        self.add_state("whole", zeros, "sum")
        self.add_state("fraction", zeros.clone(), "sum")
        self.add_state("queries", _torch.tensor(0), "sum")
        self.add_state("numbers", [], "cat")
        # A collection takes metrics of the same states for one metric: the name of one differs.
        settings = repr((self.measures, empty_target_action, ignore_index, numbering))
        name = f"settings_{zlib.crc32(settings.encode()):08x}"
        self.add_state(name, _torch.tensor(0), "sum")

    def update(self, preds: Tensor, target: Tensor, indexes: Tensor) -> None:
        """Take scores, grades and query numbers of documents, of one shape."""
        preds, target, indexes = self._flatten(preds, target, indexes)
        result = evaluate_scores(target, preds, self.measures, ALL_QUERIES, query=indexes)
        numbers = np.array(result.query_ids)
        empty = ~np.isin(numbers, indexes[target > 0].cpu().numpy())
        if self.empty_target_action == "error" and empty.any():
            raise InputError(f"query {numbers[empty][0]} has no relevant document")
        kept = ~empty if self.empty_target_action == "skip" else np.ones(len(numbers), bool)
        sums = np.zeros((len(self.measures), len(_SUMMED), 2), np.int64)
        for i, views in enumerate(result.views.values()):
            for j, name in enumerate(_SUMMED):
                values = getattr(views, name)
                if values is None:  # a variance that is not computed
                    continue
                if self.empty_target_action == "pos":
                    values = np.where(empty, 0.0 if name == "variance" else 1.0, values)
                sums[i, j] = _add_up(values[kept])
        added = _torch.from_numpy(sums).to(self.device)
        fraction = self.fraction + added[..., 1]
        self.whole = self.whole + added[..., 0] + (fraction >> _BITS)
        self.fraction = fraction & (2**_BITS - 1)
        self.queries += int(kept.sum())
        if self.numbering == "run":
            self.numbers.append(_torch.from_numpy(numbers).to(self.device))  # type: ignore

    def compute(self) -> Tensor | dict[str, Tensor]:
        """Return the views, averaged over queries; a tensor, or a dict of them by name."""
        self._check_numbers()
        n = int(self.queries)
        sums = self.whole.cpu().numpy() + self.fraction.cpu().numpy() / 2**_BITS
        summaries = []
        for measure, row in zip(self.measures, sums / max(n, 1), strict=True):
            means = dict(zip(_SUMMED, row.tolist(), strict=True))
            variance = means.pop("variance")
            std = None if measure.name == ERR.name else math.sqrt(variance / max(n, 1))
            summaries.append(
                Summary(repr(measure), **means, std=std, sampling_error=None, queries=n)
            )
        # Doubles wherever the device has them.
        dtype = _torch.float32 if self.device.type == "mps" else _torch.float64
        values: dict[str, Tensor] = {
            name: _torch.tensor(value, dtype=dtype, device=self.device)
            for name, value in flat_summaries(summaries, at=self.at, views=self.views).items()
        }
        return next(iter(values.values())) if self._one else values

    def sync(self, *args: object, **options: object) -> None:
        """Gather the states of all processes, also of those that were given no query."""
        if isinstance(self.numbers, list) and not self.numbers:
            self.numbers = [_torch.zeros(0, dtype=_torch.long, device=self.device)]
        super().sync(*args, **options)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: object, **options: object) -> object:
        """Move the states to another device, and never cast them to another precision."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(fn(_torch.zeros(0, device=tensor.device)).device)

        return super()._apply(move, *args, **options)

    def extra_repr(self) -> str:
        """Return the measures, for the text of a printed model."""
        return ", ".join(map(repr, self.measures))

    def _flatten(
        self, preds: Tensor, target: Tensor, indexes: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Check the tensors, and return each as one row."""
        tensors = {"preds": preds, "target": target, "indexes": indexes}
        for name, tensor in tensors.items():
            if not isinstance(tensor, _torch.Tensor):
                raise InputError(f"`{name}` must be a tensor, not a {type(tensor).__name__}")
        if not preds.shape == target.shape == indexes.shape:
            shapes = ", ".join(f"`{name}` {list(t.shape)}" for name, t in tensors.items())
            raise InputError(f"the shapes differ: {shapes}")
        if indexes.dtype != _torch.long:
            raise InputError(f"`indexes` must be of type torch.long, not {indexes.dtype}")
        if self.ignore_index is not None:
            kept = target != self.ignore_index
            preds, target, indexes = preds[kept], target[kept], indexes[kept]
        if not indexes.numel():
            raise InputError("there is no document in `preds`, `target` and `indexes`")
        return preds.detach().flatten(), target.detach().flatten(), indexes.flatten()

    def _check_numbers(self) -> None:
        numbers = self.numbers if isinstance(self.numbers, list) else [self.numbers]
        if not numbers:
            return
        distinct, times = _torch.cat(numbers).unique(return_counts=True)
        twice = distinct[times > 1]
        if len(twice):
            raise InputError(
                f"{counted(len(twice), 'query')} came in more than one call, query {int(twice[0])} "
                "first: give all documents of a query in one call, reset the metric when an epoch "
                "ends, or say numbering='batch' if every call numbers its queries anew"
            )


def _add_up(values: NDArray[np.float64]) -> tuple[int, int]:
    """Return the sum of values rounded to 2^-50: its whole part, and the units left over."""
    whole = np.floor(values)
    units = np.rint((values - whole) * 2**_BITS).astype(np.int64)
    # Python's whole numbers do not overflow.
    carried, rest = divmod(sum(units.tolist()), 2**_BITS)
    return int(whole.sum()) + carried, rest
