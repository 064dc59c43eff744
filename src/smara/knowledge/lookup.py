"""Finding a memory by whatever somebody calls it: UUID, short id, its end, or a beginning of
these.
"""

from __future__ import annotations

from smara.database.database import Session
from smara.errors import NotFoundError
from smara.knowledge.store import KnowledgeStore, Stored


def require(session: Session, store: KnowledgeStore, memory_id: object) -> Stored:
    """The memory, or ``NotFoundError``."""
    no = store.find_no(session, memory_id)
    if no is None:
        shown = memory_id if isinstance(memory_id, str) else repr(memory_id)
        hint = "`smara memories list` shows what there is."
        raise NotFoundError(
            f"Memory not found: {shown}. {hint}",
            memory_id=memory_id,
            brief=f"Memory not found: {shown}",
            hint=hint,
        )
    return Stored(no, store.by_number(session, no))
