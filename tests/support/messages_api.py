"""A loopback stand-in for the Anthropic Messages API, for the real CLI to talk to.

It holds the HTTP server and the record of what reached it; `model_script` says which prompt gets which answer. It must
not know the CLI's own protocol, the kernel, or any test.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from support.model_script import Answer, Json, choose_answer, find_prompt, stream_events, whole_message

Script = Callable[[Json], "list[Json] | None"]

TICK_SECONDS = 0.2
_WRITE_BYTES = 1 << 16


class MessagesApi:
    """The running server: `with MessagesApi() as api: … api.url …`."""

    def __init__(self) -> None:
        # Extra headers for every answer, for example the rate limits' `anthropic-ratelimit-unified-*`.
        self.headers: dict[str, str] = {}
        self._requests: list[Json] = []
        self._script: Script | None = None
        self._state = threading.Condition()
        self._connections: set[socket.socket] = set()
        self._closing = False
        self._failures: list[BaseException] = []
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="messages-api", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self) -> list[Json]:
        """The bodies of all `POST /v1/messages` so far, oldest first."""
        with self._state:
            return list(self._requests)

    def last_request(self) -> Json:
        """The newest request of a conversation: what the CLI asks for itself, without tools, does not count."""
        return next(request for request in reversed(self.requests) if request.get("tools"))

    def prompts(self) -> list[str]:
        """The human prompt of each conversation request, repeated for each tool round that it took."""
        return [find_prompt(request).text for request in self.requests if request.get("tools")]

    def wait_for_request(self, wanted: Callable[[Json], bool], timeout_seconds: float = 20.0) -> Json:
        """The first recorded request that `wanted` takes, waiting for it if need be."""

        def find() -> Json | None:
            return next((request for request in self._requests if wanted(request)), None)

        with self._state:
            found = self._state.wait_for(find, timeout_seconds)
        if found is None:
            raise TimeoutError(f"no such request reached the API within {timeout_seconds} s")
        return found

    def wait_until_idle(self, timeout_seconds: float) -> bool:
        """Whether every connection had ended in time."""
        with self._state:
            return self._state.wait_for(lambda: not self._connections, timeout_seconds)

    def clear(self) -> None:
        """Forget requests, script and extra headers, so that one server can serve many tests."""
        with self._state:
            self._requests.clear()
            self._script = None
            self.headers = {}

    def script(self, script: Script | None) -> None:
        """Let `script` answer with content blocks; where it returns None the prompt decides as usual."""
        self._script = script

    def answer(self, request: Json) -> Answer:
        with self._state:
            self._requests.append(request)
            self._state.notify_all()
            script = self._script
        blocks = script(request) if script else None
        return choose_answer(request) if blocks is None else Answer(blocks)

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """End every answer under way; a fault of the stand-in itself is raised here, where a test can see it."""
        self._server.shutdown()
        self._thread.join()
        with self._state:
            self._closing = True
            for connection in self._connections:
                _hang_up(connection)
            self._state.wait_for(lambda: not self._connections, 2.0)
        self._server.server_close()
        if self._failures:
            raise self._failures[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def opened(self, connection: socket.socket) -> None:
        with self._state:
            self._connections.add(connection)
            if self._closing:
                _hang_up(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._state:
            self._connections.discard(connection)
            self._state.notify_all()

    def failed(self, failure: BaseException) -> None:
        # A client that hangs up is an ordinary end of an answer.
        if not isinstance(failure, ConnectionError):
            self._failures.append(failure)


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The client was faster.
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, api: MessagesApi) -> None:
        self.api = api
        super().__init__(("127.0.0.1", 0), _Exchange)

    def server_bind(self) -> None:
        # HTTPServer.server_bind asks the resolver for the host's name, which can take seconds.
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.socket.getsockname()[1]

    def finish_request(self, request: Any, client_address: Any) -> None:
        self.api.opened(request)
        super().finish_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.api.closed(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 (socketserver's signature)
        if failure := sys.exception():
            self.api.failed(failure)


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Nothing: a test's stderr belongs to the test."""

    def do_HEAD(self) -> None:
        self._send_json({})

    def do_GET(self) -> None:
        self._send_json({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        if path == "/v1/messages/count_tokens":
            return self._send_json({"input_tokens": 42})
        if path != "/v1/messages":
            return self._send_json({})
        request: Json = json.loads(body)
        answer = self.server.api.answer(request)
        if answer.hangs:
            self._client_left(None)
            self.close_connection = True
            return None
        if answer.status:
            return self._send_failure(answer.status)
        if request.get("stream"):
            return self._stream(request, answer)
        return self._send_json(whole_message(request, answer))

    def _send_failure(self, status: int) -> None:
        kinds = {
            400: "invalid_request_error",
            401: "authentication_error",
            429: "rate_limit_error",
            529: "overloaded_error",
        }
        error = {"type": kinds.get(status, "api_error"), "message": f"scripted failure {status}"}
        self._send_json({"type": "error", "error": error}, status, {"x-should-retry": "false"})

    def _send_json(self, body: Json, status: int = 200, headers: dict[str, str] | None = None) -> None:
        encoded = json.dumps(body).encode()
        self._send_head(
            status, {"Content-Type": "application/json", "Content-Length": str(len(encoded)), **(headers or {})}
        )
        if self.command != "HEAD":
            self.wfile.write(encoded)

    def _send_head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, **self.server.api.headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, request: Json, answer: Answer) -> None:
        self._send_head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        pending = bytearray()
        for event in stream_events(request, answer):
            pending += f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            ticks = bool(answer.ticks) and event["type"] == "content_block_delta"
            if ticks or len(pending) >= _WRITE_BYTES:
                self._write_chunk(pending)
                pending.clear()
            if ticks and self._client_left(TICK_SECONDS):
                self.close_connection = True
                return
        self._write_chunk(pending)
        self.wfile.write(b"0\r\n\r\n")

    def _write_chunk(self, chunk: bytearray) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), bytes(chunk)))

    def _client_left(self, timeout_seconds: float | None) -> bool:
        # A client waits for the end of an answer before it sends more: readable means that it has gone.
        return bool(select.select([self.connection], [], [], timeout_seconds)[0])
