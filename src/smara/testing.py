"""Fakes for tests, ours and yours.

A clock that stands still, ids that count, a model with a script, a store that vanishes.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smara.config import Settings
from smara.core.deadline import Abort
from smara.core.startup.record import dataclass
from smara.database.migrate import migrate
from smara.errors import ModelAbortedError
from smara.memory import Memory, open_database, open_memory
from smara.models.chat import ChatReply, ChatRequest, Usage
from smara.models.embedder import Kind, unit_rows
from smara.models.failures import timed_out

if TYPE_CHECKING:
    from smara.models.embedder import Vectors

_LOOK_SECONDS = 0.001
"""How often a thread that waits for an event looks whether the clock was advanced."""


class FakeClock:
    """A clock that moves only when told to.

    Waiting for time to pass (``wait``) makes it pass at once. Waiting for an event (``wait_for``)
    really waits: until it comes, or until a test has advanced the clock far enough. A test of a
    deadline lets a thread wait, asks :meth:`awaited` whether it does, and advances the clock up to
    the deadline.
    """

    def __init__(self, now_ms: int = 1_760_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic = 0.0
        self._waiting = 0
        self._changed = threading.Condition()

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._changed:
            self._now_ms += int(seconds * 1000)
            self._monotonic += seconds

    def wait(self, seconds: float, until: threading.Event | None = None) -> None:
        """Advance the clock at once instead of waiting."""
        if until is None or not until.is_set():
            self.advance(seconds)

    def wait_for(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event, or the clock advances by so much."""
        ends_at = self._monotonic + seconds
        self._count(+1)
        try:
            while self._monotonic < ends_at and not event.wait(_LOOK_SECONDS):
                pass
        finally:
            self._count(-1)
        return event.is_set()

    def awaited(self, threads: int = 1, timeout_seconds: float = 30.0) -> bool:
        """Return True if so many threads wait on this clock."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting >= threads, timeout_seconds)

    def _count(self, change: int) -> None:
        with self._changed:
            self._waiting += change
            self._changed.notify_all()

    def set(self, now_ms: int) -> None:
        """Set the time of day, also backwards."""
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
    """A slow step of a :class:`ScriptedModel`, by its clock."""

    seconds: float
    then: ChatReply | BaseException | str = "Fine."


Step = ChatReply | BaseException | str | Slow | Callable[[ChatRequest], "ChatReply | str"]


class ScriptedModel:
    """A chat model with scripted replies that records its requests.

    ``ScriptedModel(["one", ModelUnavailableError("…"), Slow(90, "late")], clock=clock)`` takes one
    step per request and repeats the last one. A step is a text, a reply, an error to raise, a
    function of the request, or :class:`Slow`, which lets the clock pass: up to the deadline of the
    request, where it fails as a model does that did not answer in time. Tokens that a text does not
    state are counted as one for four letters.
    """

    def __init__(
        self,
        steps: Sequence[Step] | str = "Fine.",
        name: str = "scripted",
        clock: FakeClock | None = None,
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
            raise ModelAbortedError(
                "The call was taken back. Nothing was changed.", may_be_billed=False
            )
        if isinstance(step, Slow):
            if self._clock is None:
                raise ValueError(
                    "a slow step needs the clock that it is slow by: ScriptedModel(…, clock=clock)"
                )
            deadline = (
                request.deadline_seconds if request.deadline_seconds is not None else step.seconds
            )
            self._clock.advance(min(step.seconds, deadline))
            step = (
                step.then
                if step.seconds <= deadline
                else timed_out(self.name, deadline, may_be_billed=True)
            )
        if callable(step):
            step = step(request)
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, ChatReply):
            return step
        size = len(request.system) + len(request.prompt)
        return ChatReply(step, Usage(size // 4 + 1, len(step) // 4 + 1), "stop", model=self.name)


class HashEmbedder:
    """An embedder of word hashes: reproducible, nothing to load.

    Texts that share words are close, in the share of them that they have in common; no word is
    close to another. ``HashEmbedder(dims=64, model_id="other")`` is another space. ``asked``
    remembers the texts, ``error`` is raised in the place of an answer while it is set.
    """

    def __init__(
        self, dims: int = 64, model_id: str | None = None, first_dims: int | None = None
    ) -> None:
        self.dims = dims
        self.model_id = model_id or f"hash-{dims}"
        self.first_dims = first_dims or dims
        self.is_local = True
        self.asked: list[tuple[str, str]] = []
        self.error: BaseException | None = None

    def embed(
        self,
        texts: Sequence[str],
        kind: Kind = "document",
        *,
        deadline_seconds: float | None = None,
    ) -> Vectors:
        import numpy as np

        self.asked += [(kind, text) for text in texts]
        if self.error is not None:
            raise self.error
        rows = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                # A shake of the word is a stream of bytes of any length; centered, they make a
                # random direction.
                name = f"{self.model_id}\0{word}".encode("utf-8", "replace")
                stream = np.frombuffer(hashlib.shake_128(name).digest(self.dims), dtype=np.uint8)
                row += stream.astype(np.float32) - np.float32(127.5)
        return unit_rows(rows)


class WordReranker:
    """A reranker by the share of the query's words.

    ``asked`` remembers the queries with their texts; ``error`` is raised in the place of an answer
    while it is set, and ``scores``, when they are set, are given back whatever was asked.
    """

    name = "words"
    is_local = True

    def __init__(self, scores: Sequence[float] | None = None) -> None:
        self.scores = scores
        self.asked: list[tuple[str, list[str]]] = []
        self.error: BaseException | None = None

    def rerank(self, query: str, texts: Sequence[str], *, deadline_seconds: float) -> list[float]:
        self.asked.append((query, list(texts)))
        if self.error is not None:
            raise self.error
        if self.scores is not None:
            return list(self.scores)
        words = set(re.findall(r"\w+", query.lower()))
        return [
            len(words & set(re.findall(r"\w+", text.lower()))) / max(1, len(words))
            for text in texts
        ]


@contextmanager
def open_temporary(**settings: Any) -> Iterator[Memory]:
    """Open a memory in a temporary folder, removed at the end."""
    folder = tempfile.mkdtemp(prefix="smara-")
    try:
        path = Path(folder) / "smara.db"
        path.write_bytes(empty_store())
        with open_memory(path, **settings) as memory:
            yield memory
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def empty_store() -> bytes:
    """Return the file of an empty store, migrated once."""
    with tempfile.TemporaryDirectory(prefix="smara-") as folder:
        path = Path(folder) / "smara.db"
        database = open_database(Settings(db=str(path), durability="normal"))
        migrate(database, FakeClock())
        database.close()
        return path.read_bytes()
