"""`show_figure`: the figures that are open in matplotlib, as images. It imports nothing that is not there already."""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

from claude_kernel.errors import UsageError
from claude_kernel.protocol.events import Image

MOST_FIGURES = 4


def open_figures(number: int | None = None) -> tuple[Image, ...]:
    """One of them, by its number, or the last few. A figure that a notebook has shown is closed, as a rule."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")  # `pyplot.figure(n)` would make it the current one
    figures = dict(helpers.Gcf.figs) if helpers is not None else {}
    if number is not None and number not in figures:
        raise UsageError(f"There is no open figure {number}; there are {list(figures) or 'none'}.")
    if not figures:
        raise UsageError(
            "No figure is open: a notebook closes a figure once it has shown it. Draw it again with run_python, "
            "whose figures come back as images."
        )
    chosen = [number] if number is not None else list(figures)[-MOST_FIGURES:]
    return tuple(_to_image(figures[each].canvas.figure) for each in chosen)


def _to_image(figure: Any) -> Image:
    held = io.BytesIO()
    figure.savefig(held, format="png", dpi=100, bbox_inches="tight")
    return Image("image/png", base64.b64encode(held.getvalue()).decode())
