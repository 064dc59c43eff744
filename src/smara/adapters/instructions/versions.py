"""At which commit the lines of a file can be seen as they are now."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable


def commits_of(root: str, paths: Iterable[str]) -> dict[str, str]:
    """The commit that holds each file as it stands; a changed or untracked file has none.

    Nothing for a folder that is no git repository, nor where there is no git.
    """
    names = list(paths)
    head = _git(root, "rev-parse", "--verify", "-q", "HEAD").strip()
    if not head or not names:
        return {}
    tracked = set(_git(root, "ls-files", "-z", "--", *names).split("\0"))
    changed = {line[3:] for line in _git(root, "status", "--porcelain=v1", "-z", "--", *names).split("\0")}
    return {name: head for name in names if name in tracked and name not in changed}


def _git(root: str, *arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            ["git", "-C", root, *arguments],  # noqa: S607 - git is where the user has it
            capture_output=True, timeout=10, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
