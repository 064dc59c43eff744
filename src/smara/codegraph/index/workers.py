"""Turn files into what the index stores, here or in worker processes.

What is made of one file is pure: no database, and only the one file is read. So parsing, redaction
and text analysis use every core. Workers are started by a command and not forked: a fork would
copy the locks of the parent's threads. They end with their parent.
"""

from __future__ import annotations

import pickle
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, NamedTuple

from smara.codegraph.codec import pack_facts
from smara.codegraph.index import files
from smara.codegraph.index.files import NotRead, TreeReader, content_hash
from smara.codegraph.language import kind_of, language_of
from smara.codegraph.models import CodeChunk, FileFacts, FileKind, Language, SkipReason
from smara.core import log
from smara.core.escape import to_storable
from smara.core.items import grouped
from smara.core.paths import is_test_path
from smara.core.startup.regex import re, regex
from smara.secrets.redact import redact, scan

_RACY_NS = 2_000_000_000
_LOOKED_AT = 8_192
_LONG_LINE = 2_000
_MOST_CHUNKS = 4_000
_GENERATED = regex(
    rb"@generated\b|\bcode generated (?:by|from)\b"
    rb"|\b(?:auto-?generated|automatically generated|generated automatically)"
    rb"[^\n]{0,80}(?:do not (?:edit|modify)|by )|\bdo not (?:edit|modify)\b[^\n]{0,40}\bgenerated\b"
    rb"|\bgenerated\b[^\n]{0,60}\bdo not (?:edit|modify)\b",
    re.IGNORECASE,
)


ChunkKey = tuple[str, str, str, str]
BAD_FILE_ERRORS = (ValueError, IndexError, ArithmeticError, RecursionError, MemoryError)
"""What the content of a file can raise: it must not keep all others out of the index. Anything
else, such as a KeyError of a table, is a bug and ends the run.
"""


class FileRequest(NamedTuple):
    """A file to be read, and its last hash, if any."""

    path: str
    stored_hash: bytes = b""


class ReadyChunk(NamedTuple):
    """A chunk with the terms it is found by."""

    chunk: CodeChunk
    head: str
    bodies: tuple[str, ...]


class FileRecord(NamedTuple):
    """The result of reading one file.

    Without a skip and with the hash that was known, nothing else is filled in.
    """

    path: str
    size: int
    mtime_ns: int
    hash: bytes
    skip: SkipReason | None = None
    is_same: bool = False
    language: Language | None = None
    kind: FileKind = "code"
    lines: int = 0
    is_test: bool = False
    doc: str = ""
    facts: FileFacts | None = None
    """Without the names it uses: those are in ``uses``, packed."""
    uses: bytes = b""
    chunks: tuple[ReadyChunk, ...] = ()
    whole: FileFacts | None = None
    """All that the file says, for the maker of its edges in the same process."""


def work_on(
    reader: TreeReader,
    request: FileRequest,
    stored: Container[ChunkKey] = frozenset(),
) -> FileRecord:
    """Read and take apart one file; never raises for what it holds.

    Chunks that are ``stored`` already come without their terms: they keep those they
    have.
    """
    try:
        opened = reader.read(request.path, files.MOST_BYTES)
    except NotRead as error:
        return FileRecord(request.path, 0, 0, hash=b"", skip=error.reason)
    # A file saved again within the same tick of the clock would look unchanged; its time is not
    # trusted.
    mtime_ns = 0 if time.time_ns() - opened.mtime_ns < _RACY_NS else opened.mtime_ns
    digest = content_hash(opened.data)
    if digest == request.stored_hash:
        return FileRecord(request.path, opened.size, mtime_ns, hash=digest, is_same=True)
    try:
        work = taken_apart(request.path, opened.data, stored=stored)
    except BAD_FILE_ERRORS as error:
        log.warning("code.not_taken_apart", path=request.path, error=repr(error))
        work = FileRecord(request.path, opened.size, mtime_ns, hash=digest, skip="unreadable")
    return work._replace(size=opened.size, mtime_ns=mtime_ns, hash=digest)


def taken_apart(
    path: str,
    data: bytes,
    has_text: bool = True,
    stored: Container[ChunkKey] = frozenset(),
) -> FileRecord:
    """Return what the content of a file says."""
    empty = FileRecord(path, len(data), 0, hash=b"")
    if (text := decoded(data)) is None:
        return empty._replace(skip="binary")
    first_line = data[:200].split(b"\n", 1)[0]
    language = language_of(path, data)
    kind = "code" if language is not None else kind_of(path)
    if kind not in ("code", "prose", "data"):
        if not first_line.startswith(b"#!"):
            return empty._replace(skip="unknown")
        kind = "code"
    if len(data) > 4_096:
        lines = text.count("\n") + 1
        longest = max(map(len, text.split("\n")))
        if longest > _LONG_LINE and (len(text) / lines > 300 or longest > len(text) // 2):
            return empty._replace(skip="minified")
    if kind == "code" and _GENERATED.search(b"\n".join(data[:2_000].split(b"\n", 12)[:12])):
        return empty._replace(skip="generated")
    facts = None
    if language is not None:
        from smara.codegraph.parse.extract import extract

        facts = extract(path, text.replace("\0", " ").encode("utf-8", "replace"), language)
    safe_text, safe_facts, doc = _without_secrets(path, text, facts, has_text=has_text)
    ready: tuple[ReadyChunk, ...] = ()
    if has_text:
        from smara.codegraph.parse.chunks import chunk_file, chunk_terms

        ready = tuple(
            ReadyChunk(chunk, "", ())
            if chunk_key(chunk) in stored
            else ReadyChunk(chunk, *chunk_terms(path, chunk.name, chunk.text))
            for chunk in chunk_file(safe_facts, path, safe_text)[:_MOST_CHUNKS]
        )
    # Other files may ask of this one what its classes extend, and nothing else that it uses.
    bases = tuple(e for e in safe_facts.references if e.kind == "inherits") if safe_facts else ()
    return empty._replace(
        language=language,
        kind=kind,
        lines=text.count("\n") + (not text.endswith("\n") and text != ""),
        is_test=is_test_path(path),
        doc=doc,
        facts=None if safe_facts is None else safe_facts._replace(references=bases),
        uses=b"" if safe_facts is None else pack_facts(safe_facts),
        chunks=ready,
        whole=safe_facts,
    )


def decoded(data: bytes) -> str | None:
    """Return a file's text, or ``None`` if it is binary."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
        return None if "\x00" in text[:_LOOKED_AT] else text
    if b"\x00" in data[:_LOOKED_AT]:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    # Most texts in an old encoding are ASCII but for a few letters; a binary file is nothing of the
    # kind.
    strange = sum(1 for sign in text[:_LOOKED_AT] if sign < " " and sign not in "\t\n\r\f\x0b\x1b")
    return None if strange > len(text[:_LOOKED_AT]) // 100 else text


def _without_secrets(
    path: str, text: str, facts: FileFacts | None, has_text: bool
) -> tuple[str, FileFacts | None, str]:
    """Return the text and the facts without any secret, lines kept where they are; and what the
    file says of itself.
    """
    doc = _first_line(path, text)
    # Where the text is not kept, what is kept of it is looked through alone.
    stored = [doc]
    if facts is not None:
        stored += [each.signature for each in facts.definitions]
        stored += [each.doc for each in facts.definitions if each.doc]
        stored += [each.module for each in facts.imports]
    findings = scan(text) if has_text or scan("\n".join(stored)) else []
    if not findings:
        return text, facts, doc
    pieces: list[str] = []
    position = 0
    for finding in findings:
        # A key over several lines must leave as many: everything below would be told of the wrong
        # line.
        breaks = "\n" * text.count("\n", finding.start, finding.end)
        pieces += (text[position : finding.start], finding.placeholder, breaks)
        position = finding.end
    safe = "".join([*pieces, text[position:]])
    if facts is not None:

        def clean(fact: Any) -> Any:
            texts = ((name, each) for name, each in fact._asdict().items() if type(each) is str)
            return fact._replace(**{name: redact(each).text for name, each in texts})

        facts = facts._replace(
            definitions=tuple(map(clean, facts.definitions)),
            imports=tuple(map(clean, facts.imports)),
            references=tuple(map(clean, facts.references)),
            bindings=tuple(map(clean, facts.bindings)),
        )
    return safe, facts, _first_line(path, safe)


def _first_line(path: str, text: str) -> str:
    from smara.codegraph.parse.chunks import first_words

    return first_words(path, text).split("\n", 1)[0][:300]


def chunk_key(chunk: CodeChunk) -> ChunkKey:
    """Return what a chunk is known again by.

    All of it but its place, as it is stored.
    """
    return (
        str(chunk.kind),
        to_storable(chunk.name),
        to_storable(chunk.prefix),
        to_storable(chunk.text),
    )


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
    "import sys; sys.path[:] = {path!r}; from smara.codegraph.index.workers import serve; serve()"
)

Answers = SimpleQueue["tuple[_Worker, Any]"]


def work_inline(
    root: str,
    requests: Sequence[FileRequest],
    stored: Container[ChunkKey] = frozenset(),
) -> Iterator[FileRecord]:
    """Work on files in this process; see `work_on`."""
    reader = TreeReader(root)
    return (work_on(reader, each, stored) for each in requests)


class WorkerFailure(NamedTuple):
    """A bug that a worker met, as its traceback tells it."""

    traceback: str


class Pool:
    """Some worker processes. A context manager.

    They are gone when it is left, however that happens.
    """

    def __init__(self, root: str, count: int = WORKERS) -> None:
        self._root, self._count = root, count
        self._answers: Answers = SimpleQueue()
        self._workers: list[_Worker] = []
        self._has_read: dict[str, _Worker] = {}

    def __enter__(self) -> Pool:
        self._workers = [_Worker(self._root, self._answers) for _ in range(self._count)]
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
        # What a worker has read it still has; it is not sent again.
        readers = {path: each for path, each in self._has_read.items() if each in self._workers}
        by_reader = grouped(
            (readers.get(path), (no, path, b"" if path in readers else uses))
            for no, path, uses in files
        )
        batches = [
            (worker, part[start : start + _JOINED_AT_ONCE])
            for worker, part in by_reader.items()
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
        # Taken from the end, so the first comes last.
        left: dict[_Worker | None, list[Any]] = {None: []}
        for reader, batch in reversed(batches):
            left.setdefault(reader, []).append(batch)
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
            yield None, batch, None  # type: ignore[misc]  # no worker is left to do it

    def _work_alone(self, request: FileRequest) -> list[FileRecord]:
        answers: Answers = SimpleQueue()
        worker = _Worker(self._root, answers)
        try:
            worker.send(("work", [request]))
            _, done = answers.get(timeout=_ALONE_SECONDS)
        except Empty:
            done = None
        finally:
            worker.end()
        _raise_failure(done)
        return done or [FileRecord(request.path, 0, 0, hash=b"", skip="unreadable")]


def _raise_failure(answer: Any) -> None:
    if isinstance(answer, WorkerFailure):
        raise RuntimeError(f"A worker process failed:\n{answer.traceback}")


class _Worker:
    """A process that works on files, and the thread that listens to it."""

    def __init__(self, root: str, answers: Answers) -> None:
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
        self.send(root)

    def send(self, value: object) -> None:
        with suppress(OSError, ValueError):  # it is dead; the listener says so
            _write(self._input, value)

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
        with suppress(OSError):
            self._input.close()
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
    if (root := _read(source)) is None:
        return
    bench = _Bench(root)
    while (request := _read(source)) is not None:
        try:
            answer = bench.answer(*request)
        except Exception:  # noqa: BLE001 - the edge of the process: the parent raises it
            answer = WorkerFailure(traceback.format_exc())
        try:
            if answer is not None:
                _write(target, answer)
        except OSError:  # the parent listens no more
            os._exit(0)


class _Bench:
    """What a worker has before it.

    The files it read, and later the outlines of all.
    """

    def __init__(self, root: str) -> None:
        self._reader = TreeReader(root)
        self._uses: dict[str, bytes | FileFacts] = {}
        self._size = 0
        self._joiner: Any = None

    def answer(self, command: str, given: Any) -> Any:
        if command == "work":
            done = [work_on(self._reader, each) for each in given]
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
    return pickle.loads(stream.read(size))  # noqa: S301 - written by ourselves, over a pipe of our own


def _write(stream: BinaryIO, value: object) -> None:
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.writelines((_LENGTH.pack(len(data)), data))
    stream.flush()
