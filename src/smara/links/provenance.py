"""Trace memories to the messages, observations and files they rest on.

A memory inherits the taint of its sources. Files without an anchor are followed by their
git history.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from smara.core.scope import is_id
from smara.core.text import snippet
from smara.database.database import Session
from smara.database.projects import ProjectContext
from smara.environment import patience
from smara.journal import ChangeJournal
from smara.knowledge.change import MemoryChange
from smara.knowledge.decay import FileHistory
from smara.knowledge.memories import Memories
from smara.knowledge.models import LOCAL_TAINT, Evidence, TypedMemory
from smara.knowledge.provenance import NamedCode, SourceExcerpt, Sources
from smara.knowledge.store import KnowledgeStore
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.observations.models import taint_of

if TYPE_CHECKING:
    from smara.codegraph.git import GitFiles
    from smara.meaning.query import Meaning
    from smara.observations.store import ObservationStore


ALLOWED_SECONDS = 1.5
_SECONDS_EACH = 0.5
T = TypeVar("T")


class TreeFiles:
    """The files of the folder that asks."""

    def __init__(
        self, find_root: Callable[[], str | None], allowed_seconds: float = ALLOWED_SECONDS
    ) -> None:
        self._find_root = find_root
        self._left = allowed_seconds * patience()
        self._pasts: dict[str, GitFiles] = {}
        self._answers: dict[tuple[str, str, str, str], object] = {}

    def exists(self, path: str) -> bool | None:
        """Return True if the file is there, False if git had it."""
        root = self._root_of(path)
        if root is None:
            return None
        if os.path.lexists(os.path.join(root, path)):
            return True
        was = self._answer(root, "knows", path, lambda past: past.knows(path))
        return False if was else None

    def called(self, name: str) -> str | None:
        """Return the one file whose path ends like this.

        A name without an end, as ``Makefile``, is looked for in the uppermost folder alone, where
        it must be written like this: such a word is common.
        """
        root = self._root_of(name)
        if root is None:
            return None
        if "." not in name[1:]:
            # Some systems find a file however its name is written.
            is_file = os.path.isfile(os.path.join(root, name))
            return name if is_file and name in os.listdir(root) else None
        ends = self._answer(root, "called", name, lambda past: past.ending(name)) or ()
        return ends[0] if len(ends) == 1 else None

    def changed_since(self, path: str, commit: str) -> bool | None:
        """Return True if the file differs from a commit."""
        root = self._root_of(path)
        if root is None:
            return None
        found = self._answer(
            root, "changed", f"{path}\0{commit}", lambda past: past.changed_since(path, commit)
        )
        return None if found is None else bool(found)

    def modified_at(self, path: str) -> int | None:
        """Return when the file was last committed or written."""
        root = self._root_of(path)
        if root is None or not os.path.isfile(os.path.join(root, path)):
            return None
        committed = self._answer(root, "modified", path, lambda past: past.modified_at(path))
        if committed is not None:
            return committed
        if os.path.exists(os.path.join(root, ".git")):
            return None
        try:
            return os.stat(os.path.join(root, path)).st_mtime_ns // 1_000_000
        except OSError:
            return None

    def _root_of(self, path: str) -> str | None:
        root = self._find_root()
        is_inside = not os.path.isabs(path) and ".." not in path.split("/")
        return root if is_inside else None

    def _answer(self, root: str, what: str, about: str, ask: Callable[[GitFiles], T]) -> T | None:
        from smara.codegraph.git import GitFiles

        past = self._pasts.setdefault(root, GitFiles(root, _SECONDS_EACH))
        key = (root, past.head() or "", what, about)
        if key in self._answers:
            return self._answers[key]  # type: ignore[return-value]  # the same question was answered so before
        if self._left <= 0:
            return None
        begin = time.monotonic()
        found = ask(past)
        self._left -= time.monotonic() - begin
        self._answers[key] = found
        return found


_LOOKED_BACK = 400
"""How many messages of a conversation are looked at for what came from outside."""
_NEAREST = 8
_MEANING_SECONDS = 0.25
"""How long a new memory waits for its meaning; without it, words alone say whether it is new."""


def make_memories(
    project: ProjectContext,
    messages: MessageStore,
    find_meaning: Callable[[], Meaning | None],
    code: NamedCode | None = None,
    files: FileHistory | None = None,
) -> Memories:
    """Create the room of memories with what it needs of others."""
    database = project.database

    def similar(draft: TypedMemory) -> Sequence[tuple[int, float]]:
        meaning = find_meaning()
        if meaning is None:
            return ()
        from smara.meaning.queue import of_memory  # loads much that a look-up does without

        vector, _ = meaning.query_vector(
            of_memory(draft), deadline_seconds=_MEANING_SECONDS * patience()
        )
        if vector is None:
            return ()
        with database.read() as session:
            return meaning.nearest(session, "memory", vector, _NEAREST)

    journal = ChangeJournal(project, KnowledgeStore.seen_by(project), MemoryChange)
    return Memories(journal, Provenance(messages), files, similar=similar, code=code)


class Provenance(Sources):
    """Answers for the messages and observations of one project."""

    def __init__(self, messages: MessageStore) -> None:
        self._messages = messages

    @cached_property
    def _observations(self) -> ObservationStore:
        from smara.observations.store import ObservationStore

        return ObservationStore(self._messages.database, self._messages.scope)

    def shown(self, session: Session, evidence: Sequence[Evidence]) -> list[SourceExcerpt]:
        """Return pieces of evidence with what they say, in their order."""
        found: list[SourceExcerpt] = []
        for each in evidence:
            excerpt = SourceExcerpt(each, None, each.quote or "")
            if each.message_id is not None:
                stored = self._messages.find_message(session, each.message_id)
                excerpt = replace(excerpt, is_there=stored is not None)
                if stored is not None:
                    message = stored[1]
                    excerpt = replace(
                        excerpt,
                        text=each.quote or snippet(message.raw_content, ()),
                        told_by=message.role,
                        at=message.created_at,
                        taint=self._taint(session, message),
                    )
            elif each.observation_id is not None:
                name = each.observation_id if is_id(each.observation_id) else ""
                rows = self._observations.select(session, " AND o.id = ?", (name,))
                excerpt = replace(excerpt, is_there=bool(rows))
                for _, observation in rows[:1]:
                    excerpt = replace(
                        excerpt,
                        text=each.quote or observation.text,
                        told_by=observation.kind,
                        at=observation.said_at,
                        taint=observation.taint,
                    )
            found.append(excerpt)
        return found

    def _taint(self, session: Session, message: Message) -> tuple[str, ...]:
        """Return the taint of a message.

        What an agent says after it has read a page may be what the page said.
        """
        taint = set(taint_of([message]))
        thread_no = None
        if message.role != "user":
            thread_no = self._messages.thread_no(session, message.thread_id)
        if thread_no is not None:
            taint.update(self._outside(session, thread_no, message.seq))
        return tuple(sorted(taint))

    def ambient_taint(self, session: Session, thread_id: str) -> tuple[str, ...]:
        """Return what came into a conversation from outside."""
        thread_no = self._messages.thread_no(session, thread_id) if is_id(thread_id) else None
        return () if thread_no is None else self._outside(session, thread_no, None)

    def _outside(self, session: Session, thread_no: int, before_seq: int | None) -> tuple[str, ...]:
        where = "" if before_seq is None else " AND seq < ?"
        rows = session.all(
            self._messages.sql(
                f"SELECT no FROM messages WHERE project_no = :project AND thread_no = ?{where}"
                f" ORDER BY seq DESC LIMIT {_LOOKED_BACK}"
            ),
            (thread_no,) if before_seq is None else (thread_no, before_seq),
        )
        found = self._messages.by_numbers(session, [row[0] for row in rows])
        return tuple(word for word in taint_of(found.values()) if word not in LOCAL_TAINT)
