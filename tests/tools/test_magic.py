"""`%%claude` in a stock Python kernel and in a terminal: its options, its manners, and where it cannot wait."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pexpect
import pytest
from support.kernels import Client
from support.messages_api import MessagesApi
from tools.conftest import Face

pytestmark = pytest.mark.real_cli


@pytest.fixture
def client(magic: Face) -> Client:
    return magic.person.client


def printed(client: Client, code: str) -> str:
    ran = client.run(code)
    assert ran.reply["status"] == "ok", ran.reply
    return ran.stream.strip()


def test_a_cell_and_a_line_are_prompts_of_one_conversation(client: Client, messages_api: MessagesApi) -> None:
    ran = client.run("%%claude\nsay:Hello **world**")
    assert ran.reply["status"] == "ok"
    assert "<strong>world</strong>" in ran.html
    assert "opus" in ran.text.splitlines()[-1]
    assert "second" in client.run("%claude say:second").text
    assert "Hello **world**" in json.dumps(messages_api.last_request()["messages"])
    assert "| model |" in client.run("%claude status").text


def test_the_reply_is_kept(client: Client) -> None:
    client.run("%%claude -o got\nsay:Here:\n```python\nprint(1)\n```")
    assert printed(client, "print(got.code[0].code.strip(), got.cost is not None, bool(got.session_id))") == (
        "print(1) True True"
    )
    assert printed(client, "print(claude.last is got)") == "True"
    client.run("%claude say:another")
    assert printed(client, "print(_.text)") == "another"
    client.run("%claude say:```python\nprint(2)\n```")
    client.run("%%claude\nsay:```python\nprint(2)\n```")
    (payload,) = client.run("%claude cell").reply["payload"]
    assert payload["text"] == "print(2)"


def test_a_schema_brings_the_answer_as_its_type_or_a_clear_error(client: Client) -> None:
    client.run("from dataclasses import dataclass\n@dataclass\nclass Person:\n    name: str\n    age: int")
    ran = client.run('%%claude --schema Person -o p\ntool:StructuredOutput:{"name": "Ann", "age": 41}')
    assert ran.reply["status"] == "ok", ran.reply
    assert printed(client, "print(p.data)") == "Person(name='Ann', age=41)"
    words = client.run("%%claude --schema Person\nsay:I would rather not.")
    assert words.reply["status"] == "error"
    assert "not by the schema" in words.reply["evalue"]
    nothing = client.run("%%claude --schema 42\nsay:x")
    assert "42" in nothing.reply["evalue"]
    assert client.run("%claude say:without").reply["status"] == "ok"


def test_the_cli_takes_schemas_of_every_kind(client: Client) -> None:
    """Its compiler is strict: it refuses the words that msgspec and pydantic have for tuples and tagged unions."""
    client.run(
        "import msgspec, pydantic, typing as t\n"
        "class Cat(msgspec.Struct, tag='cat'):\n    lives: int\n"
        "class Dog(msgspec.Struct, tag='dog'):\n    tricks: tuple[str, int]\n"
        "class Leaf(pydantic.BaseModel):\n    kind: t.Literal['leaf']\n"
        "class Tree(pydantic.BaseModel):\n    kind: t.Literal['tree']\n    below: list[t.Union['Tree', Leaf]]\n"
        "plain = {'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': ['n']}"
    )
    for schema, answer, shown in [
        ("'Cat | Dog'", '{"value": {"type": "dog", "tricks": ["sit", 2]}}', "Dog(tricks=('sit', 2))"),
        ("list[int]", '{"value": [1, 2]}', "[1, 2]"),
        ("Tree", '{"kind": "tree", "below": [{"kind": "leaf"}]}', "kind='tree' below=[Leaf(kind='leaf')]"),
        ("plain", '{"n": 3}', "{'n': 3}"),
    ]:
        ran = client.run(f"%%claude --schema {schema} -o got\ntool:StructuredOutput:{answer}")
        assert ran.reply["status"] == "ok", ran.reply
        assert printed(client, "print(got.data)") == shown
    misfit = client.run('%%claude --schema "tuple[str, int]"\ntool:StructuredOutput:{"value": [1, "sit"]}')
    assert "does not fit" in misfit.reply["evalue"]
    assert '[1, "sit"]' in misfit.reply["evalue"]
    assert printed(client, "print(claude.last.data)") == "{'value': [1, 'sit']}"


def test_expressions_are_filled_in_on_request(client: Client) -> None:
    client.run("name = 'Ann'")
    assert "Hello {name}" in client.run("%%claude\nsay:Hello {name}").text
    assert "Hello Ann, {x}" in client.run("%%claude -f\nsay:Hello {name}, {{x}}").text
    failed = client.run("%%claude -f\nsay:Hello {nobody}")
    assert "nobody" in failed.reply["evalue"]
    assert "{{" in failed.reply["evalue"]
    client.run("big = [0] * 1_000_000")
    assert "0, ...]" in " ".join(client.run("%%claude -f\nsay:{big}").text.split())


def test_an_image_of_the_namespace_goes_with_the_prompt(client: Client, messages_api: MessagesApi) -> None:
    client.run("import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\nfig, ax = plt.subplots()")
    client.run("%%claude --image fig\nsay:seen")
    assert json.dumps(messages_api.last_request()["messages"]).count('"media_type": "image/png"') == 1
    client.run("fig.savefig('plot.png')")
    client.run("%%claude --image plot.png --image fig\nsay:seen")
    assert json.dumps(messages_api.last_request()["messages"][-1]).count('"media_type": "image/png"') == 2
    for given, told in [("42", "int is not an image"), ("none.png", "cannot be read"), ("nobody", "NameError")]:
        wrong = client.run(f"%%claude --image {given}\nsay:seen")
        assert told in wrong.reply["evalue"]


def test_names_are_conversations_of_their_own(client: Client, messages_api: MessagesApi) -> None:
    client.run("%claude say:apricot")
    client.run("%claude --name other say:second")
    assert "apricot" not in json.dumps(messages_api.last_request()["messages"])
    assert "now `plan`" in client.run("%claude --name other mode plan").text
    assert "is `default`" in client.run("%claude mode").text
    client.run("%claude --new say:third")
    assert "apricot" not in json.dumps(messages_api.last_request()["messages"])


def test_quiet_shows_nothing(client: Client) -> None:
    ran = client.run("%%claude --quiet -o q\nsay:whisper")
    assert ran.outputs == []
    assert ran.stream == ""
    assert printed(client, "print(q.text)") == "whisper"


def test_help_and_mistakes_are_one_clear_line(client: Client) -> None:
    assert "--max-budget" in client.run("%%claude --help\n\n").text
    for code, told in [
        ("%%claude --nonsense\nsay:x", "--nonsense"),
        ("%%claude --mode sudo\nsay:x", "sudo"),
        ("%%claude\n\n", "no prompt"),
        ("%claude model no such model at all", None),
    ]:
        ran = client.run(code)
        if told is None:
            assert ran.reply["status"] == "ok"  # too many words for steering: a question
            continue
        assert ran.reply["status"] == "error"
        assert told in ran.reply["evalue"]
        assert len(ran.reply["traceback"]) == 1


def test_a_failed_turn_fails_the_cell_and_the_conversation_goes_on(client: Client) -> None:
    ran = client.run("%%claude\nfail:400")
    assert ran.reply["status"] == "error"
    assert len(ran.reply["traceback"]) == 1
    assert "after" in client.run("%claude say:after").text


@pytest.mark.parametrize("code", ["%%time\n%%claude\nsay:x", "%%capture held\n%%claude\nsay:x"])
def test_inside_another_magic_it_says_why_not(client: Client, code: str) -> None:
    ran = client.run(code)
    said = str(ran.messages) + str(ran.reply) + client.run("print(vars().get('held', ''))").stream
    assert "cannot wait for Claude" in said
    assert "works again" in client.run("%claude say:works again").text


def test_without_autoawait_it_says_why_not(client: Client) -> None:
    client.run("%autoawait off")
    assert "cannot wait for Claude" in str(client.run("%%claude\nsay:x").reply)
    client.run("%autoawait on")
    assert "works again" in client.run("%claude say:works again").text


def test_it_can_be_unloaded_and_loaded_again(client: Client) -> None:
    client.run("%claude say:one")
    assert client.run("%unload_ext claude_kernel").reply["status"] == "ok"
    assert client.run("%load_ext claude_kernel").reply["status"] == "ok"
    assert "two" in client.run("%claude say:two").text


def test_in_a_terminal(cli_env: dict[str, str], project: Path, tmp_path: Path) -> None:
    (tmp_path / "ip").mkdir()
    environment = os.environ | cli_env | {"PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "dumb"}
    arguments = ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor", f"--ipython-dir={tmp_path}/ip"]
    shell = pexpect.spawn(sys.executable, arguments, env=environment, cwd=str(project), timeout=40, encoding="utf-8")
    try:
        shell.expect(r"In \[1\]: ")
        shell.sendline("%load_ext claude_kernel")
        shell.expect(r"In \[2\]: ")
        shell.sendline("%claude say:hello terminal")
        shell.expect("\nhello terminal")
        shell.expect(r"In \[3\]: ")
        shell.sendline('%claude tool:mcp__notebook__run_python:{"code": "made = 6 * 7"}')
        shell.expect("wants to run Python in this notebook")
        shell.expect("y")
        shell.sendline("y")
        shell.expect("done: ")
        shell.expect(r"In \[4\]: ")
        shell.sendline("print('made', made)")
        shell.expect("made 42")
        shell.expect(r"In \[5\]: ")
        shell.sendline("%time get_ipython().run_line_magic('claude', 'say:timed')")
        shell.expect("\ntimed")
    finally:
        shell.close(force=True)
