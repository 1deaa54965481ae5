"""Work with a time limit, whatever the work is. It knows nothing of what it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Raises `TimeoutError` when the time is up. The work is left behind in a thread that the program does not wait
    for: a file system or a program that hangs cannot be stopped from here."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="claude-kernel-work", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"not finished within {seconds:g} s")
    if errors:
        raise errors[0]
    return results[0]
