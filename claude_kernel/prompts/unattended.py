"""Where nobody can be asked: no, with the setting that would have allowed it, and a cell that ends with an error."""

from __future__ import annotations

from claude_kernel.prompts.rules import USER, find_kept
from claude_kernel.prompts.scene import Scene
from claude_kernel.prompts.things import sentence_of
from claude_kernel.protocol import Deny, events
from claude_kernel.render import Bundle, render_record
from claude_kernel.render.rows import text_in
from claude_kernel.render.visible import one_line
from claude_kernel.trouble import Trouble

_EDITING_TOOLS = ("Edit", "MultiEdit", "Write", "NotebookEdit")


def refuse_unattended(question: events.Question, scene: Scene) -> Deny:
    """Goes on without a tool that may not be used; stops at what only a person can answer."""
    scene.unanswered.append(question)
    if question.needs_person:
        return Deny(reason=f"Nobody is here to answer ({question.tool_name}), so the turn ends.", stop=True)
    return Deny(reason=f"Nobody could be asked, so {question.tool_name} was refused. Do not try it in another way.")


def render_refusal(question: events.Question) -> Bundle:
    what = one_line(text_in(question.input, "command", "file_path", "notebook_path", "url", "query"), 160)
    return render_record("Refused", f"({question.tool_name}): nobody could be asked.", what, good=False)


def find_refusals(scene: Scene) -> Trouble | None:
    """What the cell ends with; None where everything was answered."""
    if not scene.unanswered:
        return None
    tools = list(dict.fromkeys(question.tool_name for question in scene.unanswered))
    named = ", ".join(tools)
    remedies = list(dict.fromkeys(_remedy(question, scene) for question in scene.unanswered))
    details = "\n".join(sentence_of(question, scene) for question in scene.unanswered)
    return Trouble(
        f"Nobody could be asked, so {named} was refused.", " ".join(remedies[:4]), "PermissionNeeded", details
    )


def _remedy(question: events.Question, scene: Scene) -> str:
    if question.needs_person:
        remedy = "run this cell where you can be asked, or word the prompt so that Claude need not ask"
        return f"`{question.tool_name}` needs a person: {remedy}."
    rules = [rule for entry in find_kept(question, scene, USER).permissions for rule in entry.get("rules", [])]
    written = [_written(rule) for rule in rules] or [question.tool_name]
    listed = ", ".join(f"`{rule}`" for rule in written[:3])
    remedy = (
        f"To allow it, set `CLAUDE_KERNEL_ALLOW` to {listed}, or put that into `permissions.allow` of your settings"
    )
    if question.tool_name in _EDITING_TOOLS:
        return f"{remedy}; or begin with `%claude mode acceptEdits`."
    return f"{remedy} (`~/.claude/settings.json`)."


def _written(rule: dict[str, str]) -> str:
    content = rule.get("ruleContent")
    return one_line(rule["toolName"] if content is None else f"{rule['toolName']}({content})", 200).replace("`", "'")
