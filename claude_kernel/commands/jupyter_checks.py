"""Checks of this Python and of Jupyter: is the kernel found, can it be started, will its buttons be drawn?"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from claude_kernel import __version__
from claude_kernel.commands.findings import Case, Finding, State, ok, problem, warning
from claude_kernel.commands.specs import CLAUDE, DEMO

_SECONDS = 15
_MANAGER = Path("labextensions", "@jupyter-widgets", "jupyterlab-manager", "package.json")
_FRONT_ENDS = (("jupyterlab", "JupyterLab"), ("notebook", "Notebook"))


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


# --- Python and ipykernel -------------------------------------------------------------------------------------------


def check_python(_case: Case) -> Finding:
    return judge_python(platform.python_version())


def judge_python(found: str) -> Finding:
    if numbers(found) < (3, 11):
        return problem(f"{found} at {sys.executable}", "claude-kernel needs Python 3.11 or newer: install it there.")
    return ok(f"{found} at {sys.executable}")


def check_ipykernel(_case: Case) -> Finding:
    return judge_ipykernel(find_version("ipykernel"))


def judge_ipykernel(found: str | None) -> Finding:
    remedy = f'{_pip()} install "ipykernel>=7.4,<8"'
    if found is None:
        return problem("not installed here", f"Run `{remedy}`.")
    if not (7, 4) <= numbers(found) < (8,):
        return problem(f"{found}, but the kernel works with 7.4 up to 8", f"Run `{remedy}`.")
    return ok(found)


# --- Jupyter --------------------------------------------------------------------------------------------------------


def check_jupyter(_case: Case) -> Finding:
    here = [f"{name} {found}" for package, name in _FRONT_ENDS if (found := find_version(package))]
    client = f"jupyter_client {find_version('jupyter_client') or 'missing'}"
    jupyter = shutil.which("jupyter")
    if jupyter and not _is_of_this_environment(server_paths()):
        return warning(
            f"{', '.join([*here, client])}; but `jupyter` on the PATH is {jupyter}, of another environment",
            "Start Jupyter with `claude-kernel lab`, or run `claude-kernel install` so that the other one finds the "
            "kernel as well.",
        )
    if not here:
        return warning(
            f"neither JupyterLab nor Notebook is installed here ({client})",
            f'Run `{_pip()} install "claude-kernel[lab]"`, unless you use another front end.',
        )
    return ok(", ".join([*here, client]))


def server_paths() -> list[Path]:
    """Where the Jupyter that a person would start looks for kernels and extensions: that on the PATH, else ours."""
    jupyter = shutil.which("jupyter")
    if jupyter is None:
        from jupyter_core.paths import jupyter_path

        return [Path(path) for path in jupyter_path()]
    done = subprocess.run(  # noqa: S603 - the program that a person starts with that word
        [jupyter, "--paths", "--json"], capture_output=True, text=True, timeout=_SECONDS, check=True
    )
    return [Path(path) for path in json.loads(done.stdout)["data"]]


def _is_of_this_environment(paths: list[Path]) -> bool:
    return Path(sys.prefix, "share", "jupyter").resolve() in [path.resolve() for path in paths]


# --- widgets --------------------------------------------------------------------------------------------------------


def check_widgets(_case: Case) -> Finding:
    return judge_widgets(find_version("ipywidgets"), server_paths())


def judge_widgets(found: str | None, paths: list[Path]) -> Finding:
    """The kernel's half is ipywidgets, the page's half an extension in the environment that Jupyter itself runs in."""
    if found is None:
        return problem("ipywidgets is not installed here", f'Run `{_pip()} install "ipywidgets>=8.1"`.')
    for folder in paths:
        try:
            manager = json.loads((folder / _MANAGER).read_text("utf-8"))["version"]
        except (OSError, ValueError, LookupError, TypeError):
            continue
        return ok(f"ipywidgets {found}, and its manager {manager} in {folder / _MANAGER.parts[0]}")
    return warning(
        f"ipywidgets {found}, but Jupyter has no widget manager: you would be asked by typed keys instead of buttons",
        "Run `pip install jupyterlab_widgets` in the environment that Jupyter runs in, then start Jupyter anew.",
    )


# --- kernelspecs ----------------------------------------------------------------------------------------------------


def check_kernel(_case: Case) -> Finding:
    return _judge_spec(CLAUDE, missing=State.PROBLEM)


def check_demo_kernel(_case: Case) -> Finding:
    return _judge_spec(DEMO, missing=State.WARNING)


def _judge_spec(name: str, *, missing: State) -> Finding:
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        return Finding(missing, f"Jupyter knows no kernel {name}", "Run `claude-kernel install`.")
    folder, interpreter = spec.resource_dir, _interpreter(spec.argv[0] if spec.argv else "")
    if interpreter is None:
        return problem(f"{folder} names a Python that is not there: {spec.argv[:1]}", "Run `claude-kernel install`.")
    done = subprocess.run(  # noqa: S603 - what Jupyter itself would start
        [interpreter, "-c", "import claude_kernel; print(claude_kernel.__version__)"],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        cwd=folder,  # not where a person is: a folder of the same name there would be imported
        env={**os.environ, **spec.env},
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        return problem(
            f"{folder} is run by {interpreter}, which cannot import claude_kernel: {said}",
            "Run `claude-kernel install`, or install the package for that Python.",
        )
    found = done.stdout.strip()
    if found != __version__:
        return warning(
            f"{folder} is run by {interpreter}, which has claude-kernel {found}; this is {__version__}",
            "Run `claude-kernel install` to run the kernel with this one.",
        )
    return ok(f"{folder}, run by {interpreter}")


def _interpreter(word: str) -> str | None:
    """As jupyter_client finds it: a bare `python` is the Python that Jupyter runs with."""
    major, minor = sys.version_info[:2]
    if word in ("python", f"python{major}", f"python{major}.{minor}"):
        return sys.executable
    return shutil.which(word)


def _pip() -> str:
    return f"{sys.executable} -m pip"
