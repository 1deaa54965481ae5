"""What can be configured, and where each value comes from: Jupyter's own means, for the kernel and the magic alike.

From weak to strong: the default, `jupyter_claude_config.py` or `.json` in Jupyter's folders (the machine's first, the
person's last), IPython's own configuration, the environment, the command line. A value that cannot be is told and left
out; the kernel starts all the same.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jupyter_core.paths import jupyter_config_path
from traitlets import CFloat, CInt, Enum, TraitError, Unicode
from traitlets.config import Application, Config, Configurable
from traitlets.config.loader import ConfigFileNotFound, JSONFileConfigLoader, LazyConfigValue, PyFileConfigLoader

from claude_kernel.cli import EFFORTS, MODES, Options
from claude_kernel.conversation import Conversation, Setting
from claude_kernel.journal import forget_old, open_journal
from claude_kernel.memory import Habits
from claude_kernel.past import find_notebook, is_another
from claude_kernel.prompts import WAYS
from claude_kernel.protocol.dialects import DIALECTS

FILE = "jupyter_claude_config"
_LOADERS = {".json": JSONFileConfigLoader, ".py": PyFileConfigLoader}


class ClaudeSettings(Configurable):
    """`c.ClaudeSettings.model = "haiku"` in a file, `--ClaudeSettings.model=haiku` or CLAUDE_KERNEL_MODEL=haiku."""

    cli = Unicode("", help="The `claude` executable; `demo` for the offline demo. Empty: found by itself.").tag(
        config=True
    )
    model = Unicode("", help="The model to begin with. Empty: Claude Code's own default.").tag(config=True)
    mode = Enum(("", *MODES), "", help="The permission mode to begin with. Empty: Claude Code's own default.").tag(
        config=True
    )
    allow = Unicode(
        "", help="What Claude may do without asking, as rules with commas between: `Edit,Bash(git status)`."
    ).tag(config=True)
    effort = Enum(("", *EFFORTS), "", help="How hard Claude thinks. Empty: the model's own default.").tag(config=True)
    prompts = Enum(
        WAYS, "auto", help="How you are asked: with buttons, by typed input, not at all, or as the front end can."
    ).tag(config=True)
    display = Enum(
        ("auto", "rich", "plain"), "auto", help="Rich outputs, plain text, or whichever suits the front end."
    ).tag(config=True)
    resume = Enum(
        ("ask", "always", "never"), "ask", help="Whether a notebook goes on with its conversation after a restart."
    ).tag(config=True)
    rerun = Enum(
        ("continue", "rewind"),
        "continue",
        help="What running a cell again does: the conversation goes on, or goes back to before that cell.",
    ).tag(config=True)
    budget = CFloat(0.0, min=0.0, help="What a notebook may cost in all, in US dollars. 0: no limit.").tag(config=True)
    max_turns = CInt(0, min=0, help="How many steps Claude may take for one prompt. 0: no limit.").tag(config=True)
    keep = Enum(
        ("all", "costs", "nothing"),
        "all",
        help="What is kept of a conversation for after a restart, in your own folder.",
    ).tag(config=True)
    keep_days = CInt(90, min=0, help="For how many days after the last prompt that is kept. 0: for ever.").tag(
        config=True
    )
    dialect = Enum(tuple(DIALECTS), "direct", help="How messages to the CLI are written.").tag(config=True)

    def options(self) -> Options:
        return Options(
            cli=self.cli or None,
            cwd=os.getcwd(),
            model=self.model or None,
            mode=self.mode or None,
            effort=self.effort or None,
            allowed_tools=(self.allow,) if self.allow else (),
            max_turns=self.max_turns or None,
            dialect=self.dialect,
        )

    def habits(self) -> Habits:
        return Habits(resume=self.resume, rerun=self.rerun, budget_usd=self.budget or None, keep=self.keep)

    def converse(self, *, name: str = "", **faces: Any) -> Conversation:
        """The conversation of the notebook behind this kernel; `name` is one of several."""
        options = self.options()
        notebook = find_notebook()
        kept = self.keep != "nothing"
        forget_old(self.keep_days)
        journal = open_journal(notebook, Path(options.cwd), name) if kept else None
        if journal is not None and notebook is not None and is_another(journal, notebook):
            journal = journal.put_aside()
        return Conversation(options, habits=self.habits(), journal=journal, notebook=notebook, **faces)


class Loaded(NamedTuple):
    settings: ClaudeSettings
    rows: tuple[Setting, ...]
    problems: tuple[str, ...]
    """Values that cannot be and files that cannot be read, each with where and what instead."""


def load_settings(parent: Configurable | None = None, environ: Mapping[str, str] | None = None) -> Loaded:
    """`parent` is what we run in: the IPython application above it has read its own files and the command line."""
    settings, sources, problems = ClaudeSettings(), dict[str, str](), list[str]()
    for source, values in _sources(_find_app(parent), os.environ if environ is None else environ, problems):
        for name, value in values.items():
            if isinstance(value, LazyConfigValue):
                continue
            if name not in NAMES:
                problems.append(f"There is no setting `{name}` ({source}). There are: {', '.join(NAMES)}.")
                continue
            try:
                setattr(settings, name, value)
                if isinstance(getattr(settings, name), float) and not math.isfinite(getattr(settings, name)):
                    setattr(settings, name, 0.0)
                    raise TraitError
            except TraitError:
                problems.append(f"`{name}` cannot be {value!r} ({source}). {_expected(name)}")
            else:
                sources[name] = source
    rows = tuple(
        Setting(name, _written(getattr(settings, name)), sources.get(name, "default"), str(trait.help))
        for name, trait in _traits()
    )
    return Loaded(settings, rows, tuple(problems))


def variable_of(name: str) -> str:
    return f"CLAUDE_KERNEL_{name.upper()}"


def settings_table() -> str:
    """The table of the documentation."""
    rows = []
    for name, trait in _traits():
        values = " ".join(f"`{value}`" for value in getattr(trait, "values", ()) if value)
        default = f"`{_written(trait.default_value)}`" if trait.default_value != "" else "empty"
        about = f"{trait.help} {values}".strip()
        rows.append(f"| `ClaudeSettings.{name}` | `{variable_of(name)}` | {default} | {about} |")
    return "\n".join(["| setting | environment | default | what it is |", "|---|---|---|---|", *rows])


def put_table(page: str) -> str:
    """The page of the documentation, with the table as it is now."""
    head, mark, rest = page.partition("<!-- settings: written by `scripts/docs` -->\n")
    tail = rest[rest.index("<!-- /settings -->") :]
    return f"{head}{mark}{settings_table()}\n{tail}"


def _find_app(part: Configurable | None) -> Application | None:
    """A shell in a terminal belongs to the application itself, one in a kernel to the kernel."""
    while part is not None and not isinstance(part, Application):
        part = part.parent
    return part


def _sources(
    app: Application | None, environ: Mapping[str, str], problems: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    section = ClaudeSettings.__name__
    for path in _files():
        try:
            loaded = _LOADERS[path.suffix](path.name, path=str(path.parent)).load_config()
        except ConfigFileNotFound:
            continue
        except Exception as error:  # a configuration file is a person's code, or a person's JSON
            problems.append(f"`{path}` cannot be read: {type(error).__name__}: {error}")
            continue
        yield f"`{path}`", _of(loaded, section)
    told = app.cli_config if app is not None else Config()
    if app is not None:
        given = _of(told, section)
        own = {name: value for name, value in _of(app.config, section).items() if name not in given}
        yield "IPython's configuration", own
    yield from (
        (f"environment, {variable_of(name)}", {name: environ[variable_of(name)]})
        for name in NAMES
        if environ.get(variable_of(name))
    )
    yield "command line", _of(told, section)


def _of(config: Config, section: str) -> dict[str, Any]:
    return {name: _plain(value) for name, value in config[section].items()} if section in config else {}


def _plain(value: Any) -> Any:
    """A value of the command line that waits for its trait to say of which type it is; each of ours takes text."""
    return str(value) if isinstance(value, str) else value


def _files() -> Iterator[Path]:
    """Jupyter lists its folders from strong to weak."""
    for folder in reversed(jupyter_config_path()):
        for suffix in _LOADERS:
            yield Path(folder, f"{FILE}{suffix}")


def _traits() -> Iterator[tuple[str, Any]]:
    yield from ClaudeSettings.class_own_traits(config=True).items()


NAMES = tuple(name for name, _ in _traits())


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _expected(name: str) -> str:
    trait = dict(_traits())[name]
    values = getattr(trait, "values", None)
    if values:
        return f"It may be {', '.join(filter(None, values))}."
    return "It must be a number from 0." if isinstance(trait, CFloat | CInt) else "It must be text."
