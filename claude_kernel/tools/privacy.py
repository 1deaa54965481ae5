"""Which variables are a person's own, and what a secret looks like in text. It knows no tool and shows nothing."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping

from claude_kernel.errors import UsageError

SECRET = "[secret]"  # noqa: S105 - what stands where one was
SHORTEST_VALUE = 8
"""A shorter one is a word that other text may well hold."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALWAYS = frozenset(
    [
        "password",
        "passwords",
        "passwd",
        "passwds",
        "passphrase",
        "passphrases",
        "passcode",
        "secret",
        "secrets",
        "credential",
        "credentials",
        "creds",
        "auth",
        "authorization",
        "apikey",
        "apikeys",
        "bearer",
        "jwt",
        "accesskey",
        "privatekey",
        "secretkey",
        "authtoken",
        "accesstoken",
    ]
)
_KEYS = frozenset(["api", "private", "access", "secret", "signing", "encryption", "ssh", "account", "auth"])
_MANY_TOKENS = frozenset(["api", "access", "auth", "bearer", "refresh", "secret", "session"])
# What comes before or after "token" where it means a piece of text: `eos_token`, `token_count`.
_TEXT_TOKENS = frozenset(
    [
        "eos",
        "bos",
        "pad",
        "unk",
        "sep",
        "cls",
        "mask",
        "next",
        "prev",
        "previous",
        "last",
        "first",
        "current",
        "special",
    ]
)
_TOKEN_ITSELF = frozenset(["value", "str", "string", "bytes", "header"])

# In linear time: what repeats without end either cannot fail or begins only where no like run is under way.
_SHAPES = re.compile(
    r"""
      (?<![A-Za-z0-9])sk-(?:ant-[\w-]{4,}|[\w-]{20,})
    | (?<![A-Za-z0-9])[rs]k_(?:live|test)_\w{10,}
    | (?<![A-Za-z0-9])(?:gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,})
    | (?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])
    | (?<![A-Za-z0-9])xox[abeoprs]-[\w-]{10,}
    | (?<![A-Za-z0-9])AIza[\w-]{30,}
    | (?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3}
    | (?<![A-Za-z0-9])(?i:bearer)[ \t]{1,4}[\w.~+/=-]{8,}
    | (?<=://)[^\s/:@'"]{0,256}+:[^\s/'"]{1,1024}(?=@)
    | -----BEGIN\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
      (?:
        (?>(?:[^-]|-(?!----))*)-----END\ [A-Z0-9 ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----
        | (?>(?:[A-Za-z0-9+/=\s\\:,]|-(?!----))*)
      )
    """,
    re.VERBOSE | re.ASCII,
)


def identifier(name: str) -> str:
    """As Python itself spells it in a namespace; raises where it is none."""
    spelt = unicodedata.normalize("NFKC", name)
    if not spelt.isidentifier():
        raise UsageError(
            f"{name[:80]!r} is not the name of a variable: give a plain one, such as `db_url`; nothing is evaluated."
        )
    return spelt


class Privacy:
    """What a person has said about their names. Where they said nothing, one that secrets commonly have is hidden."""

    def __init__(self) -> None:
        self._marked: set[str] = set()
        self._shown: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """Those that were marked."""
        return tuple(sorted(self._marked))

    def mark(self, name: str) -> None:
        name = identifier(name)
        self._marked.add(name)
        self._shown.discard(name)

    def unmark(self, name: str) -> None:
        """Also for a name that was never marked and is hidden for its looks."""
        name = identifier(name)
        self._marked.discard(name)
        self._shown.add(name)

    def hides(self, name: str) -> bool:
        return name in self._marked or (name not in self._shown and _looks_secret(name))

    def clean(self, text: str, namespace: Mapping[str, object] | None = None) -> str:
        """`text` without secrets: those of well-known shape, and the values that hidden variables hold."""
        return self.cleaner(namespace or {})(text)

    def cleaner(self, namespace: Mapping[str, object]) -> Callable[[str], str]:
        """`clean` for many texts: the namespace is read once."""
        values = sorted(self._values(namespace), key=len, reverse=True)

        def clean(text: str) -> str:
            for value in values:
                if len(value) <= len(text):  # escaping only makes it longer
                    for spelling in {value, repr(value)[1:-1], json.dumps(value)[1:-1]}:
                        text = text.replace(spelling, SECRET)
            return _SHAPES.sub(SECRET, text)

        return clean

    def _values(self, namespace: Mapping[str, object]) -> set[str]:
        found = set()
        for name, value in tuple(namespace.items()):
            # `isinstance` would ask the object for its `__class__`, and a subclass may lie about its text.
            if type(name) is str and issubclass(type(value), str) and self.hides(name):
                text = str.__str__(value)
                if len(text) >= SHORTEST_VALUE:
                    found.add(text)
        return found


def _looks_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in _ALWAYS:
            return True
        if word in {"key", "keys"} and before in _KEYS:
            return True
        if word == "pwd" and before:  # alone, it is the working directory
            return True
        if word == "token" and before not in _TEXT_TOKENS and (not after or after in _TOKEN_ITSELF):
            return True
        if word == "tokens" and before in _MANY_TOKENS and not after:
            return True
    return False
