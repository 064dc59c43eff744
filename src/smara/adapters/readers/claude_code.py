"""Read a Claude Code transcript into threads and messages.

Every line yields exactly one record, but some wait: a queued prompt and the partial output
of a command may come again in a later record. They are kept back until it is clear whether
their text would be lost. The format is internal and changes, so no field is required.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smara.adapters.blocks import parts_of, usage_of, words_of
from smara.adapters.lines import (
    MAX_LINE_BYTES,
    JsonLine,
    LineReader,
    Recent,
    mapping_in,
    milliseconds,
    read_with,
    text_in,
)
from smara.adapters.readers.claude_code_records import (
    FROM_HOST,
    FROM_PERSON,
    FROM_PROMPT,
    FROM_SUMMARY,
    TOKEN_COUNTS,
    ClaudeThreads,
    compact_result,
    program_kind,
    voice_of_assistant_record,
    voice_of_user_record,
    words_of_others,
)
from smara.adapters.records import Counted, Identities, Progress, Record, bounded_id, has_content
from smara.messages.models import NewThread, Part, Role

__all__ = ["read_transcript"]


MAX_HELD = 256
MAX_OUTPUT_CHARS = 1_000_000

_OVERLAP_CHARS = 200


@dataclass(slots=True)
class PendingRecord:
    """A record that waits, with all it needs to become a message."""

    entry: JsonLine
    thread_id: str
    text: str
    created_at: int | None
    call_id: str | None = None
    is_program_text: bool = False
    is_taken_up: bool = False


class QueuedPrompts:
    """Prompts that were queued and have no record yet."""

    def __init__(self) -> None:
        self._waiting: list[PendingRecord] = []

    def add(self, held: PendingRecord) -> PendingRecord | None:
        """Add a prompt; return the oldest if there are too many."""
        self._waiting.append(held)
        return self._waiting.pop(0) if len(self._waiting) > MAX_HELD else None

    def sent(self, text: str) -> Counted | None:
        """Count the queued copy of a prompt that has its record."""
        for position, held in enumerate(self._waiting):
            if held.text.strip() == text.strip():
                del self._waiting[position]
                return Counted(
                    held.entry.line,
                    "queue-operation/enqueue",
                    "queued words, kept where they were sent",
                )
        return None

    def take_up(self, text: str) -> None:
        """Mark a prompt that left the queue during a turn.

        Without a name, the newest of a person.
        """
        for held in reversed(self._waiting):
            if (
                held.is_taken_up
                or (text and held.text != text)
                or (not text and held.is_program_text)
            ):
                continue
            held.is_taken_up = True
            return

    def pop_taken_up(self) -> list[PendingRecord]:
        """Those the model has now read without a record of their own."""
        taken = [held for held in self._waiting if held.is_taken_up]
        if taken:
            self._waiting = [held for held in self._waiting if not held.is_taken_up]
        return taken

    def pop_all(self) -> list[PendingRecord]:
        waiting, self._waiting = self._waiting, []
        return waiting


class RunningOutputs:
    """The latest output of each command that has no result yet."""

    def __init__(self) -> None:
        self._latest: OrderedDict[str, PendingRecord] = OrderedDict()

    def add(self, call_id: str, held: PendingRecord) -> PendingRecord | Counted | None:
        """Hold the newest output of a call, joined to the earlier one."""
        older = self._latest.pop(call_id, None)
        self._latest[call_id] = held
        if older is None:
            return self._latest.popitem(last=False)[1] if len(self._latest) > MAX_HELD else None
        joined = join_windows(older.text, held.text)
        if len(joined) > MAX_OUTPUT_CHARS:
            return older
        held.text = joined
        return _counted(older, "output of a running command, continued by a later record")

    def settle(self, call_id: str, result: str) -> PendingRecord | Counted | None:
        """Settle a call's output by its result.

        It is counted if the result has all of it, otherwise kept.
        """
        held = self._latest.pop(call_id, None)
        if held is None:
            return None
        if _has_all(result, held.text):
            return _counted(held, "output of a running command, contained in its result")
        return held

    def pop_all(self) -> list[PendingRecord]:
        waiting = list(self._latest.values())
        self._latest.clear()
        return waiting


def join_windows(older: str, newer: str) -> str:
    """Join two views of scrolling output: "ab", "bc" → "abc"."""
    overlap = older.rfind(newer[:_OVERLAP_CHARS])
    # The older view may end in the middle of a line, so the newer one replaces the overlap.
    return older[:overlap] + newer if overlap >= 0 else f"{older}\n{newer}"


def _has_all(whole: str, piece: str) -> bool:
    """Whether every line with a letter or digit in it stands in the whole as well."""
    missing = {line.strip() for line in piece.splitlines()} - {
        line.strip() for line in whole.splitlines()
    }
    return all(line in whole for line in missing if any(map(str.isalnum, line)))


def _counted(held: PendingRecord, reason: str) -> Counted:
    return Counted(held.entry.line, "progress/bash_progress", reason)


_BOOKKEEPING = {
    "file-history-snapshot": "which files can be restored; no words",
    "file-history-delta": "which files can be restored; no words",
    "last-prompt": "repeats the last prompt",
    "mode": "a setting of the session",
    "permission-mode": "a setting of the session",
    "agent-setting": "a setting of the session",
    "worktree-state": "a setting of the session",
    "content-replacement": "which outputs were stored elsewhere; no words",
    "pr-link": "a link to a pull request",
    "tag": "a label of the session",
}

_PROGRESS = {
    "hook_progress": "a hook was started; no words",
    "waiting_for_task": "the program waits for a background task",
    "bash_progress": "a running command without output",
}

_TITLES = {
    "summary": ("summary", FROM_SUMMARY),
    "ai-title": ("aiTitle", FROM_HOST),
    "agent-name": ("agentName", FROM_HOST),
    "custom-title": ("customTitle", FROM_PERSON),
}


def read_transcript(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Record]:
    """Read a transcript line by line into records.

    No content makes it raise; only a file that cannot be opened does. Reading a file
    again, also one that has grown, gives the same client ids for the same lines.
    """
    yield from read_with(
        _Transcript(Path(path).name.split(".")[0]), path, progress, max_line_bytes=max_line_bytes
    )


class _Transcript(LineReader):
    """What has to be remembered of a file while it is read."""

    def __init__(self, file_stem: str) -> None:
        self._threads = ClaudeThreads(file_stem)
        self._identities = Identities()
        self._queued = QueuedPrompts()
        self._running = RunningOutputs()
        self._tool_names: Recent[str] = Recent()
        self._told: dict[tuple[str, str], Any] = {}
        self._last_at: int | None = None
        self._readers: dict[str, Callable[[JsonLine], Iterator[Record]]] = {
            "user": self._read_user,
            "assistant": self._read_assistant,
            "system": self._read_system,
            "progress": self._read_progress,
            "queue-operation": self._read_queue,
            "attachment": self._read_attachment,
            **dict.fromkeys(_TITLES, self._read_title),
            **dict.fromkeys(_BOOKKEEPING, self._read_bookkeeping),
        }

    def take(self, entry: JsonLine) -> Iterator[Record]:
        reader = self._readers.get(text_in(entry.value.get("type")), self._read_unknown)
        yield from reader(entry)

    def finish(self) -> Iterator[Record]:
        for held in self._running.pop_all():
            yield self._keep_output(held)
        for held in self._queued.pop_all():
            yield self._keep_prompt(held)

    # One reader for each sort of record

    def _read_user(self, entry: JsonLine) -> Iterator[Record]:
        created_at, thread = self._place(entry)
        parts = self._spoken_parts(entry)
        role, kind = voice_of_user_record(entry.value, parts, thread.kind)
        words = "\n".join(part.text for part in parts if part.type == "text")
        if counted := self._queued.sent(words):
            yield counted
        yield from self._settle_outputs(parts)
        if role == "user" and words.strip():
            thread = self._threads.suggest_title(thread.id, words, FROM_PROMPT)
        metadata: dict[str, Any] = {"kind": kind}
        if entry.value.get("toolUseResult"):
            facts, outputs = compact_result(entry.value["toolUseResult"], parts)
            parts = (*parts, *outputs)
            metadata["tool_result"] = facts
            if agent_id := text_in(facts.get("agent_id")):
                metadata["agent_thread"] = self._threads.agent_thread_id(agent_id)
        yield self._keep(entry, thread, role, parts, metadata, created_at)

    def _read_assistant(self, entry: JsonLine) -> Iterator[Record]:
        for held in self._queued.pop_taken_up():
            yield self._keep_prompt(held)
        created_at, thread = self._place(entry)
        message = mapping_in(entry.value.get("message"))
        parts = self._spoken_parts(entry)
        role, kind = voice_of_assistant_record(entry.value)
        metadata: dict[str, Any] = {
            "kind": kind,
            "model": text_in(message.get("model")),
            "message_id": text_in(message.get("id")),
            "request_id": text_in(entry.value.get("requestId")),
            "stop_reason": text_in(message.get("stop_reason")),
        }
        if any(part.type == "reasoning" and not part.text.strip() for part in parts):
            metadata["reasoning"] = "withheld"
        if has_content(parts):
            usage = usage_of(message.get("usage"), TOKEN_COUNTS)
            if self._is_news(thread.id, "usage", (metadata["message_id"], usage)):
                metadata["usage"] = usage
        yield self._keep(entry, thread, role, parts, metadata, created_at)

    def _read_system(self, entry: JsonLine) -> Iterator[Record]:
        record = entry.value
        created_at, thread = self._place(entry)
        subtype = text_in(record.get("subtype")) or "notice"
        metadata: dict[str, Any] = {"kind": subtype}
        words = words_of(record.get("content"))
        if subtype == "compact_boundary":
            facts = mapping_in(record.get("compactMetadata"))
            tokens = facts.get("preTokens")
            metadata = {"kind": "compaction", "trigger": text_in(facts.get("trigger"))}
            metadata["pre_tokens"] = tokens if isinstance(tokens, int) else None
            metadata["parent"] = text_in(record.get("logicalParentUuid"))
            words = words or "Conversation compacted"
        elif subtype == "local_command":
            metadata["kind"] = program_kind(words) or subtype
        elif subtype == "stop_hook_summary":
            words = words or words_of([record.get("hookErrors"), record.get("stopReason")])
        else:
            words = words or words_of(record.get("error"))
        if words.strip():
            yield self._keep(entry, thread, "system", (Part("text", words),), metadata, created_at)
        else:
            yield Counted(
                entry.line, f"system/{subtype}"[:100], "a notice of the program without words"
            )

    def _read_progress(self, entry: JsonLine) -> Iterator[Record]:
        data = mapping_in(entry.value.get("data"))
        kind = text_in(data.get("type")) or "unnamed"
        inner = mapping_in(data.get("message"))
        output = text_in(data.get("fullOutput")) or text_in(data.get("output"))
        if inner.get("type") in ("user", "assistant"):
            yield from self._read_agent_message(entry, data, inner)
        elif kind == "bash_progress" and output.strip():
            created_at, thread = self._place(entry)
            call_id = text_in(entry.value.get("parentToolUseID"))
            settled = self._running.add(
                call_id,
                PendingRecord(
                    entry, thread.id, output, created_at=created_at, call_id=call_id or None
                ),
            )
            if settled is not None:
                yield settled if isinstance(settled, Counted) else self._keep_output(settled)
        else:
            reason = _PROGRESS.get(
                kind, "the progress of a tool; its result is a record of its own"
            )
            yield Counted(entry.line, f"progress/{kind}"[:100], reason)

    def _read_agent_message(
        self, entry: JsonLine, data: Mapping[str, Any], inner: Mapping[str, Any]
    ) -> Iterator[Record]:
        """A message of a sub-agent inside a progress record of its session.

        It has the uuid that it has in the sub-agent's own file, so that both are stored once.
        """
        call_id = text_in(entry.value.get("parentToolUseID"))
        agent_id = text_in(data.get("agentId")) or call_id or "unnamed"
        around = {
            key: entry.value.get(key)
            for key in ("sessionId", "cwd", "gitBranch", "version", "timestamp")
        }
        record = {**around, **inner, "isSidechain": True, "agentId": agent_id}
        agent_entry = replace(entry, value=record)
        thread = self._threads.of(record, milliseconds(record.get("timestamp")))
        self._threads.note(thread.id, call_id=call_id)
        yield from (
            self._read_user(agent_entry)
            if inner["type"] == "user"
            else self._read_assistant(agent_entry)
        )

    def _read_queue(self, entry: JsonLine) -> Iterator[Record]:
        created_at, thread = self._place(entry)
        operation = text_in(entry.value.get("operation")) or "unnamed"
        words = words_of(entry.value.get("content"))
        if operation == "enqueue" and words.strip():
            held = PendingRecord(
                entry,
                thread.id,
                words,
                created_at=created_at,
                is_program_text=program_kind(words) is not None,
            )
            if oldest := self._queued.add(held):
                yield self._keep_prompt(oldest)
            return
        if operation == "remove":
            self._queued.take_up(words)
        yield Counted(
            entry.line,
            f"queue-operation/{operation}"[:100],
            "how the queue of prompts changed; no words",
        )

    def _read_attachment(self, entry: JsonLine) -> Iterator[Record]:
        created_at, thread = self._place(entry)
        attachment = mapping_in(entry.value.get("attachment"))
        kind = text_in(attachment.get("type")) or "attachment"
        if kind == "queued_command":
            words = words_of(attachment.get("prompt"))
            if counted := self._queued.sent(words):
                yield counted
            program = program_kind(words)
            role: Role = "system" if program or thread.kind == "compaction" else "user"
            parts = parts_of(attachment.get("prompt"))
            yield self._keep(
                entry, thread, role, parts, {"kind": program or "queued_prompt"}, created_at
            )
            return
        words = words_of_others(attachment, kind)
        if words.strip():
            yield self._keep(
                entry, thread, "system", (Part("text", words),), {"kind": kind}, created_at
            )
            return
        is_ours = bool(words_of(attachment).strip())
        reason = "what memory told the agent itself" if is_ours else "an attachment without words"
        yield Counted(entry.line, f"attachment/{kind}"[:100], reason)

    def _read_title(self, entry: JsonLine) -> Iterator[Record]:
        kind = entry.value["type"]
        key, rank = _TITLES[kind]
        title = text_in(entry.value.get(key))
        if not title.strip():
            yield Counted(entry.line, kind, "a title without words")
        elif kind == "summary" and not self._threads.has_begun:
            self._threads.await_leaf(text_in(entry.value.get("leafUuid")), title)
            yield Counted(entry.line, kind, "a title for the thread of another record")
        else:
            _, thread = self._place(entry)
            thread = self._threads.suggest_title(thread.id, title, rank)
            yield Counted(entry.line, kind, "the title of its thread", thread=thread)

    def _read_bookkeeping(self, entry: JsonLine) -> Iterator[Record]:
        kind = entry.value["type"]
        yield Counted(entry.line, kind, _BOOKKEEPING[kind])

    def _read_unknown(self, entry: JsonLine) -> Iterator[Record]:
        kind = text_in(entry.value.get("type"))[:60] or "without a type"
        message = entry.value.get("message")
        parts = parts_of(mapping_in(message).get("content") or text_in(message)) if message else ()
        parts = parts or parts_of(words_of(entry.value))
        if not has_content(parts):
            yield Counted(entry.line, "unknown", f"unknown record type: {kind}")
            return
        created_at, thread = self._place(entry)
        yield self._keep(entry, thread, "system", parts, {"kind": kind}, created_at)

    # What the readers share

    def _place(self, entry: JsonLine) -> tuple[int | None, NewThread]:
        """When and where: a record without a time has the time of the one before it."""
        self._last_at = milliseconds(entry.value.get("timestamp")) or self._last_at
        return self._last_at, self._threads.of(entry.value, self._last_at)

    def _spoken_parts(self, entry: JsonLine) -> tuple[Part, ...]:
        message = entry.value.get("message", entry.value.get("content"))
        content = message.get("content") if isinstance(message, dict) else message
        return tuple(self._with_tool_name(part) for part in parts_of(content))

    def _with_tool_name(self, part: Part) -> Part:
        """Results do not say which tool they come from; their calls do."""
        if part.type == "tool_call" and part.call_id and part.name:
            self._tool_names[part.call_id] = part.name
        elif part.type == "tool_result" and part.call_id and part.name is None:
            return replace(part, name=self._tool_names.get(part.call_id))
        return part

    def _settle_outputs(self, parts: tuple[Part, ...]) -> Iterator[Record]:
        for part in parts:
            if part.type != "tool_result" or not part.call_id:
                continue
            settled = self._running.settle(part.call_id, part.text)
            if settled is not None:
                yield settled if isinstance(settled, Counted) else self._keep_output(settled)

    def _keep_output(self, held: PendingRecord) -> Record:
        part = Part(
            "tool_result",
            held.text,
            name=self._tool_names.get(held.call_id or ""),
            call_id=held.call_id,
        )
        metadata = {"kind": "running_output"}
        return self._keep(
            held.entry,
            self._threads.get(held.thread_id),
            "tool",
            (part,),
            metadata,
            held.created_at,
        )

    def _keep_prompt(self, held: PendingRecord) -> Record:
        kind = program_kind(held.text)
        role: Role = "system" if kind else "user"
        metadata = {"kind": kind or "queued_prompt"}
        parts = (Part("text", held.text),)
        return self._keep(
            held.entry, self._threads.get(held.thread_id), role, parts, metadata, held.created_at
        )

    def _keep(
        self,
        entry: JsonLine,
        thread: NewThread,
        role: Role,
        parts: tuple[Part, ...],
        metadata: dict[str, Any],
        created_at: int | None,
    ) -> Record:
        if not has_content(parts):
            kind = text_in(entry.value.get("type"))[:60]
            return Counted(
                entry.line, kind, "nothing was said" if not parts else "only white space"
            )
        uuid = text_in(entry.value.get("uuid"))
        client_id = bounded_id(uuid) if uuid else self._identities.of_line(thread.id, entry.raw)
        metadata.setdefault("parent", text_in(entry.value.get("parentUuid")))
        for key, name in (("gitBranch", "git_branch"), ("cwd", "cwd")):
            place = text_in(entry.value.get(key))
            self._told.setdefault((thread.id, key), thread.metadata.get(name))
            if place and self._is_news(thread.id, key, place):
                metadata[name] = place
        return self._identities.keep(
            entry.line,
            thread,
            role,
            parts,
            client_id=client_id,
            created_at=created_at,
            metadata=metadata,
            repairs=entry.repairs,
        )

    def _is_news(self, thread_id: str, key: str, value: Any) -> bool:
        """Whether this differs from what the thread's messages said last."""
        is_news = bool(self._told.get((thread_id, key)) != value)
        self._told[thread_id, key] = value
        return is_news
