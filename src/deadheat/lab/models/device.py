"""Choose the device of a model, and the number format of its weights and computation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deadheat._internal.dtypes import FORMATS
from deadheat.errors import InputError, one_line

if TYPE_CHECKING:
    import torch

MODEL_DTYPES = ("bf16", "fp16", "fp32")
"""The formats in which a model can run; other formats are scoring dtypes only."""


def choose_device(device: str | None) -> str:
    """Return the given device, else CUDA, else MPS, else the CPU."""
    import torch

    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if device is None:
        return next(name for name, works in available.items() if works)
    if not available.get(device.split(":")[0], False):
        usable = ", ".join(name for name, works in available.items() if works)
        raise InputError(f"the device {device!r} is not available here; use one of {usable}")
    return device


def check_model_dtype(name: str) -> None:
    """Raise InputError for a format in which no model can run."""
    if name not in MODEL_DTYPES:
        raise InputError(
            f"a model cannot be run in {name!r}; use one of {', '.join(MODEL_DTYPES)} (other "
            "formats are scoring dtypes)"
        )


def choose_dtype(model_dtype: str, device: str) -> torch.dtype:
    """Return the torch dtype of a name, after trying it on the device."""
    import torch

    check_model_dtype(model_dtype)
    dtype: torch.dtype = FORMATS[model_dtype].torch
    try:
        probe = torch.ones(2, 2, dtype=dtype, device=device)
        torch.nn.functional.gelu(probe @ probe)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise InputError(
            f"{model_dtype} does not work on {device} ({one_line(error)}); use another model dtype "
            "or device"
        ) from error
    return dtype
