"""The last wall: whatever is published passes this allow-list, even though every renderer escapes for itself.

It knows which tags, attributes and classes the renderers of this package emit, and nothing of what they mean.
Classes are listed too: text of the CLI must never wear one of JupyterLab's (`jp-…`, `lm-…`) or a widget's.
"""

from __future__ import annotations

import re
from functools import cache

import nh3

from claude_kernel.render.links import find_link

_CLASS_NAMES = (
    "ck mathjax_ignore mathjax_process tex2jax_ignore tex2jax_process "  # the frame, and who may typeset
    "ok no q d u "  # done, failed, asking, dim, revealed character
    "k s c m f B M C "  # code and terminal colours
    "df add del n "  # differences
    "sub todo foot rec trouble live tb"
)
CLASSES = frozenset(_CLASS_NAMES.split())

_TAG_NAMES = (
    "a b blockquote br code del details div em h1 h2 h3 h4 h5 h6 hr i img li ol p pre s span strong summary "
    "table tbody td th thead tr u ul"
)
TAGS = frozenset(_TAG_NAMES.split())

_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_DIRECTED = ("blockquote", "b", "div", *_HEADINGS, "li", "ol", "p", "pre", "span", "td", "th", "ul")
_SCROLLED = ("div", "pre")

_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}\Z")
_NUMBER = re.compile(r"\d{1,9}\Z")


def _filter(_tag: str, attribute: str, value: str) -> str | None:
    if attribute == "href":
        return find_link(value)
    if attribute == "src":
        return value if _PICTURE.match(value) else None
    if attribute == "start":
        return value if _NUMBER.match(value) else None
    return value


@cache
def _cleaner() -> nh3.Cleaner:
    values: dict[str, dict[str, set[str]]] = {tag: {"dir": {"auto", "ltr", "rtl"}} for tag in _DIRECTED}
    for tag in ("td", "th"):
        values[tag]["align"] = {"left", "center", "right"}
    for tag in _SCROLLED:
        values[tag]["tabindex"] = {"0"}
    values["a"] = {"target": {"_blank"}}
    values["details"] = {"open": {""}}
    return nh3.Cleaner(
        tags=set(TAGS),
        clean_content_tags={"script", "style"},
        attributes={"a": {"href"}, "img": {"src", "alt"}, "ol": {"start"}},
        attribute_filter=_filter,
        tag_attribute_values=values,
        allowed_classes={tag: set(CLASSES) for tag in TAGS},
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer",
        strip_comments=True,
    )


def sanitize(html: str) -> str:
    return str(_cleaner().clean(html))
