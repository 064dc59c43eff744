"""Keep the sessions of the Claude Agent SDK in memory: a ``SessionStore``.

Entries are lines of Claude Code's transcripts. They come back as they were given, after secrets
were redacted, and are read by the reader of those transcripts: a live session is stored, searched
and learned from under the same ids as its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from smara.adapters.lines import JsonLine, milliseconds, text_in
from smara.adapters.readers.claude_code import ClaudeTranscript
from smara.adapters.records import UUID, Record, bounded_id
from smara.adapters.sdk.live import LiveReader, delete_sessions, line_of
from smara.aio import AsyncMemory
from smara.errors import InvalidInputError, MissingExtraError
from smara.frameworks.models import NewEntry, SdkEntry, SdkStream
from smara.memory import Memory

try:
    import anyio.to_thread
    from claude_agent_sdk import HookMatcher, fold_session_summary
except ImportError as error:
    raise MissingExtraError(
        "The Claude Agent SDK is not installed. Install it with: pip install 'smara[claude-agent]'",
        package="claude-agent-sdk",
    ) from error

if TYPE_CHECKING:
    from claude_agent_sdk import (
        HookContext,
        HookInput,
        HookJSONOutput,
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )
    from claude_agent_sdk.types import HookEvent

FRAMEWORK = "claude-agent"
_SUMMARY, _FIELDS = "summary", "fields"
_Value = TypeVar("_Value")


class SmaraSessionStore:
    """A session store for ``ClaudeAgentOptions(session_store=…)``.

    Safe for several processes that write one session. An entry whose ``uuid`` is there is not
    stored again. Every call runs in a worker thread.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        is_redacted: bool = True,
        keeps_messages: bool = False,
        resource_id: str | None = None,
    ) -> None:
        """Open the sessions of a project.

        Args:
            memory: Where they are kept. Its project is the wall; a ``project_key`` of the SDK only
                sorts the sessions in it.
            is_redacted: False to store entries with the secrets in them, so that a session goes on
                with every byte. What is searched and learned from is always redacted.
            keeps_messages: True to keep what was said when the SDK deletes a session. By default
                its conversations are erased with it, with a receipt.
            resource_id: Whom the conversations belong to; by default whom the settings name.
        """
        self._memory = Memory(memory.internals)
        self._keeps_messages = keeps_messages
        self._resource_id = resource_id
        reader = LiveReader(self._memory, lambda each: _SessionSource(_key(each.key)), resource_id)
        self._streams = self._memory.frameworks.streams(FRAMEWORK, reader, is_redacted=is_redacted)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append entries, and read what was said in them."""
        if entries:
            await _in_thread(self._append, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a session, or ``None`` if it has none."""
        entries = await _in_thread(self._streams.entries, _name(key))
        return [each.body for each in entries] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project key, without those of sub-agents."""
        return [
            {"session_id": session_id, "mtime": stream.updated_at}
            for session_id, stream in await _in_thread(self._sessions, project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of the sessions of a project key."""
        return await _in_thread(self._summaries, project_key)

    async def delete(self, key: SessionKey) -> None:
        """Delete a session with its sub-agents, or one sub-agent."""
        await _in_thread(self._delete, key)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the paths of the sub-agents of a session."""
        prefix = f"{_name(key)}/"
        streams = await _in_thread(self._streams.list, prefix)
        return [stream.key.removeprefix(prefix) for stream in streams]

    def _append(self, key: SessionKey, entries: Sequence[SessionStoreEntry]) -> None:
        def fold(data: Mapping[str, Any], fresh: Sequence[SdkEntry]) -> Mapping[str, Any]:
            if data and not _is_whole(data):
                return data
            before: SessionSummaryEntry | None = None
            if data:
                before = {"session_id": key["session_id"], "mtime": 0, "data": data[_SUMMARY]}
            folded = fold_session_summary(before, key, [each.body for each in fresh])["data"]
            return {_SUMMARY: folded, _FIELDS: sorted(folded)}

        times = (milliseconds(each.get("timestamp")) for each in entries)
        thread = replace(
            _SessionSource(key).thread,
            resource_id=self._resource_id,
            created_at=next(filter(None, times), None),
        )
        self._streams.append(
            _name(key),
            [NewEntry(each, text_in(each.get("uuid")) or None) for each in entries],
            thread=thread,
            change=None if "subpath" in key else fold,
        )

    def _sessions(self, project_key: str) -> list[tuple[str, SdkStream]]:
        prefix = f"{_escaped(project_key)}/"
        named = [(each.key.removeprefix(prefix), each) for each in self._streams.list(prefix)]
        return [(_unescaped(name), each) for name, each in named if "/" not in name]

    def _summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        summaries: list[SessionSummaryEntry] = []
        for session_id, stream in self._sessions(project_key):
            if _is_whole(stream.data):
                summary = dict(stream.data[_SUMMARY])
            else:
                entries = [each.body for each in self._streams.entries(stream.key)]
                summary = fold_session_summary(None, _key(stream.key), entries)["data"]
            summaries.append(
                {"session_id": session_id, "mtime": stream.updated_at, "data": summary}
            )
        return summaries

    def _delete(self, key: SessionKey) -> None:
        names = [_name(key)]
        if "subpath" not in key:
            names += [stream.key for stream in self._streams.list(f"{names[0]}/")]
        delete_sessions(self._memory, self._streams, names, keeps_messages=self._keeps_messages)


def recall_hooks(
    memory: Memory | AsyncMemory, *, agent: str = "claude"
) -> dict[HookEvent, list[HookMatcher]]:
    """Return hooks for ``ClaudeAgentOptions(hooks=…)`` that tell an agent what is known.

    With the first message of a session comes what a session begins with; with every message, what
    was decided about its subject. Nothing of it is stored as said.

    Args:
        memory: What is known.
        agent: The name that receipts give the agent.
    """
    moments = memory.internals.moments
    started: set[str] = set()

    def tell(session_id: str, prompt: str) -> str:
        is_first = session_id not in started
        started.add(session_id)
        injections = [moments.start(session_id, agent=agent)] if is_first else []
        injections.append(moments.first_message(session_id, prompt, is_first=is_first))
        for each in filter(None, injections):
            moments.mark_delivered(each.receipt_id)
        return "\n".join(each.text for each in injections if each is not None)

    async def on_prompt(
        given: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
        facts = cast("Mapping[str, Any]", given)
        text = await _in_thread(tell, facts["session_id"], facts.get("prompt", ""))
        if not text:
            return {}
        return {
            "hookSpecificOutput": {
                "hookEventName": "UserPromptSubmit",
                "additionalContext": text,
            }
        }

    return {"UserPromptSubmit": [HookMatcher(hooks=[on_prompt])]}


class _SessionSource:
    """Reads the entries of one session, or of one of its sub-agents."""

    def __init__(self, key: SessionKey) -> None:
        session_id = key["session_id"]
        if not UUID.fullmatch(session_id):
            # A name that a program chose is one session's within its project key only.
            session_id = bounded_id(f"{FRAMEWORK}:{_name(_main(key))}")
        self._around: dict[str, Any] = {"sessionId": session_id}
        if "subpath" in key:
            agent_id = key["subpath"].rpartition("/")[2].removeprefix("agent-")
            self._around |= {"isSidechain": True, "agentId": agent_id or "unnamed"}
        self._transcript = ClaudeTranscript(Path("session"))
        self.thread = self._transcript.thread_of(self._around, None)

    def take(self, entry: SdkEntry) -> Iterator[Record]:
        """Yield the records that an entry gives, or that it settles."""
        line = line_of(entry)
        if isinstance(line, JsonLine):
            line = replace(line, value={**line.value, **self._around})
            yield from self._transcript.take(line)
        else:
            yield line


def _is_whole(data: Mapping[str, Any]) -> bool:
    """Return False if an erase took something out of a summary."""
    return sorted(data.get(_SUMMARY, {})) == data.get(_FIELDS)


def _name(key: SessionKey | SessionListSubkeysKey) -> str:
    """Return the name of a stream: project key, session, and path of a sub-agent."""
    parts = [_escaped(key["project_key"]), _escaped(key["session_id"])]
    if (path := cast("Mapping[str, str]", key).get("subpath")) is not None:
        if not path:
            raise InvalidInputError("subpath is empty. Leave it out for the main transcript.")
        parts.append(path)
    return "/".join(parts)


def _main(key: SessionKey) -> SessionListSubkeysKey:
    return {"project_key": key["project_key"], "session_id": key["session_id"]}


def _key(name: str) -> SessionKey:
    project_key, session_id, *rest = name.split("/", 2)
    key: SessionKey = {
        "project_key": _unescaped(project_key),
        "session_id": _unescaped(session_id),
    }
    return {**key, "subpath": rest[0]} if rest else key


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def _unescaped(name: str) -> str:
    return name.replace("%2F", "/").replace("%25", "%")


async def _in_thread(function: Callable[..., _Value], *arguments: Any) -> _Value:
    """Run in a worker thread: the SDK runs on asyncio and on trio."""
    return await anyio.to_thread.run_sync(partial(function, *arguments))
