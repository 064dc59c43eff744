"""Fakes for tests, ours and yours.

A clock that stands still, ids that count, a model with a script, a store that vanishes.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smara.errors import ModelAbortedError
from smara.memory import Memory, open_memory
from smara.models.chat import Abort, ChatReply, ChatRequest, Usage
from smara.models.failures import timed_out


class FakeClock:
    """A clock that moves only when told to."""

    def __init__(self, now_ms: int = 1_760_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_ms += int(seconds * 1000)
        self._monotonic += seconds

    def wait(self, seconds: float, until: threading.Event | None = None) -> None:
        """Nobody waits for real: the clock is advanced at once."""
        if until is None or not until.is_set():
            self.advance(seconds)

    def set(self, now_ms: int) -> None:
        """Set the time of day, also backwards, as a user or a time server may."""
        self._now_ms = now_ms


class CountingIds:
    """Ids that are easy to read in a test: ``id-000001``, ``id-000002`` …"""

    def __init__(self, prefix: str = "id") -> None:
        self._prefix = prefix
        self._last = 0

    def __call__(self) -> str:
        self._last += 1
        return f"{self._prefix}-{self._last:06d}"


@dataclass(frozen=True)
class Slow:
    """A step of a :class:`ScriptedModel` that takes its time, by the clock the model was given."""

    seconds: float
    then: ChatReply | BaseException | str = "Fine."


Step = ChatReply | BaseException | str | Slow | Callable[[ChatRequest], "ChatReply | str"]


class ScriptedModel:
    """A chat model that answers what it was told to, and remembers what it was asked.

    ``ScriptedModel(["one", ModelUnavailableError("…"), Slow(90, "late")], clock=clock)`` takes one step
    per request and repeats the last one. A step is a text, a reply, an error to raise, a function of the
    request, or :class:`Slow`, which lets the clock pass: up to the deadline of the request, where it fails as
    a model does that did not answer in time. Tokens that a text does not state are counted as one for four letters.
    """

    def __init__(
        self, steps: Sequence[Step] | str = "Fine.", name: str = "scripted", clock: FakeClock | None = None
    ) -> None:
        self._steps: list[Any] = [steps] if isinstance(steps, str) else list(steps)
        self._clock = clock
        self._lock = threading.Lock()
        self.name = name
        self.requests: list[ChatRequest] = []

    def complete(self, request: ChatRequest, abort: Abort | None = None) -> ChatReply:
        with self._lock:
            self.requests.append(request)
            step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if abort is not None and abort.is_set():
            raise ModelAbortedError("The call was taken back. Nothing was changed.", may_be_billed=False)
        if isinstance(step, Slow):
            step = self._waited(step, request)
        if callable(step):
            step = step(request)
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, ChatReply):
            return step
        asked = len(request.system) + len(request.prompt)
        return ChatReply(step, Usage(asked // 4 + 1, len(step) // 4 + 1), "stop", self.name)

    def _waited(self, step: Slow, request: ChatRequest) -> Any:
        if self._clock is None:
            raise ValueError("a slow step needs the clock that it is slow by: ScriptedModel(…, clock=clock)")
        deadline = request.deadline_seconds if request.deadline_seconds is not None else step.seconds
        self._clock.advance(min(step.seconds, deadline))
        return step.then if step.seconds <= deadline else timed_out(self.name, deadline, may_be_billed=True)


@contextmanager
def open_temporary(**settings: Any) -> Iterator[Memory]:
    """A memory in a temporary folder, removed with everything in it at the end."""
    folder = tempfile.mkdtemp(prefix="smara-")
    try:
        with open_memory(Path(folder) / "smara.db", **settings) as memory:
            yield memory
    finally:
        shutil.rmtree(folder, ignore_errors=True)
