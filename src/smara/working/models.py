"""Define the records of working memory: pages, versions, drafts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

from smara.core.startup.record import dataclass

WorkingScope = Literal["resource", "thread"]
SCOPES: tuple[WorkingScope, ...] = get_args(WorkingScope)

WorkingFormat = Literal["markdown", "json"]
FORMATS: tuple[WorkingFormat, ...] = get_args(WorkingFormat)

TemplateName = Literal["coding", "person"]
TEMPLATE_NAMES: tuple[TemplateName, ...] = get_args(TemplateName)


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """One page as it is now.

    Version 0 is a page not written yet: an empty template without id, times and author.
    ``template`` is the empty page this one was begun with, ``None`` for free text and for JSON.
    """

    id: str | None
    scope: WorkingScope
    resource_id: str
    thread_id: str | None
    format: WorkingFormat
    content: str
    template: str | None
    schema: Mapping[str, Any] | None
    version: int
    created_at: int | None
    updated_at: int | None
    updated_by: str | None = None

    @property
    def value(self) -> dict[str, Any] | None:
        """The object of a JSON page; ``None`` for Markdown."""
        if self.format != "json":
            return None
        found: dict[str, Any] = json.loads(self.content)
        return found

    @property
    def is_stored(self) -> bool:
        """True if the page has been written."""
        return self.version > 0

    def __str__(self) -> str:
        owner = (
            f"thread {self.thread_id!r}"
            if self.scope == "thread"
            else f"resource {self.resource_id!r}"
        )
        return f"the working memory of {owner}"


@dataclass(frozen=True, slots=True)
class WorkingVersion:
    """A past version of a page: text, author, time, reason."""

    version: int
    content: str
    format: WorkingFormat
    actor: str
    reason: str | None
    created_at: int
    template: str | None = None
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class PageKey:
    """The key of a page.

    ``resource_id`` is ``None`` for a thread's page without a named resource.
    """

    scope: WorkingScope
    resource_id: str | None
    thread_id: str | None

    @property
    def key(self) -> str:
        """The id that the page is found by."""
        return (self.thread_id if self.scope == "thread" else self.resource_id) or ""


@dataclass(frozen=True, slots=True)
class PageDraft:
    """The planned content of a page."""

    format: WorkingFormat
    content: str
    template: str | None
    schema: Mapping[str, Any] | None

    def is_in(self, memory: WorkingMemory) -> bool:
        """Return True if the page already says this."""
        ours = (self.format, self.content, self.template, json.dumps(self.schema))
        return memory.is_stored and ours == (
            memory.format,
            memory.content,
            memory.template,
            json.dumps(memory.schema),
        )
