"""Where the agents of this machine keep their transcripts, and which folder each was held in.

Only the head of each file is read, so that finding thousands takes a moment. What is found comes
the newest first, the transcripts of sub-agents before that of the session they belong to: a
session's file may repeat some messages of its sub-agents, and only their own files have them all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from smara.adapters.blocks import words_of
from smara.adapters.codex.voices import place_in
from smara.adapters.decoding import Entry, decode, mapping_in, milliseconds, text_in
from smara.adapters.gemini import project_root_of
from smara.adapters.opencode.database import session_rows
from smara.adapters.opencode.tree import read_object
from smara.adapters.reading import is_database, read_lines
from smara.adapters.sniff import HOST_FORMATS, HostFormat, import_order, sniff
from smara.core.repository import find_repository
from smara.environment import home_of
from smara.errors import InvalidInputError, SmaraError

_LINES_LOOKED_AT = 30
_NEVER = {".git", ".venv", "node_modules", "__pycache__"}
_TRANSCRIPT_ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".json", ".json.gz", ".db")


@dataclass(frozen=True, slots=True)
class Found:
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


def find_transcripts(host: HostFormat, here: Here) -> list[Found]:
    """All transcripts that an agent keeps on this machine, the newest first."""
    return newest_first(_FINDERS[host](here))


def newest_first(found: Iterable[Found]) -> list[Found]:
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


def _find_claude(here: Here) -> Iterator[Found]:
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
        yield Found(
            str(path),
            "claude-code",
            cwd,
            at_ms=_written_at(path),
            session_id=session or path.stem,
            is_subagent=is_agent,
        )


def _find_codex(here: Here) -> Iterator[Found]:
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
            yield Found(
                str(path),
                "codex",
                cwd,
                at_ms=_written_at(path),
                session_id=session,
                is_subagent=bool(source),
                is_unreadable=not _is_readable(path),
            )


def _find_gemini(here: Here) -> Iterator[Found]:
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
        yield Found(
            str(path),
            "gemini",
            project_root_of(path, candidates),
            at_ms=_written_at(path),
            session_id=session,
            is_subagent=is_agent,
        )


def _find_copilot(here: Here) -> Iterator[Found]:
    for path in _walk(Path(home_of("COPILOT_HOME", ".copilot")) / "session-state"):
        if path.name == "events.jsonl":
            data = mapping_in(next(_head(path, 1), {}).get("data"))
            cwd = text_in(mapping_in(data.get("context")).get("cwd"))
            yield Found(
                str(path),
                "copilot",
                cwd,
                at_ms=_written_at(path),
                session_id=text_in(data.get("sessionId")) or str(path),
            )


def _find_pi(here: Here) -> Iterator[Found]:
    kept = os.path.join(home_of("PI_CODING_AGENT_DIR", ".pi/agent"), "sessions")
    for path in _walk(Path(kept)):
        if path.name.endswith(".jsonl"):
            head = next(_head(path, 1), {})
            yield Found(
                str(path),
                "pi",
                text_in(head.get("cwd")),
                at_ms=_written_at(path),
                session_id=text_in(head.get("id")) or path.stem,
            )


def _find_opencode(here: Here) -> Iterator[Found]:
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


def _opencode_session(path: str, info: Mapping[str, Any], only: str | None) -> Found:
    updated = milliseconds(mapping_in(info.get("time")).get("updated")) or _written_at(Path(path))
    parent, own = text_in(info.get("parentID")), text_in(info.get("id")) or path
    return Found(
        path,
        "opencode",
        text_in(info.get("directory")),
        at_ms=updated,
        session_id=parent or own,
        is_subagent=bool(parent),
        only=only,
    )


_FINDERS: dict[HostFormat, Callable[[Here], Iterator[Found]]] = {
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
            if isinstance(entry, Entry):
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
