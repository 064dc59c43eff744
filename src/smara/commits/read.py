"""Read commits from git: messages and files, then functions and lines.

Nothing but the objects of the repository is read. A page of commits is one call of git, so twenty
thousand messages take seconds; comparing contents costs more and is done in rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from smara.commits.edit import is_definition, name_of
from smara.commits.message import read_commit
from smara.commits.models import Commit
from smara.core.git import git_text
from smara.core.startup.regex import re, regex

MOST_FILES = 100
"""The files of one commit that are kept; a commit of more changes everything."""
PAGE = 400
_DEADLINE_SECONDS = 60.0
_RECORD, _FIELD, _END = "\x1e", "\x1f", "\x1d"
_HEAD = f"--format={_RECORD}%H{_FIELD}%ct{_FIELD}%an{_FIELD}%B{_END}"
_PLAIN = ("--no-color", "--no-notes", "--no-walk=unsorted", "-M")
_PATCH = (
    "--format=" + _RECORD + "%H" + _END, "-p", "-U0", "--src-prefix=a/", "--dst-prefix=b/",
    "--diff-algorithm=histogram", "--no-indent-heuristic",
)  # fmt: skip
_LONGEST_MESSAGE = 20_000
_HUNK = regex(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$")


class Hunk(NamedTuple):
    """A run of lines that a commit replaced in a file."""

    start: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    function: str


class FilePatch(NamedTuple):
    """The changes of one commit to one file."""

    sha: str
    old_path: str
    path: str
    hunks: tuple[Hunk, ...]


def new_shas(root: str, most: int, known_head: str | None = None) -> list[str]:
    """Return the commits that lead to the checked-out one, newest first.

    Args:
        root: A folder of the repository.
        most: The limit.
        known_head: Commits that lead to this one are left out.
    """
    until = () if known_head is None else (f"^{known_head}",)
    options = ("--no-merges", f"--max-count={most}")
    text = _git(root, "rev-list", *options, "HEAD", *until, "--")
    return text.split() if text else []


def commits_of(root: str, shas: Sequence[str]) -> Iterator[list[Commit]]:
    """Yield pages of commits with their messages and files."""
    for start in range(0, len(shas), PAGE):
        some = shas[start : start + PAGE]
        # A clone without all contents cannot tell renames; the rest of its history is there.
        ways = (_PLAIN, (*_PLAIN, "--no-renames"))
        tries = (_git(root, "log", *way, "--raw", "-z", _HEAD, *some, "--") for way in ways)
        text = next(filter(None, tries), None)
        yield [
            commit
            for record in (text or "").split(_RECORD)[1:]
            if (commit := _commit(record)) is not None
        ]


def _commit(record: str) -> Commit | None:
    head, _, rest = record.partition(_END)
    sha, at, author, message = ([*head.split(_FIELD, 3), "", "", ""])[:4]
    if not at.isdigit():
        return None
    fields = rest.strip("\n\0").split("\0")
    files: list[str] = []
    renames: list[tuple[str, str]] = []
    place = 0
    while place + 1 < len(fields):
        status = fields[place].rpartition(" ")[2]
        path = fields[place + 1]
        if status[:1] in ("R", "C") and place + 2 < len(fields):
            path = fields[place + 2]
            if status[0] == "R":
                renames.append((fields[place + 1], path))
            place += 1
        place += 2
        files.append(path)
    text = read_commit(message[:_LONGEST_MESSAGE])
    first, _, body = message[:_LONGEST_MESSAGE].strip().partition("\n")
    return Commit(
        sha,
        int(at) * 1000,
        author.strip(),
        first.strip(),
        body.strip(),
        reason=" ".join(text.sentences),
        files=tuple(files[:MOST_FILES]),
        renames=tuple(renames[:MOST_FILES]),
    )


def patches_of(root: str, shas: Sequence[str], paths: Sequence[str] = ()) -> Iterator[FilePatch]:
    """Yield the patches of commits, in the order given.

    Args:
        root: A folder of the repository.
        shas: The commits.
        paths: Only these files.
    """
    for start in range(0, len(shas), PAGE // 4):
        some = shas[start : start + PAGE // 4]
        text = _git(root, "log", *_PLAIN, *_PATCH, *some, "--", *paths)
        for record in (text or "").split(_RECORD)[1:]:
            sha, _, patch = record.partition(_END)
            yield from _file_patches(sha, patch)


def _file_patches(sha: str, patch: str) -> Iterator[FilePatch]:
    for text in re.split(r"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        old = new = ""
        hunks: list[Hunk] = []
        removed: list[str] = []
        added: list[str] = []
        start, left, function = 0, 0, ""
        for line in text.split("\n"):
            if left > 0 and line[:1] in ("+", "-"):
                (added if line[0] == "+" else removed).append(line[1:])
                left -= 1
                if left == 0:
                    hunks.append(Hunk(start, tuple(removed), tuple(added), function))
                continue
            match = _HUNK.match(line)
            if match is not None:
                removed, added = [], []
                start = int(match[1])
                left = int(match[2] or 1) + int(match[4] or 1)
                function = name_of(match[5])
            elif line.startswith("rename from "):
                old = line.removeprefix("rename from ")
            elif line.startswith("rename to "):
                new = line.removeprefix("rename to ")
            elif line.startswith("--- a/"):
                old = line.removeprefix("--- a/").rstrip("\t")
            elif line.startswith("+++ b/"):
                new = line.removeprefix("+++ b/").rstrip("\t")
        if old or new:
            yield FilePatch(sha, old or new, new, tuple(hunks))


def functions_of(patches: Sequence[FilePatch]) -> tuple[str, ...]:
    """Return the names of the functions that a commit's patches touch."""
    names: dict[str, None] = {}
    for hunk in (hunk for patch in patches for hunk in patch.hunks):
        defined = (name_of(line) for line in (*hunk.added, *hunk.removed) if is_definition(line))
        names.update((name, None) for name in (hunk.function, *defined) if name)
    return tuple(names)


def _git(root: str, *arguments: str) -> str | None:
    return git_text(root, *arguments, timeout_seconds=_DEADLINE_SECONDS)
