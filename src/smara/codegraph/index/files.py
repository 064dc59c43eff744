"""Walk a tree's folders and list the files worth reading.

Every skipped entry is counted with its reason. Links are never followed.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from smara.codegraph.index import ignore
from smara.codegraph.index.tree_reader import NotRead, TreeReader
from smara.codegraph.language import kind_of
from smara.codegraph.models import SkipReason
from smara.core.paths import is_generated_folder, is_output_folder

MOST_BYTES = 1_000_000
"""A larger file is a dump, a bundle or somebody's data; a person's source file is smaller."""
MOST_DATA_BYTES = 200_000
MOST_FILES = 200_000
MOST_ENTRIES = 2_000_000
DEEPEST = 64
_LONGEST_PATH = 1_000


class FileEntry(NamedTuple):
    """A file that is worth reading: its size and time of change as the folder tells them."""

    size: int
    mtime_ns: int


@dataclass(slots=True)
class WalkResult:
    """The files of a tree by path, and how many entries were left out for which reason."""

    files: dict[str, FileEntry] = field(default_factory=dict)
    skipped: Counter[SkipReason] = field(default_factory=Counter)
    is_root_there: bool = True


@dataclass(frozen=True, slots=True)
class WalkFolder:
    """A folder yet to be listed, and the rules that hold in it."""

    path: str
    depth: int
    rules: Sequence[ignore.IgnoreRules]


class FileWalk:
    """One walk over a tree. ``tracked`` are the files git tracks, ``None`` where there is no
    git.
    """

    def __init__(
        self,
        reader: TreeReader,
        excludes: Sequence[str] = (),
        tracked: frozenset[str] | None = None,
    ) -> None:
        self._reader = reader
        self._tracked = tracked
        self._tracked_folders = _folders(tracked) if tracked else frozenset()
        spec = ignore.spec_of(excludes)
        self._base: tuple[ignore.IgnoreRules, ...] = (
            () if spec is None else (ignore.IgnoreRules("", spec),)
        )
        self._entries = 0

    def all(self) -> WalkResult:
        """Every file worth reading."""
        walked = WalkResult()
        waiting = [WalkFolder("", 0, self._base)]
        while waiting:
            waiting += self._list(waiting.pop(), walked)
        return walked

    def some(self, paths: Sequence[str]) -> WalkResult:
        """The files among some paths that a walk over everything would find; what is not there is
        passed over.
        """
        walked = WalkResult()
        for folder, names in _by_folder(paths).items():
            rules = self._rules_down_to(folder)
            if rules is None:
                walked.skipped["ignored"] += len(names)
                continue
            self._take(folder, names, rules, walked)
        return walked

    def _rules_down_to(self, folder: str) -> Sequence[ignore.IgnoreRules] | None:
        """The rules that hold in a folder; ``None`` when a walk would not go there."""
        rules: Sequence[ignore.IgnoreRules] = self._base
        above = ""
        steps = folder.split("/") if folder else []
        if len(steps) >= DEEPEST:
            return None
        for name in ("", *steps):
            path = f"{above}/{name}" if above else name
            if name and self._is_left_out(path, name, rules):
                return None
            inside = self._special_names(path)
            if inside is None or (name and self._is_foreign(path, name, inside)):
                return None
            rules = ignore.rules_in(self._reader, path, inside, above=rules)
            above = path
        return rules

    def _special_names(self, folder: str) -> frozenset[str] | None:
        try:
            with self._reader.listing(folder) as entries:
                return frozenset(entry.name for entry in entries if entry.name in _SPECIAL)
        except NotRead:
            return None

    def _list(self, folder: WalkFolder, walked: WalkResult) -> list[WalkFolder]:
        try:
            with self._reader.listing(folder.path) as listed:
                entries = []
                for entry in listed:
                    self._entries += 1
                    if self._entries > MOST_ENTRIES:
                        walked.skipped["too_many"] += 1
                        break
                    entries.append((entry.name, *_looked_at(entry)))
        except NotRead as error:
            walked.skipped[error.reason] += 1
            walked.is_root_there = bool(folder.path)
            return []
        names = {name for name, *_ in entries}
        if folder.path and self._is_foreign(folder.path, folder.path.rpartition("/")[2], names):
            walked.skipped["ignored"] += 1
            return []
        rules = ignore.rules_in(self._reader, folder.path, names, above=folder.rules)
        below = []
        for name, mode, found in sorted(entries, key=lambda entry: entry[0]):
            if name == ".git":
                continue  # git's own, and nothing that was left out of the code
            path = f"{folder.path}/{name}" if folder.path else name
            if stat.S_ISDIR(mode):
                reason = self._reason_against_folder(path, name, folder.depth, rules=rules)
                if reason is None:
                    below.append(WalkFolder(path, folder.depth + 1, rules))
                else:
                    walked.skipped[reason] += 1
            else:
                self._consider(path, mode, found, rules=rules, walked=walked)
        return below

    def _take(
        self,
        folder: str,
        names: Sequence[str],
        rules: Sequence[ignore.IgnoreRules],
        walked: WalkResult,
    ) -> None:
        wanted = frozenset(names)
        try:
            with self._reader.listing(folder) as listed:
                entries = [
                    (entry.name, *_looked_at(entry)) for entry in listed if entry.name in wanted
                ]
        except NotRead:
            return
        for name, mode, found in entries:
            if not stat.S_ISDIR(mode):
                self._consider(
                    f"{folder}/{name}" if folder else name, mode, found, rules=rules, walked=walked
                )

    def _reason_against_folder(
        self, path: str, name: str, depth: int, rules: Sequence[ignore.IgnoreRules]
    ) -> SkipReason | None:
        if not is_sayable(path):
            return "unreadable"
        if depth + 1 >= DEEPEST:
            return "too_many"
        return "ignored" if self._is_left_out(path, name, rules) else None

    def _is_left_out(self, path: str, name: str, rules: Sequence[ignore.IgnoreRules]) -> bool:
        if is_generated_folder(name):
            return True
        if path in self._tracked_folders:
            return False
        return is_output_folder(name) or ignore.is_ignored(rules, path, is_folder=True)

    def _is_foreign(self, path: str, name: str, inside: set[str] | frozenset[str]) -> bool:
        """Whether a folder is a machine's, or another worktree: a tree of its own, with all of
        these files again.
        """
        if ignore.is_made_folder(name, inside):
            return path not in self._tracked_folders or "pyvenv.cfg" in inside
        if ".git" not in inside:
            return False
        try:
            marker = self._reader.read(f"{path}/.git", 4_096).data
        except NotRead:
            return False
        return marker.startswith(b"gitdir:") and b"/worktrees/" in marker.replace(b"\\", b"/")

    def _consider(
        self,
        path: str,
        mode: int,
        found: FileEntry,
        rules: Sequence[ignore.IgnoreRules],
        walked: WalkResult,
    ) -> None:
        reason = self._reason_against(path, mode, found, rules=rules)
        if reason is None and len(walked.files) >= MOST_FILES:
            reason = "too_many"
        if reason is None:
            walked.files[path] = found
        else:
            walked.skipped[reason] += 1

    def _reason_against(
        self, path: str, mode: int, found: FileEntry, rules: Sequence[ignore.IgnoreRules]
    ) -> SkipReason | None:
        if stat.S_ISLNK(mode):
            return "outside" if self._reader.leads_outside(path) else "not_a_file"
        if not stat.S_ISREG(mode):
            return "not_a_file" if mode else "unreadable"
        if not is_sayable(path):
            return "unreadable"
        if ignore.holds_secrets(path):
            return "secret"
        if not (self._tracked and path in self._tracked) and ignore.is_ignored(
            rules, path, is_folder=False
        ):
            return "ignored"
        kind = kind_of(path)
        if kind not in ("code", "prose", "data", None):
            return kind  # type: ignore[return-value]  # what is no kind is a reason
        most = MOST_BYTES if kind == "code" else MOST_DATA_BYTES
        return "too_big" if found.size > most else None


_SPECIAL = frozenset({*ignore.RULE_FILES, ".git", "pyvenv.cfg", "CACHEDIR.TAG"})


def is_sayable(path: str) -> bool:
    """Whether a path can be stored and shown: control characters in a name are somebody's joke, or
    an attack.
    """
    return (
        len(path) <= _LONGEST_PATH and path.isprintable()
    )  # half a surrogate is not printable either


def _looked_at(entry: object) -> tuple[int, FileEntry]:
    try:
        facts = entry.stat(follow_symlinks=False)  # type: ignore[attr-defined]
    except OSError:
        return 0, FileEntry(0, 0)
    return facts.st_mode, FileEntry(facts.st_size, facts.st_mtime_ns)


def _folders(paths: frozenset[str]) -> frozenset[str]:
    """Every folder that one of the files lies in."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(found)


def _by_folder(paths: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, []).append(name)
    return found
