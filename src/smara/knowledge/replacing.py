"""One memory in the place of another: superseding what it contradicts, merging what says the same.

Both are kept, and the chain stays visible. A less trusted memory never takes the place of a
more trusted one by itself, and gives it nothing but the sessions in which it was seen:
otherwise a page on the web could retire what a person decided, or widen where it is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smara.errors import ConflictError, InvalidInputError
from smara.knowledge.changing import refuse_deprecated
from smara.knowledge.models import TypedMemory, rank_of
from smara.knowledge.prepare import MAX_EVIDENCE, MAX_ITEMS, plain_evidence
from smara.knowledge.store import Stored
from smara.knowledge.turn import Turn


def is_outranked(new: TypedMemory, old: TypedMemory) -> bool:
    """Whether a newer memory is too little trusted to take the place of an older one by itself."""
    return rank_of(new.tier) < rank_of(old.tier) or (old.is_pinned and new.tier != "confirmed")


def supersede(turn: Turn, old: Stored, new: Stored, why: str) -> Stored:
    """The newer memory takes the place of the older; the newer one, as it is then."""
    _refuse_same(old, new)
    for stored in (old, new):
        refuse_deprecated(stored.memory)
    if turn.by != "person" and is_outranked(new.memory, old.memory):
        raise _outranked(old.memory, new.memory)
    fields = {
        "deprecated_at": turn.now_ms,
        "deprecated_because": "superseded",
        "superseded_by": new.memory.id,
    }
    turn.change(old, "superseded", fields, {"why": why, "by": new.memory.short_id})
    return turn.change(new, "supersedes", {}, {"why": why, "supersedes": old.memory.short_id})


def merge(turn: Turn, keep: Stored, others: Iterable[Stored]) -> Stored:
    """Memories that say the same become one: the one that is kept, with what the others know
    besides.
    """
    for other in others:
        _refuse_same(keep, other)
        for stored in (keep, other):
            refuse_deprecated(stored.memory)
        if turn.by != "person" and is_outranked(keep.memory, other.memory):
            raise _outranked(other.memory, keep.memory)
        keep = absorb(turn, keep, other)
    return keep


def absorb(turn: Turn, keep: Stored, other: Stored) -> Stored:
    """Put one memory aside in favor of another that says the same."""
    keep = turn.change(
        keep, "absorbed", taken_over(keep.memory, other.memory), {"absorbed": other.memory.short_id}
    )
    fields = {
        "deprecated_at": turn.now_ms,
        "deprecated_because": "merged",
        "superseded_by": keep.memory.id,
    }
    turn.change(other, "merged", fields, {"into": keep.memory.short_id})
    return keep


def taken_over(keep: TypedMemory, other: TypedMemory) -> dict[str, Any]:
    """What a memory gains from one that says the same; from a less trusted one only where it was
    seen.
    """
    fields: dict[str, Any] = {"session_ids": _joined(keep.session_ids, other.session_ids)}
    if rank_of(other.tier) >= rank_of(keep.tier):
        fields["tags"] = sorted(_joined(keep.tags, other.tags))
        fields["files"] = _joined(keep.files, other.files)
        fields["modules"] = _joined(keep.modules, other.modules)
        evidence = dict.fromkeys((*keep.evidence, *other.evidence))
        fields["evidence"] = [plain_evidence(each) for each in evidence][:MAX_EVIDENCE]
        if not keep.is_verified:
            fields["taint"] = sorted({*keep.taint, *other.taint})
    return {name: value for name, value in fields.items() if value != _now(keep, name)}


def _now(memory: TypedMemory, name: str) -> list[Any]:
    return (
        [plain_evidence(each) for each in memory.evidence]
        if name == "evidence"
        else list(getattr(memory, name))
    )


def _joined(one: Iterable[str], other: Iterable[str]) -> list[str]:
    return list(dict.fromkeys((*one, *other)))[:MAX_ITEMS]


def _refuse_same(one: Stored, other: Stored) -> None:
    if one.no == other.no:
        raise InvalidInputError(
            f"{one.memory.short_id} was named twice. Name two different memories."
        )


def _outranked(old: TypedMemory, new: TypedMemory) -> ConflictError:
    hint = "A person can decide: accept the newer one in review."
    return ConflictError(
        f"{old.short_id} is {'pinned' if old.is_pinned else old.tier} and {new.short_id} only "
        f"{new.tier}. {hint}",
        memory_id=old.short_id,
        brief="A more trusted memory is not replaced by a less trusted one",
        hint=hint,
    )
