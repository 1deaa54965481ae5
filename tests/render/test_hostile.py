"""No hostile text leaves a renderer as anything but text, whichever way it comes in."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from claude_kernel.render import Bundle
from claude_kernel.render.sanitize import CLASSES, TAGS, sanitize
from render.everywhere import outputs_with
from render.hostile import HOSTILE

ATTRIBUTES = {
    ("a", "href"),
    ("a", "target"),
    ("a", "rel"),
    ("img", "src"),
    ("img", "alt"),
    ("ol", "start"),
    ("details", "open"),
    ("td", "align"),
    ("th", "align"),
}
ADDRESS = re.compile(r"(?:https?://[^\s@/?#]+(?:[/?#]\S*)?|mailto:[^\s:]+|[^\s:/?\\][^\s:?\\]*)\Z", re.IGNORECASE)
PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+\Z")
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Wall(HTMLParser):
    """Collects what should not be there, and whether the tags are in balance."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.faults.append(f"<{tag}>")
        if tag not in ("br", "hr", "img"):
            self.open.append(tag)
        for name, value in attrs:
            if not self._allowed(tag, name, value or ""):
                self.faults.append(f"<{tag} {name}={value!r}>")

    def _allowed(self, tag: str, name: str, value: str) -> bool:
        if name == "class":
            return set(value.split()) <= CLASSES
        if name == "dir":
            return value in ("auto", "ltr", "rtl")
        if name == "tabindex":
            return tag in ("div", "pre") and value == "0"
        if name == "href":
            return bool(ADDRESS.match(value)) and ("://" in value or ".." not in value.split("/"))
        if name == "src":
            return bool(PICTURE.match(value))
        return (tag, name) in ATTRIBUTES

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> out of place")

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"comment {data!r}")

    def handle_decl(self, decl: str) -> None:
        self.faults.append(f"declaration {decl!r}")

    def unknown_decl(self, data: str) -> None:
        self.faults.append(f"declaration {data!r}")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"instruction {data!r}")


def faults_of(bundle: Bundle) -> list[str]:
    wall = Wall()
    wall.feed(bundle.html)
    wall.close()
    faults = wall.faults + [f"<{tag}> never closed" for tag in wall.open]
    if set(bundle.to_mime()) != {"text/html", "text/plain"}:
        faults.append("another mime type")
    for kind, content in bundle.to_mime().items():
        content.encode()
        faults += [f"{found!r} in {kind}" for found in CONTROLS.findall(content)[:3]]
    return faults


def test_the_corpus_is_large_enough() -> None:
    assert len(HOSTILE) >= 120


@pytest.mark.parametrize("name", HOSTILE)
def test_no_output_holds_more_than_the_allow_list(name: str) -> None:
    faults = {where: found for where, bundle in outputs_with(HOSTILE[name]) if (found := faults_of(bundle))}
    assert faults == {}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_second_wall_holds_alone(name: str) -> None:
    html = '<div class="ck">' + sanitize(HOSTILE[name].encode("utf-8", "replace").decode()) + "</div>"
    wall = Wall()
    wall.feed(html)
    wall.close()
    assert [fault for fault in wall.faults if "out of place" not in fault] == []


# "latex html inside" is a tag as the text of a formula: harmless, and still a formula
@pytest.mark.parametrize("name", [n for n in HOSTILE if n.startswith("latex") and n != "latex html inside"])
def test_no_hostile_formula_is_marked_for_typesetting(name: str) -> None:
    assert all("mathjax_process" not in bundle.html for _, bundle in outputs_with(HOSTILE[name]))
