"""Add a memory: deduplicate, resolve contradictions, assign trust.

A known statement is not stored twice. A contradicting one supersedes the old memory if it is at
least as trusted; otherwise a person decides. Duplicates are found through the rarest words of the
statement, so the cost stays bounded. No model is called.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from smara.actions.error_quote import UNQUOTED
from smara.core.startup.record import dataclass, replace
from smara.database.database import Session, marks
from smara.database.fulltext import record_no, terms_of
from smara.database.project_store import Tombstones
from smara.errors import InvalidInputError, NotFoundError
from smara.knowledge import gate
from smara.knowledge.change import MemoryChange, inherited_fields, is_outranked
from smara.knowledge.contradictions import Contradiction, find_contradiction, tells_of_change
from smara.knowledge.decay import FileHistory
from smara.knowledge.kinds import KINDS, subject_key
from smara.knowledge.models import (
    SURE,
    UNSURE,
    AddResult,
    Chunk,
    Evidence,
    MemorySource,
    NewMemory,
    Relation,
    TypedMemory,
    WorkUnit,
    origins,
    rank_of,
)
from smara.knowledge.prepare import (
    INFERRED,
    clean_relation,
    clean_taint,
    clean_work_unit,
    fields_of,
    named_files,
)
from smara.knowledge.provenance import Sources
from smara.knowledge.statements import is_repeated_in, is_same_in_meaning, parse_statement
from smara.knowledge.store import CHUNK, KnowledgeStore, StoredMemory, evidence_of
from smara.knowledge.trust import level_of, lowest_taint
from smara.secrets.redact import clean_name

SimilarMemories = Callable[[TypedMemory], Sequence[tuple[int, float]]]
"""A memory that is not stored yet → (number of one that is, cosine), closest first; empty without
an embedder.
"""

SAME_MEANING = 0.88
"""Above this cosine two statements with the same facts say the same."""
_TERMS = 24
_ROWS_PER_TERM = 200
_LEAST_SHARED = 0.4
"""With fewer words in common two statements neither repeat nor contradict each other, as far as
words can tell.
"""
CANDIDATES = 24
_SEEN = ("session_ids", "evidence", "taint")


class Duplicate(NamedTuple):
    """A memory that says the same already, and how that was seen."""

    stored: StoredMemory
    how: str


def find_candidates(
    session: Session,
    store: KnowledgeStore,
    text: str,
    files: Sequence[str] = (),
    subject: str | None = None,
) -> list[StoredMemory]:
    """Return the active memories that share most with a text."""
    terms = sorted(
        set(" ".join(terms_of("", text).bodies).split()), key=lambda term: (-len(term), term)
    )[:_TERMS]
    weights: defaultdict[int, float] = defaultdict(float)
    shared: Counter[int] = Counter()
    project, records = store.scope.project_no, store.database.records
    for term in terms:
        rows = records.match(session, term, project, "memory", _ROWS_PER_TERM)
        for no in map(record_no, rows):
            weights[no] += 1 / len(rows)
            shared[no] += 1
    # What tells of a change may share only its subject with what it ends.
    least = 2 if tells_of_change(text) else max(2, _LEAST_SHARED * len(terms))
    close = (no for no in weights if shared[no] >= least)
    best = sorted(close, key=lambda no: (-weights[no], no))[:CANDIDATES]
    if subject is not None:
        rest = " AND m.subject_key = ? AND m.deprecated_at IS NULL"
        best += store.numbers(session, rest, (subject,))
    if files:
        about = session.all(
            store.sql(
                "SELECT memory_no FROM memory_keys WHERE project_no = :project AND kind = 'file'"
                f" AND value = ? ORDER BY memory_no DESC LIMIT {CANDIDATES}"
            ),
            (files[0],),
        )
        best += [row[0] for row in about]
    found = store.by_numbers(session, best, has_relations=False)
    return [StoredMemory(no, memory) for no, memory in found.items() if memory.is_active]


def find_duplicate(
    new: TypedMemory, around: Iterable[StoredMemory], cosines: Mapping[int, float]
) -> Duplicate | None:
    """Return the memory that says all of it already, or None.

    Memories of another type do not count, but for the exact same words: "tests need Redis" as
    a gotcha and as a requirement are used differently, and two rows of the same words never.
    """
    statement = parse_statement(new.content)
    best: Duplicate | None = None
    for stored in around:
        other = parse_statement(stored.memory.content)
        if other.fingerprint == statement.fingerprint:
            return Duplicate(stored, "the same words")
        if stored.memory.type != new.type or best is not None:
            continue
        cosine = cosines.get(stored.no, 0.0)
        # A failure that showed no telling line would be told beside the one that did.
        is_same_fix = (
            bool(new.data.get("fix"))
            and all(
                new.data.get(name) == stored.memory.data.get(name) for name in ("command", "fix")
            )
            and UNQUOTED in (new.data.get("error"), stored.memory.data.get("error"))
        )
        if is_repeated_in(statement, other):
            best = Duplicate(stored, "nearly the same words")
        elif is_same_fix:
            best = Duplicate(stored, "the same command and fix")
        elif is_same_in_meaning(statement, other, cosine, least=SAME_MEANING):
            best = Duplicate(stored, f"the same meaning, with a similarity of {cosine:.2f}")
    return best


SOURCE_TAINT: Mapping[MemorySource, str] = {
    "imported": "imported", "mcp_auto": "mcp", "qa_auto": "tool", "commit_auto": "tool",
}  # fmt: skip
"""What a source itself says of where its memories come from."""


@dataclass(frozen=True, slots=True)
class PreparedMemory:
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
        """The memory as its words alone make it, without its trust."""
        fields = {name: value for name, value in self.fields.items() if name not in CHUNK}
        kind, start, end, prefix = (self.fields[name] for name in CHUNK)
        lists = ("tags", "files", "modules")
        fields |= {name: tuple(fields[name]) for name in lists}
        fields |= {"commit": fields.pop("commit_sha"), "evidence": self.evidence}
        fields |= {"work_unit": self.new.work_unit}
        if kind:
            fields["chunk"] = Chunk(kind, start, end, context_prefix=prefix)
        return TypedMemory(
            id="", short_id="", version=1, created_by="", created_at=0, updated_at=0, **fields
        )


def prepare_new(
    new: NewMemory,
    already_told: Sequence[str],
    has_session: bool,
    files: FileHistory | None = None,
) -> PreparedMemory:
    """Check and redact a new memory; everything that needs no database.

    What people and agents say is tied to those of the ``files`` that its words name.
    """
    if not isinstance(new, NewMemory):
        raise InvalidInputError(f"a memory must be a NewMemory, not {type(new).__name__}.")
    fields = fields_of(new)
    evidence = evidence_of(fields["evidence"])
    source: MemorySource = fields["source"]
    if source not in INFERRED:
        named = named_files(fields["content"], files)
        fields["files"] = list(dict.fromkeys((*fields["files"], *named)))
    taint = {*clean_taint(new.taint), *([SOURCE_TAINT[source]] if source in SOURCE_TAINT else [])}
    return PreparedMemory(
        new,
        fields,
        evidence,
        relations=tuple(clean_relation(each) for each in new.relations),
        taint=tuple(sorted(taint)),
        against=gate.reasons_against(
            fields["content"],
            source,
            evidence,
            files=fields["files"],
            already_told=already_told,
            has_session=has_session or new.session_id is not None,
            has_origins=bool(new.derived_from),
        ),
        cosines={},
    )


class Adder:
    """Adds memories within one turn."""

    def __init__(
        self,
        turn: MemoryChange,
        sources: Sources,
        session_type: gate.SessionType,
        thread_id: str | None = None,
    ) -> None:
        self._turn = turn
        self._sources = sources
        self._session_type: gate.SessionType = session_type
        self._ambient = () if thread_id is None else sources.ambient_taint(turn.session, thread_id)

    def add(self, given: PreparedMemory) -> AddResult:
        """Add one memory; it is new, there already, or refused."""
        turn, source = self._turn, given.fields["source"]
        session, store = turn.session, turn.store
        if source == "user_taught":
            turn.require_person("teach")
        if given.against:
            return AddResult("refused", None, given.against)
        session_id = turn.session_id
        if given.new.session_id is not None:
            session_id = clean_name(given.new.session_id, "session_id")
        refused = self._too_many(source, session_id) or self._unwanted(given)
        scope, kind = given.fields["scope"], KINDS[given.new.type]
        is_of_unit = scope == "work_unit" and kind.scope != scope and not given.new.work_unit
        if session_id is None and (scope == "session" or is_of_unit):
            refused = f"scope {scope} needs to know the session: set SMARA_SESSION"
        elif is_of_unit and len(tasks := store.tasks_of(session, str(session_id))) == 1:
            unit = WorkUnit("native", tuple(tasks), tasks[0])
            fields = {**given.fields, "work_unit": clean_work_unit(unit)}
            given = replace(given, new=replace(given.new, work_unit=unit), fields=fields)
        if refused:
            return AddResult("refused", None, (refused,))
        origins = [store.require(session, each).memory for each in given.new.derived_from]
        older = [store.require(session, each) for each in given.new.supersedes]
        draft = self._draft(given, session_id, origins)
        named = {stored.no for stored in older}
        around = [each for each in self._around(draft, given.cosines) if each.no not in named]
        same = find_duplicate(draft, around, given.cosines)
        if same is not None and rank_of(draft.tier) <= rank_of(same.stored.memory.tier):
            return self._seen_again(same, draft)
        against = [
            (stored, contradiction)
            for stored in around
            if draft.source != "said"  # who made it says which ones it amends
            and (same is None or stored.no != same.stored.no)
            and not _stand_together(draft, stored.memory)
            and (contradiction := find_contradiction(draft, stored.memory)) is not None
        ]
        against += [(stored, Contradiction("stated", "it says so itself")) for stored in older]
        return self._store(given, draft, origins, against=against, same=same)

    def _too_many(self, source: MemorySource, session_id: str | None) -> str | None:
        limit = gate.limit_for(source, self._session_type)
        if limit is None or (session_id is None and source not in INFERRED):
            return None
        among = sorted(INFERRED) if source in INFERRED else [source]
        there = 0
        if session_id is not None:
            rest = f" AND m.session_id = ? AND m.source IN ({marks(len(among))})"
            there = len(self._turn.store.numbers(self._turn.session, rest, (session_id, *among)))
        if there < limit:
            return None
        return (
            f"this session has brought {there} memories already; {limit} are the most for "
            f"{self._session_type}"
        )

    def _unwanted(self, given: PreparedMemory) -> str | None:
        """Whether the same words were put aside before: learning them again from old text would
        bring them back.
        """
        if given.fields["source"] == "user_taught":
            return None
        fingerprint = parse_statement(given.fields["content"]).fingerprint
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
            named = {store.require(session, each).memory.id for each in given.new.supersedes}
            if any(each.is_active and each.id not in named for each in replaced.values()):
                return (
                    f"the same words were superseded before ({memory.short_id}); name in "
                    "`supersedes` what has gone"
                )
        row = session.one(
            store.sql(
                "SELECT short_id, because FROM memory_tombstones"
                " WHERE project_no = :project AND fingerprint = ? ORDER BY no DESC LIMIT 1"
            ),
            (fingerprint,),
        )
        if row is not None and row[1] in ("rejected", "forgotten"):
            return f"the same words were {row[1]} before ({row[0]})"
        if Tombstones(store.database, store.scope).erased(session, "words", [fingerprint]):
            return "the same words were erased before"
        return None

    def _draft(
        self, given: PreparedMemory, session_id: str | None, origins: Sequence[TypedMemory]
    ) -> TypedMemory:
        """The memory as it will be, with the trust of what it comes from."""
        turn, fields = self._turn, given.fields
        is_taught = fields["source"] == "user_taught"
        taint, seen_at = set(given.taint), given.new.seen_at
        if not is_taught:
            taint.update(self._ambient, lowest_taint(origins))
            for shown in self._sources.shown(turn.session, given.evidence):
                if shown.is_there is False:
                    raise NotFoundError.with_hint(
                        f"The evidence {shown.evidence} was not found.",
                        "Name what is in this project.",
                        evidence=str(shown.evidence),
                        brief=f"Evidence not found: {shown.evidence}",
                    )
                taint.update(shown.taint_for(fields["source"]))
                if given.new.seen_at is None and shown.at is not None:
                    seen_at = max(seen_at or 0, shown.at)
        if given.new.is_verified or given.new.is_pinned:
            turn.require_person("vouch for a memory or pin it")
        return replace(
            given.draft,
            created_at=turn.now_ms,
            created_by=turn.actor,
            updated_at=turn.now_ms,
            session_id=session_id,
            session_ids=(session_id,) if session_id else (),
            seen_at=seen_at if seen_at is not None and seen_at < turn.now_ms else None,
            taint=tuple(sorted(taint)),
            is_verified=is_taught or (given.new.is_verified and turn.by == "person"),
        )

    def _around(self, draft: TypedMemory, cosines: Mapping[int, float]) -> list[StoredMemory]:
        """The active memories it could repeat or contradict; those of the very same words first."""
        session, store = self._turn.session, self._turn.store
        rest = " AND m.fingerprint = ? AND m.deprecated_at IS NULL ORDER BY m.no"
        found = store.select(session, rest, (parse_statement(draft.content).fingerprint,))
        subject = subject_key(draft.type, draft.data)
        found += find_candidates(session, store, draft.content, files=draft.files, subject=subject)
        close = store.by_numbers(
            session, [no for no, _ in sorted(cosines.items(), key=lambda each: -each[1])[:8]]
        )
        found += [StoredMemory(no, memory) for no, memory in close.items() if memory.is_active]
        return list({stored.no: stored for stored in found}.values())

    def _seen_again(self, same: Duplicate, draft: TypedMemory) -> AddResult:
        """Note where a known memory was seen, and nothing else of what is less trusted."""
        stored = same.stored
        inherited = inherited_fields(stored.memory, draft).items()
        fields = {name: value for name, value in inherited if name in _SEEN}
        if fields:
            self._turn.next_operation()
            stored = self._turn.change(stored, "seen_again", fields)
        why = f"{stored.memory.short_id} says it already: {same.how}"
        return AddResult("duplicate", stored.memory, (why,), similar_to=stored.memory.short_id)

    def _store(
        self,
        given: PreparedMemory,
        draft: TypedMemory,
        origins: Sequence[TypedMemory],
        *,
        against: Sequence[tuple[StoredMemory, Contradiction]],
        same: Duplicate | None,
    ) -> AddResult:
        turn = self._turn
        retired = [(old, why) for old, why in against if self._may_retire(draft, old.memory, why)]
        disputed = [each for each in against if each not in retired]
        reasons = self._review_reasons(draft, disputed)
        relations = [
            *(turn.resolve_relation(each) for each in given.relations),
            *(Relation("derived_from", each.id) for each in origins),
            *(
                Relation(
                    "conflicts_with",
                    old.memory.id,
                    confidence=SURE if why.is_sure else UNSURE,
                    is_auto=True,
                )
                for old, why in disputed
            ),
        ]
        columns = {
            **given.fields,
            "session_id": draft.session_id,
            "session_ids": list(draft.session_ids),
            "seen_at": draft.seen_at,
            "taint": list(draft.taint),
            "is_verified": draft.is_verified,
            "verified_at": turn.now_ms if draft.is_verified else None,
            "verified_by": turn.actor if draft.is_verified else None,
            "needs_review": bool(reasons),
            "review_reasons": reasons,
        }
        turn.next_operation()
        stored = turn.insert(columns, relations)
        turn.next_operation()
        for old, why in retired:
            stored = turn.supersede(old, stored, why=why.why)
        if same is not None:
            stored = turn.absorb(stored, same.stored)
        notes = [f"supersedes {old.memory.short_id}: {why.why}" for old, why in retired]
        notes += [f"contradicts {old.memory.short_id}: {why.why}" for old, why in disputed]
        if same is not None:
            notes.append(f"takes the place of {same.stored.memory.short_id}: {same.how}")
        return AddResult(
            "added",
            stored.memory,
            tuple(notes),
            similar_to=same.stored.memory.short_id if same else None,
            superseded=tuple(old.memory.id for old, _ in retired),
            disputes=tuple(old.memory.id for old, _ in disputed),
        )

    def _may_retire(self, draft: TypedMemory, old: TypedMemory, why: Contradiction) -> bool:
        if why.sign == "stated" and self._turn.by == "person":
            return True
        if why.sign != "stated" and draft.source == "imported":
            return False  # two files that disagree are a person's business
        return why.is_sure and not is_outranked(draft, old)

    def _review_reasons(
        self, draft: TypedMemory, disputed: Sequence[tuple[StoredMemory, Contradiction]]
    ) -> list[str]:
        """Return why a person should review it; never what a person taught."""
        reasons = [f"it contradicts {old.memory.short_id}: {why.why}" for old, why in disputed]
        if draft.is_verified or (draft.source == "said" and not draft.taint):
            return reasons
        level = level_of(self._turn.state.trust_level)
        if draft.taint:
            reasons.append(f"it comes from {origins(draft.taint)}")
        elif level.number == 1:
            reasons.append("it is told only once a person confirms it")
        elif level.number == 2 and draft.source in INFERRED:
            reasons.append("it was inferred, not said")
        if draft.confidence <= level.inject_above:
            reasons.append(
                f"it is {draft.confidence:.0%} sure, too little to be told without being asked for"
            )
        return reasons


def _stand_together(draft: TypedMemory, other: TypedMemory) -> bool:
    """Whether both come from one instruction file, which says both at the same time."""
    paths = {each.path for each in draft.evidence if each.path}
    return draft.source == other.source == "imported" and not paths.isdisjoint(
        each.path for each in other.evidence
    )
