"""Links as values."""

from __future__ import annotations

from dataclasses import dataclass

from smara.messages.models import Message
from smara.tasks.models import Relation


@dataclass(frozen=True, slots=True)
class LinkedMessage:
    """A message of a task, and what it has to do with it."""

    message: Message
    relation: Relation


@dataclass(frozen=True, slots=True)
class Link:
    """A message linked to a task; ``is_new`` is false when it was linked so already."""

    task_id: str
    message_id: str
    relation: Relation
    is_new: bool
