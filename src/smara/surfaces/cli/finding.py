"""Messages and tasks by whatever a person calls them."""

from __future__ import annotations

from smara.errors import NotFoundError
from smara.memory import Memory
from smara.messages.models import Message


def find_message(memory: Memory, message_id: str) -> Message:
    """The message with this id, or ``THREAD:SEQ``; ``NotFoundError`` when there is none."""
    thread_id, _, seq = message_id.rpartition(":")
    if not thread_id or not seq.isdigit():
        return memory.messages.get(message_id)
    found = memory.messages.list(thread_id=thread_id, after=int(seq) - 1, limit=1)
    if not found or found[0].seq != int(seq):
        raise NotFoundError(
            f"Thread {thread_id!r} has no message {seq}. `smara messages list` shows what it has."
        )
    return found[0]


def find_task_id(memory: Memory, given: str | None) -> str | None:
    """The id under which messages name a task; one that is no task of ours stays as it was
    given.
    """
    task = memory.tasks.find(given) if given else None
    return task.id if task else given
