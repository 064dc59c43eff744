"""Change memories: add, edit, review, relate and prune them.

:class:`Memories` is the room's public face. Every change writes an event.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smara.core import log
from smara.core.freshness import CODE_CHANGED
from smara.core.validate import one_of
from smara.errors import SmaraError
from smara.knowledge import change, lifecycle, prepare, queries
from smara.knowledge import trust as levels
from smara.knowledge.change import edited_fields
from smara.knowledge.decay import DAY_MS, FileHistory, staleness_of
from smara.knowledge.journal import MemoryChange, MemoryJournal, require
from smara.knowledge.models import (
    AcceptResult,
    AddResult,
    By,
    Evidence,
    MemoryTotals,
    MemoryType,
    NewMemory,
    PruneResult,
    Relation,
    TypedMemory,
    UseOutcome,
    Visibility,
)
from smara.knowledge.provenance import NamedCode, Sources, notify_code
from smara.knowledge.reader import MemoryReader
from smara.knowledge.store import StoredMemory
from smara.knowledge.trust import TrustStatus
from smara.secrets.redact import clean_name

if TYPE_CHECKING:
    from smara.database.database import Session
    from smara.knowledge.add import PreparedMemory, SimilarMemories
    from smara.knowledge.gate import SessionType

_REVIEWED_AT_ONCE = 1_000


class Memories(MemoryReader):
    """The memories of one project.

    Arguments that many methods share:
        memory_id: The UUID of a memory, its short id with or without what stands before the
            hyphen, or the beginning of one of these, as long as only one fits.
        by: Who acts: a ``person``, an ``agent`` or the ``system``. Only a person can verify,
            accept, reject, pin, and undo what a person did; otherwise ``ConflictError``.
        actor: The name of who acts, for the history.
        session_id: The session in which it happens.
        version: The version the memory must still have; ``ConflictError`` if it was changed.
    """

    def __init__(
        self,
        turns: MemoryJournal,
        sources: Sources | None = None,
        files: FileHistory | None = None,
        similar: SimilarMemories | None = None,
        code: NamedCode | None = None,
    ) -> None:
        super().__init__(turns, sources, files, code=code)
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
            **fields: Other fields of :class:`NewMemory`.
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
        has_session = session_id is not None or self._turns.default_session is not None
        prepared = [
            self._with_cosines(prepare_new(each, already_told, has_session)) for each in new
        ]
        with self._turns.begin(actor, session_id, by) as turn:
            if turn.session_id is not None:
                levels.see_session(turn, turn.session_id)
            adder = Adder(turn, self._sources, session_type, thread_id=thread_id)
            added = [adder.add(each) for each in prepared]
            new_ids = [
                each.memory.id
                for each in added
                if each.outcome == "added" and each.memory is not None
            ]
            numbers = self._store.numbers_of_ids(turn.session, new_ids)
            ended = change.put_aside(turn, put_aside or {})
            if also is not None:
                also(turn.session, added)
        made = [
            each.memory for each in added if each.memory is not None and each.memory.id in numbers
        ]
        if made:
            self._code.written([StoredMemory(numbers[each.id], each) for each in made])
        for before, after in ended:
            notify_code(self._code, before.memory, after)
        outcomes = [each.outcome for each in added]
        log.event(
            "memory.added",
            **{name: outcomes.count(name) for name in ("added", "duplicate", "refused")},
        )
        return added

    def guess_type(self, text: str) -> MemoryType:
        """Guess the type of a statement by its words."""
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

    def update(
        self,
        memory_id: str,
        *,
        version: int | None = None,
        by: By = "agent",
        actor: str | None = None,
        session_id: str | None = None,
        thread_id: str | None = None,
        taint: Sequence[str] = (),
        **changes: Any,
    ) -> TypedMemory:
        """Change named fields of a memory.

        Args:
            thread_id: The conversation of the change; what came into it from outside taints it.
            taint: Further taint; nothing here takes taint away.
            **changes: Fields of :class:`NewMemory`. A list is replaced, ``data`` merged, and ``""``
                clears a text.

        Raises:
            ConflictError: If the version is another one, or a person owns the memory.
        """
        taints = set(prepare.clean_taint(taint))
        with self._changing(memory_id, version, by, actor, session_id) as (turn, stored):
            fields = edited_fields(stored.memory, changes)
            if thread_id is not None and by != "person":
                taints.update(self._sources.ambient_taint(turn.session, thread_id))
            if "evidence" in fields:
                pieces = [Evidence(**each) for each in fields["evidence"]]
                shown = self._sources.shown(turn.session, pieces)
                taints.update(word for each in shown for word in each.taint)
            return change.update(turn, stored, fields, taint=taints).memory

    def pin(self, memory_id: str, *, by: By = "person", **who: Any) -> TypedMemory:
        """Keep a memory from fading and from being pruned."""
        return self._change(
            memory_id, lambda turn, stored: change.pin(turn, stored, True), by, **who
        )

    def unpin(self, memory_id: str, *, by: By = "person", **who: Any) -> TypedMemory:
        """Let a pinned memory fade again."""
        return self._change(
            memory_id, lambda turn, stored: change.pin(turn, stored, False), by, **who
        )

    def verify(self, memory_id: str, *, by: By = "person", **who: Any) -> TypedMemory:
        """Confirm a memory and clear its taint."""
        return self._change(memory_id, change.verify, by, **who)

    def forget(self, memory_id: str, why: str = "", *, by: By = "agent", **who: Any) -> TypedMemory:
        """Deprecate a memory; after a month it is removed."""
        return self._change(
            memory_id, lambda turn, stored: change.forget(turn, stored, why), by, **who
        )

    def restore(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Restore a deprecated memory; an agent can restore only what was pruned."""
        return self._change(memory_id, change.restore, by, **who)

    def used(
        self, memory_id: str, outcome: UseOutcome, *, note: str = "", by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Record what came of using a memory; being shown is no use.

        One use a session counts.

        Args:
            outcome: ``helped``, ``confirmed``, ``wrong`` or ``failed``.
            note: What happened, in a few words.
        """

        def act(turn: MemoryChange, stored: StoredMemory) -> StoredMemory:
            if turn.session_id is not None:
                levels.see_session(turn, turn.session_id)
            return lifecycle.use(turn, stored, outcome, note=note)

        return self._change(memory_id, act, by, **who)

    def supersede(
        self, old_id: str, new_id: str, *, why: str = "", by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Replace an outdated memory by another; both are kept.

        Returns:
            The newer one.

        Raises:
            ConflictError: If the older one is more trusted and no person decides.
        """

        def act(turn: MemoryChange, new: StoredMemory) -> StoredMemory:
            old = require(turn.session, self._store, old_id)
            return change.supersede(
                turn, old, new, why=prepare.clean_optional(why, "why", 500) or "somebody said so"
            )

        return self._change(new_id, act, by, **who)

    def merge(
        self, keep_id: str, other_ids: Sequence[str], *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Merge memories that say the same.

        Returns:
            The one that is kept, with what the others add to it.

        Raises:
            ConflictError: If one of the others is more trusted and no person decides.
        """

        def act(turn: MemoryChange, keep: StoredMemory) -> StoredMemory:
            others = [require(turn.session, self._store, each) for each in other_ids]
            return change.merge(turn, keep, others)

        return self._change(keep_id, act, by, **who)

    def relate(
        self, memory_id: str, relation: Relation, *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Relate a memory to another one or to a file."""
        return self._change(
            memory_id, lambda turn, stored: change.relate(turn, stored, relation), by, **who
        )

    def unrelate(
        self, memory_id: str, relation: Relation, *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Remove a relation of a memory."""
        return self._change(
            memory_id, lambda turn, stored: change.unrelate(turn, stored, relation), by, **who
        )

    def mark_stale(self, memory_id: str, why: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Mark a memory as no longer true; it is never injected."""
        return self._change(
            memory_id, lambda turn, stored: change.mark_stale(turn, stored, why), by, **who
        )

    def mark_fresh(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Remove the mark of a stale memory."""
        return self._change(memory_id, change.mark_fresh, by, **who)

    def undo(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Revert the newest change, in all memories it touched.

        Called again, it goes further back.

        Raises:
            ConflictError: If nothing is left, or one of the memories was changed since.
        """
        return self._change(memory_id, change.undo, by, **who)

    def accept(
        self,
        memory_id: str,
        *,
        version: int | None = None,
        by: By = "person",
        actor: str | None = None,
        session_id: str | None = None,
        **changes: Any,
    ) -> TypedMemory:
        """Confirm a memory in review; what it surely contradicts gives way.

        Args:
            **changes: Corrections, as for :meth:`update`.
        """
        with self._changing(memory_id, version, by, actor, session_id) as (turn, stored):
            return lifecycle.accept(turn, stored, edited_fields(stored.memory, changes)).memory

    def accept_all(
        self, *, session_id: str | None = None, by: By = "person", actor: str | None = None
    ) -> AcceptResult:
        """Confirm all that waits for review, of one session or of all.

        Returns:
            What was accepted; and what is tainted, disputed or flagged and was left, with the
            reason.
        """
        filters = queries.filters_for(self._store, {"needs_review": True, "session_id": session_id})
        with self._turns.begin(actor, None, by) as turn:
            active = ("m.deprecated_at IS NULL", ())
            waiting = queries.select(
                turn.session, self._store, [active, *filters], order="m.no", limit=_REVIEWED_AT_ONCE
            )
            return lifecycle.accept_all(turn, waiting)

    def reject(
        self, memory_id: str, why: str = "", *, by: By = "person", **who: Any
    ) -> TypedMemory:
        """Reject a memory in review; the same words are not learned again."""
        return self._change(
            memory_id, lambda turn, stored: lifecycle.reject(turn, stored, why), by, **who
        )

    def recount(self) -> MemoryTotals:
        """Count the totals again and store them."""
        with self._turns.begin(None, None, "system") as turn:
            counted = self._store.recount(turn.session)
            turn.state = turn.state._replace(
                total=counted.total, active=counted.active, to_review=counted.to_review
            )
            return counted

    def set_trust_level(
        self, level: int, *, by: By = "person", actor: str | None = None
    ) -> TrustStatus:
        """Set the level of trust.

        Args:
            level: From 1 (cautious) to 4 (autonomous).
        """
        with self._turns.begin(actor, None, by) as turn:
            levels.set_level(turn, level)
            return levels.status(turn.session, self._store, turn.state)

    def decline_offer(self, *, by: By = "person", actor: str | None = None) -> TrustStatus:
        """Keep the level of trust although a more careful one is offered."""
        with self._turns.begin(actor, None, by) as turn:
            levels.decline(turn)
            return levels.status(turn.session, self._store, turn.state)

    def end_session(self, session_id: str) -> TrustStatus:
        """Count a finished session for the trust, and prune once a day."""
        name = clean_name(session_id, "session_id")
        with self._turns.begin(None, name, "system") as turn:
            levels.end_session(turn, name)
            if turn.now_ms - turn.state.pruned_at >= DAY_MS:
                lifecycle.prune(turn)
            return levels.status(turn.session, self._store, turn.state)

    def prune(self, *, dry_run: bool = False) -> PruneResult:
        """Deprecate what has faded, and remove what was deprecated a month ago.

        Args:
            dry_run: True to only report what would happen.
        """
        if dry_run:
            with self._store.database.snapshot() as session:
                return lifecycle.preview(session, self._store, self._turns.clock.now_ms())
        with self._turns.begin(None, None, "system") as turn:
            return lifecycle.prune(turn)

    def check_files(self, files: FileHistory | None = None) -> builtins.list[TypedMemory]:
        """Mark memories whose files are gone or were rewritten.

        Args:
            files: The history of the files, instead of the project's own.

        Returns:
            The memories that are stale now, or wait for a review.
        """
        history = files or self._files
        found: builtins.list[TypedMemory] = []
        if history is None:
            return found
        now = self._turns.clock.now_ms()
        for memory in self.export():
            if not memory.is_active or not memory.files or memory.is_stale:
                continue
            verdict = staleness_of(memory, now, history)
            if not verdict.is_gone and (not verdict.needs_review or memory.needs_review):
                continue
            with self._turns.begin(None, None, "system") as turn:
                stored = require(turn.session, self._store, memory.id)
                found.append(change.note_staleness(turn, stored, verdict).memory)
        return found

    def check_code(self, paths: Sequence[str] | None = None) -> builtins.list[TypedMemory]:
        """Compare memories with their code and update the reviews.

        Args:
            paths: Only code in these files.

        Returns:
            The memories whose need of a review changed.
        """
        with self._store.database.read() as session:
            found = self._code.freshness(session, self._code.named_in(session, paths))
            there = self._store.by_numbers(session, found, has_relations=False)
        changed: builtins.list[TypedMemory] = []
        for no, memory in there.items():
            is_waiting = any(each.startswith(CODE_CHANGED) for each in memory.review_reasons)
            if not memory.is_active or not (found[no].needs_review or is_waiting):
                continue
            with self._turns.begin(None, None, "system") as turn:
                before = StoredMemory(no, self._store.by_number(turn.session, no))
                after = change.note_code(turn, before, found[no])
            if after is not before:
                changed.append(after.memory)
        return changed

    @contextmanager
    def _changing(
        self, memory_id: str, version: int | None, by: By, actor: str | None, session_id: str | None
    ) -> Iterator[tuple[MemoryChange, StoredMemory]]:
        with self._turns.begin(actor, session_id, by) as turn:
            stored = require(turn.session, self._store, memory_id)
            turn.refuse_other_version(stored.memory, version)
            yield turn, stored
            changed = self._store.by_number(turn.session, stored.no)
        notify_code(self._code, stored.memory, StoredMemory(stored.no, changed))

    def _change(
        self,
        memory_id: str,
        act: Callable[[MemoryChange, StoredMemory], StoredMemory],
        by: By,
        *,
        version: int | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> TypedMemory:
        with self._changing(memory_id, version, by, actor, session_id) as (turn, stored):
            changed = act(turn, stored)
            return self._store.by_number(turn.session, changed.no)
