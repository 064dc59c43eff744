"""Build the text that is embedded for each kind of record.

A record alone often does not say what it is about, so its context is put before it. The context
comes from the record and from what preceded it: the same record always gives the same text.
"""

from __future__ import annotations

from collections.abc import Sequence

from smara.codegraph.store import ChunkRow, CodeStore
from smara.core.extract import pieces
from smara.core.text import CHUNK_CHARACTERS
from smara.database.database import Session, marks
from smara.database.vectors import VectorKind
from smara.knowledge.models import TypedMemory
from smara.knowledge.store import KnowledgeStore
from smara.meaning.store import VectorStore
from smara.messages.models import Message
from smara.messages.store import MessageStore
from smara.observations.models import Observation
from smara.observations.store import ObservationStore
from smara.tasks.models import Task
from smara.tasks.store import TaskStore
from smara.working.store import WorkingStore

CODE_CHARACTERS = 4_000
"""So much of a piece of code is embedded: a vector of more says less of each part."""


class Texts:
    """Reads the texts of records, of every kind."""

    def __init__(self, store: VectorStore) -> None:
        database, scope = store.database, store.scope
        self._messages = MessageStore(database, scope)
        self._tasks = TaskStore(database, scope)
        self._observations = ObservationStore(database, scope)
        self._memories = KnowledgeStore(database, scope)
        self._working = WorkingStore(database, scope)
        self._code = CodeStore(database, scope)

    def of(
        self, session: Session, kind: VectorKind, numbers: Sequence[int]
    ) -> dict[int, list[str]]:
        """Return records' texts, one per row; missing are left out."""
        if not numbers:
            return {}
        if kind == "message":
            return {
                no: of_message(each)
                for no, each in self._messages.by_numbers(session, numbers).items()
            }
        if kind == "task":
            return {
                no: [of_task(each)] for no, each in self._tasks.by_numbers(session, numbers).items()
            }
        if kind == "observation":
            found = self._observations.select(
                session, f" AND o.no IN ({marks(len(numbers))})", numbers
            )
            return {no: [of_observation(each)] for no, each in found}
        if kind == "memory":
            return {
                no: [of_memory(each)]
                for no, each in self._memories.by_numbers(session, numbers).items()
            }
        if kind == "code":
            return {
                no: [of_chunk(each)]
                for no, each in self._code.chunks_by_number(session, numbers).items()
            }
        return {
            no: [each.content] for no, each in self._working.by_numbers(session, numbers).items()
        }


def of_message(message: Message) -> list[str]:
    """A message in the same pieces as in the text index."""
    return list(pieces(message.raw_content, CHUNK_CHARACTERS)) or [""]


def of_task(task: Task) -> str:
    """Return a task's text: kind, title, labels, and descriptions."""
    head = _prefix((task.type, *task.labels))
    return "\n".join(filter(None, (f"{head}{task.title}", task.full_description, task.summary)))


def of_observation(observation: Observation) -> str:
    """An observation with its category and its files before it."""
    head = _prefix((*observation.files, observation.category))
    return head + "\n".join((observation.text, *observation.details))


def of_memory(memory: TypedMemory) -> str:
    """Return a memory's text with files, modules and type, or prefix."""
    head = (
        f"{memory.context_prefix}: "
        if memory.context_prefix
        else _prefix((*memory.files, *memory.modules, memory.type.replace("_", " ")))
    )
    return head + memory.content


def of_chunk(chunk: ChunkRow) -> str:
    """Return a chunk's text behind its context, cut if long."""
    text = chunk.text[:CODE_CHARACTERS]
    return f"{chunk.prefix}\n{text}" if chunk.prefix else text


def _prefix(about: Sequence[str]) -> str:
    """What a text is about, to be put before it.

    >>> _prefix(("src/auth.ts", "gotcha")), _prefix(())
    ('src/auth.ts | gotcha: ', '')
    """
    known = [each for each in about if each]
    return " | ".join(known) + ": " if known else ""
