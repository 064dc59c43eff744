"""Finding a task by whatever somebody calls it: UUID, short id, its end, or a beginning of
these.
"""

from __future__ import annotations

from smara.database.database import Session
from smara.errors import NotFoundError
from smara.tasks.store import Stored, TaskStore


def require(session: Session, store: TaskStore, task_id: object) -> Stored:
    """The task, or ``NotFoundError``."""
    no = store.find_no(session, task_id)
    if no is None:
        shown = task_id if isinstance(task_id, str) else repr(task_id)
        hint = "`smara tasks list` and the tool action `list` show what there is."
        raise NotFoundError(
            f"Task not found: {shown}. {hint}",
            task_id=task_id,
            brief=f"Task not found: {shown}",
            hint=hint,
        )
    return Stored(no, store.by_number(session, no))
