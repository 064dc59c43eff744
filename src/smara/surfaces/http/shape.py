"""Shape what a room's method returns, as every door gives it.

Tasks, memories, hits, messages and the rest have the shapes of ``smara.shapes``; every other record
is given with its fields in camelCase. The Python client asks for records as they are instead, so
that it can make them again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any

from smara.codegraph.models import CoChange, Node, Reached
from smara.commits.models import Commit, LineReason
from smara.core.freshness import Freshness
from smara.decisions.models import Decision
from smara.knowledge.models import Evidence, TypedMemory
from smara.memory import Memory
from smara.messages.models import Message
from smara.observations.models import Observation
from smara.search.models import Hit
from smara.shapes import (
    Names,
    code_json,
    commit_json,
    decision_json,
    details_json,
    evidence_json,
    hit_json,
    line_reason_json,
    memory_json,
    message_json,
    observation_json,
    task_json,
    working_json,
)
from smara.surfaces.http.codec import camel, encode, field_types, is_record
from smara.tasks.models import Task, TaskDetails
from smara.texts import cochange_json, node_json, reached_json
from smara.working.models import WorkingMemory

Shape = Callable[["Shaper", Any], Any]
SHAPES: dict[type, Shape] = {
    Task: lambda _, value: task_json(value),
    TaskDetails: lambda _, value: details_json(value),
    TypedMemory: lambda shaper, value: shaper.memory(value),
    Hit: lambda shaper, value: hit_json(value, shaper.names),
    Message: lambda shaper, value: message_json(value, shaper.names),
    Observation: lambda _, value: observation_json(value),
    WorkingMemory: lambda _, value: working_json(value),
    Commit: lambda _, value: commit_json(value),
    Decision: lambda _, value: decision_json(value),
    LineReason: lambda _, value: line_reason_json(value),
    Evidence: lambda _, value: evidence_json(value),
    Freshness: lambda _, value: code_json(value),
    Node: lambda _, value: node_json(value),
    Reached: lambda _, value: reached_json(value),
    CoChange: lambda _, value: cochange_json(value),
}


class Shaper:
    """Shapes the results of one memory."""

    names: Names

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.names = Names(memory.tasks.find)
        self._code: Mapping[str, Freshness] = {}
        self._seen: AbstractSet[str] = frozenset()

    def shape(self, result: Any) -> Any:
        """Return a result as JSON."""
        memories = list(_memories_in(result))
        # One look at the code for all of them.
        self._code = self._memory.memories.freshness(memories) if memories else {}
        self._seen = {each.id for each in memories}
        return self._any(result)

    def memory(self, memory: TypedMemory) -> Any:
        """Return a memory's shape as of now."""
        code = self._code if memory.id in self._seen else None
        worth = self._memory.memories.confidence(memory, code).value
        return memory_json(memory, worth, self._code.get(memory.id))

    def _any(self, value: Any) -> Any:
        if value is None or isinstance(value, str | bool | int):
            return value
        shape = SHAPES.get(type(value))
        if shape is not None:
            return shape(self, value)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        kind: Any = type(value)
        if is_record(kind):
            return {
                field_name(kind, name): self._any(getattr(value, name))
                for name in field_types(kind)
            }
        if isinstance(value, Mapping):
            return {str(name): self._any(each) for name, each in value.items()}
        if isinstance(value, datetime | bytes):
            return encode(value)
        if isinstance(value, AbstractSet):
            return sorted((self._any(each) for each in value), key=str)
        return [self._any(each) for each in value]


def field_name(record: type, name: str) -> str:
    """Return the name of a record's field in JSON."""
    return "results" if name == "hits" and issubclass(record, Sequence) else camel(name)


def _memories_in(result: Any) -> Iterable[TypedMemory]:
    if isinstance(result, TypedMemory):
        yield result
    elif isinstance(result, Sequence) and not isinstance(result, str | bytes):
        for each in result:
            found = getattr(each, "memory", each)
            if isinstance(found, TypedMemory):
                yield found
    elif isinstance(found := getattr(result, "memory", None), TypedMemory):
        yield found


def tag_of(record: Any) -> str:
    """Return the ETag of a record."""
    version = getattr(record, "version", None)
    if isinstance(version, int):
        return f'"v{version}"'
    text = json.dumps(encode(record), sort_keys=True, ensure_ascii=True)
    return f'"h{hashlib.blake2b(text.encode(), digest_size=12).hexdigest()}"'
