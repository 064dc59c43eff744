"""What observing leaves alone, and what it carries on: read-only memories, sealed messages, walls,
taint, secrets.
"""

from __future__ import annotations

from typing import Any

import pytest

from smara.errors import (
    ModelUnavailableError,
    NotFoundError,
)
from smara.messages.models import Part
from smara.observations.models import Extractor
from tests.contract.both import EACH_DATABASE
from tests.contract.observing import SMALL, Watcher, fill, problems, rows, watch

pytestmark = EACH_DATABASE

SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


@pytest.fixture
def memory(place: Any) -> Any:
    return place.open(**SMALL)


# read-only, disabled


@pytest.mark.parametrize("settings", [{"observe_read_only": True}, {"observe_enabled": False}])
def test_read_only_and_disabled_write_nothing(
    place: Any, memory: Any, settings: dict[str, bool]
) -> None:
    fill(memory, 3)
    quiet = place.open(**SMALL, **settings)
    watcher = Watcher()
    room = watch(quiet, watcher)
    for act in (room.observe, room.buffer, room.activate, room.reflect, room.end_session):
        outcome = act("t")
        assert (outcome.success, outcome.code, outcome.is_retryable) == (False, "read_only", False)
    room.look_after("t")
    assert room.settled()
    quiet.context.process_input("t", [{"role": "user", "content": "hello"}])
    assert set(rows(quiet).values()) == {0}
    assert watcher.requests == []
    with quiet._rooms.database.read() as session:
        assert int(session.one("SELECT count(*) FROM messages WHERE sealed_at IS NOT NULL")[0]) == 0


def test_read_only_shows_what_another_observed(place: Any, memory: Any) -> None:
    fill(memory, 3)
    watch(memory).observe("t")
    quiet = place.open(**SMALL, observe_read_only=True)
    room = watch(quiet)
    assert len(room.active("t")) == 3
    assert "message 1 says" in quiet.context.process_input("t").system


# sealing


def test_content_that_arrives_after_an_observation_has_started_is_a_new_message_and_observed(
    memory: Any,
) -> None:
    added: list[Any] = []

    def arrive() -> None:
        if not added:
            added.append(
                memory.messages.extend(
                    memory.messages.list(thread_id="t")[-1].id, "and then some more"
                )
            )

    watcher = Watcher(meanwhile=arrive)
    room = watch(memory, watcher)
    fill(memory, 2)
    assert room.observe("t").messages == 3
    assert added[0].seq == 3
    assert added[0].metadata["continues"] == memory.messages.list(thread_id="t")[1].id
    assert watcher.seen == [("t", 1), ("t", 2), ("t", 3)]
    assert problems(memory) == []


def test_content_that_arrives_before_is_part_of_the_message_and_counted_once(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    fill(memory, 2)
    last = memory.messages.list(thread_id="t")[-1]
    memory.messages.extend(last.id, "and then some more " * 20)
    assert room.observe("t").messages == 2
    assert "some more" in watcher.requests[0].messages[1].raw_content
    assert room.pending("t") == (0, 0)
    assert problems(memory) == []


def test_sealing_holds_even_when_the_observation_fails(memory: Any) -> None:
    """What the observer has seen must be what is stored, also when it is asked again."""
    room = watch(memory, Watcher([ModelUnavailableError("overloaded")]))
    fill(memory, 1)
    room.observe("t")
    later = memory.messages.extend(memory.messages.list(thread_id="t")[0].id, "more")
    assert later.seq == 2


# walls, taint, secrets, why


def test_projects_do_not_see_each_other(place: Any, memory: Any) -> None:
    other = place.open(**SMALL, project="other")
    mine, theirs = watch(memory), watch(other)
    for each in (memory, other):
        fill(each, 3)
    mine.observe("t")
    assert theirs.list() == []
    assert theirs.active("t") == []
    assert theirs.pending("t").tokens > 0
    assert theirs.record("t") is None
    with pytest.raises(NotFoundError):
        theirs.get(mine.list()[0].id)
    with pytest.raises(NotFoundError):
        theirs.why(mine.list()[0].id)
    assert theirs.observe("t").messages == 3
    assert len(mine.list()) == len(theirs.list()) == 3


def test_projects_are_observed_at_the_same_time(place: Any, memory: Any) -> None:
    other = place.open(**SMALL, project="other")
    fill(other, 2)
    theirs, told = watch(other), []
    mine = watch(memory, Watcher(meanwhile=lambda: told.append(theirs.observe("t"))))
    fill(memory, 2)
    assert mine.observe("t").success
    assert told[0].success


def test_threads_keep_to_themselves(memory: Any) -> None:
    watcher = Watcher(text="{whole}")
    room = watch(memory, watcher)
    fill(memory, 3, "one")
    fill(memory, 3, "two")
    room.observe("one")
    room.observe("two")
    assert all("one number" in row.text for row in room.active("one"))
    assert all("two number" in row.text for row in room.active("two"))
    assert all(
        len({message.thread_id for message in asked.messages}) == 1 for asked in watcher.requests
    )
    assert "one number" not in watcher.requests[1].known
    assert "one number" not in str(memory.context.process_input("two"))


@pytest.mark.parametrize(
    ("part", "metadata", "expected"),
    [
        (Part("text", "plain words"), {}, ()),
        (Part("tool_result", "output", name="Bash", call_id="c"), {}, ("tool",)),
        (Part("tool_result", "a page", name="WebFetch", call_id="c"), {}, ("web",)),
        (Part("tool_result", "rows", name="mcp__db__query", call_id="c"), {}, ("mcp",)),
        (Part("file", name="notes.pdf"), {}, ("file",)),
        (Part("text", "old words"), {"taint": "imported"}, ("imported",)),
        (Part("text", "old words"), {"taint": ["imported", "web"]}, ("imported", "web")),
    ],
)
def test_taint_of_the_messages_is_on_the_observation(
    memory: Any, part: Part, metadata: dict[str, Any], expected: tuple[str, ...]
) -> None:
    room = watch(memory)
    memory.messages.add(thread_id="t", role="assistant", content=[part], metadata=metadata)
    room.observe("t")
    assert [row.taint for row in room.list()] == [expected]


def test_secret_that_an_observer_writes_is_not_stored(memory: Any) -> None:
    key = SECRET
    watcher = Watcher(
        text=f"the key is {key}",
        current_task=f"use {key}",
        thread_title=f"{key}",
        extracted={"k": key},
    )
    room = watch(memory, watcher)
    fill(memory, 2)
    room.observe("t")
    with memory._rooms.database.read() as session:
        kept = session.all("SELECT text FROM observations") + session.all(
            "SELECT coalesce(current_task, '') || coalesce(thread_title, '') || extracted FROM "
            "observation_batches"
        )
    assert not any(SECRET in row[0] for row in kept)
    thread = memory.threads.get("t")
    assert SECRET not in f"{thread.title} {thread.metadata}"


def test_why_gives_the_messages_an_observation_comes_from_page_by_page(memory: Any) -> None:
    class Whole(Watcher):
        def _note(self, message: Any) -> Any:
            from dataclasses import replace

            return replace(super()._note(message), first_seq=None, last_seq=None)

    room = watch(memory, Whole())
    fill(memory, 8)
    room.observe("t")
    row = room.list()[0]
    assert [message.seq for message in room.why(row.id)] == list(range(1, 9))
    assert [message.seq for message in room.why(row.id, limit=3, offset=3)] == [4, 5, 6]
    assert [message.seq for message in room.why(row.id, limit=3, offset=6)] == [7, 8]
    assert room.why(row.id, offset=8) == []


def test_range_that_an_observer_invents_is_brought_back_to_its_messages(memory: Any) -> None:
    class Liar(Watcher):
        def _note(self, message: Any) -> Any:
            from dataclasses import replace

            return replace(
                super()._note(message), first_seq=900, last_seq=1_000, said_at=4_000_000_000_000
            )

    room = watch(memory, Liar())
    fill(memory, 3)
    room.observe("t")
    messages = memory.messages.list(thread_id="t")
    assert {(row.first_seq, row.last_seq) for row in room.list()} == {(1, 3)}
    assert {row.said_at for row in room.list()} == {messages[-1].created_at}


def test_observer_is_told_the_folder_of_the_thread_in_every_batch(memory: Any) -> None:
    watcher = Watcher()
    room = watch(memory, watcher)
    memory.threads.add("t", metadata={"cwd": "/home/ada/shop"})
    fill(memory, 30)
    fill(memory, 2, "elsewhere")
    room.observe("t")
    room.observe("elsewhere")
    assert {(asked.messages[0].thread_id, asked.root) for asked in watcher.requests} == {
        ("t", "/home/ada/shop"),
        ("elsewhere", ""),
    }
    assert len(watcher.requests) > 2


def test_paths_are_shortened_alike_in_every_batch(memory: Any) -> None:
    """Also where a batch speaks only of another folder, from which the root of the project would be
    guessed.
    """
    memory.threads.add("t", metadata={"cwd": "/home/ada/shop"})
    for path in (
        "/home/ada/shop/src/a.py",
        "/home/ada/shop/apps/web/src/b.py",
        "/home/ada/shop/apps/web/tests/c.py",
    ):
        call = Part(
            "tool_call",
            name="Write",
            call_id=path,
            arguments={"file_path": path, "content": "def f(): ..."},
        )
        memory.messages.add(thread_id="t", role="assistant", content=[call])
        memory.messages.add(
            thread_id="t", role="tool", content=[Part("tool_result", "written", call_id=path)]
        )
        memory.observations.observe("t")
    files = [file for row in memory.observations.list(thread_id="t") for file in row.files]
    assert sorted(files) == ["apps/web/src/b.py", "apps/web/tests/c.py", "src/a.py"]


def test_extractors_work_without_a_model_and_what_they_cannot_is_kept_as_a_warning(
    place: Any,
) -> None:
    ticket = Extractor(
        "tickets",
        "Every ticket.",
        {"type": "array", "items": {"type": "string", "pattern": "T-[0-9]+"}},
    )
    mood = Extractor("mood", f"How it goes with {SECRET}.", {"type": "object"})
    memory = place.open(**SMALL, extractors=[ticket, mood])
    memory.messages.add(thread_id="t", role="user", content="Please close T-12 and T-7.")
    assert memory.observations.observe("t").success
    assert memory.observations.extracted("t") == [{"tickets": ["T-12", "T-7"]}]
    (warned,) = memory.observations.warned()
    assert (warned.thread_id, warned.first_seq, warned.last_seq) == ("t", 1, 1)
    assert warned.warnings == (
        "extractor mood: mood cannot be found without a model; it was left out.",
    )
    assert memory.observations.warnings(memory.observations.list()[0].id) == warned.warnings


def test_warnings_are_stored_without_secrets(memory: Any) -> None:
    room = watch(memory, Watcher(warnings=(f"line with {SECRET} was left out",)))
    fill(memory, 2)
    room.observe("t")
    (warned,) = room.warned()
    assert SECRET not in warned.warnings[0]
    assert "was left out" in warned.warnings[0]
