"""Conversations in one piece, in the shapes of the common interfaces."""

from __future__ import annotations

import json

import pytest

from smara.adapters.importer import sniff
from smara.adapters.readers.plain import read_conversations
from smara.adapters.records import Imported
from tests.unit.adapters.foreign import GENERIC, ONE_OF_EACH, reasons, told

FORMATS = {
    name: "json" if name.startswith("generic") else name.split("-")[0] for name in ONE_OF_EACH
}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_every_fixture_is_known_by_its_looks(name):
    assert sniff(ONE_OF_EACH[name]) == FORMATS[name]


def test_messages_of_openais_interface():
    records = list(read_conversations(GENERIC / "openai.json"))
    assert told(records) == [
        ("system", "text", "You are helpful."),
        ("user", "text+image", "Weather in Paris?|"),
        ("assistant", "tool_call", "get_weather"),
        ("tool", "tool_result", "18 degrees"),
        ("assistant", "text", "It is 18 degrees in Paris."),
    ]
    assert {(r.thread.id, r.thread.title) for r in records if isinstance(r, Imported)} == {
        ("conv-1", "Weather")
    }


def test_messages_of_anthropics_interface_with_their_times():
    records = list(read_conversations(GENERIC / "anthropic.json"))
    assert [(role, kind) for role, kind, _ in told(records)] == [
        ("user", "text"),
        ("assistant", "reasoning+tool_call"),
        ("tool", "tool_result"),
        ("assistant", "text"),
    ]
    assert next(r.message.created_at for r in records if isinstance(r, Imported)) == 1767261600000


def test_items_of_openais_newer_interface():
    assert told(read_conversations(GENERIC / "responses.json")) == [
        ("user", "text", "List the files"),
        ("assistant", "reasoning", "Use ls."),
        ("assistant", "tool_call", "shell"),
        ("tool", "tool_result", "shop"),
        ("assistant", "text", "There is one: shop."),
    ]


def test_contents_of_googles_interface():
    assert told(read_conversations(GENERIC / "google.json")) == [
        ("user", "text", "Read the till"),
        ("assistant", "tool_call", "read_file"),
        ("tool", "tool_result", "total = 0"),
        ("assistant", "text", "It starts at zero."),
    ]


def test_one_conversation_a_line_is_one_thread_a_line():
    records = list(read_conversations(GENERIC / "conversations.jsonl"))
    assert [r.thread.id for r in records if isinstance(r, Imported)] == ["conversations-1"] * 2 + [
        "named"
    ] * 2
    assert reasons(records) == {"invalid JSON": 1}


@pytest.mark.parametrize(
    "content",
    [
        [
            {"id": "a", "messages": [{"role": "user", "content": "x"}]},
            {"id": "b", "messages": [{"role": "user", "content": "y"}]},
        ],
        {
            "conversations": [
                {"id": "a", "history": [{"role": "user", "content": "x"}]},
                {"id": "b", "messages": [{"role": "user", "content": "y"}]},
            ]
        },
    ],
)
def test_many_conversations_in_one_document(tmp_path, content):
    path = tmp_path / "all.json"
    path.write_text(json.dumps(content, indent=1))
    assert [(r.thread.id, r.message.content) for r in read_conversations(path)] == [
        ("a", "x"),
        ("b", "y"),
    ]


def test_the_same_message_twice_is_two_and_a_grown_document_keeps_its_ids(tmp_path):
    path = tmp_path / "talk.json"
    said = [{"role": "user", "content": "again"}, {"role": "user", "content": "again"}]
    path.write_text(json.dumps(said, indent=1))
    before = [record.message.client_id for record in read_conversations(path)]
    path.write_text(json.dumps([*said, {"role": "assistant", "content": "yes"}], indent=1))
    after = [record.message.client_id for record in read_conversations(path)]
    assert len(set(after)) == 3
    assert after[:2] == before


def test_what_is_no_message_says_what_to_mend(tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(
        '{\n"messages": [{"content": "no role"}, 5, {"role": "user", "content": "x"}], "id": "t"'
    )
    assert set(reasons(read_conversations(path))) == {
        'no role; give "role": user, assistant, system or tool',
        "not a JSON object",
        "the document breaks off or is not JSON from here on",
    }
    path.write_text('{"messages": []}')
    assert reasons(read_conversations(path)) == {"a conversation without messages": 1}
