"""Classify a Codex record: its thread, speaker and tool output.

A rollout is one thread; that of a sub-agent names its parent, and a fork begins with a copy
of the thread it left. Codex sends its environment and instruction files as user messages;
such text gets the role "system" with a kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from smara.actions.tool_output import host_exit_code
from smara.adapters.blocks import parts_of, read_arguments, words_of
from smara.adapters.lines import mapping_in, milliseconds, text_in
from smara.adapters.records import bounded_id, shorten_title
from smara.messages.models import NewThread, Part, Role, ThreadKind

# Opening words by which the program's own texts are known, and their kind.
_OPENINGS = (
    ("<environment_context>", "environment"),
    ("<environments_instructions>", "environment"),
    ("<user_instructions>", "instructions"),
    ("# AGENTS.md instructions", "instructions"),
    ("<INSTRUCTIONS>", "instructions"),
    ("<permissions instructions>", "instructions"),
    ("<skills_instructions>", "instructions"),
    ("<skill>", "skill"),
    ("<turn_aborted>", "interruption"),
    ("<subagent_notification>", "task_notification"),
    ("<user_shell_command>", "shell_output"),
    ("<user_action>", "notice"),
    ("<recommended_plugins>", "notice"),
    ("<codex_internal_context", "notice"),
    ("<goal_context>", "notice"),
    ("<hook_prompt", "notice"),
    ("<current_time_reminder>", "notice"),
    ("<image_resize_notice>", "notice"),
    ("<model_switch>", "notice"),
)
_OUTSIDE = re.compile(r"\A<external_[\w-]+>.*</external_[\w-]+>\Z", re.S)
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "developer": "system",
    "system": "system",
}


_PLACE = re.compile(r"<cwd>([^<\n]+)</cwd>|^\s*Current working directory: (.+)$", re.M)


def place_in(text: str) -> str:
    """Return the working folder that a text names, or ""."""
    if not text.lstrip().startswith("<environment_context>"):
        return ""
    found = _PLACE.search(text)
    return (found[1] or found[2]).strip() if found else ""


def program_kind(text: str) -> str | None:
    """Return the kind of a program's text; None for a person's."""
    stripped = text.strip()
    for opening, kind in _OPENINGS:
        if stripped.startswith(opening):
            return kind
    return (
        "additional_context"
        if stripped.startswith("<external_") and _OUTSIDE.match(stripped)
        else None
    )


def voice_of(role: str, parts: Sequence[Part], thread_kind: ThreadKind) -> tuple[Role, str | None]:
    """The role and the kind of a message item."""
    named = _ROLES.get(role, "system")
    if named == "system":
        return "system", role or "unnamed"
    if named == "assistant":
        return "assistant", None
    kinds = [program_kind(part.text) for part in parts if part.type == "text" and part.text.strip()]
    if kinds and all(kinds):
        return "system", kinds[0]
    if thread_kind == "compaction":
        return "system", "compaction_prompt"
    return "user", "agent_prompt" if thread_kind == "subagent" else None


_FILE_NAME = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-fA-F-]{8,36})")
_EDITOR_CONTEXT, _EDITOR_REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
# A fork's copy of its parent is written at once, when it begins.
_COPIED_WITHIN_MS = 2_000


class RolloutThread:
    """The thread of a rollout, as far as it was read."""

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
        """True if the session has described itself."""
        return self._has_begun

    def begin(self, meta: Mapping[str, Any], at: int | None) -> NewThread:
        """Begin the session; a second description is of a copy."""
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
        """Note the folder of a session without one; return the folder."""
        if place and "cwd" not in self._thread.metadata:
            self._thread = replace(self._thread, metadata={**self._thread.metadata, "cwd": place})
        return text_in(self._thread.metadata.get("cwd"))

    def suggest_title(self, words: str) -> NewThread:
        """Name the thread by its first prompt, below an editor's context."""
        if words.lstrip().startswith(_EDITOR_CONTEXT):
            words = words.partition(_EDITOR_REQUEST)[2] or words
        if self._thread.title is None and (title := shorten_title(words)):
            self._thread = replace(self._thread, title=title)
        return self._thread

    def is_before_its_own(self, ordinal: Any) -> bool:
        """Return True if a sub-agent's record was inherited from its parent."""
        return self._own_from is not None and isinstance(ordinal, int) and ordinal < self._own_from

    def is_copied(self, at: int | None) -> bool:
        """Return True if a fork's record is a copy of its parent's."""
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


@dataclass(frozen=True, slots=True)
class Output:
    """The words of a result, with its facts and placeholders."""

    text: str
    has_failed: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    placeholders: tuple[Part, ...] = ()


def output_of(given: Any) -> Output:
    """Return the output of a call, whatever its shape."""
    if isinstance(given, str):
        return _of_text(given)
    if isinstance(given, list):
        return _of_parts(given)
    told = mapping_in(given)
    inner = told.get("content", told.get("output", told.get("content_items")))
    found = (
        _of_parts(inner) if isinstance(inner, list) else _of_text(text_in(inner) or words_of(inner))
    )
    has_failed = found.has_failed or told.get("success") is False or told.get("isError") is True
    return Output(found.text, has_failed, found.facts, placeholders=found.placeholders)


def _of_text(text: str) -> Output:
    if text.startswith("{"):
        told = read_arguments(text)
        if isinstance(told, dict) and isinstance(told.get("output"), str):
            return _of_exit(told["output"], mapping_in(told.get("metadata")))
    code = host_exit_code(text)
    return Output(text) if code is None else Output(text, code != 0, {"exit_code": code})


def _of_exit(text: str, metadata: Mapping[str, Any]) -> Output:
    code = metadata.get("exit_code")
    facts = {
        name: metadata[name]
        for name in ("exit_code", "duration_seconds")
        if isinstance(metadata.get(name), int | float)
    }
    return Output(text, isinstance(code, int) and not isinstance(code, bool) and code != 0, facts)


def _of_parts(items: list[Any]) -> Output:
    parts = parts_of(items)
    words = "\n".join(part.text for part in parts if part.type not in ("image", "file"))
    found = _of_text(words)
    return Output(
        found.text,
        found.has_failed,
        found.facts,
        placeholders=tuple(p for p in parts if p.type in ("image", "file")),
    )
