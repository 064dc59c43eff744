"""Sessions of frameworks: entries as handed over, and what was said in them."""

from __future__ import annotations

import pytest

from smara.errors import ConflictError
from smara.frameworks.models import NewEntry
from smara.messages.models import NewMessage
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE


def read(body):
    return NewMessage(role="user", content=body["said"]) if "said" in body else None


def bodies(streams, key, **limits):
    return [entry.body for entry in streams.entries(key, **limits)]


@pytest.fixture
def streams(memory):
    return memory.frameworks.streams("some-framework", read)


def test_entries_come_back_in_order_and_their_messages_are_found(memory, streams):
    streams.append("a", [NewEntry({"said": "the blue parrot sings"}), NewEntry({"n": 1.5})])
    streams.append("a", [NewEntry({"said": "at noon", "x": ["é\x00\ud800", None]})])
    assert bodies(streams, "a")[1:] == [
        {"n": 1.5},
        {"said": "at noon", "x": ["é\x00\ud800", None]},
    ]
    assert bodies(streams, "a", limit=1) == bodies(streams, "a")[-1:]
    assert memory.search("parrot").hits[0].thread_id == "some-framework:a"
    assert len(memory.messages.list(thread_id="some-framework:a")) == 2


def test_an_entry_with_a_known_key_is_stored_once(memory, streams):
    twice = [NewEntry({"said": "once"}, key="k"), NewEntry({"said": "once"}, key="k")]
    streams.append("a", twice)
    stream = streams.append("a", twice)
    assert (stream.last_seq, stream.revision) == (1, 1)
    assert len(memory.messages.list(thread_id="some-framework:a")) == 1


def test_a_writer_that_read_an_older_revision_is_refused(streams):
    stream = streams.append("a", [NewEntry({"n": 1})], change=lambda data: {"n": 1})
    streams.append("a", [NewEntry({"n": 2})], revision=stream.revision)
    with pytest.raises(ConflictError):
        streams.append("a", [NewEntry({"n": 3})], revision=stream.revision)
    assert bodies(streams, "a") == [{"n": 1}, {"n": 2}]
    assert streams.find("a").data == {"n": 1}


def test_the_newest_entry_is_popped_and_a_deleted_stream_is_gone(streams):
    streams.append("a", [NewEntry({"n": 1}), NewEntry({"n": 2})])
    assert streams.pop("a").body == {"n": 2}
    streams.append("a", [NewEntry({"n": 3})])
    assert bodies(streams, "a") == [{"n": 1}, {"n": 3}]
    assert streams.delete("a")
    assert streams.find("a") is None
    assert streams.pop("a") is None


def test_streams_are_listed_by_the_beginning_of_their_key(memory, streams):
    for key in ("p/1", "p/2", "q/1"):
        streams.append(key, [NewEntry({"n": 1})])
    memory.frameworks.streams("another", read).append("p/3", [NewEntry({})])
    assert [stream.key for stream in streams.list("p/")] == ["p/1", "p/2"]


def test_an_erased_message_takes_its_entry_along(memory, streams):
    streams.append("a", [NewEntry({"said": "the secret parrot"}), NewEntry({"said": "stays"})])
    message = memory.messages.list(thread_id="some-framework:a")[0]
    memory.privacy.erase(messages=[message.id])
    assert bodies(streams, "a") == [{"said": "stays"}]
