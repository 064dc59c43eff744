"""Import the history of a git repository as memories.

Newest first and once per commit, so that a second import adds nothing. A commit message is
evidence, never an instruction: each memory names and quotes its commits, is tainted by its
source, and waits for review as its trust demands.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from smara.actions.paths import module_of
from smara.adapters.git_candidates import (
    CandidateChange,
    CommitCandidate,
    GitReport,
    Kind,
    Outcome,
    Progress,
    count_of,
    find_candidates,
    head_of,
    own_address,
    present_files,
)
from smara.core.git import find_repository
from smara.errors import InvalidInputError
from smara.knowledge.models import Evidence, MemorySource, NewMemory, TypedMemory
from smara.memory import Memory

__all__ = ["CandidateChange", "CommitCandidate", "GitReport", "import_history"]


_SHORT = 7


def tag_of(kind: Kind) -> str:
    """The tag of memories that were made of such commits."""
    return kind.replace(" ", "-")


_CHAIN = tag_of("fix chain")


class CommitIndex:
    """The memories that rest on commits, by commit."""

    def __init__(self, memories: Iterable[TypedMemory]) -> None:
        self._said: dict[str, list[tuple[str, TypedMemory]]] = {}
        self._chains: dict[str, list[tuple[str, TypedMemory]]] = {}
        for memory in memories:
            kept = self._chains if _CHAIN in memory.tags else self._said
            commits = {each.commit.lower() for each in memory.evidence if each.commit}
            for sha in commits | ({memory.commit.lower()} if memory.commit else set()):
                kept.setdefault(sha[:_SHORT], []).append((sha, memory))

    def holder(self, candidate: CommitCandidate) -> TypedMemory | None:
        """Return the memory that already covers a candidate.

        Of a chain, one that has its newest fix, or that a person put aside.
        """
        if candidate.kind != "fix chain":
            return self._find(self._said, candidate.sha)
        older = self._older(candidate)
        same = self._find(self._chains, candidate.sha)
        return same or (older if older is not None and not older.is_active else None)

    def shorter(self, candidate: CommitCandidate) -> str | None:
        """Return the id of the chain that a candidate continues.

        A memory that a person confirmed is not replaced.
        """
        older = self._older(candidate)
        return (
            older.id if older is not None and not (older.is_verified or older.is_pinned) else None
        )

    def _older(self, candidate: CommitCandidate) -> TypedMemory | None:
        if candidate.kind != "fix chain":
            return None
        found = [
            memory
            for sha, _ in candidate.quotes
            if (memory := self._find(self._chains, sha)) is not None
        ]
        return next((each for each in found if each.is_active), found[0] if found else None)

    @staticmethod
    def _find(kept: dict[str, list[tuple[str, TypedMemory]]], sha: str) -> TypedMemory | None:
        near = kept.get(sha[:_SHORT], ())
        return next(
            (memory for known, memory in near if sha.startswith(known) or known.startswith(sha)),
            None,
        )


SOURCE: MemorySource = "commit_auto"
MOST_COMMITS = 20_000
MOST_MEMORIES = 100
"""So many of the newest are taken in one go: more would bury what is learned from work itself."""
MOST_FILES_UNASKED = 5_000
"""Repositories up to this size are indexed without being asked: some twenty seconds at most."""
_BATCH = 25
_PAGE = 500
_CONFIDENCE = {"reason": 0.7, "breaking": 0.75, "revert": 0.75, "fix chain": 0.6}


def import_history(
    memory: Memory,
    root: str | os.PathLike[str] | None = None,
    *,
    is_dry_run: bool = False,
    most_commits: int = MOST_COMMITS,
    limit: int = MOST_MEMORIES,
    actor: str | None = None,
    progress: Progress | None = None,
) -> GitReport:
    """Import memories from the commits of a repository.

    Without a root, it is the repository around the current folder.

    Looks at the last ``most_commits`` commits and takes the ``limit`` newest things they say. A
    commit that a memory knows already, also one that was forgotten or rejected, is not taken again.
    """
    if most_commits < 1 or limit < 1:
        raise InvalidInputError("The numbers of commits and of memories must be at least 1.")
    folder = _root(root)
    head = head_of(folder)
    if head is None:
        raise InvalidInputError(
            f"{folder} is no git repository with commits. Go into one, or name it: `smara import "
            "--from git FOLDER`.",
            path=folder,
        )
    report = GitReport(folder, is_dry_run)
    found = find_candidates(folder, head, most_commits, progress=progress)
    report.commits, report.left_out = found.commits, found.left_out
    report.is_all = (
        found.commits < most_commits or count_of(folder, head, most_commits + 1) <= most_commits
    )
    chosen = found.candidates[:limit]
    report.cut = len(found.candidates) - len(chosen)
    known = CommitIndex(_learned(memory))
    fresh: list[tuple[CommitCandidate, str | None]] = []
    for each in chosen:
        holder = known.holder(each)
        if holder is not None:
            report.changes.append(
                _told("known", each, holder.short_id, why=("its commit is known",))
            )
        elif is_dry_run:
            report.changes.append(_told("added", each))
        else:
            fresh.append((each, known.shorter(each)))
    _add(memory, report, fresh, mine=own_address(folder), actor=actor)
    return report


def warm_up(
    memory: Memory, report: GitReport, progress: Progress | None = None, *, code: bool | None = None
) -> None:
    """Index the code and count which files change together.

    The report says how many commits were counted. Unless the caller decides (``code``), a large
    repository without an index is left for later: its memories are there in seconds, its index may
    take minutes. Nothing is done in a dry run, nor where no files are checked out.
    """
    folder = report.root
    if (
        report.is_dry_run
        or find_repository(folder) is None
        or not os.path.lexists(os.path.join(folder, ".git"))
    ):
        return
    if code is None and memory.code.status(folder).state == "none":
        files = len(present_files(folder, "HEAD"))
        if files > MOST_FILES_UNASKED:
            report.left_for_later = files
            return
    if code is not False:
        memory.code.index(folder, progress=progress)
        report.warmed_commits = memory.code.asking(folder).read_history().commits


def _add(
    memory: Memory,
    report: GitReport,
    fresh: Sequence[tuple[CommitCandidate, str | None]],
    mine: str,
    actor: str | None,
) -> None:
    """In batches: an import that is interrupted keeps what it has, and goes on from there."""
    for start in range(0, len(fresh), _BATCH):
        some = fresh[start : start + _BATCH]
        new = [_new(candidate, mine, older) for candidate, older in some]
        made = memory.memories.add_many(new, by="system", actor=actor)
        for (candidate, _), added in zip(some, made, strict=True):
            short = added.memory.short_id if added.memory is not None else None
            report.changes.append(_told(added.outcome, candidate, short, why=added.why))


def _new(candidate: CommitCandidate, mine: str, older: str | None) -> NewMemory:
    modules = tuple(dict.fromkeys(filter(None, map(module_of, candidate.files))))[:3]
    # What somebody else wrote is somebody else's word, also when it stands in our own repository.
    taint = () if mine and candidate.author == mine else ("other",)
    return NewMemory(
        candidate.content,
        candidate.type,
        SOURCE,
        confidence=_CONFIDENCE[candidate.kind],
        tags=("git", tag_of(candidate.kind)),
        files=candidate.files,
        modules=modules,
        commit=candidate.sha,
        evidence=[Evidence(commit=sha, quote=words) for sha, words in candidate.quotes],
        data=dict(candidate.data),
        taint=taint,
        supersedes=() if older is None else (older,),
    )


def _learned(memory: Memory) -> Iterator[TypedMemory]:
    offset: int | None = 0
    while offset is not None:
        page = memory.memories.list(source=SOURCE, state="all", limit=_PAGE, offset=offset)
        yield from page
        offset = page.next_offset


def _told(
    outcome: Outcome, each: CommitCandidate, memory_id: str | None = None, why: Sequence[str] = ()
) -> CandidateChange:
    return CandidateChange(
        outcome,
        each.kind,
        each.type,
        content=each.content,
        sha=each.sha,
        at_ms=each.at_ms,
        memory_id=memory_id,
        why=tuple(why),
    )


def _root(root: str | os.PathLike[str] | None) -> str:
    start = os.path.realpath(os.getcwd() if root is None else os.fspath(root))
    repository = find_repository(start)
    return repository.root if repository is not None and root is None else start
