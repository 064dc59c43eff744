"""Real transcripts of Claude Code: whole, accounted for, and nothing lost.

They are found through SMARA_EVAL_DATA, and are no part of a clone.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from accounting import Account

from smara.adapters.importer import import_order, sniff
from smara.adapters.readers.claude_code import read_transcript
from smara.adapters.records import Counted, Imported, Record
from smara.messages.models import Part

FOLDER = Path(os.environ.get("SMARA_EVAL_DATA", "/nonexistent")) / "transcripts" / "claude_code"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))

pytestmark = pytest.mark.skipif(
    not FILES,
    reason="no transcripts/claude_code in SMARA_EVAL_DATA; set it to the folder of evaluation data",
)
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)


@cache
def records_of(path: Path) -> tuple[Record, ...]:
    return tuple(read_transcript(path))


@cache
def originals_of(path: Path) -> tuple[dict[str, Any], ...]:
    with gzip.open(path) as file:
        return tuple(json.loads(line) for line in file)


def messages_of(path: Path) -> list[Imported]:
    return [record for record in records_of(path) if isinstance(record, Imported)]


def blocks_of(original: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The content blocks of a record, or of the sub-agent's message inside it."""
    inner = original.get("data", {}).get("message", original)
    content = inner.get("message", {}).get("content", inner.get("content"))
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in content if isinstance(content, list) else []:
        yield block
        yield from (inner for inner in block.get("content", []) if isinstance(inner, dict))


@each_file
def test_every_line_is_imported_or_counted(path: Path) -> None:
    records = records_of(path)
    assert Account.of(records).lines == len(originals_of(path))
    assert sorted(record.line for record in records) == list(range(1, len(records) + 1))
    assert sniff(path) == "claude-code"


@each_file
def test_nothing_is_unknown_broken_or_repaired(path: Path) -> None:
    account = Account.of(records_of(path))
    assert account.repaired == 0
    assert {kind for kind, _ in account.counted}.isdisjoint(
        {"unknown", "broken", "unreadable", "repeat", "user"}
    )


@each_file
def test_every_record_with_words_is_a_message(path: Path) -> None:
    imported = {record.line for record in messages_of(path)}
    for line, original in enumerate(originals_of(path), start=1):
        if original["type"] not in ("user", "assistant", "system"):
            continue
        if any(block["type"] != "text" or block["text"].strip() for block in blocks_of(original)):
            assert line in imported, original


@each_file
def test_every_text_stands_in_some_part(path: Path) -> None:
    parts = [
        part
        for item in messages_of(path)
        for part in item.message.content
        if isinstance(part, Part)
    ]
    texts = {part.text for part in parts}
    joined = "\n".join(sorted(texts))
    calls = [part.arguments for part in parts if part.type == "tool_call"]
    for original in originals_of(path):
        for block in blocks_of(original):
            for key in ("text", "thinking", "content"):
                words = block.get(key)
                if isinstance(words, str) and words.strip():
                    assert words in texts or words in joined
            if block["type"] == "tool_use":
                assert block["input"] in calls


@each_file
def test_every_queued_word_and_every_cut_output_is_kept(path: Path) -> None:
    joined = "\n".join(
        part.text
        for item in messages_of(path)
        for part in item.message.content
        if isinstance(part, Part)
    )
    joined = " ".join(joined.split())
    for original in originals_of(path):
        if original["type"] == "queue-operation":
            assert " ".join(original.get("content", "").split()) in joined
        twin = original.get("toolUseResult")
        if isinstance(twin, dict) and not twin.get("isImage"):
            assert " ".join(str(twin.get("stdout", "")).split()) in joined


@each_file
def test_client_ids_are_unique_in_their_thread_and_the_same_each_time(path: Path) -> None:
    keys = [(item.thread.id, item.message.client_id) for item in messages_of(path)]
    assert len(set(keys)) == len(keys)
    assert tuple(read_transcript(path)) == records_of(path)


@each_file
def test_metadata_stays_small_and_carries_no_contents(path: Path) -> None:
    for item in messages_of(path):
        assert len(json.dumps(item.message.metadata)) < 2500, item.message.metadata


@each_file
def test_threads_are_what_they_are(path: Path) -> None:
    for item in messages_of(path):
        thread = item.thread
        agent = thread.metadata.get("agent_id", "")
        expected = (
            "compaction"
            if agent.startswith("acompact")
            else "subagent"
            if agent
            else "conversation"
        )
        assert thread.kind == expected
        assert thread.parent_id == (thread.id.split("/")[0] if agent else None)
        assert (item.message.role == "user") <= (expected != "compaction")


def test_a_sub_agent_told_by_its_session_and_by_its_own_file_is_one_thread() -> None:
    agent, session = (
        next(path for path in FILES if path.name.startswith(name))
        for name in ("agent-a7be2f0", "8463c716")
    )
    own = {item.message.client_id: item.message for item in messages_of(agent)}
    told = [
        item.message
        for item in messages_of(session)
        if item.thread.id == messages_of(agent)[0].thread.id
    ]
    assert len(told) == 39
    for message in told:
        assert message.client_id in own
        assert own[message.client_id].content == message.content
    assert import_order([session, agent]) == [agent, session]


def test_counted_records_all_have_a_reason() -> None:
    counted = [
        record for path in FILES for record in records_of(path) if isinstance(record, Counted)
    ]
    assert all(record.reason for record in counted)
    assert len({record.reason for record in counted}) < 20
