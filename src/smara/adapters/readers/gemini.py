"""Read a Gemini CLI chat into threads and messages.

A record holds an answer with all its thoughts and calls and is written again when it grows.
So each answer, call and result is a message with an id of its own: a repeat is stored once,
an addition is new. `project_root_of` resolves the folder that a chat belongs to.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from smara.actions.tool_output import failure_in
from smara.adapters.blocks import parts_of, text_parts, usage_of, words_of
from smara.adapters.documents import elements, entry_of, is_document
from smara.adapters.hook_output import own_words, words_of_hooks
from smara.adapters.lines import (
    MAX_LINE_BYTES,
    JsonLine,
    decode,
    list_in,
    mapping_in,
    milliseconds,
    read_lines,
    text_in,
)
from smara.adapters.records import (
    Counted,
    Identities,
    Progress,
    Record,
    bounded_id,
    has_content,
    shorten_title,
)
from smara.messages.models import NewThread, Part, Role

__all__ = ["project_root_of", "read_chat"]


_MOST_BYTES = 4_000_000


def project_root_of(path: str | os.PathLike[str], candidates: Iterable[str] = ()) -> str:
    """Return the project folder of a chat; empty if unknown.

    A hash cannot be undone, so it is compared with those of the ``candidates``.
    """
    folder = _project_folder(Path(os.path.abspath(path)))
    if folder is None:
        return ""
    told = _read(folder / ".project_root").strip()
    if told:
        return told
    for root, name in _registry(folder.parent.parent).items():
        if name == folder.name or _hash(root) == folder.name:
            return root
    return next((root for root in candidates if _hash(root) == folder.name), "")


def _project_folder(path: Path) -> Path | None:
    for parent in path.parents:
        if parent.parent.name == "tmp":
            return parent
    return None


def _registry(home: Path) -> dict[str, str]:
    try:
        told = json.loads(_read(home / "projects.json") or "{}")
    except (ValueError, RecursionError):
        return {}
    projects = told.get("projects") if isinstance(told, dict) else None
    if not isinstance(projects, dict):
        return {}
    return {root: name for root, name in projects.items() if isinstance(name, str)}


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _hash(root: str) -> str:
    return hashlib.sha256(root.encode("utf-8", "surrogateescape")).hexdigest()


_ENDED = ("success", "error", "cancelled")
_PROGRAM_OPENINGS = (
    ("<session_context>", "session_context"),
    ("<hook_context>", "hook_context"),
    ("<state_snapshot>", "compaction_summary"),
)
_TOKENS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cache_read_tokens",
    "thoughts": "reasoning_tokens",
}
_AGAIN = "tells again what was told before"


def read_chat(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Record]:
    """Read a chat, or the log of prompts, into records.

    No content makes it raise; only a file that cannot be opened does.
    """
    chat = _Chat(Path(path))
    if not is_document(path):
        for line in read_lines(path, progress, max_line_bytes=max_line_bytes):
            entry = decode(line)
            yield from chat.take(entry) if isinstance(entry, JsonLine) else (entry,)
        return
    document = elements(path, "messages", progress)
    if isinstance(document.around, dict):
        chat.describe(document.around)
    for element in document.entries:
        yield from chat.take(element) if isinstance(element, JsonLine) else (element,)
    if not document.entries:
        yield Counted(1, "session", "a chat without messages")


class _Chat:
    """What has to be remembered of a chat while it is read."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._root = project_root_of(path)
        self._identities = Identities()
        self._seen: set[str] = set()
        self._answered: set[str] = set()
        self._names: dict[str, str] = {}
        self._last_at: int | None = None
        self._has_summary = False
        self.has_begun = False
        self.thread = NewThread(bounded_id(path.name.split(".")[0]), metadata=self._facts({}))

    def take(self, entry: JsonLine) -> Iterator[Record]:
        """One record of the chat or of the log."""
        value = entry.value
        if isinstance(value.get("$set"), dict):
            yield from self._read_change(entry, value["$set"])
        elif isinstance(value.get("$rewindTo"), str):
            yield Counted(entry.line, "rewind", "messages were taken back; they stay stored")
        elif "messageId" in value and "sessionId" in value:
            yield self._read_prompt(entry)
        elif "sessionId" in value and "type" not in value:
            self.describe(entry.value)
            found = list_in(entry.value.get("messages"))
            yield from self._read_many(entry, found)
            if not found:
                yield Counted(entry.line, "session", "describes the session")
        elif "type" in value or "content" in value:
            yield from self._read_message(entry)
        else:
            yield Counted(entry.line, "unknown", "neither a message nor a session")

    # What describes the session

    def describe(self, told: Mapping[str, Any]) -> NewThread:
        """Learn what a session says about itself."""
        session_id = text_in(told.get("sessionId"))
        if session_id and not self.has_begun:
            self.has_begun = True
            is_agent = told.get("kind") == "subagent"
            facts = self._facts(told)
            if is_agent:
                facts["agent_id"] = bounded_id(session_id)
            self.thread = NewThread(
                bounded_id(session_id),
                metadata=facts,
                kind="subagent" if is_agent else "conversation",
                parent_id=bounded_id(self._folder.name)
                if is_agent and self._folder.name != "chats"
                else None,
                created_at=milliseconds(told.get("startTime")),
            )
            self._last_at = self.thread.created_at
        summary = text_in(told.get("summary"))
        if summary.strip():
            self._has_summary = True
            self.thread = replace(self.thread, title=shorten_title(summary))
        return self.thread

    def _facts(self, told: Mapping[str, Any]) -> dict[str, Any]:
        facts = {
            "host": "gemini",
            "cwd": self._root,
            "project_hash": text_in(told.get("projectHash")),
        }
        return {name: fact for name, fact in facts.items() if fact}

    def _read_change(self, entry: JsonLine, change: Mapping[str, Any]) -> Iterator[Record]:
        thread = self.describe(change)
        found = list_in(change.get("messages"))
        yield from self._read_many(entry, found)
        if not found:
            yield Counted(
                entry.line,
                "change",
                "a change of the session",
                thread=thread if self._seen else None,
            )

    def _read_many(self, entry: JsonLine, found: list[Any]) -> Iterator[Record]:
        for each in found:
            inner = entry_of(entry.line, each, entry.repairs)
            yield from self._read_message(inner) if isinstance(inner, JsonLine) else (inner,)

    # What was said and done

    def _read_prompt(self, entry: JsonLine) -> Record:
        """A line of the log of prompts; a session that has a file of its own has them there."""
        value = entry.value
        session_id = bounded_id(text_in(value.get("sessionId")) or "unnamed")
        words = text_in(value.get("message"))
        if session_id not in self._names:
            short = session_id[:8]
            found = (
                any(short in each.name for each in (self._folder / "chats").glob("session-*"))
                if short
                else False
            )
            self._names[session_id] = "chat" if found else ""
        has_chat = bool(self._names[session_id])
        if has_chat:
            return Counted(entry.line, "prompt", "a prompt of a chat that has its own file")
        if not words.strip():
            return Counted(entry.line, "prompt", "nothing was said")
        at = milliseconds(value.get("timestamp"))
        if self.thread.id != session_id:
            self.thread = NewThread(
                session_id,
                None,
                None,
                metadata={**self._facts({}), "told_by": "log"},
                created_at=at,
            )
            self.has_begun = True
        self._last_at = at or self._last_at
        role, kind = _voice(words)
        if role == "user":
            self._suggest_title(words)
        return self._keep(
            entry,
            f"log-{value.get('messageId')}-{at or 0}",
            role,
            (Part("text", words),),
            {"kind": kind},
        )

    def _read_message(self, entry: JsonLine) -> Iterator[Record]:
        value = entry.value
        self._last_at = milliseconds(value.get("timestamp")) or self._last_at
        kind = text_in(value.get("type")) or "unnamed"
        stem = text_in(value.get("id")) or self._identities.of_line(self.thread.id, entry.raw)
        if kind in ("gemini", "model", "assistant"):
            records = list(self._answer(entry, stem))
        elif kind == "user":
            records = list(self._said_by_user(entry, stem))
        else:
            words = words_of(value.get("content"))
            records = list(
                self._unit(entry, stem, "system", parts=text_parts(words), metadata={"kind": kind})
            )
        fresh = [record for record in records if record is not None]
        yield from fresh
        if not fresh:
            is_known = any(record is None for record in records)
            yield Counted(entry.line, kind[:60], _AGAIN if is_known else "nothing was said")

    def _said_by_user(self, entry: JsonLine, stem: str) -> Iterator[Record | None]:
        told = parts_of(entry.value.get("content"))
        parts = tuple(part for part in told if not _is_told(part, self._answered))
        if told and not parts:
            yield None  # results that stand in the records of their calls
            return
        words = "\n".join(part.text for part in parts if part.type == "text")
        if any(part.type == "tool_result" for part in parts) and not words.strip():
            yield from self._unit(entry, stem, "tool", parts=parts, metadata={})
            return
        own = tuple(each for part in parts if (each := _own(part)) is not None)
        if own != parts:
            said = (words_of_hooks(part.text) for part in parts if part.type == "text")
            others = text_parts("\n\n".join(filter(None, said)))
            yield from self._unit(
                entry,
                f"{stem}:hook" if own else stem,
                "system",
                parts=others,
                metadata={"kind": "hook_context"},
            )
            if not own:
                yield None  # all of it was said by hooks
                return
            parts, words = own, "\n".join(part.text for part in own if part.type == "text")
        role, kind = _voice(words)
        if role == "user" and self.thread.kind == "subagent":
            kind = "agent_prompt"
        if role == "user":
            self._suggest_title(words)
        yield from self._unit(entry, stem, role, parts=parts, metadata={"kind": kind})

    def _answer(self, entry: JsonLine, stem: str) -> Iterator[Record | None]:
        value = entry.value
        calls = [mapping_in(call) for call in list_in(value.get("toolCalls"))]
        known = {text_in(call.get("id")) for call in calls}
        parts = tuple(part for part in parts_of(value.get("content")) if not _is_told(part, known))
        if not any(part.type == "reasoning" for part in parts):
            parts = (*_thoughts(value.get("thoughts")), *parts)
        metadata = {
            "model": text_in(value.get("model")),
            "message_id": stem,
            "usage": usage_of(value.get("tokens"), _TOKENS),
        }
        yield from self._unit(entry, stem, "assistant", parts=parts, metadata=metadata)
        for number, call in enumerate(calls, 1):
            yield from self._call(entry, stem, call, number)

    def _call(
        self, entry: JsonLine, stem: str, call: Mapping[str, Any], number: int
    ) -> Iterator[Record | None]:
        call_id = text_in(call.get("id")) or f"{stem}-{number}"
        name, status = text_in(call.get("name")) or None, text_in(call.get("status"))
        before, self._last_at = self._last_at, milliseconds(call.get("timestamp")) or self._last_at
        asked = Part("tool_call", name=name, call_id=call_id, arguments=call.get("args"))
        metadata: dict[str, Any] = {"message_id": stem, "agent_id": text_in(call.get("agentId"))}
        yield from self._unit(
            entry, f"{stem}:{call_id}", "assistant", parts=(asked,), metadata=metadata
        )
        result = call.get("result")
        if result is not None and status in _ENDED:
            found = parts_of(result)
            text = own_words(
                "\n".join(part.text for part in found if part.type in ("tool_result", "text"))
            )
            has_failed = (
                status == "error"
                or any(part.is_error for part in found)
                or failure_in(text) is not None
            )
            self._answered.add(call_id)
            answer = Part("tool_result", text, name=name, call_id=call_id, is_error=has_failed)
            others = tuple(part for part in found if part.type in ("image", "file"))
            metadata = {
                "message_id": stem,
                "tool_result": {"status": status} if status == "cancelled" else {},
            }
            yield from self._unit(
                entry,
                f"{stem}:{call_id}:result",
                "tool",
                parts=(answer, *others),
                metadata=metadata,
            )
        self._last_at = before

    def _unit(
        self,
        entry: JsonLine,
        unit_id: str,
        role: Role,
        parts: tuple[Part, ...],
        metadata: dict[str, Any],
    ) -> Iterator[Record | None]:
        """One message, when it says something and was not told before; ``None`` when it was."""
        if not has_content(parts):
            return
        if unit_id in self._seen:
            yield None
            return
        self._seen.add(unit_id)
        yield self._keep(entry, unit_id, role, parts, metadata)

    def _keep(
        self,
        entry: JsonLine,
        unit_id: str,
        role: Role,
        parts: tuple[Part, ...],
        metadata: dict[str, Any],
    ) -> Record:
        return self._identities.keep(
            entry.line,
            self.thread,
            role,
            parts,
            client_id=bounded_id(unit_id),
            created_at=self._last_at,
            metadata=metadata,
            repairs=entry.repairs,
        )

    def _suggest_title(self, words: str) -> None:
        if not self._has_summary and self.thread.title is None and (title := shorten_title(words)):
            self.thread = replace(self.thread, title=title)


def _voice(words: str) -> tuple[Role, str | None]:
    stripped = words.strip()
    for opening, kind in _PROGRAM_OPENINGS:
        if stripped.startswith(opening):
            return "system", kind
    return "user", "command" if stripped.startswith("/") else None


def _own(part: Part) -> Part | None:
    """A part of a prompt without what hooks have put into it; ``None`` when nothing is left."""
    if part.type != "text":
        return part
    own = own_words(part.text)
    return replace(part, text=own) if own.strip() else None


def _thoughts(thoughts: Any) -> tuple[Part, ...]:
    texts = []
    for thought in list_in(thoughts):
        told = mapping_in(thought)
        subject, rest = text_in(told.get("subject")), text_in(told.get("description"))
        texts.append(f"**{subject}** {rest}".strip() if subject else rest)
    return tuple(Part("reasoning", text) for text in texts if text.strip())


def _is_told(part: Part, known: set[str]) -> bool:
    """Whether a call or a result in the content stands among the record's calls too."""
    return part.type in ("tool_call", "tool_result") and (part.call_id or "") in known
