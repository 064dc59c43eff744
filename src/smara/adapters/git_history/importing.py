"""Bringing a history into a memory: newest first, by commit, so that doing it again adds nothing.

What commits say was written by people for people: it is evidence, never an instruction. Every
memory names its commits and quotes them, is tainted by where it comes from, and waits for review as
its trust demands.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from smara.adapters.git_history.finding import find_candidates
from smara.adapters.git_history.known import Known, tag_of
from smara.adapters.git_history.log import Progress, count_of, head_of, own_address, present_files
from smara.adapters.git_history.models import Candidate, Change, GitReport, Outcome
from smara.behavior.paths import module_of
from smara.core.repository import find_repository
from smara.errors import InvalidInputError
from smara.knowledge.models import Evidence, MemorySource, NewMemory, TypedMemory
from smara.memory import Memory

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
    """Take memories out of the commits of a repository, that around the current folder when none is
    named.

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
    known = Known(_learned(memory))
    fresh: list[tuple[Candidate, str | None]] = []
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
    """Index the code and count which files change together; the report says how many commits were
    counted.

    Where nobody has said whether (``code``), a large repository that has no index yet is left for
    later: its memories are there in seconds, its index may take minutes that were not asked for.
    Nothing is done in a dry run, nor where no files are checked out.
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
    fresh: Sequence[tuple[Candidate, str | None]],
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


def _new(candidate: Candidate, mine: str, older: str | None) -> NewMemory:
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
    outcome: Outcome, each: Candidate, memory_id: str | None = None, why: Sequence[str] = ()
) -> Change:
    return Change(
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
