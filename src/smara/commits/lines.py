"""Find the reasons behind a file's lines, and what undid them.

A commit that tells why set some lines. Those that stand today are explained by it. Those that are
gone were taken away by later commits; when such a commit states no reason and does not name what it
takes away, what the first one had set was undone without one. Only patches and messages are
compared, each patch with its own parent, so that branches that ran side by side do not look like
changes. Few changes count as undone, since a reader is told of them unasked: code goes on, and most
lines that are gone were replaced on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from smara.actions.paths import is_source
from smara.commits.edit import bare, function_at
from smara.commits.message import gives_why
from smara.commits.models import Commit, LineReason, LostLine
from smara.commits.read import FilePatch, Hunk, functions_of, patches_of
from smara.core.extract import word_set
from smara.core.git import git_text, is_ancestor
from smara.core.startup.regex import re, regex
from smara.secrets import redact

_COMMENT = regex(
    r"^(?:#(?!\[|include|define|if)|//|--(?![\w-])|/\*|\*(?:\s|/|$)|<!--|;;|%|\"\"\"|''')"
)
_WORD = regex(r"[A-Za-z_]\w+|\d+(?:\.\d+)?")
_TOKEN = regex(r"\w+(?:\.\d+)?|\S")
COMMON = word_set(
    "0 1 the and for with this that from when then into over than they them have has been was were"
    " are not but can will would should could which what their there here also only more some such"
    " each both very just like using used use code line lines file files add added make made change"
    " changes if in of on or to is it as be by an at do no so we"
)
_SAYS_SO = regex(
    r"\b(?:drop|remov|delet|revert|deprecat|renam|replac|disabl|introduc|reintroduc|rewr|support)",
    re.IGNORECASE,
)
"""What a subject says that takes something away on purpose."""
_CHANGES_NOTHING = regex(
    r"^(?:\w+(?:\([^)]*\))?!?: )?(?:perf|refactor|style|chore|simplif|clean|tidy|format|lint|polish"
    r"|minor|small|misc|wip)|\b(?:simplif|refactor|clean ?up|tidy)",
    re.IGNORECASE,
)
"""What a subject says that claims to leave the program as it was."""
_ENOUGH_LINES, _MOST_LINES = 0.4, 0.5
"""Of a commit's lines in a file, the part that one later commit must have taken away."""
_LEAST_NEW = 0.3
"""The part of the words in lines taken away that is in none of the lines put in their place."""
_STANDING = 0.5
"""Of the lines put in their place, the part that must stand today."""
_OLDEST_MS = 2 * 365 * 86_400_000
"""What has been undone for two years of history is how the project is."""
_MOST_SET, _MOST_FILES_SET, _MOST_FILES_TAKEN = 150, 12, 10
"""A commit of more lines or files has no reason of one line, or changes everything alike."""
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


def is_reasoned(commit: Commit) -> bool:
    """Return True if a commit tells why it changed some lines."""
    return bool(commit.reason) and gives_why(commit.subject, commit.reason)


def line_reasons(
    root: str, histories: Mapping[str, Sequence[Commit]], newest_at: int
) -> dict[str, list[LineReason]]:
    """Return the reasons behind lines, undone ones first.

    Args:
        root: The top of the repository.
        histories: By file as it is called now, the commits that changed it under any of its names,
            newest first.
        newest_at: When the newest commit of the history was made.
    """
    some = {
        path: list(commits[:MOST_COMMITS])
        for path, commits in histories.items()
        if any(map(is_reasoned, commits[:MOST_COMMITS]))
    }
    names = {path: names_of(path, commits) for path, commits in some.items()}
    shas = list(dict.fromkeys(each.sha for commits in some.values() for each in commits))
    patches: dict[str, dict[str, list[FilePatch]]] = {}
    every = [name for each in names.values() for name in each]
    for patch in patches_of(root, shas, every) if shas else ():
        for name in {patch.path, patch.old_path}:
            patches.setdefault(name, {}).setdefault(patch.sha, []).append(patch)
    found = {}
    for path, commits in some.items():
        present = git_text(root, "cat-file", "-p", f"HEAD:{path}")
        own: dict[str, list[FilePatch]] = {}
        for name in names[path]:
            for sha, each in patches.get(name, {}).items():
                own.setdefault(sha, []).extend(one for one in each if one not in own.get(sha, ()))
        if present is not None:
            lines = _FileLines(root, path, commits, own, present.split("\n"), newest_at)
            reasons = filter(None, map(lines.reason, filter(is_reasoned, commits)))
            found[path] = sorted(
                map(_redacted, reasons), key=lambda each: (each.undone_by is None, -each.commit.at)
            )
    return found


def _redacted(reason: LineReason) -> LineReason:
    """Redact the lines of a file: they are stored, printed and told to agents."""
    texts = clean_lines([each.text for each in reason.lost])
    return replace(
        reason,
        functions=tuple(clean_lines(reason.functions)),
        lost=tuple(replace(each, text=text) for each, text in zip(reason.lost, texts, strict=True)),
        texts=tuple(clean_lines(reason.texts)),
        instead=tuple(clean_lines(reason.instead)),
    )


def clean_lines(lines: Sequence[str]) -> list[str]:
    """Return lines without secrets; a key may stand on several.

    >>> clean_lines(["x = 1", "DB_PASSWORD=Xy9!kkpqLm42zz"])
    ['x = 1', 'DB_PASSWORD=[REDACTED:password]']
    """
    text = "\n".join(lines)
    whole = redact(text).text
    if whole == text:
        return list(lines)
    left = set(whole.split("\n"))
    return [
        line if line in left else own if (own := redact(line).text) != line else "[REDACTED]"
        for line in lines
    ]


def standing_shares(
    root: str, shas: Sequence[str], find: Callable[[str], str | None]
) -> dict[str, float]:
    """Return which part of the lines that commits set stands today.

    Args:
        root: The top of the repository.
        shas: The commits; those that set no line are left out.
        find: Gives the present name of a file, or ``None``.
    """
    texts: dict[str, set[str]] = {}
    counts: dict[str, list[bool]] = {}
    for patch in patches_of(root, shas):
        path = find(patch.path)
        if path is None:
            continue
        if path not in texts:
            present = git_text(root, "cat-file", "-p", f"HEAD:{path}") or ""
            texts[path] = set(map(bare, present.split("\n")))
        lines = {bare(line) for hunk in patch.hunks for line in hunk.added}
        counts.setdefault(patch.sha, []).extend(
            line in texts[path] for line in lines if _is_telling(line)
        )
    return {sha: sum(each) / len(each) for sha, each in counts.items() if each}


class _Taken(NamedTuple):
    """Lines that one commit took away from what another had set."""

    lines: Sequence[LostLine]
    texts: Sequence[str]
    """The same with the comments around them."""
    hunks: Sequence[Hunk]
    share: float


class _FileLines:
    """The lines of one file, and the patches that made them."""

    def __init__(
        self,
        root: str,
        path: str,
        commits: Sequence[Commit],
        patches: Mapping[str, Sequence[FilePatch]],
        present: Sequence[str],
        newest_at: int,
    ) -> None:
        self._root, self._path = root, path
        self._commits, self._patches = commits, patches
        self._present = present
        self._newest_at = newest_at
        self._age = {each.sha: age for age, each in enumerate(commits)}
        self._standing: dict[str, list[int]] = {}
        for number, line in enumerate(present, 1):
            self._standing.setdefault(bare(line), []).append(number)
        self._words = _words("\n".join(present))

    def reason(self, commit: Commit) -> LineReason | None:
        """Return the reason that a commit gives here, or ``None``."""
        own = self._patches.get(commit.sha, ())
        added = [bare(line) for patch in own for hunk in patch.hunks for line in hunk.added]
        moved = {bare(line) for patch in own for hunk in patch.hunks for line in hunk.removed}
        lines = [line for line in dict.fromkeys(added) if _is_telling(line) and line not in moved]
        if not lines or len(lines) > _MOST_SET or len(commit.files) > _MOST_FILES_SET:
            return None
        later = self._commits[: self._age[commit.sha]]
        lost = self._lost({line for line in lines if line not in self._standing}, later[::-1])
        standing = tuple(line for line in lines if line in self._standing)
        numbers = sorted(number for line in standing for number in self._standing[line])
        base = LineReason(
            commit, self._path, tuple(numbers), functions_of(own), lost=tuple(lost), texts=standing
        )
        removers = Counter(each.by for each in lost)
        for remover in sorted(
            (each for each in later if each.sha in removers and not each.reason),
            key=lambda each: -removers[each.sha],
        ):
            by_it = [each for each in lost if each.by == remover.sha]
            gone = {bare(each.text) for each in by_it}
            hunks = [
                hunk
                for patch in self._patches[remover.sha]
                for hunk in patch.hunks
                if gone.intersection(map(bare, hunk.removed))
            ]
            texts = [line for hunk in hunks for line in hunk.removed if bare(line) in added]
            taken = _Taken(by_it, texts, hunks, len(by_it) / len(lines))
            if self._is_undone(commit, remover, taken):
                return self._undone(base, remover, taken)
        return base if standing else None

    def _is_undone(self, commit: Commit, remover: Commit, taken: _Taken) -> bool:
        """Return True if a commit took away, without saying so, what another had a reason for."""
        put = _put(taken)
        words = _words("\n".join(each.text for each in taken.lines))
        less = words - _words("\n".join(put))
        named = _words(f"{commit.subject} {commit.reason}") - COMMON
        subject = _words(remover.subject)
        standing = sum(line in self._standing for line in put)
        if (
            not is_source(self._path)
            or len(remover.files) > _MOST_FILES_TAKEN
            or self._newest_at - remover.at > _OLDEST_MS
            or _SAYS_SO.search(remover.subject)
            or subject & less
            or len(subject & named) > 1
            or standing < _STANDING * len(put)
        ):
            return False
        about = _words("\n".join(taken.texts)) & named
        # A number may stand elsewhere in the file, where it means something else.
        specific = {
            word
            for word in about - _words("\n".join(put))
            if word.isdigit() or word not in self._words
        }
        is_named = len(specific) > 1 or any(
            word[0].isdigit() or "_" in word.strip("_") for word in specific
        )
        claims_nothing = _CHANGES_NOTHING.search(remover.subject) is not None
        return (
            bool(about)
            and (
                (taken.share >= _ENOUGH_LINES and is_named)
                or any(
                    _is_other_value(each.text, line, named) for each in taken.lines for line in put
                )
                or (taken.share >= _MOST_LINES and not put and len(about) > 1)
                or (
                    taken.share >= _MOST_LINES
                    and claims_nothing
                    and len(less) >= _LEAST_NEW * len(words)
                )
            )
            and is_ancestor(self._root, commit.sha, remover.sha)
            and not self._goes_on_elsewhere(remover.sha, taken.lines)
        )

    def _undone(self, reason: LineReason, remover: Commit, taken: _Taken) -> LineReason:
        """Return a reason with what stands in the place of its lines, and in which functions."""
        instead = [line for line in _put(taken) if line in self._standing]
        numbers = [number for line in instead for number in self._standing[line][:1]]
        before = f"{remover.sha}^:{self._patches[remover.sha][0].old_path}"
        former = (git_text(self._root, "cat-file", "-p", before) or "").split("\n")
        names = [function_at(former, each.number) for each in taken.lines]
        names += [function_at(self._present, number) for number in numbers]
        often = Counter(filter(None, names))
        # What lost the most is named first, if it is still there.
        functions = sorted(often, key=lambda name: (name.lower() not in self._words, -often[name]))
        return replace(
            reason, undone_by=remover, instead=tuple(instead), functions=tuple(functions)
        )

    def _lost(self, gone: set[str], later: Iterable[Commit]) -> list[LostLine]:
        found: dict[str, LostLine] = {}
        for commit in later:
            for patch in self._patches.get(commit.sha, ()):
                for hunk in patch.hunks:
                    for offset, line in enumerate(hunk.removed):
                        if bare(line) in gone:
                            found[bare(line)] = LostLine(
                                line.strip(), hunk.start + offset, commit.sha, hunk.function
                            )
        return sorted(found.values(), key=lambda each: each.number)

    def _goes_on_elsewhere(self, sha: str, taken: Sequence[LostLine]) -> bool:
        """Return True if a commit only moved the lines to another file."""
        texts = {bare(each.text) for each in taken}
        elsewhere = {
            bare(line)
            for patch in patches_of(self._root, [sha])
            if patch.path != self._path
            for hunk in patch.hunks
            for line in hunk.added
        }
        return len(texts & elsewhere) > len(texts) / 2


def _put(taken: _Taken) -> list[str]:
    """Return the telling lines that were put in the place of others."""
    lines = [bare(line) for hunk in taken.hunks for line in hunk.added]
    return [line for line in dict.fromkeys(lines) if _is_telling(line)]


def _is_other_value(old: str, new: str, named: set[str]) -> bool:
    """Return True if a line is the same but for one word, which was named.

    >>> _is_other_value("TRIES = 7", "TRIES = 10", {"7"}), _is_other_value("a = f(7)", "b = 7", {"7"})
    (True, False)
    """  # noqa: E501
    one, other = (_TOKEN.findall(each) for each in (old, new))
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    is_alike = len(one) == len(other) > 1 and one[0] == other[0]
    return is_alike and len(pairs) == 1 and pairs[0][0].lower() in named


def _is_telling(line: str) -> bool:
    """Return True if a line is code that says something: no comment, no bracket alone."""
    return len(line) >= 6 and _WORD.search(line) is not None and not _COMMENT.match(line)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}
