"""Edit memories: update, pin, verify, forget, supersede, merge, relate, undo."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from smara.core.freshness import CODE_CHANGED
from smara.errors import ConflictError, InvalidInputError
from smara.knowledge import prepare
from smara.knowledge.change import MemoryChange, refuse_deprecated
from smara.knowledge.decay import FileHistory, staleness_of
from smara.knowledge.models import By, Evidence, Relation, TypedMemory, origins
from smara.knowledge.provenance import notify_code
from smara.knowledge.reader import MemoryReader
from smara.knowledge.store import StoredMemory

_PLACES = frozenset(
    {"evidence", "commit_sha", "chunk_type", "chunk_start_line", "chunk_end_line", "context_prefix"}
)  # fmt: skip
"""Where a memory is written down: it moves with its file, confirmed or not."""


class MemoryEditor(MemoryReader):
    """The changes of single memories."""

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

        Returns:
            The memory as it is now.

        Raises:
            ConflictError: If the version is another one, or a person owns the memory.
        """
        taints = set(prepare.clean_taint(taint))
        changing = self._changing(
            memory_id, by, version=version, actor=actor, session_id=session_id
        )
        with changing as (turn, stored):
            memory = stored.memory
            fields = prepare.edited_fields(memory, changes)
            if thread_id is not None and by != "person":
                taints.update(self._sources.ambient_taint(turn.session, thread_id))
            if "evidence" in fields:
                pieces = [Evidence(**each) for each in fields["evidence"]]
                shown = self._sources.shown(turn.session, pieces)
                taints.update(*(each.taint_for(memory.source) for each in shown))
            refuse_deprecated(memory)
            turn.refuse_agents(memory, "edit", is_upkeep=_PLACES.issuperset(fields))
            changed = {
                name: value
                for name, value in fields.items()
                if value != self._store.plain(memory, name)
            }
            if taints - set(memory.taint):
                changed["taint"] = sorted({*memory.taint, *taints})
                if not memory.is_verified and not memory.needs_review:
                    reason = f"it comes from {origins(changed['taint'])}"
                    changed |= {"needs_review": True, "review_reasons": [reason]}
            return turn.change(stored, "updated", changed).memory if changed else memory

    def pin(
        self, memory_id: str, *, by: By = "person", is_pinned: bool = True, **who: Any
    ) -> TypedMemory:
        """Keep a memory from fading and from being pruned.

        Args:
            is_pinned: False to let it fade again.

        Returns:
            The memory as it is now.

        Raises:
            InvalidInputError: If an agent acts.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            turn.require_person("pin a memory")
            refuse_deprecated(stored.memory)
            if stored.memory.is_pinned == is_pinned:
                return stored.memory
            kind = "pinned" if is_pinned else "unpinned"
            return turn.change(stored, kind, {"is_pinned": is_pinned}).memory

    def unpin(self, memory_id: str, *, by: By = "person", **who: Any) -> TypedMemory:
        """Let a pinned memory fade again.

        Returns:
            The memory as it is now.

        Raises:
            InvalidInputError: If an agent acts.
        """
        return self.pin(memory_id, by=by, is_pinned=False, **who)

    def verify(self, memory_id: str, *, by: By = "person", **who: Any) -> TypedMemory:
        """Confirm a memory and clear its taint; it fades from now.

        Returns:
            The memory as it is now.

        Raises:
            InvalidInputError: If an agent acts.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            turn.require_person("verify a memory")
            refuse_deprecated(stored.memory)
            return turn.change(stored, "verified", turn.verified_fields(stored.memory)).memory

    def forget(self, memory_id: str, why: str = "", *, by: By = "agent", **who: Any) -> TypedMemory:
        """Deprecate a memory; after a month it is removed.

        Args:
            why: The reason, for the history.

        Returns:
            The memory as it is now.

        Raises:
            ConflictError: If a person owns the memory and an agent acts.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            return turn.forget(stored, why).memory

    def retire(
        self, memory_id: str, why: str = "", *, at: int | None = None, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Put a memory out of force, with nothing in its place.

        It is stored as superseded: kept, found, and never told as if it held.

        Args:
            why: The reason, for the history.
            at: When it stopped being so (ms); by default now.

        Returns:
            The memory as it is now.

        Raises:
            ConflictError: If a person owns the memory and an agent acts.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            refuse_deprecated(stored.memory)
            turn.refuse_agents(stored.memory, "retire")
            note = {"why": prepare.clean_optional(why, "why", 500)}
            return turn.retire(stored, "superseded", note, deprecated_at=at or turn.now_ms).memory

    def restore(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Restore a deprecated memory.

        Returns:
            The memory as it is now.

        Raises:
            InvalidInputError: If an agent restores what a person deprecated.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            memory = stored.memory
            if memory.is_active:
                return memory
            events = self._store.history(turn.session, stored.no, 1_000)
            forgotten_by = next((event.by for event in events if event.kind == "forgotten"), None)
            if memory.deprecated_because not in ("pruned", "forgotten") or forgotten_by == "person":
                turn.require_person(f"restore a memory that was {memory.deprecated_because}")
            names = ("deprecated_at", "deprecated_because", "superseded_by")
            fields: dict[str, Any] = dict.fromkeys(names)
            if by == "person" or not memory.is_tainted:
                fields["last_verified_use_at"] = turn.now_ms  # or it would be pruned again at once
            return turn.change(stored, "restored", fields).memory

    def supersede(
        self, old_id: str, new_id: str, *, why: str = "", by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Replace an outdated memory by another; both are kept.

        Args:
            old_id: The memory that is outdated.
            new_id: The memory that takes its place.
            why: The reason, for the history.

        Returns:
            The newer one.

        Raises:
            ConflictError: If the older one is more trusted and no person decides.
        """
        with self._changing(new_id, by, **who) as (turn, new):
            old = self._store.require(turn.session, old_id)
            reason = prepare.clean_optional(why, "why", 500) or "replaced without a reason given"
            return turn.supersede(old, new, why=reason).memory

    def merge(
        self, keep_id: str, other_ids: Sequence[str], *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Merge memories that say the same.

        Args:
            keep_id: The memory that is kept.
            other_ids: Those that are merged into it.

        Returns:
            The one that is kept, with what the others add to it.

        Raises:
            ConflictError: If one of the others is more trusted and no person decides.
        """
        with self._changing(keep_id, by, **who) as (turn, keep):
            for other in [self._store.require(turn.session, each) for each in other_ids]:
                keep = turn.merge(keep, other)
            return keep.memory

    def relate(
        self, memory_id: str, relation: Relation, *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Relate a memory to another or to a file; safe to repeat.

        Args:
            relation: Its type, and the other memory by any id, or a path.

        Returns:
            The memory as it is now.

        Raises:
            InvalidInputError: If the relation is impossible.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            resolved = turn.resolve_relation(prepare.clean_relation(relation))
            if resolved.memory_id == stored.memory.id:
                raise InvalidInputError("A memory has no relation to itself. Name another memory.")
            if _find_relation(stored.memory, resolved) is not None:
                return stored.memory
            if resolved.type == "derived_from":
                raise InvalidInputError(
                    "What a memory was derived from is said when it is made, for its trust depends "
                    "on it."
                )
            return turn.put_relation(stored, resolved, "related", is_there=True).memory

    def unrelate(
        self, memory_id: str, relation: Relation, *, by: By = "agent", **who: Any
    ) -> TypedMemory:
        """Remove a relation of a memory; safe to repeat.

        Args:
            relation: The relation, by its type and its memory or path.

        Returns:
            The memory as it is now.

        Raises:
            InvalidInputError: If the relation is history, which stays.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            resolved = turn.resolve_relation(prepare.clean_relation(relation))
            there = _find_relation(stored.memory, resolved)
            if there is None:
                return stored.memory
            if resolved.type in ("derived_from", "supersedes"):
                raise InvalidInputError(
                    f"The relation {resolved.type} is history and stays. Undo or restore instead."
                )
            return turn.put_relation(stored, there, "unrelated", is_there=False).memory

    def mark_stale(self, memory_id: str, why: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Mark a memory as no longer true; it is never injected.

        Args:
            why: The reason.

        Returns:
            The memory as it is now.

        Raises:
            ConflictError: If a person owns the memory and an agent acts.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            return turn.mark_stale(stored, why).memory

    def mark_fresh(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Remove the mark of a stale memory.

        Returns:
            The memory as it is now.

        Raises:
            ConflictError: If a person owns the memory and an agent acts.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            refuse_deprecated(stored.memory)
            turn.refuse_agents(stored.memory, "mark as fresh", is_upkeep=True)
            if not stored.memory.is_stale:
                return stored.memory
            fields = {"stale_at": None, "stale_because": None}
            return turn.change(stored, "marked_fresh", fields).memory

    def undo(self, memory_id: str, *, by: By = "agent", **who: Any) -> TypedMemory:
        """Revert the newest change, in all memories it touched.

        Called again, it goes further back.

        Returns:
            The memory as it is now.

        Raises:
            ConflictError: If nothing is left, or one of the memories was changed since.
            InvalidInputError: If an agent undoes what a person did.
        """
        with self._changing(memory_id, by, **who) as (turn, stored):
            return turn.undo(stored).memory

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
        now = self._journal.project.clock.now_ms()
        for memory in self.export():
            if not memory.is_active or not memory.files or memory.is_stale:
                continue
            verdict = staleness_of(memory, now, history)
            if not verdict.is_gone and (not verdict.needs_review or memory.needs_review):
                continue
            with self._journal.begin(by="system") as turn:
                stored = self._store.require(turn.session, memory.id)
                if verdict.is_gone:
                    stored = turn.mark_stale(stored, verdict.reasons[0].text)
                elif not stored.memory.needs_review:
                    reasons = [reason.text for reason in verdict.reasons if reason.layer == 4]
                    fields = {"needs_review": True, "review_reasons": reasons}
                    stored = turn.change(stored, "updated", fields)
                found.append(stored.memory)
        return found

    def check_code(self, paths: Sequence[str] | None = None) -> builtins.list[TypedMemory]:
        """Compare memories with their code and update the reviews.

        Args:
            paths: Only code in these files.

        Returns:
            The memories whose need of a review changed.
        """
        with self._store.database.read() as session:
            judged = self._code.freshness(session, self._code.named_in(session, paths))
            there = self._store.by_numbers(session, judged, has_relations=False)
        changed: builtins.list[TypedMemory] = []
        for no, memory in there.items():
            is_waiting = any(each.startswith(CODE_CHANGED) for each in memory.review_reasons)
            code = judged[no]
            if not memory.is_active or not (code.needs_review or is_waiting):
                continue
            with self._journal.begin(by="system") as turn:
                stored = self._store.stored(turn.session, no)
                have = stored.memory.review_reasons
                reasons = [reason for reason in have if not reason.startswith(CODE_CHANGED)]
                if code.needs_review:
                    reasons.append((code.hedge or CODE_CHANGED)[:500])
                if code.verdict != "unknown" and tuple(reasons) != have:
                    fields = {"needs_review": bool(reasons), "review_reasons": reasons}
                    changed.append(turn.change(stored, "updated", fields).memory)
        return changed

    @contextmanager
    def _changing(
        self,
        memory_id: str,
        by: By,
        *,
        version: int | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Iterator[tuple[MemoryChange, StoredMemory]]:
        """Begin the change of one memory; the code it names hears of it."""
        with self._journal.begin(actor, session_id, by) as turn:
            stored = self._store.require(turn.session, memory_id)
            memory = stored.memory
            if version is not None and version != memory.version:
                raise ConflictError.with_hint(
                    f"Memory {memory.short_id} was changed since version {version}.",
                    f"It is at version {memory.version}; look at it again, then decide.",
                    memory_id=memory.short_id,
                    version=memory.version,
                    brief="Memory was changed meanwhile",
                )
            yield turn, stored
            changed = self._store.stored(turn.session, stored.no)
        notify_code(self._code, memory, changed)


def _find_relation(memory: TypedMemory, relation: Relation) -> Relation | None:
    name = (relation.type, relation.memory_id, relation.path)
    same = (each for each in memory.relations if (each.type, each.memory_id, each.path) == name)
    return next(same, None)
