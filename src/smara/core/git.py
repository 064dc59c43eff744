"""Run git commands and find the repository of a folder.

A repository's own configuration may name programs: hooks, filters, helpers, transports. None of
them is run here: only commands that read the index and the objects are allowed, never one that
compares the working tree, and no object is fetched. Worktrees of one repository share its common
directory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from smara.config import environment_for_git
from smara.core.files import read_regular
from smara.core.startup.record import dataclass
from smara.core.startup.regex import regex
from smara.environment import patience

_SAFE = (
    "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c",
    f"core.hooksPath={os.devnull}",
    "-c", "core.untrackedCache=false", "-c", "core.quotePath=false", "-c",
    "log.showSignature=false",
    "-c", "diff.renameLimit=1000", "-c", "protocol.allow=never",
)  # fmt: skip
_COMMANDS = frozenset(
    {
        "cat-file",
        "config",
        "diff-tree",
        "log",
        "ls-files",
        "ls-tree",
        "merge-base",
        "rev-list",
        "rev-parse",
    }
)
"""What is asked of git: none of these reads a file of the working tree, so none runs a filter."""


_MOST_COMPARED = 64 << 20
_GIT_FILES = ("HEAD", "config", "index", "packed-refs", "shallow", "info/exclude")
_REMOTE_URL = regex(r"(?!file:)[\w+.-]+://(?:[^/]*@)?(\[[^]/]*\]|[^:/]*)(?::\d*)?/(.*)")
_REMOTE_SHORT = regex(r"(?:[^@/\\]*@)?([^:/\\@]{2,}):(?!//)(.*)")


NO_GIT = (
    "git is not on the PATH, so the history of this repository cannot be read. Install git, or add "
    "its folder to the PATH."
)


class GitAnswer(NamedTuple):
    """Git's output and exit code."""

    code: int
    output: bytes

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


def ask_git(folder: str, *arguments: str, timeout_seconds: float = 5.0) -> GitAnswer | None:
    """Run git in a folder; ``None`` without git or in time."""
    import subprocess

    if arguments[0] not in _COMMANDS:
        raise ValueError(f"git {arguments[0]} may run programs that a repository names")
    if not _is_readable(folder):
        return None
    guard = ("--no-ext-diff", "--no-textconv") if arguments[0] in ("diff-tree", "log") else ()
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            ["git", *_SAFE, arguments[0], *guard, *arguments[1:]],  # noqa: S607 - git is where the user has it
            cwd=folder,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            env=environment_for_git(),
            timeout=timeout_seconds * patience(),
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return GitAnswer(done.returncode, done.stdout)


def _is_readable(folder: str) -> bool:
    """Return False if git would wait for ever on a pipe among its own files."""
    start = Path(os.path.abspath(folder))
    places = (candidate / ".git" for candidate in (start, *start.parents))
    marker = next(filter(os.path.lexists, places), None)
    names = [marker / name for name in _GIT_FILES] if marker and os.path.isdir(marker) else [marker]
    return all(not each or os.path.isfile(each) or not os.path.exists(each) for each in names)


def git_text(folder: str, *arguments: str, timeout_seconds: float = 5.0) -> str | None:
    """Run git and return its text; ``None`` on failure too."""
    answer = ask_git(folder, *arguments, timeout_seconds=timeout_seconds)
    return answer.text if answer is not None and answer.code == 0 else None


def is_git_missing() -> bool:
    """Return True in a repository whose git cannot be run."""
    import shutil  # several milliseconds, and hooks load this module

    return shutil.which("git") is None and find_repository(os.getcwd()) is not None


def is_ancestor(folder: str, older: str, newer: str, timeout_seconds: float = 60.0) -> bool:
    """Return True if a commit lies in the past of another.

    Not after a rebase.
    """
    command = ("merge-base", "--is-ancestor", older, newer)
    return git_text(folder, *command, timeout_seconds=timeout_seconds) is not None


def is_blob(path: str, blob: str) -> bool:
    """Return True if a file holds what a blob of git holds.

    Lines may end either way. Compared here and not by git, which would run the filters that a
    repository names.

    Args:
        path: The file.
        blob: The blob's name, by SHA-1 or SHA-256.
    """
    import hashlib

    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            data = os.fsencode(os.readlink(path))  # git keeps a link as the path it leads to
        elif stat.S_ISREG(mode):  # a pipe or a device would be waited for
            data = read_regular(path, _MOST_COMPARED)
        else:
            return False
    except OSError:
        return False
    algorithm = "sha256" if len(blob) == 64 else "sha1"
    return any(
        hashlib.new(algorithm, b"blob %d\0" % len(each) + each, usedforsecurity=False).hexdigest()
        == blob
        for each in (data, data.replace(b"\r\n", b"\n"))
    )


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository: common directory, root commits, remote."""

    common_dir: str
    root: str

    @property
    def name(self) -> str:
        """The folder's name, for people to read."""
        folder = Path(self.common_dir)
        return (folder.parent if folder.name == ".git" else folder).name.removesuffix(
            ".git"
        ) or "project"

    @property
    def is_shallow(self) -> bool:
        """True if old commits, and so the root, were left out."""
        return os.path.exists(os.path.join(self.common_dir, "shallow"))

    @property
    def root_commits(self) -> tuple[str, ...]:
        """The root commits of every branch, oldest last.

        None in a shallow clone. Orphan branches and joined histories have several.
        """
        if self.is_shallow:
            return ()
        for refs in (("--branches", "--remotes"), ("HEAD",)):  # no stash: it has a root of its own
            found = git_text(
                self.common_dir,
                *("rev-list", "--max-parents=0", "--date-order", *refs),
                timeout_seconds=20.0,
            )
            if found:
                return tuple(found.split())
        return ()

    @property
    def head(self) -> str | None:
        """The commit that is checked out; ``None`` before the first."""
        found = git_text(self.common_dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return (found or "").strip() or None

    def has_commit(self, commit: str) -> bool:
        """Return True if the repository holds a commit."""
        answer = ask_git(self.common_dir, "cat-file", "-e", commit)
        return answer is not None and answer.code == 0

    @property
    def remote(self) -> str | None:
        """The address of ``origin`` or of the only remote, normalized."""
        found = git_text(self.common_dir, "config", "--get-regexp", r"^remote\..*\.url$") or ""
        urls = dict(line.split(" ", 1) for line in found.splitlines() if " " in line)
        only = next(iter(urls.values())) if len(urls) == 1 else None
        return normalize_remote(urls.get("remote.origin.url") or only or "")

    @property
    def birth(self) -> str | None:
        """A mark that a later repository at its path does not have."""
        made = _stat(self.common_dir, "description")[1]  # written once, by `git init` or `clone`
        return f"{_stat(self.common_dir)[0]}.{made}" if made else None

    @property
    def made_at_ms(self) -> int:
        """The time of `git init` or `git clone`; 0 if unknown."""
        return _stat(self.common_dir, "description")[1] // 1_000_000

    @property
    def stamp(self) -> str:
        """The state by which the same repository is known without asking git."""
        inode, _, changed = _stat(self.common_dir, "config")
        return f"{self.birth}/{inode}.{changed}{'s' * self.is_shallow}"


def _stat(*path: str) -> tuple[int, int, int]:
    """Return a file's number, and when its content and its entry changed; zeros without it."""
    try:
        found = os.stat(os.path.join(*path))
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def normalize_remote(url: str) -> str | None:
    """Return a remote's host and path, however it is reached.

    Protocol, user, password, port, letters and the ending do not tell repositories apart.

    >>> normalize_remote("git@GitHub.com:Ann/app.git"), normalize_remote("https://x:y@github.com/ann/App/")
    ('github.com/ann/app', 'github.com/ann/app')
    >>> normalize_remote("ssh://git@host:2222/~ann/app.git"), normalize_remote("file:///srv/app.git")
    ('host/~ann/app', '/srv/app')
    """
    place = url.strip()
    found = _REMOTE_URL.fullmatch(place) or _REMOTE_SHORT.fullmatch(place)
    if found is not None:
        place = f"{found[1]}/{found[2].lstrip('/')}".casefold()
    return place.removeprefix("file://").rstrip("/").removesuffix(".git").rstrip("/") or None


def find_repository(start: str | os.PathLike[str]) -> Repository | None:
    """Return the repository that holds a folder, or ``None``.

    A folder that cannot be read holds none.
    """
    folder = Path(os.path.abspath(start))
    for candidate in (folder, *folder.parents):
        marker = candidate / ".git"
        if os.path.isdir(marker):
            return Repository(os.path.realpath(marker), str(candidate))
        if os.path.isfile(marker):
            common = _common_dir_of_worktree(marker)
            if common:
                return Repository(common, str(candidate))
    return None


def _common_dir_of_worktree(marker: Path) -> str | None:
    """Follow ``gitdir: …`` and then ``commondir``, as git does for worktrees and submodules.

    Anyone can write such a file and name another's repository in it. So the repository must know
    the folder: a worktree by the path that it notes, a submodule by its setting; a ``.git`` folder
    belongs to the folder around it.
    """
    try:
        text = _text(marker).strip()
        if not text.startswith("gitdir:"):
            return None
        git_dir = marker.parent / text.removeprefix("gitdir:").strip()
        pointer, back = git_dir / "commondir", git_dir / "gitdir"
        if pointer.is_file():
            noted = _text(back).strip()
            place = os.path.realpath(git_dir / noted)
            # One that was moved by hand is noted where it was, and nothing is there any more.
            if os.path.exists(place) and place != os.path.realpath(marker):
                return None
            return os.path.realpath(git_dir / _text(pointer).strip())
        worktree = _setting(git_dir / "config", "worktree")
        if worktree is not None:
            is_ours = os.path.realpath(git_dir / worktree) == os.path.realpath(marker.parent)
            return os.path.realpath(git_dir) if is_ours else None
        return None if git_dir.resolve().name == ".git" else os.path.realpath(git_dir)
    except (OSError, ValueError):
        return None


def _setting(config: Path, name: str) -> str | None:
    """Return a setting of a repository's ``[core]``, without asking git."""
    section = ""
    for line in _text(config).splitlines():
        key, _, value = line.strip().partition("=")
        if line.strip().startswith("["):
            section = line.strip().strip("[]").lower()
        elif section == "core" and key.strip().lower() == name:
            return value.strip().strip('"')
    return None


def _text(path: Path) -> str:
    return read_regular(path).decode("utf-8", "replace")
