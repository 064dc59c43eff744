"""Run work within a deadline.

:func:`run_within` is the one way to wait for something that may take too long: a model that loads,
a server that hangs, a name that is not resolved. The caller gets the result, the error, or
``TimeoutError`` when the time is over, whatever the work does. A thread cannot be killed, so work
that ran out of time is told by its :class:`Abort` and left behind.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar
from weakref import WeakSet

from smara.core import log
from smara.core.clock import Clock, SystemClock

T = TypeVar("T")

CLOSE_SECONDS = 0.5
"""How long a cancelled call may take to close its sockets before it is left behind."""
CALL_THREAD = "smara-model-call"
_AT_EXIT_SECONDS = 1.0
_BEFORE_FORK_SECONDS = 30.0
_unsafe: WeakSet[threading.Thread] = WeakSet()


class Abort(threading.Event):
    """An event that also calls back.

    Setting it takes a call back from any thread.
    """

    def __init__(self) -> None:
        super().__init__()
        self._callbacks: list[Callable[[], object]] = []
        self._guard = threading.Lock()

    def set(self) -> None:
        """Abort; safe to repeat, and before the call has begun."""
        with self._guard:
            super().set()
            for callback in self._callbacks:
                callback()

    @contextmanager
    def calling(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call ``callback`` if the abort is set during the block."""
        with self._guard:
            self._callbacks.append(callback)
            if self.is_set():
                callback()
        try:
            yield
        finally:
            with self._guard:
                self._callbacks.remove(callback)


def run_within(
    work: Callable[[Abort], T],
    seconds: float,
    clock: Clock,
    *,
    thread_name: str,
    abort: Abort | None = None,
    close_seconds: float = 0.0,
    is_safe_to_leave: bool = True,
) -> T:
    """Return what ``work`` returns, or raise what it raises, within a deadline.

    ``work`` runs in a daemon thread of its own, also if no time is left. When the caller stops
    waiting, for whatever reason, the abort that ``work`` was given is set. An error that comes
    later is logged.

    Args:
        work: The work; it is given an abort that tells it to end.
        seconds: How long to wait, by the clock.
        clock: The clock; tests pass one that stands still.
        thread_name: The name of the thread.
        abort: Ends the wait at once when it is set.
        close_seconds: How much longer to wait for work that was told to end.
        is_safe_to_leave: False if the process should not exit, and must not fork, in the middle of
            the work, such as the import of a native library. Both then wait for it a while.

    Raises:
        TimeoutError: The work did not end in time, and may go on.
        InterruptedError: ``abort`` was set, and the work may go on.
    """
    stop, woken = Abort(), threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work(stop))
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: the caller is told
            errors.append(error)
            if stop.is_set() and not isinstance(error, TimeoutError):
                log.warning("deadline.late_error", work=thread_name, error=type(error).__name__)
        finally:
            woken.set()

    thread = threading.Thread(target=run, name=thread_name, daemon=True)
    if not is_safe_to_leave:
        _unsafe.add(thread)
    thread.start()
    try:
        with abort.calling(woken.set) if abort is not None else nullcontext():
            clock.wait_for(woken, max(0.0, seconds))
    finally:
        stop.set()  # also for a KeyboardInterrupt: the caller is gone
    if close_seconds:
        thread.join(close_seconds)
    if results:
        return results[0]
    if abort is not None and abort.is_set() and (not errors or isinstance(errors[0], TimeoutError)):
        raise InterruptedError
    raise errors[0] if errors else TimeoutError


def run_coroutine_within(
    work: Callable[[], Coroutine[Any, Any, T]], seconds: float, abort: Abort | None = None
) -> T:
    """Run a coroutine within a deadline, in its own event loop.

    See :func:`run_within`.

    At the deadline it is cancelled, which closes its sockets; when its result comes, they are
    closed. ``work`` is called in the new thread: what it imports counts against the deadline too.
    """

    def run(stop: Abort) -> T:
        import asyncio

        async def cancellable(coroutine: Coroutine[Any, Any, T]) -> T:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            cancel = task.cancel if task else loop.stop
            try:
                with stop.calling(lambda: loop.call_soon_threadsafe(cancel)):
                    return await coroutine
            finally:
                coroutine.close()

        try:
            return asyncio.run(cancellable(work()))
        except asyncio.CancelledError:
            raise TimeoutError from None

    return run_within(
        run,
        seconds,
        SystemClock(),
        thread_name=CALL_THREAD,
        abort=abort,
        close_seconds=CLOSE_SECONDS,
    )


def _wait_for_unsafe(seconds: float) -> None:
    for thread in list(_unsafe):
        if thread is not threading.current_thread():
            thread.join(seconds)


atexit.register(_wait_for_unsafe, _AT_EXIT_SECONDS)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: _wait_for_unsafe(_BEFORE_FORK_SECONDS))
