"""Derive the async face from the synchronous one.

Nothing is written twice: every method of every room runs in a worker thread, so an event
loop is never held up by a disk. Generators become async generators, a page at a time.
The types stand in ``aio.pyi``, which ``python -m tests.async_stub`` writes.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from functools import wraps
from typing import Any

from smara.memory import Memory, Room, open_memory

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
        if isinstance(inspect.getattr_static(Memory, name, None), Room):
            return AsyncRoom(getattr(self._memory, name))
        value = getattr(self._memory, name)
        return derived(value) if callable(value) else value

    async def close(self) -> None:
        """Close the database; safe to call twice."""
        await asyncio.to_thread(self._memory.close)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class OpeningMemory:
    """A memory being opened: await it or use ``async with``."""

    def __init__(self, arguments: tuple[Any, ...], settings: dict[str, Any]) -> None:
        self._arguments = arguments
        self._settings = settings
        self._memory: AsyncMemory | None = None

    async def __aenter__(self) -> AsyncMemory:
        opened = await asyncio.to_thread(open_memory, *self._arguments, **self._settings)
        self._memory = AsyncMemory(opened)
        return self._memory

    def __await__(self) -> Generator[Any, None, AsyncMemory]:
        return self.__aenter__().__await__()

    async def __aexit__(self, *error: object) -> None:
        if self._memory is not None:
            await self._memory.close()


def derived(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the async form of a method.

    A coroutine, or an async generator for a generator.
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
        value = await asyncio.to_thread(method, *args, **kwargs)
        if isinstance(value, Memory):
            return AsyncMemory(value)
        return AsyncRoom(value) if getattr(value, "is_room", False) else value

    return call


def open_async(path_or_url: str | os.PathLike[str] | None = None, **settings: Any) -> OpeningMemory:
    """Open a memory for an async program.

    Args:
        path_or_url: As for :func:`smara.open`.
        **settings: All else that :func:`smara.open` takes.

    Returns:
        What is awaited for the memory, or used as ``async with smara.open_async(…) as memory``.
    """
    return OpeningMemory((path_or_url,), settings)
