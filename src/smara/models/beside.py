"""Work that is waited for no longer than a deadline, whatever it waits for itself: a server, a
lock, a busy store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from smara.core.clock import Clock

T = TypeVar("T")


def wait_for(work: Callable[[], T], seconds: float, clock: Clock, thread_name: str) -> T:
    """What ``work`` gives, or its error; ``TimeoutError`` when it takes longer, and then it is left
    behind.
    """
    ended = threading.Event()
    found: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001 - the edge of a thread: whatever it is, the caller is told
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, name=thread_name, daemon=True).start()
    if not clock.wait_for(ended, seconds):
        raise TimeoutError
    if errors:
        raise errors[0]
    return found[0]
