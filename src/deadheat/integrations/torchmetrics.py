"""torchmetrics: every view of ties as a `Metric`, for training loops and Lightning."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from deadheat._internal.packages import require
from deadheat._internal.remarks import counted
from deadheat.errors import InputError
from deadheat.evaluation import VIEWS, Result, Views, check_views, evaluate_scores
from deadheat.integrations.base import ALL_QUERIES, Measures, load_host
from deadheat.measures import RBP, parse_measures

if TYPE_CHECKING:
    from torch import Tensor

_host: Any = load_host("torchmetrics")
_torch: Any = require("torch", "`deadheat.integrations.torchmetrics`")

_KEPT = [field.name for field in fields(Views)]
"""The values that are kept for each query and measure."""


class TieAwareRetrieval(_host.Metric):  # type: ignore[misc]
    """Measures of retrieval with every view of ties, with the interface of torchmetrics.

    `update` and `forward` take ``preds``, ``target`` and ``indexes`` of one shape. All documents of
    a query must be in one call, because only the values of the query are kept: five numbers per
    measure. They are stored as bits, so a cast of the model does not change them. They are summed
    in one order, so several processes give the same result as one, to the last bit.

    Parameters
    ----------
    measures
        As for `deadheat.evaluate`. Documents with a target above 0 are relevant; the target is the
        grade.
    views
        Views that `compute` returns for each measure, under the names of `deadheat.Result.flat`.
        If one measure and one view are given as texts, it returns a tensor instead of a dict.
    empty_target_action
        Value of a query without a relevant document: ``"neg"`` 0, ``"pos"`` 1; ``"skip"`` drops
        the query, ``"error"`` raises an error.
    ignore_index
        Documents with this target are dropped.
    numbering
        ``"run"``: every query has its own number. A number in two calls is an error, because its
        documents would count as two queries. ``"batch"``: numbers start again in every call.
    at
        Text before the cutoff in a name, for loggers that do not accept ``@``.
    options
        Options of every `torchmetrics.Metric`.

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
    # The state: the number of each query, and the bits of its values.
    rows: list[Tensor] | Tensor

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
            scaled = measure.name == RBP.name and getattr(measure, "gain", "") == "scaled"
            if scaled or getattr(measure, "max_grade", 0) is None:
                raise InputError(
                    f"{measure!r} depends on the highest grade of all queries, which is not known "
                    "in a batch: give it max_grade, or choose another gain"
                )
        settings = empty_target_action, ignore_index, numbering
        if (
            empty_target_action not in ("neg", "pos", "skip", "error")
            or numbering not in ("run", "batch")
            or not isinstance(ignore_index, int | None)
        ):
            raise InputError(
                "empty_target_action must be neg, pos, skip or error, ignore_index a whole number, "
                f"and numbering run or batch, not {settings!r:.100}"
            )
        self.empty_target_action = empty_target_action
        self.ignore_index = ignore_index
        self.numbering = numbering
        self.at = at
        self._one = isinstance(views, str) and len(self.measures) == 1
        self.add_state("rows", [], "cat")
        # A MetricCollection merges metrics with the same states; a different name prevents that.
        number = zlib.crc32(repr((self.measures, settings)).encode())
        self.add_state(f"settings_{number:08x}", _torch.tensor(0), "sum")

    def update(self, preds: Tensor, target: Tensor, indexes: Tensor) -> None:
        """Add documents: their scores, grades and query numbers, of one shape."""
        given = (preds, target, indexes)
        if (
            not all(isinstance(each, _torch.Tensor) for each in given)
            or not preds.shape == target.shape == indexes.shape
            or indexes.dtype != _torch.long
        ):
            kinds = [getattr(each, "dtype", type(each).__name__) for each in given]
            raise InputError(
                "preds, target and indexes must be tensors of one shape, and indexes of type "
                f"torch.long, not {', '.join(map(str, kinds))} of {list(map(np.shape, given))}"
            )
        kept = slice(None) if self.ignore_index is None else target != self.ignore_index
        preds, target, indexes = (each.detach()[kept].reshape(-1) for each in given)
        result = evaluate_scores(target, preds, self.measures, ALL_QUERIES, query=indexes)
        numbers = np.array(result.query_ids)
        empty = ~np.isin(numbers, indexes[target > 0].cpu().numpy())
        if self.empty_target_action == "error" and empty.any():
            raise InputError(f"query {numbers[empty][0]} has no relevant document")
        not_computed = np.zeros(len(numbers))
        columns = [
            not_computed if column is None else column
            for views in result.views.values()
            for column in vars(views).values()
        ]
        values = np.column_stack(columns)
        if self.empty_target_action == "pos":
            values[empty] = [float(name != "variance") for name in _KEPT] * len(self.measures)
        elif self.empty_target_action == "skip":
            values[empty] = np.nan
        rows = _torch.from_numpy(np.column_stack((numbers, values.view(np.int64))))
        self.rows.append(rows.to(self.device))  # type: ignore[union-attr]

    def compute(self) -> Tensor | dict[str, Tensor]:
        """Return the views, averaged over queries; a tensor, or a dict of them by name."""
        self._fill_empty()
        rows = _host.utilities.dim_zero_cat(self.rows).cpu().numpy()
        # Sorted, so that the bits of sums do not depend on batches and processes.
        rows = rows[np.lexsort(rows.T[::-1])]
        distinct, times = np.unique(rows[:, 0], return_counts=True)
        if self.numbering == "run" and (times > 1).any():
            raise InputError(
                f"{counted(int((times > 1).sum()), 'query')} came in more than one call, for "
                f"example query {distinct[times > 1][0]}; give all documents of a query in one "
                "call, reset the metric after each epoch, or use numbering='batch' if numbers "
                "start again in every call"
            )
        values = rows[:, 1:].copy().view(np.float64)
        values = values[~np.isnan(values).any(axis=1)]  # skipped
        if not len(values):
            values = np.zeros((1, values.shape[1]))  # as in torchmetrics
        views = {}
        columns = values.T.reshape(-1, len(_KEPT), len(values))
        for measure, five in zip(self.measures, columns, strict=True):
            own: dict[str, Any] = dict(zip(_KEPT, five, strict=True))
            views[measure] = Views(**own if measure.has_variance else own | {"variance": None})
        means = Result(range(len(values)), views).flat(at=self.at, views=self.views)
        # float64 if the device supports it.
        dtype = _torch.float32 if self.device.type == "mps" else _torch.float64
        tensors: dict[str, Tensor] = {
            name: _torch.tensor(value, dtype=dtype, device=self.device)
            for name, value in means.items()
        }
        return next(iter(tensors.values())) if self._one else tensors

    def sync(self, *args: object, **options: object) -> None:
        """Gather the states of all processes, including processes without a query."""
        self._fill_empty()
        super().sync(*args, **options)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: object, **options: object) -> object:
        """Move states and stored values to another device; do not cast them."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(fn(_torch.zeros(0, device=tensor.device)).device)

        return super()._apply(move, *args, **options)

    def extra_repr(self) -> str:
        """Return the measures, for the text of a printed model."""
        return ", ".join(map(repr, self.measures))

    def _fill_empty(self) -> None:
        """Replace an empty state by a tensor without rows, which can be gathered."""
        if isinstance(self.rows, list) and not self.rows:
            width = 1 + len(self.measures) * len(_KEPT)
            self.rows.append(_torch.zeros(0, width, dtype=_torch.long, device=self.device))
