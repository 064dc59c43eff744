"""Find the transcripts of all agents on this machine and import them.

Only the head of each file is read to find its folder, so finding thousands is fast.
Transcripts come newest first, and those of sub-agents before their session: a session's
file may repeat some messages of its sub-agents, and only their own files have them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from smara.adapters.blocks import words_of
from smara.adapters.hosts.event_queue import project_of
from smara.adapters.importer import Importer, ImportReport
from smara.adapters.lines import (
    JsonLine,
    decode,
    is_database,
    mapping_in,
    milliseconds,
    read_lines,
    text_in,
)
from smara.adapters.readers.codex_records import place_in
from smara.adapters.readers.gemini import project_root_of
from smara.adapters.readers.opencode_store import read_object, session_rows
from smara.adapters.readers.sniff import HOST_FORMATS, Format, HostFormat, import_order, sniff
from smara.adapters.records import Progress
from smara.adapters.replay import Learner, LearnReport
from smara.core.git import find_repository
from smara.environment import home_of
from smara.errors import DatabaseError, InvalidInputError, SmaraError
from smara.memory import Memory

_LINES_LOOKED_AT = 30
_NEVER = {".git", ".venv", "node_modules", "__pycache__"}
_TRANSCRIPT_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".json", ".json.gz", ".db")


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """A transcript of an agent: its file, or one session of a database."""

    path: str
    format: HostFormat
    cwd: str = ""
    """The folder it was held in; empty when nothing tells it."""
    at_ms: int = 0
    """When it was last written to."""
    session_id: str = ""
    is_subagent: bool = False
    only: str | None = None
    """The session that is meant, of a file that holds many."""
    is_unreadable: bool = False
    """Its head could not be read, so that nothing says where it belongs."""


class Here:
    """A folder, and whether others belong to the same repository."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)
        repository = find_repository(folder)
        self._common_dir = repository.common_dir if repository else None
        self.root = repository.root if repository else self.folder
        self._known: dict[str, bool] = {}

    def has(self, folder: str) -> bool:
        """Whether a folder belongs here: to the same repository, or, where there is none, below
        this folder.
        """
        if folder not in self._known:
            self._known[folder] = bool(folder) and self._looks_so(folder)
        return self._known[folder]

    def candidates(self) -> list[str]:
        """The folders that an agent here may have been started in, as far as they are known without
        looking.
        """
        inside = [self.folder, *(str(each) for each in Path(self.folder).parents)]
        return list(
            dict.fromkeys([self.root, *(each for each in inside if each.startswith(self.root))])
        )

    def _looks_so(self, folder: str) -> bool:
        if self._common_dir is not None:
            repository = find_repository(folder)
            return repository is not None and repository.common_dir == self._common_dir
        real = os.path.realpath(folder)
        return real == self.folder or real.startswith(self.folder.rstrip(os.sep) + os.sep)


def find_transcripts(host: HostFormat, here: Here) -> list[TranscriptFile]:
    """All transcripts that an agent keeps on this machine, the newest first."""
    return newest_first(_FINDERS[host](here))


def newest_first(found: Iterable[TranscriptFile]) -> list[TranscriptFile]:
    """The sessions by when they were last written to; sub-agents before their session."""
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
    """The files themselves, of folders every agent's transcript in them, the newest first;
    sub-agents before sessions.

    A folder may hold anything, so only what is surely a transcript is taken from it. Raises
    `InvalidInputError` for a folder without any.
    """
    files: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = [each for each in _walk(Path(path)) if _is_transcript(each)]
        if not inside:
            message = (
                f"{path} is a folder without transcripts of agents. Name the files "
                "themselves: FOLDER/*.jsonl"
            )
            raise InvalidInputError(message, path=path)
        files += [
            str(each) for each in sorted(inside, key=lambda each: (-_written_at(each), str(each)))
        ]
    return [os.fspath(each) for each in import_order(files)]


def _is_transcript(path: Path) -> bool:
    if not path.name.endswith(_TRANSCRIPT_ENDINGS):
        return False
    try:
        if is_database(path):
            return session_rows(path) is not None
        return sniff(path) in HOST_FORMATS
    except SmaraError:
        return path.name.endswith(".zst")  # why it cannot be read is told when it is


# One finder for each host


def _find_claude(here: Here) -> Iterator[TranscriptFile]:
    for path in _walk(Path(home_of("CLAUDE_CONFIG_DIR", ".claude")) / "projects"):
        if not path.name.endswith((".jsonl", ".jsonl.gz")):
            continue
        cwd = session = ""
        is_agent = False
        for value in _head(path):
            cwd = cwd or text_in(value.get("cwd"))
            session = session or text_in(value.get("sessionId"))
            is_agent = is_agent or (value.get("isSidechain") is True and "agentId" in value)
            if cwd and session:
                break
        yield TranscriptFile(
            str(path),
            "claude-code",
            cwd,
            at_ms=_written_at(path),
            session_id=session or path.stem,
            is_subagent=is_agent,
        )


def _find_codex(here: Here) -> Iterator[TranscriptFile]:
    home = Path(home_of("CODEX_HOME", ".codex"))
    for folder in ("sessions", "archived_sessions"):
        for path in _walk(home / folder):
            if not path.name.startswith("rollout-") or not path.name.endswith(
                (".jsonl", ".jsonl.zst", ".json")
            ):
                continue
            meta: Mapping[str, Any] = {}
            cwd = ""
            for value in _head(path, 6):
                meta = meta or mapping_in(value.get("payload")) or (value if "id" in value else {})
                cwd = cwd or text_in(meta.get("cwd")) or place_in(words_of(value.get("content")))
                if cwd:
                    break
            source = mapping_in(meta.get("source")).get("subagent")
            session = text_in(meta.get("session_id")) or text_in(meta.get("id")) or path.name
            yield TranscriptFile(
                str(path),
                "codex",
                cwd,
                at_ms=_written_at(path),
                session_id=session,
                is_subagent=bool(source),
                is_unreadable=not _is_readable(path),
            )


def _find_gemini(here: Here) -> Iterator[TranscriptFile]:
    temporary = Path(home_of("GEMINI_CONFIG_DIR", ".gemini")) / "tmp"
    candidates = here.candidates()
    for path in _walk(temporary):
        is_chat = "chats" in path.parts[len(temporary.parts) :] and path.name.endswith(
            (".json", ".jsonl")
        )
        if not is_chat and path.name != "logs.json":
            continue
        is_agent = is_chat and path.parent.name != "chats"
        session = path.parent.name if is_agent else str(path)
        yield TranscriptFile(
            str(path),
            "gemini",
            project_root_of(path, candidates),
            at_ms=_written_at(path),
            session_id=session,
            is_subagent=is_agent,
        )


def _find_copilot(here: Here) -> Iterator[TranscriptFile]:
    for path in _walk(Path(home_of("COPILOT_HOME", ".copilot")) / "session-state"):
        if path.name == "events.jsonl":
            data = mapping_in(next(_head(path, 1), {}).get("data"))
            cwd = text_in(mapping_in(data.get("context")).get("cwd"))
            yield TranscriptFile(
                str(path),
                "copilot",
                cwd,
                at_ms=_written_at(path),
                session_id=text_in(data.get("sessionId")) or str(path),
            )


def _find_pi(here: Here) -> Iterator[TranscriptFile]:
    kept = os.path.join(home_of("PI_CODING_AGENT_DIR", ".pi/agent"), "sessions")
    for path in _walk(Path(kept)):
        if path.name.endswith(".jsonl"):
            head = next(_head(path, 1), {})
            yield TranscriptFile(
                str(path),
                "pi",
                text_in(head.get("cwd")),
                at_ms=_written_at(path),
                session_id=text_in(head.get("id")) or path.stem,
            )


def _find_opencode(here: Here) -> Iterator[TranscriptFile]:
    home = Path(home_of("XDG_DATA_HOME", ".local/share")) / "opencode"
    known: set[str] = set()
    try:
        databases = sorted(each for each in home.glob("opencode*.db") if each.is_file())
    except OSError:
        databases = []
    for path in databases:
        for info in session_rows(path) or ():
            known.add(str(info["id"]))
            yield _opencode_session(str(path), info, str(info["id"]))
    # What was taken over into the database lies in the old files, too.
    for path in _walk(home / "storage" / "session"):
        if path.name.endswith(".json") and path.stem not in known:
            told = read_object(path)
            yield _opencode_session(str(path), told if isinstance(told, dict) else {}, None)


def _opencode_session(path: str, info: Mapping[str, Any], only: str | None) -> TranscriptFile:
    updated = milliseconds(mapping_in(info.get("time")).get("updated")) or _written_at(Path(path))
    parent, own = text_in(info.get("parentID")), text_in(info.get("id")) or path
    return TranscriptFile(
        path,
        "opencode",
        text_in(info.get("directory")),
        at_ms=updated,
        session_id=parent or own,
        is_subagent=bool(parent),
        only=only,
    )


_FINDERS: dict[HostFormat, Callable[[Here], Iterator[TranscriptFile]]] = {
    "claude-code": _find_claude,
    "codex": _find_codex,
    "gemini": _find_gemini,
    "copilot": _find_copilot,
    "opencode": _find_opencode,
    "pi": _find_pi,
}


def _walk(folder: Path) -> Iterator[Path]:
    """Every file below a folder; what cannot be listed is passed over, and no link to a folder is
    followed.
    """
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _NEVER)
        for name in sorted(names):
            yield Path(root, name)


def _head(path: Path, lines: int = _LINES_LOOKED_AT) -> Iterator[dict[str, Any]]:
    try:
        for line in islice(read_lines(path), lines):
            entry = decode(line)
            if isinstance(entry, JsonLine):
                yield entry.value
    except SmaraError:
        return  # it is told when the file itself is read


def _is_readable(path: Path) -> bool:
    """Whether a compressed file can be unpacked: what does so is installed, and the file is whole
    at its beginning.
    """
    if not path.name.endswith(".zst"):
        return True
    try:
        first = next(read_lines(path), None)
    except SmaraError:
        return False
    return first is not None and first.problem is None


def _written_at(path: Path) -> int:
    try:
        return int(path.stat().st_mtime * 1000)
    except OSError:
        return 0


_NOT_THERE = ""
"""The name of no project: of one that an import would make."""
Bar = Callable[[str], AbstractContextManager[Progress | None]]
"""Gives something to call with (done, total) while what is named is under way."""


@dataclass(slots=True)
class BulkReport:
    """What came of an import of many transcripts."""

    reports: list[ImportReport] = field(default_factory=list)
    elsewhere: int = 0
    """Transcripts of other folders, which were left out."""
    unread: list[tuple[str, str]] = field(default_factory=list)
    """Files that could not be read at all, and why."""
    learned: LearnReport = field(default_factory=LearnReport)


def find(
    hosts: Sequence[HostFormat], here: Here, *, everywhere: bool = False
) -> tuple[list[TranscriptFile], int]:
    """The transcripts of these agents that belong here, or all of them, the newest of all first;
    and how many were not.

    Those that cannot be looked into are among them, so that they are told of.
    """
    found = newest_first(each for host in hosts for each in find_transcripts(host, here))
    if everywhere:
        return found, 0
    mine = [each for each in found if here.has(each.cwd) or each.is_unreadable]
    return mine, len(found) - len(mine)


class BulkImport:
    """Imports many transcripts, each into one memory or into the project of its folder."""

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
        """Import everything, in the order given; a file that cannot be read does not stop the
        others.
        """
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

    def run_files(self, paths: Sequence[str], bar: Bar, format: Format | None = None) -> BulkReport:
        """Import files and the transcripts in folders; one that cannot be read is told at once."""
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
