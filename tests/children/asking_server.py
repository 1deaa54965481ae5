"""An MCP server on stdio with one tool, which asks the person to fill in a form before it answers.

Started by the real CLI in tests. It knows nothing of the kernel; the standard library is all it needs.
"""

from __future__ import annotations

import json
import sys

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "title": "City"}, "nights": {"type": "integer", "title": "Nights"}},
    "required": ["city"],
}


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def main() -> None:
    waiting: object = None
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "travel", "version": "1"}
            send(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
        elif method == "tools/list":
            send(id=number, result={"tools": [{"name": "book", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call":
            waiting = number
            send(id="form", method="elicitation/create", params={"message": "Where to?", "requestedSchema": SCHEMA})
        elif number == "form":
            told = json.dumps(message.get("result", message.get("error")), sort_keys=True)
            send(id=waiting, result={"content": [{"type": "text", "text": f"form: {told}"}]})
        elif number is not None:
            send(id=number, result={})


if __name__ == "__main__":
    main()
