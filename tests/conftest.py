"""Shared fixtures: both counting passes, and the real data beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from deadheat.ties import counting, numpy_counting

# The counting pass is a fixture, the same for all examples of a test.
settings.register_profile(
    "deadheat", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("deadheat")

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(params=["compiled", "numpy"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the compiled counting pass and with its NumPy twin."""
    if request.param == "numpy":
        monkeypatch.setattr(counting, "_active", numpy_counting)
    elif counting.BACKEND != "compiled":
        pytest.skip("the counting pass was not compiled: no C compiler at install")
    return request.param


@pytest.fixture
def shared() -> Path:
    """Real runs and judgements that are not part of the project."""
    if not SHARED.is_dir():
        pytest.skip("the shared test data is not beside the project")
    return SHARED
