"""Copies of a model that share its weights but compute one module differently."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from deadheat.errors import InputError
from deadheat.packages import require
from deadheat.scoring.dtypes import Format
from deadheat.scoring.torch_functions import cast

if TYPE_CHECKING:
    from torch import Tensor


def is_a(thing: Any, name: str) -> bool:
    """Tell whether a thing is of a sentence-transformers class, without importing the library."""
    return any(
        cls.__name__ == name and cls.__module__.startswith("sentence_transformers")
        for cls in type(thing).__mro__
    )


def clone(module: Any, cls: type) -> Any:
    """Copy a module as a `cls`, sharing its parameters, children and hooks."""
    if "forward" in vars(module):
        raise InputError(
            f"the {type(module).__name__} in this model has a forward of its own (a device_map "
            "over several devices sets one), which a view would bypass: load it onto one device"
        )
    copy: Any = object.__new__(cls)
    # A compiled call is bound to the module it was compiled for.
    vars(copy).update(vars(module), _compiled_call_impl=None)
    return copy


def with_cast_logits(model: Any, format: Format) -> dict[str, Any]:
    """Give the modules of a CrossEncoder, a yes − no difference taken in `format`."""
    return {
        name: _forwarding(module, _score_cast_logits, module, format)
        if is_a(module, "LogitScore")
        else module
        for name, module in vars(model)["_modules"].items()
    }


def with_fp32_head(model: Any) -> dict[str, Any]:
    """Give the modules of a CrossEncoder, its last linear layer in FP32."""
    modules: dict[str, Any] = vars(model)["_modules"]
    for name, score in modules.items():
        if is_a(score, "LogitScore"):
            return _with_few_rows(model, name, score)
    linear = require("torch", "a precision view").nn.Linear
    body = {m for t in model.modules() if hasattr(t, "base_model") for m in t.base_model.modules()}
    paths = [p for p, m in model.named_modules() if isinstance(m, linear) and m not in body]
    if not paths or model.get_submodule(paths[-1]).out_features != model.num_labels:
        raise InputError("the last linear layer of this model does not give its scores: use hps")
    return _with_linear(model, paths[-1], None)


def _with_few_rows(model: Any, name: str, score: Any) -> dict[str, Any]:
    """Compute of a causal model's output layer only the rows of no and yes."""
    output = model[0].model.get_output_embeddings()
    path = next((path for path, module in model.named_modules() if module is output), None)
    if path is None:
        raise InputError("found no output layer in this causal model: use hps")
    rows = [i for i in (score.false_token_id, score.true_token_id) if i is not None]
    few = clone(score, type(score))
    few.true_token_id, few.false_token_id = len(rows) - 1, 0 if len(rows) == 2 else None
    return {**_with_linear(model, path, rows), name: few}


def _with_linear(model: Any, path: str, rows: list[int] | None) -> dict[str, Any]:
    layer = model.get_submodule(path)
    if not layer.weight.is_floating_point():
        raise InputError(f"the layer {path} is quantised ({layer.weight.dtype}): use hps")
    modules: dict[str, Any] = _replaced(model, path, _forwarding(layer, _linear, layer, rows))
    return modules


def _replaced(module: Any, path: str, new: Any) -> dict[str, Any]:
    """Give a module's children, copied along `path` only, with `new` at its end."""
    name, _, rest = path.partition(".")
    children: dict[str, Any] = vars(module)["_modules"].copy()
    if rest:
        child = clone(children[name], type(children[name]))
        vars(child)["_modules"] = _replaced(child, rest, new)
        children[name] = child
    else:
        children[name] = new
    return children


def _forwarding(module: Any, function: Any, *args: Any) -> Any:
    copy = clone(module, type(module))
    vars(copy)["forward"] = partial(function, *args)
    return copy


def _score_cast_logits(score: Any, format: Format, features: Any, **options: Any) -> Any:
    """Cast both logits of the last token, then let the model take their difference."""
    logits = features[score.module_input_name][:, -1:]
    features[score.module_input_name] = cast(logits, format)
    return type(score).forward(score, features, **options)


def _linear(layer: Any, rows: list[int] | None, hidden: Tensor) -> Tensor:
    torch = require("torch", "a precision view")
    pick = slice(None) if rows is None else rows
    bias = None if layer.bias is None else layer.bias[pick].float()
    with torch.autocast(hidden.device.type, enabled=False):
        logits: Tensor = torch.nn.functional.linear(
            hidden.float(), layer.weight[pick].float(), bias
        )
    return logits
