"""Adding a memory: redacted, checked, held against what is there, with the trust of what it comes
from.

What is known already is not stored twice; what contradicts something takes its place, if it
is at least as trusted, and is otherwise put before a person. Nothing here calls a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from smara.database.database import marks
from smara.errors import InvalidInputError, NotFoundError
from smara.knowledge import gate
from smara.knowledge.contradictions import Contradiction, find_contradiction
from smara.knowledge.kinds import subject_key
from smara.knowledge.lookup import require
from smara.knowledge.models import (
    Added,
    Chunk,
    Evidence,
    MemorySource,
    NewMemory,
    Relation,
    TypedMemory,
    rank_of,
)
from smara.knowledge.novelty import Known, candidates, find_known
from smara.knowledge.prepare import INFERRED, clean_relation, clean_taint, fields_of
from smara.knowledge.replacing import absorb, is_outranked, supersede, taken_over
from smara.knowledge.sources import Sources
from smara.knowledge.statements import read
from smara.knowledge.store import Stored, evidence_of
from smara.knowledge.trust import level_of, lowest_taint
from smara.knowledge.turn import Turn
from smara.secrets.names import clean_name

SOURCE_TAINT: Mapping[MemorySource, str] = {
    "imported": "imported", "mcp_auto": "mcp", "qa_auto": "tool", "commit_auto": "tool",
}  # fmt: skip
"""What a source itself says of where its memories come from."""
SURE, UNSURE = 1.0, 0.5
"""The confidence of a relation ``conflicts_with``: when it is sure, accepting the newer one retires
the older.
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A new memory, checked and redacted, with what speaks against it."""

    new: NewMemory
    fields: dict[str, Any]
    evidence: tuple[Evidence, ...]
    relations: tuple[Relation, ...]
    taint: tuple[str, ...]
    against: tuple[str, ...]
    cosines: Mapping[int, float]

    @property
    def draft(self) -> TypedMemory:
        """The memory as its words alone make it, before anybody knows how far it is to be
        trusted.
        """
        fields = self.fields
        chunk = fields["chunk_type"] and Chunk(
            fields["chunk_type"],
            fields["chunk_start_line"],
            fields["chunk_end_line"],
            context_prefix=fields["context_prefix"],
        )
        return TypedMemory(
            "",
            "",
            fields["type"],
            content=fields["content"],
            confidence=fields["confidence"],
            tags=tuple(fields["tags"]),
            files=tuple(fields["files"]),
            modules=tuple(fields["modules"]),
            scope=fields["scope"],
            source=fields["source"],
            visibility=fields["visibility"],
            created_at=0,
            created_by="",
            updated_at=0,
            version=1,
            commit=fields["commit_sha"],
            evidence=self.evidence,
            half_life_days=fields["half_life_days"],
            citation=fields["citation"],
            chunk=chunk or None,
            data=fields["data"],
            is_pinned=fields["is_pinned"],
        )


def prepare_new(new: NewMemory, already_told: Sequence[str], has_session: bool) -> Prepared:
    """Check and redact a new memory; everything that needs no database."""
    if not isinstance(new, NewMemory):
        raise InvalidInputError(f"a memory must be a NewMemory, not {type(new).__name__}.")
    fields = fields_of(new)
    evidence = evidence_of(fields["evidence"])
    source: MemorySource = fields["source"]
    against = gate.reasons_against(
        fields["content"],
        source,
        evidence,
        files=fields["files"],
        already_told=already_told,
        has_session=has_session or new.session_id is not None,
        has_origins=bool(new.derived_from),
    )
    taint = {*clean_taint(new.taint), *([SOURCE_TAINT[source]] if source in SOURCE_TAINT else [])}
    relations = tuple(clean_relation(each) for each in new.relations)
    return Prepared(
        new,
        fields,
        evidence,
        relations=relations,
        taint=tuple(sorted(taint)),
        against=against,
        cosines={},
    )


class Adder:
    """Adds memories within one turn."""

    def __init__(
        self,
        turn: Turn,
        sources: Sources,
        session_type: gate.SessionType,
        thread_id: str | None = None,
    ) -> None:
        self._turn = turn
        self._sources = sources
        self._session_type: gate.SessionType = session_type
        self._ambient = () if thread_id is None else sources.ambient_taint(turn.session, thread_id)

    def add(self, given: Prepared) -> Added:
        """One memory: new, known already, or refused."""
        source: MemorySource = given.fields["source"]
        if source == "user_taught":
            self._turn.refuse_others("teach")
        if given.against:
            return Added("refused", None, given.against)
        session_id = self._session_of(given.new)
        refused = self._too_many(source, session_id) or self._unwanted(given)
        if refused:
            return Added("refused", None, (refused,))
        origins = [
            require(self._turn.session, self._turn.store, each) for each in given.new.derived_from
        ]
        draft = self._draft(given, session_id, [each.memory for each in origins])
        older = [
            require(self._turn.session, self._turn.store, each) for each in given.new.supersedes
        ]
        around = self._around(draft, given.cosines)
        named = {stored.no for stored in older}
        known = find_known(draft, (each for each in around if each.no not in named), given.cosines)
        if known is not None and rank_of(draft.tier) <= rank_of(known.stored.memory.tier):
            return self._seen_again(known, draft)
        against = [
            (stored, found)
            for stored in around
            if stored.no not in named
            and (known is None or stored.no != known.stored.no)
            and not _stand_together(draft, stored.memory)
            and (found := find_contradiction(draft, stored.memory)) is not None
        ]
        against += [(stored, Contradiction("stated", "it says so itself")) for stored in older]
        return self._store(given, draft, origins, against, known)

    def _session_of(self, new: NewMemory) -> str | None:
        return (
            clean_name(new.session_id, "session_id")
            if new.session_id is not None
            else self._turn.session_id
        )

    def _too_many(self, source: MemorySource, session_id: str | None) -> str | None:
        limit = gate.limit_for(source, self._session_type)
        if limit is None or (session_id is None and source not in INFERRED):
            return None
        among = sorted(INFERRED) if source in INFERRED else [source]
        there = 0
        if session_id is not None:
            rest = f" AND m.session_id = ? AND m.source IN ({marks(len(among))})"
            there = self._turn.store.count(self._turn.session, rest, (session_id, *among))
        if there < limit:
            return None
        return (
            f"this session has brought {there} memories already; {limit} are the most for "
            f"{self._session_type}"
        )

    def _unwanted(self, given: Prepared) -> str | None:
        """Whether the same words were put aside before: learning them again from old text would
        bring them back.
        """
        if given.fields["source"] == "user_taught":
            return None
        fingerprint = read(given.fields["content"]).fingerprint
        session, store = self._turn.session, self._turn.store
        rest = (
            " AND m.fingerprint = ? AND m.deprecated_because IN ('rejected', 'forgotten', "
            "'superseded')"
        )
        for _, memory in store.select(
            session, f"{rest} ORDER BY m.no DESC LIMIT 5", (fingerprint,)
        ):
            if memory.deprecated_because != "superseded":
                return f"the same words were {memory.deprecated_because} before ({memory.short_id})"
            newer = store.numbers_of_ids(
                session, [memory.superseded_by] if memory.superseded_by else []
            )
            replaced = store.by_numbers(session, newer.values())
            if any(
                each.is_active and not self._is_named(each, given) for each in replaced.values()
            ):
                return (
                    f"the same words were superseded before ({memory.short_id}); name in "
                    "`supersedes` what has gone"
                )
        row = store.tombstone(session, fingerprint)
        if row is not None and row[1] in ("rejected", "forgotten"):
            return f"the same words were {row[1]} before ({row[0]})"
        return None

    def _is_named(self, memory: TypedMemory, given: Prepared) -> bool:
        return any(
            require(self._turn.session, self._turn.store, each).memory.id == memory.id
            for each in given.new.supersedes
        )

    def _draft(
        self, given: Prepared, session_id: str | None, origins: Sequence[TypedMemory]
    ) -> TypedMemory:
        """The memory as it will be, with the trust of what it comes from."""
        turn, fields = self._turn, given.fields
        is_taught = fields["source"] == "user_taught"
        taint = given.taint
        if not is_taught:
            taint = tuple(
                sorted(
                    {
                        *taint,
                        *self._ambient,
                        *self._taint_of(given.evidence),
                        *lowest_taint(origins),
                    }
                )
            )
        is_verified = is_taught or (given.new.is_verified and turn.by == "person")
        if given.new.is_verified or given.new.is_pinned:
            turn.refuse_others("vouch for a memory or pin it")
        return replace(
            given.draft,
            created_at=turn.now_ms,
            created_by=turn.actor,
            updated_at=turn.now_ms,
            session_id=session_id,
            session_ids=(session_id,) if session_id else (),
            taint=taint,
            is_verified=is_verified,
        )

    def _taint_of(self, evidence: Sequence[Evidence]) -> set[str]:
        found: set[str] = set()
        for shown in self._sources.shown(self._turn.session, evidence):
            if shown.is_there is False:
                hint = "Name what is in this project."
                raise NotFoundError(
                    f"The evidence {shown.evidence} was not found. {hint}",
                    evidence=str(shown.evidence),
                    brief=f"Evidence not found: {shown.evidence}",
                    hint=hint,
                )
            found.update(shown.taint)
        return found

    def _around(self, draft: TypedMemory, cosines: Mapping[int, float]) -> list[Stored]:
        """The active memories it could repeat or contradict; those of the very same words first."""
        session, store = self._turn.session, self._turn.store
        fingerprint = read(draft.content).fingerprint
        rest = " AND m.fingerprint = ? AND m.deprecated_at IS NULL ORDER BY m.no"
        found = store.select(session, rest, (fingerprint,))
        subject = subject_key(draft.type, draft.data)
        found += candidates(session, store, draft.content, files=draft.files, subject=subject)
        close = store.by_numbers(
            session, [no for no, _ in sorted(cosines.items(), key=lambda each: -each[1])[:8]]
        )
        found += [Stored(no, memory) for no, memory in close.items() if memory.is_active]
        return list({stored.no: stored for stored in found}.values())

    def _seen_again(self, known: Known, draft: TypedMemory) -> Added:
        """It is there already: note where it was seen, and nothing else of what is less trusted."""
        stored = known.stored
        fields = taken_over(stored.memory, draft)
        fields = {
            name: value
            for name, value in fields.items()
            if name in ("session_ids", "evidence", "taint")
        }
        if fields:
            self._turn.next_operation()
            stored = self._turn.change(stored, "seen_again", fields)
        why = f"{stored.memory.short_id} says it already: {known.how}"
        return Added("duplicate", stored.memory, (why,), similar_to=stored.memory.short_id)

    def _store(
        self,
        given: Prepared,
        draft: TypedMemory,
        origins: Sequence[Stored],
        against: Sequence[tuple[Stored, Contradiction]],
        known: Known | None,
    ) -> Added:
        turn = self._turn
        retired = [(old, why) for old, why in against if self._may_retire(draft, old.memory, why)]
        disputed = [
            (old, why) for old, why in against if not self._may_retire(draft, old.memory, why)
        ]
        reasons = self._review_reasons(draft, disputed)
        relations = [
            *self._resolved(given.relations),
            *(Relation("derived_from", each.memory.id) for each in origins),
            *(_dispute(old.memory, why) for old, why in disputed),
        ]
        turn.next_operation()
        stored = turn.insert(self._columns(given, draft, reasons), relations)
        turn.next_operation()
        for old, why in retired:
            stored = supersede(turn, old, stored, why=why.why)
        if known is not None:
            stored = absorb(turn, stored, known.stored)
        memory = turn.store.by_number(turn.session, stored.no)
        told = [f"supersedes {old.memory.short_id}: {why.why}" for old, why in retired]
        told += [f"contradicts {old.memory.short_id}: {why.why}" for old, why in disputed]
        told += [f"takes the place of {known.stored.memory.short_id}: {known.how}"] if known else []
        return Added(
            "added",
            memory,
            tuple(told),
            similar_to=known.stored.memory.short_id if known else None,
            superseded=tuple(old.memory.id for old, _ in retired),
            disputes=tuple(old.memory.id for old, _ in disputed),
        )

    def _may_retire(self, draft: TypedMemory, old: TypedMemory, why: Contradiction) -> bool:
        if why.sign == "stated" and self._turn.by == "person":
            return True
        if why.sign != "stated" and draft.source == "imported":
            return False  # two files that disagree are a person's business
        return why.is_sure and not is_outranked(draft, old)

    def _resolved(self, relations: Sequence[Relation]) -> list[Relation]:
        """Relations with UUIDs in the place of short ids; what supersedes is told by
        ``supersedes``.
        """
        found = []
        for each in relations:
            if each.type == "supersedes":
                raise InvalidInputError(
                    "Name what is superseded in `supersedes`, not as a relation."
                )
            target = each.memory_id
            if target is not None:
                target = require(self._turn.session, self._turn.store, target).memory.id
            # An agent's word is no finding of ours: accepting it must not retire what it merely
            # claims to contradict.
            is_auto = each.is_auto and self._turn.by != "agent"
            found.append(
                Relation(each.type, target, each.path, confidence=each.confidence, is_auto=is_auto)
            )
        return found

    def _review_reasons(
        self, draft: TypedMemory, disputed: Sequence[tuple[Stored, Contradiction]]
    ) -> list[str]:
        """Why a person should look at it; nobody has to look at what a person taught."""
        reasons = [f"it contradicts {old.memory.short_id}: {why.why}" for old, why in disputed]
        if draft.is_verified:
            return reasons
        level = level_of(self._turn.state.trust_level)
        if draft.taint:
            reasons.append(f"it comes from {', '.join(draft.taint)}")
        elif level.number == 1:
            reasons.append(f"the level {level.name} wants everything confirmed")
        elif level.number == 2 and draft.source in INFERRED:
            reasons.append("it was inferred, not said")
        if draft.confidence <= level.inject_above:
            reasons.append(
                f"its confidence of {draft.confidence:.2f} is too low to be told unasked"
            )
        return reasons

    def _columns(
        self, given: Prepared, draft: TypedMemory, reasons: Sequence[str]
    ) -> dict[str, Any]:
        turn = self._turn
        return {
            **given.fields,
            "session_id": draft.session_id,
            "session_ids": list(draft.session_ids),
            "taint": list(draft.taint),
            "is_verified": draft.is_verified,
            "verified_at": turn.now_ms if draft.is_verified else None,
            "verified_by": turn.actor if draft.is_verified else None,
            "needs_review": bool(reasons),
            "review_reasons": list(reasons),
        }


def _stand_together(draft: TypedMemory, other: TypedMemory) -> bool:
    """Whether both come from one instruction file, which says both at the same time."""
    paths = {each.path for each in draft.evidence if each.path}
    return draft.source == other.source == "imported" and not paths.isdisjoint(
        each.path for each in other.evidence
    )


def _dispute(old: TypedMemory, why: Contradiction) -> Relation:
    return Relation(
        "conflicts_with", old.id, None, confidence=SURE if why.is_sure else UNSURE, is_auto=True
    )
