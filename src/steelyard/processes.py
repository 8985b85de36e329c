"""Worker processes that end with the process that asked for the work."""

from __future__ import annotations

import os
import threading
import time


def end_with(parent: int) -> None:
    """In a worker process: end when the process that asked for the work is gone. Asked again, it does nothing.

    A process that is killed cannot tell its workers, and they would go on to the end of their work. On Windows a
    process keeps the number of a parent that is gone, and there this does nothing.
    """
    name = f"ends with {parent}"
    if any(thread.name == name for thread in threading.enumerate()):
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name=name, daemon=True).start()
