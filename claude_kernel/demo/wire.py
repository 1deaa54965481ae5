"""One JSON object a line, both ways, and questions to the notebook that wait for their answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

Json = dict[str, Any]


class Refused(Exception):
    """The notebook answered a request with an error, or is gone."""


class Wire:
    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._closed = False

    def send(self, kind: str, **row: Any) -> None:
        self._write(json.dumps({"type": kind, **row}).encode() + b"\n")

    def answer(self, request_id: str, response: Json) -> None:
        self.send("control_response", response={"subtype": "success", "request_id": request_id, "response": response})

    def refuse(self, request_id: str, error: str) -> None:
        self.send("control_response", response={"subtype": "error", "request_id": request_id, "error": error})

    async def request(self, subtype: str, **request: Any) -> Json:
        """Asks the notebook. Where the turn is stopped meanwhile, the question is withdrawn."""
        if self._closed:
            raise Refused("The notebook has gone.")
        request_id = str(uuid4())
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        self.send("control_request", request_id=request_id, request={"subtype": subtype, **request})
        try:
            return await answer
        except asyncio.CancelledError:
            self.send("control_cancel_request", request_id=request_id)
            raise
        finally:
            del self._waiting[request_id]

    def settle(self, response: Json) -> None:
        waiting = self._waiting.get(str(response.get("request_id")))
        if waiting is None or waiting.done():
            return
        if response.get("subtype") == "success":
            waiting.set_result(response.get("response") or {})
        else:
            waiting.set_exception(Refused(str(response.get("error") or "no reason given")))

    def close(self) -> None:
        """Nobody can answer any more."""
        self._closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Refused("The notebook has gone."))
