"""The thread of a rollout: what its session says about itself.

A rollout is one thread. That of a sub-agent names the thread that called it; a fork begins
with a copy of the thread it left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from smara.adapters.decoding import mapping_in, milliseconds, text_in
from smara.adapters.records import bounded_id
from smara.adapters.titles import shorten
from smara.messages.models import NewThread, ThreadKind

_FILE_NAME = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-fA-F-]{8,36})")
_EDITOR_CONTEXT, _EDITOR_REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
# A fork's copy of its parent is written at once, when it begins.
_COPIED_WITHIN_MS = 2_000


class RolloutThread:
    """What is known of the thread, as far as the file has been read."""

    def __init__(self, file_name: str) -> None:
        named = _FILE_NAME.match(file_name)
        self._thread = NewThread(
            bounded_id(named[1] if named else file_name.split(".")[0]), metadata={"host": "codex"}
        )
        self._has_begun = False
        self._is_fork = False
        self._own_from: int | None = None
        self._began_at: int | None = None

    @property
    def now(self) -> NewThread:
        return self._thread

    @property
    def has_begun(self) -> bool:
        """Whether the session has said who it is."""
        return self._has_begun

    def begin(self, meta: Mapping[str, Any], at: int | None) -> NewThread:
        """The session says who it is; a second time it is a copy of another one."""
        if self._has_begun:
            return self._thread
        self._has_begun = True
        self._began_at = milliseconds(meta.get("timestamp")) or at
        self._is_fork = bool(text_in(meta.get("forked_from_id")))
        own_from = meta.get("subagent_history_start_ordinal")
        self._own_from = own_from if isinstance(own_from, int) else None
        kind, parent, agent = _descent(meta)
        git = mapping_in(meta.get("git"))
        facts: dict[str, Any] = {
            **self._thread.metadata,
            "cwd": text_in(meta.get("cwd")),
            "version": text_in(meta.get("cli_version")),
            "originator": text_in(meta.get("originator")),
            "git_branch": text_in(git.get("branch")),
            "git_commit": text_in(git.get("commit_hash")),
            "forked_from": text_in(meta.get("forked_from_id")),
            **agent,
        }
        thread_id = text_in(meta.get("id")) or self._thread.id
        if kind != "conversation":
            facts["agent_id"] = bounded_id(thread_id)
            facts["session"] = text_in(meta.get("session_id")) or parent
        self._thread = NewThread(
            bounded_id(thread_id),
            metadata={name: fact for name, fact in facts.items() if fact},
            kind=kind,
            parent_id=bounded_id(parent) if parent else None,
            created_at=self._began_at,
            title="Compaction" if kind == "compaction" else None,
        )
        return self._thread

    def note_place(self, place: str) -> str:
        """The folder of a session that has not said it; the folder that is known now."""
        if place and "cwd" not in self._thread.metadata:
            self._thread = replace(self._thread, metadata={**self._thread.metadata, "cwd": place})
        return text_in(self._thread.metadata.get("cwd"))

    def suggest_title(self, words: str) -> NewThread:
        """The first prompt names the thread; of one that an editor sent, what stands below its
        context.
        """
        if words.lstrip().startswith(_EDITOR_CONTEXT):
            words = words.partition(_EDITOR_REQUEST)[2] or words
        if self._thread.title is None and (title := shorten(words)):
            self._thread = replace(self._thread, title=title)
        return self._thread

    def is_before_its_own(self, ordinal: Any) -> bool:
        """Whether a record of a sub-agent is what it was given to know of its parent, which has its
        own file.
        """
        return self._own_from is not None and isinstance(ordinal, int) and ordinal < self._own_from

    def is_copied(self, at: int | None) -> bool:
        """Whether a record of a fork is a copy of its parent's."""
        began = self._began_at
        return (
            self._is_fork
            and at is not None
            and began is not None
            and at - began <= _COPIED_WITHIN_MS
        )


def _descent(meta: Mapping[str, Any]) -> tuple[ThreadKind, str, dict[str, Any]]:
    """What kind of thread it is, whose, and what its agent is called."""
    source = mapping_in(meta.get("source")).get("subagent")
    spawned = mapping_in(mapping_in(source).get("thread_spawn"))
    parent = text_in(meta.get("parent_thread_id")) or text_in(spawned.get("parent_thread_id"))
    agent = {
        "agent_name": text_in(meta.get("agent_nickname")) or text_in(spawned.get("agent_nickname")),
        "agent_type": text_in(meta.get("agent_role"))
        or text_in(spawned.get("agent_role"))
        or text_in(source),
    }
    if source == "compact":
        return "compaction", parent, agent
    return ("subagent" if source or parent else "conversation"), parent, agent
