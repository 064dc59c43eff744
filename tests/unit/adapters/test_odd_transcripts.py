"""Whatever stands in a file, reading it never raises, and every record is accounted for."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from accounting import Account
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.adapters.importer import reader_of, sniff
from smara.adapters.records import Imported
from tests.agent_events import events_of_records
from tests.unit.adapters.foreign import ONE_OF_EACH, opencode_database

QUIET = settings(max_examples=30)
TYPES = [
    "message", "function_call", "function_call_output", "compaction", "world_state", "reasoning",
    "session_meta",
    "event_msg", "response_item", "turn_context", "local_shell_call", "agent_message",
    "item_completed", "gemini",
    "user", "tool", "text", "file", "subtask", "assistant",
]  # fmt: skip
VALUES = st.sampled_from(TYPES) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
ZSTD = b"\x28\xb5\x2f\xfd"  # wants a package that may be missing, and says so
FORMATS = ["codex", "gemini", "copilot", "opencode", "pi", "json"]


def read(
    content: bytes, format: str, name: str = "rollout-2026-03-02T09-00-00-0195f3a1.jsonl"
) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        sniff(path)
        records = list(reader_of(format)(path))
    account = Account.of(records)
    assert account.lines == len(records)
    assert all(record.reason for record in records if not isinstance(record, Imported))
    for event in events_of_records(records):
        assert event.session_id
        assert event.key
    return records


def objects(samples: list[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Records like those of the fixtures, some of their fields replaced by anything."""

    def changed(sample: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        keys = (
            st.dictionaries(st.sampled_from(sorted(sample)), VALUES, max_size=2)
            if sample
            else st.just({})
        )
        for name in ("payload", "data", "message"):
            if isinstance(sample.get(name), dict) and sample[name]:
                inner = st.dictionaries(st.sampled_from(sorted(sample[name])), VALUES, max_size=2)
                return st.builds(
                    lambda a, b, name=name: {**sample, name: {**sample[name], **b}, **a},
                    keys,
                    inner,
                )
        return keys.map(lambda more: {**sample, **more})

    return st.sampled_from(samples).flatmap(changed)


def samples(*names: str) -> list[dict[str, Any]]:
    found: list[Any] = []
    for name in names:
        text = ONE_OF_EACH[name].read_text()
        try:
            whole = json.loads(text)
            found += (
                whole
                if isinstance(whole, list)
                else [whole, *whole.get("messages", whole.get("items", []))]
            )
        except ValueError:
            for line in text.splitlines():
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
    return [each for each in found if isinstance(each, dict)]


CODEX = samples("codex", "codex-sub", "codex-old", "codex-oldest")
GEMINI = samples("gemini", "gemini-sub", "gemini-old", "gemini-log")
GENERIC = samples("generic-openai", "generic-anthropic", "generic-responses", "generic-google")
SAMPLES = {
    "codex": CODEX,
    "gemini": GEMINI,
    "copilot": samples("copilot"),
    "pi": samples("pi"),
    "json": GENERIC,
}


@pytest.mark.parametrize("format", sorted(SAMPLES))
@QUIET
@given(data=st.data())
def test_records_with_odd_fields_are_read_or_counted(format, data):
    found = data.draw(st.lists(objects(SAMPLES[format]), max_size=6))
    lines = "\n".join(json.dumps(each) for each in found)
    assert len(read(lines.encode("utf-8", "surrogatepass"), format)) >= min(1, len(found))
    document = json.dumps({"sessionId": "s", "projectHash": "p", "messages": found}, indent=1)
    read(document.encode("utf-8", "surrogatepass"), format, "session-1.json")


@pytest.mark.parametrize("format", FORMATS)
@QUIET
@given(content=st.binary(max_size=200).filter(lambda content: not content.startswith(ZSTD)))
def test_any_bytes_at_all_are_counted(format, content):
    read(content, format)
    read(b"{\n" + content, format, "x.json")
    read(b"[" + content, format, "x.json")


@pytest.mark.parametrize("name", ONE_OF_EACH)
@QUIET
@given(data=st.data())
def test_a_file_that_breaks_off_anywhere_gives_the_messages_before_the_break(name, data):
    path = ONE_OF_EACH[name]
    format = sniff(path)
    content = path.read_bytes()
    whole = [r.message.client_id for r in reader_of(format)(path) if isinstance(r, Imported)]
    cut = data.draw(st.integers(0, len(content)))
    found = [
        r.message.client_id
        for r in read(content[:cut], format, path.name)
        if isinstance(r, Imported)
    ]
    if format != "opencode" and not path.name.endswith(".json"):
        assert found == whole[: len(found)]


@QUIET
@given(data=st.data())
def test_parts_with_odd_fields_in_a_database_are_read_or_counted(data):
    part = {
        "type": "tool",
        "callID": "c",
        "tool": "bash",
        "state": {"status": "completed", "input": {}, "output": "x"},
    }
    rows = data.draw(
        st.lists(
            objects(
                [
                    part,
                    {"type": "text", "text": "x"},
                    {"type": "file", "url": "data:,", "mime": "a/b"},
                ]
            ),
            max_size=4,
        )
    )
    info = data.draw(
        objects(
            [{"role": "assistant", "time": {"created": 1, "completed": 2}, "error": {"name": "x"}}]
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        database = opencode_database(Path(folder) / "opencode.db")
        connection = sqlite3.connect(database)
        connection.execute(
            "INSERT INTO message VALUES ('m', 'ses_0001', 1, 1, ?)", [json.dumps(info)]
        )
        for number, row in enumerate(rows):
            connection.execute(
                "INSERT INTO part VALUES (?, 'm', 'ses_0001', 1, 1, ?)",
                [f"p{number}", json.dumps(row)],
            )
        connection.commit()
        connection.close()
        records = list(reader_of("opencode")(database))
    assert [record.line for record in records] == list(range(1, len(records) + 1))
