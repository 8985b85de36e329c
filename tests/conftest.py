"""Property tests draw new examples on every run at a developer's desk, and the same ones in the gate."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("gate", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("gate")
