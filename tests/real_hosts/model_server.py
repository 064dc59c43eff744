"""A model that says what a script tells it to, over the streams of three vendors, and keeps what it
was asked.

Each step of a script is a list of texts and calls; a request that offers tools takes the next step,
one that offers none (a title, a summary) gets a plain sentence. The last step is said for ever.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Part = dict[str, Any]
Step = Sequence[Part]


def text(words: str) -> Part:
    """Something the model says."""
    return {"text": words}


def call(tool: str, **arguments: Any) -> Part:
    """A tool the model calls."""
    return {"tool": tool, "input": arguments}


@dataclass(slots=True)
class Script:
    """What the model says, and what it was asked."""

    steps: Sequence[Step]
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _said: int = 0

    def next(self, request: dict[str, Any]) -> Step:
        """The answer to a request."""
        with self._lock:
            self.requests.append(request)
            if not request.get("tools"):
                return [text("A summary of what was said.")]
            self._said += 1
            return self.steps[min(self._said, len(self.steps)) - 1]

    def heard(self, words: str) -> list[bool]:
        """Of each request, whether these words stand in it."""
        return [json.dumps(words)[1:-1] in json.dumps(each) for each in self.requests]


@contextmanager
def scripted(*steps: Step) -> Iterator[Script]:
    """A server on loopback that answers by a script."""
    script = Script(steps)

    class Handler(_Handler):
        answers = script

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    answers: Script

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written to the terminal."""

    def do_HEAD(self) -> None:
        self._reply({})

    def do_GET(self) -> None:
        self._reply({"error": {"message": "There is nothing here."}}, 404)

    def do_POST(self) -> None:
        body = json.loads(self._body())
        path = self.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            self._stream(_completions(self.answers.next(body)), "data: [DONE]\n\n")
        elif path.endswith("GenerateContent"):
            self._stream(_contents(self.answers.next(body)))
        elif path.endswith(":generateContent"):
            self._reply(next(_contents(self.answers.next(body))))
        elif path.endswith("/count_tokens"):
            self._reply({"input_tokens": 100})
        elif path.endswith("/messages"):
            self._stream(_messages(self.answers.next(body), body))
        elif path.endswith("/responses"):
            self._stream(_responses(self.answers.next(body)))
        else:
            self.do_GET()

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        pieces = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(pieces)

    def _reply(self, told: dict[str, Any], status: int = 200) -> None:
        content = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _stream(self, events: Iterator[dict[str, Any]], ending: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(ending.encode())
        self.close_connection = True


def _id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def _messages(step: Step, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Anthropic's Messages."""
    usage = {"input_tokens": 1_000, "output_tokens": 20}
    message = {
        "id": _id("msg"),
        "type": "message",
        "role": "assistant",
        "model": request.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield {"type": "message_start", "message": message}
    for index, part in enumerate(step):
        if "text" in part:
            block, delta = (
                {"type": "text", "text": ""},
                {"type": "text_delta", "text": part["text"]},
            )
        else:
            block = {"type": "tool_use", "id": _id("toolu"), "name": part["tool"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if any("tool" in part for part in step) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": usage,
    }
    yield {"type": "message_stop"}


def _responses(step: Step) -> Iterator[dict[str, Any]]:
    """OpenAI's Responses."""
    response = {"id": _id("resp"), "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    items = [_item(part) for part in step]
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {"input_tokens": 1_000, "output_tokens": 20, "total_tokens": 1_020}
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": items, "usage": usage},
    }


def _item(part: Part) -> dict[str, Any]:
    if "text" in part:
        content = [{"type": "output_text", "text": part["text"], "annotations": []}]
        return {
            "type": "message",
            "role": "assistant",
            "id": _id("msg"),
            "content": content,
            "status": "completed",
        }
    given = part["input"]
    if isinstance(given.get("patch"), str):  # a tool that takes a text and no arguments
        return {
            "type": "custom_tool_call",
            "id": _id("ctc"),
            "call_id": _id("call"),
            "name": part["tool"],
            "input": given["patch"],
            "status": "completed",
        }
    return {
        "type": "function_call",
        "id": _id("fc"),
        "call_id": _id("call"),
        "name": part["tool"],
        "arguments": json.dumps(given),
        "status": "completed",
        **({"namespace": part["namespace"]} if "namespace" in part else {}),
    }


def _completions(step: Step) -> Iterator[dict[str, Any]]:
    """OpenAI's chat completions, which all other vendors' programs speak, too."""
    common = {
        "id": _id("chatcmpl"),
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "scripted",
    }
    words = "".join(part["text"] for part in step if "text" in part)
    calls = [
        {
            "index": index,
            "id": _id("call"),
            "type": "function",
            "function": {"name": part["tool"], "arguments": json.dumps(part["input"])},
        }
        for index, part in enumerate(part for part in step if "tool" in part)
    ]
    delta = {
        "role": "assistant",
        "content": words or None,
        **({"tool_calls": calls} if calls else {}),
    }
    yield {**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {
        **common,
        "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}],
    }
    usage = {"prompt_tokens": 1_000, "completion_tokens": 20, "total_tokens": 1_020}
    yield {**common, "choices": [], "usage": usage}


def _contents(step: Step) -> Iterator[dict[str, Any]]:
    """Google's contents, all of them in one piece."""
    parts = [
        {"text": part["text"]}
        if "text" in part
        else {"functionCall": {"name": part["tool"], "args": part["input"]}}
        for part in step
    ]
    usage = {"promptTokenCount": 1_000, "candidatesTokenCount": 20, "totalTokenCount": 1_020}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
