"""Texts to stream. They know nobody who reads them."""

from __future__ import annotations


def prose(size: int) -> str:
    """Markdown as Claude writes it: mostly paragraphs, now and then a list, a table or some code."""
    page = (
        "## Part {n}\n\n" + "The latency of request {n} fell, which the *second* run confirms in every respect. " * 5
    ) + (
        "\n\n- warm the cache first;\n- then count `n` of them.\n\n"
        + "Nothing else changed in part {n}, neither the order nor the number of requests. " * 6
        + "\n\n```python\nlatency = measure({n})\n```\n\n"
    )
    pages: list[str] = []
    length = 0
    while length < size:
        pages.append(page.format(n=len(pages)))
        length += len(pages[-1])
    return "".join(pages)[:size]
