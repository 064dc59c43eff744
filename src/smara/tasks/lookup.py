"""Finding a task by whatever somebody calls it: UUID, short id, its end, or a beginning of these."""

from __future__ import annotations

from smara.core.scope import is_id
from smara.core.shortids import SHORTEST_PREFIX, key_of
from smara.database.database import Session
from smara.errors import InvalidInputError, NotFoundError
from smara.tasks.store import Stored, TaskStore

_MOST_CANDIDATES = 8


def find_no(session: Session, store: TaskStore, task_id: object) -> int | None:
    """The number of a task, or ``None``; ``InvalidInputError`` when several are meant."""
    if not isinstance(task_id, str) or not is_id(task_id.strip()):
        return None
    text = task_id.strip()
    key = key_of(text)
    exact = store.looked_up(session, [("t.key = ?", key), ("t.id = ?", text)], 2)
    if exact:
        return exact[0][0]
    found = store.looked_up(session, [("t.bare_key = ?", key)], _MOST_CANDIDATES + 1)
    if not found and len(key) >= SHORTEST_PREFIX:
        end = (key, key + "\U0010ffff")
        found = store.looked_up(
            session,
            [
                ("(t.key >= ? AND t.key < ?)", end),
                ("(t.bare_key >= ? AND t.bare_key < ?)", end),
                ("(t.id >= ? AND t.id < ?)", end),
            ],
            _MOST_CANDIDATES + 1,
        )
    if len(found) > 1:
        names = sorted(short_id for _, short_id in found)[:_MOST_CANDIDATES]
        more = " and more" if len(found) > _MOST_CANDIDATES else ""
        raise InvalidInputError(
            f"{text!r} may mean {', '.join(names)}{more}. Give more characters of the id.",
            candidates=names, brief=f"Ambiguous task id: {text}",
            hint=f"It may mean {', '.join(names)}{more}. Give more characters.",
        )  # fmt: skip
    return found[0][0] if found else None


def require(session: Session, store: TaskStore, task_id: object) -> Stored:
    """The task, or ``NotFoundError``."""
    no = find_no(session, store, task_id)
    if no is None:
        shown = task_id if isinstance(task_id, str) else repr(task_id)
        hint = "`smara tasks list` and the tool action `list` show what there is."
        raise NotFoundError(
            f"Task not found: {shown}. {hint}", task_id=task_id, brief=f"Task not found: {shown}", hint=hint
        )
    return Stored(no, store.by_number(session, no))
