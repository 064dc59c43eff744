"""Read a Codex CLI rollout into threads and messages.

A rollout is one thread; that of a sub-agent names its parent, and a fork begins with a copy of the
thread it left. Codex writes most things twice: as an item for the model and as an event for its
screen. An event is kept back until its item has come; without one it becomes a message when its
turn ends. Three shapes are read: lines with a payload, bare items, and one JSON document. Codex
sends its environment and instruction files as user messages; such text gets the role "system" with
a kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from smara.actions.tool_output import exit_code_field, host_exit_code
from smara.adapters.blocks import first_text, parts_of, read_arguments, text_parts, words_of
from smara.adapters.lines import (
    Document,
    JsonLine,
    given,
    list_in,
    mapping_in,
    milliseconds,
    text_in,
)
from smara.adapters.readers.transcript import Pending, Recent, Transcript
from smara.adapters.records import Record, bounded_id
from smara.core.memory_block import without_memory_blocks
from smara.core.startup.record import dataclass, field, replace
from smara.core.startup.regex import re, regex
from smara.messages.models import NewThread, Part, PartType, Role, ThreadKind

MAX_WAITING = 256

_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
    "web_search_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "mcp_call": "arguments",
}
_UNNAMED_CALLS = tuple(
    name for name in _CALLS if name not in ("function_call", "custom_tool_call", "mcp_call")
)
_RESULTS = (
    "shell_call_output",
    "apply_patch_call_output",
    "computer_call_output",
    "function_call_output",
    "custom_tool_call_output",
    "tool_search_output",
    "local_shell_call_output",
)
_BOOKKEEPING = {
    "turn_context": "the settings of a turn",
    "world_state": "what the program knows of its surroundings",
    "token_usage_record": "how many tokens were used",
    "security_risk_score": "an assessment of the program",
    "inter_agent_communication_metadata": "how a message between agents was sent",
    "ghost_snapshot": "which files can be restored; no words",
    "compaction": "a summary that only the model can read",
    "context_compaction": "a summary that only the model can read",
    "additional_tools": "which tools there were",
}
_EVENT_BOOKKEEPING = {
    "token_count": "how many tokens were used",
    "task_started": "where a turn began",
    "turn_started": "where a turn began",
    "task_complete": "where a turn ended",
    "turn_complete": "where a turn ended",
    "turn_aborted": "where a turn was broken off",
    "thread_rolled_back": "turns were taken back; they stay stored",
    "thread_settings_applied": "a setting of the session",
    "thread_goal_updated": "a setting of the session",
    "thread_name_updated": "a setting of the session",
    "context_compacted": "where the conversation was compacted",
    "sub_agent_activity": "the progress of a sub-agent, which has its own file",
    "web_search_end": "the end of a search, which is an item of its own",
    "image_generation_end": "the end of an image",
}
_TURN_ENDS = ("task_complete", "turn_complete", "turn_aborted", "task_started", "turn_started")
_SPOKEN_EVENTS: dict[str, tuple[str, Role, PartType]] = {
    "user_message": ("message", "user", "text"),
    "agent_message": ("message", "assistant", "text"),
    "agent_reasoning": ("text", "assistant", "reasoning"),
    "agent_reasoning_raw_content": ("text", "assistant", "reasoning"),
}
_ENDED_CALLS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end")
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
_OUTSIDE = regex(r"\A<external_[\w-]+>.*</external_[\w-]+>\Z", re.S)
_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "developer": "system",
    "system": "system",
}
_FILE_NAME = regex(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-fA-F-]{8,36})")
_EDITOR_CONTEXT, _EDITOR_REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_COPIED_WITHIN_MS = 2_000


_PLACE = regex(r"<cwd>([^<\n]+)</cwd>|^\s*Current working directory: (.+)$", re.M)


def place_in(text: str) -> str:
    """Return the working folder that a text names, or ""."""
    place = _PLACE.search(text) if text.lstrip().startswith("<environment_context>") else None
    return (place[1] or place[2]).strip() if place else ""


def program_kind(text: str) -> str | None:
    """Return the kind of a program's text; None for a person's."""
    stripped = text.strip()
    if stripped.startswith("<external_") and _OUTSIDE.match(stripped):
        return "additional_context"
    return next((kind for opening, kind in _OPENINGS if stripped.startswith(opening)), None)


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


class Rollout(Transcript):
    """One session of Codex, or OpenAI's items alone, being read."""

    host = "codex"
    document_list = "items"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if named := _FILE_NAME.match(path.name):
            self.thread = replace(self.thread, id=bounded_id(named[1]))
        self._is_fork = False
        self._began_at: int | None = None
        self._own_from: int | None = None  # where a sub-agent's own records begin
        self._item_marks: set[bytes] = set()  # the texts and calls seen as items
        self._waiting: dict[bytes, Pending] = {}
        self._failed: Recent[bool] = Recent()
        self._model = ""
        self._marks_turns = False
        self._readers: dict[str, Callable[[JsonLine, Mapping[str, Any]], Iterator[Record]]] = {
            "session_meta": self._read_meta,
            "compacted": self._read_compacted,
            "event_msg": self._read_event,
            "message": self._read_message,
            "agent_message": self._read_agent_message,
            "inter_agent_communication": self._read_agent_message,
            "reasoning": self._read_reasoning,
            "image_generation_call": self._read_image,
            **dict.fromkeys(_CALLS, self._read_call),
            **dict.fromkeys(_RESULTS, self._read_result),
            **dict.fromkeys(_BOOKKEEPING, self._read_bookkeeping),
        }

    def begin_document(self, document: Document) -> Iterator[Record]:
        """Begin the oldest shape: one object with the session and all items."""
        session = mapping_in(mapping_in(document.around).get("session"))
        if session:
            self.at = milliseconds(session.get("timestamp"))
            self._begin(session)
        return iter(())

    def take(self, entry: JsonLine) -> Iterator[Record]:
        """Read one line: with a payload, or the item itself."""
        value = entry.value
        self.at = milliseconds(value.get("timestamp")) or self.at
        kind, payload, ordinal = (
            text_in(value.get("type")),
            value.get("payload"),
            value.get("ordinal"),
        )
        is_inherited = isinstance(ordinal, int) and ordinal < (self._own_from or 0)
        if is_inherited and value.get("type") != "session_meta":
            reason = "what a sub-agent was given of its parent, which has its own file"
            yield self.count(entry, "inherited", reason)
        elif not isinstance(payload, dict) and not kind and not self.has_begun and "id" in value:
            yield from self._read_meta(entry, value)
        elif not isinstance(payload, dict) and not kind and "record_type" in value:
            yield self.count(entry, "state", "a mark of the program without words")
        else:
            item = payload if isinstance(payload, dict) else value
            if item is value or kind in ("response_item", "response"):
                kind = text_in(item.get("type"))
            yield from self._readers.get(kind, self._read_unknown)(entry, item)

    def finish(self) -> Iterator[Record]:
        """Yield what still waits, if its turn has ended.

        The rest is left for the next time.

        Older versions do not say where turns end, and their files are seldom still being written.
        """
        for waiting in self._waiting.values():
            if waiting.is_due or not self._marks_turns:
                yield self._keep_waiting(waiting)
            else:
                reason = (
                    "told for the screen only, in a turn that has not ended; import again later"
                )
                yield self.count(waiting.entry, f"event_msg/{waiting.kind}", reason)

    # What describes the session

    def _begin(self, meta: Mapping[str, Any]) -> None:
        self.has_begun = True
        self._began_at = milliseconds(meta.get("timestamp")) or self.at
        self._is_fork = bool(text_in(meta.get("forked_from_id")))
        own_from = meta.get("subagent_history_start_ordinal")
        self._own_from = own_from if isinstance(own_from, int) else None
        source = mapping_in(meta.get("source")).get("subagent")
        spawn = mapping_in(mapping_in(source).get("thread_spawn"))
        parent = first_text(meta, "parent_thread_id") or first_text(spawn, "parent_thread_id")
        kind: ThreadKind = "subagent" if source or parent else "conversation"
        kind = "compaction" if source == "compact" else kind
        role = first_text(meta, "agent_role") or first_text(spawn, "agent_role")
        git = mapping_in(meta.get("git"))
        thread_id = bounded_id(text_in(meta.get("id")) or self.thread.id)
        is_agent = kind != "conversation"
        self.thread = NewThread(
            thread_id,
            metadata=given(
                self.thread.metadata,
                cwd=text_in(meta.get("cwd")),
                version=text_in(meta.get("cli_version")),
                originator=text_in(meta.get("originator")),
                git_branch=text_in(git.get("branch")),
                git_commit=text_in(git.get("commit_hash")),
                forked_from=text_in(meta.get("forked_from_id")),
                agent_name=first_text(meta, "agent_nickname")
                or first_text(spawn, "agent_nickname"),
                agent_type=role or text_in(source),
                agent_id=is_agent and thread_id,
                session=is_agent and (text_in(meta.get("session_id")) or parent),
            ),
            kind=kind,
            parent_id=bounded_id(parent) if parent else None,
            created_at=self._began_at,
            title="Compaction" if kind == "compaction" else None,
        )

    def _read_meta(self, entry: JsonLine, meta: Mapping[str, Any]) -> Iterator[Record]:
        self.at = milliseconds(meta.get("timestamp")) or self.at
        reason = "describes the session again, or the one it was copied from"
        if not self.has_begun:
            self._begin(meta)
            self.place = text_in(self.thread.metadata.get("cwd"))
            reason = "describes the session"
        yield self.count(entry, "session_meta", reason)

    def _read_compacted(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        if parts := text_parts(text_in(item.get("message"))):
            yield self._keep(entry, item, "system", parts=parts, kind="compaction_summary")
        else:
            yield self.count(entry, "compacted", "where the conversation was compacted")

    def _read_bookkeeping(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        kind = _kind_of(entry, item)
        if kind == "turn_context":
            self._model = text_in(item.get("model")) or self._model
            self.place = text_in(item.get("cwd")) or self.place
        yield self.count(
            entry, kind, _BOOKKEEPING.get(kind, "a record of the program without words")
        )

    # What was said and done

    def _read_message(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        parts = parts_of(item.get("content"))
        role, kind = voice_of(text_in(item.get("role")), parts, self.thread.kind)
        texts = [part.text for part in parts if part.type == "text"]
        words = "\n".join(texts)
        if role == "system" and words.strip() and not without_memory_blocks(words).strip():
            yield self.count(entry, "message/hook", "what memory told the agent itself")
            return
        yield from self._settle({words, *texts})
        if role == "user" and words.strip():
            self.suggest_title(words)
        elif kind == "environment" and not self.place:
            # The first versions say it nowhere else.
            self.place = text_in(self.thread.metadata.get("cwd")) or place_in(words)
            if self.place:
                self.thread = replace(
                    self.thread, metadata={**self.thread.metadata, "cwd": self.place}
                )
        yield self._keep(
            entry,
            item,
            role,
            parts=parts,
            kind=kind,
            phase=text_in(item.get("phase")),
            model=self._model if role == "assistant" else None,
        )

    def suggest_title(self, words: str, *, is_given: bool = False) -> None:
        """Name the thread by its first prompt, below an editor's context."""
        if words.lstrip().startswith(_EDITOR_CONTEXT):
            words = words.partition(_EDITOR_REQUEST)[2] or words
        super().suggest_title(words, is_given=is_given)

    def _read_agent_message(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        content = item.get("content")
        if isinstance(content, list):
            content = [
                block for block in content if mapping_in(block).get("type") != "encrypted_content"
            ]
        parts = tuple(part for part in parts_of(content) if part.text.strip())
        if not parts:
            yield self.count(
                entry, "agent_message", "words between agents that only the model can read"
            )
            return
        is_prompt = self.thread.kind == "subagent"
        yield self._keep(
            entry,
            item,
            "user" if is_prompt else "system",
            parts=parts,
            kind="agent_prompt" if is_prompt else "agent_message",
            author=text_in(item.get("author")),
            recipient=text_in(item.get("recipient")),
        )

    def _read_reasoning(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        blocks = (*list_in(item.get("summary")), *list_in(item.get("content")))
        texts = [text for text in map(words_of, blocks) if text.strip()]
        if not texts:
            yield self.count(entry, "reasoning", "reasoning that the host withholds")
            return
        yield from self._settle({*texts, "\n".join(texts)})
        yield self._keep(
            entry, item, "assistant", parts=tuple(Part("reasoning", text) for text in texts)
        )

    def _read_call(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        kind = _kind_of(entry, item)
        call_id = first_text(item, "call_id", "id") or None
        is_named = kind not in _UNNAMED_CALLS
        name = text_in(item.get("name")) if is_named else kind.removesuffix("_call")
        namespace = text_in(item.get("namespace"))
        if namespace.startswith("mcp__") and not name.startswith("mcp__"):
            name = f"{namespace.rstrip('_')}__{name}"
        arguments = read_arguments(item.get(_CALLS.get(kind, "arguments")))
        if isinstance(arguments, str):
            arguments = {"input": arguments}  # a patch, or a program of its own: text and no object
        if call_id and name:
            self.tool_names[call_id] = name
        parts = [Part("tool_call", name=name or None, call_id=call_id, arguments=arguments)]
        if kind == "mcp_call" and (words := words_of([item.get("output"), item.get("error")])):
            # A server's call has its result in it.
            is_error = bool(item.get("error"))
            parts.append(Part("tool_result", words, call_id=call_id, is_error=is_error))
        yield self._keep(
            entry, item, "assistant", parts=tuple(parts), status=text_in(item.get("status"))
        )

    def _read_result(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        call_id = text_in(item.get("call_id"))
        output = output_of(item.get("output", item.get("tools")))
        yield from self._settle({f"call {call_id}"} if call_id else ())
        part = Part(
            "tool_result",
            output.text,
            name=text_in(item.get("name")) or self.tool_names.get(call_id),
            call_id=call_id or None,
            is_error=output.has_failed or self._failed.pop(call_id, False),
        )
        yield self._keep(
            entry, item, "tool", parts=(part, *output.placeholders), tool_result=dict(output.facts)
        )

    def _read_image(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        block = {
            "type": "image",
            "data": text_in(item.get("result")),
            "text": text_in(item.get("revised_prompt")),
        }
        yield self._keep(entry, item, "assistant", parts=parts_of(block), kind="image_generation")

    def _read_unknown(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        kind = text_in(item.get("type")) or text_in(entry.value.get("type")) or "without a type"
        if parts := text_parts(words_of(item)):
            yield self._keep(entry, item, "system", parts=parts, kind=kind[:60])
        else:
            yield self.count(entry, "unknown", f"unknown record type: {kind[:60]}")

    # Events, which mostly repeat items

    def _read_event(self, entry: JsonLine, event: Mapping[str, Any]) -> Iterator[Record]:
        kind = text_in(event.get("type")) or "unnamed"
        item = mapping_in(event.get("item"))
        if kind in _TURN_ENDS:
            self._marks_turns = True
            for waiting in self._waiting.values():
                waiting.is_due = True  # no item will come
        if kind in _EVENT_BOOKKEEPING:
            yield self.count(entry, f"event_msg/{kind}", _EVENT_BOOKKEEPING[kind])
        elif kind in _SPOKEN_EVENTS:
            key, role, type_ = _SPOKEN_EVENTS[kind]
            part = Part(type_, text_in(event.get(key)))
            yield from self._hold(entry, kind, part.text, role=role, part=part)
        elif kind in _ENDED_CALLS:
            yield from self._read_ended_call(entry, kind, event)
        elif kind == "item_completed":
            type_of_item, words = text_in(item.get("type")) or "item", text_in(item.get("text"))
            if type_of_item.lower() == "plan" and words.strip():
                part = Part("text", words)
                yield from self._hold(entry, "plan", words, role="assistant", part=part)
            else:
                yield self._repeated(entry, f"item_completed/{type_of_item}")
        else:
            part = Part("text", words_of(event))
            yield from self._hold(entry, kind, part.text, role="system", part=part)

    def _read_ended_call(
        self, entry: JsonLine, kind: str, event: Mapping[str, Any]
    ) -> Iterator[Record]:
        call_id = text_in(event.get("call_id"))
        code, result = event.get("exit_code"), mapping_in(event.get("result"))
        self._failed[call_id] = has_failed = (
            (isinstance(code, int) and code != 0)
            or event.get("success") is False
            or "Err" in result
            or mapping_in(result.get("Ok")).get("isError") is True
        )
        output = (
            text_in(event.get("aggregated_output"))
            or words_of([event.get("stdout"), event.get("stderr")])
            or words_of(result.get("Ok"))
            or text_in(result.get("Err"))
        )
        tool = "Bash" if kind == "exec_command_end" else kind.removesuffix("_end")
        name = self.tool_names.get(call_id) or tool
        part = Part("tool_result", output, name=name, call_id=call_id or None, is_error=has_failed)
        yield from self._hold(entry, kind, f"call {call_id}", role="tool", part=part)

    def _settle(self, marks: Iterable[str]) -> Iterator[Record]:
        """An item has come: count the events that wait for it."""
        for mark in map(_digest, marks):
            self._item_marks.add(mark)
            if mark in self._waiting:
                waiting = self._waiting.pop(mark)
                yield self._repeated(waiting.entry, waiting.kind)

    def _hold(
        self, entry: JsonLine, kind: str, mark: str, *, role: Role, part: Part
    ) -> Iterator[Record]:
        """Hold an event until its item comes, unless it has come."""
        digest = _digest(mark)
        if not mark.strip():
            yield self.count(entry, f"event_msg/{kind}", "an event of the program without words")
        elif digest in self._item_marks or digest in self._waiting:
            yield self._repeated(entry, kind)
        else:
            self._waiting[digest] = Pending(entry, role, part, kind=kind, created_at=self.at)
            if len(self._waiting) > MAX_WAITING:
                yield self._keep_waiting(self._waiting.pop(next(iter(self._waiting))))

    def _repeated(self, entry: JsonLine, kind: str) -> Record:
        reason = "told again for the screen; kept where the model read it"
        return self.count(entry, f"event_msg/{kind}", reason)

    def _keep_waiting(self, waiting: Pending) -> Record:
        role, kind = waiting.role, waiting.kind
        if role == "user":
            role, program = voice_of("user", (waiting.part,), self.thread.kind)
            kind = program or kind
            if role == "user":
                self.suggest_title(waiting.part.text)
        now, self.at = self.at, waiting.created_at
        record = self._keep(waiting.entry, {}, role, parts=(waiting.part,), kind=kind)
        self.at = now
        return record

    def _keep(
        self,
        entry: JsonLine,
        item: Mapping[str, Any],
        role: Role,
        *,
        parts: tuple[Part, ...],
        **metadata: Any,
    ) -> Record:
        thread, began = self.thread, self._began_at
        # A fork's copy of its parent is written at once, when it begins.
        is_copied = self._is_fork and (
            self.at is not None and began is not None and self.at - began <= _COPIED_WITHIN_MS
        )
        return self.keep(
            entry,
            role,
            parts,
            unit=text_in(item.get("id")) or self.identities.of_line(thread.id, entry.raw),
            label=_kind_of(entry, item)[:100] or "message",
            inherited=is_copied,
            **metadata,
        )


def _digest(mark: str) -> bytes:
    return hashlib.blake2b(mark.strip().encode("utf-8", "replace"), digest_size=16).digest()


def _kind_of(entry: JsonLine, item: Mapping[str, Any]) -> str:
    """The type of an item; of one that stands in a payload of its own kind, that of the line."""
    kind = text_in(item.get("type"))
    return (
        kind if kind in _CALLS or kind in _BOOKKEEPING else text_in(entry.value.get("type")) or kind
    )


@dataclass(frozen=True, slots=True)
class Output:
    """The words of a result, with its facts and placeholders."""

    text: str
    has_failed: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    placeholders: tuple[Part, ...] = ()


def output_of(given: Any) -> Output:
    """Return the output of a call, whatever its shape."""
    if isinstance(given, list):
        parts = parts_of(given)
        words = "\n".join(part.text for part in parts if part.type not in ("image", "file"))
        placeholders = tuple(part for part in parts if part.type in ("image", "file"))
        return replace(output_of(words), placeholders=placeholders)
    if not isinstance(given, str):
        fields = mapping_in(given)
        inner = fields.get("content", fields.get("output", fields.get("content_items")))
        output = output_of(inner if isinstance(inner, list) else text_in(inner) or words_of(inner))
        has_failed = fields.get("success") is False or fields.get("isError") is True
        return replace(output, has_failed=output.has_failed or has_failed)
    wrapped = mapping_in(read_arguments(given)) if given.startswith("{") else {}
    if isinstance(wrapped.get("output"), str):
        about = mapping_in(wrapped.get("metadata"))
        facts = {
            name: about[name]
            for name in ("exit_code", "duration_seconds")
            if isinstance(about.get(name), int | float)
        }
        return Output(wrapped["output"], bool(exit_code_field(about)), facts)
    code = host_exit_code(given)
    return Output(given) if code is None else Output(given, code != 0, {"exit_code": code})


read_rollout = Rollout.read
