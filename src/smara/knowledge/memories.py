"""Add memories, and be the public face of the room.

Every change writes an event. What is inherited reads (`reader`), edits (`edit`) and reviews
(`review`).
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smara.core import log
from smara.core.validate import one_of
from smara.errors import InvalidInputError, SmaraError
from smara.knowledge import prepare
from smara.knowledge import trust as levels
from smara.knowledge.change import MemoryJournal
from smara.knowledge.decay import FileHistory
from smara.knowledge.models import AddResult, By, MemoryType, NewMemory, Visibility
from smara.knowledge.provenance import NamedCode, Sources, notify_code
from smara.knowledge.review import MemoryReview
from smara.knowledge.store import StoredMemory

if TYPE_CHECKING:
    from smara.database.database import Session
    from smara.knowledge.add import PreparedMemory, SimilarMemories
    from smara.knowledge.gate import SessionType


class Memories(MemoryReview):
    """The memories of one project.

    Arguments that many methods share:
        memory_id: The UUID of a memory, its short id with or without what stands before the hyphen,
            or the beginning of one of these, as long as only one fits.
        by: Who acts: a ``person``, an ``agent`` or the ``system``. Only a person can verify,
            accept, reject, pin, and undo what a person did; otherwise ``InvalidInputError``.
        actor: The name of who acts, for the history.
        session_id: The session in which it happens.
        version: The version the memory must still have; ``ConflictError`` if it was changed.
        **who: ``actor``, ``session_id`` and ``version``, where they are not named one by one.
        memory: A memory, as :meth:`get`, :meth:`list` or a search returned it.
        session_type: ``build``, ``insights``, ``roadmap``, ``terminal``, ``changelog``, ``spec`` or
            ``pr_review``; it limits how many statements a session learns.
    """

    def __init__(
        self,
        journal: MemoryJournal,
        sources: Sources | None = None,
        files: FileHistory | None = None,
        similar: SimilarMemories | None = None,
        code: NamedCode | None = None,
    ) -> None:
        super().__init__(journal, sources, files, code=code)
        self._similar = similar

    def remember(
        self,
        text: str,
        *,
        type: MemoryType | None = None,
        files: Sequence[str] = (),
        modules: Sequence[str] = (),
        tags: Sequence[str] = (),
        citation: str | None = None,
        visibility: Visibility = "project",
        is_pinned: bool = False,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> AddResult:
        """Remember what a person teaches; it is confirmed at once.

        Args:
            text: The statement.
            type: Its type; without it, guessed by the words.
            files: The files it is about.
            modules: The modules it is about.
            tags: Free labels.
            citation: A short name to cite it by.
            visibility: Who may see it.
            is_pinned: True to keep it from fading.
            actor: The person, for the history.
            session_id: The session in which it was taught.

        Returns:
            The memory, or the one that says the same already.

        Raises:
            InvalidInputError: If the statement is empty or too long.
        """
        new = NewMemory(
            prepare.clean_content(text),
            type or self.guess_type(text),
            "user_taught",
            tags=tags,
            files=files,
            modules=modules,
            citation=citation,
            visibility=visibility,
            is_pinned=is_pinned,
        )
        return self.add_many([new], by="person", actor=actor, session_id=session_id)[0]

    def add(
        self,
        content: str,
        *,
        type: MemoryType,
        by: By = "agent",
        actor: str | None = None,
        session_id: str | None = None,
        session_type: SessionType = "build",
        thread_id: str | None = None,
        already_told: Sequence[str] = (),
        **fields: Any,
    ) -> AddResult:
        """Remember one statement; see :meth:`add_many`.

        Args:
            content: The statement.
            type: Its type.
            thread_id: The conversation in which it was noted; what came into it from outside taints
                it.
            already_told: Texts that the agent was given; a statement that only repeats them is
                refused.
            **fields: Other fields of :class:`NewMemory`.

        Returns:
            The memory; or the duplicate, or why it was refused.
        """
        return self.add_many(
            [NewMemory(content, type, **fields)],
            by=by,
            actor=actor,
            session_id=session_id,
            session_type=session_type,
            thread_id=thread_id,
            already_told=already_told,
        )[0]

    def add_many(
        self,
        new: Iterable[NewMemory],
        *,
        by: By = "agent",
        actor: str | None = None,
        session_id: str | None = None,
        session_type: SessionType = "build",
        thread_id: str | None = None,
        already_told: Sequence[str] = (),
        put_aside: Mapping[str, str] | None = None,
        also: Callable[[Session, Sequence[AddResult]], object] | None = None,
    ) -> builtins.list[AddResult]:
        """Remember statements in one transaction.

        Args:
            new: The statements.
            session_type: What kind of session it is; that limits how many are learned.
            thread_id: The conversation in which they were noted; what came into it from outside
                taints them.
            already_told: Texts that the agent was given, such as boot files; a statement that only
                repeats them is refused.
            put_aside: The ids of memories to forget in the same transaction, with the reasons;
                deprecated ones are left.
            also: Called within the transaction with the results; if it raises, nothing changes.

        Returns:
            What came of each, in their order.
        """
        from smara.knowledge.add import Adder, prepare_new
        from smara.knowledge.gate import SESSION_TYPES

        one_of(session_type, SESSION_TYPES, "session_type")
        if by == "agent" and self._journal.project.settings.keep == "vectors":
            raise InvalidInputError(
                "This project keeps no words of conversations, so that agents record no memories."
                " A person can: smara remember 'TEXT'"
            )
        has_session = session_id is not None or self._journal.project.settings.session is not None
        prepared = [
            self._with_cosines(prepare_new(each, already_told, has_session, self._files))
            for each in new
        ]
        with self._journal.begin(actor, session_id, by) as turn:
            if turn.session_id is not None:
                levels.see_session(turn, turn.session_id)
            adder = Adder(turn, self._sources, session_type, thread_id=thread_id)
            added = [adder.add(each) for each in prepared]
            made = {
                each.memory.id: each.memory
                for each in added
                if each.memory and each.outcome == "added"
            }
            numbers = self._store.numbers_of_ids(turn.session, list(made))
            reasons = put_aside or {}
            aside = self._store.numbers_of_ids(turn.session, list(reasons)).values()
            forgotten = [
                (memory, turn.forget(StoredMemory(no, memory), reasons[memory.id]))
                for no, memory in self._store.by_numbers(turn.session, aside).items()
                if memory.is_active
            ]
            if also is not None:
                also(turn.session, added)
        if made:
            self._code.written([StoredMemory(numbers[each], made[each]) for each in made])
        for before, after in forgotten:
            notify_code(self._code, before, after)
        outcomes = [each.outcome for each in added]
        log.event(
            "memory.added",
            **{name: outcomes.count(name) for name in ("added", "duplicate", "refused")},
        )
        return added

    def guess_type(self, text: str) -> MemoryType:
        """Guess the type of a statement by its words.

        Args:
            text: The statement whose words are looked at.

        Returns:
            The type whose words fit best.
        """
        from smara.knowledge.guess import type_of

        return prepare.clean_type(type_of(text).type)

    def _with_cosines(self, prepared: PreparedMemory) -> PreparedMemory:
        """What is close in meaning, looked up before anything is locked; trouble there never keeps
        a memory out.

        What a person teaches is held against what is there by its words alone: it is wanted at
        once.
        """
        if self._similar is None or prepared.against or prepared.fields["source"] == "user_taught":
            return prepared
        try:
            return replace(prepared, cosines=dict(self._similar(prepared.draft)))
        except SmaraError as error:
            log.warning("memory.similar_failed", error=error.code)
            return prepared
