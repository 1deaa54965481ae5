"""The process that outlives a killed kernel and ends what it left running. Also its client side.

One guard serves one Python process, whatever number of CLIs it starts. It reads `watch` and `forget` lines from a
pipe; when the pipe closes or its parent is gone, however the parent died, it ends every tree still watched. Run as a
script with `python -I -S`, it imports nothing beyond the standard library until that moment, to start fast and stay
small. A CLI that was started but not yet watched has no prompt, and exits by itself at the end of its stdin.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 2.0


class Guard:
    """The client side: start it once, tell it what to watch."""

    def __init__(self) -> None:
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        paths = [package, *(path for path in sys.path if path and path != package)]
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and this very file
            [sys.executable, "-I", "-S", os.path.abspath(__file__), *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    @property
    def usable(self) -> bool:
        return self._owner == os.getpid() and self._process.poll() is None

    def watch(self, pid: int, marker: str) -> None:
        self._tell(f"watch {pid} {marker}\n")

    def forget(self, pid: int) -> None:
        self._tell(f"forget {pid}\n")

    def _tell(self, line: str) -> None:
        if not self.usable or self._process.stdin is None:
            return
        with self._lock:
            try:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()
            except OSError:
                pass  # it died: the next CLI gets a new guard


_guard: Guard | None = None


def current_guard() -> Guard:
    """This process's guard; a new one after a fork or if it was killed."""
    global _guard
    if _guard is None or not _guard.usable:
        _guard = Guard()
    return _guard


def _serve(parent: int) -> dict[int, str]:
    """Reads until the parent is gone; returns what it left behind."""
    watched: dict[int, str] = {}
    pending = b""
    while True:
        # A fork of the parent may hold the pipe open for ever, so its death shows in the parent pid as well.
        readable, _, _ = select.select([0], [], [], 1.0)
        chunk = os.read(0, 65536) if readable else None
        if chunk == b"" or os.getppid() != parent:
            return watched
        *lines, pending = (pending + (chunk or b"")).split(b"\n")
        for line in lines:
            verb, pid, *marker = line.decode().split()
            if verb == "watch":
                watched[int(pid)] = marker[0]
            else:
                watched.pop(int(pid), None)


def main(paths: list[str]) -> None:
    parent = os.getppid()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    left = _serve(parent)
    if not left:
        return
    sys.path[:0] = paths
    from claude_kernel.processes import end_tree

    threads = [threading.Thread(target=end_tree, args=(pid, marker, GRACE_SECONDS)) for pid, marker in left.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
