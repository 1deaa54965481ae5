"""Claude Code inside a notebook. Importing this package loads nothing; each name is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from claude_kernel.chat import Claude
    from claude_kernel.cli import Options
    from claude_kernel.errors import TurnFailed
    from claude_kernel.protocol import Allow, Answers, Deny, Prompt
    from claude_kernel.reply import Reply
    from claude_kernel.session import Session

_HOMES = {
    "Claude": "chat",
    "Options": "cli",
    "Allow": "protocol",
    "Answers": "protocol",
    "Deny": "protocol",
    "Prompt": "protocol",
    "Reply": "reply",
    "Session": "session",
    "TurnFailed": "errors",
    "load_ipython_extension": "magic",
    "unload_ipython_extension": "magic",
}

__all__ = ["Allow", "Answers", "Claude", "Deny", "Options", "Prompt", "Reply", "Session", "TurnFailed", "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
