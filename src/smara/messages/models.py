"""Define the records of the messages room: threads, messages, parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from smara.core.startup.record import dataclass, field

Role = Literal["user", "assistant", "system", "tool"]
ROLES: tuple[Role, ...] = get_args(Role)

PartType = Literal["text", "tool_call", "tool_result", "reasoning", "image", "file"]
PART_TYPES: tuple[PartType, ...] = get_args(PartType)

ThreadKind = Literal["conversation", "subagent", "compaction"]


ERASED = "[erased]"
"""What stands in place of an erased message, so that its thread has no gap."""


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a message.

    ``text`` is the words of a text, reasoning or tool result part, and the caption of
    a placeholder. ``name`` is a tool's or a file's name, ``call_id`` ties a result to
    its call, ``arguments`` are a tool call's arguments.
    """

    type: PartType
    text: str = ""
    name: str | None = None
    call_id: str | None = None
    arguments: Any = None
    is_error: bool = False
    media_type: str | None = None
    uri: str | None = None
    size_bytes: int | None = None

    def render(self) -> str:
        """Render the part as plain text, as stored and searched."""
        match self.type:
            case "text" | "reasoning" | "tool_result":
                return self.text
            case "tool_call":
                call = render_tool_call(self.name or "tool", self.arguments)
                return f"{call}\n{self.text}" if self.text else call
            case _:
                label = self.name or self.uri or self.media_type or "unnamed"
                return f"[{self.type}: {label}]" + (f" {self.text}" if self.text else "")


def render_tool_call(name: str, arguments: Any) -> str:
    """A tool call as text: its name, then one line per argument."""
    if isinstance(arguments, Mapping):
        lines = [f"{key}: {plain(value)}" for key, value in arguments.items()]
    elif arguments is None:
        lines = []
    else:
        lines = [plain(arguments)]
    return "\n".join([f"[tool: {name}]", *lines])


def plain(value: Any) -> str:
    """Return a value as text; anything but text as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class Pointer:
    """The place in a transcript that has a message's text.

    ``digest`` is a hash of the text, ``key`` the name of the key that its terms are hashed with.
    ``session`` is set where one file has many sessions.
    """

    path: str
    format: str
    line: int
    session: str | None = None
    digest: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message on its way in.

    ``client_id`` makes appending safe to repeat: the same id in the same thread is
    stored once. ``created_at`` is in milliseconds since the epoch; left out, it is now.
    ``pointer`` says which transcript has it, for a project that keeps vectors only.
    """

    role: Role
    content: str | Sequence[Part]
    client_id: str | None = None
    created_at: int | None = None
    task_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pointer: Pointer | None = None


@dataclass(frozen=True, slots=True)
class NewThread:
    """A thread on its way in; only the id is needed."""

    id: str
    resource_id: str | None = None
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: ThreadKind = "conversation"
    parent_id: str | None = None
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation, and what is known about it without reading it."""

    id: str
    resource_id: str
    kind: ThreadKind
    parent_id: str | None
    title: str | None
    metadata: Mapping[str, Any]
    created_at: int
    updated_at: int
    message_count: int
    token_count: int

    @property
    def active_task_id(self) -> str | None:
        """The task that is being worked on in this thread."""
        return self.metadata.get("activeTaskId")

    @property
    def current_task(self) -> str | None:
        """The agent's current task, in words."""
        return text if isinstance(text := self._noted("currentTask"), str) else None

    @property
    def task_seq(self) -> int | None:
        """The last message that was looked at for the current task."""
        return seq if isinstance(seq := self._noted("taskSeq"), int) else None

    @property
    def suggested_response(self) -> str | None:
        """A suggestion how the agent might go on."""
        return text if isinstance(text := self._noted("suggestedResponse"), str) else None

    @property
    def raw_after(self) -> int | None:
        """The message behind which all are shown raw, observed or not."""
        return seq if isinstance(seq := self._noted("rawAfter"), int) else None

    def _noted(self, name: str) -> Any:
        found = self.metadata.get("observations")
        return found.get(name) if isinstance(found, Mapping) else None


@dataclass(frozen=True, slots=True)
class Message:
    """One stored message.

    ``seq`` counts from 1 within its thread, without gaps. ``pointer`` says where its text is, if
    the store does not have it.
    """

    id: str
    thread_id: str
    resource_id: str
    seq: int
    role: Role
    raw_content: str
    parts: tuple[Part, ...]
    token_count: int
    token_method: str
    created_at: int
    client_id: str | None = None
    task_id: str | None = None
    sealed_at: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    compaction: Compaction | None = None
    pointer: Pointer | None = None

    @property
    def content(self) -> str:
        """The same as ``raw_content``."""
        return self.raw_content

    @property
    def is_sealed(self) -> bool:
        """True if later content becomes a message of its own."""
        return self.sealed_at is not None

    @property
    def compaction_level(self) -> int:
        """0 for a message that is shown whole, 1 summarized, 2 archived."""
        return self.compaction.level if self.compaction else 0

    @property
    def summary(self) -> str | None:
        """The summary of this message's run once compacted."""
        return self.compaction.summary if self.compaction else None

    @property
    def search_text(self) -> str:
        """The raw content's terms under which it is found."""
        from smara.core.text import analyze

        found = analyze(self.raw_content)
        return f"{found.prose} {found.code}".strip()

    @property
    def injection_text(self) -> str:
        """The text for a model: raw content, or the run's summary."""
        if self.compaction is None:
            return self.raw_content
        return self.compaction.injection_text if self.seq == self.compaction.start_seq else ""


class MessageSize(NamedTuple):
    """The place of a message in its thread, and its tokens."""

    seq: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """A run of messages shown as one summary.

    The messages themselves are untouched.
    """

    id: str
    level: int
    start_seq: int
    end_seq: int
    message_count: int
    summary: str
    code: str
    method: str
    created_at: int
    undone_at: int | None = None

    @property
    def injection_text(self) -> str:
        """The one text that stands for the whole run."""
        code = f"\n{self.code}" if self.code and self.level == 1 else ""
        return f"[Compacted {self.message_count} messages] {self.summary}{code}"
