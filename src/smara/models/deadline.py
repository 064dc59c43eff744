"""Run a coroutine within a deadline for a synchronous caller.

The coroutine has its own thread and event loop. At the deadline, or when the caller aborts, it is
cancelled, which closes its sockets. Work that cannot be cancelled, such as a silent name server, is
left behind; its thread ends when the work returns.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import Any, Generic, TypeVar

from smara.models.chat import Abort

T = TypeVar("T")

THREAD_NAME = "smara-model-call"
TO_CLOSE_SECONDS = 0.5
"""How long a cancelled call may take to close its sockets before it is left behind."""


def run_within(
    work: Callable[[], Coroutine[Any, Any, T]], seconds: float, abort: Abort | None = None
) -> T:
    """The result of ``work()``; ``TimeoutError`` at the deadline, ``InterruptedError`` when
    aborted.

    ``work`` is called in the new thread, so that what it imports counts against the deadline too.
    """
    call = _DeadlineThread(work, time.monotonic() + seconds)
    call.start()
    try:
        with abort.calling(call.take_back) if abort else nullcontext():
            call.woken.wait(seconds)
            call.join(TO_CLOSE_SECONDS)
    finally:
        call.take_back()  # also for a KeyboardInterrupt: nobody waits for this call any more
    if call.error is not None:
        raise call.error
    if call.results:
        return call.results[0]
    raise InterruptedError if abort is not None and abort.is_set() else TimeoutError


class _DeadlineThread(threading.Thread, Generic[T]):
    """One call. Its result is told when its loop is closed: who has it may count on closed
    sockets.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], ends_at: float) -> None:
        super().__init__(name=THREAD_NAME, daemon=True)
        self.woken = threading.Event()
        self.results: list[T] = []
        self.error: BaseException | None = None
        self._work = work
        self._ends_at = ends_at
        self._abort = Abort()

    def take_back(self) -> None:
        self._abort.set()
        self.woken.set()

    def run(self) -> None:
        try:
            self.results.append(asyncio.run(self._bounded(self._work())))
        except asyncio.CancelledError:
            self.error = InterruptedError()
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: whatever it is, the caller is told
            self.error = error
        finally:
            self.woken.set()

    async def _bounded(self, coroutine: Coroutine[Any, Any, T]) -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        cancel = task.cancel if task else loop.stop
        try:
            with self._abort.calling(lambda: loop.call_soon_threadsafe(cancel)):
                async with asyncio.timeout(self._ends_at - time.monotonic()):
                    return await coroutine
        finally:
            coroutine.close()
