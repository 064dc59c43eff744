"""Read a Claude Code transcript into threads and messages.

Every line yields exactly one record, but some wait: a queued prompt and the partial output
of a command may come again in a later record. They are kept back until it is clear whether
their text would be lost. The format is internal and changes, so no field is required.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from smara.adapters.blocks import parts_of, text_parts, usage_of, words_of
from smara.adapters.lines import JsonLine, mapping_in, milliseconds, text_in
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
from smara.adapters.readers.transcript import Transcript
from smara.adapters.records import Counted, Record, has_content
from smara.messages.models import NewThread, Part, Role

__all__ = ["read_transcript"]


MAX_WAITING = 256
MAX_OUTPUT_CHARS = 1_000_000

_OVERLAP_CHARS = 200
_AROUND = ("sessionId", "cwd", "gitBranch", "version", "timestamp")

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


class _ClaudeTranscript(Transcript):
    host = "claude-code"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._threads = ClaudeThreads(self.thread.id)
        self._queued: list[PendingRecord] = []  # prompts that have no record yet
        self._running: dict[str, PendingRecord] = {}  # the latest output of calls without a result
        self._last_facts: dict[tuple[str, str], Any] = {}
        self._readers: dict[str, Callable[[JsonLine], Iterator[Record]]] = {
            "user": self._read_user,
            "assistant": self._read_assistant,
            "system": self._read_system,
            "progress": self._read_progress,
            "queue-operation": self._read_queue,
            "attachment": self._read_attachment,
            **dict.fromkeys(_TITLES, self._read_title),
        }

    def take(self, entry: JsonLine) -> Iterator[Record]:
        kind = text_in(entry.value.get("type"))
        if kind in _BOOKKEEPING:
            yield Counted(entry.line, kind, _BOOKKEEPING[kind])
        else:
            yield from self._readers.get(kind, self._read_unknown)(entry)

    def finish(self) -> Iterator[Record]:
        yield from map(self._keep_output, self._running.values())
        yield from map(self._keep_prompt, self._queued)

    # One reader for each sort of record

    def _read_user(self, entry: JsonLine) -> Iterator[Record]:
        thread = self._place(entry)
        parts = self._spoken_parts(entry)
        role, kind = voice_of_user_record(entry.value, parts, thread.kind)
        words = "\n".join(part.text for part in parts if part.type == "text")
        yield from self._settle_prompt(words)
        for part in parts:
            call_id = part.call_id or ""
            if part.type == "tool_result" and call_id in self._running:
                waiting = self._running.pop(call_id)
                is_told = _has_all(part.text, waiting.text)
                reason = "output of a running command, contained in its result"
                yield _count_output(waiting, reason) if is_told else self._keep_output(waiting)
        if role == "user" and words.strip():
            thread = self._threads.suggest_title(thread.id, words, FROM_PROMPT)
        metadata: dict[str, Any] = {}
        if entry.value.get("toolUseResult"):
            facts, outputs = compact_result(entry.value["toolUseResult"], parts)
            parts = (*parts, *outputs)
            metadata["tool_result"] = facts
            if agent_id := text_in(facts.get("agent_id")):
                metadata["agent_thread"] = self._threads.agent_thread_id(agent_id)
        yield self._keep(entry, role, parts, thread=thread, kind=kind, **metadata)

    def _read_assistant(self, entry: JsonLine) -> Iterator[Record]:
        # Prompts that left the queue were read by the model without a record of their own.
        for waiting in [each for each in self._queued if each.is_taken_up]:
            self._queued.remove(waiting)
            yield self._keep_prompt(waiting)
        thread = self._place(entry)
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
        yield self._keep(entry, role, parts, thread=thread, **metadata)

    def _read_system(self, entry: JsonLine) -> Iterator[Record]:
        record = entry.value
        thread = self._place(entry)
        subtype = text_in(record.get("subtype")) or "notice"
        metadata: dict[str, Any] = {"kind": subtype}
        words = words_of(record.get("content"))
        if subtype == "compact_boundary":
            facts = mapping_in(record.get("compactMetadata"))
            tokens = facts.get("preTokens")
            metadata = {
                "kind": "compaction",
                "trigger": text_in(facts.get("trigger")),
                "pre_tokens": tokens if isinstance(tokens, int) else None,
                "parent": text_in(record.get("logicalParentUuid")),
            }
            words = words or "Conversation compacted"
        elif subtype == "local_command":
            metadata["kind"] = program_kind(words) or subtype
        elif subtype == "stop_hook_summary":
            words = words or words_of([record.get("hookErrors"), record.get("stopReason")])
        else:
            words = words or words_of(record.get("error"))
        if words.strip():
            yield self._keep(entry, "system", text_parts(words), thread=thread, **metadata)
        else:
            reason = "a notice of the program without words"
            yield Counted(entry.line, f"system/{subtype}"[:100], reason)

    def _read_progress(self, entry: JsonLine) -> Iterator[Record]:
        data = mapping_in(entry.value.get("data"))
        kind = text_in(data.get("type")) or "unnamed"
        inner = mapping_in(data.get("message"))
        output = text_in(data.get("fullOutput")) or text_in(data.get("output"))
        call_id = text_in(entry.value.get("parentToolUseID"))
        if inner.get("type") in ("user", "assistant"):
            # A message of a sub-agent inside a progress record of its session. It has the uuid
            # that it has in the sub-agent's own file, so that both are stored once.
            agent_id = text_in(data.get("agentId")) or call_id or "unnamed"
            around = {key: entry.value.get(key) for key in _AROUND}
            record = {**around, **inner, "isSidechain": True, "agentId": agent_id}
            thread = self._threads.of(record, milliseconds(record.get("timestamp")))
            self._threads.note(thread.id, call_id=call_id)
            read = self._read_user if inner["type"] == "user" else self._read_assistant
            yield from read(replace(entry, value=record))
        elif kind == "bash_progress" and output.strip():
            thread = self._place(entry)
            newer = PendingRecord(
                entry, thread.id, output, created_at=self.at, call_id=call_id or None
            )
            older = self._running.pop(call_id, None)
            self._running[call_id] = newer
            joined = join_windows(older.text, output) if older else output
            if older is None and len(self._running) > MAX_WAITING:
                yield self._keep_output(self._running.pop(next(iter(self._running))))
            elif older is not None and len(joined) > MAX_OUTPUT_CHARS:
                yield self._keep_output(older)
            elif older is not None:
                newer.text = joined
                reason = "output of a running command, continued by a later record"
                yield _count_output(older, reason)
        else:
            reason = _PROGRESS.get(
                kind, "the progress of a tool; its result is a record of its own"
            )
            yield Counted(entry.line, f"progress/{kind}"[:100], reason)

    def _read_queue(self, entry: JsonLine) -> Iterator[Record]:
        thread = self._place(entry)
        operation = text_in(entry.value.get("operation")) or "unnamed"
        words = words_of(entry.value.get("content"))
        if operation == "enqueue" and words.strip():
            is_program_text = program_kind(words) is not None
            self._queued.append(
                PendingRecord(
                    entry,
                    thread.id,
                    words,
                    created_at=self.at,
                    is_program_text=is_program_text,
                )
            )
            if len(self._queued) > MAX_WAITING:
                yield self._keep_prompt(self._queued.pop(0))
            return
        if operation == "remove":
            # A prompt left the queue during a turn; without words, the newest of a person.
            for waiting in reversed(self._queued):
                is_meant = waiting.text == words if words else not waiting.is_program_text
                if is_meant and not waiting.is_taken_up:
                    waiting.is_taken_up = True
                    break
        reason = "how the queue of prompts changed; no words"
        yield Counted(entry.line, f"queue-operation/{operation}"[:100], reason)

    def _read_attachment(self, entry: JsonLine) -> Iterator[Record]:
        thread = self._place(entry)
        attachment = mapping_in(entry.value.get("attachment"))
        kind = text_in(attachment.get("type")) or "attachment"
        if kind == "queued_command":
            words = words_of(attachment.get("prompt"))
            yield from self._settle_prompt(words)
            program = program_kind(words)
            role: Role = "system" if program or thread.kind == "compaction" else "user"
            parts = parts_of(attachment.get("prompt"))
            kind = program or "queued_prompt"
            yield self._keep(entry, role, parts, thread=thread, kind=kind)
        elif parts := text_parts(words_of_others(attachment, kind)):
            yield self._keep(entry, "system", parts, thread=thread, kind=kind)
        else:
            is_ours = bool(words_of(attachment).strip())
            reason = (
                "what memory told the agent itself" if is_ours else "an attachment without words"
            )
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
            thread = self._threads.suggest_title(self._place(entry).id, title, rank)
            yield Counted(entry.line, kind, "the title of its thread", thread=thread)

    def _read_unknown(self, entry: JsonLine) -> Iterator[Record]:
        kind = text_in(entry.value.get("type"))[:60] or "without a type"
        message = entry.value.get("message")
        parts = parts_of(mapping_in(message).get("content") or text_in(message)) if message else ()
        parts = parts or parts_of(words_of(entry.value))
        if has_content(parts):
            yield self._keep(entry, "system", parts, thread=self._place(entry), kind=kind)
        else:
            yield Counted(entry.line, "unknown", f"unknown record type: {kind}")

    # What the readers share

    def _place(self, entry: JsonLine) -> NewThread:
        """Take the time of a record, and return its thread."""
        self.at = milliseconds(entry.value.get("timestamp")) or self.at
        return self._threads.of(entry.value, self.at)

    def _spoken_parts(self, entry: JsonLine) -> tuple[Part, ...]:
        message = entry.value.get("message", entry.value.get("content"))
        content = message.get("content") if isinstance(message, dict) else message
        parts = []
        for part in parts_of(content):
            # Results do not say which tool they come from; their calls do.
            if part.type == "tool_call" and part.call_id and part.name:
                self.tool_names[part.call_id] = part.name
            elif part.type == "tool_result" and part.call_id and part.name is None:
                part = replace(part, name=self.tool_names.get(part.call_id))
            parts.append(part)
        return tuple(parts)

    def _settle_prompt(self, words: str) -> Iterator[Record]:
        """Count the queued copy of a prompt that has its record."""
        for position, waiting in enumerate(self._queued):
            if waiting.text.strip() == words.strip():
                del self._queued[position]
                reason = "queued words, kept where they were sent"
                yield Counted(waiting.entry.line, "queue-operation/enqueue", reason)
                return

    def _keep_output(self, waiting: PendingRecord) -> Record:
        part = Part(
            "tool_result",
            waiting.text,
            name=self.tool_names.get(waiting.call_id or ""),
            call_id=waiting.call_id,
        )
        return self._keep_waiting(waiting, "tool", part, kind="running_output")

    def _keep_prompt(self, waiting: PendingRecord) -> Record:
        kind = program_kind(waiting.text)
        part = Part("text", waiting.text)
        return self._keep_waiting(
            waiting, "system" if kind else "user", part, kind=kind or "queued_prompt"
        )

    def _keep_waiting(self, waiting: PendingRecord, role: Role, part: Part, *, kind: str) -> Record:
        now, self.at = self.at, waiting.created_at
        thread = self._threads.get(waiting.thread_id)
        record = self._keep(waiting.entry, role, (part,), thread=thread, kind=kind)
        self.at = now
        return record

    def _keep(
        self,
        entry: JsonLine,
        role: Role,
        parts: tuple[Part, ...],
        *,
        thread: NewThread,
        **metadata: Any,
    ) -> Record:
        if not has_content(parts):
            kind = text_in(entry.value.get("type"))[:60]
            return Counted(
                entry.line, kind, "nothing was said" if not parts else "only white space"
            )
        unit = text_in(entry.value.get("uuid")) or self.identities.of_line(thread.id, entry.raw)
        metadata.setdefault("parent", text_in(entry.value.get("parentUuid")))
        for key, name in (("gitBranch", "git_branch"), ("cwd", "cwd")):
            place = text_in(entry.value.get(key))
            self._last_facts.setdefault((thread.id, key), thread.metadata.get(name))
            if place and self._is_news(thread.id, key, place):
                metadata[name] = place
        return self.keep(entry, role, parts, unit=unit, thread=thread, **metadata)

    def _is_news(self, thread_id: str, key: str, value: Any) -> bool:
        """Whether this differs from what the thread's messages said last."""
        is_news = bool(self._last_facts.get((thread_id, key)) != value)
        self._last_facts[thread_id, key] = value
        return is_news


def _count_output(waiting: PendingRecord, reason: str) -> Counted:
    return Counted(waiting.entry.line, "progress/bash_progress", reason)


read_transcript = _ClaudeTranscript.read
