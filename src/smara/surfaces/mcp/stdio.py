"""JSON-RPC over standard input and output, a message to a line; nothing else ever gets there.

The SDK's own transport drops a line that it cannot read, and its client waits for ever; it also
drops the answers that are under way when the input ends. Here an unreadable line is mended
where its meaning is clear (half an emoji, cut by a client), refused by name otherwise, and
answers under way are given before leaving.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from smara.tools.shapes import encodable

MOST_LINE_BYTES = 8 * 1024 * 1024
_CHUNK = 65_536
_LAST_ANSWERS_SECONDS = 5.0
_ID = r'"id"\s*:\s*("(?:[^"\\]|\\.){0,200}"|-?\d{1,18})'
_ID_FIRST = re.compile(rf'\s*\{{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?{_ID}')
_ID_LAST = re.compile(rf"{_ID}\s*\}}\s*\Z")

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The streams of a server on standard input and output; they end with the input.

    From here on file descriptor 1 leads to standard error, so that a stray ``print``, of
    ours or of a library, cannot get between the messages.
    """
    wire = _Wire(*_take_over())
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.receive, to_server, to_client.clone())
        tasks.start_soon(wire.send, from_server, tasks.cancel_scope)
        yield from_client, to_client
        # The server has closed its end; what it wrote last is still on its way.


class _Wire:
    """The two ends of the pipe, and the requests that have no answer yet."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._unanswered: set[str | int] = set()
        self._all_answered = anyio.Event()
        self._is_ended = False

    async def receive(
        self, to_server: MemoryObjectSendStream[SessionMessage | Exception], to_client: Outgoing
    ) -> None:
        async with to_server, to_client:
            async for line in _lines(self._read_fd):
                message = read_line(line)
                if isinstance(message, types.JSONRPCError):
                    await to_client.send(SessionMessage(message))
                elif message is not None:
                    if isinstance(message, types.JSONRPCRequest):
                        self._unanswered.add(message.id)
                    await to_server.send(SessionMessage(message))
            self._is_ended = True
            if self._unanswered:
                with anyio.move_on_after(_LAST_ANSWERS_SECONDS):
                    await self._all_answered.wait()

    async def send(
        self, from_server: MemoryObjectReceiveStream[SessionMessage], scope: anyio.CancelScope
    ) -> None:
        async with from_server:
            async for each in from_server:
                data = (
                    each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                )
                try:
                    await anyio.to_thread.run_sync(_write_all, self._write_fd, data)
                except OSError:  # nobody reads any more
                    scope.cancel()
                    return
                if isinstance(each.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._unanswered.discard(each.message.id)
                    if self._is_ended and not self._unanswered:
                        self._all_answered.set()


def read_line(line: bytes) -> types.JSONRPCMessage | None:
    """The message on a line; an error to send back when there is none; ``None`` for a blank
    line.
    """
    if not line.strip():
        return None
    if len(line) > MOST_LINE_BYTES:
        return _refused(
            line, types.INVALID_REQUEST, f"The message is longer than {MOST_LINE_BYTES:,} bytes."
        )
    text = line.decode("utf-8", "replace")
    try:
        return types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        pass
    try:
        return types.jsonrpc_message_adapter.validate_python(
            encodable(json.loads(text)), by_name=False
        )
    except json.JSONDecodeError as error:
        return _refused(
            line,
            types.PARSE_ERROR,
            f"The message is not JSON: {error.msg} at character {error.pos}.",
        )
    except RecursionError:
        return _refused(line, types.PARSE_ERROR, "The message is nested too deeply.")
    except ValueError:
        return _refused(
            line,
            types.INVALID_REQUEST,
            "The message is not a JSON-RPC 2.0 request or notification.",
        )


def _refused(line: bytes, code: int, why: str) -> types.JSONRPCError:
    return types.JSONRPCError(
        jsonrpc="2.0", id=_id_in(line), error=types.ErrorData(code=code, message=why)
    )


def _id_in(line: bytes) -> Any:
    """The id of a request that cannot be read, if it stands first or last, where every client puts
    it.
    """
    text = line[:1_000].decode("utf-8", "replace"), line[-1_000:].decode("utf-8", "replace")
    found = _ID_FIRST.match(text[0]) or _ID_LAST.search(text[1])
    try:
        return json.loads(found[1]) if found else None
    except ValueError:
        return None


async def _lines(fd: int) -> AsyncIterator[bytes]:
    """The lines of a pipe. A thread of its own waits for them, which no exit has to wait for."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | None] = asyncio.Queue()

    def deliver(line: bytes | None) -> None:
        try:
            loop.call_soon_threadsafe(queue.put_nowait, line)
        except RuntimeError:
            pass  # the loop has ended: nobody is left to read this

    threading.Thread(target=_pump, args=(fd, deliver), name="smara-mcp-input", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def _pump(fd: int, deliver: Callable[[bytes | None], None]) -> None:
    pending = bytearray()
    while True:
        try:
            chunk = os.read(fd, _CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            if pending.strip():
                deliver(bytes(pending))
            deliver(None)
            return
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            deliver(bytes(pending + line))
            pending.clear()
        # Of a line that is refused for its length only so much is kept as tells whose it was.
        pending += rest if len(pending) <= MOST_LINE_BYTES else b""


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _take_over() -> tuple[int, int]:
    """Private descriptors for the pipe; 0 and 1 now lead nowhere and to standard error."""
    sys.stdout.flush()
    read_fd, write_fd = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nowhere, 1)
    os.close(nowhere)
    if sys.platform == "win32":
        import msvcrt

        for fd in (read_fd, write_fd):
            msvcrt.setmode(fd, os.O_BINARY)
    return read_fd, write_fd
