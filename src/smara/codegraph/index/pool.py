"""Run file work in worker processes that end with their parent.

Workers are started by a command and not forked: a fork would copy the locks of the parent's
threads. A small tree is worked on in the process itself.
"""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Container, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, NamedTuple, cast

from smara.codegraph.index.files import TreeReader
from smara.codegraph.index.index_file import ChunkKey, FileRecord, FileRequest, work_on
from smara.codegraph.models import FileFacts

WORKERS = 2
SMALL = 120
"""So many files are done sooner than two processes are started."""
_FILES_AT_ONCE = 12
_JOINED_AT_ONCE = 40
_AHEAD = 3
_SILENCE_SECONDS = 300
_ALONE_SECONDS = 60
_MOST_KEPT = 300_000
"""Definitions and uses that a worker keeps as they are, about 50 MB; of further files it keeps the
packed form.
"""
_LENGTH = struct.Struct("<I")
_COMMAND = (
    "import sys; sys.path[:] = {path!r}; from smara.codegraph.index.pool import serve; serve()"
)

Answers = SimpleQueue["tuple[_Worker, Any]"]


def work_inline(
    root: str,
    requests: Sequence[FileRequest],
    has_text: bool = True,
    stored: Container[ChunkKey] = frozenset(),
) -> Iterator[FileRecord]:
    """Work on files in this process; see :func:`smara.codegraph.index.index_file.work_on`."""
    reader = TreeReader(root)
    return (work_on(reader, each, has_text, stored=stored) for each in requests)


class WorkerFailure(NamedTuple):
    """A bug that a worker met, as its traceback tells it."""

    traceback: str


class Pool:
    """Some worker processes. A context manager.

    They are gone when it is left, however that happens.
    """

    def __init__(self, root: str, has_text: bool = True, count: int = WORKERS) -> None:
        self._root, self._has_text, self._count = root, has_text, count
        self._answers: Answers = SimpleQueue()
        self._workers: list[_Worker] = []
        self._has_read: dict[str, _Worker] = {}

    def __enter__(self) -> Pool:
        self._workers = [
            _Worker(self._root, self._has_text, self._answers) for _ in range(self._count)
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def work(self, requests: Sequence[FileRequest]) -> Iterator[FileRecord]:
        """Work on files, in any order, as they get done."""
        batches = [
            list(requests[start : start + _FILES_AT_ONCE])
            for start in range(0, len(requests), _FILES_AT_ONCE)
        ]
        for worker, batch, done in self._run("work", [(None, batch) for batch in batches]):
            if done is None:
                # A worker died, by a parser's bug or for want of memory. Each of its files gets a
                # process of its own.
                for request in batch:
                    yield from self._work_alone(request)
                continue
            self._has_read.update((work.path, worker) for work in done)
            yield from done

    def join(
        self, outlines: Sequence[Any], paths: Sequence[str], files: Sequence[tuple[int, str, bytes]]
    ) -> Iterator[Any]:
        """Make the edges of files: (number, path, facts).

        What a worker died of is missing in the answer.

        ``outlines`` are (path, number of the file's node, packed outline) of the whole tree,
        ``paths`` all its paths.
        """
        for worker in self._workers:
            worker.send(("table", (outlines, paths)))
        mine: dict[Any, list[tuple[int, str, bytes]]] = {}
        for no, path, uses in files:
            reader = self._has_read.get(path)
            mine.setdefault(reader, []).append(
                (no, path, uses if reader not in self._workers else b"")
            )
        batches = [
            (worker, part[start : start + _JOINED_AT_ONCE])
            for worker, part in mine.items()
            for start in range(0, len(part), _JOINED_AT_ONCE)
        ]
        for _, _, done in self._run("join", batches):
            yield from done or ()

    def _run(
        self, command: str, batches: list[tuple[Any, Any]]
    ) -> Iterator[tuple[_Worker, Any, Any]]:
        """Hand out batches, some ahead so that no worker waits.

        (worker, batch, answer), ``None`` for one that died.
        """
        left: dict[Any, list[Any]] = {None: []}
        for reader, batch in reversed(batches):
            left.setdefault(reader if reader in self._workers else None, []).append(batch)
        waiting: dict[_Worker, list[Any]] = {worker: [] for worker in self._workers}

        def give(worker: _Worker) -> None:
            queue = left.get(worker) or left[None]
            if queue:
                waiting[worker].append(queue.pop())
                worker.send((command, waiting[worker][-1]))

        for worker in [worker for _ in range(_AHEAD) for worker in self._workers]:
            give(worker)
        while any(waiting.values()):
            try:
                worker, answer = self._answers.get(timeout=_SILENCE_SECONDS)
            except Empty:
                # A parser is stuck on some file. Its worker is ended like one that died.
                worker, answer = next(each for each in waiting if waiting[each]), None
            _raise_failure(answer)
            if worker not in waiting:
                continue
            if answer is None:
                for batch in (*waiting.pop(worker), *left.pop(worker, ())):
                    yield worker, batch, None
                self._workers.remove(worker)
                worker.end()
                continue
            batch = waiting[worker].pop(0)
            give(worker)
            yield worker, batch, answer
        for batch in [batch for queue in left.values() for batch in queue]:
            yield None, batch, None  # type: ignore[misc]  # nobody is left to do it

    def _work_alone(self, request: FileRequest) -> list[FileRecord]:
        answers: Answers = SimpleQueue()
        worker = _Worker(self._root, self._has_text, answers)
        try:
            worker.send(("work", [request]))
            _, done = answers.get(timeout=_ALONE_SECONDS)
        except Empty:
            done = None
        finally:
            worker.end()
        _raise_failure(done)
        if done is None:
            return [FileRecord(request.path, 0, 0, hash=b"", skip="unreadable")]
        return cast("list[FileRecord]", done)


def _raise_failure(answer: Any) -> None:
    if isinstance(answer, WorkerFailure):
        raise RuntimeError(f"A worker process failed:\n{answer.traceback}")


class _Worker:
    """A process that works on files, and the thread that listens to it."""

    def __init__(self, root: str, has_text: bool, answers: Answers) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-c", _COMMAND.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answers = answers
        self._input: Any = self._process.stdin
        self._output: Any = self._process.stdout
        self._thread = threading.Thread(target=self._listen, name="smara-code-worker", daemon=True)
        self._thread.start()
        self.send((root, has_text))

    def send(self, value: object) -> None:
        try:
            _write(self._input, value)
        except (OSError, ValueError):
            pass  # it is dead; the listener says so

    def _listen(self) -> None:
        answer: Any = ()
        while answer is not None:
            try:
                answer = _read(self._output)
            except (OSError, EOFError, ValueError, pickle.UnpicklingError):
                answer = None
            self._answers.put((self, answer))

    def end(self) -> None:
        """Let the process go, and wait until it is gone."""
        self._process.kill()
        try:
            self._input.close()
        except OSError:
            pass
        self._process.wait()
        self._thread.join(timeout=10)
        self._output.close()


def serve() -> None:
    """Serve requests in a worker process until its input ends."""
    import gc
    import os
    import signal
    import traceback

    # An interrupt from the keyboard reaches everybody; the parent decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def leave_with_parent() -> None:
        # One that waits for work sees its input end; one that is busy is ended here.
        while os.getppid() == parent:
            threading.Event().wait(1.0)
        os._exit(0)

    threading.Thread(target=leave_with_parent, daemon=True).start()
    # Facts are millions of small values without circles; looking for circles among them takes a
    # tenth of the time.
    gc.disable()
    source = sys.stdin.buffer
    # Whatever prints, on purpose or not, must not get between two answers.
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    started = _read(source)
    if started is None:
        return
    bench = _Bench(*started)
    while (request := _read(source)) is not None:
        try:
            answer = bench.answer(*request)
        except Exception:  # noqa: BLE001 - the edge of the process: the parent raises it
            answer = WorkerFailure(traceback.format_exc())
        try:
            if answer is not None:
                _write(target, answer)
        except OSError:  # nobody listens any more
            os._exit(0)


class _Bench:
    """What a worker has before it.

    The files it read, and later the outlines of all.
    """

    def __init__(self, root: str, has_text: bool) -> None:
        self._reader, self._has_text = TreeReader(root), has_text
        self._uses: dict[str, bytes | FileFacts] = {}
        self._size = 0
        self._joiner: Any = None

    def answer(self, command: str, given: Any) -> Any:
        if command == "work":
            done = [work_on(self._reader, each, self._has_text) for each in given]
            for work in done:
                if work.whole is not None:
                    self._size += len(work.whole.definitions) + len(work.whole.references)
                    self._uses[work.path] = work.whole if self._size <= _MOST_KEPT else work.uses
            return [work._replace(whole=None) for work in done]
        if command == "table":
            from smara.codegraph.index.dependents import Joiner
            from smara.codegraph.resolve.symbols import MemoryTable, ProjectFiles, unpack_outline

            outlines, paths = given
            unpacked = [unpack_outline(path, no, data) for path, no, data in outlines]
            table = MemoryTable(outline for outline in unpacked if outline is not None)
            self._joiner = Joiner(table, ProjectFiles(paths, self._reader.find))
            return None
        return [
            self._joiner.join(no, path, uses or self._uses.pop(path, b""))
            for no, path, uses in given
        ]


def _read(stream: BinaryIO) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    return pickle.loads(stream.read(size))  # noqa: S301 - written by ourselves, over a pipe nobody else has


def _write(stream: BinaryIO, value: object) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()
