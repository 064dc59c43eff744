"""Tell LlamaIndex agents what left their window, by a memory block.

LlamaIndex hands over the messages that no longer fit (``_aput``) and asks for a text before each
request (``_aget``). The text is the pack of the session, what was observed, and the messages that
no observation tells yet, so that none is lost between the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from smara.adapters.sdk.agent_session import AgentSession, fail_open_async
from smara.core.memory_block import CLOSING, OPENING, without_memory_blocks
from smara.errors import MissingExtraError
from smara.frameworks.models import NewEntry
from smara.frameworks.streams import Streams
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Part, Role, plain

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock
except ImportError as error:
    raise MissingExtraError(
        "The memory block needs LlamaIndex. Install it with `pip install 'smara[llama-index]'`.",
        package="llama-index-core",
    ) from error

FRAMEWORK = "llama-index"
_EARLIER = "Said earlier in this conversation:"
_ROLES: Mapping[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}


class SmaraMemoryBlock(BaseMemoryBlock[str]):
    """A block for ``Memory.from_defaults(memory_blocks=[…])``.

    Trouble with the store never breaks an agent: the text is empty, and the log says so.
    """

    name: str = Field(default="smara", description="The name of the memory block.")
    smara: Memory = Field(description="The memory to tell from and to store into.", exclude=True)
    session_id: str = Field(default="default", description="The session, if none is handed over.")
    resource_id: str | None = Field(default=None, description="Whom the sessions belong to.")
    cwd: str = Field(default="", description="The folder the agent works in.")
    has_moments: bool = Field(default=True, description="False to leave the pack out.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """Return what memory tells of the session."""
        thread_id = self._thread(block_kwargs.get("session_id"))
        return await fail_open_async("get", lambda: self._text(thread_id), "")

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages; they are observed, searched and learned from."""
        await fail_open_async("put", lambda: self._store(messages), None)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the text without the oldest messages, then without its end."""
        count = self.smara.internals.project.counter.count
        head, title, rest = content.partition(_EARLIER)
        lines, later = head.rstrip().split("\n"), rest.strip("\n").split("\n") if title else []
        removed = 0
        while (lines or later) and removed < tokens_to_truncate:
            line = later.pop(0) if later else lines.pop()
            removed += count(line + "\n").tokens
        text = "\n".join(lines).rstrip()
        if text.count(OPENING) > text.count(CLOSING):
            text += f"\n{CLOSING}"
        if later:
            text += "\n".join(("", "", _EARLIER, *later))
        return text if text.replace(OPENING, "").replace(CLOSING, "").strip() else None

    def _thread(self, session_id: Any) -> str:
        return f"{FRAMEWORK}:{session_id or self.session_id}"

    def _text(self, thread_id: str) -> str:
        session = AgentSession(self.smara, FRAMEWORK, thread_id, self.cwd)
        context = self.smara.context.process_input(thread_id, resource_id=self.resource_id)
        earlier = [f"{each.role}: {each.content}" for each in context.messages if each.message_id]
        if earlier:
            earlier.insert(0, _EARLIER)
        pack = session.pack() if self.has_moments else ""
        texts = (pack, context.system, "\n".join(earlier), context.reminder)
        return "\n\n".join(filter(None, texts))

    def _streams(self) -> Streams:
        return self.smara.frameworks.streams(FRAMEWORK, read_message)

    def _store(self, messages: list[ChatMessage]) -> None:
        by_session: dict[str, list[NewEntry]] = {}
        for message in messages:
            dump = message.model_dump(mode="json")
            session_id = dump["additional_kwargs"].pop("session_id", None) or self.session_id
            key = self.smara.internals.project.new_id()
            by_session.setdefault(session_id, []).append(
                NewEntry({"key": key, "message": dump}, key)
            )
        for session_id, entries in by_session.items():
            thread = NewThread(self._thread(session_id), self.resource_id)
            self._streams().append(session_id, entries, thread=thread)
            self.smara.observations.look_after(thread.id)


def read_message(body: Mapping[str, Any]) -> NewMessage | None:
    """Read a stored message; system messages are the program's."""
    message = body["message"]
    role = _ROLES.get(message["role"])
    extra = message.get("additional_kwargs") or {}
    call_id = extra.get("tool_call_id")
    parts: list[Part] = []
    for block in message.get("blocks") or ():
        kind = block.get("block_type")
        text = block.get("text") or block.get("content") or ""
        if kind == "text" and text:
            clean = without_memory_blocks(text)
            is_result = role == "tool"
            parts += [Part("tool_result" if is_result else "text", clean, call_id=call_id)]
        elif kind == "thinking" and text:
            parts.append(Part("reasoning", str(text)))
        elif kind == "tool_call":
            parts.append(
                Part(
                    "tool_call",
                    name=block.get("tool_name"),
                    call_id=block.get("tool_call_id"),
                    arguments=block.get("tool_kwargs"),
                )
            )
        elif kind in ("image", "audio", "video", "document"):
            url = block.get("url")
            part_kind: Any = "image" if kind == "image" else "file"
            parts.append(Part(part_kind, uri=plain(url) if url else None))
    if role is None or not parts:
        return None
    return NewMessage(role, parts, str(body["key"]))
