"""Property tests draw new examples at a desk, and the same ones in the gate; Ctrl-C is there what it is at a desk."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

settings.register_profile("gate", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("gate")

# What is started in the background of a shell has SIGINT ignored, and so would all processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
