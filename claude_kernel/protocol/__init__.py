"""The protocol with no I/O: bytes in, events out; decisions in, bytes out. It knows no process, clock or Jupyter."""

from claude_kernel.protocol.connection import Connection
from claude_kernel.protocol.decisions import Allow, Answers, Decision, Deny, Filled, Prompt
from claude_kernel.protocol.dialects import DIALECTS, Dialect, find_dialect

__all__ = [
    "DIALECTS",
    "Allow",
    "Answers",
    "Connection",
    "Decision",
    "Deny",
    "Dialect",
    "Filled",
    "Prompt",
    "find_dialect",
]
