"""Find the reasons behind a file's lines, and what undid them.

A commit that states a reason set some lines. Those that stand today are explained by it. Those
that are gone were taken away by later commits; when such a commit states no reason of its own,
what the first one had set was undone without one. Only patches and messages are compared, each
patch with its own parent, so that branches that ran side by side do not look like changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from smara.commits.models import Commit, LineReason, LostLine
from smara.commits.read import FilePatch, functions_of, patches_of
from smara.core.git import git_text, is_ancestor

_COMMENT = re.compile(
    r"^(?:#(?!\[|include|define|if)|//|--(?![\w-])|/\*|\*(?:\s|/|$)|<!--|;;|%|\"\"\"|''')"
)
_WORD = re.compile(r"[A-Za-z_]\w+|\d+(?:\.\d+)?")
_LEAST_SHARE = 0.5
"""Of a commit's lines in a file; when so many are gone, what it set does not hold any more."""
MOST_COMMITS = 80
"""The commits of one file that are looked at, newest first."""


def names_of(path: str, commits: Sequence[Commit]) -> list[str]:
    """Return the names that a file has had, the present one first.

    Args:
        path: Its present name.
        commits: The commits that changed it, newest first.
    """
    names = [path]
    for commit in commits:
        names.extend(old for old, new in commit.renames if new == names[-1] and old not in names)
    return names


def line_reasons(root: str, path: str, commits: Sequence[Commit]) -> list[LineReason]:
    """Return the reasons behind a file's lines, those that were undone first.

    Args:
        root: The top of the repository.
        path: The file, as it is called now.
        commits: The commits that changed it under any of its names, newest first.
    """
    some = commits[:MOST_COMMITS]
    reasoned = [each for each in some if each.reason]
    if not reasoned:
        return []
    present = git_text(root, "cat-file", "-p", f"HEAD:{path}")
    if present is None:
        return []
    standing: dict[str, list[int]] = {}
    for number, line in enumerate(present.split("\n"), 1):
        standing.setdefault(_bare(line), []).append(number)
    patches: dict[str, list[FilePatch]] = {}
    names = names_of(path, some)
    for patch in patches_of(root, [each.sha for each in some], names):
        patches.setdefault(patch.sha, []).append(patch)
    age = {each.sha: age for age, each in enumerate(some)}
    found = []
    for commit in reasoned:
        later = [each for each in some if age[each.sha] < age[commit.sha]]
        reason = _reason(root, path, commit, patches, standing, later)
        if reason is not None:
            found.append(reason)
    return sorted(found, key=lambda each: (each.undone_by is None, -each.commit.at))


def _reason(
    root: str,
    path: str,
    commit: Commit,
    patches: Mapping[str, Sequence[FilePatch]],
    standing: Mapping[str, Sequence[int]],
    later: Sequence[Commit],
) -> LineReason | None:
    own = patches.get(commit.sha, ())
    added = Counter(_bare(line) for patch in own for hunk in patch.hunks for line in hunk.added)
    moved = {_bare(line) for patch in own for hunk in patch.hunks for line in hunk.removed}
    lines = [line for line in added if _is_telling(line) and line not in moved]
    if not lines:
        return None
    numbers = sorted(number for line in lines for number in standing.get(line, ()))
    gone = {line for line in lines if line not in standing}
    lost = _lost(gone, reversed(later), patches)
    base = LineReason(commit, path, tuple(numbers), functions_of(own), lost=tuple(lost))
    removers = Counter(each.by for each in lost)
    for remover in sorted(
        (each for each in later if each.sha in removers and not each.reason),
        key=lambda each: -removers[each.sha],
    ):
        taken = [each for each in lost if each.by == remover.sha]
        new = {
            word
            for patch in patches.get(remover.sha, ())
            for hunk in patch.hunks
            for line in hunk.added
            for word in _words(line)
        }
        named = _words(f"{commit.subject} {commit.reason}")
        words = set().union(*(_words(each.text) - new for each in taken))
        is_set = words & named or len(taken) >= _LEAST_SHARE * len(lines)
        if (
            is_set
            and not words & _words(remover.subject)  # it says what it takes away
            and is_ancestor(root, commit.sha, remover.sha)
            and not _goes_on_elsewhere(root, remover.sha, path, taken)
        ):
            return replace(base, undone_by=remover)
    return base


def _lost(
    gone: set[str], later: Iterable[Commit], patches: Mapping[str, Sequence[FilePatch]]
) -> list[LostLine]:
    found: dict[str, LostLine] = {}
    for commit in later:
        for patch in patches.get(commit.sha, ()):
            for hunk in patch.hunks:
                for offset, line in enumerate(hunk.removed):
                    bare = _bare(line)
                    if bare in gone:
                        found[bare] = LostLine(
                            line.strip(), hunk.start + offset, commit.sha, hunk.function
                        )
    return sorted(found.values(), key=lambda each: each.number)


def _goes_on_elsewhere(root: str, sha: str, path: str, taken: Sequence[LostLine]) -> bool:
    """Return True if a commit only moved the lines to another file."""
    texts = {_bare(each.text) for each in taken}
    elsewhere = {
        _bare(line)
        for patch in patches_of(root, [sha])
        if patch.path != path
        for hunk in patch.hunks
        for line in hunk.added
    }
    return len(texts & elsewhere) > len(texts) / 2


def _bare(line: str) -> str:
    return " ".join(line.split())


def _is_telling(line: str) -> bool:
    """Return True if a line is code that says something: no comment, no bracket alone."""
    return len(line) >= 6 and _WORD.search(line) is not None and not _COMMENT.match(line)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
