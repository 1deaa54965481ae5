"""`python -m claude_kernel.demo`, with the flags of the real CLI as far as they mean something here."""

from __future__ import annotations

import sys

from claude_kernel.demo.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
