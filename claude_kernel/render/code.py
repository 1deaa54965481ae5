"""Source code in colour, in few classes. It knows languages and Pygments; Pygments is imported when first needed.

Lexers are looked up in a table of our own: asking Pygments for an unknown name scans every installed plugin.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from claude_kernel.render.visible import exact_html, loose_html

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]  # Pygments ships no types

_LOW_LINES = 12
_LOW_CHARS = 360
_LONGEST = 20_000  # lexers are regular expressions run over text we do not trust

# lexer: the names it goes by in a fence and the file endings it is used for
_LANGUAGES = {
    "bash": "sh shell zsh bash console shellsession",
    "c": "c h",
    "cpp": "cpp cc cxx c++ hpp hh",
    "csharp": "cs csharp c#",
    "css": "css scss",
    "diff": "diff patch",
    "docker": "dockerfile docker",
    "elixir": "ex exs elixir",
    "go": "go golang",
    "haskell": "hs haskell",
    "html": "html htm vue svelte",
    "ini": "ini cfg conf properties",
    "java": "java",
    "javascript": "js mjs cjs jsx javascript",
    "json": "json jsonl ipynb jsonc",
    "julia": "jl julia",
    "kotlin": "kt kts kotlin",
    "lua": "lua",
    "make": "make makefile mk",
    "markdown": "md markdown",
    "perl": "pl pm perl",
    "php": "php",
    "powershell": "ps1 powershell",
    "python": "py pyi python python3 ipython",
    "pycon": "pycon",
    "pytb": "pytb traceback",
    "r": "r",
    "ruby": "rb ruby rake",
    "rust": "rs rust",
    "scala": "scala",
    "sql": "sql",
    "swift": "swift",
    "toml": "toml",
    "typescript": "ts tsx typescript",
    "xml": "xml svg xsl",
    "yaml": "yaml yml",
}
_LEXER_OF = {name: lexer for lexer, names in _LANGUAGES.items() for name in names.split()}

# the first prefix of a token's path that is listed gives its class
_CLASS_OF = {
    ("Keyword",): "k",
    ("Literal", "String"): "s",
    ("Literal", "Number"): "m",
    ("Comment",): "c",
    ("Comment", "Preproc"): "k",
    ("Name", "Function"): "f",
    ("Name", "Class"): "f",
    ("Name", "Tag"): "k",
    ("Name", "Decorator"): "f",
    ("Name", "Builtin"): "f",
    ("Operator", "Word"): "k",
    ("Generic", "Deleted"): "no",
    ("Generic", "Inserted"): "ok",
    ("Generic", "Heading"): "k",
    ("Generic", "Error"): "no",
    ("Generic", "Prompt"): "c",
}


def language_of(path: str) -> str:
    """The lexer for a file, or empty."""
    name = path.rsplit("/", 1)[-1].lower()
    return _LEXER_OF.get(name.rsplit(".", 1)[-1], "")


def language_named(word: str) -> str:
    return _LEXER_OF.get(word.lower(), "")


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # as above

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


@lru_cache(maxsize=256)
def _class_of(path: tuple[str, ...]) -> str:
    for length in (2, 1):
        if path[:length] in _CLASS_OF:
            return _CLASS_OF[path[:length]]
    return ""


def in_frame(html: str, text: str, *, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f"<pre{named}{focus_of(text)}><code>{html}</code></pre>"


def focus_of(text: str) -> str:
    """So that the keyboard can scroll what may be higher than its frame, in a narrow window too."""
    return ' tabindex="0"' if len(text) > _LOW_CHARS or text.count("\n") >= _LOW_LINES else ""


def highlight(source: str, language: str, *, exact: bool = False) -> str:
    """Escaped HTML. Spans never cross a line break, so the result can be split into lines."""
    if not language or len(source) > _LONGEST:
        return exact_html(source) if exact else loose_html(source)
    return _highlighted(source, language, exact)


@lru_cache(maxsize=256)  # a tail that streams is painted many times with the same blocks in it
def _highlighted(source: str, language: str, exact: bool) -> str:
    to_html = exact_html if exact else loose_html
    runs: list[tuple[str, list[str]]] = []
    for token, value in _lexer(language).get_tokens(source):
        name = _class_of(tuple(token))
        if runs and (runs[-1][0] == name or not value.strip(" ")):
            runs[-1][1].append(value)
        else:
            runs.append((name, [value]))
    return "".join(_coloured(name, to_html("".join(values))) for name, values in runs)


def _coloured(name: str, html: str) -> str:
    if not name:
        return html
    return "\n".join(f'<span class="{name}">{line}</span>' if line else "" for line in html.split("\n"))


def highlight_lines(lines: list[str], language: str) -> list[str]:
    """One piece of HTML for each line given; a line break inside a line is no line break any more."""
    flat = [line.replace("\r", " ").replace("\n", " ") for line in lines]
    shown = highlight("\n".join(flat), language).split("\n")
    return shown if len(shown) == len(flat) else [loose_html(line) for line in flat]
