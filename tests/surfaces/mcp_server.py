"""Ways to talk to ``smara mcp``: the official client, in this process or not, and bare lines of the
protocol.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import anyio
from mcp import Client, StdioServerParameters

import smara
from smara.surfaces.http.store import Store
from smara.surfaces.mcp.server import build_server
from smara.tools import ToolContext
from tests.surfaces.shell import DEADLINE_SECONDS, command, environment

T = TypeVar("T")
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
NEW = "2026-07-28"


def over_stdio(
    ask: Callable[[Client], Awaitable[T]],
    *arguments: str,
    mode: str = "auto",
    env: Mapping[str, str] | None = None,
) -> T:
    """What ``ask`` finds out from a server on standard input and output, by the official client."""
    words = command("mcp", *arguments)
    server = StdioServerParameters(command=words[0], args=words[1:], env=environment(**(env or {})))

    async def talk() -> T:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with Client(server, mode=mode) as client:
                return await ask(client)

    return anyio.run(talk)


def in_process(ask: Callable[[Client], Awaitable[T]], db: str, **context: str) -> T:
    """The same from a server in this process: for what it answers, whatever carries it."""
    store = Store(partial(smara.open, db))

    async def talk() -> T:
        with anyio.fail_after(DEADLINE_SECONDS):
            async with Client(build_server(store, ToolContext(**context))) as client:
                return await ask(client)

    try:
        return anyio.run(talk)
    finally:
        store.close()


class Lines:
    """A server and the lines it writes; every one must be JSON-RPC."""

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command("mcp", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**(env or {})),
        )
        # A server that does not answer must fail the test, not hang it.
        self._watch = threading.Timer(DEADLINE_SECONDS, self.process.kill)
        self._watch.start()
        self._last = 0

    def send(self, message: Mapping[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next line, as the message it must be."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), f"no answer: {line!r}"
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a request, result or error."""
        self._last += 1
        self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}})
        message = self.read()
        assert message["id"] == self._last
        return message

    def begin(self, version: str = "2025-06-18") -> dict[str, Any]:
        """The handshake of the older protocols."""
        result: dict[str, Any] = self.ask("initialize", {**INITIALIZE, "protocolVersion": version})[
            "result"
        ]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("tools/call", {"name": tool, "arguments": arguments})[
            "result"
        ]
        return result

    def end(self) -> tuple[int, bytes, bytes]:
        """Close its input; how it leaves, and what it still had to say."""
        out, err = self.process.communicate(timeout=DEADLINE_SECONDS)
        return self.process.returncode, out, err

    def stop(self, number: signal.Signals) -> tuple[int, bytes, bytes]:
        """Send a signal while its input is open; how it leaves."""
        self.process.send_signal(number)
        code = self.process.wait(DEADLINE_SECONDS)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return code, self.process.stdout.read(), self.process.stderr.read()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.cancel()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()


@contextmanager
def http_server(
    *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str, subprocess.Popen[str]]]:
    """A server on a free loopback port: its address, its token (empty when given), and the
    process.
    """
    process = subprocess.Popen(
        command("mcp", "--http", "127.0.0.1:0", *arguments),
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**(env or {})),
    )
    watch = threading.Timer(DEADLINE_SECONDS, process.kill)
    watch.start()
    try:
        assert process.stderr is not None
        url = re.search(r"http://\S+", process.stderr.readline())
        assert url is not None, process.stderr.read()
        is_told = "--token" not in arguments and "SMARA_MCP_TOKEN" not in (env or {})
        token = process.stderr.readline().removeprefix("token: ").strip() if is_told else ""
        yield url[0], token, process
    finally:
        watch.cancel()
        process.terminate()
        process.communicate(timeout=DEADLINE_SECONDS)
