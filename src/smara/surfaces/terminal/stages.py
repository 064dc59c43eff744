"""Read sessions, history, code, decisions and vectors, stage by stage.

The stages follow each other, each within its bound, here or in a process of its own; what a stage
has done stays when the process ends, and the next run goes on. A record says how far a run is.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from smara.adapters.host import TranscriptFile
from smara.adapters.importer import BulkImport, BulkReport
from smara.core.startup.record import dataclass
from smara.errors import BusyError, SmaraError
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.worker import hold_instance
from smara.surfaces.cli.options import Invocation
from smara.surfaces.terminal.stage_record import find_run, share_of, stage_line

Progress = Callable[[int, int], None]
BEAT_SECONDS = 2.0
_AT_ONCE = 20
"""Sessions that are imported and learned from before the time is looked at again."""
_NAMES = {
    "sessions": "Sessions",
    "code": "Code",
    "history": "History",
    "decisions": "Decisions",
    "vectors": "Vectors",
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most seconds of each stage.

    Code is bounded by its number of files.
    """

    sessions: float
    history: float
    decisions: float
    vectors: float


FOREGROUND = Bounds(sessions=900.0, history=20.0, decisions=60.0, vectors=30.0)
BACKGROUND = Bounds(sessions=3_600.0, history=300.0, decisions=600.0, vectors=1_800.0)


class Display:
    """One display of all stages, with their job in the store."""

    def __init__(self, stages: Sequence[str], job: Any) -> None:
        self._stages, self._job = list(stages), job
        self._place: tuple[str, int, int] = ("", 0, 0)
        self._lock = threading.Lock()
        self._rows: dict[str, Any] = {}
        self._drawn: Any = None
        self._is_over = threading.Event()
        self._renewal = threading.Thread(target=self._beat, name="smara-stages", daemon=True)

    def __enter__(self) -> Display:
        self._renewal.start()
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            columns = (
                TextColumn("{task.description:<10}"),
                BarColumn(),
                TextColumn("{task.fields[share]:>5}"),
                TimeRemainingColumn(),
            )
            self._drawn = RichProgress(*columns, console=Console(stderr=True), transient=True)
            self._rows = {
                name: self._drawn.add_task(_NAMES[name], total=None, start=False, share="")
                for name in self._stages
            }
            self._drawn.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._is_over.set()
        self._renewal.join()  # it would bring back a job that ends now
        if self._drawn is not None:
            self._drawn.stop()

    def _beat(self) -> None:
        # In a thread of its own: a stage may tell of its progress while it holds the database.
        while not self._is_over.wait(BEAT_SECONDS):
            self._show()

    def _show(self) -> None:
        with self._lock, suppress(SmaraError):
            if self._job is not None:
                self._job.show(*self._place)

    @contextmanager
    def stage(self, name: str) -> Iterator[Progress]:
        """Show a stage; yield the function to call with (done, total)."""
        left = self._stages[self._stages.index(name) + 1 :]
        self._place = (name, 0, 0)
        if self._job is not None:
            self._job.facts = {"stage": name, "left": left}
        self._show()
        row = self._rows.get(name)
        if self._drawn is not None:
            self._drawn.start_task(row)

        def tell(done: int, total: int) -> None:
            self._place = (name, done, total)
            if self._drawn is not None:
                share = f"{share_of(done, total)} %" if total else ""
                self._drawn.update(row, completed=done, total=total, share=share)

        yield tell
        if self._drawn is not None:
            self._drawn.update(row, completed=1, total=1, share="done")


class InitRun:
    """The stages of one run.

    An interrupt ends it and keeps what was read.
    """

    def __init__(self, call: Invocation, bounds: Bounds = FOREGROUND) -> None:
        self._call, self._bounds = call, bounds
        self.imported = BulkReport()
        self.commits = 0
        self.files = 0
        self.is_interrupted = False
        self.busy = ""

    def run(self, sessions: Sequence[TranscriptFile], has_git: bool, has_code: bool) -> None:
        """Read everything that is there.

        Another process that reads the same project is left to it.
        """
        every = {
            "sessions": (bool(sessions), lambda tell: self._read_sessions(sessions, tell)),
            "code": (has_code, self._read_code),
            "history": (has_git, self.read_history),
            "decisions": (bool(sessions), self._read_decisions),
            "vectors": (True, self._make_vectors),
        }
        stages = {name: stage for name, (is_there, stage) in every.items() if is_there}
        stop = threading.Event()
        with self._call.memory() as memory:
            try:
                with (
                    hold_instance(memory, "init", stop, project=memory.project),
                    memory.jobs.run("init") as job,
                ):
                    with Display(list(stages), job) as display:
                        self._run(stages, display)
                    if job is not None:
                        stored = sum(each.stored for each in self.imported.reports)
                        job.facts = {"stored": stored, "memories": self.imported.learned.memories}
            except BusyError:
                found = find_run(memory)
                self.busy = stage_line(found) if found else "just started"
            except KeyboardInterrupt:
                self.is_interrupted = True

    def _run(self, stages: dict[str, Callable[[Progress], None]], display: Display) -> None:
        for name, stage in stages.items():
            try:
                with display.stage(name) as tell:
                    stage(tell)
            except SmaraError as error:
                output.warn([f"Not everything was read: {error}"])

    def _read_sessions(self, sessions: Sequence[TranscriptFile], tell: Progress) -> None:
        until = time.monotonic() + self._bounds.sessions
        done = 0

        @contextmanager
        def bar(label: str) -> Iterator[Progress]:
            nonlocal done
            is_file = label[:1].isdigit()  # otherwise what is learned from them
            yield (
                lambda part, total: (
                    tell(1000 * done + 1000 * part // (total or 1), 1000 * len(sessions))
                    if is_file
                    else None
                )
            )
            done += is_file

        with self._call.memory(models_enabled=False) as memory:
            for start in range(0, len(sessions), _AT_ONCE):
                # The newest sessions come first here. Decisions are read later, oldest first: an
                # older rule that is read after its amendment would be told beside it.
                some = sessions[start : start + _AT_ONCE]
                report = BulkImport(memory, reads_decisions=False).run(some, bar)
                self.imported.reports += report.reports
                self.imported.unread += report.unread
                self.imported.learned += report.learned
                if time.monotonic() > until:
                    break

    def read_history(self, tell: Progress | None = None) -> None:
        """Read the commits that are new."""
        with self._call.memory() as memory:
            self.commits = memory.commits.keep_up(self._bounds.history, tell).added

    def _read_code(self, tell: Progress) -> None:
        with self._call.memory() as memory:
            self.files = memory.code.index(progress=tell).files

    def _read_decisions(self, tell: Progress) -> None:
        until = time.monotonic() + self._bounds.decisions
        with self._call.memory(models_enabled=False) as memory:
            memory.decisions.update(has_time=lambda: time.monotonic() < until, progress=tell)

    def _make_vectors(self, tell: Progress) -> None:
        with self._call.memory() as memory:
            if memory.settings.keep == "text":
                memory.embeddings.embed_pending(
                    deadline_seconds=self._bounds.vectors,
                    tell=lambda done: tell(done.embedded, done.embedded + done.waiting),
                )


def start_in_background(call: Invocation, root: str) -> None:
    """Start a process that reads and outlives this terminal."""
    words = [sys.executable, "-m", "smara", "init", "--reading"]
    for name, value in (("--db", call.db), ("--project", call.project)):
        words += [name, value] if value is not None else []
    detached: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        detached = {"creationflags": flags}
    process = subprocess.Popen(  # noqa: S603 - our own program
        words,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **detached,
    )
    process.returncode = 0  # it is not waited for, and Python need not warn of that
