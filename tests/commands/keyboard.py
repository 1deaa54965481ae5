"""What the tests of the commands share: a typed command and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Typed = Callable[..., Said]
"""`typed("doctor", "--json")`."""

Program = Callable[[str, str], Path]
"""`program("claude", "print(1)")` puts a small Python program on the PATH."""
