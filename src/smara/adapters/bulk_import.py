"""Find the transcripts of all agents on this machine and import them.

Only the head of each file is read to find its folder, so finding thousands is fast.
Transcripts come newest first, and those of sub-agents before their session: a session's
file may repeat some messages of its sub-agents, and only their own files have them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from smara.adapters.host import Here, TranscriptFile, walk, written_at
from smara.adapters.host_specs import TRANSCRIPTS
from smara.adapters.hosts.event_queue import project_of
from smara.adapters.importer import Importer, ImportReport
from smara.adapters.records import Progress
from smara.adapters.replay import Learner, LearnReport
from smara.adapters.sniff import import_order, sniff
from smara.core.git import find_repository
from smara.errors import DatabaseError, InvalidInputError, SmaraError
from smara.memory import Memory

_TRANSCRIPT_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".json", ".json.gz", ".db")


def find_transcripts(format: str, here: Here) -> list[TranscriptFile]:
    """All transcripts that an agent keeps on this machine, the newest first."""
    return newest_first(TRANSCRIPTS[format].find(here))


def newest_first(found: Iterable[TranscriptFile]) -> list[TranscriptFile]:
    """Sort sessions by their last change; sub-agents come before their session."""
    everything = list(found)
    latest: dict[str, int] = {}
    for each in everything:
        latest[each.session_id] = max(latest.get(each.session_id, 0), each.at_ms)
    return sorted(
        everything,
        key=lambda each: (
            -latest[each.session_id],
            each.session_id,
            not each.is_subagent,
            -each.at_ms,
            each.path,
        ),
    )


def expand(paths: Iterable[str]) -> list[str]:
    """Expand folders into the transcripts in them, newest first.

    Files stay as they are; transcripts of sub-agents come before their sessions.

    A folder may hold anything, so only what is surely a transcript is taken from it. Raises
    `InvalidInputError` for a folder without any.
    """
    files: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = [each for each in walk(Path(path)) if _is_transcript(each)]
        if not inside:
            message = (
                f"{path} is a folder without transcripts of agents. Name the files "
                "themselves: FOLDER/*.jsonl"
            )
            raise InvalidInputError(message, path=path)
        files += [
            str(each) for each in sorted(inside, key=lambda each: (-written_at(each), str(each)))
        ]
    return [os.fspath(each) for each in import_order(files)]


def _is_transcript(path: Path) -> bool:
    if not path.name.endswith(_TRANSCRIPT_ENDINGS):
        return False
    try:
        format = sniff(path)
        return format in TRANSCRIPTS and TRANSCRIPTS[format].has_sessions(path)
    except SmaraError:
        return path.name.endswith(".zst")  # why it cannot be read is told when it is


_NOT_THERE = ""
"""The name of no project: of one that an import would make."""
Bar = Callable[[str], AbstractContextManager[Progress | None]]
"""Gives something to call with (done, total) while what is named is under way."""


@dataclass(slots=True)
class BulkReport:
    """The result of importing many transcripts."""

    reports: list[ImportReport] = field(default_factory=list)
    elsewhere: int = 0
    """Transcripts of other folders, which were left out."""
    unread: list[tuple[str, str]] = field(default_factory=list)
    """Files that could not be read at all, and why."""
    learned: LearnReport = field(default_factory=LearnReport)


def find(
    formats: Sequence[str], here: Here, *, everywhere: bool = False
) -> tuple[list[TranscriptFile], int]:
    """Find the transcripts of these formats that belong here.

    The newest come first; also returns how many belong elsewhere.

    Those that cannot be looked into are among them, so that they are told of.
    """
    found = newest_first(each for format in formats for each in find_transcripts(format, here))
    if everywhere:
        return found, 0
    mine = [each for each in found if here.has(each.cwd) or each.is_unreadable]
    return mine, len(found) - len(mine)


class BulkImport:
    """An import of many transcripts, each into the project of its folder."""

    def __init__(
        self,
        memory: Memory,
        resource_id: str | None = None,
        *,
        everywhere: bool = False,
        learn: bool = True,
        dry_run: bool = False,
    ) -> None:
        self._memory = memory
        self._resource = resource_id
        self._everywhere = everywhere
        self._learn = learn and not dry_run
        self._dry_run = dry_run
        self._importers: dict[str, tuple[Importer, Learner | None]] = {}
        self._projects: dict[str, str] = {}

    def run(self, found: Iterable[TranscriptFile], bar: Bar) -> BulkReport:
        """Import transcripts in the order given; skip those that cannot be read."""
        done = BulkReport()
        everything = list(found)
        for number, each in enumerate(everything, 1):
            importer = self._importer(each.cwd)
            with bar(f"{number}/{len(everything)} {each.format}") as progress:
                try:
                    done.reports.append(
                        importer.import_file(each.path, progress, each.format, only=each.only)
                    )
                except DatabaseError:
                    raise  # our own store has trouble: nothing else would go better
                except SmaraError as error:
                    done.unread.append((each.path, str(error)))
        self._finish(done, bar)
        return done

    def run_files(self, paths: Sequence[str], bar: Bar, format: str | None = None) -> BulkReport:
        """Import files, and the transcripts in folders; raise at an unreadable one."""
        done = BulkReport()
        files = expand(paths)
        importer = self._importer("")
        for number, path in enumerate(files, 1):
            name = os.path.basename(path)
            with bar(name if len(files) == 1 else f"{number}/{len(files)} {name}") as progress:
                done.reports.append(importer.import_file(path, progress, format))
        self._finish(done, bar)
        return done

    def _finish(self, done: BulkReport, bar: Bar) -> None:
        """Decide on what was watched."""
        for _, learner in self._importers.values():
            if learner is not None:
                with bar("learning") as progress:
                    _add(done.learned, learner.finish(progress))

    def _importer(self, cwd: str) -> Importer:
        project = self._project(cwd) if self._everywhere else self._memory.project
        if project not in self._importers:
            learner = None
            if project == _NOT_THERE:
                importer = Importer(None, self._resource, dry_run=True)
            else:
                memory = (
                    self._memory
                    if project == self._memory.project
                    else self._memory.in_project(project)
                )
                learner = Learner(memory) if self._learn else None
                importer = Importer(memory, self._resource, learner=learner, dry_run=self._dry_run)
            self._importers[project] = (importer, learner)
        return self._importers[project][0]

    def _project(self, cwd: str) -> str:
        if cwd not in self._projects:
            self._projects[cwd] = (
                self._known_project(cwd) if self._dry_run else project_of(self._memory, "", cwd)
            )
        return self._projects[cwd]

    def _known_project(self, cwd: str) -> str:
        """The same without making a project that is not there yet."""
        repository = find_repository(cwd) if cwd else None
        known = {each.git_common_dir for each in self._memory.projects.list()}
        settings = self._memory.settings
        is_by_folder = settings.project is None and settings.db is None
        if repository is not None and is_by_folder and repository.common_dir not in known:
            return _NOT_THERE
        return project_of(self._memory, "", cwd)


def _add(total: LearnReport, more: LearnReport) -> None:
    total.sessions += more.sessions
    total.events += more.events
    total.memories += more.memories
    total.left_out += more.left_out
    total.problems += more.problems
