"""Where memories and what was said meet: the messages and observations they rest on, and the taint
of these.

What a memory rests on directly gives it all of its taint. What an agent merely had before its
eyes, earlier in the same conversation, gives what came from outside: a page that was read
before something was noted may speak through the note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from smara.core.clock import Clock
from smara.core.ids import IdMaker
from smara.core.scope import is_id
from smara.core.text import snippet
from smara.database.database import Session
from smara.environment import patience
from smara.knowledge.code import NamedCode
from smara.knowledge.memories import Memories
from smara.knowledge.models import LOCAL_TAINT, Evidence, TypedMemory
from smara.knowledge.sources import SourceShown
from smara.knowledge.staleness import FileHistory
from smara.knowledge.store import KnowledgeStore
from smara.knowledge.turn import Turns
from smara.messages.store import MessageStore
from smara.observations.taint import taint_of

if TYPE_CHECKING:
    from smara.meaning.reading import Meaning
    from smara.observations.store import ObservationStore

_LOOKED_BACK = 400
"""How many messages of a conversation are looked at for what came from outside."""
_NEAREST = 8
_MEANING_SECONDS = 0.25
"""How long a new memory waits for its meaning; without it, words alone say whether it is new."""


def make_memories(
    messages: MessageStore,
    clock: Clock,
    new_id: IdMaker,
    actor: str,
    session_id: str | None,
    find_meaning: Callable[[], Meaning | None],
    code: NamedCode | None = None,
    files: FileHistory | None = None,
) -> Memories:
    """The room of memories, with what it needs of others: messages, observations, meaning and
    code.
    """
    database, scope = messages.database, messages.scope

    def similar(draft: TypedMemory) -> Sequence[tuple[int, float]]:
        meaning = find_meaning()
        if meaning is None:
            return ()
        from smara.meaning.texts import of_memory  # loads much that a look-up does without

        vector, _ = meaning.query_vector(
            of_memory(draft), deadline_seconds=_MEANING_SECONDS * patience()
        )
        if vector is None:
            return ()
        with database.read() as session:
            return meaning.nearest(session, "memory", vector, _NEAREST)

    turns = Turns(
        KnowledgeStore(database, scope),
        clock,
        new_id,
        default_actor=actor,
        default_session=session_id,
    )
    return Memories(turns, Provenance(messages), files, similar=similar, code=code)


class Provenance:
    """Answers for the messages and observations of one project."""

    def __init__(self, messages: MessageStore) -> None:
        self._messages = messages

    @cached_property
    def _observations(self) -> ObservationStore:
        from smara.observations.store import ObservationStore

        return ObservationStore(self._messages.database, self._messages.scope)

    def shown(self, session: Session, evidence: Sequence[Evidence]) -> list[SourceShown]:
        """Pieces of evidence with what they say, in their order."""
        return [self._one(session, each) for each in evidence]

    def ambient_taint(self, session: Session, thread_id: str) -> tuple[str, ...]:
        """What came into a conversation from outside, up to now."""
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

    def _one(self, session: Session, evidence: Evidence) -> SourceShown:
        if evidence.message_id is not None:
            return self._message(session, evidence, evidence.message_id)
        if evidence.observation_id is not None:
            return self._observation(session, evidence, evidence.observation_id)
        return SourceShown(evidence, None, evidence.quote or "")

    def _message(self, session: Session, evidence: Evidence, message_id: str) -> SourceShown:
        found = self._messages.find_message(session, message_id) if is_id(message_id) else None
        if found is None:
            return SourceShown(evidence, False, evidence.quote or "")
        message = found[1]
        taint = set(taint_of([message]))
        if (
            message.role != "user"
        ):  # what an agent says after it has read a page may be what the page said
            thread_no = self._messages.thread_no(session, message.thread_id)
            taint.update(
                self._outside(session, thread_no, message.seq) if thread_no is not None else ()
            )
        text = evidence.quote or snippet(message.raw_content, ())
        return SourceShown(
            evidence,
            True,
            text,
            told_by=message.role,
            at=message.created_at,
            taint=tuple(sorted(taint)),
        )

    def _observation(
        self, session: Session, evidence: Evidence, observation_id: str
    ) -> SourceShown:
        rows = (
            self._observations.select(session, " AND o.id = ?", (observation_id,))
            if is_id(observation_id)
            else []
        )
        if not rows:
            return SourceShown(evidence, False, evidence.quote or "")
        observation = rows[0][1]
        text = evidence.quote or observation.text
        return SourceShown(
            evidence,
            True,
            text,
            told_by=observation.kind,
            at=observation.said_at,
            taint=observation.taint,
        )
