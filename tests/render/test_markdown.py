"""Markdown becomes the HTML that is meant, and formulas, links and code keep to their rules."""

from __future__ import annotations

import time

import pytest

from claude_kernel.render.latex import may_typeset
from claude_kernel.render.links import find_link
from claude_kernel.render.markdown import render_markdown

MATH = '<span class="mathjax_process tex2jax_process">'
LINK = 'target="_blank" rel="noopener noreferrer">'

RENDERED = {
    "emphasis": ("**a** ~~b~~", '<p dir="auto"><strong>a</strong> <s>b</s></p>\n'),
    "formula": ("$x^2$", f'<p dir="auto">{MATH}$x^2$</span></p>\n'),
    "formula in brackets": (r"\(x\)", f'<p dir="auto">{MATH}$x$</span></p>\n'),
    "displayed formula": ("$$\na < b\n$$", f"<p>{MATH}$$a &lt; b$$</span></p>\n"),
    "displayed formula in brackets": (r"\[ x \]", f'<p dir="auto">{MATH}$$x$$</span></p>\n'),
    "prices are no formula": ("from $5 to $6", '<p dir="auto">from $5 to $6</p>\n'),
    "formula with a command not listed": (r"$\href{a}{b}$", '<p dir="auto"><code>$\\href{a}{b}$</code></p>\n'),
    "dollars in code": ("`$x$`", '<p dir="auto"><code>$x$</code></p>\n'),
    "escaped brackets inside a line": (r"see \[1\]", '<p dir="auto">see [1]</p>\n'),
    "web link": ("[a](https://b.c)", f'<p dir="auto"><a href="https://b.c" {LINK}a</a></p>\n'),
    "file link": ("[a](src/x.py#L3)", f'<p dir="auto"><a href="src/x.py#L3" {LINK}a</a></p>\n'),
    "script link stays text": ("[a](javascript:b)", '<p dir="auto">[a](javascript:b)</p>\n'),
    "bare address": (
        "see https://b.c/d_e.",
        f'<p dir="auto">see <a href="https://b.c/d_e" {LINK}https://b.c/d_e</a>.</p>\n',
    ),
    "image is a link": ("![a](http://b.c/d)", f'<p dir="auto"><a href="http://b.c/d" {LINK}[image: a]</a></p>\n'),
    "image in a link": (
        "[![a](http://b.c/d)](http://e.f)",
        f'<p dir="auto"><a href="http://e.f" {LINK}[image: a]</a></p>\n',
    ),
    "tasks": ("- [x] a\n- [ ] b", "<ul>\n<li>☑ a</li>\n<li>☐ b</li>\n</ul>\n"),
    "numbers go on": ("3. a", '<ol start="3">\n<li>a</li>\n</ol>\n'),
    "raw html is text": ("<b>a</b>", '<p dir="auto">&lt;b&gt;a&lt;/b&gt;</p>\n'),
    "code": ("```python\nif x:\n```", '<pre><code><span class="k">if </span>x:</code></pre>\n'),
    "code in no language": ("```nonsense\n<a>\n```", "<pre><code>&lt;a&gt;</code></pre>\n"),
    "hidden characters": ("a\u202eb", '<p dir="auto">a<span class="u">‹U+202E›</span>b</p>\n'),
    "joiners belong to prose": ("می\u200cخواهم", '<p dir="auto">می\u200cخواهم</p>\n'),
}


@pytest.mark.parametrize("name", RENDERED)
def test_markdown_is_rendered_as_meant(name: str) -> None:
    source, html = RENDERED[name]
    assert render_markdown(source) == html


def test_a_table_keeps_its_alignment_without_a_style_attribute() -> None:
    html = render_markdown("|a|b|\n|--:|---|\n|1|2|")
    assert '<th align="right">a</th>' in html
    assert "style" not in html


def test_a_link_to_a_file_of_the_project_is_made_relative() -> None:
    html = render_markdown("[a](/home/me/p/x.py) [b](/etc/passwd)", project="/home/me/p")
    assert 'href="x.py"' in html
    assert "[b](/etc/passwd)" in html


def test_definitions_of_earlier_segments_are_known() -> None:
    assert 'href="http://b.c"' in render_markdown("see [a][1]", definitions="[1]: http://b.c\n")


@pytest.mark.parametrize(
    "text", ["[" * 20_000, "$a " * 10_000, r"\( " * 10_000, "> " * 5_000, "*a **b " * 5_000, "`a``" * 8_000]
)
def test_a_text_made_to_be_slow_is_not(text: str) -> None:
    began = time.perf_counter()
    render_markdown(text)
    assert time.perf_counter() - began < 3


LINKS = [
    ("http://a.b/c?d#e", "http://a.b/c?d#e"),
    ("mailto:a@b.c", "mailto:a@b.c"),
    ("a/b.py", "a/b.py"),
    ("/p/a.py", "a.py"),
    ("/p/../etc", None),
    ("/lab?reset", None),
    ("a?b", None),
    ("../a", None),
    ("a/%2e%2e/b", None),
    ("//a.b", None),
    ("#x", None),
    ("~/a", None),
    ("ftp://a.b", None),
    ("javascript:a", None),
    ("JAVASCRIPT:a", None),
    ("data:image/png;base64,AAAA", None),
    ("http://a@b.c", None),
    ("http://a\\@b.c", None),
    ("http://[::1", None),
    ("http:a", None),
    ("a\u202eb", None),
    ("http://a.b/%E2%80%AEx", None),
    ("", None),
]


@pytest.mark.parametrize(("url", "linked"), LINKS)
def test_only_honest_addresses_become_links(url: str, linked: str | None) -> None:
    assert find_link(url, "/p") == linked


FORMULAS = [
    (r"\frac{a}{b} \le \sum_{i=1}^n x_i", True),
    (r"\begin{pmatrix}1 & 2 \\[4pt] 3 & 4\end{pmatrix}", True),
    (r"\text{price: \$5}", True),
    (r"\left\{ x \mid x > 0 \right\}", True),
    (r"\begin{html}x\end{html}", False),
    (r"\begin %" + "\n{html}", False),
    (r"\\[-50em]", False),
    (r"\\hrefx", True),
    (r"\hreF", False),
    ("a$b", False),
    ("x" * 5_000, False),
    ("{" * 60 + "}" * 60, False),
]


@pytest.mark.parametrize(("formula", "allowed"), FORMULAS)
def test_only_formulas_of_listed_commands_are_typeset(formula: str, allowed: bool) -> None:
    assert may_typeset(formula) is allowed
