"""Link messages to tasks.

A message belongs to the task that its thread has claimed, until the task is closed, released
or claimed by another session. Earlier messages are linked by hand.
"""

from __future__ import annotations

import json

from smara.core.scope import require_id
from smara.core.validate import check_page, one_of
from smara.database.database import Session
from smara.errors import NotFoundError
from smara.links.models import Link, LinkedMessage
from smara.messages.models import NewThread
from smara.messages.store import MessageStore
from smara.messages.threads import Threads
from smara.tasks.change import TaskJournal
from smara.tasks.models import RELATIONS, Relation, Task
from smara.tasks.store import TaskStore
from smara.tasks.tasks import Tasks

ACTIVE_TASK = "activeTaskId"
ACTIVE_SESSION = "activeTaskSession"
_SIGN_OF_LIFE_MS = 60_000


def active_task_id(
    store: TaskStore, session: Session, metadata: str, session_id: str | None, now_ms: int
) -> str | None:
    """Return the task of a thread, while a message is stored.

    Args:
        store: The tasks.
        session: The open transaction.
        metadata: The metadata of the thread, as JSON.
        session_id: The session that writes; without it, the one that claimed the task in this
            thread.
        now_ms: The time.

    Returns:
        The id of the task, if the writer still holds it.
    """
    marked = json.loads(metadata)
    task_id = marked.get(ACTIVE_TASK)
    if not isinstance(task_id, str):
        return None
    holder = session_id if session_id is not None else marked.get(ACTIVE_SESSION)
    row = session.one(
        store.sql(
            "SELECT t.status, t.session_id FROM tasks t WHERE t.project_no = :project AND t.id = ?"
        ),
        (task_id,),
    )
    if row is None or row[0] != "in_progress" or row[1] != holder:
        return None
    if holder is not None:
        # Who writes is alive; once a minute is enough to say so.
        session.run(
            store.sql(
                "UPDATE sessions SET seen_at = ? WHERE project_no = :project AND id = ? AND "
                "seen_at < ?"
            ),
            (now_ms, holder, now_ms - _SIGN_OF_LIFE_MS),
        )
    return task_id


class Links:
    """The links of one project."""

    def __init__(
        self, tasks: Tasks, journal: TaskJournal, threads: Threads, messages: MessageStore
    ) -> None:
        self._tasks = tasks
        self._journal = journal
        self._store = journal.store
        self._threads = threads
        self._messages = messages

    def claim(
        self,
        task_id: str,
        *,
        thread_id: str | None = None,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Task:
        """Claim a task, and make it the active task of a thread.

        Messages appended to the thread from now on belong to the task, for as long as this session
        holds it.

        Args:
            task_id: The task.
            thread_id: The thread; it is made on first use.
            actor: Who claims it, for the history.
            session_id: The session that holds it.

        Returns:
            The task, as it is now held.

        Raises:
            TaskClaimedError: If another session holds it.
        """
        if thread_id is not None:
            require_id(thread_id, "thread_id")
        task = self._tasks.claim(task_id, actor=actor, session_id=session_id)
        if thread_id is not None:
            self._threads.put(NewThread(thread_id))
            active = {ACTIVE_TASK: task.id, ACTIVE_SESSION: task.session_id}
            self._threads.update(thread_id, metadata=active)
        return task

    def active(self, thread_id: str, *, session_id: str | None = None) -> Task | None:
        """Return the task that new messages of a thread belong to.

        Args:
            thread_id: The thread.
            session_id: Who writes; without it, the session that claimed the task in this thread.
        """
        thread = self._threads.find(thread_id)
        marked = thread.metadata.get(ACTIVE_TASK) if thread is not None else None
        if thread is None or not isinstance(marked, str):
            return None
        task = self._tasks.find(marked)
        writer = session_id if session_id is not None else thread.metadata.get(ACTIVE_SESSION)
        is_held = task is not None and task.status == "in_progress" and task.session_id == writer
        return task if is_held else None

    def add(
        self,
        task_id: str,
        message_id: str,
        *,
        relation: Relation = "reference",
        actor: str | None = None,
        session_id: str | None = None,
    ) -> Link:
        """Link a message to a task; safe to repeat.

        Args:
            task_id: The task.
            message_id: The message.
            relation: What the message is to the task: ``output``, ``reference`` or
                ``created_from``.
            actor: Who links them, for the history.
            session_id: The session in which it happens.

        Returns:
            The link; its ``is_new`` is False if it was there.

        Raises:
            NotFoundError: If there is no such task or message.
            InvalidInputError: If there is no such relation.
        """
        one_of(relation, RELATIONS, "relation")
        with self._journal.begin(actor, session_id) as turn:
            stored = self._store.require(turn.session, task_id)
            message_no = self._message_no(turn.session, message_id)
            before = turn.session.one(
                self._store.sql(
                    "SELECT relation FROM task_messages WHERE project_no = :project AND task_no = ?"
                    " AND message_no = ?"
                ),
                (stored.no, message_no),
            )
            is_new = self._store.add_link(
                turn.session, (stored.no, message_no, relation, turn.now_ms, turn.actor)
            )
            if is_new:
                named = {"message_id": message_id, "message_no": message_no}
                turn.event(
                    stored.no,
                    "linked",
                    {} if before is None else {**named, "relation": before[0]},
                    {**named, "relation": relation},
                )
        return Link(stored.task.id, message_id, relation, is_new=is_new)

    def remove(
        self,
        task_id: str,
        message_id: str,
        *,
        actor: str | None = None,
        session_id: str | None = None,
    ) -> bool:
        """Remove a link.

        A message that was written while the task was active says so itself, and keeps saying it.

        Args:
            task_id: The task, by any of its ids, as in ``memory.tasks``.
            message_id: The message.
            actor: Who removes the link, for the history.
            session_id: The session in which it happens.

        Returns:
            True if there was one.

        Raises:
            NotFoundError: If there is no such task or message.
        """
        with self._journal.begin(actor, session_id) as turn:
            stored = self._store.require(turn.session, task_id)
            message_no = self._message_no(turn.session, message_id)
            relation = self._store.remove_link(turn.session, stored.no, message_no)
            if relation is not None:
                before = {"message_id": message_id, "message_no": message_no, "relation": relation}
                turn.event(stored.no, "unlinked", before, {})
        return relation is not None

    def messages(self, task_id: str, *, limit: int = 50, offset: int = 0) -> list[LinkedMessage]:
        """Return the messages of a task, oldest first.

        Args:
            task_id: The task, by any of its ids, as in ``memory.tasks``.
            limit: The most messages to return, at least 1.
            offset: How many of the oldest to skip.

        Raises:
            NotFoundError: If there is no such task.
        """
        check_page(limit, offset)
        with self._store.database.read() as session:
            stored = self._store.require(session, task_id)
            rows = session.all(
                self._store.sql(f"{_LINKED} ORDER BY no LIMIT ? OFFSET ?"),
                (stored.no, stored.task.id, stored.no, limit, offset),
            )
            found = self._messages.by_numbers(session, [row[0] for row in rows])
        return [LinkedMessage(found[row[0]], row[1]) for row in rows if row[0] in found]

    def tasks(self, message_id: str) -> list[Task]:
        """Return the tasks a message belongs to.

        Args:
            message_id: The message.

        Raises:
            NotFoundError: If there is no such message.
        """
        with self._store.database.read() as session:
            no = self._message_no(session, message_id)
            rows = session.all(
                self._store.sql(
                    "SELECT task_no FROM task_messages WHERE project_no = :project AND message_no "
                    "= ?"
                    " UNION SELECT t.no FROM messages m"
                    " JOIN tasks t ON t.project_no = m.project_no AND t.id = m.task_id"
                    " WHERE m.project_no = :project AND m.no = ?"
                ),
                (no, no),
            )
            return list(self._store.by_numbers(session, sorted(row[0] for row in rows)).values())

    def _message_no(self, session: Session, message_id: str) -> int:
        found = self._messages.find_message(session, message_id)
        if found is None:
            brief = f"Message not found: {message_id}"
            hint = "Search for its words to find its id."
            raise NotFoundError.with_hint(f"{brief}.", hint, message_id=message_id, brief=brief)
        return found[0]


_LINKED = (
    "SELECT l.message_no AS no, l.relation AS relation FROM task_messages l"
    " WHERE l.project_no = :project AND l.task_no = ?"
    " UNION ALL SELECT m.no, 'output' FROM messages m WHERE m.project_no = :project AND m.task_id "
    "= ?"
    " AND NOT EXISTS (SELECT 1 FROM task_messages o WHERE o.task_no = ? AND o.message_no = m.no)"
)


def linked_message_ids(
    store: TaskStore, session: Session, task_no: int, task_id: str
) -> tuple[str, ...]:
    """The ids of a task's messages, oldest first."""
    rows = session.all(
        store.sql(
            f"SELECT m.id FROM ({_LINKED}) AS linked JOIN messages m ON m.no = linked.no"
            " AND +m.project_no = :project ORDER BY m.no"
        ),
        (task_no, task_id, task_no),
    )
    return tuple(row[0] for row in rows)
