"""One Jupyter server and one Chromium for all browser tests; a fresh folder and a fresh browser context for each.

It must not know what any test looks at. `notebook` drives any kernel; `claude_notebook` has the real CLI behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from support.lab import LabServer, NotebookPage, launch_chromium
from support.real_cli import cli_path

LOG_LINES = 60


@dataclass
class Chromium:
    browser: Browser
    loop: asyncio.AbstractEventLoop | None

    @contextmanager
    def awake(self) -> Iterator[Browser]:
        """Playwright may only be called in here.

        Its loop stays marked as running in this thread between calls, and no other test could use asyncio.run.
        """
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self.loop)
        try:
            yield self.browser
        finally:
            asyncio._set_running_loop(before)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    with LabServer(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    with sync_playwright() as playwright:
        try:
            browser = launch_chromium(playwright)
        except LookupError as error:
            pytest.fail(f"the browser tests cannot run: {error}", pytrace=False)
        running = Chromium(browser, asyncio._get_running_loop())
        asyncio._set_running_loop(None)
        try:
            yield running
        finally:
            asyncio._set_running_loop(running.loop)
            browser.close()


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    with chromium.awake() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        try:
            yield context.new_page()
        finally:
            context.close()


@pytest.fixture
def cli_home(lab: LabServer, request: pytest.FixtureRequest) -> Path:
    """Inside what the server shows, so that the notebook's folder is the CLI's `project`."""
    return lab.new_folder(request.node.name)


@pytest.fixture
def notebook(lab: LabServer, page: Page, project: Path) -> Iterator[NotebookPage]:
    lab.foreign_requests.clear()
    driver = NotebookPage(lab, page, project)
    yield driver
    # The page first: it would start the kernel of a closed session again, or save a setting late.
    page.close()
    lab.forget()
    assert lab.foreign_requests == []


@pytest.fixture
def claude_notebook(lab: LabServer, notebook: NotebookPage, cli_env: dict[str, str]) -> NotebookPage:
    """`notebook` for kernels that run the real CLI against `messages_api`."""
    lab.set_environment({**cli_env, "CLAUDE_CODE_PATH": str(cli_path())})
    return notebook


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    funcargs = getattr(item, "funcargs", {})
    if report.failed and isinstance(server := funcargs.get("lab"), LabServer):
        report.sections.append(("jupyter server", "\n".join(server.log.splitlines()[-LOG_LINES:])))
    if report.failed and isinstance(driver := funcargs.get("notebook"), NotebookPage) and not driver.page.is_closed():
        report.sections.append(("page", driver.describe(driver.folder.parent.name)))
    return report
