"""A real Jupyter server, and a person's hands on one notebook page in it: JupyterLab and Notebook 7.

`LabServer` owns the server process and whatever grows out of it; `NotebookPage` drives a Playwright page. They must not
know pytest, the CLI's protocol, the kernel's own modules, or what any test wants to see.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote
from uuid import uuid4

import nbformat
import psutil
from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, Playwright, Route, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

App = Literal["lab", "notebook"]
Json = dict[str, Any]

PROJECT = Path(__file__).resolve().parents[2]
KERNELSPEC = PROJECT / "kernelspec"
SCREENS = PROJECT / ".artifacts" / "screens"

START_SECONDS = 30.0
STOP_SECONDS = 10.0
# Loading a page with two busy cores, not a turn: turns bring their own timeouts.
PAGE_SECONDS = 30.0
_POLL_SECONDS = 0.02
_MARK = "CLAUDE_KERNEL_TEST_LAB"

_SERVER_TRAITS: Json = {
    "ServerApp": {
        "ip": "127.0.0.1",
        "port": 0,
        "open_browser": False,
        "allow_root": True,
        "password": "",
        "disable_check_xsrf": True,
        "terminals_enabled": False,
        "jpserver_extensions": {"jupyter_lsp": False, "jupyter_server_terminals": False, "notebook": True},
    },
    "IdentityProvider": {"token": ""},
    "LabApp": {
        "expose_app_in_browser": True,
        "extension_manager": "readonly",
        "news_url": None,
        "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    },
    "JupyterNotebookApp": {"expose_app_in_browser": True},
}
# The server lives as long as the pipe on its stdin, so it ends even when the tests are killed.
_SERVER_CONFIG = """
import os, signal, sys, threading

def leave_with_the_tests():
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=leave_with_the_tests, daemon=True).start()
"""
_PAGE_CONFIG: Json = {
    "buildAvailable": False,
    "buildCheck": False,
    "disabledExtensions": {
        "@jupyterlab/apputils-extension:announcements": True,
        "@jupyterlab/extensionmanager-extension": True,
        # All three, or the two that need the first one fill the console with errors.
        "@jupyterlab/lsp-extension": True,
        "@jupyterlab/fileeditor-extension:language-server": True,
        "@jupyterlab/notebook-extension:language-server": True,
    },
}
_SETTINGS: Json = {
    "@jupyterlab/apputils-extension:notification": {"checkForUpdates": False, "fetchNews": "false"},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False, "renameUntitledFileOnSave": False},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}


_CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Requests are refused one by one and recorded; this also stops what is no request (prefetch, sockets).
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


def launch_chromium(playwright: Playwright) -> Browser:
    """The machine's own, which may only talk to this machine. Raises LookupError where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise LookupError("Chromium is not on the PATH")
    return playwright.chromium.launch(executable_path=found, args=list(_CHROMIUM_ARGUMENTS))


class LabServer:
    """`with LabServer(folder, environment) as lab: … lab.url …`; everything it writes is under `base`."""

    def __init__(self, base: Path, environment: Mapping[str, str] | None = None) -> None:
        self.root = base / "notebooks"
        self.foreign_requests: list[str] = []
        self.start_seconds = 0.0
        self._base = base
        self._mark = uuid4().hex
        self._url: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._write_configuration()
        self.set_environment(environment or {})

    @property
    def url(self) -> str:
        if self._url is None:
            raise RuntimeError("the Jupyter server is not running")
        return self._url

    @property
    def log(self) -> str:
        path = self._base / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def set_environment(self, environment: Mapping[str, str]) -> None:
        """Give it to the kernels started from now on: the server reads a kernelspec anew for each start."""
        if KERNELSPEC.is_dir():
            self.install_kernel("claude", KERNELSPEC, environment)
        self.install_kernel("python3", Path(sys.prefix) / "share" / "jupyter" / "kernels" / "python3", environment)

    def install_kernel(self, name: str, source: Path, environment: Mapping[str, str]) -> None:
        """Make the kernelspec in `source` known to the server, with its modules taken from the working tree."""
        target = self._base / "share" / "kernels" / name
        shutil.copytree(source, target, dirs_exist_ok=True)
        spec = json.loads((source / "kernel.json").read_text())
        if spec["argv"][0] == "python":
            spec["argv"][0] = sys.executable
        env = {**spec.get("env", {}), "PYTHONPATH": str(PROJECT), **environment}
        # jupyter_client expands ${NAME} in these values.
        spec["env"] = {name: value.replace("$", "$$") for name, value in env.items()}
        (target / "kernel.json").write_text(json.dumps(spec))

    def new_folder(self, name: str) -> Path:
        """A fresh folder that the server shows, named after `name`."""
        words = re.sub(r"\W+", "-", name).strip("-")
        folder = next(
            candidate
            for number in range(1, 10_000)
            if not (candidate := self.root / (words if number == 1 else f"{words}-{number}")).exists()
        )
        folder.mkdir(parents=True)
        return folder

    def request(self, method: str, path: str) -> Any:
        """The server's REST answer, decoded; None where it has no body."""
        request = urllib.request.Request(f"{self.url}{path}", method=method)
        with urllib.request.urlopen(request, timeout=STOP_SECONDS) as response:
            body = response.read()
        return json.loads(body) if body else None

    def forget(self) -> None:
        """Shut down every kernel, and drop the settings that a test changed."""
        for session in self.request("GET", "/api/sessions"):
            self.request("DELETE", f"/api/sessions/{session['id']}")
        for kernel in self.request("GET", "/api/kernels"):
            self.request("DELETE", f"/api/kernels/{kernel['id']}")
        shutil.rmtree(self._base / "config" / "lab", ignore_errors=True)

    def processes(self) -> list[psutil.Process]:
        """The server and all that came out of it, also what has lost its parent since."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def start(self) -> None:
        started = time.monotonic()
        command = [sys.executable, "-m", "jupyterlab"]
        with (self._base / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.root,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_ready(self._process, started + START_SECONDS)
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - started

    def stop(self) -> None:
        """Ask, wait, then kill whatever is left. Never hangs."""
        process, self._process, self._url = self._process, None, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        left = self.processes()
        for orphan in left:
            orphan.kill()
        psutil.wait_procs(left, timeout=STOP_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return bool(process.environ().get(_MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False

    def _write_configuration(self) -> None:
        config = self._base / "config"
        for folder in (self.root, config / "labconfig", *(self._base / name for name in ("share", "runtime", "home"))):
            folder.mkdir(parents=True, exist_ok=True)
        traits = {**_SERVER_TRAITS, "ServerApp": {**_SERVER_TRAITS["ServerApp"], "root_dir": str(self.root)}}
        (config / "jupyter_server_config.json").write_text(json.dumps(traits))
        (config / "jupyter_server_config.py").write_text(_SERVER_CONFIG)
        (config / "labconfig" / "page_config.json").write_text(json.dumps(_PAGE_CONFIG))
        (config / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(_SETTINGS))

    def _environment(self) -> dict[str, str]:
        """Built from nothing, so that a developer's ANTHROPIC_*, proxies and Jupyter folders cannot leak in."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(self._base / "home"),
            "JUPYTER_CONFIG_DIR": str(self._base / "config"),
            "JUPYTER_DATA_DIR": str(self._base / "home" / "jupyter"),
            "JUPYTER_RUNTIME_DIR": str(self._base / "runtime"),
            "JUPYTER_PATH": str(self._base / "share"),
            _MARK: self._mark,
        }

    def _wait_until_ready(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        runtime_file = self._base / "runtime" / f"jpserver-{process.pid}.json"
        while time.monotonic() < deadline and process.poll() is None:
            try:
                self._url = f"http://127.0.0.1:{json.loads(runtime_file.read_text())['port']}"
                self.request("GET", "/api/status")
            except (OSError, ValueError):
                time.sleep(_POLL_SECONDS)
            else:
                return
        raise RuntimeError(f"the Jupyter server did not start:\n{self.log}")


# Thrown by Notebook 7.6 itself on every page, with no extension of ours and no setting changed.
STOCK_PAGE_ERRORS = (
    "Cannot read properties of undefined (reading 'schema')",
    "Command 'filebrowser:open-path' not registered.",
)
_LOOPBACK = r"//(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?(?:[/?#]|$)"
FOREIGN = re.compile(rf"^(?:https?|wss?|ftp):(?!{_LOOPBACK})")

# Every command of the app, by whatever key, button or menu it came, is counted until its promise has settled. Else a
# wait just after a key press could see the idle kernel of the moment before.
_COUNT_COMMANDS = """() => {
  if (window.labPending) return;
  const pending = window.labPending = {};
  window.jupyterapp.commands.commandExecuted.connect((_, {id, result}) => {
    pending[id] = (pending[id] ?? 0) + 1;
    const settle = () => { pending[id] -= 1; };
    Promise.resolve(result).then(settle, settle);
  });
}"""
_SESSION = "window.jupyterapp?.shell?.currentWidget?.context?.sessionContext"
_OPENED = f"""() => {_SESSION}?.isReady && {_SESSION}.session?.kernel?.status === 'idle'
  && window.jupyterapp.shell.currentWidget.context.isReady"""
_CONNECTED = f"""() => {_SESSION}?.session?.kernel?.connectionStatus === 'connected'
  && window.jupyterapp.shell.currentWidget.context.isReady"""
_IDLE = f"""() => {_SESSION}?.session?.kernel?.status === 'idle'
  && !Object.entries(window.labPending).some(([id, count]) => count > 0 && id.startsWith('notebook:'))
  && window.jupyterapp.shell.currentWidget.content.widgets.every(cell => cell.model.executionState !== 'running')"""
_EXECUTE = "([id, args]) => { void window.jupyterapp.commands.execute(id, args); }"
_SETTLED = "id => !window.labPending[id]"


class NotebookPage:
    """One notebook in one browser page. Cells are counted from 0; every wait fails loudly when its time is up."""

    def __init__(self, lab: LabServer, page: Page, folder: Path) -> None:
        self.lab = lab
        self.folder = folder
        self.path = folder
        self.console_errors: list[str] = []
        self.page_errors: list[str] = []
        self.use_page(page)

    def use_page(self, page: Page) -> None:
        """Look at the notebook through this page from now on."""
        self.page = page
        page.set_default_timeout(PAGE_SECONDS * 1000)
        page.on("console", self._record_console)
        page.on("pageerror", lambda error: self._record_page_error(error.message))
        page.on("websocket", lambda socket: self._record_address(socket.url))
        page.context.route(FOREIGN, self._refuse)

    # -- opening

    def open(
        self, name: str, cells: Sequence[str] = ("",), *, kernel: str = "claude", app: App = "lab", wait: bool = True
    ) -> Self:
        """Write a notebook with these code cells into the folder, open it, and wait until its kernel is idle."""
        known = self.lab.request("GET", "/api/kernelspecs")["kernelspecs"]
        if kernel not in known:
            raise LookupError(f"no kernel named {kernel!r}; the server knows {sorted(known)}")
        blank: Json = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
        notebook = {
            "cells": [{**blank, "id": f"cell-{index}", "source": source} for index, source in enumerate(cells)],
            "metadata": {"kernelspec": {"name": kernel, "display_name": known[kernel]["spec"]["display_name"]}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        self.path = self.folder / name
        self.path.write_text(json.dumps(notebook))
        return self.visit(app, wait=wait)

    def visit(self, app: App = "lab", *, wait: bool = True) -> Self:
        """Open the notebook that is already at `path`. Without `wait`, `attach` must follow."""
        self.page.goto(
            f"{self.lab.url}{'/lab/tree' if app == 'lab' else '/notebooks'}/{self._address(self.path)}?reset"
        )
        if wait:
            self.attach()
        return self

    def attach(self, timeout_seconds: float = PAGE_SECONDS, *, busy: bool = False) -> None:
        """Wait until the notebook on the page has a kernel: an idle one, or with `busy` in whatever state."""
        if busy:
            self._wait(_CONNECTED, timeout_seconds, "the notebook did not open with a kernel")
        else:
            self._wait(_OPENED, timeout_seconds, "the notebook did not open with an idle kernel")
        self.page.evaluate(_COUNT_COMMANDS)
        self.path = self.lab.root / self.page.evaluate("window.jupyterapp.shell.currentWidget.context.path")

    def reload(self) -> None:
        """Load the page anew; the kernel goes on, and what was not saved is lost."""
        self.page.reload()
        self.attach()

    def open_launcher(self) -> Locator:
        """JupyterLab's launcher in the notebook's folder; the answer is its cards."""
        self.page.goto(f"{self.lab.url}/lab/tree/{self._address(self.folder)}?reset")
        expect(self.launcher_cards()).to_have_count(len(self.lab.request("GET", "/api/kernelspecs")["kernelspecs"]))
        return self.launcher_cards()

    def launcher_cards(self) -> Locator:
        """The cards that start a notebook. A kernel without a logo has its initial as text too: see `card_labels`."""
        section = self.page.locator(".jp-Launcher-section").filter(
            has=self.page.locator(".jp-Launcher-sectionTitle", has_text=_whole("Notebook"))
        )
        return section.locator(".jp-LauncherCard")

    def card_labels(self) -> list[str]:
        return [label.strip() for label in self.launcher_cards().locator(".jp-LauncherCard-label").all_inner_texts()]

    def choose_card(self, label: str) -> None:
        """Start a notebook from the launcher and wait for its kernel."""
        named = self.page.locator(".jp-LauncherCard-label", has_text=_whole(label))
        self.launcher_cards().filter(has=named).click()
        self.attach()

    # -- what is on the page

    @property
    def panel(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    def cells(self) -> Locator:
        return self.panel.locator(".jp-Notebook .jp-Cell")

    def cell(self, index: int) -> Locator:
        return self.cells().nth(index)

    def editor(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-InputArea-editor .cm-content")

    def prompt(self, index: int) -> str:
        """`[*]:` while the cell runs or waits its turn, then `[1]:`."""
        return self.cell(index).locator(".jp-InputArea-prompt").inner_text().strip()

    def output(self, index: int) -> Locator:
        return self.cell(index).locator(".jp-Cell-outputArea")

    def output_text(self, index: int) -> str:
        # Only the area's own children: an Output widget holds an area again, whose text would come twice.
        own = self.output(index).locator(":scope > .jp-OutputArea-child > .jp-OutputArea-output")
        return "\n".join(own.all_inner_texts())

    def widget_button(self, label: str) -> Locator:
        """ipywidgets buttons with exactly this label."""
        return self.panel.locator("button.jupyter-button").filter(has_text=_whole(label))

    def dialog(self) -> Locator:
        return self.page.locator(".jp-Dialog")

    def kernel_status(self) -> str:
        return str(self.page.evaluate(f"{_SESSION}?.session?.kernel?.status ?? 'none'"))

    # -- what a person does

    def write(self, index: int, text: str) -> None:
        """Replace a cell's text, as if pasted: typing would add the editor's own indentation."""
        self.editor(index).focus()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(text)

    def add_cell(self, text: str) -> int:
        """Append a cell; the answer is its index."""
        count = self.cells().count()
        self.editor(count - 1).focus()
        self.command("notebook:insert-cell-below")
        expect(self.cells()).to_have_count(count + 1)
        self.write(count, text)
        return count

    def run(self, index: int) -> None:
        """Start a cell with the keyboard; it does not wait for the end."""
        self.editor(index).focus()
        self.page.keyboard.press("Control+Enter")

    def run_all(self) -> None:
        """Run All; it does not wait for the end."""
        self.command("notebook:run-all-cells")

    def interrupt(self) -> None:
        """Press the stop button."""
        self._toolbar_button("interrupt").click()

    def restart(self, timeout_seconds: float = PAGE_SECONDS) -> None:
        """Press the restart button, say yes, and wait for the new kernel."""
        self._toolbar_button("restart").click()
        self.accept_dialog()
        self.wait_idle(timeout_seconds)

    def accept_dialog(self) -> None:
        self.dialog().locator(".jp-Dialog-button.jp-mod-accept").click()
        expect(self.dialog()).to_have_count(0)

    def save(self) -> Json:
        """Save, wait until it is done, and read back what is on disk."""
        self.command("docmanager:save")
        self.page.wait_for_function(_SETTLED, arg="docmanager:save")
        return self.saved()

    def saved(self) -> Json:
        """The notebook on disk, each list of lines joined to one string."""
        notebook: Json = nbformat.read(str(self.path), as_version=4)
        return notebook

    def theme(self, name: Literal["light", "dark"]) -> None:
        title = f"JupyterLab {name.title()}"
        self.command("apputils:change-theme", {"theme": title})
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-name", title)
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)  # it covers the page while the theme loads

    def command(self, name: str, arguments: Json | None = None) -> None:
        """Start one of the app's commands; it does not wait for the end."""
        self.page.evaluate(_EXECUTE, [name, arguments or {}])

    # -- waiting and looking

    def wait_idle(self, timeout_seconds: float = PAGE_SECONDS) -> None:
        """Until the kernel is idle and no cell runs or waits its turn."""
        self._wait(_IDLE, timeout_seconds, "the notebook did not become idle")

    def wait_for_output(
        self, index: int, text: str | None = None, *, selector: str | None = None, timeout_seconds: float = PAGE_SECONDS
    ) -> Locator:
        """Until the cell's output holds `text`, or `selector` finds something visible in it; the answer is where."""
        found = self.output(index)
        if selector is not None:
            found = found.locator(selector).first
            expect(found).to_be_visible(timeout=timeout_seconds * 1000)
        if text is not None:
            expect(found).to_contain_text(text, timeout=timeout_seconds * 1000)
        return found

    def screenshot(self, name: str, *, whole: bool = False) -> Path:
        """The notebook's panel, `whole` with what would need scrolling, in .artifacts/screens/NAME.png."""
        path = SCREENS / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        size = self.page.viewport_size
        if whole and size is not None:
            hidden = self.panel.locator(".jp-WindowedPanel-outer").evaluate("e => e.scrollHeight - e.clientHeight")
            self.page.set_viewport_size({"width": size["width"], "height": min(size["height"] + hidden, 16_000)})
        self.panel.screenshot(path=path, animations="disabled")
        if whole and size is not None:
            self.page.set_viewport_size(size)
        return path

    def describe(self, name: str) -> str:
        """For the report of a failed test: what went wrong on the page, and where its picture is."""
        SCREENS.mkdir(parents=True, exist_ok=True)
        path = SCREENS / f"failed-{name}.png"
        try:
            self.page.screenshot(path=path, timeout=5_000)
        except Error as error:
            return f"{self.page.url}: no picture, {error.message}"
        errors = [*self.console_errors, *self.page_errors, *self.lab.foreign_requests]
        return "\n".join([f"{self.page.url}: {path}", *errors])

    # -- inside

    def _toolbar_button(self, item: str) -> Locator:
        return self.panel.locator(f'.jp-NotebookPanel-toolbar [data-jp-item-name="{item}"]')

    def _address(self, path: Path) -> str:
        return quote(path.relative_to(self.lab.root).as_posix())

    def _wait(self, condition: str, timeout_seconds: float, complaint: str) -> None:
        try:
            self.page.wait_for_function(condition, timeout=timeout_seconds * 1000)
        except PlaywrightTimeout as error:
            dialogs = self.dialog().all_inner_texts()
            raise AssertionError(
                f"{complaint} within {timeout_seconds} s: kernel {self.kernel_status()}, dialogs {dialogs}"
            ) from error

    def _record_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.console_errors.append(f"{message.text} ({message.location['url']})")

    def _record_page_error(self, message: str) -> None:
        if message not in STOCK_PAGE_ERRORS:
            self.page_errors.append(message)

    def _record_address(self, url: str) -> None:
        if FOREIGN.match(url):
            self.lab.foreign_requests.append(url)

    def _refuse(self, route: Route) -> None:
        self._record_address(route.request.url)
        route.abort()


def _whole(label: str) -> re.Pattern[str]:
    return re.compile(rf"^\s*{re.escape(label)}\s*$")
