"""jupyter_kernel_test, whole but for what a kernel of prompts has no use for: a pager."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, ClassVar

import jupyter_kernel_test
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from support.kernels import write_spec
from support.messages_api import MessagesApi
from support.real_cli import cli_environment, cli_path

pytestmark = pytest.mark.real_cli

ROOT = Path(__file__).parent.parent.parent


class TestClaudeKernel(jupyter_kernel_test.KernelTests):  # type: ignore[misc]  # it has no types
    kernel_name = "claude"
    language_name = "markdown"
    file_extension = ".md"
    code_hello_world = "say:hello, world"
    code_stderr = "%%python\nimport sys\nprint('oops', file=sys.stderr)"
    code_generate_error = "%%python\n1/0"
    code_page_something = "%quickref"
    code_inspect_sample = "/compact"
    code_history_pattern = "%%python\n1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_clear_output = "%%python\nfrom IPython.display import clear_output; clear_output()"
    completion_samples: ClassVar[list[dict[str, Any]]] = [
        {"text": "%claude sta", "matches": {"status"}},
        {"text": "%claude mode acc", "matches": {"acceptEdits"}},
    ]
    complete_code_samples: ClassVar[list[str]] = ["a prompt", "%%python\nx = 1\n\n", "```\ncode\n```"]
    incomplete_code_samples: ClassVar[list[str]] = ["goes on \\", "```python\nx = 1", "%%python\ndef f():\n    x"]
    code_execute_result: ClassVar[list[dict[str, str]]] = [
        {"code": "%%python\n1+2+3", "result": "6"},
    ]
    code_display_data: ClassVar[list[dict[str, str]]] = [
        {"code": "%%python\nfrom IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))", "mime": "text/html"}
    ]
    _api: ClassVar[MessagesApi]
    _folder: ClassVar[tempfile.TemporaryDirectory[str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls._folder = tempfile.TemporaryDirectory()
        cls._api = MessagesApi().__enter__()
        home = Path(cls._folder.name, "home")
        environment = cli_environment(home, cls._api.url)
        environment |= {
            "CLAUDE_CODE_PATH": str(cli_path()),
            "PYTHONPATH": str(ROOT),
            "IPYTHONDIR": str(home / "ipython"),
        }
        spec = write_spec(Path(cls._folder.name, "jupyter"))
        specs = KernelSpecManager(kernel_dirs=[str(spec / "kernels")], ensure_native_kernel=False)
        cls.km = KernelManager(kernel_name="claude", kernel_spec_manager=specs)
        cls.km.start_kernel(env=environment, cwd=str(home))
        cls.kc = cls.km.client()
        cls.kc.start_channels()
        cls.kc.wait_for_ready(timeout=30)
        warmed = cls.kc.execute("%claude status")  # the CLI has told its commands when this has been answered
        while cls.kc.get_shell_msg(timeout=30)["parent_header"].get("msg_id") != warmed:
            pass  # answers to the client's own questions whether the kernel is ready

    @classmethod
    def tearDownClass(cls) -> None:
        cls.kc.stop_channels()
        cls.km.shutdown_kernel()
        cls._api.__exit__(None, None, None)
        cls._folder.cleanup()
