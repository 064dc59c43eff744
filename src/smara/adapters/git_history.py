"""Import the history of a git repository as memories.

Newest first and once per commit, so that a second import adds nothing. A commit message is
evidence, never an instruction: each memory names and quotes its commits, is tainted by its
source, and waits for review as its trust demands.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from smara.actions.paths import module_of
from smara.adapters.git_candidates import (
    CandidateChange,
    CommitCandidate,
    GitReport,
    Outcome,
    Progress,
    count_of,
    find_candidates,
    head_of,
    own_address,
    present_files,
)
from smara.adapters.instructions.collect import root_of
from smara.core.git import find_repository
from smara.errors import InvalidInputError
from smara.knowledge.models import Evidence, MemorySource, NewMemory, TypedMemory
from smara.memory import Memory

__all__ = ["CandidateChange", "CommitCandidate", "GitReport", "import_history"]


_SHORT = 7


class CommitIndex:
    """The memories that rest on commits, by commit; chains of fixes apart."""

    def __init__(self, memories: Iterable[TypedMemory]) -> None:
        self._memories: dict[tuple[bool, str], list[tuple[str, TypedMemory]]] = {}
        for memory in memories:
            commits = {each.commit.lower() for each in memory.evidence if each.commit}
            for sha in commits | ({memory.commit.lower()} if memory.commit else set()):
                key = "fix-chain" in memory.tags, sha[:_SHORT]
                self._memories.setdefault(key, []).append((sha, memory))

    def find(self, candidate: CommitCandidate) -> tuple[TypedMemory | None, TypedMemory | None]:
        """Return the memory that already covers a candidate, and the chain that it continues.

        A chain is covered by one that has its newest fix, or that a person put aside.
        """
        is_chain = candidate.kind == "fix chain"
        same = self._find(candidate.sha, is_chain)
        if not is_chain:
            return same, None
        chains = [each for sha, _ in candidate.quotes if (each := self._find(sha, is_chain))]
        older = next((each for each in chains if each.is_active), chains[0] if chains else None)
        return same or (older if older and not older.is_active else None), older

    def _find(self, sha: str, is_chain: bool) -> TypedMemory | None:
        near = self._memories.get((is_chain, sha[:_SHORT]), ())
        return next(
            (memory for own, memory in near if sha.startswith(own) or own.startswith(sha)), None
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
    folder = os.path.realpath(root_of(root))
    head = head_of(folder)
    if head is None:
        raise InvalidInputError(
            f"{folder} is no git repository with commits. Go into one, or name it: `smara import "
            "--from git FOLDER`.",
            path=folder,
        )
    report = GitReport(folder, is_dry_run)
    candidates = find_candidates(report, head, most_commits, progress=progress)
    report.is_all = (
        report.commits < most_commits or count_of(folder, head, most_commits + 1) <= most_commits
    )
    report.cut = len(candidates[limit:])
    memories: list[TypedMemory] = []
    offset: int | None = 0
    while offset is not None:
        page = memory.memories.list(source=SOURCE, state="all", limit=_PAGE, offset=offset)
        memories += page
        offset = page.next_offset
    index, mine = CommitIndex(memories), own_address(folder)
    fresh: list[tuple[CommitCandidate, NewMemory]] = []
    for each in candidates[:limit]:
        holder, older = index.find(each)
        if holder is not None:
            _tell(report, "known", each, memory=holder, why=("its commit is known",))
        elif is_dry_run:
            _tell(report, "added", each)
        else:
            fresh.append((each, _new(each, mine, older)))
    # In batches: an import that is interrupted keeps what it has, and goes on from there.
    for start in range(0, len(fresh), _BATCH):
        some = fresh[start : start + _BATCH]
        results = memory.memories.add_many([new for _, new in some], by="system", actor=actor)
        for (candidate, _), added in zip(some, results, strict=True):
            _tell(report, added.outcome, candidate, memory=added.memory, why=added.why)
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
        report.warmed_commits = memory.code.asking(folder).history.read().commits


def _new(candidate: CommitCandidate, mine: str, older: TypedMemory | None) -> NewMemory:
    modules = tuple(dict.fromkeys(filter(None, map(module_of, candidate.files))))[:3]
    # A memory that a person confirmed is not replaced.
    is_replaced = older is not None and not (older.is_verified or older.is_pinned)
    return NewMemory(
        candidate.content,
        candidate.type,
        SOURCE,
        confidence=_CONFIDENCE[candidate.kind],
        tags=("git", candidate.kind.replace(" ", "-")),
        files=candidate.files,
        modules=modules,
        commit=candidate.sha,
        evidence=[Evidence(commit=sha, quote=words) for sha, words in candidate.quotes],
        data=dict(candidate.data),
        # What somebody else wrote is somebody else's word, also in our own repository.
        taint=() if mine and candidate.author == mine else ("other",),
        supersedes=(older.id,) if older is not None and is_replaced else (),
    )


def _tell(
    report: GitReport,
    outcome: Outcome,
    candidate: CommitCandidate,
    *,
    memory: TypedMemory | None = None,
    why: Sequence[str] = (),
) -> None:
    report.changes.append(
        CandidateChange(
            outcome,
            candidate.kind,
            candidate.type,
            content=candidate.content,
            sha=candidate.sha,
            at_ms=candidate.at_ms,
            memory_id=memory.short_id if memory is not None else None,
            why=tuple(why),
        )
    )
