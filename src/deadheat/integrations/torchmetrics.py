"""torchmetrics: every view of ties as a `Metric`, for training loops and Lightning."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, Summary, check_views, evaluate_scores, flat_summaries
from deadheat.measures import ERR, RBP, Measure
from deadheat.measures.parse import parse_measures
from deadheat.packages import require_host
from deadheat.remarks import counted
from deadheat.settings import EvalSettings

_host: Any = require_host("torchmetrics", "torchmetrics", "`deadheat.integrations.torchmetrics`")
_torch: Any = require_host("torch", "torchmetrics", "`deadheat.integrations.torchmetrics`")

EMPTY_TARGET_ACTIONS = ("neg", "pos", "skip", "error")
"""What a query without a relevant document counts as, in the words of torchmetrics."""
_SUMMED = ("expected", "best", "worst", "oblivious", "variance")
"""What is added up over queries, a column of the states each."""
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
        its documents would be taken for two queries. ``"batch"``: every call begins anew.
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
    whole: Any
    fraction: Any
    queries: Any
    numbers: Any

    def __init__(
        self,
        measures: str | Measure | Iterable[Any],
        views: str | Sequence[str] = VIEWS,
        *,
        empty_target_action: Literal["neg", "pos", "skip", "error"] = "neg",
        ignore_index: int | None = None,
        numbering: Literal["run", "batch"] = "run",
        at: str = "@",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.measures = parse_measures(measures)
        self.views = (views,) if isinstance(views, str) else tuple(views)
        check_views(self.views)
        _check(self.measures, empty_target_action, ignore_index, numbering)
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

    def update(self, preds: Any, target: Any, indexes: Any) -> None:
        """Take scores, grades and query numbers of documents, of one shape."""
        preds, target, indexes = self._flat(preds, target, indexes)
        settings = EvalSettings(queries="all")
        result = evaluate_scores(target, preds, self.measures, settings, query=indexes)
        numbers = np.array(result.query_ids)
        empty = ~np.isin(numbers, indexes[target > 0].cpu().numpy())
        if self.empty_target_action == "error" and empty.any():
            raise InputError(f"query {numbers[empty][0]} has no relevant document")
        counts = ~empty if self.empty_target_action == "skip" else np.ones(len(numbers), bool)
        sums = [
            _sum(self._values(getattr(views, name), name, empty)[counts])
            for views in result.views.values()
            for name in _SUMMED
        ]
        self._add(np.array(sums, np.int64).reshape(len(self.measures), len(_SUMMED), 2))
        self.queries += int(counts.sum())
        if self.numbering == "run":
            self.numbers.append(_torch.from_numpy(numbers).to(self.device))

    def compute(self) -> Any:
        """Give the views, averaged over queries; a tensor, or a dict of them by name."""
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
        values = {
            name: _torch.tensor(value, dtype=dtype, device=self.device)
            for name, value in flat_summaries(summaries, at=self.at, views=self.views).items()
        }
        return next(iter(values.values())) if self._one else values

    def sync(self, *args: Any, **options: Any) -> None:
        """Gather the states of all processes, also of those that were given no query."""
        self.numbers = self.numbers or [_torch.zeros(0, dtype=_torch.long, device=self.device)]
        super().sync(*args, **options)

    def _apply(self, fn: Callable[[Any], Any], *args: Any, **options: Any) -> Any:
        """Follow the model to another device, and never to another precision."""

        def moved(tensor: Any) -> Any:
            return tensor.to(fn(_torch.zeros(0, device=tensor.device)).device)

        return super()._apply(moved, *args, **options)

    def extra_repr(self) -> str:
        """Name the measures where a model is printed."""
        return ", ".join(map(repr, self.measures))

    def _flat(self, preds: Any, target: Any, indexes: Any) -> tuple[Any, Any, Any]:
        """Check the tensors, and give each as one row."""
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

    def _values(
        self, values: NDArray[np.float64] | None, name: str, empty: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Values of queries, with what those without a relevant document count as."""
        if values is None:
            return np.zeros(len(empty))
        if self.empty_target_action != "pos":
            return values
        return np.where(empty, 0.0 if name == "variance" else 1.0, values)

    def _add(self, sums: NDArray[np.int64]) -> None:
        """Add whole parts and fractions; what is whole of the fractions is carried."""
        added = _torch.from_numpy(sums).to(self.device)
        fraction = self.fraction + added[..., 1]
        self.whole = self.whole + added[..., 0] + (fraction >> _BITS)
        self.fraction = fraction & (2**_BITS - 1)

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


def _check(
    measures: Sequence[Measure], empty_target_action: str, ignore_index: object, numbering: str
) -> None:
    for measure in measures:
        open_scale = getattr(measure, "max_grade", 0) is None
        scaled = measure.name == RBP.name and getattr(measure, "gain", "") == "scaled"
        if open_scale or scaled:
            raise InputError(
                f"{measure!r} rests on the highest grade of all queries, which a batch does not "
                "know: " + ("give it max_grade" if open_scale else "choose another gain")
            )
    for name, value, choices in (
        ("empty_target_action", empty_target_action, EMPTY_TARGET_ACTIONS),
        ("numbering", numbering, ("run", "batch")),
    ):
        if value not in choices:
            raise InputError(f"{name} must be one of {', '.join(choices)}, not {value!r:.60}")
    if ignore_index is not None and not isinstance(ignore_index, int):
        raise InputError(f"ignore_index must be a whole number, not {ignore_index!r:.60}")


def _sum(values: NDArray[np.float64]) -> tuple[int, int]:
    """Add up values rounded to 2^-50: what is whole of the sum, and the units that are left."""
    whole = np.floor(values)
    units = np.rint((values - whole) * 2**_BITS).astype(np.int64)
    # In two halves, which many queries do not overflow.
    total = (int((units >> 25).sum()) << 25) + int((units & (2**25 - 1)).sum())
    return int(whole.sum()) + (total >> _BITS), total & (2**_BITS - 1)
