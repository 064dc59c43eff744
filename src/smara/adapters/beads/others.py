"""What beads keeps besides issues: its notes ("memories"), as messages of one thread.

A message keeps every word, is found by search, and can be told again. The record itself
stands in the message's metadata, so that an export gives it back as it was; a record that
came again with other words is a new message, and the newest one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from smara.adapters.beads.models import KEY, Record
from smara.adapters.decoding import mapping_in
from smara.memory import Memory
from smara.messages.models import Message, NewMessage, NewThread, plain

THREAD = NewThread("beads", title="Notes kept in beads", metadata={"host": "beads"})


def keep_others(memory: Memory, records: Iterable[Record]) -> None:
    """Store the records that are not known as they are; safe to repeat."""
    newest, versions = _newest(memory)
    messages = []
    for record in records:
        name = _name(record)
        if newest.get(name) == record:
            continue
        newest[name] = record
        versions[name] = versions.get(name, 0) + 1
        client_id = f"{name}#{versions[name]}"
        messages.append(
            NewMessage(
                "system", _words(record), client_id, metadata={"kind": "note", KEY: dict(record)}
            )
        )
    if messages:
        memory.messages.append_batch(THREAD, messages, may_differ=True, compact=False)


def other_records(memory: Memory) -> list[Record]:
    """The records that were kept, each in its newest form, by type and name."""
    newest, _ = _newest(memory)
    return [newest[name] for name in sorted(newest)]


def _newest(memory: Memory) -> tuple[dict[str, Record], dict[str, int]]:
    newest: dict[str, Record] = {}
    versions: dict[str, int] = {}
    if memory.threads.find(THREAD.id) is None:
        return newest, versions
    for message in memory.messages.stream(thread_id=THREAD.id):
        if record := _record(message):
            name = _name(record)
            newest[name] = record
            versions[name] = versions.get(name, 0) + 1
    return newest, versions


def _record(message: Message) -> dict[str, Any]:
    return dict(mapping_in(message.metadata.get(KEY)))


def _name(record: Record) -> str:
    """What makes two records one: their type and key."""
    named = record.get("key", record.get("id", record.get("name")))
    return f"{record.get('_type')}:{plain(named if named is not None else dict(record))}"[:400]


def _words(record: Record) -> str:
    key, value = record.get("key"), record.get("value")
    if isinstance(value, str) and value.strip():
        return f"{key}\n\n{value}" if isinstance(key, str) else value
    return plain(dict(record))
