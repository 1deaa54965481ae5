"""What the demo does at which words. One row a scene; the first that fits plays. It understands nothing else."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from claude_kernel.demo.schemas import example_of
from claude_kernel.demo.tools import walk
from claude_kernel.demo.turn import SIGNATURE, Turn

COMMANDS = {
    "help": "what you can say to the offline demo",
    "clear": "begin a new conversation",
    "compact": "forget what was said so far, but for a line",
}


async def play(turn: Turn) -> Any:
    """Plays the turn. Returns structured output where the notebook wants some."""
    demo = turn.demo
    if turn.text.startswith("/"):
        await turn.say(await _command(turn) + SIGNATURE)
        return None
    if demo.schema is not None:
        await turn.say("You asked for data of a type: here is an example that fits it." + SIGNATURE)
        return example_of(demo.schema)
    if turn.images:
        await turn.say(_about_images(turn) + SIGNATURE)
        return None
    for scene in SCENES:
        found = re.search(scene.pattern, turn.text, re.IGNORECASE | re.DOTALL)
        if found:
            await turn.say(await scene.act(turn, found) + SIGNATURE)
            return None
    await turn.say(f"I do not know what to do with that.\n\n{_what_to_say()}{SIGNATURE}")
    return None


# --- looking ----------------------------------------------------------------------------------------------------------


async def _help(_turn: Turn, _found: re.Match[str]) -> str:
    return (
        f"Hello. I am the offline demo of claude-kernel: I show how a turn works, with real tools.\n\n{_what_to_say()}"
    )


def _what_to_say() -> str:
    rows = [f"| {_as_code(scene.example)} | {scene.shows} |" for scene in SCENES if scene.example]
    return "\n".join(["| say | and you see |", "|---|---|", *rows])


def _as_code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"


async def _look_around(turn: Turn, _found: re.Match[str]) -> str:
    await turn.think("A folder is best understood by its files. I count them by kind and look into what reads well.")
    done = await turn.use("Glob", pattern="*")
    names = done.text.splitlines() if done.structured and done.structured["numFiles"] else []
    if not names:
        return "This folder is empty."
    kinds = Counter(Path(name).suffix or "(none)" for name in names).most_common(8)
    rows = [f"| `{kind}` | {count} |" for kind, count in kinds]
    return "\n".join(
        [
            f"There {'is' if len(names) == 1 else 'are'} **{_many(len(names), 'file')}** here:",
            "",
            "| kind | files |",
            "|---|---:|",
            *rows,
        ]
    )


async def _read(turn: Turn, found: re.Match[str]) -> str:
    path = found["path"].lstrip("@")
    done = await turn.use("Read", file_path=str(turn.demo.folder / path))
    if done.failed:
        return f"That did not work: {done.text}"
    file = done.structured["file"]
    text = str(file["content"])
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"`{path}` has **{_many(file['totalLines'], 'line')}** and {_many(len(text.split()), 'word')}" + (
        f". It begins with “{first[:80]}”." if first else ", and nothing in it."
    )


async def _search(turn: Turn, found: re.Match[str]) -> str:
    hits = (await turn.use("Grep", pattern=found["what"])).structured
    if not hits["numLines"]:
        return f"`{found['what']}` stands nowhere in this folder."
    return f"`{found['what']}` stands in {_many(hits['numLines'], 'line')} of {_many(hits['numFiles'], 'file')}."


async def _delegate(turn: Turn, _found: re.Match[str]) -> str:
    async def survey(agent: Turn) -> str:
        await agent.use("Glob", pattern="*")
        readable = [path for path in walk(turn.demo.folder) if path.suffix in (".md", ".py", ".txt", ".csv")][:2]
        lines = 0
        for path in readable:
            done = await agent.use("Read", file_path=str(path))
            lines += 0 if done.failed else done.structured["file"]["totalLines"]
        return f"I read {_many(len(readable), 'file')}, {_many(lines, 'line')} in all."

    report = await turn.send_agent("Survey this folder", "Look at the files here and report.", survey)
    return f"The agent came home and reports: {report}"


# --- changing ---------------------------------------------------------------------------------------------------------


async def _run(turn: Turn, found: re.Match[str]) -> str:
    await turn.say(f"I would like to run `{found['command']}`. You decide.")
    done = await turn.use("Bash", command=found["command"], description="What you asked for")
    if done.structured is None or isinstance(done.structured, str):
        return f"It was not run: {done.text}"
    return "It failed." if done.failed else f"Done. It printed {_many(len(done.text.splitlines()), 'line')}."


async def _write(turn: Turn, found: re.Match[str]) -> str:
    path, content = found["path"].strip("`"), found["content"].strip("\n")
    done = await turn.use("Write", file_path=str(turn.demo.folder / path), content=f"{content}\n")
    return f"It was not written: {done.text}" if done.failed else f"`{path}` is written."


async def _edit(turn: Turn, found: re.Match[str]) -> str:
    path = str(turn.demo.folder / found["path"].strip("`").lstrip("@"))
    seen = await turn.use("Read", file_path=path)
    if seen.failed:
        return f"That did not work: {seen.text}"
    done = await turn.use("Edit", file_path=path, old_string=found["old"], new_string=found["new"])
    return f"It was not changed: {done.text}" if done.failed else "Changed. The difference is in the row above."


async def _plan(turn: Turn, found: re.Match[str]) -> str:
    path = found["path"] or "hello.py"
    await turn.think("Before I touch anything, a plan: what I would write, and how we would see that it works.")
    plan = (
        "## A script that greets\n\n"
        f"1. Write `{path}`, which greets whoever runs it.\n"
        "2. Run it, to see that it works.\n\n"
        "Nothing else is touched."
    )
    approved = await turn.use("ExitPlanMode", plan=plan)
    if approved.failed:
        return f"Then we keep planning. You said: {approved.text}"
    steps = [f"Write {path}", "Run it"]
    await turn.use("TodoWrite", todos=_todos(steps, 0))
    code = 'greeting = "Hello from a plan that you approved."\nprint(greeting)\n'
    written = await turn.use("Write", file_path=str(turn.demo.folder / path), content=code)
    if written.failed:
        return f"The plan ends here: {written.text}"
    await turn.use("TodoWrite", todos=_todos(steps, 1))
    ran = await turn.use("Bash", command=f"python3 {path}", description="Run the script")
    await turn.use("TodoWrite", todos=_todos(steps, 1 if ran.failed else 2))
    return (
        f"The plan ends here: {ran.text}" if ran.failed else f"The plan is carried out. The script said: *{ran.text}*"
    )


def _todos(steps: list[str], done: int) -> list[dict[str, str]]:
    states = ["completed" if at < done else "in_progress" if at == done else "pending" for at in range(len(steps))]
    return [{"content": step, "activeForm": step, "status": state} for step, state in zip(steps, states, strict=True)]


async def _ask(turn: Turn, _found: re.Match[str]) -> str:
    colours = [
        {"label": "Blue", "description": "calm, and fit for print"},
        {"label": "Orange", "description": "seen from the last row"},
    ]
    extras = [
        {"label": "A title", "description": "what it shows"},
        {"label": "A legend", "description": "which line is which"},
        {"label": "A grid", "description": "to read values off"},
    ]
    questions = [
        {"question": "Which colour for the chart?", "header": "Colour", "multiSelect": False, "options": colours},
        {"question": "What should it have?", "header": "Extras", "multiSelect": True, "options": extras},
    ]
    done = await turn.use("AskUserQuestion", questions=questions)
    if done.failed:
        return f"You would rather not say: {done.text}"
    answers = done.structured["answers"]
    return "Thank you. You said:\n\n" + "\n".join(f"- {question} **{answer}**" for question, answer in answers.items())


# --- the live namespace -----------------------------------------------------------------------------------------------


async def _variables(turn: Turn, _found: re.Match[str]) -> str:
    done = await turn.use_notebook("list_variables")
    return f"That did not work: {done.text}" if done.failed else f"These are your variables:\n\n```\n{done.text}\n```"


async def _outliers(turn: Turn, found: re.Match[str]) -> str:
    name = found["name"]
    seen = await turn.use_notebook("inspect_variable", name=name)
    if seen.failed:
        return f"That did not work: {seen.text}"
    code = (
        f'numbers = {name}.select_dtypes("number")\n'
        "low, high = numbers.quantile(0.25), numbers.quantile(0.75)\n"
        "far = 1.5 * (high - low)\n"
        "outside = (numbers < low - far) | (numbers > high + far)\n"
        f"{name}[outside.any(axis=1)]"
    )
    await turn.say(f"I look for rows of `{name}` that lie far outside the quartiles, in your own namespace.")
    ran = await turn.use_notebook("run_python", code=code)
    return f"It was not done: {ran.text}" if ran.failed else "The rows above lie more than 1.5 quartile distances out."


async def _draw(turn: Turn, found: re.Match[str]) -> str:
    name = found["name"]
    seen = await turn.use_notebook("inspect_variable", name=name)
    if seen.failed:
        return f"That did not work: {seen.text}"
    pandas = "DataFrame" in seen.text or "Series" in seen.text
    drawing = f'{name}.plot(figsize=(6, 3), title="{name}")' if pandas else f"plt.plot({name})"
    code = f"import matplotlib.pyplot as plt\n\n{drawing}\nplt.tight_layout()\nplt.show()"
    ran = await turn.use_notebook("run_python", code=code)
    return f"It was not drawn: {ran.text}" if ran.failed else f"Here is `{name}`, drawn in your own namespace."


async def _describe(turn: Turn, found: re.Match[str]) -> str:
    done = await turn.use_notebook("inspect_variable", name=found["name"])
    return f"That did not work: {done.text}" if done.failed else f"This is `{found['name']}`:\n\n```\n{done.text}\n```"


async def _new_cell(turn: Turn, _found: re.Match[str]) -> str:
    code = "squares = [n * n for n in range(10)]\nsquares"
    done = await turn.use_notebook("add_cell", source=code)
    told = "It stands in a new cell below." if not done.failed else "`%claude cell` puts it into a cell."
    return f"Here is some code. {told}\n\n```python\n{code}\n```"


# --- words ------------------------------------------------------------------------------------------------------------


async def _think(turn: Turn, _found: re.Match[str]) -> str:
    await turn.think(
        "First I read the question again. Then I remember that I am a script: whatever I write here was written "
        "before you asked. So the honest thing is to show how thinking looks, and to say so."
    )
    return "That was thinking: it is folded away above, and opens with a click."


async def _formats(_turn: Turn, _found: re.Match[str]) -> str:
    return (
        "## What an answer can hold\n\n"
        "**Bold**, *slanted*, `code`, a [link](https://jupyter.org), and maths: $e^{i\\pi} + 1 = 0$.\n\n"
        "| n | n² |\n|---:|---:|\n| 1 | 1 |\n| 2 | 4 |\n| 3 | 9 |\n\n"
        "```python\ndef square(n: int) -> int:\n    return n * n\n```\n\n"
        "1. Lists,\n2. in order,\n3. or not.\n\n> And quotations."
    )


async def _count(turn: Turn, found: re.Match[str]) -> str:
    most = min(int(found["most"] or 20), 600)
    await turn.say(f"I count to {most}, one number a second. The stop button ends it, and the conversation goes on.")
    for number in range(1, most + 1):
        await turn.say(str(number))
        await asyncio.sleep(1)
    return "There."


async def _remember(turn: Turn, _found: re.Match[str]) -> str:
    said = turn.demo.conversation.prompts[:-1]
    if not said:
        return "Nothing yet: this is the first thing you say."
    return "You said:\n\n" + "\n".join(
        f"{number}. {prompt.splitlines()[0][:100]}" for number, prompt in enumerate(said, 1)
    )


def _about_images(turn: Turn) -> str:
    each = [f"{image['media_type']}, {len(image['data']) * 3 // 4096} KB" for image in turn.images]
    return f"I got {_many(len(each), 'image')} ({'; '.join(each)}). A script cannot see it; Claude can."


async def _command(turn: Turn) -> str:
    name = turn.text[1:].split()[0] if turn.text[1:].split() else ""
    if name == "clear":
        turn.demo.start_anew()
        return "A new conversation."
    if name == "compact":
        turn.demo.system("compact_boundary", compact_metadata={"trigger": "manual", "pre_tokens": 0})
        turn.demo.conversation.compact()
        return "Everything that was said is now one line."
    return _what_to_say() if name == "help" else f"The demo has no /{name}. {_what_to_say()}"


class Scene(NamedTuple):
    pattern: str
    """May name `path`, `command`, `old`, `new`, `content`, `name`, `what`, `most`."""
    act: Callable[[Turn, re.Match[str]], Awaitable[str]]
    example: str = ""
    shows: str = ""


_PATH = r"(?P<path>@?`?[\w./-]+\.\w+`?)"
_SCRIPT = r"(?P<path>[\w/-]+\.py)\b"
_NAME = r"`?(?P<name>[A-Za-z_]\w*)`?"

SCENES = (
    Scene(r"^\W*(hello|hi|hey|help|what can you do|who are you)\b", _help),
    Scene(
        r"\blook around\b|\bwhat is (here|in this folder)\b|\blist the files\b",
        _look_around,
        "Look around this folder",
        "a tool that only looks, and a table",
    ),
    Scene(
        rf"\b(change|replace)\W+`(?P<old>[^`]+)`\s+(to|with|by)\s+`(?P<new>[^`]+)`\s+in\s+{_PATH}",
        _edit,
        "Replace `a` with `b` in notes.txt",
        "a diff, and your permission for it",
    ),
    Scene(rf"\b(write|create)\b\s+{_PATH}.*?```\w*\n(?P<content>.*?)```", _write),
    Scene(
        rf"\b(write|create)\b\s+{_PATH}(?!\w).*?`(?P<content>[^`]+)`",
        _write,
        "Write notes.txt with `a line`",
        "a new file, after you allowed it",
    ),
    Scene(r"\brun\b\W+`(?P<command>[^`]+)`", _run, "Run `date`", "a command, after you allowed it"),
    Scene(r"\bask me\b", _ask, "Ask me about a chart", "a form with choices"),
    Scene(rf"\bplan\b(.*?{_SCRIPT})?", _plan, "Plan a small script", "a plan to approve, a checklist, two permissions"),
    Scene(r"\b(agent|delegate)\b", _delegate, "Send an agent through this folder", "an agent with its own steps"),
    Scene(rf"\b(draw|plot|chart)\s+(the\s+)?{_NAME}", _draw, "Draw df", "Python run in your namespace, and a figure"),
    Scene(
        rf"\boutliers?\b.*?\b(in|of)\s+(the\s+)?{_NAME}",
        _outliers,
        "Which outliers are in df?",
        "your variables, looked into",
    ),
    Scene(r"\bvariables\b|\bnamespace\b", _variables, "Which variables do I have?", "the live namespace"),
    Scene(
        r"\bformats?\b|\bmarkdown\b|\bwhat can an answer\b", _formats, "What can an answer hold?", "tables, code, maths"
    ),
    Scene(r"\b(new cell|some code|write code)\b", _new_cell, "Put some code into a new cell", "a cell below this one"),
    Scene(rf"(\b(read|summari[sz]e|open)\b\s+|(?<!\w)(?=@)){_PATH}", _read, "Read README.md", "a file, read"),
    Scene(rf"\b(describe|inspect)\s+(the\s+)?{_NAME}", _describe),
    Scene(
        r"\b(find|search for|where is)\s+`?(?P<what>[^`\s?]+)", _search, "Find `import`", "a search through the files"
    ),
    Scene(r"\bthink\b", _think, "Think about it", "folded thinking"),
    Scene(r"\bcount\b(.*?(?P<most>\d+))?", _count, "Count to 20", "what the stop button does"),
    Scene(
        r"\bwhat did I (say|ask)\b|\bremember\b", _remember, "What did I say?", "that a notebook is one conversation"
    ),
)
