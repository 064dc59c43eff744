"""Define the tools with their actions, arguments and defaults.

Schemas, checks and help texts are all derived from this table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from smara.core.scope import AGENT, author_of
from smara.core.startup.record import dataclass, field, fields
from smara.core.validate import one_of
from smara.knowledge.kinds import KINDS
from smara.search.models import PHASES
from smara.tasks.models import (
    CLOSE_REASONS,
    DEFAULT_PRIORITY,
    DEPENDENCY_TYPES,
    MAX_TITLE_LENGTH,
    RELATIONS,
    STATUSES,
    TYPES,
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The caller of a tool; settings fill what is ``None``."""

    session_id: str | None = None
    """The run of the agent; claims belong to it."""
    thread_id: str | None = None
    """The conversation it has; messages said there while a task is claimed belong to that task."""
    resource_id: str | None = None
    """Whose working memory is meant."""
    actor: str | None = None
    """Who stands in a task's history."""
    is_shared: bool = False
    """Whether several agents call through the same door, so that a claim must say whose it is."""

    @property
    def author(self) -> str:
        """The actor under whose name an agent's own words are stored."""
        name = self.actor or AGENT
        return name if author_of(name) == AGENT else f"{AGENT}:{name}"

    def over(self, other: ToolContext) -> ToolContext:
        """This context, and where it says nothing, the other."""
        names = [each.name for each in fields(self)]
        return ToolContext(**{name: getattr(self, name) or getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a call, as JSON and as text.

    ``structured`` always has ``action`` and ``success``; a refusal has ``error`` and ``code``
    too, mostly with a ``hint``, and ``retryable`` when the same call may succeed later.
    """

    is_error: bool
    structured: Json
    text: str


@dataclass(frozen=True, slots=True)
class CatalogueAction:
    """One thing a tool does, and the arguments it takes."""

    name: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Every argument it takes, the needed ones first."""
        return (*self.required, *self.optional)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its actions, and one schema per argument."""

    name: str
    title: str
    is_read_only: bool
    arguments: Mapping[str, Json]
    actions: Mapping[str, CatalogueAction]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other names under which an argument is understood, where the action does not take them
    itself.
    """
    default_action: str | None = None
    """What is meant when no action is named."""


MOST_TASKS = 50
MOST_HITS = 20
MOST_PAGES = 1_000
MOST_DEEP = 200
"""So many hits a search is paged through; what ranks below is not an answer any more."""
MAX_QUERY_LENGTH = 10_000
MAX_TEXT_LENGTH = 100_000
MAX_SUMMARY_LENGTH = 20_000
MAX_LABEL_LENGTH = 200
MAX_STATEMENT_LENGTH = 2_000
MAX_PLACE_LENGTH = 2_000
MOST_LABELS = 100
NEXT = "next"
"""What to claim when any ready task will do."""


def _text(says: str, at_most: int, at_least: int = 1) -> Json:
    bounds = {"minLength": at_least} if at_least else {}
    return {"type": "string", **bounds, "maxLength": at_most, "description": says}


def _id(says: str, at_least: int = 1) -> Json:
    # What is too long to be an id is not found, which says enough; a bound on each would cost a
    # tenth of the budget.
    return {"type": "string", **({"minLength": at_least} if at_least else {}), "description": says}


def _choice(says: str, *values: str) -> Json:
    return {"type": "string", "enum": list(values), "description": says}


def _whole(says: str, at_least: int, at_most: int) -> Json:
    return {"type": "integer", "minimum": at_least, "maximum": at_most, "description": says}


def _flag(says: str) -> Json:
    return {"type": "boolean", "description": says}


def _labels(says: str, longest: int = MAX_LABEL_LENGTH) -> Json:
    return {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": longest},
        "maxItems": MOST_LABELS,
        "description": says,
    }


def _tool(
    name: str,
    title: str,
    arguments: dict[str, Json],
    *,
    actions: Sequence[CatalogueAction],
    is_read_only: bool = True,
    **more: Any,
) -> Tool:
    return Tool(
        name,
        title,
        is_read_only,
        arguments=arguments,
        actions={action.name: action for action in actions},
        **more,
    )


_PAGE = _whole("", 1, MOST_PAGES)

TASK_QUERY = _tool(
    "task-query",
    "Look at tasks",
    {
        "id": _id("task id, such as t-k3f9"),
        "query": _text("", MAX_QUERY_LENGTH, 0),
        "status": _choice("", *STATUSES),
        "type": _choice("", *TYPES),
        "label": _text("", MAX_LABEL_LENGTH),
        "assignee": _id(""),
        "parent": _id("only children of this task"),
        "includeMessages": _flag("also messages that match"),
        "limit": _whole("", 1, MOST_TASKS),
        "page": _PAGE,
    },
    actions=(
        CatalogueAction(
            "ready",
            (),
            ("limit", "page", "type", "label"),
            defaults={"limit": 5, "page": 1},
            example={"action": "ready", "limit": 5},
        ),
        CatalogueAction(
            "show",
            ("id",),
            ("page",),
            defaults={"page": 1},
            example={"action": "show", "id": "t-k3f9"},
        ),
        CatalogueAction(
            "list",
            (),
            ("status", "type", "label", "assignee", "parent", "limit", "page"),
            defaults={"limit": 20, "page": 1},
            example={"action": "list", "status": "closed"},
        ),
        CatalogueAction(
            "search",
            ("query",),
            ("status", "includeMessages", "limit", "page"),
            defaults={"limit": 3, "includeMessages": False, "page": 1},
            example={"action": "search", "query": "login", "limit": 3},
        ),
    ),
    aliases={
        "id": ("taskId",),
        "label": ("labels",),
        "parent": ("parentId",),
        "query": ("q", "text"),
    },
)

_WHO = ("sessionId", "threadId")
TASK_MUTATE = _tool(
    "task-mutate",
    "Change tasks and working memory",
    {
        "id": _id("task id, such as t-k3f9"),
        "title": _text("one line", MAX_TITLE_LENGTH),
        "description": _text("what, why, when it is done", MAX_TEXT_LENGTH, 0),
        "priority": _whole("0 is most urgent", 0, 4),
        "type": _choice("", *TYPES),
        "labels": _labels(""),
        "assignee": _id("", at_least=0),
        "parent": _id("task it is a part of"),
        "dependsOn": _text("what must be closed first; in create, several with commas", 2_000),
        "reason": _choice("", *CLOSE_REASONS),
        "summary": _text("what was done, where, and how it was checked", MAX_SUMMARY_LENGTH),
        "taskId": _id(""),
        "add": _flag("false removes it"),
        "kind": _choice("parent-child: dependsOn is the parent", *DEPENDENCY_TYPES),
        "messageId": _id("from memory-search"),
        "relation": _choice("", *RELATIONS),
        "content": _text("Markdown; replaces what is there", MAX_TEXT_LENGTH, 0),
        "scope": _choice("", "resource", "thread"),
        "section": _id("replace only what stands under this heading"),
        "expectedVersion": _whole("refuse if it changed since", 0, 2**53 - 1),
        "to": _id("session to hand it over to"),
        "force": _flag("although another holds it; only if the user says so"),
        "sessionId": _id("if the server does not know it"),
        "threadId": _id("likewise"),
    },
    actions=(
        CatalogueAction(
            "create",
            ("title",),
            (
                "description",
                "priority",
                "type",
                "labels",
                "assignee",
                "parent",
                "dependsOn",
                "sessionId",
            ),
            defaults={"priority": DEFAULT_PRIORITY, "type": "task"},
            example={"action": "create", "title": "Refresh expired tokens"},
        ),
        CatalogueAction(
            "claim", ("id",), _WHO, defaults={}, example={"action": "claim", "id": "t-k3f9"}
        ),
        CatalogueAction(
            "close",
            ("id", "summary"),
            ("reason", "force", "sessionId"),
            defaults={"reason": "completed", "force": False},
            example={
                "action": "close",
                "id": "t-k3f9",
                "reason": "completed",
                "summary": "auth.ts renews tokens; tests pass",
            },
        ),
        CatalogueAction(
            "release",
            ("id",),
            ("to", "force", "sessionId"),
            defaults={"force": False},
            example={"action": "release", "id": "t-k3f9"},
        ),
        CatalogueAction(
            "reopen",
            ("id",),
            ("sessionId",),
            defaults={},
            example={"action": "reopen", "id": "t-k3f9"},
        ),
        CatalogueAction(
            "update",
            ("id",),
            ("title", "description", "priority", "type", "labels", "assignee", "sessionId"),
            defaults={},
            example={"action": "update", "id": "t-k3f9", "priority": 1},
        ),
        CatalogueAction(
            "dep",
            ("taskId", "dependsOn"),
            ("add", "kind", "sessionId"),
            defaults={"add": True, "kind": "blocks"},
            example={"action": "dep", "taskId": "t-k3f9", "dependsOn": "t-a1b2"},
        ),
        CatalogueAction(
            "link",
            ("taskId", "messageId"),
            ("relation", "sessionId"),
            defaults={"relation": "reference"},
            example={
                "action": "link",
                "taskId": "t-k3f9",
                "messageId": "01990000-0000-7000-8000-000000000000",
            },
        ),
        CatalogueAction(
            "update_context",
            ("content",),
            ("scope", "section", "expectedVersion", "threadId"),
            defaults={"scope": "resource"},
            example={
                "action": "update_context",
                "content": "- Tests: Vitest",
                "section": "Tech Stack",
            },
        ),
    ),
    is_read_only=False,
    aliases={
        "id": ("taskId",),
        "taskId": ("id",),
        "dependsOn": ("dependsOnId", "blockedBy"),
        "kind": ("type",),
        "labels": ("label",),
        "parent": ("parentId",),
        "content": ("text",),
    },
)

MEMORY_SEARCH = _tool(
    "memory-search",
    "Search past conversations",
    {
        "query": _text("exact names beat general words", MAX_QUERY_LENGTH, 0),
        "id": _id("id of a hit"),
        "limit": _whole("", 1, MOST_HITS),
        "page": _PAGE,
        "threadId": _id("only this conversation"),
        "taskId": _id("only this task"),
        "since": _text("date, such as 2026-03-01", 40),
        "until": _text("date, exclusive", 40),
        "phase": _choice("", *PHASES),
    },
    actions=(
        CatalogueAction(
            "search",
            ("query",),
            ("limit", "page", "threadId", "taskId", "since", "until", "phase"),
            defaults={"limit": 3, "page": 1},
            example={"action": "search", "query": "LoginSchema", "phase": "implement"},
        ),
        CatalogueAction(
            "read",
            ("id",),
            ("page",),
            defaults={"page": 1},
            example={"action": "read", "id": "01990000-0000-7000-8000-000000000000"},
        ),
    ),
    aliases={"id": ("messageId",), "query": ("q", "text")},
    default_action="search",
)

RECORDED_TYPES = tuple(kind.type for kind in KINDS.values() if kind.recorded_on is not None)
"""What an agent can know by itself; the other types are counted or observed from what it does."""

MEMORY_RECORD = _tool(
    "memory-record",
    "Record what was learned",
    {
        "type": _choice("", *RECORDED_TYPES),
        "content": _text("one statement that can be read alone", MAX_STATEMENT_LENGTH),
        "evidence": _labels("src/auth.py:10-20, message:ID or a quotation", MAX_PLACE_LENGTH),
        "supersedes": _id("memory that it replaces"),
        "id": _id("memory id"),
        "outcome": _choice("", "helped", "wrong"),
    },
    actions=(
        CatalogueAction(
            "record",
            ("type", "content"),
            ("evidence", "supersedes"),
            defaults={},
            example={
                "action": "record",
                "type": "gotcha",
                "content": "Redis must run before the auth tests, or they hang",
                "evidence": ["tests/auth/conftest.py:12"],
            },
        ),
        CatalogueAction(
            "used",
            ("id", "outcome"),
            (),
            defaults={},
            example={"action": "used", "id": "m-k3f9", "outcome": "helped"},
        ),
        CatalogueAction("context", (), (), defaults={}, example={"action": "context"}),
    ),
    is_read_only=False,
    aliases={
        "content": ("text", "memory", "statement"),
        "evidence": ("files", "file", "relatedFiles", "source", "sources"),
        "id": ("memoryId",),
        "supersedes": ("replaces",),
        "type": ("kind",),
        "outcome": ("result",),
    },
)

MOST_TOKENS = 8_000
DEEPEST = 10

CODE_QUERY = _tool(
    "code-query",
    "Ask about the code",
    {
        "target": _text(
            "file, symbol or file:line; map: those in play, with commas", MAX_PLACE_LENGTH
        ),
        "depth": _whole("", 1, DEEPEST),
        "tokens": _whole("", 1, MOST_TOKENS),
    },
    actions=(
        CatalogueAction(
            "impact",
            ("target",),
            ("depth", "tokens"),
            defaults={"depth": 3, "tokens": 1_000},
            example={"action": "impact", "target": "src/auth.py:Session.login"},
        ),
        CatalogueAction(
            "deps",
            ("target",),
            ("depth", "tokens"),
            defaults={"depth": 3, "tokens": 1_000},
            example={"action": "deps", "target": "src/auth.py"},
        ),
        CatalogueAction(
            "map",
            (),
            ("target", "tokens"),
            defaults={"tokens": 1_000},
            example={"action": "map", "target": "src/auth.py, login"},
        ),
        CatalogueAction(
            "symbol",
            ("target",),
            ("tokens",),
            defaults={"tokens": 1_000},
            example={"action": "symbol", "target": "login"},
        ),
    ),
    aliases={
        "target": ("symbol", "file", "path", "name", "id", "query", "files", "names"),
        "tokens": ("budget", "maxTokens", "limit"),
        "depth": ("maxDepth",),
    },
)

Profile = Literal["default", "coding"]
TOOLS: dict[str, Tool] = {
    tool.name: tool for tool in (TASK_QUERY, TASK_MUTATE, MEMORY_SEARCH, MEMORY_RECORD)
}
"""What every agent is given, in the order in which they are listed everywhere."""
EVERY_TOOL: dict[str, Tool] = {**TOOLS, CODE_QUERY.name: CODE_QUERY}
PROFILES: dict[Profile, dict[str, Tool]] = {"default": TOOLS, "coding": EVERY_TOOL}


def tools_of(profile: Profile) -> dict[str, Tool]:
    """The tools of a profile by their names."""
    return PROFILES[one_of(profile, PROFILES, "profile")]
