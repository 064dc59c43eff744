"""The active task of a thread: what its messages are about until it is closed, released or taken
over.

A message has no id before it is written, so an agent cannot link what it is just saying.
Instead, claiming a task marks the thread, and messages written while the task is still held
by the same session get its id by themselves.
"""

from __future__ import annotations

import json

from smara.database.database import Session
from smara.tasks.store import TaskStore

ACTIVE_TASK = "activeTaskId"
ACTIVE_SESSION = "activeTaskSession"
_SIGN_OF_LIFE_MS = 60_000


class ActiveTask:
    """Says which task a message belongs to, inside the transaction that stores it."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store

    def of(
        self, session: Session, metadata: str, session_id: str | None, now_ms: int
    ) -> str | None:
        """The id of the task that a thread with this metadata works on, if the writer still holds
        it.

        ``session_id`` is the session that writes; without one, it is taken to be the session
        that claimed the task in this thread.
        """
        marked = json.loads(metadata)
        task_id = marked.get(ACTIVE_TASK)
        if not isinstance(task_id, str):
            return None
        holder = session_id if session_id is not None else marked.get(ACTIVE_SESSION)
        row = session.one(
            self._store.sql(
                "SELECT t.status, t.session_id FROM tasks t WHERE t.project_no = :project AND "
                "t.id = ?"
            ),
            (task_id,),
        )
        if row is None or row[0] != "in_progress" or row[1] != holder:
            return None
        if holder is not None:
            # Who writes is alive; once a minute is enough to say so.
            session.run(
                self._store.sql(
                    "UPDATE sessions SET seen_at = ? WHERE project_no = :project AND id = ? AND "
                    "seen_at < ?"
                ),
                (now_ms, holder, now_ms - _SIGN_OF_LIFE_MS),
            )
        return task_id
