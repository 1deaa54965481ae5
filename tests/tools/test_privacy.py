"""Which names are hidden, and what a secret looks like."""

from __future__ import annotations

import json

import pytest

from claude_kernel.errors import UsageError
from claude_kernel.tools.privacy import Privacy

LETTERS = "aB3" * 16

HIDDEN = """
    password db_password passwords PASSWD userPassword secret client_secret clientSecret secrets token token2 api_token
    access_token HF_TOKEN githubToken token_value api_tokens api_key apiKey APIKey apikey OPENAI_API_KEY api_keys
    private_key privateKey AWS_SECRET_ACCESS_KEY credential credentials aws_creds auth basic_auth Authorization
    X-Api-Key db_pwd passphrase jwt
"""
SHOWN = """
    tokens tokenizer n_tokens max_tokens token_count token_ids eos_token pad_token tokenize author authors authority key
    keys monkey primary_key keyboard pwd compass passenger secretary df x results
"""


@pytest.mark.parametrize("name", HIDDEN.split())
def test_names_that_secrets_commonly_have_are_hidden(name: str) -> None:
    assert Privacy().hides(name)


@pytest.mark.parametrize("name", SHOWN.split())
def test_other_names_are_not(name: str) -> None:
    assert not Privacy().hides(name)


def test_a_person_decides_over_any_name() -> None:
    privacy = Privacy()
    for name in ["salaries", "diary", "diary"]:
        privacy.mark(name)
    assert list(privacy.names) == ["diary", "salaries"]
    assert privacy.hides("salaries")
    privacy.unmark("salaries")
    assert list(privacy.names) == ["diary"]
    assert not privacy.hides("salaries")
    privacy.unmark("api_token")  # hidden for its looks alone
    assert not privacy.hides("api_token")
    privacy.mark("api_token")
    assert privacy.hides("api_token")


def test_a_name_is_taken_as_python_spells_it() -> None:
    privacy = Privacy()
    privacy.mark("ﬁle")  # with a ligature: to Python, it is the variable `file`
    assert privacy.names == ("file",)


@pytest.mark.parametrize("name", ["", "a.b", "a[0]", "1a", "a b", "f()", "--show"])
def test_what_is_no_name_is_refused_with_a_remedy(name: str) -> None:
    for take in (Privacy().mark, Privacy().unmark):
        with pytest.raises(UsageError, match="give a plain one"):
            take(name)


SHAPES = {
    f"sk-ant-api03-{LETTERS}": "[secret]",
    f"key=sk-{LETTERS}, next": "key=[secret], next",
    f"sk-proj-{LETTERS}": "[secret]",
    f"ghp_{LETTERS} gho_{LETTERS}": "[secret] [secret]",
    f"github_pat_{LETTERS}_{LETTERS}": "[secret]",
    "AKIA" + "ABCD" * 4: "[secret]",
    f"xoxb-123-{LETTERS} xoxa-1-{LETTERS} xoxp-1-{LETTERS}": "[secret] [secret] [secret]",
    f"AIza{'x' * 35}": "[secret]",
    f"Authorization: Bearer {LETTERS}": "Authorization: [secret]",
    f"bearer {LETTERS}": "[secret]",
    "postgres://ann:hunter2@db.example:5432/x": "postgres://[secret]@db.example:5432/x",
    "redis://:p@ss:word@cache/0": "redis://[secret]@cache/0",
    f"eyJ{LETTERS}.eyJ{LETTERS}.{LETTERS}": "[secret]",
    f"a\n-----BEGIN RSA PRIVATE KEY-----\nA-B: 4,X\n{LETTERS}\n-----END RSA PRIVATE KEY-----\nb": "a\n[secret]\nb",
    f"'-----BEGIN PRIVATE KEY-----\\n{LETTERS}\\n-----END PRIVATE KEY-----'": "'[secret]'",
    f"x: '-----BEGIN OPENSSH PRIVATE KEY-----\\n{LETTERS}' y: 1": "x: '[secret]' y: 1",
}


@pytest.mark.parametrize("text", SHAPES, ids=lambda text: text[:20])
def test_well_known_shapes_are_replaced_and_nothing_else_is(text: str) -> None:
    assert Privacy().clean(text) == SHAPES[text]
    assert Privacy().clean(SHAPES[text]) == SHAPES[text]


@pytest.mark.parametrize(
    "text",
    [
        "task-oriented-programming-with-long-names",
        "https://example.org:8080/a@b",
        "http://host/path:x@y",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "the bearer of it",
        "import sk_learn; eyJust.a.word",
        "AKIA",
        "",
        "\ud800 lone",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Privacy().clean(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ-",
        "eyJaaaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "-",
        "://a:",
        "://",
        "bearer ",
        "sk-",
        "a",
        " ",
    ],
)
def test_a_long_text_of_beginnings_is_cleaned(piece: str) -> None:
    """A quadratic pattern would not live to see it: the suite's time limit is shorter."""
    said = Privacy().clean((piece * 500_000)[:500_000] + "\nthe end")
    assert said.endswith("the end")


def test_the_values_of_hidden_variables_are_replaced_wherever_they_stand() -> None:
    privacy = Privacy()
    privacy.mark("diary")
    namespace = {
        "diary": "dear diary",
        "db_password": 'it\'s "quoted"\n',
        "plain": "harmless value",
        "api_key": "short",
        "secret": 12345678,
    }
    text = "dear diary! harmless value, short, 12345678"
    assert privacy.clean(text, namespace) == "[secret]! harmless value, short, 12345678"
    assert privacy.clean(text) == text
    password = namespace["db_password"]
    for written in [f"<{password}>", f"<{password!r}>", f"<{password!a}>", json.dumps([password])]:
        assert "quoted" in written
        assert "quoted" not in privacy.clean(written, namespace)


def test_the_longer_of_two_values_is_replaced_whole() -> None:
    namespace = {"token": "abcdefgh", "password": "abcdefgh12345678"}
    assert Privacy().clean("abcdefgh12345678 abcdefgh", namespace) == "[secret] [secret]"


def test_a_text_that_lies_about_itself_is_cleaned_away_all_the_same() -> None:
    class Sly(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise AssertionError("it was asked")

        __len__ = __repr__ = __hash__ = __eq__ = __str__  # type: ignore[assignment]  # none may be asked

    assert Privacy().clean("so hidden-value it is", {"token": Sly("hidden-value")}) == "so [secret] it is"


def test_a_huge_hidden_value_costs_nothing() -> None:
    assert Privacy().clean("text", {"secret": "x" * 20_000_000}) == "text"
