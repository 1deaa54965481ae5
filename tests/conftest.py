"""Fixtures for tests that run the real CLI on loopback. They must not know the kernel's own modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.messages_api import MessagesApi
from support.real_cli import MISSING, cli_environment, find_cli

SLOW = frozenset(
    {
        "children/test_children",
        "demo/test_checkpoints",
        "demo/test_demo",
        "demo/test_shelf",
        "render/test_hostile",
        "render/test_tools",
        "test_conversation",
        "test_dialects",
        "test_guard",
        "test_packaging",
        "test_screen",
        "test_session",
        "test_steering",
        "test_support",
        "test_transport",
    }
)
"""Files that start child processes or grind through large inputs: they run after those that answer in seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if str(item.path.relative_to(here).with_suffix("")) in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def messages_api() -> Iterator[MessagesApi]:
    """One stand-in for the whole run; `cli_env` clears its requests for each test."""
    with MessagesApi() as api:
        yield api


@pytest.fixture
def cli_home(tmp_path: Path) -> Path:
    """A fresh HOME for the CLI. The project is inside it, as it is on a person's machine."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def project(cli_home: Path) -> Path:
    folder = cli_home / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def cli_env(cli_home: Path, messages_api: MessagesApi) -> dict[str, str]:
    """The environment in which the CLI talks to `messages_api` and to nothing else."""
    if find_cli() is None:
        pytest.fail(MISSING, pytrace=False)
    messages_api.clear()
    return cli_environment(cli_home, messages_api.url)
