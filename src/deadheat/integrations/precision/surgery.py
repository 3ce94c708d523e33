"""Copies of a model that share its weights but compute one module differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from deadheat._internal.dtypes import Format
from deadheat.errors import InputError
from deadheat.scoring import PROBE, Activation, find_head, logit_rows, torch_functions

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder
    from torch import Tensor
    from torch.nn import Linear, Module

    Modules = Mapping[str, Module | None]

M = TypeVar("M")


def is_a(module: object, name: str) -> bool:
    """Return whether a module has a sentence-transformers class, without importing the library."""
    return ("sentence_transformers", name) in class_names(module)


def class_names(model: object) -> Iterator[tuple[str, str]]:
    """Yield the library and the name of each class of an object, most specific first."""
    for cls in type(model).__mro__:
        yield cls.__module__.partition(".")[0], cls.__name__


def clone(module: Any, cls: type[M]) -> M:
    """Copy an object as a `cls`; a module shares its parameters, hooks and children."""
    if "forward" in vars(module):
        raise InputError(
            f"the {type(module).__name__} in this model has a forward of its own (a device_map "
            "over several devices sets one), which a view would bypass; load it onto one device"
        )
    copy: M = object.__new__(cls)
    vars(copy).update(vars(module))
    if "_modules" in vars(module):
        # A compiled call is bound to the module it was compiled for.
        vars(copy).update(_compiled_call_impl=None, _modules=module._modules.copy())
    return copy


def with_cast_logits(model: CrossEncoder, format: Format) -> Modules:
    """Return the modules of a CrossEncoder, with a yes − no difference taken in `format`."""
    score = logit_score(model)
    if score is None:
        return model._modules

    def forward(features: dict[str, Tensor], **options: object) -> object:
        """Cast both logits of the last token before the model computes their difference."""
        name = score.module_input_name
        features[name] = torch_functions.cast(features[name][:, -1:], format)
        return type(score).forward(score, features, **options)

    return _replace(model._modules, score, _with_forward(score, forward))


def with_fp32_head(model: CrossEncoder) -> Modules:
    """Return the modules of a CrossEncoder, with a head in FP32.

    The head is the linear layer that computes the logits. Only the rows that score are computed:
    for a causal model, the rows of no and yes.
    """
    (rows, subtracts), score = logit_rows(model), logit_score(model)
    modules = with_fp32_layer(model._modules, find_scoring_head(model).layer, rows)
    if score is not None:
        few = clone(score, type(score))
        few.true_token_id, few.false_token_id = (1, 0) if subtracts else (0, None)
        modules = _replace(modules, score, few)
    return modules


def with_fp32_layer(
    modules: Modules, layer: Linear, rows: Sequence[int], *, keep_width: bool = False
) -> Modules:
    """Return modules in which a linear layer computes some of its outputs in FP32.

    With `keep_width`, the other outputs are −inf; otherwise they are dropped.
    """
    import torch

    index = list(rows)

    def forward(hidden: Tensor) -> Tensor:
        bias = None if layer.bias is None else layer.bias[index].float()
        with torch.autocast(hidden.device.type, enabled=False):
            few = torch.nn.functional.linear(hidden.float(), layer.weight[index].float(), bias)
        if not keep_width or len(index) == layer.out_features:
            return few
        logits = few.new_full((*few.shape[:-1], layer.out_features), -torch.inf)
        logits[..., index] = few
        return logits

    return _replace(modules, layer, _with_forward(layer, forward))


def find_scoring_head(model: CrossEncoder) -> Activation:
    """Find the linear layer that computes the logits, with its input and output."""
    import torch

    probed = clone(model, type(model))  # before 5.4 it would keep the activation

    def run() -> Tensor:
        # One pair at a time: the last position is then never padding.
        logits = probed.predict(
            list(PROBE),
            batch_size=1,
            activation_fn=torch.nn.Identity(),
            convert_to_tensor=True,
            show_progress_bar=False,
        )
        return logits.reshape(len(PROBE), -1)

    rows, subtracts = logit_rows(model)
    return find_head(model, run, rows, subtracts=subtracts)


def logit_score(model: CrossEncoder) -> Any:
    """Return the module that scores by the logits of no and yes; None if there is none."""
    return next((m for m in model._modules.values() if is_a(m, "LogitScore")), None)


def _replace(children: Modules, old: Module, new: Module) -> Modules:
    """Return a module's children with `new` wherever `old` is; copy only the parents of `old`."""
    replaced = dict(children)
    for name, child in children.items():
        if child is old:
            replaced[name] = new
        elif child is not None and any(module is old for module in child.modules()):
            replaced[name] = parent = clone(child, type(child))
            vars(parent)["_modules"] = _replace(child._modules, old, new)
    return replaced


def _with_forward(module: M, forward: Callable[..., object]) -> M:
    copy = clone(module, type(module))
    vars(copy)["forward"] = forward
    return copy
