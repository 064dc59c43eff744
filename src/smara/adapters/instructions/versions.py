"""At which commit the lines of a file can be seen as they are now."""

from __future__ import annotations

from collections.abc import Iterable

from smara.core.git import git_text


def commits_of(root: str, paths: Iterable[str]) -> dict[str, str]:
    """The commit that holds each file as it stands; a changed or untracked file has none.

    Nothing for a folder that is no git repository, nor where there is no git.
    """
    names = list(paths)
    head = _git(root, "rev-parse", "--verify", "-q", "HEAD").strip()
    if not head or not names:
        return {}
    tracked = set(_git(root, "ls-files", "-z", "--", *names).split("\0"))
    changed = {
        line[3:] for line in _git(root, "status", "--porcelain=v1", "-z", "--", *names).split("\0")
    }
    return {name: head for name in names if name in tracked and name not in changed}


def _git(root: str, *arguments: str) -> str:
    return git_text(root, *arguments, timeout_seconds=10) or ""
