"""Give a pydantic-ai agent its memory, as one capability.

``Agent(model, capabilities=[SmaraMemory(memory)])``. What memory says goes into requests alone and
never into the message history, so nothing of it is stored again as said: into the instructions
what the session begins with and what was observed, into the results of tools what is known about
the call. Observed messages are left out of requests; the history of the run stays whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from smara.adapters.sdk.agent_session import AgentCall, AgentSession, fail_open, fail_open_async
from smara.core.memory_block import without_memory_blocks
from smara.core.startup.record import dataclass, field, replace
from smara.errors import InvalidInputError, MissingExtraError
from smara.frameworks.models import NewEntry
from smara.frameworks.streams import Streams
from smara.memory import Memory, open_memory
from smara.messages.models import NewMessage, NewThread, Part, Role, plain
from smara.prompt.models import Context
from smara.prompt.shapes import OPENING
from smara.tools import Profile, Toolbox, ToolContext, description, schemas
from smara.tools.catalogue import EVERY_TOOL

try:
    from pydantic_ai import Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailedError, ToolRetryError
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        SystemPromptPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import RunContext, ToolDefinition
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as error:
    raise MissingExtraError(
        "The capability needs pydantic-ai. Install it with `pip install 'smara[pydantic-ai]'`.",
        package="pydantic-ai",
    ) from error

FRAMEWORK = "pydantic-ai"
ANSWERED = "(an answer of memory; it is stored where it came from)"
_MOST_NOTES = 2_000


@dataclass
class _AgentRun:
    """One run of an agent: what is stored of it, and what it was told."""

    session: AgentSession
    key: str
    """The conversation's name."""
    order: dict[str, int] = field(default_factory=dict)
    """The stored messages by key, with their places."""
    earlier: list[tuple[str, ModelMessage]] = field(default_factory=list)
    """Stored messages of earlier runs."""
    keys: dict[int, tuple[ModelMessage, str]] = field(default_factory=dict)
    context: Context | None = None
    first_shown: int = 0
    """The place of the oldest stored message that is not told by observations."""
    pack: str | None = None
    is_opened: bool = False
    messages: list[ModelMessage] = field(default_factory=list)
    """The messages as a tool has seen them: a run that fails in it ends with these."""


@dataclass
class SmaraMemory(AbstractCapability[Any]):
    """Memory for an agent: instructions, tools, moments around tools, history.

    A conversation is known by the run's ``conversation_id``, or by ``conversation``. One that is
    continued without ``message_history`` goes on where it was left. Trouble with the store never
    breaks a run: it goes on without memory, and the log says so.
    """

    memory: Memory
    conversation: str | None = None
    """The conversation of all runs; by default each run's own."""
    resource_id: str | None = None
    """Whom conversations belong to; by default whom the settings name."""
    profile: Profile | None = None
    """Which tools the agent gets; by default those of the setting ``tool_profile``."""
    has_tools: bool = True
    has_moments: bool = True
    """False to tell nothing unasked; what the agent does is still learned from."""
    has_history: bool = True
    """False to send the given messages as they are."""
    cwd: str = ""
    """The folder the agent works in."""
    _notes: dict[str, str] = field(default_factory=dict, repr=False)
    """What was told about calls and messages, shown with them in every later request."""
    _run: _AgentRun | None = field(default=None, repr=False)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return the name by which a specification file asks for it."""
        return "SmaraMemory"

    @classmethod
    def from_spec(cls, *args: Any, **kwargs: Any) -> SmaraMemory:
        """Open a memory and make the capability, as a specification file says.

        Args:
            *args: The store, at most.
            **kwargs: ``db``, ``project``, and the fields of this class but for ``memory``.
        """
        db, project = kwargs.pop("db", None), kwargs.pop("project", None)
        if len(args) > 1 or (args and db is not None) or "memory" in kwargs:
            raise InvalidInputError(
                "SmaraMemory takes one store. Write `db: memory.db` in the specification."
            )
        return cls(open_memory(args[0] if args else db, project=project), **kwargs)

    async def for_run(self, ctx: RunContext[Any]) -> SmaraMemory:
        """Return this capability with the state of one run."""
        name = self.conversation or ctx.conversation_id or ctx.run_id or "run"
        session = AgentSession(self.memory, FRAMEWORK, f"{FRAMEWORK}:{name}", self.cwd)
        run = _AgentRun(session, name)
        if self.has_history:
            nothing = (run.order, run.earlier)
            stored = await fail_open_async("history", lambda: self._stored(name), nothing)
            run.order, run.earlier = stored
        return replace(self, _run=run)

    # what the agent gets

    def get_instructions(self) -> Callable[[RunContext[Any]], Awaitable[str | None]]:
        """Return the function that writes the instructions of each request."""
        return self._instruct

    async def _instruct(self, ctx: RunContext[Any]) -> str | None:
        run = self._run
        if run is None:  # asked for outside of a run
            return None

        def build() -> str:
            if run.pack is None:
                run.pack = run.session.pack() if self.has_moments else ""
            if self.has_history:
                self._look(run, ctx.model.model_name)
            system = run.context.system if run.context else ""
            return "\n\n".join(filter(None, (run.pack, system)))

        return await fail_open_async("instructions", build, "") or None

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the agent tools of memory."""
        if not self.has_tools:
            return None
        profile = self.profile or self.memory.settings.tool_profile
        toolbox = Toolbox(self.memory, ToolContext(resource_id=self.resource_id), profile)

        def tool(name: str, schema: dict[str, Any]) -> Tool[Any]:
            async def call(**arguments: Any) -> str:
                session_id = self._run.session.session_id if self._run else None
                caller = ToolContext(session_id, session_id)
                result = await fail_open_async(
                    name, lambda: toolbox.call(name, arguments, caller).text, ""
                )
                return result or "Memory cannot be reached. Go on without it."

            return Tool.from_schema(call, name, description(name), schema)

        found = [tool(name, schema) for name, schema in schemas("flat", profile).items()]
        return FunctionToolset(found, id="smara")

    # around tools

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        """Look up what is known about a call, told with its result."""
        run = self._run
        if run is not None:
            run.messages = ctx.messages
        if run is not None and self.has_moments and call.tool_name not in EVERY_TOOL:
            made = _call_of(call, args)
            text = await fail_open_async("before", lambda: run.session.before_tool(made), "")
            self._note(call.tool_call_id, text)
        return args

    async def after_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        result: Any,
    ) -> Any:
        """Learn from a result, and look up what it brings up."""
        await self._learn(call, args, output=getattr(result, "return_value", result))
        return result

    async def on_tool_execute_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        error: Exception,
    ) -> Any:
        """Learn from a failure; the error goes on its way."""
        await self._learn(call, args, error=f"{type(error).__name__}: {error}")
        raise error

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: Any,
        handler: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        """Learn from a failure that a tool reports to the model."""
        try:
            return await handler(args)
        except (ToolRetryError, ToolFailedError) as error:
            part = getattr(error, "tool_retry", None) or getattr(error, "tool_failed", None)
            await self._learn(call, args, error=plain(getattr(part, "content", str(error))))
            raise

    async def _learn(
        self, call: ToolCallPart, args: Any, output: Any = "", error: str | None = None
    ) -> None:
        run = self._run
        if run is None or call.tool_name in EVERY_TOOL:
            return
        made = _call_of(call, args)
        text = await fail_open_async(
            "after", lambda: run.session.after_tool(made, output, error), ""
        )
        if self.has_moments:
            self._note(call.tool_call_id, text)

    # around the model

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Store new messages; leave observed ones out of the request."""
        run = self._run
        if run is None:
            return request_context
        given = list(request_context.messages)

        def build() -> list[ModelMessage]:
            fail_open("store", lambda: self._store(run, ctx.messages), None)
            if self.has_moments and not run.is_opened:
                self._open(run, given)
            return self._shown(run, given)

        request_context.messages = await fail_open_async("request", build, given)
        return request_context

    async def after_run(
        self, ctx: RunContext[Any], *, result: AgentRunResult[Any]
    ) -> AgentRunResult[Any]:
        """Store the rest of the run."""
        await self._end(ctx, result.all_messages(), plain_output(result.output), None)
        return result

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> Any:
        """Store the messages of a failed run; the error goes on."""
        messages = max(ctx.messages, self._run.messages if self._run else [], key=len)
        await self._end(ctx, messages, "", f"{type(error).__name__}: {error}")
        raise error

    async def _end(
        self, ctx: RunContext[Any], messages: Sequence[ModelMessage], text: str, error: str | None
    ) -> None:
        run = self._run
        if run is None:
            return

        def end() -> None:
            fail_open("store", lambda: self._store(run, messages), None)
            run.session.end_turn(text, error=error, key=ctx.run_id or "")
            self.memory.observations.look_after(run.session.session_id)

        await fail_open_async("end", end, None)

    # history

    async def history(self, conversation: str) -> list[ModelMessage]:
        """Return the messages of a conversation, to be given as ``message_history``.

        They are as they were, but for the instructions, which every run writes itself, and for
        secrets, which were redacted before they were stored.
        """
        found = await asyncio.to_thread(self._stored, conversation)
        return [message for _, message in found[1]]

    def _streams(self) -> Streams:
        return self.memory.frameworks.streams(FRAMEWORK, read_message)

    def _stored(self, key: str) -> tuple[dict[str, int], list[tuple[str, ModelMessage]]]:
        bodies = [each.body for each in self._streams().entries(key)]
        messages = ModelMessagesTypeAdapter.validate_python([each["message"] for each in bodies])
        keys = [str(each["key"]) for each in bodies]
        order = {each: place for place, each in enumerate(keys)}
        return order, list(zip(keys, messages, strict=True))

    def _store(self, run: _AgentRun, messages: Sequence[ModelMessage]) -> None:
        """Append the messages that are not stored yet."""
        new: list[NewEntry] = []
        for message in messages:
            key = _key_of(run, message)
            if key not in run.order:
                (dump,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
                # The instructions hold what memory says; every run writes its own.
                dump.pop("instructions", None)
                new.append(NewEntry({"key": key, "message": dump}, key))
        if new:
            thread = NewThread(run.session.session_id, self.resource_id)
            self._streams().append(run.key, new, thread=thread)
            for entry in new:
                run.order[str(entry.key)] = len(run.order)

    def _look(self, run: _AgentRun, model: str) -> None:
        """Build the context of the next request."""
        context = self.memory.context.process_input(
            run.session.session_id, model=model, resource_id=self.resource_id
        )
        shown = [each.message_id for each in context.messages if each.message_id]
        first = self.memory.messages.get(shown[0]).client_id if shown else None
        # With observations and no message to show, all that is stored is told.
        all_told = len(run.order) if not shown and context.receipt.observation_ids else 0
        run.first_shown = run.order.get(first or "", all_told)
        run.context = context

    def _open(self, run: _AgentRun, given: Sequence[ModelMessage]) -> None:
        """Tell the session of the person's message."""
        run.is_opened = True
        for message in reversed(given):
            text = _prompt_of(message)
            if text:
                key = _key_of(run, message)
                is_first = not run.earlier and message is next(
                    (each for each in given if _prompt_of(each)), None
                )
                self._note(key, run.session.prompt(text, is_first=is_first, key=key))
                return

    def _note(self, key: str, text: str) -> None:
        if text:
            before = self._notes.get(key)
            self._notes[key] = f"{before}\n\n{text}" if before else text
            while len(self._notes) > _MOST_NOTES:
                del self._notes[next(iter(self._notes))]

    def _shown(self, run: _AgentRun, given: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Return the messages of a request: what was not observed, with notes."""
        keys = [_key_of(run, each) for each in given]
        earlier = [_without_system(each) for key, each in run.earlier if key not in set(keys)]
        every = [*earlier, *given] if self.has_history else list(given)
        start = self._start(run, [*(key for key, _ in run.earlier if key not in set(keys)), *keys])
        while 0 < start < len(every) and _answers_calls(every[start]):
            start -= 1
        shown = [self._noted(run, each) for each in every[start:]]
        prompts: list[ModelRequestPart] = [
            part
            for each in given[: max(0, start - len(earlier))]
            if isinstance(each, ModelRequest)
            for part in each.parts
            if isinstance(part, SystemPromptPart)
        ]
        if start > 0 or (shown and isinstance(shown[0], ModelResponse)):
            first = run.context.messages[0] if run.context and run.context.messages else None
            is_note = first is not None and first.source == "memory"
            opening = first.content if first is not None and is_note else OPENING
            shown.insert(0, ModelRequest([*prompts, UserPromptPart(opening)]))
        reminder = run.context.reminder if run.context and self.has_history else ""
        if reminder and isinstance(last := shown[-1], ModelRequest):
            shown[-1] = replace(last, parts=_with_note(last.parts, len(last.parts) - 1, reminder))
        return shown

    def _start(self, run: _AgentRun, keys: Sequence[str]) -> int:
        """Return the place of the oldest message that observations do not tell."""
        if not self.has_history:
            return 0
        first = run.first_shown
        return next(
            (at for at, key in enumerate(keys) if run.order.get(key, first) >= first), len(keys)
        )

    def _noted(self, run: _AgentRun, message: ModelMessage) -> ModelMessage:
        """Return a message with what was told about it and its calls."""
        if not isinstance(message, ModelRequest):
            return message
        parts = list(message.parts)
        for at in reversed(range(len(parts))):
            part = parts[at]
            note = self._notes.get(part.tool_call_id) if isinstance(part, ToolReturnPart) else None
            if note:
                parts = _with_note(parts, at, note)
        opening = self._notes.get(_key_of(run, message))
        if opening:
            parts = _with_note(parts, len(parts) - 1, opening)
        return replace(message, parts=parts) if parts != list(message.parts) else message


def _call_of(call: ToolCallPart, args: Any) -> AgentCall:
    return AgentCall(call.tool_call_id, call.tool_name, args if isinstance(args, Mapping) else {})


def plain_output(output: Any) -> str:
    """Return an agent's output as text."""
    dump = getattr(output, "model_dump", None)
    return plain(dump(mode="json") if callable(dump) else output)


def _with_note(parts: Sequence[ModelRequestPart], at: int, note: str) -> list[ModelRequestPart]:
    """Return parts with a note at one of them: within a tool's text, otherwise behind it."""
    part = parts[at]
    found = list(parts)
    if isinstance(part, ToolReturnPart) and isinstance(part.content, str):
        text: Any = f"{part.content}\n\n{note}"
        found[at] = replace(part, content=text)
    else:
        found.insert(at + 1, UserPromptPart(note))
    return found


def _without_system(message: ModelMessage) -> ModelMessage:
    """Return a stored message without the system prompts, which the run writes again."""
    if isinstance(message, ModelRequest):
        parts = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
        return replace(message, parts=parts, instructions=None)
    return message


def _answers_calls(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(
        getattr(part, "tool_call_id", None) for part in message.parts
    )


def _prompt_of(message: ModelMessage) -> str:
    """Return what a person wrote in a message; a tool's further words are none of that."""
    if not isinstance(message, ModelRequest) or _answers_calls(message):
        return ""
    texts = [_text_of(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
    return "\n".join(filter(None, texts))


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (each if isinstance(each, str) else getattr(each, "content", "") for each in content)
    return "\n".join(each for each in texts if isinstance(each, str) and each)


def _key_of(run: _AgentRun, message: ModelMessage) -> str:
    """Return what names a message: the same whenever it is given again."""
    entry = run.keys.get(id(message))
    if entry is None:
        (dump,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
        facts = [dump.get(name) for name in ("kind", "run_id", "timestamp", "parts")]
        text = json.dumps(facts, sort_keys=True, ensure_ascii=False, default=str)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        entry = run.keys[id(message)] = (message, digest)
    return entry[1]


def read_message(body: Mapping[str, Any]) -> NewMessage | None:
    """Read what was said in a stored message of pydantic-ai.

    System prompts and requests to try again are the program's own words, and are left out. Words
    beside the results of tools come from the tools.
    """
    message = body["message"]
    found = [part for each in message["parts"] for part in _parts_of(each)]
    role: Role = "assistant" if message["kind"] == "response" else "user"
    if role == "user" and any(part.type == "tool_result" for part in found):
        role = "tool"
    if not found:
        return None
    stamps = [message.get("timestamp"), *(each.get("timestamp") for each in message["parts"])]
    stamp = next((each for each in stamps if isinstance(each, str)), None)
    at = None if stamp is None else int(datetime.fromisoformat(stamp).timestamp() * 1_000)
    return NewMessage(role, found, str(body["key"]), created_at=at)


def _parts_of(part: Mapping[str, Any]) -> list[Part]:
    kind, content = part["part_kind"], part.get("content")
    name, call_id = part.get("tool_name"), part.get("tool_call_id")
    if kind in ("tool-return", "builtin-tool-return") or (kind == "retry-prompt" and name):
        text = ANSWERED if name in EVERY_TOOL else without_memory_blocks(plain(content))
        is_error = kind == "retry-prompt" or part.get("outcome", "success") != "success"
        return [Part("tool_result", text, name=name, call_id=call_id, is_error=is_error)]
    if kind in ("tool-call", "builtin-tool-call"):
        return [Part("tool_call", name=name, call_id=call_id, arguments=part.get("args"))]
    if kind == "thinking":
        return [Part("reasoning", str(content))] if content else []
    if kind in ("text", "user-prompt", "compaction", "speech", "file"):
        pieces = content if isinstance(content, list) else [content or part.get("transcript")]
        return [found for piece in pieces if (found := _piece(piece)) is not None]
    return []


def _piece(piece: Any) -> Part | None:
    """Return a piece of content: words, or what stands for a file."""
    if isinstance(piece, str):
        text = without_memory_blocks(piece)
        return Part("text", text) if text else None
    if not isinstance(piece, Mapping):
        return None
    if isinstance(piece.get("content"), str):
        return Part("text", without_memory_blocks(piece["content"]))
    media = piece.get("media_type")
    kind = str(piece.get("kind", ""))
    if kind == "cache-point":
        return None
    is_image = kind == "image-url" or str(media).startswith("image/")
    uri = piece.get("url")
    return Part(
        "image" if is_image else "file",
        name=piece.get("identifier"),
        media_type=media,
        uri=uri if isinstance(uri, str) else None,
    )
