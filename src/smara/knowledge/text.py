"""A memory as text: what it is found by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smara.database.records import RecordTerms, terms_of
from smara.knowledge.models import TypedMemory


def memory_terms(memory: TypedMemory) -> RecordTerms:
    """What a memory is found by; none when it is out of the way, which takes it out of the
    index.
    """
    if not is_findable(memory):
        return RecordTerms("", ())
    return terms_of(memory.citation or "", searched_text(memory))


def is_findable(memory: TypedMemory) -> bool:
    """Whether a memory is in the index: what is active, and what was superseded, for those who ask
    how it was.
    """
    return memory.is_active or memory.deprecated_because == "superseded"


def searched_text(memory: TypedMemory) -> str:
    """Everything that was written into a memory."""
    kind = memory.type.replace("_", " ")
    around = " ".join((*memory.tags, *memory.modules, *memory.files, kind))
    return "\n".join(filter(None, (memory.content, *_texts(memory.data), around)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
