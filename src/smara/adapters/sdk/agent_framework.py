"""Give agents of the Microsoft Agent Framework their memory: two context providers.

`SmaraContextProvider` brings what a session begins with, tools, and what is known around tool
calls. `SmaraHistoryProvider` keeps the messages, and tells old ones by what was observed of them.
What memory says is added under the provider's ``source_id``, or to a request alone: no history
stores it as said.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from smara.adapters.sdk.agent_session import AgentCall, AgentSession, fail_open_async
from smara.core.memory_block import without_memory_blocks
from smara.errors import MissingExtraError
from smara.frameworks.models import NewEntry
from smara.frameworks.streams import Streams
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Part, Role, plain
from smara.prompt.models import Context
from smara.prompt.shapes import OPENING
from smara.tools import Profile, Toolbox, ToolContext, description, schemas
from smara.tools.catalogue import EVERY_TOOL

try:
    from agent_framework import (
        AgentSession as FrameworkSession,
    )
    from agent_framework import (
        ChatContext,
        ChatMiddleware,
        Content,
        ContextProvider,
        FunctionInvocationContext,
        FunctionMiddleware,
        FunctionTool,
        HistoryProvider,
        Message,
        SessionContext,
    )
except ImportError as error:
    raise MissingExtraError(
        "The providers need the Agent Framework. Install it with"
        " `pip install 'smara[agent-framework]'`.",
        package="agent-framework-core",
    ) from error

FRAMEWORK = "agent-framework"
ANSWERED = "(an answer of memory; it is stored where it came from)"
_KEY = "smara_key"
_MOST_NOTES = 2_000


def thread_of(session_id: str | None) -> str:
    """Return the thread that holds the messages of a session."""
    return f"{FRAMEWORK}:{session_id or 'default'}"


class SmaraContextProvider(ContextProvider):
    """Memory's knowledge and tools for the runs of an agent.

    It stores the messages of a run as well, unless a `SmaraHistoryProvider` of the same agent does.
    """

    def __init__(
        self,
        memory: Memory,
        source_id: str = "smara",
        *,
        resource_id: str | None = None,
        profile: Profile | None = None,
        has_tools: bool = True,
        has_moments: bool = True,
        cwd: str = "",
    ) -> None:
        """Make the provider.

        Args:
            memory: The memory to tell from and to learn into.
            source_id: Its name among the providers of an agent.
            resource_id: Whom the sessions belong to; by default whom the settings name.
            profile: Which tools the agent gets; by default those of ``tool_profile``.
            has_tools: False to give it none.
            has_moments: False to tell nothing unasked; it is still learned from.
            cwd: The folder the agent works in.
        """
        super().__init__(source_id)
        self._memory = memory
        self._resource_id = resource_id
        self._has_moments = has_moments
        self._cwd = cwd
        self._notes: dict[str, str] = {}
        profile = profile or memory.settings.tool_profile
        self._schemas = schemas("flat", profile) if has_tools else {}
        self._toolbox = Toolbox(memory, ToolContext(resource_id=resource_id), profile)

    async def before_run(
        self,
        *,
        agent: Any,
        session: FrameworkSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add instructions, tools, and what is known of the person's message."""
        run = self._run(context, session)
        if self._has_moments:
            if pack := await fail_open_async("start", run.pack, ""):
                context.extend_instructions(self.source_id, pack)
            text = _words_of(context.input_messages)
            is_first = not state.get("has_spoken")
            state["has_spoken"] = True
            note = await fail_open_async("prompt", lambda: run.prompt(text, is_first=is_first), "")
            if note:
                context.extend_messages(self, [Message("user", [note])])
        context.extend_tools(self.source_id, self._tools(run))
        watch = _ToolWatch(run, self._has_moments, self._notes)
        context.extend_middleware(self.source_id, [watch, _NoteWriter(self._notes)])

    async def after_run(
        self,
        *,
        agent: Any,
        session: FrameworkSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Learn from the run; store its messages if needed."""
        run = self._run(context, session)
        answers = list(context.response.messages) if context.response else []
        providers = getattr(agent, "context_providers", None) or ()
        if not any(isinstance(each, SmaraHistoryProvider) for each in providers):
            messages = [*context.input_messages, *answers]
            key = run.session_id.removeprefix(f"{FRAMEWORK}:")
            await fail_open_async(
                "store", lambda: save(self._memory, key, messages, self._resource_id), None
            )
        await fail_open_async("end", lambda: run.end_turn(_words_of(answers, "assistant")), None)

    def _run(self, context: SessionContext, session: FrameworkSession) -> AgentSession:
        name = context.session_id or session.session_id
        return AgentSession(self._memory, FRAMEWORK, thread_of(name), self._cwd)

    def _tools(self, run: AgentSession) -> list[FunctionTool]:
        caller = ToolContext(run.session_id, run.session_id)

        def tool(name: str, schema: dict[str, Any]) -> FunctionTool:
            async def call(**arguments: Any) -> str:
                given = {key: value for key, value in arguments.items() if value is not None}
                text = await fail_open_async(
                    name, lambda: self._toolbox.call(name, given, caller).text, ""
                )
                return text or "Memory cannot be reached. Go on without it."

            return FunctionTool(
                name=name,
                description=description(name),
                func=call,
                input_model=schema,
                approval_mode="never_require",
            )

        return [tool(name, schema) for name, schema in self._schemas.items()]


class _ToolWatch(FunctionMiddleware):
    """Learns from tool calls, and notes what is known about them."""

    def __init__(self, run: AgentSession, has_moments: bool, notes: dict[str, str]) -> None:
        self._run = run
        self._has_moments = has_moments
        self._notes = notes

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        name = context.function.name
        if name in EVERY_TOOL:
            await call_next()
            return
        given = context.arguments
        arguments = given if isinstance(given, Mapping) else given.model_dump()
        call = AgentCall(str(context.metadata.get("call_id") or ""), name, dict(arguments))
        if self._has_moments:
            before = await fail_open_async("before", lambda: self._run.before_tool(call), "")
            self._note(call.id, before)
        try:
            await call_next()
        except Exception as error:
            await self._learn(call, "", f"{type(error).__name__}: {error}")
            raise
        await self._learn(call, _text_of(context.result), None)

    async def _learn(self, call: AgentCall, output: str, error: str | None) -> None:
        after = await fail_open_async(
            "after", lambda: self._run.after_tool(call, output, error), ""
        )
        if self._has_moments:
            self._note(call.id, after)

    def _note(self, call_id: str, text: str) -> None:
        if text and call_id:
            before = self._notes.get(call_id)
            self._notes[call_id] = f"{before}\n\n{text}" if before else text
            while len(self._notes) > _MOST_NOTES:
                del self._notes[next(iter(self._notes))]


class _NoteWriter(ChatMiddleware):
    """Writes notes behind the results of calls, in the request alone."""

    def __init__(self, notes: Mapping[str, str]) -> None:
        self._notes = notes

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        context.messages = [self._noted(each) for each in context.messages]
        await call_next()

    def _noted(self, message: Message) -> Message:
        if not any(each.call_id in self._notes for each in message.contents):
            return message
        contents = [self._with_note(each) for each in message.contents]
        return Message(
            message.role,
            contents,
            author_name=message.author_name,
            message_id=message.message_id,
            additional_properties=message.additional_properties,
        )

    def _with_note(self, content: Content) -> Content:
        note = self._notes.get(content.call_id or "")
        if note is None or content.type != "function_result":
            return content
        text = f"{_text_of(content.result)}\n\n{note}"
        result = Content.from_function_result(call_id=str(content.call_id), result=text)
        result.id = content.id
        return result


class SmaraHistoryProvider(HistoryProvider):
    """The messages of sessions, with observations in place of old ones."""

    def __init__(
        self,
        memory: Memory,
        source_id: str = "smara_history",
        *,
        resource_id: str | None = None,
        is_condensed: bool = True,
        **given: Any,
    ) -> None:
        """Make the provider.

        Args:
            memory: Where the messages are stored.
            source_id: Its name among the providers of an agent.
            resource_id: Whom the sessions belong to; by default whom the settings name.
            is_condensed: False to load every message as it was.
            **given: What :class:`HistoryProvider` takes.
        """
        super().__init__(source_id, **given)
        self._memory = memory
        self._resource_id = resource_id
        self._is_condensed = is_condensed

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return every message of a session, as it was but for secrets."""
        return await fail_open_async("history", lambda: load(self._memory, session_id), [])

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store messages; they are observed, searched and learned from."""
        await fail_open_async(
            "store", lambda: save(self._memory, session_id, messages, self._resource_id), None
        )

    async def before_run(
        self,
        *,
        agent: Any,
        session: FrameworkSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Load the messages that no observation tells, and the observations."""
        await super().before_run(agent=agent, session=session, context=context, state=state)
        if not self._is_condensed:
            return
        thread_id = thread_of(context.session_id)
        nothing: tuple[Context | None, str | None] = (None, None)
        view, first = await fail_open_async("context", lambda: self._look(thread_id), nothing)
        if view is None:
            return
        if view.system:
            context.extend_instructions(self.source_id, view.system)
        loaded = context.context_messages.get(self.source_id, [])
        # With observations and no message to show, all of them are told.
        is_told = first is None and bool(view.receipt.observation_ids)
        start = len(loaded) if is_told else _start(loaded, first)
        if start > 0:
            note = next(iter(view.messages), None)
            text = note.content if note is not None and note.source == "memory" else OPENING
            loaded[:start] = [Message("user", [text])]
        if view.reminder:
            context.extend_messages(self, [Message("user", [view.reminder])])

    def _look(self, thread_id: str) -> tuple[Context | None, str | None]:
        view = self._memory.context.process_input(thread_id, resource_id=self._resource_id)
        shown = [each.message_id for each in view.messages if each.message_id]
        return view, self._memory.messages.get(shown[0]).client_id if shown else None


def _start(messages: Sequence[Message], first: str | None) -> int:
    """Return the place of the oldest message to show; no call is parted from its result."""
    keys = [each.additional_properties.get(_KEY) for each in messages]
    start = keys.index(first) if first in keys else 0
    while start > 0 and messages[start].role == "tool":
        start -= 1
    return start


def _streams(memory: Memory) -> Streams:
    return memory.frameworks.streams(FRAMEWORK, read_message)


def load(memory: Memory, session_id: str | None) -> list[Message]:
    """Return the stored messages of a session."""
    found = []
    for entry in _streams(memory).entries(session_id or "default"):
        message = Message.from_dict(entry.body["message"])
        message.additional_properties[_KEY] = entry.body["key"]
        found.append(message)
    return found


def save(
    memory: Memory, session_id: str | None, messages: Sequence[Message], resource_id: str | None
) -> None:
    """Store messages with the names of their tools."""
    names = {
        str(each.call_id): str(each.name)
        for message in messages
        for each in message.contents
        if each.type == "function_call"
    }
    entries = []
    for message in messages:
        key = memory.internals.project.new_id()
        dump = json.loads(json.dumps(message.to_dict(), default=str))
        calls = [str(each.call_id) for each in message.contents if each.call_id]
        tools = {call: names[call] for call in calls if call in names}
        entries.append(NewEntry({"key": key, "message": dump, "tools": tools}, key))
    thread = NewThread(thread_of(session_id), resource_id)
    _streams(memory).append(session_id or "default", entries, thread=thread)
    memory.observations.look_after(thread.id)


def read_message(body: Mapping[str, Any]) -> NewMessage | None:
    """Read a stored message; system messages are the program's."""
    message = body["message"]
    role = message["role"]
    parts = [
        part
        for each in message.get("contents", ())
        if (part := _part_of(each, body.get("tools", {}))) is not None
    ]
    if role == "system" or not parts:
        return None
    if any(part.type == "tool_result" for part in parts):
        role = "tool"
    speaker: Role = role if role in ("user", "assistant", "tool") else "assistant"
    return NewMessage(speaker, parts, str(body["key"]))


def _part_of(content: Mapping[str, Any], tools: Mapping[str, str]) -> Part | None:
    kind, call_id = content.get("type"), content.get("call_id")
    if kind == "text":
        text = without_memory_blocks(str(content.get("text") or ""))
        return Part("text", text) if text else None
    if kind == "text_reasoning":
        return Part("reasoning", str(content["text"])) if content.get("text") else None
    if kind == "function_call":
        arguments = content.get("arguments")
        return Part("tool_call", name=content.get("name"), call_id=call_id, arguments=arguments)
    if kind == "function_result":
        name = tools.get(str(call_id))
        text = ANSWERED if name in EVERY_TOOL else without_memory_blocks(_text_of(content))
        is_error = bool(content.get("exception"))
        return Part("tool_result", text, name=name, call_id=call_id, is_error=is_error)
    if kind in ("uri", "data", "hosted_file"):
        media = str(content.get("media_type") or "")
        uri = str(content.get("uri") or content.get("file_id") or "")
        named = uri if not uri.startswith("data:") else None
        return Part("image" if media.startswith("image/") else "file", media_type=media, uri=named)
    return None


def _text_of(result: Any) -> str:
    """Return the text of a tool's result, however it is wrapped."""
    if isinstance(result, Mapping):
        return _text_of(result.get("result", result.get("text", "")))
    if isinstance(result, Content):
        return _text_of(result.text if result.text is not None else result.result)
    if isinstance(result, Sequence) and not isinstance(result, str):
        return "\n".join(_text_of(each) for each in result)
    return "" if result is None else plain(result)


def _words_of(messages: Sequence[Message], role: str = "user") -> str:
    return "\n".join(each.text for each in messages if each.role == role and each.text)
