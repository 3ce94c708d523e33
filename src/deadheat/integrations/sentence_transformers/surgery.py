"""Copies of a model that share its weights but compute one module differently."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from deadheat.dtypes import Format
from deadheat.errors import InputError
from deadheat.packages import require
from deadheat.scoring.head import PROBE, Activation, find_head
from deadheat.scoring.torch_functions import cast

if TYPE_CHECKING:
    from torch import Tensor


def is_a(module: Any, *names: str) -> bool:
    """Tell whether a module is of a sentence-transformers class, without importing the library."""
    return any(
        cls.__name__ in names and cls.__module__.startswith("sentence_transformers")
        for cls in type(module).__mro__
    )


def clone(module: Any, cls: type) -> Any:
    """Copy a module as a `cls`, with its parameters, its hooks and a list of its children."""
    if "forward" in vars(module):
        raise InputError(
            f"the {type(module).__name__} in this model has a forward of its own (a device_map "
            "over several devices sets one), which a view would bypass: load it onto one device"
        )
    copy: Any = object.__new__(cls)
    # A compiled call is bound to the module it was compiled for.
    vars(copy).update(vars(module), _compiled_call_impl=None)
    vars(copy)["_modules"] = vars(module)["_modules"].copy()
    return copy


def with_cast_logits(model: Any, format: Format) -> dict[str, Any]:
    """Give the modules of a CrossEncoder, a yes − no difference taken in `format`."""
    return {
        name: _forwarding(module, _score_cast_logits, module, format)
        if is_a(module, "LogitScore")
        else module
        for name, module in vars(model)["_modules"].items()
    }


def with_fp32_head(model: Any) -> tuple[dict[str, Any], Any]:
    """Return the modules of a CrossEncoder with an FP32 head, and the head's own output dtype.

    The head is the linear layer that gives the logits. Only the rows that score are computed: of a
    causal model's output layer, no and yes.
    """
    head, rows, score = _scoring_head(model), _rows(model), logit_score(model)
    new = _forwarding(head.layer, _linear, head.layer, rows)
    modules = vars(model)["_modules"]
    for path, module in model.named_modules(remove_duplicate=False):
        if module is head.layer:  # a layer may be registered under several names
            modules = _replaced(modules, path, new)
    if score is not None:
        few = clone(score, type(score))
        few.true_token_id, few.false_token_id = len(rows) - 1, 0 if len(rows) == 2 else None
        modules = {name: few if module is score else module for name, module in modules.items()}
    return modules, head.output.dtype


def scoring_layer(model: Any) -> Any:
    """Find the linear layer that gives the logits of a CrossEncoder."""
    return _scoring_head(model).layer


def _scoring_head(model: Any) -> Activation:
    """Find the linear layer that gives the logits, and what entered and left it."""
    identity = require("torch", "a precision view").nn.Identity()
    probed = clone(model, type(model))  # before 5.4 it would keep the activation

    def run() -> Tensor:
        # One pair at a time: the last position is no padding, whichever side that stands on.
        logits: Tensor = probed.predict(
            list(PROBE),
            batch_size=1,
            activation_fn=identity,
            convert_to_tensor=True,
            show_progress_bar=False,
        )
        return logits.reshape(len(PROBE), -1)

    rows = _rows(model)
    difference = _yes_minus_no if logit_score(model) is not None and len(rows) == 2 else None
    return find_head(model, run, rows, f"this {type(model).__name__}", difference)


def logit_score(model: Any) -> Any:
    """Return the module that scores by the logits of no and yes; None where there is none."""
    return next((m for m in vars(model)["_modules"].values() if is_a(m, "LogitScore")), None)


def _rows(model: Any) -> list[int]:
    """Give the places of the logits among the outputs of the linear layer."""
    score = logit_score(model)
    if score is None:
        return list(range(model.num_labels))
    return [i for i in (score.false_token_id, score.true_token_id) if i is not None]


def _yes_minus_no(logits: Tensor) -> Tensor:
    return logits[:, 1:] - logits[:, :1]


def _replaced(children: dict[str, Any], path: str, new: Any) -> dict[str, Any]:
    """Return a module's children, copied along `path` only, with `new` at its end."""
    name, _, rest = path.partition(".")
    if not rest:
        return {**children, name: new}
    child = clone(children[name], type(children[name]))
    vars(child)["_modules"] = _replaced(vars(child)["_modules"], rest, new)
    return {**children, name: child}


def _forwarding(module: Any, function: Any, *args: Any) -> Any:
    copy = clone(module, type(module))
    vars(copy)["forward"] = partial(function, *args)
    return copy


def _score_cast_logits(score: Any, format: Format, features: Any, **options: Any) -> Any:
    """Cast both logits of the last token, then let the model take their difference."""
    logits = features[score.module_input_name][:, -1:]
    features[score.module_input_name] = cast(logits, format)
    return type(score).forward(score, features, **options)


def _linear(layer: Any, rows: list[int], hidden: Tensor) -> Tensor:
    torch = require("torch", "a precision view")
    bias = None if layer.bias is None else layer.bias[rows].float()
    with torch.autocast(hidden.device.type, enabled=False):
        logits: Tensor = torch.nn.functional.linear(
            hidden.float(), layer.weight[rows].float(), bias
        )
    return logits
