"""The async face, derived from the synchronous one.

Nothing is written twice: every method of every room runs in a worker thread, so an event
loop is never held up by a disk. Generators become async generators, a page at a time.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from types import TracebackType
from typing import Any

from smara.memory import Memory, open_memory

_END = object()


class AsyncRoom:
    """A room whose methods are awaited."""

    def __init__(self, room: Any) -> None:
        self._room = room

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._room, name)
        return derived(value) if callable(value) else value


class AsyncMemory:
    """A memory for async programs: ``await memory.messages.add(…)``, ``await memory.search(…)``."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._memory, name)
        if inspect.ismethod(value):
            return derived(value)
        return AsyncRoom(value) if type(value).__module__.startswith("smara.") else value

    async def close(self) -> None:
        """Close the database."""
        await asyncio.to_thread(self._memory.close)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def derived(method: Callable[..., Any]) -> Callable[..., Any]:
    """The async form of a method: an async generator for a generator, a coroutine for anything
    else.
    """
    if inspect.isgeneratorfunction(method):

        @wraps(method)
        async def stream(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            iterator: Iterator[Any] = method(*args, **kwargs)
            while (item := await asyncio.to_thread(next, iterator, _END)) is not _END:
                yield item

        return stream

    @wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(method, *args, **kwargs)

    return call


async def open_async(
    path_or_url: str | os.PathLike[str] | None = None, **settings: Any
) -> AsyncMemory:
    """Open a memory for an async program; takes what :func:`smara.open` takes."""
    return AsyncMemory(await asyncio.to_thread(open_memory, path_or_url, **settings))
