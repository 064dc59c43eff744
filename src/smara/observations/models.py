"""Define observations, their records, and the observer and reflector protocols.

An observation is a dated, prioritized line about a conversation. A record holds the
observations of one scope: a thread, or a resource with all its threads. Taint names
the sources of an observation other than people's own words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, get_args

from smara.core.startup.record import dataclass, field
from smara.errors import BadReplyError, SmaraError
from smara.messages.models import Message

Priority = Literal["high", "medium", "low"]
AgentMode = Literal[
    "default", "explore", "bug_fixing", "refactoring", "testing", "debugging", "research"
]
Flavor = Literal["coding", "general"]
Category = Literal[
    "request",
    "question",
    "statement",
    "preference",
    "decision",
    "change",
    "code",
    "command",
    "error",
    "fix",
    "test",
    "completion",
    "finding",
    "answer",
    "blocker",
    "note",
]

PRIORITIES: tuple[Priority, ...] = get_args(Priority)
MODES: tuple[AgentMode, ...] = get_args(AgentMode)
CATEGORIES: tuple[Category, ...] = get_args(Category)
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Note:
    """One observation as an observer writes it, before it is stored.

    ``said_at`` is when it was said (ms); ``refers_to`` the date it speaks about, as
    ``YYYY-MM-DD`` or ``YYYY-MM-DD..YYYY-MM-DD``, only when a real date can be given.
    ``details`` are lines that stand indented below it, such as the calls of one tool sequence.
    ``first_seq`` and ``last_seq`` are the messages it comes from, when the observer knows them.
    """

    priority: Priority
    category: Category
    text: str
    said_at: int
    refers_to: str | None = None
    details: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    first_seq: int | None = None
    last_seq: int | None = None
    mode_specific: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class ObservationDraft:
    """The notes and the outlook that an observer makes of messages."""

    notes: tuple[Note, ...]
    current_task: str | None = None
    suggested_response: str | None = None
    thread_title: str | None = None
    extracted: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    warnings: tuple[str, ...] = ()
    """What the observer wrote and was left out, and why; the rest stands without it."""
    method: str = ""
    """Who made it, where an observer has several models: the one that answered."""


@dataclass(frozen=True, slots=True)
class Extractor:
    """A value of the user's own, taken out of messages as JSON.

    ``name`` is of small letters, digits and dashes; ``schema`` a JSON Schema that the value
    must satisfy. An extractor that fails is left out; the others and the notes are kept.
    """

    name: str
    instruction: str
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObserveRequest:
    """The messages to observe, what is known already, and how to look."""

    messages: Sequence[Message]
    known: str = ""
    """The observations there are, rendered; not to be repeated."""
    mode: AgentMode = "default"
    flavor: Flavor = "coding"
    timezone: str = "UTC"
    instructions: str = ""
    """What the user wants to be looked at besides."""
    wants_suggested_response: bool = False
    wants_title: bool = True
    extractors: Sequence[Extractor] = ()
    root: str = ""
    """The folder in which the work takes place, when it is known: paths below it are written
    without it.
    """
    current_task: str = ""
    """What the agent worked on before these messages, as far as is known."""


@dataclass(frozen=True, slots=True)
class ReflectRequest:
    """The notes to condense, oldest first, and how hard (0 to 4)."""

    notes: Sequence[Note]
    level: int = 0
    timezone: str = "UTC"
    flavor: Flavor = "coding"
    target_tokens: int = 20_000
    instructions: str = ""
    conversation: str = ""
    """The title or id of the thread they come from, where there are several."""
    current_task: str = ""
    """What the agent works on as far as is known."""


class Observer(Protocol):
    """Turns messages into observations. ``method`` is stored with every row it made."""

    method: str

    def observe(self, request: ObserveRequest) -> ObservationDraft: ...


class Reflector(Protocol):
    """Condenses observations."""

    method: str

    def reflect(self, request: ReflectRequest) -> ObservationDraft: ...


Scope = Literal["thread", "resource"]
State = Literal["buffered", "active", "reflected"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, slots=True)
class Observation:
    """One observation as it is stored.

    ``first_seq`` to ``last_seq`` are the messages it comes from.

    ``taint`` names what its source holds besides people's own words (tool output, the web,
    imported files): it survives every condensation. A *reflection* stands for those that
    were merged into it; they are kept, with ``reflected_into`` naming its generation.
    """

    id: str
    kind: Literal["observation", "reflection"]
    state: State
    generation: int
    thread_id: str | None
    mode: AgentMode
    priority: Priority
    category: Category
    text: str
    details: tuple[str, ...]
    files: tuple[str, ...]
    lines: tuple[int, ...]
    mode_specific: Mapping[str, Any]
    taint: tuple[str, ...]
    said_at: int
    refers_to: str | None
    tokens: int
    first_seq: int
    last_seq: int
    method: str
    created_at: int
    reflected_into: int | None = None


@dataclass(frozen=True, slots=True)
class ObservationRecord:
    """The observations of one scope: a thread, or a resource."""

    id: str
    scope: Scope
    resource_id: str
    thread_id: str | None
    version: int
    generation: int
    observed_tokens: int
    last_observed_at: int | None
    last_reflected_at: int | None


@dataclass(frozen=True, slots=True)
class CycleOutcome:
    """The outcome of an attempt to observe or reflect.

    A refusal says if trying again can help.
    """

    action: Literal["observe", "buffer", "activate", "reflect", "initialize"]
    success: bool
    messages: int = 0
    notes: int = 0
    error: str | None = None
    code: str | None = None
    is_retryable: bool = False
    recovered: Mapping[str, Any] | None = None
    """What a crashed worker had left behind, when this one cleared it away."""

    @classmethod
    def failed(cls, action: Literal["observe", "reflect"], error: SmaraError) -> CycleOutcome:
        """Tell a failure; a bad reply is asked for again later."""
        may_help = error.is_retryable or isinstance(error, BadReplyError)
        return cls(action, False, error=str(error), code=error.code, is_retryable=may_help)


@dataclass(frozen=True, slots=True)
class ObservationFailure:
    """A job that failed; a dead one was observed without the model.

    The ``operation`` is ``observe`` or ``reflect`` when a reply could not be used, and ``outage``
    when no model could be asked: then the messages of the thread wait, for as long as it takes.
    """

    operation: str
    thread_id: str | None
    first_seq: int
    attempts: int
    code: str
    message: str
    is_dead: bool
    failed_at: int
    retry_at: int


@dataclass(frozen=True, slots=True)
class ObservationWarning:
    """An omission from observations, or work without the model."""

    thread_id: str
    first_seq: int
    last_seq: int
    warnings: tuple[str, ...]
    created_at: int


class RecordKey(NamedTuple):
    """The place of a conversation's observations."""

    scope: Scope
    resource_id: str
    thread_id: str

    @property
    def lookup_key(self) -> str:
        """The one name by which the record is found.

        >>> RecordKey("thread", "u", "t").lookup_key, RecordKey("resource", "u", "t").lookup_key
        ('thread:t', 'resource:u')
        """
        return (
            f"thread:{self.thread_id}" if self.scope == "thread" else f"resource:{self.resource_id}"
        )


@dataclass(frozen=True, slots=True)
class WorkerRound:
    """The work of one round over all threads."""

    looked_at: int = 0
    observed: int = 0
    reflected: int = 0
    failed: int = 0
    embedded: int = 0
    """Records that got their vectors, where the worker makes those too."""
    projects: int = 0
    """How many projects had something due, where the worker serves them all."""
    learned: int = 0
    """Sessions that were decided on, and jobs that were done, where the worker does these too."""

    @property
    def is_idle(self) -> bool:
        return not (self.observed or self.reflected or self.embedded or self.learned)


_WEB = ("webfetch", "websearch", "web_fetch", "web_search", "fetch", "browser", "curl", "http")


def taint_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the kinds of outside input in messages: ``mcp``, ``tool``, ``web`` …"""
    found: set[str] = set()
    for message in messages:
        given = message.metadata.get("taint")
        if isinstance(given, str):
            found.add(given)
        elif isinstance(given, list | tuple):
            found.update(str(each) for each in given)
        for part in message.parts:
            if part.type in ("tool_call", "tool_result") and part.name:
                name = part.name.lower()
                is_web = any(name == each or name.startswith(f"{each}_") for each in _WEB)
                found.add("mcp" if name.startswith("mcp") else "web" if is_web else "tool")
            elif part.type == "tool_result" or message.role == "tool":
                found.add("tool")
            elif part.type in ("file", "image"):
                found.add("file")
    return tuple(sorted(word for each in found for word in each.split()))
