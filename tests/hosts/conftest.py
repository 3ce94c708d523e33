"""Nothing here asks the hub: what a host would fetch from there is made by the tests."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
