"""Which addresses may become links. It knows addresses only, no markup.

An address with a hidden or reordering character in it, plain or percent-encoded, is nobody's honest address.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from claude_kernel.render.visible import exact_text

_WEB = re.compile(r"https?://[^\s/?#@\\]+(?:[/?#]\S*)?\Z", re.IGNORECASE)
_MAIL = re.compile(r"mailto:[\w.+%-]+@[\w.-]+(?:\?\S*)?\Z", re.IGNORECASE)
_FILE = re.compile(r"[^\s:\\?#]+(?:#[\w.-]*)?\Z")


def find_link(url: str, project: str = "") -> str | None:
    """The address to link to, or None. Files are linked relative to the project, and only if they are inside it.

    A relative address with a query, a `..` or a leading slash could be one of the server's own pages
    (`/lab?reset`, `../logout`): those are never links.
    """
    if exact_text(url) != url or exact_text(unquote(url)) != unquote(url):
        return None
    if _WEB.match(url) or _MAIL.match(url):
        return url if _parses(url) else None
    path = unquote(url)
    base = project.rstrip("/") + "/"
    if project and path.startswith(base):
        path = path.removeprefix(base)
        url = url.removeprefix(base)
    if not _FILE.match(url) or not _FILE.match(path) or path.startswith(("/", "~")) or ".." in path.split("/"):
        return None
    return None if url.startswith("#") else url


def _parses(url: str) -> bool:
    try:
        return bool(urlsplit(url).path or urlsplit(url).netloc)
    except ValueError:
        return False
