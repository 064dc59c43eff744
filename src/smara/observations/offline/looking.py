"""What was looked at: files read, searches and whether they found something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smara.observations.models import Note
from smara.observations.offline import phrases
from smara.observations.offline.drafting import Scene, joined, make_note
from smara.observations.offline.exchanges import Call
from smara.observations.offline.paths import by_folder
from smara.observations.offline.shell import Command
from smara.observations.offline.tools import path_of
from smara.observations.offline.wording import clip

_NOTHING = (
    "No files found",
    "No matches found",
    "No results",
    "0 matches",
    "no matches",
    "No such file",
    "does not exist",
)
_NUMBERED = re.compile(r"\s{0,8}(\d{1,7})(?:→|\t|\|)")
_READING = frozenset({"cat", "head", "tail", "less", "sed", "bat", "nl"})
_SEARCHING = frozenset({"grep", "rg", "ag", "find", "fd", "git grep"})
_HOST_FOLDERS = ("/.claude/", "/.codex/", "/.cursor/")
_NOT_OF_THE_WORK = re.compile(r"/(?:tmp|dev|proc)/")
_NAME = re.compile(r"-i?(?:name|path)\s+(\S{1,90})")
_SOUGHT = re.compile(r"\s(?:\"([^\"]{1,120})\"|'([^']{1,120})'|([^-\s\d][^\s]{0,120}))")


@dataclass(slots=True)
class Looks:
    """Reads and searches of one stretch."""

    files: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    searches: dict[str, bool] = field(default_factory=dict)
    """What was searched for, and whether anything was found."""
    missing: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def read(self, scene: Scene, call: Call) -> None:
        """A file was opened."""
        path = scene.paths.short(path_of(call))
        if not path or is_of_host(path):
            return
        self.calls.append(call)
        if call.is_error:
            if any(map((call.output or "")[:300].__contains__, _NOTHING)):
                self.missing.append(path)
            return
        self.files[path] = self.files.get(path) or _range(call)

    def search(self, scene: Scene, call: Call) -> None:
        """Something was searched for with a tool."""
        pattern = call.argument("pattern", "query", "regex", "q", "glob_pattern")
        if pattern:
            self._searched(clip(scene.paths.shorten(pattern), 90), call)

    def command(self, scene: Scene, command: Command, call: Call) -> bool:
        """A command that only looks; returns whether it is worth telling."""
        program = command.key.split(" ")[0]
        words = [word.strip("'\"") for word in command.arguments]
        if program in _SEARCHING and (
            sought := _NAME.search(command.shown) or _SOUGHT.search(command.shown)
        ):
            self._searched(
                clip(next(group for group in sought.groups() if group).strip("'\""), 90), call
            )
            return True
        paths = [word for word in words if "." in word and "/" in word and not is_of_host(word)]
        if program in _READING and paths:
            self.files.setdefault(scene.paths.short(paths[-1]), None)
            self.calls.append(call)
            return True
        return False

    def _searched(self, pattern: str, call: Call) -> None:
        self.calls.append(call)
        output = (call.output or "")[:300]
        is_empty = call.is_answered and (
            not output.strip() or any(map(output.__contains__, _NOTHING))
        )
        self.searches[pattern] = self.searches.get(pattern, False) or not is_empty


def is_of_host(path: str) -> bool:
    """Whether a file belongs to the agent's host rather than to the work."""
    return bool(_NOT_OF_THE_WORK.match(path)) or any(map(path.__contains__, _HOST_FOLDERS))


def look_note(scene: Scene, looks: Looks, changed: Sequence[str]) -> Note | None:
    """One line for all that was looked at; files that were then changed are told there."""
    is_focus = scene.mode in ("explore", "research", "bug_fixing", "debugging")
    files = [_shown(path, looks.files[path]) for path in looks.files if path not in changed]
    not_found = [
        pattern for pattern, is_found in looks.searches.items() if not is_found
    ] + looks.missing
    pieces = [by_folder(files, 20 if is_focus else 14)] if files else []
    found = [pattern for pattern, is_found in looks.searches.items() if is_found]
    if found:
        pieces.append(f"{phrases.SEARCHED} {joined(found, 300 if is_focus else 160, ', ')}")
    if not_found:
        pieces.append(f"{phrases.FOUND_NOTHING}: {joined(not_found, 200, ', ')}")
    if not pieces:
        return None
    facts: dict[str, Any] = {}
    if scene.mode == "explore":
        facts = {"searchQueries": list(looks.searches)[:20], "notFound": not_found[:20]}
    text = f"{phrases.LOOKED} {'; '.join(pieces)}" if files else _capital(pieces)
    return make_note(
        scene,
        "medium" if is_focus else "low",
        "note",
        text=text,
        at=looks.calls[0].at,
        inputs=["tool"],
        seqs=[seq for call in looks.calls for seq in (call.seq, call.last_seq)],
        files=list(looks.files)[:40],
        lines=[number for path in looks.files for number in looks.files[path] or ()][:40],
        **facts,
    )


def _capital(pieces: list[str]) -> str:
    whole = "; ".join(pieces)
    return whole[:1].upper() + whole[1:]


def _shown(path: str, lines: tuple[int, int] | None) -> str:
    return f"{path}:{lines[0]}-{lines[1]}" if lines else path


def _range(call: Call) -> tuple[int, int] | None:
    """The lines that were read, when only a part of the file was asked for: as numbered in the
    result.
    """
    if not isinstance(call.arguments, dict) or not {
        "offset",
        "limit",
        "start_line",
        "view_range",
    } & set(call.arguments):
        return None
    lines = (call.output or "").strip("\n").split("\n", 1)
    last = (call.output or "").rstrip().rpartition("\n")[2]
    first_number, last_number = _NUMBERED.match(lines[0]), _NUMBERED.match(last)
    if not first_number or not last_number:
        return None
    return int(first_number[1]), int(last_number[1])
