"""`python -m benchmarks [--quick] [FAMILY …]`: what scripts/bench runs."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from benchmarks.run import main

sys.exit(main(sys.argv[1:]))
