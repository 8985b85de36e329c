"""Ctrl-C, also where a library makes another error of it: NumPy's import says that its installation is broken."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def noticed() -> Iterator[list[int]]:
    """A list that is empty as long as nobody has pressed Ctrl-C."""
    seen: list[int] = []

    def notice(number: int, frame: Any) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield seen
        return
    signal.signal(signal.SIGINT, notice)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
