"""Import instruction files as typed memories, and report the changes.

The statements are compared with the memories of earlier imports; only the difference is
written, and the files are never changed. Everything imported is tainted by its source and
waits for review.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from smara.adapters.instructions.collect import InstructionSet, NotFollowed, gather
from smara.adapters.instructions.markdown import InstructionStatement, LeftOut
from smara.adapters.instructions.match import (
    Matched,
    MatchPlan,
    Saying,
    StatementPlace,
    match,
    mentions_in,
    modules_of,
    paths_of,
    sayings_of,
)
from smara.core.git import find_repository, git_text
from smara.knowledge.guess import Guess, type_of
from smara.knowledge.models import Chunk, Evidence, MemorySource, NewMemory, Relation, TypedMemory
from smara.memory import Memory
from smara.secrets import redact


def commits_of(root: str, paths: Iterable[str]) -> dict[str, str]:
    """Return the commit of each unchanged file.

    A changed or untracked file has none.

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


Outcome = Literal[
    "added",
    "changed",
    "moved",
    "unchanged",
    "verified",
    "returned",
    "put aside",
    "removed",
    "stale",
    "known",
    "refused",
]
"""What became of a statement or of its memory.

*moved*: the same words at other lines; *verified*: now vouched for; *put aside*: a person
rejected or forgot it; *removed* and *stale*: no file says it any more, and nobody or a person
had confirmed it; *known*: another memory says it already.
"""


@dataclass(frozen=True, slots=True)
class StatementChange:
    """One statement, and what became of it."""

    outcome: Outcome
    type: str
    text: str
    places: tuple[str, ...]
    """Where it stands, as ``path:first-last``."""
    memory_id: str | None = None
    """The short id of its memory; ``None`` when it has none, or not yet."""
    replaces: str | None = None
    """The short id of the memory whose place it took."""
    why: tuple[str, ...] = ()
    """What made it this type, or why it was refused."""


@dataclass(slots=True)
class FileReport:
    """One file."""

    path: str
    host: str
    statements: int
    left_out: tuple[LeftOut, ...] = ()


@dataclass(slots=True)
class InstructionReport:
    """Everything an import did, or with ``is_dry_run`` would do."""

    root: str
    is_dry_run: bool = False
    files: list[FileReport] = field(default_factory=list)
    changes: list[StatementChange] = field(default_factory=list)
    not_followed: list[NotFollowed] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        """The number of statements by outcome."""
        return Counter(change.outcome for change in self.changes)

    @property
    def is_nothing_new(self) -> bool:
        """True if the memory was as the files are."""
        return set(self.counts) <= {"unchanged", "put aside", "known", "refused"}


SOURCE: MemorySource = "imported"
_PAGE = 500
_GENERIC_TITLES = ("steps", "workflow", "process", "how to", "checklist", "usage", "setup")


def import_instructions(
    memory: Memory,
    root: str | os.PathLike[str] | None = None,
    paths: Sequence[str | os.PathLike[str]] = (),
    *,
    is_dry_run: bool = False,
    is_verified: bool = False,
    actor: str | None = None,
) -> InstructionReport:
    """Import the instruction files of a repository, or of some paths.

    ``root`` is the repository around the current folder when it is not said. With ``is_verified``
    a person vouches for what the files say, also for what came in before: only a person's door
    may offer it. A second import of the same files changes nothing.
    """
    return import_gathered(
        memory,
        gather(root_of(root), paths),
        is_dry_run=is_dry_run,
        is_verified=is_verified,
        actor=actor,
    )


def import_gathered(
    memory: Memory,
    gathered: InstructionSet,
    *,
    is_dry_run: bool = False,
    is_verified: bool = False,
    actor: str | None = None,
) -> InstructionReport:
    """Import instruction files that were already read.

    Otherwise as :func:`import_instructions`.
    """
    return _InstructionImport(memory, gathered, is_verified, actor=actor).run(is_dry_run)


def root_of(root: str | os.PathLike[str] | None = None) -> str:
    """Return the repository around a folder, or the folder itself."""
    start = os.getcwd() if root is None else os.fspath(root)
    repository = find_repository(start)
    return repository.root if repository is not None and root is None else start


class _InstructionImport:
    """One import."""

    def __init__(
        self, memory: Memory, gathered: InstructionSet, is_verified: bool, actor: str | None
    ) -> None:
        self._memories = memory.memories
        self._gathered = gathered
        self._is_verified = is_verified
        self._as_system: dict[str, Any] = {"actor": actor, "by": "system"}
        self._who: dict[str, Any] = {"actor": actor, "by": "person" if is_verified else "system"}
        self._commits = commits_of(gathered.root, [each.file.path for each in gathered.read])
        self._globs = {each.file.path: each.parsed.head for each in gathered.read}
        self._report = InstructionReport(gathered.root)

    def run(self, is_dry_run: bool) -> InstructionReport:
        gathered, report = self._gathered, self._report
        report.is_dry_run = is_dry_run
        report.not_followed, report.unreadable = gathered.not_followed, gathered.unreadable
        report.files = [
            FileReport(
                each.file.path,
                each.file.host,
                len(each.parsed.statements),
                left_out=each.parsed.left_out,
            )
            for each in gathered.read
        ]
        plan = self._plan()
        if is_dry_run:
            self._foresee(plan)
        else:
            self._carry_out(plan)
        return report

    def _plan(self) -> MatchPlan:
        places = (
            (StatementPlace(each.file, statement), redact(statement.text).text)
            for each in self._gathered.read
            for statement in each.parsed.statements
        )
        known = [each for each in self._imported() if self._is_concerned(each)]
        by_person = {each.id: self._is_by_person(each) for each in known if not each.is_active}
        return match(sayings_of(places), known, by_person)

    def _imported(self) -> Iterator[TypedMemory]:
        offset: int | None = 0
        while offset is not None:
            page = self._memories.list(source=SOURCE, state="all", limit=_PAGE, offset=offset)
            yield from page
            offset = page.next_offset

    def _is_concerned(self, memory: TypedMemory) -> bool:
        """Whether what was read can say something about a memory: its file was read, or is gone."""
        read = {each.file.path for each in self._gathered.read}
        unreadable = {path for path, _ in self._gathered.unreadable}
        paths = paths_of(memory)
        if paths & read:
            return True
        if paths & unreadable:
            return False
        inside = not any(os.path.isabs(path) for path in paths)
        return (self._gathered.is_whole and inside) or (
            bool(paths) and all(map(self._gathered.was_looked_for, paths))
        )

    def _is_by_person(self, memory: TypedMemory) -> bool:
        """Whether a person put a memory aside; its events know."""
        ended = [
            each
            for each in self._memories.history(memory.id)
            if each.kind in ("forgotten", "rejected")
        ]
        return any(each.by == "person" and not each.is_undone for each in ended)

    def _foresee(self, plan: MatchPlan) -> None:
        for each in plan.kept:
            is_new = self._is_verified and not each.memory.is_verified
            self._tell_each(
                "verified" if is_new else "unchanged" if self._is_in_place(each) else "moved", each
            )
        for saying, memory in plan.changed:
            self._tell("changed", saying, None, memory.short_id)
        for each in plan.returned:
            self._tell_each("returned", each)
        for saying, memory in plan.put_aside:
            self._tell("put aside", saying, memory)
        for saying in plan.added:
            self._tell("added", saying, None)
        for memory in plan.removed:
            self._tell_removed(memory)

    def _carry_out(self, plan: MatchPlan) -> None:
        for each in plan.kept:
            outcome: Outcome = "unchanged" if self._is_in_place(each) else "moved"
            self._move(each)
            if self._is_verified and not each.memory.is_verified:
                self._memories.verify(each.memory.id, **self._who)
                outcome = "verified"
            self._tell_each(outcome, each)
        for memory in plan.removed:
            self._remove(
                memory,
                f"{' and '.join(sorted(paths_of(memory))) or 'Its file'} does not say it any more.",
            )
        for each in plan.returned:
            restored = self._memories.restore(each.memory.id, **self._as_system)
            self._move(Matched(restored, each.sayings))
            self._tell_each("returned", each)
        for saying, memory in plan.put_aside:
            self._tell("put aside", saying, memory)
        self._add(plan)

    def _move(self, matched: Matched) -> None:
        """The same words stand at other lines, or in other files; nothing else of the memory
        changes.
        """
        memory = matched.memory
        if not self._is_in_place(matched):
            chunk = _chunk(matched.sayings[0])
            self._memories.update(
                memory.id, evidence=self._evidence(matched), chunk=chunk, **self._as_system
            )
        if memory.is_stale:
            self._memories.mark_fresh(memory.id, **self._as_system)

    def _add(self, plan: MatchPlan) -> None:
        """New statements, and those whose words were changed, in one go."""
        replaced = {saying.key: memory for saying, memory in plan.changed}
        sayings = [saying for saying, _ in plan.changed] + plan.added
        made = self._memories.add_many(
            [self._new(each, replaced.get(each.key)) for each in sayings], **self._who
        )
        for saying, added in zip(sayings, made, strict=True):
            old = replaced.get(saying.key)
            if old is not None and self._memories.get(old.id).is_active:
                # A person vouched for it, or its new words were known or refused: it has not been
                # superseded.
                self._remove(old, f"{_where(saying)[0]} says something else now.", is_told=False)
            outcomes: dict[str, Outcome] = {
                "added": "changed" if old else "added",
                "duplicate": "known",
            }
            outcome: Outcome = outcomes.get(added.outcome, "refused")
            self._tell(outcome, saying, added.memory, old.short_id if old else None, added.why)

    def _new(self, saying: Saying, replaces: TypedMemory | None) -> NewMemory:
        first = saying.places[0]
        statement, guess = first.statement, _guess(saying)
        folders = [each.file.folder for each in saying.places if each.file.folder]
        spoken_of = mentions_in(saying.text, self._gathered.root, first.file.folder)
        head = self._globs[first.file.path]
        globbed = (
            () if head.is_always else modules_of(head.globs, self._gathered.root, first.file.folder)
        )
        modules = tuple(dict.fromkeys((*folders, *globbed, *spoken_of.modules)))
        old = () if replaces is None else (replaces.id,)
        is_vouched = replaces is not None and _is_vouched_for(replaces)
        return NewMemory(
            saying.text,
            guess.type,
            source=SOURCE,
            tags=tuple(dict.fromkeys(each.file.host for each in saying.places)),
            files=spoken_of.files,
            modules=modules,
            scope="module" if folders or globbed else None,
            visibility="personal"
            if all(each.file.is_personal for each in saying.places)
            else "project",
            commit=self._commits.get(first.file.path),
            evidence=self._places(saying),
            chunk=_chunk(saying),
            data=_data(statement, self._gathered.root, first.file.folder),
            # What a person has confirmed is not replaced by a file; the person is told instead.
            supersedes=() if is_vouched else old,
            relations=[
                Relation("conflicts_with", memory_id=each, is_auto=True)
                for each in old
                if is_vouched
            ],
            is_verified=self._is_verified,
        )

    def _places(self, saying: Saying) -> list[Evidence]:
        """The lines that say it."""
        return [
            Evidence(
                path=each.file.path,
                commit=self._commits.get(each.file.path),
                first_line=each.statement.first_line,
                last_line=each.statement.last_line,
                quote=saying.text,
            )
            for each in saying.places
        ]

    def _evidence(self, matched: Matched) -> list[Evidence]:
        """The lines that say what a memory says; of files that were not read now, what was
        known.
        """
        read = {each.file.path for each in self._gathered.read}
        found = [place for saying in matched.sayings for place in self._places(saying)]
        others = [each for each in matched.memory.evidence if each.path not in read]
        # A file that is gone is no evidence any more, when all were looked for.
        is_whole = self._gathered.is_whole
        kept = (
            each for each in others if each.path is None or not is_whole or os.path.isabs(each.path)
        )
        return [
            *found,
            *(
                each
                for each in kept
                if each.path is None or not self._gathered.was_looked_for(each.path)
            ),
        ]

    def _is_in_place(self, matched: Matched) -> bool:
        """Whether a memory knows exactly these lines. The commit may be another: the lines are the
        same.
        """
        if matched.memory.is_stale:
            return False
        now, known = (
            {(each.path, each.first_line, each.last_line, each.message_id) for each in some}
            for some in (self._evidence(matched), matched.memory.evidence)
        )
        return now == known

    def _remove(self, memory: TypedMemory, why: str, is_told: bool = True) -> None:
        """A statement that no file makes any more; what a person has confirmed only loses its
        freshness.
        """
        if not _is_vouched_for(memory):
            self._memories.forget(memory.id, why, **self._as_system)
        elif not memory.is_stale:
            self._memories.mark_stale(memory.id, why, **self._as_system)
        if is_told:
            self._tell_removed(memory)

    def _tell_removed(self, memory: TypedMemory) -> None:
        outcome: Outcome = "removed"
        if _is_vouched_for(memory):
            outcome = "stale"
        places = tuple(str(each) for each in memory.evidence if each.path)
        self._report.changes.append(
            StatementChange(
                outcome, memory.type, memory.content, places=places, memory_id=memory.short_id
            )
        )

    def _tell_each(self, outcome: Outcome, matched: Matched) -> None:
        for saying in matched.sayings:
            self._tell(outcome, saying, matched.memory)

    def _tell(
        self,
        outcome: Outcome,
        saying: Saying,
        memory: TypedMemory | None,
        replaces: str | None = None,
        why: Sequence[str] = (),
    ) -> None:
        guess = _guess(saying)
        type_ = memory.type if memory is not None else guess.type
        self._report.changes.append(
            StatementChange(
                outcome,
                type_,
                saying.text,
                places=_where(saying),
                memory_id=memory.short_id if memory else None,
                replaces=replaces,
                why=tuple(why) or guess.why,
            )
        )


def _guess(saying: Saying) -> Guess:
    statement = saying.places[0].statement
    if statement.type is not None:
        return Guess(statement.type, ("its file says so",))
    return type_of(
        saying.text, statement.headings, statement.marks, is_procedure=bool(statement.steps)
    )


def _is_vouched_for(memory: TypedMemory) -> bool:
    """Whether a person stands behind it, whatever the file says."""
    return memory.is_verified or memory.is_pinned


def _where(saying: Saying) -> tuple[str, ...]:
    return tuple(
        str(
            Evidence(
                path=each.file.path,
                first_line=each.statement.first_line,
                last_line=each.statement.last_line,
            )
        )
        for each in saying.places
    )


def _chunk(saying: Saying) -> Chunk:
    place = saying.places[0]
    statement = place.statement
    return Chunk(
        "prose",
        statement.first_line,
        statement.last_line,
        context_prefix=" › ".join((place.file.path, *statement.headings)),
    )


def _data(statement: InstructionStatement, root: str, folder: str) -> dict[str, Any]:
    """The steps of a procedure, each with the file it speaks of."""
    if not statement.steps:
        return {}
    title = statement.title
    if title.lower().rstrip(":") in _GENERIC_TITLES and len(statement.headings) > 1:
        # Two procedures called "Workflow" are not two versions of one.
        title = " › ".join(statement.headings[-2:])
    steps = []
    for number, step in enumerate(statement.steps, 1):
        description = redact(step.description).text
        files = mentions_in(description, root, folder).files
        steps.append(
            {
                "order": number,
                "description": description,
                **({"canonical_file": files[0]} if files else {}),
            }
        )
    return {"task_pattern": redact(title).text, "steps": steps}
