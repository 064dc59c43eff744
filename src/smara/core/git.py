"""Asking git, and nothing but git.

A repository's configuration may name programs: a pager, a monitor of the file system, drivers of
differences, hooks. None of them is run here, nothing is written, and nobody is asked for a
password.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from smara.config import environment_for_git
from smara.environment import patience

_SAFE = (
    "--no-optional-locks", "--no-pager", "-c", "core.fsmonitor=false", "-c",
    f"core.hooksPath={os.devnull}",
    "-c", "core.untrackedCache=false", "-c", "core.quotePath=false", "-c",
    "log.showSignature=false",
    "-c", "diff.renameLimit=1000",
)  # fmt: skip


class GitAnswer(NamedTuple):
    """What git said, and the code it left with."""

    code: int
    output: bytes

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")


def ask_git(folder: str, *arguments: str, timeout_seconds: float = 5.0) -> GitAnswer | None:
    """What git answers in a folder; ``None`` where there is no git, or when it takes too long."""
    import subprocess

    guard = ("--no-ext-diff", "--no-textconv") if arguments[0] == "diff" else ()
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


def git_text(folder: str, *arguments: str, timeout_seconds: float = 5.0) -> str | None:
    """What git answers as text; ``None`` when it fails, too."""
    answer = ask_git(folder, *arguments, timeout_seconds=timeout_seconds)
    return answer.text if answer is not None and answer.code == 0 else None
