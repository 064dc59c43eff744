"""What git says of past commits: when, by whom, and which files each changed.

Asked once per run, with a limit on commits and a deadline. Nothing that a repository's
configuration names is run: no hooks, no monitors, no external diffs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from smara.core.git import git_text

MOST_COMMITS = 5_000
_DEADLINE_SECONDS = 60.0
_RECORD, _FIELD = "\x1e", "\x1f"


class Commit(NamedTuple):
    """A commit that is not a merge. ``renamed`` are pairs of an old and a new path; the new ones
    are changed too.
    """

    sha: str
    at_ms: int
    author: str
    changed: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...] = ()


def checked_out(root: str) -> str | None:
    """The commit that is checked out, as git itself tells; ``None`` without git or without one."""
    return (_git(root, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip() or None


def is_ancestor(root: str, older: str, newer: str) -> bool:
    """Whether a commit lies in the past of another; not after a rebase."""
    return _git(root, "merge-base", "--is-ancestor", older, newer) is not None


def commits(root: str, since: str | None = None, limit: int = MOST_COMMITS) -> list[Commit]:
    """The last commits that touch the folder, the oldest first, their paths as seen from it. Empty
    without git.
    """
    text = _git(
        root,
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
    return list(parse(text or ""))[::-1]


def parse(text: str) -> Iterator[Commit]:
    """The commits of a log, in its order; what cannot be read is left out."""
    for record in text.split(_RECORD)[1:]:
        head = record.split(_FIELD, 3)
        if len(head) != 4 or not head[1].isdigit():
            continue
        sha, at, author, rest = head
        changed, renamed = _files([each for each in rest.lstrip("\x00\n").split("\x00") if each])
        yield Commit(sha, int(at) * 1000, author.casefold(), changed=changed, renamed=renamed)


def _files(fields: list[str]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Changed and renamed files of ``M path``, ``R100 old new`` and so on, each field by itself."""
    changed: dict[str, None] = {}
    renamed: list[tuple[str, str]] = []
    at = 0
    while at < len(fields):
        status = fields[at].strip()
        count = 2 if status[:1] in ("R", "C") else 1
        paths = fields[at + 1 : at + 1 + count]
        at += 1 + count
        if len(paths) < count or any("\ufffd" in path for path in paths):
            continue
        if status[:1] == "R":
            renamed.append((paths[0], paths[1]))
        changed[paths[-1]] = None
    return tuple(changed), tuple(renamed)


def _git(root: str, *arguments: str) -> str | None:
    """What git answers, or ``None`` when it fails or takes too long."""
    return git_text(root, *arguments, timeout_seconds=_DEADLINE_SECONDS)
