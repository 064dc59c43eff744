"""Sessions of frameworks: entries as handed over, and what was said in them."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import smara
from smara.errors import ConflictError, InvalidInputError
from smara.frameworks.models import NewEntry
from smara.messages.models import NewMessage
from tests.contract.both import EACH_DATABASE
from tests.stores import empty_store

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
    stream = streams.append("a", [NewEntry({"n": 1})], change=lambda data, fresh: {"n": 1})
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


THREAD = "some-framework:a"
TEXTS = st.text(st.characters(exclude_categories=()), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def said(memory, thread_id=THREAD):
    return [each.raw_content for each in memory.messages.list(thread_id=thread_id)]


def test_any_json_comes_back_deeply_equal(memory):
    raw = memory.frameworks.streams("some-framework", lambda body: None, is_redacted=False)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(VALUES, max_size=4))
    def every_value(values: list[Any]) -> None:
        raw.delete("a")
        raw.append("a", [NewEntry(value) for value in values])
        assert bodies(raw, "a") == values
        assert json.dumps(bodies(raw, "a")) == json.dumps(values)

    every_value()


def test_what_json_cannot_store_is_refused_and_nothing_is_stored(streams):
    streams.append("a", [NewEntry({"n": 1})])
    for value in (object(), float("nan"), {1, 2}):
        with pytest.raises(InvalidInputError):
            streams.append("a", [NewEntry({"n": 2}), NewEntry({"x": value})])
    assert bodies(streams, "a") == [{"n": 1}]


def test_a_body_of_a_megabyte_comes_back_and_is_found(memory, streams):
    long = "filler words " * 80_000 + "the last is a cassowary"
    streams.append("a", [NewEntry({"said": long})])
    assert bodies(streams, "a") == [{"said": long}]
    assert memory.search("cassowary").hits[0].thread_id == THREAD


def test_a_stream_of_another_project_is_not_seen(memory, streams):
    streams.append("a", [NewEntry({"said": "here"}, key="k")])
    other = memory.in_project("another").frameworks.streams("some-framework", read)
    assert (other.find("a"), other.list(), bodies(other, "a"), other.pop("a")) == (
        None,
        [],
        [],
        None,
    )
    assert not other.delete("a")
    other.append("a", [NewEntry({"said": "there"}, key="k")])
    assert (bodies(streams, "a"), bodies(other, "a")) == ([{"said": "here"}], [{"said": "there"}])


def test_two_writers_take_turns_and_keep_their_batches_together(memory, open_again):
    both = [memory, open_again()]
    start = threading.Barrier(2)

    def write(number: int) -> None:
        own = both[number].frameworks.streams("some-framework", read)
        start.wait()
        for turn in range(10):
            batch = [{"said": f"{number} {turn} {part}"} for part in range(3)]
            own.append("a", [NewEntry(each, key=each["said"]) for each in batch])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    words = [
        each["said"] for each in bodies(memory.frameworks.streams("some-framework", read), "a")
    ]
    batches = [words[at : at + 3] for at in range(0, len(words), 3)]
    assert len(words) == 60
    assert all([each[:-2] for each in batch] == [batch[0][:-2]] * 3 for batch in batches)
    assert [each for each in words if each[0] == "0"] == sorted(w for w in words if w[0] == "0")
    assert said(memory) == words


class Killed(BaseException):
    """Ends a process between two transactions."""


def test_entries_of_a_killed_writer_are_read_by_the_next_append(memory, open_again, streams):
    def dies(body):
        raise Killed

    with pytest.raises(Killed):
        memory.frameworks.streams("some-framework", dies).append("a", [NewEntry({"said": "one"})])
    assert (bodies(streams, "a"), said(memory)) == ([{"said": "one"}], [])
    later = open_again().frameworks.streams("some-framework", read)
    later.append("a", [NewEntry({"said": "two"})])
    assert said(memory) == ["one", "two"]


def test_trouble_with_messages_does_not_fail_an_append(memory, streams):
    def refuses(body):
        return NewMessage(role="nobody", content="x")  # type: ignore[arg-type]

    memory.frameworks.streams("some-framework", refuses).append("a", [NewEntry({"said": "one"})])
    streams.append("a", [NewEntry({"said": "two"})])
    assert said(memory) == ["one", "two"]


def test_an_entry_that_is_taken_back_and_comes_again_is_one_message(memory, streams):
    def add(word: str) -> None:
        streams.append("a", [NewEntry({"said": word}, may_repeat=True)])

    for word in ("yes", "no", "yes"):
        add(word)
    assert streams.pop("a").body == {"said": "yes"}
    add("yes")
    assert bodies(streams, "a") == [{"said": "yes"}, {"said": "no"}, {"said": "yes"}]
    assert said(memory) == ["yes", "no", "yes"]


def test_data_are_made_of_entries_that_are_new(streams):
    def count(data, fresh):
        return {"seen": [*data.get("seen", ()), *(each.body["n"] for each in fresh)]}

    for _ in range(2):
        streams.append("a", [NewEntry({"n": 1}, key="k"), NewEntry({"n": 2})], change=count)
    assert streams.find("a").data == {"seen": [1, 2, 2]}


def test_secrets_are_redacted_unless_that_is_turned_off(memory, streams):
    secret = {"said": "postgres://ada:Tr0ub4dor3x@db/x"}
    raw = memory.frameworks.streams("raw-framework", read, is_redacted=False)
    streams.append("a", [NewEntry(secret)])
    raw.append("a", [NewEntry(secret)])
    assert "Tr0ub4dor3x" not in json.dumps(bodies(streams, "a"))
    assert bodies(raw, "a") == [secret]
    assert "Tr0ub4dor3x" not in " ".join(said(memory, "raw-framework:a"))


@pytest.mark.parametrize("target", [{"threads": [THREAD]}, {"text": "parrot"}, {"person": "ada"}])
def test_an_erase_reaches_the_entries(memory, streams, target):
    thread = smara.NewThread(THREAD, resource_id="ada")
    streams.append("a", [NewEntry({"said": "a parrot", "n": 1})], thread=thread)
    memory.privacy.erase(**target)
    assert bodies(streams, "a") == []


def test_what_comes_after_an_erase_is_stored_also_in_the_same_millisecond(memory, streams):
    streams.append("a", [NewEntry({"said": "before"})])
    memory.privacy.erase(threads=[THREAD])
    streams.append("a", [NewEntry({"said": "after"})])
    streams.append("a", [NewEntry({"said": "and after"})])
    assert bodies(streams, "a") == [{"said": "after"}, {"said": "and after"}]
    assert said(memory) == ["after", "and after"]


def test_streams_over_a_thread_are_named(memory, streams):
    thread = smara.NewThread("shared")
    streams.append("a", [NewEntry({"n": 1})], thread=thread)
    memory.frameworks.streams("another", read).append("b", [NewEntry({"n": 1})], thread=thread)
    found = memory.frameworks.holders(["shared", "no such thread"])
    assert found == {"shared": {("some-framework", "a"), ("another", "b")}}


def test_export_and_copy_bring_streams_along(memory, streams, tmp_path, place):
    entries = [NewEntry({"said": "a parrot", "x": "\x00\ud800"}, key="k"), NewEntry({"n": 1})]
    streams.append("a", entries, change=lambda data, fresh: {"state": len(fresh)})
    memory.privacy.export(tmp_path / "archive.zip")
    project = memory.project
    with empty_store("sqlite") as address, smara.open(address, project=project) as other:
        for _ in range(2):
            other.privacy.import_archive(tmp_path / "archive.zip")
        there = other.frameworks.streams("some-framework", read)
        assert (bodies(there, "a"), there.find("a")) == (bodies(streams, "a"), streams.find("a"))
        there.append("a", [NewEntry({"said": "again"}, key="k"), NewEntry({"said": "later"})])
        assert said(other) == ["a parrot", "later"]
        message = other.messages.list(thread_id=THREAD)[0]
        other.privacy.erase(messages=[message.id])
        assert [each.get("n") for each in bodies(there, "a")] == [1, None]
    with empty_store("sqlite") as target:
        smara.copy_store(str(place.address), str(target))
        with smara.open(target, project=project) as other:
            there = other.frameworks.streams("some-framework", read)
            assert bodies(there, "a") == bodies(streams, "a")
