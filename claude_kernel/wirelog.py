"""The last lines of the wire trace, for `%claude log`. Payloads are cut where they are logged; secrets are replaced."""

from __future__ import annotations

import logging
import re
from collections import deque

MOST_LINES = 200
_SECRETS = re.compile(r"sk-ant-[\w-]+|(?i:bearer) [\w.-]{8,}")
_recent: deque[str] = deque(maxlen=MOST_LINES)


class _Recent(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _recent.append(_SECRETS.sub("[secret]", f"{self.format(record)}")[:500])


def keep_recent_lines() -> None:
    """Begins to keep them; safe to call again."""
    logger = logging.getLogger("claude_kernel")
    if not any(isinstance(handler, _Recent) for handler in logger.handlers):
        handler = _Recent(logging.DEBUG)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False


def recent_lines() -> list[str]:
    return list(_recent)
