"""Finding a memory by whatever somebody calls it: UUID, short id, its end, or a beginning of these."""

from __future__ import annotations

from smara.core.scope import is_id
from smara.core.shortids import SHORTEST_PREFIX, key_of
from smara.database.database import Session
from smara.errors import InvalidInputError, NotFoundError
from smara.knowledge.store import KnowledgeStore, Stored

_MOST_CANDIDATES = 8


def find_no(session: Session, store: KnowledgeStore, memory_id: object) -> int | None:
    """The number of a memory, or ``None``; ``InvalidInputError`` when several are meant."""
    if not isinstance(memory_id, str) or not is_id(memory_id.strip()):
        return None
    text = memory_id.strip()
    key = key_of(text)
    exact = store.looked_up(session, [("m.key = ?", key), ("m.id = ?", text)], 2)
    if exact:
        return exact[0][0]
    found = store.looked_up(session, [("m.bare_key = ?", key)], _MOST_CANDIDATES + 1)
    if not found and len(key) >= SHORTEST_PREFIX:
        end = (key, key + "\U0010ffff")
        found = store.looked_up(
            session,
            [
                ("(m.key >= ? AND m.key < ?)", end),
                ("(m.bare_key >= ? AND m.bare_key < ?)", end),
                ("(m.id >= ? AND m.id < ?)", end),
            ],
            _MOST_CANDIDATES + 1,
        )
    if len(found) > 1:
        names = sorted(short_id for _, short_id in found)[:_MOST_CANDIDATES]
        more = " and more" if len(found) > _MOST_CANDIDATES else ""
        hint = f"It may mean {', '.join(names)}{more}. Give more characters."
        raise InvalidInputError(
            f"{text!r} may mean {', '.join(names)}{more}. Give more characters of the id.",
            candidates=names, brief=f"Ambiguous memory id: {text}", hint=hint,
        )  # fmt: skip
    return found[0][0] if found else None


def require(session: Session, store: KnowledgeStore, memory_id: object) -> Stored:
    """The memory, or ``NotFoundError``."""
    no = find_no(session, store, memory_id)
    if no is None:
        shown = memory_id if isinstance(memory_id, str) else repr(memory_id)
        hint = "`smara memories list` shows what there is."
        raise NotFoundError(
            f"Memory not found: {shown}. {hint}", memory_id=memory_id, brief=f"Memory not found: {shown}", hint=hint
        )
    return Stored(no, store.by_number(session, no))
