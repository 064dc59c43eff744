"""Reopen a server's memory after database errors.

A server may outlive its database file: it answers with an error and tries again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from smara.core import log
from smara.errors import DatabaseError, SmaraError
from smara.memory import Memory
from smara.tools import Profile, Toolbox, ToolContext, ToolResult
from smara.tools.schemas import action_of
from smara.tools.toolbox import refusal

# These lie with the store; the others (busy, a full disk, a deadline) with the moment.
_BROKEN = ("database", "corrupt", "cannot_open", "read_only", "schema_too_new", "bug")


class _OpenMemory:
    """One open memory, the file it was, and how many calls use it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.users = 0
        self.is_left = False
        self._path = memory.path or ""
        self._file = _identity(self._path)

    @property
    def is_replaced(self) -> bool:
        """True if another file, or none, is where the store was.

        What is written now would be lost.
        """
        return self._file is not None and _identity(self._path) != self._file


class Store:
    """Lends one memory to many calls; safe to use from several threads."""

    def __init__(
        self,
        open_memory: Callable[[], Memory],
        after_call: Callable[[Memory], object] | None = None,
    ) -> None:
        self._open_memory = open_memory
        self._after_call = after_call
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._current: _OpenMemory | None = None

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        """Return the memory, opened when needed.

        Raises what opening raises, at each call.
        """
        with self._borrowed() as opened:
            yield opened.memory

    def call(
        self, name: str, arguments: object, context: ToolContext, profile: Profile = "default"
    ) -> ToolResult:
        """Answer a tool call, whatever state the store is in."""
        try:
            with self._borrowed() as opened:
                outcome = Toolbox(opened.memory, profile=profile).call(name, arguments, context)
                if outcome.structured.get("code") in _BROKEN:
                    self._leave(opened)
                elif self._after_call is not None:
                    try:
                        self._after_call(opened.memory)
                    except Exception as error:  # noqa: BLE001 - the call itself was answered
                        log.warning("server.after_call", error=type(error).__name__)
                return outcome
        except Exception as error:  # noqa: BLE001 - the edge: opening may fail in ways that are not ours
            return refusal(action_of(arguments), error)

    def close(self, session_id: str | None = None) -> None:
        """Close the memory and release the session's claims."""
        opened = self._current
        if opened is None:
            return
        if session_id is not None:
            with suppress(SmaraError):  # its claims expire by themselves
                opened.memory.tasks.end_session(session_id)
        self._leave(opened)

    @contextmanager
    def _borrowed(self) -> Iterator[_OpenMemory]:
        with self._opening:
            opened = self._current
            if opened is not None and opened.is_replaced:
                self._leave(opened)
                opened = None
            if opened is None:
                opened = self._current = _OpenMemory(self._open_memory())
            with self._lock:
                opened.users += 1
        try:
            yield opened
        except DatabaseError as error:
            if error.code in _BROKEN:
                self._leave(opened)
            raise
        finally:
            with self._lock:
                opened.users -= 1
                is_last = opened.is_left and opened.users == 0
            if is_last:
                opened.memory.close()

    def _leave(self, opened: _OpenMemory) -> None:
        """Stop new uses of this memory; its last user closes it."""
        with self._lock:
            if self._current is opened:
                self._current = None
            is_first, opened.is_left = not opened.is_left, True
            is_idle = opened.users == 0
        if is_first and is_idle:
            opened.memory.close()


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
