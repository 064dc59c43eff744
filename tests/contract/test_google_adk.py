"""Google ADK over a memory: sessions with state and events, and the search in them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from smara.adapters.sdk.google_adk import SmaraMemoryService, SmaraSessionService
from smara.errors import NotFoundError
from tests.contract.both import EACH_DATABASE
from tests.contract.sdk import stored_words, watch_threads

pytestmark = EACH_DATABASE
ANN = {"app_name": "shop", "user_id": "ann"}
BOB = {"app_name": "shop", "user_id": "bob"}


def go(act: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(act)


def event(
    text: str, author: str = "user", state: dict[str, Any] | None = None, **given: Any
) -> Event:
    role = "user" if author == "user" else "model"
    content = types.Content(role=role, parts=[types.Part(text=text)])
    actions = EventActions(state_delta=state or {})
    return Event(author=author, content=content, actions=actions, **given)


@pytest.fixture
def sessions(memory: Any) -> SmaraSessionService:
    return SmaraSessionService(memory)


def test_events_come_back_as_they_were_in_another_process(
    sessions: SmaraSessionService, open_again: Callable[..., Any]
) -> None:
    call = types.FunctionCall(id="1", name="edit", args={"path": "a.py"})
    answer = types.FunctionResponse(id="1", name="edit", response={"result": "done"})
    image = types.Blob(data=b"\x00\xffpng", mime_type="image/png")
    given = [
        event("Change it", state={"step": 1}),
        Event(
            author="bot",
            content=types.Content(role="model", parts=[types.Part(function_call=call)]),
        ),
        Event(
            author="bot",
            content=types.Content(role="user", parts=[types.Part(function_response=answer)]),
        ),
        Event(
            author="user", content=types.Content(role="user", parts=[types.Part(inline_data=image)])
        ),
        event("Done.", "bot"),
    ]

    async def act() -> Any:
        session = await sessions.create_session(**ANN, session_id="s")
        for each in given:
            await sessions.append_event(session, each)
        other = SmaraSessionService(open_again())
        return await other.get_session(**ANN, session_id="s")

    found = go(act())
    assert found.events == given
    assert found.state == {"step": 1}
    assert found.last_update_time == given[-1].timestamp


def test_what_was_said_is_read_into_a_thread(memory: Any, sessions: SmaraSessionService) -> None:
    async def act() -> None:
        session = await sessions.create_session(**ANN, session_id="s")
        await sessions.append_event(session, event("Where is the key?"))
        await sessions.append_event(session, event("Under the", "bot", partial=True))
        await sessions.append_event(session, event("Under the geranium.", "bot"))

    go(act())
    said = memory.messages.list(thread_id="google-adk:shop/ann/s")
    assert [(each.role, each.raw_content) for each in said] == [
        ("user", "Where is the key?"),
        ("assistant", "Under the geranium."),
    ]


def test_state_is_shared_by_app_and_user_and_temporary_state_is_not_kept(
    sessions: SmaraSessionService,
) -> None:
    async def act() -> list[dict[str, Any]]:
        state = {"own": 1, "app:theme": "dark", "user:name": "Ann", "temp:x": 1}
        session = await sessions.create_session(**ANN, session_id="a", state=state)
        change = {"own": 2, "app:theme": "light", "user:age": 40, "temp:y": 2}
        await sessions.append_event(session, event("Hi", state=change))
        assert session.state["temp:y"] == 2
        second = await sessions.create_session(**ANN, session_id="b")
        third = await sessions.create_session(**BOB, session_id="c")
        again = await sessions.get_session(**ANN, session_id="a")
        user = await sessions.get_user_state(**ANN)
        return [again.state, second.state, third.state, user, await sessions.get_user_state(**BOB)]

    own, second, third, user, nothing = go(act())
    assert own == {"own": 2, "app:theme": "light", "user:name": "Ann", "user:age": 40}
    assert second == {"app:theme": "light", "user:name": "Ann", "user:age": 40}
    assert third == {"app:theme": "light"}
    assert (user, nothing) == ({"name": "Ann", "age": 40}, {})


def test_a_writer_with_an_old_revision_is_refused(
    sessions: SmaraSessionService, open_again: Callable[..., Any]
) -> None:
    other = SmaraSessionService(open_again())

    async def act() -> Any:
        mine = await sessions.create_session(**ANN, session_id="s")
        theirs = await other.get_session(**ANN, session_id="s")
        await sessions.append_event(mine, event("One"))
        with pytest.raises(StaleSessionError):
            await other.append_event(theirs, event("Two"))
        await sessions.append_event(mine, event("Three"))
        return await other.get_session(**ANN, session_id="s")

    found = go(act())
    assert [each.content.parts[0].text for each in found.events] == ["One", "Three"]


def test_recent_events_can_be_asked_for(sessions: SmaraSessionService) -> None:
    async def act(**config: Any) -> list[str]:
        found = await sessions.get_session(**ANN, session_id="s", config=GetSessionConfig(**config))
        assert found is not None
        return [each.content.parts[0].text for each in found.events]  # type: ignore[union-attr]

    async def make() -> None:
        session = await sessions.create_session(**ANN, session_id="s")
        for number in range(5):
            await sessions.append_event(session, event(str(number), timestamp=float(number)))

    go(make())
    assert go(act(num_recent_events=2)) == ["3", "4"]
    assert go(act(num_recent_events=0)) == []
    assert go(act(after_timestamp=3.0)) == ["3", "4"]


def test_sessions_are_listed_and_deleted_with_what_was_said(
    memory: Any, sessions: SmaraSessionService
) -> None:
    async def act() -> None:
        for name, who in (("a", ANN), ("b/c", ANN), ("d", BOB)):
            session = await sessions.create_session(**who, session_id=name)
            await sessions.append_event(session, event(f"I am {name}"))
        with pytest.raises(AlreadyExistsError):
            await sessions.create_session(**ANN, session_id="a")
        listed = await sessions.list_sessions(app_name="shop")
        assert [(each.user_id, each.id, each.events) for each in listed.sessions] == [
            ("ann", "a", []),
            ("ann", "b/c", []),
            ("bob", "d", []),
        ]
        assert len((await sessions.list_sessions(**ANN)).sessions) == 2
        assert (await sessions.list_sessions(app_name="sho")).sessions == []
        gone = await sessions.get_session(**ANN, session_id="a")
        await sessions.delete_session(**ANN, session_id="a")
        await sessions.delete_session(**ANN, session_id="a")
        assert await sessions.get_session(**ANN, session_id="a") is None
        with pytest.raises(SessionNotFoundError):
            await sessions.append_event(gone, event("More"))

    go(act())
    assert "I am a" not in stored_words(memory)
    assert "I am b/c" in stored_words(memory)


def test_memory_finds_what_a_user_said_and_nothing_of_others(
    memory: Any, sessions: SmaraSessionService
) -> None:
    found = SmaraMemoryService(memory)

    async def act() -> Any:
        session = await sessions.create_session(**ANN, session_id="s")
        await sessions.append_event(session, event("The key lies under the geranium."))
        for _ in range(2):
            await found.add_session_to_memory(session)
        await found.add_events_to_memory(**ANN, events=session.events, session_id="s")
        ours = await found.search_memory(**ANN, query="geranium key")
        theirs = await found.search_memory(**BOB, query="geranium key")
        return ours.memories, theirs.memories

    (entry,), theirs = go(act())
    assert theirs == []
    assert entry.content.parts[0].text == "The key lies under the geranium."
    assert (entry.author, entry.timestamp[-6:]) == ("user", "+00:00")
    with pytest.raises(NotFoundError):
        go(found.delete_memory(**BOB, memory_id=entry.id))
    go(found.delete_memory(**ANN, memory_id=entry.id))
    assert "geranium" not in stored_words(memory)


def test_statements_of_an_agent_wait_for_review_and_belong_to_a_user(memory: Any) -> None:
    found = SmaraMemoryService(memory)
    text = "Ann prefers the window seat on every train."
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text=text)]))

    async def act() -> Any:
        await found.add_memory(**ANN, memories=[entry])
        ours = await found.search_memory(**ANN, query="window seat train")
        theirs = await found.search_memory(**BOB, query="window seat train")
        return ours.memories, theirs.memories

    ours, theirs = go(act())
    assert ([each.content.parts[0].text for each in ours], theirs) == ([text], [])
    (statement,) = memory.memories.to_review()
    assert (statement.content, statement.source) == (text, "agent_explicit")
    go(found.delete_memory(**ANN, memory_id=ours[0].id))
    assert list(memory.memories.list(state="all")) == []


def test_a_session_of_another_service_is_remembered_and_is_no_session_here(memory: Any) -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    async def act() -> Any:
        theirs = InMemorySessionService()
        session = await theirs.create_session(**ANN, session_id="s")
        await theirs.append_event(session, event("The key lies under the geranium."))
        await SmaraMemoryService(memory).add_session_to_memory(session)
        return await SmaraSessionService(memory).get_session(**ANN, session_id="s")

    assert go(act()) is None
    assert "geranium" in stored_words(memory)


def test_a_broken_store_breaks_no_search(memory: Any, caplog: pytest.LogCaptureFixture) -> None:
    found = SmaraMemoryService(memory)
    memory.close()
    with caplog.at_level(logging.WARNING, "smara"):
        assert go(found.search_memory(**ANN, query="x")).memories == []
    assert "adapter.failed" in caplog.text


def test_the_event_loop_never_touches_the_store(
    memory: Any, sessions: SmaraSessionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = watch_threads(memory, monkeypatch)

    async def act() -> None:
        session = await sessions.create_session(**ANN, session_id="s")
        await sessions.append_event(session, event("Hi"))
        await sessions.list_sessions(**ANN)
        await SmaraMemoryService(memory).search_memory(**ANN, query="Hi")
        await sessions.delete_session(**ANN, session_id="s")

    go(act())
    assert threads
    assert threading.get_ident() not in threads
