"""Read a Gemini CLI chat into threads and messages.

A record holds an answer with all its thoughts and calls and is written again when it grows.
So each answer, call and result is a message with an id of its own: a repeat is stored once,
an addition is new. `project_root_of` resolves the folder that a chat belongs to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from smara.actions.tool_output import error_of
from smara.adapters.blocks import parts_of, text_parts, usage_of, words_of
from smara.adapters.hook_output import own_words, words_of_hooks
from smara.adapters.lines import (
    Document,
    JsonLine,
    entry_of,
    given,
    json_in,
    list_in,
    mapping_in,
    milliseconds,
    text_in,
)
from smara.adapters.readers.transcript import Transcript
from smara.adapters.records import Counted, Record, bounded_id, has_content
from smara.messages.models import NewThread, Part, Role

_MOST_BYTES = 4_000_000


def project_root_of(path: str | os.PathLike[str], candidates: Iterable[str] = ()) -> str:
    """Return the project folder of a chat; empty if unknown.

    A hash cannot be undone, so it is compared with those of the ``candidates``.
    """
    parents = Path(os.path.abspath(path)).parents
    folder = next((each for each in parents if each.parent.name == "tmp"), None)
    if folder is None:
        return ""
    if named := _read(folder / ".project_root").strip():
        return named
    registry = mapping_in(json_in(_read(folder.parent.parent / "projects.json")))
    for root, name in mapping_in(registry.get("projects")).items():
        if isinstance(name, str) and folder.name in (name, _hash(root)):
            return root
    return next((root for root in candidates if _hash(root) == folder.name), "")


def _read(path: Path) -> str:
    try:
        is_small = path.stat().st_size <= _MOST_BYTES
        return path.read_text(encoding="utf-8", errors="replace") if is_small else ""
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


class _Chat(Transcript):
    host = "gemini"
    document_list = "messages"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._folder = path.parent
        self._root = project_root_of(path)
        self._seen: set[str] = set()
        self._answered: set[str] = set()
        self._has_chat: dict[str, bool] = {}
        self.thread = replace(self.thread, metadata=self._facts({}))

    def begin_document(self, document: Document) -> Iterator[Record]:
        if isinstance(document.around, dict):
            self._describe(document.around)
        if not document.entries:
            yield Counted(1, "session", "a chat without messages")

    def take(self, entry: JsonLine) -> Iterator[Record]:
        value = entry.value
        is_change = isinstance(value.get("$set"), dict)
        if not is_change and isinstance(value.get("$rewindTo"), str):
            yield self.count(entry, "rewind", "messages were taken back; they stay stored")
        elif not is_change and "messageId" in value and "sessionId" in value:
            yield self._prompt(entry)
        elif is_change or ("sessionId" in value and "type" not in value):
            about = value["$set"] if is_change else value
            self._describe(about)
            messages = list_in(about.get("messages"))
            for message in messages:
                inner = entry_of(entry.line, message, entry.repairs)
                yield from self._message(inner) if isinstance(inner, JsonLine) else (inner,)
            if not messages and is_change:
                thread = self.thread if self._seen else None
                yield self.count(entry, "change", "a change of the session", thread=thread)
            elif not messages:
                yield self.count(entry, "session", "describes the session")
        elif "type" in value or "content" in value:
            yield from self._message(entry)
        else:
            yield self.count(entry, "unknown", "neither a message nor a session")

    def _describe(self, about: Mapping[str, Any]) -> None:
        """Learn what a session says about itself."""
        session_id = text_in(about.get("sessionId"))
        if session_id and not self.has_begun:
            self.has_begun = True
            is_agent = about.get("kind") == "subagent"
            facts = self._facts(about)
            if is_agent:
                facts["agent_id"] = bounded_id(session_id)
            has_parent = is_agent and self._folder.name != "chats"
            self.thread = NewThread(
                bounded_id(session_id),
                metadata=facts,
                kind="subagent" if is_agent else "conversation",
                parent_id=bounded_id(self._folder.name) if has_parent else None,
                created_at=milliseconds(about.get("startTime")),
            )
            self.at = self.thread.created_at
        self.suggest_title(text_in(about.get("summary")), is_given=True)

    def _facts(self, about: Mapping[str, Any]) -> dict[str, Any]:
        return given(host=self.host, cwd=self._root, project_hash=text_in(about.get("projectHash")))

    def _prompt(self, entry: JsonLine) -> Record:
        """A line of the log of prompts; a session that has a file of its own has them there."""
        value = entry.value
        session_id = bounded_id(text_in(value.get("sessionId")) or "unnamed")
        if session_id not in self._has_chat:
            self._has_chat[session_id] = any(
                session_id[:8] in each.name for each in (self._folder / "chats").glob("session-*")
            )
        words, at = text_in(value.get("message")), milliseconds(value.get("timestamp"))
        if self._has_chat[session_id]:
            return self.count(entry, "prompt", "a prompt of a chat that has its own file")
        if not words.strip():
            return self.count(entry, "prompt", "nothing was said")
        if self.thread.id != session_id:
            self.thread = NewThread(
                session_id, metadata={**self._facts({}), "told_by": "log"}, created_at=at
            )
            self.has_begun = True
        self.at = at or self.at
        role, kind = _voice(words)
        if role == "user":
            self.suggest_title(words)
        unit = f"log-{value.get('messageId')}-{at or 0}"
        return self.keep(entry, role, (Part("text", words),), unit=unit, kind=kind)

    def _message(self, entry: JsonLine) -> Iterator[Record]:
        value = entry.value
        self.at = milliseconds(value.get("timestamp")) or self.at
        kind, stem = text_in(value.get("type")) or "unnamed", self.id_of(entry)
        if kind in ("gemini", "model", "assistant"):
            records = list(self._answer(entry, stem))
        elif kind == "user":
            records = list(self._from_user(entry, stem))
        else:
            parts = text_parts(words_of(value.get("content")))
            records = list(self._unit(entry, stem, "system", parts=parts, kind=kind))
        fresh = [record for record in records if record is not None]
        yield from fresh
        if not fresh:
            yield self.count(entry, kind[:60], _AGAIN if records else "nothing was said")

    def _from_user(self, entry: JsonLine, stem: str) -> Iterator[Record | None]:
        content = parts_of(entry.value.get("content"))
        parts = tuple(part for part in content if not _is_call_of(part, self._answered))
        if content and not parts:
            yield None  # results that stand in the records of their calls
            return
        words = "\n".join(part.text for part in parts if part.type == "text")
        if any(part.type == "tool_result" for part in parts) and not words.strip():
            yield from self._unit(entry, stem, "tool", parts=parts)
            return
        own = tuple(each for part in parts if (each := _own(part)) is not None)
        if own != parts:
            texts = (words_of_hooks(part.text) for part in parts if part.type == "text")
            yield from self._unit(
                entry,
                f"{stem}:hook" if own else stem,
                "system",
                parts=text_parts("\n\n".join(filter(None, texts))),
                kind="hook_context",
            )
            if not own:
                yield None  # all of it was said by hooks
                return
            parts, words = own, "\n".join(part.text for part in own if part.type == "text")
        role, kind = _voice(words)
        if role == "user":
            kind = "agent_prompt" if self.thread.kind == "subagent" else kind
            self.suggest_title(words)
        yield from self._unit(entry, stem, role, parts=parts, kind=kind)

    def _answer(self, entry: JsonLine, stem: str) -> Iterator[Record | None]:
        value = entry.value
        calls = [mapping_in(call) for call in list_in(value.get("toolCalls"))]
        ids = {text_in(call.get("id")) for call in calls}
        parts = tuple(part for part in parts_of(value.get("content")) if not _is_call_of(part, ids))
        if not any(part.type == "reasoning" for part in parts):
            thoughts = []
            for thought in map(mapping_in, list_in(value.get("thoughts"))):
                subject, rest = text_in(thought.get("subject")), text_in(thought.get("description"))
                text = f"**{subject}** {rest}".strip() if subject else rest
                if text.strip():
                    thoughts.append(Part("reasoning", text))
            parts = (*thoughts, *parts)
        yield from self._unit(
            entry,
            stem,
            "assistant",
            parts=parts,
            model=text_in(value.get("model")),
            message_id=stem,
            usage=usage_of(value.get("tokens"), _TOKENS),
        )
        for number, call in enumerate(calls, 1):
            yield from self._call(entry, stem, call, number=number)

    def _call(
        self, entry: JsonLine, stem: str, call: Mapping[str, Any], number: int
    ) -> Iterator[Record | None]:
        call_id = text_in(call.get("id")) or f"{stem}-{number}"
        name, status = text_in(call.get("name")) or None, text_in(call.get("status"))
        before, self.at = self.at, milliseconds(call.get("timestamp")) or self.at
        part = Part("tool_call", name=name, call_id=call_id, arguments=call.get("args"))
        yield from self._unit(
            entry,
            f"{stem}:{call_id}",
            "assistant",
            parts=(part,),
            message_id=stem,
            agent_id=text_in(call.get("agentId")),
        )
        result = call.get("result")
        if result is not None and status in _ENDED:
            parts = parts_of(result)
            text = own_words(
                "\n".join(part.text for part in parts if part.type in ("tool_result", "text"))
            )
            has_failed = (
                status == "error"
                or any(part.is_error for part in parts)
                or error_of(text) is not None
            )
            self._answered.add(call_id)
            answer = Part("tool_result", text, name=name, call_id=call_id, is_error=has_failed)
            yield from self._unit(
                entry,
                f"{stem}:{call_id}:result",
                "tool",
                parts=(answer, *(part for part in parts if part.type in ("image", "file"))),
                message_id=stem,
                tool_result={"status": status} if status == "cancelled" else {},
            )
        self.at = before

    def _unit(
        self, entry: JsonLine, unit: str, role: Role, *, parts: tuple[Part, ...], **metadata: Any
    ) -> Iterator[Record | None]:
        """One message, when it says something and was not told before; ``None`` when it was."""
        if not has_content(parts):
            return
        if unit in self._seen:
            yield None
            return
        self._seen.add(unit)
        yield self.keep(entry, role, parts, unit=unit, **metadata)


def _voice(words: str) -> tuple[Role, str | None]:
    stripped = words.strip()
    program = next(
        (kind for opening, kind in _PROGRAM_OPENINGS if stripped.startswith(opening)), None
    )
    if program is not None:
        return "system", program
    return "user", "command" if stripped.startswith("/") else None


def _own(part: Part) -> Part | None:
    """A part of a prompt without what hooks have put into it; ``None`` when nothing is left."""
    if part.type != "text":
        return part
    own = own_words(part.text)
    return replace(part, text=own) if own.strip() else None


def _is_call_of(part: Part, ids: set[str]) -> bool:
    """Whether a call or a result in the content stands among the record's calls too."""
    return part.type in ("tool_call", "tool_result") and (part.call_id or "") in ids


read_chat = _Chat.read
