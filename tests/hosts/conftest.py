"""Run offline: the tests create everything that a host would fetch from the hub."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
