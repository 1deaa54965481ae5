"""A prompt with fields: where each ends, what it becomes, and what is said of those that cannot be filled."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_kernel.errors import UsageError
from claude_kernel.fill import MOST_OF_ALL, MOST_OF_ONE, fill

NAMES: dict[str, Any] = {
    "x": 3.14159,
    "n": 42,
    "name": "Ann",
    "d": {"a": 1, "}": 2, "b": {"c": [1, 2]}},
    "items": [1, 2, 3],
    "width": 6,
    "day": datetime.date(2026, 1, 2),
    "braces": "{n} }} {{",
}


def evaluate(expression: str) -> object:
    return eval(expression, {}, NAMES)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("", ""),
        ("nothing to fill", "nothing to fill"),
        ("{name}", "Ann"),
        ("Hello { name }, {n}!", "Hello Ann, 42!"),
        ("{{name}}", "{name}"),
        ("{{{name}}}", "{Ann}"),
        ("a {{ b }} c", "a { b } c"),
        ("{{}}", "{}"),
        ("{braces}", "{n} }} {{"),
        ("{d['a']}{d[\"a\"]}", "11"),
        ("{d['}']}", "2"),
        ("{'}' + \"{\"}", "}{"),
        ("{'''a}'b''' + name}", "a}'bAnn"),
        (r"{'\'}'}", "'}"),
        (r"{r'\'}'}", r"\'}"),
        ("{ {'k': n}['k'] }", "42"),
        ("{ {1} | {2} }", "{1, 2}"),
        ("{items[0:2]}", "[1, 2]"),
        ("{[i for i in items if i != 2]}", "[1, 3]"),
        ("{n != 42}", "False"),
        ("{(lambda y: y + 1)(n)}", "43"),
        ("{(y := n) + y}", "84"),
        ("{n if name else 0}", "42"),
        ("{x:.3f}", "3.142"),
        ("{x!r:>10}|", "   3.14159|"),
        ("{name!r}", "'Ann'"),
        ("{name!s}", "Ann"),
        ("{'ä'!a}", "'\\xe4'"),
        ("{n:{width}}|", "    42|"),
        ("{n:0{width}d}|", "000042|"),
        ("{n:{width!s:>1}}|", "    42|"),
        ("{day:%d.%m.%Y}", "02.01.2026"),
        ("{n:}", "42"),
        ("{f'{n:>4}'}", "  42"),
        ("{n +\n n}", "84"),
        ("{'''two\nlines'''}", "two\nlines"),
        ("日本 {name} 日本", "日本 Ann 日本"),
    ],
)
def test_a_field_is_filled_as_in_an_f_string(prompt: str, expected: str) -> None:
    assert fill(prompt, evaluate) == expected


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("{}", "`{}` cannot be filled in: the braces are empty"),
        ("{  }", "the braces are empty"),
        ("{:>4}", "the braces are empty"),
        ("{a b}", "`{a b}` cannot be filled in: invalid syntax"),
        ("{foo(} and {name}", "`{foo(}` cannot be filled in: "),
        ("{a)} and {name}", "`{a)}` cannot be filled in: "),
        ("{x = 1}", "`{x = 1}` cannot be filled in: "),
        ("{name", "`{name}` cannot be filled in: the brace is never closed"),
        ("{", "the brace is never closed"),
        ("{n:>4", "`{n}` cannot be filled in: the brace is never closed"),
        ("{n:{width", "the brace is never closed"),
        ("{n:{width:{n}}}", "`{width}` cannot be filled in: its format is nested too deep"),
        ("{n!x}", "after `!` comes r, s or a"),
        ("{n!}", "after `!` comes r, s or a"),
        ("{n!r", "after `!` comes r, s or a"),
        ("{n!rr}", "after `!` comes r, s or a"),
        ("{it's\nnot closed}", "`{it's}` cannot be filled in: the quote is never closed"),
        ("{'''never", "the quote is never closed"),
        ("{'\\", "the quote is never closed"),
        ("{a\0b}", "null bytes"),
        ("{" + "(" * 5000 + ")" * 5000 + "}", "(((…}` cannot be filled in: "),
    ],
)
def test_a_field_that_does_not_parse_is_named_and_nothing_is_evaluated(prompt: str, reason: str) -> None:
    evaluated: list[str] = []
    with pytest.raises(UsageError) as caught:
        fill("{n}" + prompt, evaluated.append)
    assert reason in str(caught.value)
    assert str(caught.value).endswith(". `{{` writes a brace.")
    assert evaluated == []


@pytest.mark.parametrize("prompt", ["}", "a } b", "{n}}", "{{n}"])
def test_a_brace_that_closes_nothing_is_named(prompt: str) -> None:
    with pytest.raises(UsageError, match=r"a `}` that closes nothing.*`}}` writes a brace"):
        fill(prompt, evaluate)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("{missing}", "`{missing}` cannot be filled in: NameError: name 'missing' is not defined"),
        ("{1/0}", "`{1/0}` cannot be filled in: ZeroDivisionError: division by zero"),
        ('{"a": 1}', '`{"a"}` cannot be filled in: ValueError: '),
        ("{name:.2f}", "`{name}` cannot be filled in: ValueError: Unknown format code"),
        ("{n:{missing}}", "`{n}` cannot be filled in: NameError"),
    ],
)
def test_an_expression_that_raises_is_named_with_its_error(prompt: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        fill(prompt, evaluate)
    assert reason in str(caught.value)
    assert str(caught.value).endswith(". `{{` writes a brace.")
    assert isinstance(caught.value.__cause__, Exception)


def test_a_value_that_cannot_be_shown_is_named() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    with pytest.raises(UsageError, match=r"`{shy}` cannot be filled in: RuntimeError: no"):
        fill("{shy}", lambda _: Shy())


def test_an_interrupt_is_not_an_error_of_the_field() -> None:
    def interrupted(_: str) -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill("{n}", interrupted)


def test_the_fields_are_evaluated_in_order_once_each() -> None:
    evaluated: list[str] = []

    def noted(expression: str) -> object:
        evaluated.append(expression)
        return ""

    fill("{a} {b:{c}} { d\n+ e }", noted)
    assert evaluated == ["a", "b", "c", "(d\n+ e)"]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("{n}", "<int>"),
        ("{d}", "<dict>"),
        ("{name}", "Ann"),
        ("{n!r}", "42"),
        ("{n:>4}", "  42"),
        ("{n:{width}}", "    42"),
    ],
)
def test_what_is_no_text_is_shown_so_unless_the_field_says_how(prompt: str, expected: str) -> None:
    assert fill(prompt, evaluate, lambda value: f"<{type(value).__name__}>") == expected


@pytest.mark.parametrize("value", ["ä" * MOST_OF_ONE, "", "a"])
def test_a_value_up_to_the_limit_is_whole(value: str) -> None:
    assert fill("[{v}]", lambda _: value) == f"[{value}]"


def test_a_value_past_the_limit_is_cut_and_says_so() -> None:
    filled = fill("[{v}]", lambda _: "ä" * (MOST_OF_ONE + 1))
    assert filled == f"[{'ä' * MOST_OF_ONE}\n… (cut: 20,000 of 20,001 characters shown)]"


def test_all_values_together_are_limited_too_and_the_prompt_stays_whole() -> None:
    fields = MOST_OF_ALL // MOST_OF_ONE + 2
    filled = fill("-" * 30_000 + "{v}|" * fields + "the end", lambda _: "v" * (MOST_OF_ONE - 1))
    assert filled.count("v") == MOST_OF_ALL
    assert filled.count("-") == 30_000
    assert filled.endswith(
        "|vvvvv\n… (cut: 5 of 19,999 characters shown)|\n… (cut: 0 of 19,999 characters shown)|the end"
    )


def test_a_huge_text_is_not_copied() -> None:
    class Watched(str):
        __slots__ = ("asked",)
        asked: list[object]

        def __getitem__(self, key: Any) -> str:
            self.asked.append(key)
            return super().__getitem__(key)

        def __str__(self) -> str:
            raise AssertionError("copied whole")

    text = Watched("x" * 1_000_000)
    text.asked = []
    assert fill("{v}", lambda _: text).startswith("x" * MOST_OF_ONE + "\n…")
    assert text.asked == [slice(None, MOST_OF_ONE)]


@pytest.mark.parametrize("prompt", ["{'" * 100_000, "{(" * 100_000, "{n:" * 100_000, "{'" + "\\" * 100_000])
def test_a_long_prompt_that_does_not_parse_is_refused_in_few_words(prompt: str) -> None:
    """A quadratic parser would not live to see it: the suite's time limit is shorter."""
    with pytest.raises(UsageError) as refused:
        fill(prompt, evaluate)
    assert len(str(refused.value)) < 1_000


def test_a_long_prompt_of_many_fields_is_filled() -> None:
    assert fill("{n}{{" * 50_000, lambda _: "") == "{" * 50_000


@given(st.text(alphabet="{}'\"\\()[]:!ab1 \n"))
def test_any_prompt_is_filled_or_refused(prompt: str) -> None:
    try:
        filled = fill(prompt, lambda _: "")
    except UsageError:
        return
    assert len(filled) <= len(prompt)


@given(st.text())
def test_doubled_braces_write_any_text(text: str) -> None:
    assert fill(text.replace("{", "{{").replace("}", "}}"), evaluate) == text
