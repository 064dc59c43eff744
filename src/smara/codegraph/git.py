"""Read a tree's branch, commits, tracked files and earlier versions from git.

Branch and commit come from git's own files; the rest from short git calls that never write. Each
call has a time limit and a size limit. Nothing that a repository configures is run: no hooks, no
monitors, no external diffs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from smara.core.files import read_regular
from smara.core.git import ask_git, find_repository, git_text, is_blob
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import regex
from smara.secrets import redact

_SMALL = 4_096
_PACKED = 8 * 1024 * 1024
_BRANCH = regex(r"ref: refs/heads/(\S{1,250})")
_COMMIT = regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class GitHead(NamedTuple):
    """The commit and branch that are checked out.

    Both are ``None`` outside of git.

    A detached head has no branch.
    """

    branch: str | None = None
    commit: str | None = None


class GitFolder(NamedTuple):
    """Git's folder of a working folder, and the one worktrees share."""

    own: str
    common: str


def git_folder(root: str) -> GitFolder | None:
    """Git's folder of the repository that holds ``root``."""
    if (found := find_repository(root)) is None:
        return None
    marker = os.path.join(found.root, ".git")
    if os.path.isdir(marker):
        return GitFolder(marker, marker)
    pointed = _text(marker, _SMALL).removeprefix("gitdir:").strip()
    return GitFolder(os.path.normpath(os.path.join(found.root, pointed)), found.common_dir)


def head_of(root: str) -> GitHead:
    """Return the branch and the commit that are checked out."""
    if (folder := git_folder(root)) is None:
        return GitHead()
    text = _text(os.path.join(folder.own, "HEAD"), _SMALL)
    if _COMMIT.fullmatch(text):
        return GitHead(None, text)
    if (match := _BRANCH.fullmatch(text)) is None:
        return GitHead()
    name = f"refs/heads/{match[1]}"
    if ".." in name:
        return GitHead(redact(match[1]).text)
    loose = [os.path.join(base, *name.split("/")) for base in (folder.common, folder.own)]
    commits = [_text(path, _SMALL) for path in loose]
    packed = _text(os.path.join(folder.common, "packed-refs"), _PACKED).splitlines()
    commits += [line.removesuffix(f" {name}") for line in packed if line.endswith(f" {name}")]
    return GitHead(redact(match[1]).text, next(filter(_COMMIT.fullmatch, commits), None))


def exclude_lines(root: str) -> list[str]:
    """Return the patterns of ``.git/info/exclude``."""
    folder = git_folder(root)
    path = os.path.join(folder.common, "info", "exclude") if folder else ""
    return _text(path, _PACKED).splitlines()


def tracked_paths(root: str) -> frozenset[str] | None:
    """Return the files that git tracks below ``root``.

    ``None`` when there is no git to ask.
    """
    if git_folder(root) is None:
        return None
    answer = ask_git(root, "ls-files", "-z", timeout_seconds=20.0)
    if answer is None or answer.code:
        return None
    names = answer.output.decode("utf-8", "surrogateescape").split("\0")
    return frozenset(filter(None, names))


def index_stamp(root: str) -> tuple[int, int] | None:
    """Return what changes when git begins or ends to track a file."""
    folder = git_folder(root)
    try:
        facts = os.stat(os.path.join(folder.own, "index")) if folder else None
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_size) if facts else None


def _text(path: str, most: int) -> str:
    with suppress(OSError, ValueError):
        return read_regular(path, most).decode("utf-8", "replace").strip()
    return ""


MOST_COMMITS = 5_000
DEADLINE_SECONDS = 60.0
_RECORD, _FIELD = "\x1e", "\x1f"


class CommittedFiles(NamedTuple):
    """The files that one commit changed, merges apart.

    ``renamed`` are pairs of an old and a new path; the new ones are changed too.
    """

    sha: str
    at_ms: int
    author: str
    changed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...] = ()


def commits(root: str, since: str | None = None, limit: int = MOST_COMMITS) -> list[CommittedFiles]:
    """Return the folder's last commits, oldest first; empty without git.

    Paths are relative to the folder.
    """
    command = (
        "log",
        "--no-merges",
        "--name-status",
        "--find-renames",
        "-z",
        "--relative",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        f"--max-count={limit}",
        f"--format={_RECORD}%H{_FIELD}%ct{_FIELD}%ae{_FIELD}",
        f"{since}..HEAD" if since else "HEAD",
        "--",
    )
    text = git_text(root, *command, timeout_seconds=DEADLINE_SECONDS)
    return list(parse_commits(text or ""))[::-1]


def parse_commits(text: str) -> Iterator[CommittedFiles]:
    """Yield the commits of a log, in its order.

    What cannot be read is left out.
    """
    for record in text.split(_RECORD)[1:]:
        head = record.split(_FIELD, 3)
        if len(head) != 4 or not head[1].isdigit():
            continue
        sha, at, author, rest = head
        # ``M path``, ``R100 old new`` and so on, each field by itself.
        fields = iter([each for each in rest.lstrip("\x00\n").split("\x00") if each])
        changed: dict[str, None] = {}
        renamed: list[tuple[str, str]] = []
        for status in fields:
            count = 2 if status.strip()[:1] in ("R", "C") else 1
            paths = list(islice(fields, count))
            if len(paths) < count or any("\ufffd" in path for path in paths):
                continue
            if status.strip().startswith("R"):
                renamed.append((paths[0], paths[1]))
            changed[paths[-1]] = None
        at_ms = int(at) * 1000
        yield CommittedFiles(sha, at_ms, author.casefold(), tuple(changed), renamed=tuple(renamed))


SECONDS = 5.0
MOST_BYTES = 2_000_000
_MOST_ANSWERS = 512
_COMMIT_NAME = regex(r"[0-9a-fA-F]{4,64}")


@dataclass(frozen=True, eq=False)
class GitFiles:
    """The past of one tree.

    Of a tree without git, nothing is known.
    """

    root: str
    seconds: float = SECONDS
    _answers: dict[tuple[str, ...], bytes | None] = field(
        default_factory=dict, init=False, repr=False
    )

    def head(self) -> str | None:
        """Return the commit checked out now; branches are switched."""
        return head_of(self.root).commit

    def commit(self, name: str | None) -> str | None:
        """Return the full hash of an abbreviated commit, if it exists."""
        if name is None or not _COMMIT_NAME.fullmatch(name):
            return None
        command = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return self._line(self._cached(*command))

    def commit_at(self, at_ms: int) -> str | None:
        """Return this branch's newest commit at a moment."""
        return self._line(self._git("rev-list", "-1", f"--before={at_ms // 1000}", "HEAD"))

    def read(self, commit: str, path: str) -> bytes | None:
        """Return a file as it was at a commit.

        ``None`` when it was not there, or is too large to be read.
        """
        return self._cached("cat-file", "blob", f"{commit}:./{path}")

    def renamed_to(self, commit: str, path: str) -> str | None:
        """Return a file's present path by git, with its changes."""
        if (head := self.head()) is None:
            return None
        options = ("-r", "--name-status", "-M", "-l400", "--diff-filter=R", "-z", "--relative")
        output = self._cached("diff-tree", *options, commit, head) or b""
        pieces = output.decode("utf-8", "surrogateescape").split("\0")
        return dict(zip(pieces[1::3], pieces[2::3], strict=False)).get(path)

    def changed_since(self, path: str, commit: str) -> bool | None:
        """Return True if a file differs from its content at a commit."""
        if (whole := self.commit(commit)) is None:
            return None
        place = os.path.join(self.root, path)
        blob = self._line(self._git("rev-parse", "--verify", "--quiet", f"{whole}:./{path}"))
        return os.path.lexists(place) if blob is None else not is_blob(place, blob)

    def knows(self, path: str) -> bool | None:
        """Return True if the checked-out commit has this file.

        To ask the whole history would take seconds in a large one.
        """
        if (head := self.head()) is None:
            return None
        return self._cached("cat-file", "-t", f"{head}:./{path}") is not None

    def ending(self, name: str) -> tuple[str, ...]:
        """Return the tracked files whose path ends like this."""
        output = self._git("ls-files", "-z", "--", f":(glob)**/{name}") or b""
        return tuple(filter(None, output.decode("utf-8", "surrogateescape").split("\0")))

    def modified_at(self, path: str) -> int | None:
        """Return when a commit last changed a file (ms)."""
        output = self._line(self._git("log", "-1", "--format=%ct", "HEAD", "--", path))
        return int(output) * 1000 if output is not None and output.isdecimal() else None

    def _cached(self, *arguments: str) -> bytes | None:
        # Not `lru_cache` over the bound method: its circle would wait for the collector.
        with suppress(KeyError):
            return self._answers[arguments]
        answer = self._git(*arguments)
        if len(self._answers) >= _MOST_ANSWERS:
            self._answers.clear()
        self._answers[arguments] = answer
        return answer

    def _git(self, *arguments: str) -> bytes | None:
        answer = ask_git(self.root, *arguments, timeout_seconds=self.seconds)
        is_usable = answer and answer.code == 0 and len(answer.output) <= MOST_BYTES
        return answer.output if answer and is_usable else None

    def _line(self, output: bytes | None) -> str | None:
        return (output or b"").decode("utf-8", "replace").strip() or None
