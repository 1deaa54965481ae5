"""Claude's prose: Markdown in, HTML out, with raw HTML off. It knows no tool and no turn.

Every rule that would put text into an attribute is replaced here: links go through `find_link`, images become
links, formulas go through `may_typeset`, fences name a lexer from our table, nothing else has attributes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from claude_kernel.render.ansi import strip_ansi
from claude_kernel.render.code import highlight, language_named
from claude_kernel.render.direction import direction_of, first_direction
from claude_kernel.render.latex import may_typeset
from claude_kernel.render.links import find_link
from claude_kernel.render.sanitize import sanitize
from claude_kernel.render.visible import loose_html, loose_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_Rule = Callable[[Any, Sequence[Any], int, Any, Any], str]

_LONGEST_FORMULA = 4_000
_BARE_ADDRESS = re.compile(r"https?://[^\s<>\"'`‹›\\]+[^\s<>\"'`‹›\\.,;:!?)\]}*_~]")
_TASK = re.compile(r"\[([ xX])\] ")
_NARROWEST_TABLE = 30
"""Letters that stand side by side in a narrow window."""


def render_markdown(text: str, *, project: str = "", definitions: str = "") -> str:
    """`definitions` are the link definitions of earlier segments (see `MarkdownSplitter.definitions`)."""
    return sanitize(compose_markdown(text, project=project, definitions=definitions))


def compose_markdown(text: str, *, project: str = "", definitions: str = "") -> str:
    """As `render_markdown`, for pieces that are sanitized with the whole they become part of."""
    source = strip_ansi(text)
    if definitions:
        source = f"{definitions}\n\n{source}"
    return str(_parser(project).render(source))


def plain_prose(text: str) -> str:
    return loose_text(strip_ansi(text))


@lru_cache(maxsize=8)
def _parser(project: str) -> MarkdownIt:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    parser.enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    # A price is no formula: "$5 and $6". A blank line ends a formula, so a segment may be cut there.
    parser.use(
        dollarmath_plugin,
        allow_labels=False,
        allow_space=False,
        allow_digits=False,
        allow_blank_lines=False,
        double_inline=True,
    )
    parser.inline.ruler.before("escape", "math_brackets", _scan_bracket_formula)
    parser.core.ruler.push("task_marks", _mark_tasks)
    parser.core.ruler.push("directions", _mark_directions)

    def validate(url: str) -> bool:
        return find_link(url, project) is not None

    parser.validateLink = validate  # type: ignore[method-assign]  # markdown-it's own extension point
    for name, rule in _rules(project).items():
        parser.add_render_rule(name, rule)
    return parser


def _scan_bracket_formula(state: StateInline, silent: bool) -> bool:
    r"""`\(…\)` anywhere, `\[…\]` at the start of a line only: elsewhere that is an escaped bracket."""
    opening = state.src[state.pos : state.pos + 2]
    if opening not in ("\\(", "\\["):
        return False
    if opening == "\\[" and state.src[: state.pos].rpartition("\n")[2].strip():
        return False
    closing = "\\)" if opening == "\\(" else "\\]"
    end = state.src.find(closing, state.pos + 2, min(state.posMax, state.pos + _LONGEST_FORMULA))
    if end < 0:
        return False
    if not silent:
        token = state.push("math_inline" if opening == "\\(" else "math_inline_double", "math", 0)
        token.content = state.src[state.pos + 2 : end]
    state.pos = end + 2
    return True


def _mark_tasks(state: Any) -> None:
    """`- [x] done` becomes a drawn box: a real checkbox would be a form, and one that does nothing."""
    tokens = state.tokens
    for index in range(2, len(tokens)):
        if tokens[index].type == "inline" and tokens[index - 2].type == "list_item_open":
            children = tokens[index].children
            if children and children[0].type == "text" and (mark := _TASK.match(children[0].content)):
                box = "☐ " if mark[1] == " " else "☑ "
                children[0].content = box + children[0].content[mark.end() :]


_HOLDERS = ("bullet_list", "ordered_list", "blockquote", "table")


def _mark_directions(state: Any) -> None:
    """A list, a quotation or a table is read one way as a whole, by its first words; a paragraph by its own."""
    holders: list[Token] = []
    for token in state.tokens:
        if token.nesting == 1:
            holders.append(token)
        elif token.nesting == -1:
            holders.pop()
        elif token.type == "inline":
            found = first_direction(child.content for child in token.children or () if child.type == "text")
            for holder in holders if found else ():
                holder.meta.setdefault("reads", found)
    around = ["ltr"]
    for index, token in enumerate(state.tokens):
        kind, _, side = token.type.rpartition("_")
        own = token.meta.get("reads", around[-1])
        if kind in _HOLDERS and side == "close":
            around.pop()
        elif kind in _HOLDERS:
            token.meta["dir"] = own if own != around[-1] else ""
            around.append(own)
        elif token.type in ("th_open", "td_open") or (token.type == "paragraph_open" and token.hidden):
            token.meta["dir"] = state.tokens[index + 2].meta["dir"] = own if own != around[-1] else ""
        elif token.type in ("paragraph_open", "heading_open"):
            # the browser would go by the code that it begins with
            begins_otherwise = own == "rtl" and direction_of(state.tokens[index + 1].content) == "ltr"
            token.meta["dir"] = "rtl" if begins_otherwise else "auto"


def _rules(project: str) -> dict[str, _Rule]:
    def link_open(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:
        env["in_link"] = True
        return _anchor(find_link(str(tokens[index].attrGet("href") or ""), project))

    def link_close(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:  # noqa: ARG001  # a rule
        env["in_link"] = False
        return "</a>"

    def image(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:
        label = f"[image: {loose_html(tokens[index].content or 'no description')}]"
        address = find_link(str(tokens[index].attrGet("src") or ""), project)
        return label if env.get("in_link") else f"{_anchor(address)}{label}</a>"

    return {**_FIXED_RULES, "link_open": link_open, "link_close": link_close, "image": image}


def _anchor(address: str | None) -> str:
    return f'<a href="{escape(address)}" target="_blank" rel="noopener noreferrer">' if address else "<a>"


def _text(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:
    content = tokens[index].content
    if "://" not in content or env.get("in_link"):
        return loose_html(content)
    pieces, done = [], 0
    for match in _BARE_ADDRESS.finditer(content):
        address = find_link(match[0])
        if address:
            pieces += [loose_html(content[done : match.start()]), _anchor(address), loose_html(match[0]), "</a>"]
            done = match.end()
    return "".join([*pieces, loose_html(content[done:])])


def _code_inline(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return f"<code>{loose_html(tokens[index].content)}</code>"


def _code_block(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    words = tokens[index].info.split()
    shown = highlight(tokens[index].content.rstrip("\n"), language_named(words[0]) if words else "")
    return f"<pre><code>{shown}</code></pre>\n"


def _formula(content: str, mark: str) -> str:
    shown = escape(f"{mark}{content.strip()}{mark}")
    if not may_typeset(content):
        return f"<code>{loose_html(mark + content.strip() + mark)}</code>"
    return f'<span class="mathjax_process tex2jax_process">{shown}</span>'


def _math_inline(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return _formula(tokens[index].content, "$")


def _math_display(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return _formula(tokens[index].content, "$$")


def _math_block(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return f"<p>{_formula(tokens[index].content, '$$')}</p>\n"


def _directed(token: Token) -> str:
    direction = token.meta.get("dir")
    return f' dir="{direction}"' if direction else ""


def _span_open(token: Token) -> str:
    """Around words that are read the other way than what holds them."""
    return f"<span{_directed(token)}>" if _directed(token) else ""


def _span_close(token: Token) -> str:
    return "</span>" if _directed(token) else ""


def _open(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return f"<{tokens[index].tag}{_directed(tokens[index])}>"


def _open_block(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return f"<{tokens[index].tag}{_directed(tokens[index])}>\n"


def _paragraph_open(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """In a tight list a paragraph has no element of its own."""
    token = tokens[index]
    return _span_open(token) if token.hidden else f"<p{_directed(token)}>"


def _paragraph_close(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    ended = _span_close(tokens[index]) if tokens[index].hidden else ""
    return ended + str(renderer.renderToken(tokens, index, options, env))


def _ordered_list_open(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    start = tokens[index].attrGet("start")
    counted = f' start="{int(start)}"' if start is not None else ""
    return f"<ol{counted}{_directed(tokens[index])}>\n"


def _table_open(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    focus = ' tabindex="0"' if _may_be_too_wide(tokens, index) else ""
    return f'<div class="tb"{_directed(tokens[index])}{focus}><table>\n'


def _may_be_too_wide(tokens: Sequence[Token], index: int) -> bool:
    """Then it is scrolled, and the keyboard must be able to: by the longest word of each column."""
    widths: list[int] = []
    column = 0
    for token in tokens[index:]:
        if token.type == "tr_open":
            column = 0
        elif token.type == "inline":
            widths += [0] * (column + 1 - len(widths))
            widths[column] = max(widths[column], *(len(word) + 2 for word in (token.content or " ").split(" ")))
            column += 1
        elif token.type == "table_close":
            break
    return sum(widths) > _NARROWEST_TABLE


def _cell_tag(tokens: Sequence[Token], index: int) -> str:
    """A heading without words heads nothing: an empty `th` is read aloud as one."""
    return tokens[index].tag if tokens[index + tokens[index].nesting].content.strip() else "td"


def _cell_open(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    side = str(tokens[index].attrGet("style") or "").removeprefix("text-align:")
    aligned = f' align="{side}"' if side in ("left", "center", "right") else ""
    return f"<{_cell_tag(tokens, index)}{aligned}>{_span_open(tokens[index])}"


def _cell_close(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    return f"{_span_close(tokens[index])}</{_cell_tag(tokens, index)}>\n"


_FIXED_RULES: dict[str, _Rule] = {
    "text": _text,
    "code_inline": _code_inline,
    "code_block": _code_block,
    "fence": _code_block,
    "math_inline": _math_inline,
    "math_inline_double": _math_display,
    "math_block": _math_block,
    "paragraph_open": _paragraph_open,
    "paragraph_close": _paragraph_close,
    "heading_open": _open,
    "bullet_list_open": _open_block,
    "ordered_list_open": _ordered_list_open,
    "list_item_open": _open,
    "blockquote_open": _open_block,
    "table_open": _table_open,
    "table_close": lambda *_: "</table></div>\n",
    "th_open": _cell_open,
    "td_open": _cell_open,
    "th_close": _cell_close,
    "td_close": _cell_close,
}
