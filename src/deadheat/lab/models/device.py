"""Choose the device of a model, and check the number format of its weights and computation."""

from __future__ import annotations

from deadheat.errors import InputError, one_line

MODEL_DTYPES = ("bf16", "fp16", "fp32")
"""The formats in which a model can run; other formats are scoring dtypes only."""


def choose_device(device: str | None) -> str:
    """Return the given device, else CUDA, else MPS, else the CPU."""
    import torch

    if device is None:
        has_mps = torch.backends.mps.is_available()
        return "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"the device {device!r} is not available here ({one_line(error)}); use another, such "
            "as cpu"
        ) from error
    return device


def check_model_dtype(name: str) -> None:
    """Raise InputError for a format in which no model can run."""
    if name not in MODEL_DTYPES:
        raise InputError(
            f"a model cannot be run in {name!r}; use one of {', '.join(MODEL_DTYPES)} (other "
            "formats are scoring dtypes)"
        )
