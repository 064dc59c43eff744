"""A scripted model server on loopback, in the wire formats of Anthropic, OpenAI and Google.

``with scripted_server([ok("Fine."), status(429, retry_after=3), hang()]) as server:`` serves one
step per request and repeats the last one. The format follows from the path that the client asks
for. ``server.requests`` holds what was asked, ``server.model("openai")`` the string that names the
model. Nothing waits on a clock: what hangs, hangs until the server is closed.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from tests import vendor_rules

Wire = Literal["anthropic", "openai", "google", "ollama"]
WIRES: tuple[Wire, ...] = ("anthropic", "openai", "google")
LOOP_TOKENS = 300_000
KEYS = {
    "ANTHROPIC_API_KEY": "key-of-anthropic",
    "OPENAI_API_KEY": "key-of-openai",
    "GOOGLE_API_KEY": "key-of-google",
}
"""What the vendors' packages want to see before they ask anybody; put by the fixture
``vendor_keys``.
"""


def warm_up() -> None:
    """Load what a call needs: seconds that would otherwise count against the deadline of the first
    one.
    """
    import pydantic_ai.direct
    import pydantic_ai.models.anthropic
    import pydantic_ai.models.google
    import pydantic_ai.providers.openai_compatible  # noqa: F401


@dataclass(frozen=True)
class Step:
    """What the server does with one request."""

    text: str | None = "Fine."
    finish: Literal["stop", "length", "refusal"] = "stop"
    input_tokens: int | None = None
    output_tokens: int | None = None
    has_usage: bool = True
    status: int = 200
    error: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    reply: Callable[[Asked], Any] | None = None
    trouble: Literal["", "hang", "drip", "reset", "cut"] = ""
    is_strict: bool = False


def ok(
    text: str = "Fine.", input_tokens: int | None = None, output_tokens: int | None = None
) -> Step:
    """A reply. Without numbers, a token is counted for every four characters."""
    return Step(text, input_tokens=input_tokens, output_tokens=output_tokens)


def echo() -> Step:
    """The prompt, said back."""
    return Step(None)


def empty() -> Step:
    """A reply that says nothing."""
    return Step("", output_tokens=0)


def truncated(text: str = "The user asked for") -> Step:
    """A reply that ran into its limit."""
    return Step(text, "length")


def refusal(text: str = "I cannot help with that.") -> Step:
    """The model will not."""
    return Step(text, "refusal")


def loop(line: str = "- The user said hello again.\n") -> Step:
    """A model that repeats itself for 300,000 tokens, whatever its limit was."""
    return Step(line * (LOOP_TOKENS * 4 // len(line)), output_tokens=LOOP_TOKENS)


def without_usage(text: str = "Fine.") -> Step:
    """A reply that does not say what it cost, as some local servers send it."""
    return Step(text, has_usage=False)


def status(code: int, error: str = "", retry_after: float | str | None = None) -> Step:
    """An error; ``error`` is the vendor's own word for it."""
    return Step(
        status=code,
        error=error,
        headers={} if retry_after is None else {"Retry-After": str(retry_after)},
    )


def quota() -> Step:
    """The account is empty: OpenAI says so with a 429, Anthropic with a 400, Google with a 402 of a
    proxy.
    """
    return Step(status=429, error="insufficient_quota")


def garbage(body: bytes = b'{"id": "x", "choices": [') -> Step:
    """A 200 whose body nobody can read."""
    return Step(body=body)


def computed(reply: Callable[[Asked], Any]) -> Step:
    """A reply in any format, as JSON, that follows from what was asked."""
    return Step(reply=reply)


def strict(text: str = "Fine.") -> Step:
    """A reply, or the error with which the vendor refuses such a conversation."""
    return Step(text, is_strict=True)


def hang() -> Step:
    """No answer, ever."""
    return Step(trouble="hang")


def drip() -> Step:
    """Headers at once, then a body that never ends: every single read succeeds, the whole never
    does.
    """
    return Step(trouble="drip")


def reset() -> Step:
    """The connection is reset when the question has been read."""
    return Step(trouble="reset")


def cut() -> Step:
    """The connection ends in the middle of a body."""
    return Step(trouble="cut")


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    wire: Wire
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """Everything that was said to the model."""
        return "\n".join(_texts(self.body))

    @property
    def prompt(self) -> str:
        """The last thing that was said to the model."""
        turns = self.body.get("messages") or self.body.get("contents") or []
        return "\n".join(_texts(turns[-1:]))


class ModelServer(ThreadingHTTPServer):
    """The server; see :func:`scripted_server`."""

    daemon_threads = True

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Asked] = []
        self.closing = threading.Event()
        self.asked = threading.Event()
        self.connections = 0
        self._steps = list(steps)
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def model(
        self, wire: Wire | Literal["openai-compatible", "ollama"], name: str = "model-1"
    ) -> str:
        """The string that names a model of this server, as the setting ``model`` wants it."""
        path = "" if wire in ("anthropic", "google") else "/v1"
        return f"{wire}:{self.url}{path}#{name}"

    def next_step(self, asked: Asked) -> Step:
        with self._lock:
            self.requests.append(asked)
            return self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]

    def count(self, change: int) -> None:
        with self._ended:
            self.connections += change
            self._ended.notify_all()

    def wait_until_left(self, seconds: float = 600.0) -> bool:
        """Whether every client has hung up, waiting for it."""
        with self._ended:
            return self._ended.wait_for(lambda: self.connections == 0, seconds)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the game."""


@contextmanager
def scripted_server(steps: Sequence[Step] | Step) -> Iterator[ModelServer]:
    """A server that takes these steps, one per request, the last one again and again."""
    server = ModelServer([steps] if isinstance(steps, Step) else steps)
    thread = threading.Thread(
        target=server.serve_forever, args=(0.01,), name="model-server", daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def setup(self) -> None:
        super().setup()
        self.server.count(+1)

    def finish(self) -> None:
        try:
            super().finish()
        finally:
            self.connection.close()
            self.server.count(-1)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        asked = Asked(
            _wire_of(self.path),
            self.path,
            {k.lower(): v for k, v in self.headers.items()},
            body=body,
        )
        step = self.server.next_step(asked)
        self.server.asked.set()
        if step.trouble:
            getattr(self, f"_{step.trouble}")()
            self.close_connection = True
            return
        code, content = _content(step, asked)
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **step.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _hang(self) -> None:
        self._until_left()

    def _drip(self) -> None:
        self._begin(10**9)
        while not self.server.closing.wait(0.02):
            self.wfile.write(b" ")
            self.wfile.flush()

    def _cut(self) -> None:
        self._begin(10_000)
        self.wfile.write(b'{"id": "x", ')

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def _until_left(self) -> None:
        """Wait until the client hangs up or the server is closed."""
        self.connection.settimeout(0.02)
        while not self.server.closing.is_set():
            try:
                if not self.connection.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return


def _wire_of(path: str) -> Wire:
    if path.endswith("/messages") or "/messages?" in path:
        return "anthropic"
    if path.endswith("/api/chat"):
        return "ollama"
    return "google" if ":generateContent" in path else "openai"


def _content(step: Step, asked: Asked) -> tuple[int, bytes]:
    if step.is_strict and (reason := vendor_rules.refusal(asked.path, asked.body)):
        return _answer(Step(status=400, error=reason), asked)
    if step.is_strict and asked.path.endswith("/responses"):
        return 200, json.dumps(_response(step, asked)).encode()
    if step.reply is not None:
        return step.status, json.dumps(step.reply(asked)).encode()
    return (step.status, step.body) if step.body is not None else _answer(step, asked)


def _answer(step: Step, asked: Asked) -> tuple[int, bytes]:
    content = (
        _ERRORS[asked.wire](step)
        if step.status >= 400
        else (200, _REPLIES[asked.wire](step, asked))
    )
    return content[0], json.dumps(content[1]).encode()


def _usage(step: Step, asked: Asked) -> tuple[int, int]:
    text = asked.prompt if step.text is None else step.text
    given = (step.input_tokens, step.output_tokens)
    counted = (len(asked.text) // 4 + 1, len(text) // 4 + 1)
    return (
        given[0] if given[0] is not None else counted[0],
        given[1] if given[1] is not None else counted[1],
    )


def _anthropic(step: Step, asked: Asked) -> dict[str, Any]:
    text = asked.prompt if step.text is None else step.text
    reasons = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}
    read, written = _usage(step, asked) if step.has_usage else (0, 0)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.body.get("model"),
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": reasons[step.finish],
        "stop_sequence": None,
        "usage": {"input_tokens": read, "output_tokens": written},
    }


def _openai(step: Step, asked: Asked) -> dict[str, Any]:
    text = asked.prompt if step.text is None else step.text
    reasons = {"stop": "stop", "length": "length", "refusal": "stop"}
    message = {"role": "assistant", "content": text, "refusal": None}
    if step.finish == "refusal":
        message = {"role": "assistant", "content": None, "refusal": text}
    reply = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": asked.body.get("model"),
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": reasons[step.finish],
                "logprobs": None,
            }
        ],
    }
    if step.has_usage:
        read, written = _usage(step, asked)
        reply["usage"] = {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }
    return reply


def _response(step: Step, asked: Asked) -> dict[str, Any]:
    text = {"type": "output_text", "text": step.text, "annotations": []}
    message = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000,
        "model": asked.body.get("model"),
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed",
    }


def _google(step: Step, asked: Asked) -> dict[str, Any]:
    text = asked.prompt if step.text is None else step.text
    reasons = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
    parts = [] if step.finish == "refusal" or not text else [{"text": text}]
    reply: dict[str, Any] = {
        "candidates": [
            {"content": {"role": "model", "parts": parts}, "finishReason": reasons[step.finish]}
        ],
        "modelVersion": "model-1",
        "responseId": "r1",
    }
    if step.has_usage:
        read, written = _usage(step, asked)
        reply["usageMetadata"] = {
            "promptTokenCount": read,
            "candidatesTokenCount": written,
            "totalTokenCount": read + written,
        }
    return reply


_ANTHROPIC_KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error",
    403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error",
    529: "overloaded_error",
}  # fmt: skip
_GOOGLE_KINDS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
}  # fmt: skip


def _anthropic_error(step: Step) -> tuple[int, dict[str, Any]]:
    if step.error == "insufficient_quota":
        message = "Your credit balance is too low to access the Anthropic API."
        return 400, {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": message},
        }
    kind = _ANTHROPIC_KINDS.get(step.status, "api_error")
    return step.status, {"type": "error", "error": {"type": kind, "message": step.error or kind}}


def _openai_error(step: Step) -> tuple[int, dict[str, Any]]:
    code = step.error or None
    return step.status, {
        "error": {"message": step.error or "trouble", "type": code or "error", "code": code}
    }


def _google_error(step: Step) -> tuple[int, dict[str, Any]]:
    code = 402 if step.error == "insufficient_quota" else step.status
    kind = _GOOGLE_KINDS.get(code, "INTERNAL")
    return code, {"error": {"code": code, "message": step.error or "trouble", "status": kind}}


def _ollama(step: Step, asked: Asked) -> dict[str, Any]:
    text = asked.prompt if step.text is None else step.text
    read, written = _usage(step, asked)
    return {
        "model": asked.body.get("model"),
        "message": {"role": "assistant", "content": text},
        "done": True,
        "done_reason": "length" if step.finish == "length" else "stop",
        **({"prompt_eval_count": read, "eval_count": written} if step.has_usage else {}),
    }


def _ollama_error(step: Step) -> tuple[int, dict[str, Any]]:
    return step.status, {"error": step.error or "trouble"}


_REPLIES = {"anthropic": _anthropic, "openai": _openai, "google": _google, "ollama": _ollama}
_ERRORS = {
    "anthropic": _anthropic_error,
    "openai": _openai_error,
    "google": _google_error,
    "ollama": _ollama_error,
}


def _texts(value: Any) -> Iterator[str]:
    """Every text of a question, wherever its format puts it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for name in (
            "system",
            "systemInstruction",
            "messages",
            "contents",
            "parts",
            "content",
            "text",
        ):
            yield from _texts(value.get(name))
