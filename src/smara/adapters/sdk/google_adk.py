"""Keep the sessions of Google's Agent Development Kit, and search in them.

`SmaraSessionService` stores events exactly as they are, with state; what was said in them is read
into a thread. `SmaraMemoryService` answers ``search_memory`` from the one search, within the app
and user that ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from smara.adapters.sdk.agent_session import fail_open, fail_open_async
from smara.adapters.sdk.live import delete_sessions
from smara.core import log
from smara.core.memory_block import without_memory_blocks
from smara.core.startup.record import dataclass
from smara.errors import ConflictError, MissingExtraError, NotFoundError, SmaraError
from smara.frameworks.models import NewEntry, SdkStream
from smara.frameworks.streams import Streams
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Part, Role, plain

try:
    from google.adk.errors._stale_session_error import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.base_session_service import (
        BaseSessionService,
        GetSessionConfig,
        ListSessionsResponse,
    )
    from google.adk.sessions.session import Session
    from google.genai import types
    from pydantic_core import to_jsonable_python
except ImportError as error:
    raise MissingExtraError(
        "The services need the Agent Development Kit. Install it with"
        " `pip install 'smara[google-adk]'`.",
        package="google-adk",
    ) from error

FRAMEWORK = "google-adk"
_APP, _USER, _TEMP = "app:", "user:", "temp:"
_STALE = "The session has been modified in storage since it was loaded. Load it again."
_MOST_FOUND = 10


@dataclass(frozen=True, slots=True)
class SessionName:
    """A session by its app, user and id."""

    app: str
    user: str
    id: str = ""

    @property
    def key(self) -> str:
        """Its name among the streams."""
        return "/".join(quote(each, safe="") for each in (self.app, self.user, self.id))

    @property
    def resource_id(self) -> str:
        """Whom its conversation belongs to."""
        return f"{FRAMEWORK}:{self.key.rpartition('/')[0]}"

    @property
    def thread(self) -> NewThread:
        """The conversation of it."""
        return NewThread(f"{FRAMEWORK}:{self.key}", self.resource_id)

    @classmethod
    def of(cls, stream: SdkStream) -> SessionName:
        """Return the name of a stored session."""
        return cls(*(unquote(each) for each in stream.key.split("/")))


def _streams(memory: Memory) -> Streams:
    return memory.frameworks.streams(FRAMEWORK, read_event)


class SmaraSessionService(BaseSessionService):
    """Sessions in a memory, for ``Runner(session_service=…)``.

    It is the record of the sessions, so trouble with the store is raised. Several processes may
    use one session; a writer that has not seen the newest revision is refused.
    """

    def __init__(self, memory: Memory, *, keeps_messages: bool = False) -> None:
        """Make the service.

        Args:
            memory: Where sessions are kept.
            keeps_messages: True to keep what was said when a session is deleted; by default it is
                erased for good, with a receipt.
        """
        self._memory = memory
        self._keeps_messages = keeps_messages

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session; ``app:`` and ``user:`` state is shared from then on."""
        own = (session_id or "").strip() or self._memory.internals.project.new_id()
        name = SessionName(app_name, user_id, own)
        return await asyncio.to_thread(self._create, name, state or {})

    def _create(self, name: SessionName, state: Mapping[str, Any]) -> Session:
        streams = _streams(self._memory)
        # One without a state was stored by the memory service, for another session service.
        before = streams.find(name.key)
        if before is not None and "state" in before.data:
            raise AlreadyExistsError(f"Session with id {name.id} already exists.")
        own = self._share(name, state)
        try:
            stream = streams.append(
                name.key,
                (),
                thread=name.thread,
                change=lambda data, *_: {**data, "state": own},
                revision=0 if before is None else before.revision,
            )
        except ConflictError:
            raise AlreadyExistsError(f"Session with id {name.id} already exists.") from None
        return self._session(stream, [])

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its events, or ``None``."""
        name = SessionName(app_name, user_id, session_id.strip())
        return await asyncio.to_thread(self._get, name, config or GetSessionConfig())

    def _get(self, name: SessionName, config: GetSessionConfig) -> Session | None:
        stream = self._find(name)
        if stream is None:
            return None
        entries = _streams(self._memory).entries(name.key, limit=config.num_recent_events)
        events = [Event.model_validate(entry.body) for entry in entries]
        if config.after_timestamp is not None:
            after = config.after_timestamp
            late = [at for at, event in enumerate(events) if event.timestamp < after]
            events = events[late[-1] + 1 :] if late else events
        return self._session(stream, events)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return sessions without events, the last changed one last."""

        def find() -> list[Session]:
            prefix = quote(app_name, safe="") + "/"
            if user_id is not None:
                prefix = SessionName(app_name, user_id).key
            found = [each for each in _streams(self._memory).list(prefix) if "state" in each.data]
            sessions = [self._session(stream, []) for stream in found]
            return sorted(sessions, key=lambda each: (each.last_update_time, each.user_id, each.id))

        return ListSessionsResponse(sessions=await asyncio.to_thread(find))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session, and its messages unless they are kept."""
        name = SessionName(app_name, user_id, session_id.strip())
        streams = _streams(self._memory)
        await asyncio.to_thread(
            delete_sessions,
            self._memory,
            streams,
            [name.key],
            keeps_messages=self._keeps_messages,
        )

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state that a user's sessions share, without prefix."""
        name = SessionName(app_name, user_id)
        return await asyncio.to_thread(self._shared, name, _USER)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event, unless it is partial; drop ``temp:`` state.

        Raises:
            StaleSessionError: If the session was changed by another writer since it was loaded.
            SessionNotFoundError: If the session was deleted.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await asyncio.to_thread(self._append, session, event)
        return self._commit_event_to_session(session, event)

    def _append(self, session: Session, event: Event) -> None:
        name = SessionName(session.app_name, session.user_id, session.id)
        if self._find(name) is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        marker = session._storage_update_marker
        entry = NewEntry(event.model_dump(mode="json", exclude_none=True), event.id)
        delta = event.actions.state_delta if event.actions else {}

        def change(data: Mapping[str, Any], *_: Any) -> dict[str, Any]:
            own = {key: value for key, value in _plain(delta).items() if _is_own(key)}
            return {**data, "state": {**data.get("state", {}), **own}, "at": event.timestamp}

        try:
            stream = _streams(self._memory).append(
                name.key,
                [entry],
                thread=name.thread,
                change=change,
                revision=None if marker is None else int(marker),
            )
        except ConflictError:
            raise StaleSessionError(_STALE) from None
        self._share(name, delta)
        session._storage_update_marker = str(stream.revision)
        session.last_update_time = event.timestamp
        fail_open("observe", lambda: self._memory.observations.look_after(stream.thread_id), None)

    def _find(self, name: SessionName) -> SdkStream | None:
        """Return a session's stream; one that only memory knows is none."""
        stream = _streams(self._memory).find(name.key)
        return stream if stream is not None and "state" in stream.data else None

    def _session(self, stream: SdkStream, events: list[Event]) -> Session:
        name = SessionName.of(stream)
        state = dict(stream.data["state"])
        for prefix in (_APP, _USER):
            state |= {f"{prefix}{key}": each for key, each in self._shared(name, prefix).items()}
        session = Session(
            id=name.id,
            app_name=name.app,
            user_id=name.user,
            state=state,
            events=events,
            last_update_time=stream.data.get("at", stream.updated_at / 1_000),
        )
        session._storage_update_marker = str(stream.revision)
        return session

    def _shared(self, name: SessionName, prefix: str) -> dict[str, Any]:
        """Return the state of an app or of a user."""
        item = self._memory.frameworks.items(FRAMEWORK).find(*_place(name, prefix))
        return dict(item.value) if item is not None else {}

    def _share(self, name: SessionName, delta: Mapping[str, Any]) -> dict[str, Any]:
        """Store the shared part of a state; return the session's own."""
        clean = _plain(delta)
        items = self._memory.frameworks.items(FRAMEWORK)
        for prefix in (_APP, _USER):
            new = {
                key.removeprefix(prefix): value
                for key, value in clean.items()
                if key.startswith(prefix)
            }
            if new:
                place = _place(name, prefix)
                with items.write() as batch:
                    item = batch.find(*place)
                    value = {**(item.value if item is not None else {}), **new}
                    batch.put(*place, items.prepare(value, fields=[]))
        return {key: value for key, value in clean.items() if _is_own(key)}


def _place(name: SessionName, prefix: str) -> tuple[tuple[str, ...], str]:
    app = quote(name.app, safe="")
    return (("state", app), "app") if prefix == _APP else (("state", app, "users"), name.user)


def _is_own(key: str) -> bool:
    return not key.startswith((_APP, _USER, _TEMP))


def _plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state as JSON has it; what JSON cannot write becomes text."""
    clean: dict[str, Any] = to_jsonable_python(dict(state), fallback=str)
    return clean


class SmaraMemoryService(BaseMemoryService):
    """The one search as ADK's memory, for ``Runner(memory_service=…)``.

    Trouble with the store never breaks an agent: nothing is found, and the log says so.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def add_session_to_memory(self, session: Session) -> None:
        """Store a session's events; each once, however often it is added."""
        name = SessionName(session.app_name, session.user_id, session.id)
        await fail_open_async("add", lambda: self._add(name, session.events), None)

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store some events of a session, each once."""
        name = SessionName(app_name, user_id, session_id or "memory")
        await fail_open_async("add", lambda: self._add(name, events), None)

    def _add(self, name: SessionName, events: Sequence[Event]) -> None:
        entries = [
            NewEntry(each.model_dump(mode="json", exclude_none=True), each.id)
            for each in events
            if not each.partial
        ]
        _streams(self._memory).append(name.key, entries, thread=name.thread)
        self._memory.observations.look_after(name.thread.id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember statements of an agent, for a person to review."""
        name = SessionName(app_name, user_id)

        def add() -> None:
            new_id = self._memory.internals.project.new_id
            for entry in memories:
                text = _words(entry.content)
                added = self._memory.memories.add(
                    text,
                    type=self._memory.memories.guess_type(text),
                    by="agent",
                    session_id=f"{name.resource_id}:{new_id()}",
                    source="agent_explicit",
                    tags=[name.resource_id],
                )
                if added.memory is None:
                    log.warning("adapter.refused", at=FRAMEWORK, why="; ".join(added.why))

        await fail_open_async("add_memory", add, None)

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Search the user's sessions and memories, best first."""
        name = SessionName(app_name, user_id)
        nothing: list[MemoryEntry] = []
        found = await fail_open_async("search", lambda: self._search(name, query), nothing)
        return SearchMemoryResponse(memories=found)

    def _search(self, name: SessionName, query: str) -> list[MemoryEntry]:
        answer = self._memory.search(query, _MOST_FOUND, resource_id=name.resource_id)
        statements = self._memory.search_memories(query, _MOST_FOUND, tags=[name.resource_id])
        hits: list[Any] = [*answer.hits, *statements.hits]
        hits.sort(key=lambda each: -each.score)
        return [_entry_of(each) for each in hits[:_MOST_FOUND]]

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Erase one thing that a search returned to the user.

        Raises:
            NotFoundError: If the user has nothing of that id.
        """
        name = SessionName(app_name, user_id)
        await asyncio.to_thread(self._delete, name, memory_id or "")

    def _delete(self, name: SessionName, memory_id: str) -> None:
        statement = self._memory.memories.find(memory_id) if memory_id else None
        if statement is not None and name.resource_id in statement.tags:
            self._memory.privacy.erase(memories=[statement.id])
            return
        try:
            message = self._memory.messages.get(memory_id)
        except SmaraError:
            message = None
        if message is None or message.resource_id != name.resource_id:
            raise NotFoundError(f"There is no memory {memory_id!r} of this user.", id=memory_id)
        self._memory.privacy.erase(messages=[message.id])


def _entry_of(hit: Any) -> MemoryEntry:
    """Return a hit of either search as ADK has it."""
    record = getattr(hit, "memory", hit)
    role = getattr(record, "role", None)
    content = types.Content(
        role="model" if role == "assistant" else "user", parts=[types.Part(text=record.content)]
    )
    at = datetime.fromtimestamp(record.created_at / 1_000, UTC)
    return MemoryEntry(
        content=content,
        id=record.id,
        author=role or "memory",
        timestamp=at.isoformat(timespec="seconds"),
        custom_metadata={"source": getattr(hit, "source", "memory"), "score": hit.score},
    )


def read_event(body: Mapping[str, Any]) -> NewMessage | None:
    """Read what was said in an event."""
    content = body.get("content") or {}
    parts = [part for each in content.get("parts") or () if (part := _part_of(each)) is not None]
    if not parts:
        return None
    is_person = body.get("author") == "user" and content.get("role") != "model"
    role: Role = "user" if is_person else "assistant"
    if any(part.type == "tool_result" for part in parts):
        role = "tool"
    at = body.get("timestamp")
    created_at = int(at * 1_000) if isinstance(at, int | float) else None
    return NewMessage(role, parts, str(body["id"]), created_at=created_at)


def _part_of(part: Mapping[str, Any]) -> Part | None:
    text = part.get("text")
    if isinstance(text, str) and text:
        clean = without_memory_blocks(text)
        return Part("reasoning" if part.get("thought") else "text", clean) if clean else None
    if call := part.get("function_call"):
        arguments = call.get("args")
        return Part("tool_call", name=call.get("name"), call_id=call.get("id"), arguments=arguments)
    if answer := part.get("function_response"):
        response = answer.get("response") or {}
        words = plain(response.get("result", response))
        return Part(
            "tool_result",
            without_memory_blocks(words),
            name=answer.get("name"),
            call_id=answer.get("id"),
            is_error="error" in response,
        )
    for name in ("inline_data", "file_data"):
        if data := part.get(name):
            media = str(data.get("mime_type") or "")
            kind = "image" if media.startswith("image/") else "file"
            return Part(kind, media_type=media, uri=data.get("file_uri"))  # type: ignore[arg-type]
    return None


def _words(content: types.Content) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text)
