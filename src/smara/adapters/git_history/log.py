"""What git tells of past commits: messages first, files only of those commits that have something
to say.

Comparing trees is what costs in a long history, so it is done for candidates alone. Everything is
asked in pages, each with a deadline, and nothing that the repository's configuration names is run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from smara.adapters.git_history.models import PastCommit
from smara.core.git import git_text

Progress = Callable[[int, int], None]

PAGE = 2_000
_AT_ONCE = 200
_DEADLINE_SECONDS = 60.0
_RECORD, _FIELD = "\x1e", "\x1f"


def head_of(root: str) -> str | None:
    """The commit that is checked out; ``None`` without git, a repository or a commit."""
    return (_git(root, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip() or None


def count_of(root: str, head: str, most: int) -> int:
    """How many commits there are to read, at most so many."""
    text = _git(root, "rev-list", "--no-merges", "--count", f"--max-count={most}", head)
    return int(text) if text and text.strip().isdigit() else 0


def past_commits(
    root: str, head: str, most: int, progress: Progress | None = None
) -> Iterator[PastCommit]:
    """The last commits that are no merges, the newest first."""
    total = count_of(root, head, most) if progress else most
    read = 0
    while read < most:
        wanted = min(PAGE, most - read)
        text = _git(
            root,
            "log",
            "--no-merges",
            "--no-color",
            "--no-ext-diff",
            "--no-notes",
            f"--skip={read}",
            f"--max-count={wanted}",
            f"--format={_RECORD}%H{_FIELD}%ct{_FIELD}%ae{_FIELD}%B",
            head,
            "--",
        )
        page = list(_parsed(text or ""))
        yield from page
        read += len(page)
        if progress:
            progress(min(read, total), max(total, 1))
        if len(page) < wanted:
            return


def files_of(root: str, shas: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The files that some commits changed, by commit, as seen from the folder."""
    found: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(shas), _AT_ONCE):
        text = _git(
            root,
            "log",
            "--no-walk=unsorted",
            "--name-only",
            "--no-renames",
            "-z",
            "--relative",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            f"--format={_RECORD}%H{_FIELD}",
            *shas[start : start + _AT_ONCE],
            "--",
        )
        for record in (text or "").split(_RECORD)[1:]:
            sha, _, rest = record.partition(_FIELD)
            names = [name.lstrip("\n") for name in rest.split("\0")]
            found[sha] = tuple(name for name in names if name and "\ufffd" not in name)
    return found


def present_files(root: str, head: str) -> frozenset[str]:
    """Every file that is in the tree now."""
    return frozenset((_git(root, "ls-tree", "-r", "--name-only", "-z", head) or "").split("\0")) - {
        ""
    }


def own_address(root: str) -> str:
    """The address under which commits are made here; empty when nobody has said."""
    return (_git(root, "config", "--get", "user.email") or "").strip().casefold()


def _parsed(text: str) -> Iterator[PastCommit]:
    for record in text.split(_RECORD)[1:]:
        fields = record.split(_FIELD, 3)
        if len(fields) == 4 and fields[1].isdigit():
            sha, at, author, message = fields
            yield PastCommit(
                sha, int(at) * 1000, author.strip().casefold(), message=message.strip()
            )


def _git(root: str, *arguments: str) -> str | None:
    return git_text(root, *arguments, timeout_seconds=_DEADLINE_SECONDS)
