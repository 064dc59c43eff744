"""Import instruction files as typed memories, and report the changes.

The statements are compared with the memories of earlier imports; only the difference is
written, and the files are never changed. Everything imported is tainted by its source and
waits for review.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from smara.adapters.instructions.collect import (
    InstructionSet,
    NotFollowed,
    commits_of,
    gather,
    mentions_in,
    modules_of,
    root_of,
)
from smara.adapters.instructions.markdown import InstructionStatement, LeftOut
from smara.adapters.instructions.match import MatchPlan, Saying, StatementPlace, match, paths_of
from smara.core.startup.record import dataclass, field
from smara.knowledge.guess import Guess, type_of
from smara.knowledge.models import Chunk, Evidence, MemorySource, NewMemory, Relation, TypedMemory
from smara.memory import Memory
from smara.secrets import redact

# What became of a statement or of its memory. *moved*: the same words at other lines; *verified*:
# now vouched for; *put aside*: a person rejected or forgot it; *removed* and *stale*: no file says
# it any more, and at most a person had confirmed it; *known*: another memory says it already.
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


@dataclass(frozen=True, slots=True)
class StatementChange:
    """One statement, and what became of it.

    Attributes:
        places: Where it stands, as ``path:first-last``.
        memory_id: The short id of its memory; ``None`` when it has none, or not yet.
        replaces: The short id of the memory whose place it took.
        why: What made it this type, or why it was refused.
    """

    outcome: Outcome
    type: str
    text: str
    places: tuple[str, ...]
    memory_id: str | None = None
    replaces: str | None = None
    why: tuple[str, ...] = ()


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


def all_memories(memory: Memory, source: MemorySource) -> Iterator[TypedMemory]:
    """Yield every memory of a source, whatever its state."""
    offset: int | None = 0
    while offset is not None:
        page = memory.memories.list(source=source, state="all", limit=_PAGE, offset=offset)
        yield from page
        offset = page.next_offset


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
    return InstructionImport(
        memory,
        gather(root_of(root), paths),
        is_dry_run=is_dry_run,
        is_verified=is_verified,
        actor=actor,
    ).run()


class InstructionImport:
    """One import of instruction files that were read; see :func:`import_instructions`."""

    def __init__(
        self,
        memory: Memory,
        gathered: InstructionSet,
        *,
        is_dry_run: bool = False,
        is_verified: bool = False,
        actor: str | None = None,
    ) -> None:
        self._memory = memory
        self._memories = memory.memories
        self._gathered = gathered
        self._is_verified = is_verified
        self._as_system: dict[str, Any] = {"actor": actor, "by": "system"}
        self._who: dict[str, Any] = {"actor": actor, "by": "person" if is_verified else "system"}
        self._heads = {each.file.path: each.parsed.head for each in gathered.read}
        self._commits = commits_of(gathered.root, self._heads)
        self._report = InstructionReport(
            gathered.root,
            is_dry_run,
            files=[
                FileReport(
                    each.file.path,
                    each.file.host,
                    len(each.parsed.statements),
                    left_out=each.parsed.left_out,
                )
                for each in gathered.read
            ],
            not_followed=gathered.not_followed,
            unreadable=gathered.unreadable,
        )

    def run(self) -> InstructionReport:
        plan, is_dry_run = self._plan(), self._report.is_dry_run
        for memory, sayings in plan.unchanged:
            outcome: Outcome = "unchanged" if self._is_in_place(memory, sayings) else "moved"
            if not is_dry_run:
                self._move(memory, sayings)
            if self._is_verified and not memory.is_verified:
                outcome = "verified"
                if not is_dry_run:
                    self._memories.verify(memory.id, **self._who)
            for saying in sayings:
                self._tell(outcome, saying, memory)
        for memory in plan.removed:
            if not is_dry_run:
                files = " and ".join(sorted(paths_of(memory))) or "Its file"
                self._remove(memory, f"{files} does not say it any more.")
            self._report.changes.append(
                StatementChange(
                    "stale" if _is_vouched_for(memory) else "removed",
                    memory.type,
                    memory.content,
                    places=tuple(str(each) for each in memory.evidence if each.path),
                    memory_id=memory.short_id,
                )
            )
        for saying, memory in plan.returned:
            if not is_dry_run:
                self._move(self._memories.restore(memory.id, **self._as_system), [saying])
            self._tell("returned", saying, memory)
        for saying, memory in plan.put_aside:
            self._tell("put aside", saying, memory)
        if is_dry_run:
            for saying, memory in plan.changed:
                self._tell("changed", saying, None, replaces=memory)
            for saying in plan.added:
                self._tell("added", saying, None)
        else:
            self._add(plan)
        return self._report

    def _plan(self) -> MatchPlan:
        places = (
            (StatementPlace(each.file, statement), redact(statement.text).text)
            for each in self._gathered.read
            for statement in each.parsed.statements
        )
        memories = list(filter(self._is_concerned, all_memories(self._memory, SOURCE)))
        # Whether a person put a memory aside is in its events.
        by_person = {
            memory.id
            for memory in memories
            if not memory.is_active
            for event in self._memories.history(memory.id)
            if event.kind in ("forgotten", "rejected")
            and event.by == "person"
            and not event.is_undone
        }
        return match(places, memories, by_person)

    def _is_concerned(self, memory: TypedMemory) -> bool:
        """Whether what was read can say something about a memory: its file was read, or is gone."""
        paths = paths_of(memory)
        if paths & self._heads.keys():
            return True
        if paths & {path for path, _ in self._gathered.unreadable}:
            return False
        inside = not any(os.path.isabs(path) for path in paths)
        return (self._gathered.is_whole and inside) or (
            bool(paths) and all(map(self._gathered.was_looked_for, paths))
        )

    def _move(self, memory: TypedMemory, sayings: Sequence[Saying]) -> None:
        """The same words stand at other lines, or in other files; nothing else of the memory
        changes.
        """
        if not self._is_in_place(memory, sayings):
            self._memories.update(
                memory.id,
                evidence=self._evidence(memory, sayings),
                chunk=_chunk(sayings[0]),
                **self._as_system,
            )
        if memory.is_stale:
            self._memories.mark_fresh(memory.id, **self._as_system)

    def _add(self, plan: MatchPlan) -> None:
        """New statements, and those whose words were changed, in one go."""
        replaced = {saying.key: memory for saying, memory in plan.changed}
        sayings = [saying for saying, _ in plan.changed] + plan.added
        results = self._memories.add_many(
            [self._new(each, replaced.get(each.key)) for each in sayings], **self._who
        )
        for saying, result in zip(sayings, results, strict=True):
            old = replaced.get(saying.key)
            if old is not None and self._memories.get(old.id).is_active:
                # A person vouched for it, or its new words were known or refused: it has not been
                # superseded.
                self._remove(old, f"{_where(saying)[0]} says something else now.")
            outcomes: dict[str, Outcome] = {
                "added": "changed" if old else "added",
                "duplicate": "known",
            }
            outcome = outcomes.get(result.outcome, "refused")
            self._tell(outcome, saying, result.memory, replaces=old, why=result.why)

    def _new(self, saying: Saying, replaces: TypedMemory | None) -> NewMemory:
        first = saying.places[0]
        statement, guess = first.statement, _guess(saying)
        folders = [each.file.folder for each in saying.places if each.file.folder]
        spoken_of = mentions_in(saying.text, self._gathered.root, first.file.folder)
        head = self._heads[first.file.path]
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

    def _evidence(self, memory: TypedMemory, sayings: Sequence[Saying]) -> list[Evidence]:
        """The lines that say what a memory says; of files that were not read now, the lines as
        they were.
        """
        gathered = self._gathered
        return [
            *(place for saying in sayings for place in self._places(saying)),
            *(
                each
                for each in memory.evidence
                if each.path not in self._heads
                # A file that is gone is no evidence any more, when all were looked for.
                and (
                    each.path is None
                    or (
                        (not gathered.is_whole or os.path.isabs(each.path))
                        and not gathered.was_looked_for(each.path)
                    )
                )
            ),
        ]

    def _is_in_place(self, memory: TypedMemory, sayings: Sequence[Saying]) -> bool:
        """Whether a memory knows exactly these lines. The commit may be another: the lines are the
        same.
        """
        now, before = (
            {(each.path, each.first_line, each.last_line, each.message_id) for each in some}
            for some in (self._evidence(memory, sayings), memory.evidence)
        )
        return not memory.is_stale and now == before

    def _remove(self, memory: TypedMemory, why: str) -> None:
        """A statement that no file makes any more; what a person has confirmed only loses its
        freshness.
        """
        if not _is_vouched_for(memory):
            self._memories.forget(memory.id, why, **self._as_system)
        elif not memory.is_stale:
            self._memories.mark_stale(memory.id, why, **self._as_system)

    def _tell(
        self,
        outcome: Outcome,
        saying: Saying,
        memory: TypedMemory | None,
        *,
        replaces: TypedMemory | None = None,
        why: Sequence[str] = (),
    ) -> None:
        guess = _guess(saying)
        self._report.changes.append(
            StatementChange(
                outcome,
                memory.type if memory is not None else guess.type,
                saying.text,
                places=_where(saying),
                memory_id=memory.short_id if memory else None,
                replaces=replaces.short_id if replaces else None,
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
    file, statement = saying.places[0]
    return Chunk(
        "prose",
        statement.first_line,
        statement.last_line,
        context_prefix=" › ".join((file.path, *statement.headings)),
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
