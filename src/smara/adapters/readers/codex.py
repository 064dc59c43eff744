"""Read a Codex CLI rollout into threads and messages.

Codex writes most things twice: as an item for the model and as an event for its screen. An
event is kept back until its item has come; without one it becomes a message when its turn
ends. Three shapes are read: lines with a payload, bare items, and one JSON document.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smara.adapters.blocks import parts_of, read_arguments, words_of
from smara.adapters.documents import elements, is_document
from smara.adapters.lines import (
    MAX_LINE_BYTES,
    JsonLine,
    LineReader,
    Recent,
    list_in,
    mapping_in,
    milliseconds,
    read_with,
    text_in,
)
from smara.adapters.readers.codex_records import RolloutThread, output_of, place_in, voice_of
from smara.adapters.records import Counted, Identities, Progress, Record, bounded_id, has_content
from smara.core.memory_block import without_memory_blocks
from smara.messages.models import Part, Role

__all__ = ["read_rollout"]


MAX_HELD = 256


@dataclass(slots=True)
class PendingEvent:
    """An event that waits, with all it needs to become a message."""

    entry: JsonLine
    kind: str
    role: Role
    parts: tuple[Part, ...]
    created_at: int | None
    has_turn_ended: bool = False


class Mirrors:
    """The texts and calls seen as items, and events that wait."""

    def __init__(self) -> None:
        self._told: set[bytes] = set()
        self._held: OrderedDict[bytes, PendingEvent] = OrderedDict()

    def tell(self, marks: Iterable[str]) -> list[Counted]:
        """An item has come: the events that wait for it are counted."""
        found = []
        for mark in map(_digest, marks):
            self._told.add(mark)
            held = self._held.pop(mark, None)
            if held is not None:
                found.append(counted(held.entry, held.kind))
        return found

    def hold(self, mark: str, held: PendingEvent) -> PendingEvent | Counted | None:
        """Hold an event until its item comes.

        It is counted if the item has come; if too many wait, the oldest comes back.
        """
        digest = _digest(mark)
        if digest in self._told or digest in self._held:
            return counted(held.entry, held.kind)
        self._held[digest] = held
        return self._held.popitem(last=False)[1] if len(self._held) > MAX_HELD else None

    def end_turn(self) -> None:
        """Mark events that still wait as having no item."""
        for held in self._held.values():
            held.has_turn_ended = True

    def pop_all(self) -> list[PendingEvent]:
        waiting = list(self._held.values())
        self._held.clear()
        return waiting


def counted(entry: JsonLine, kind: str) -> Counted:
    """An event whose words stand in an item."""
    return Counted(
        entry.line,
        f"event_msg/{kind}"[:100],
        "told again for the screen; kept where the model read it",
    )


def _digest(mark: str) -> bytes:
    return hashlib.blake2b(mark.strip().encode("utf-8", "replace"), digest_size=16).digest()


_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "tool_search_call": "arguments",
    "web_search_call": "action",
}
_CALL_NAMES = {
    "local_shell_call": "local_shell",
    "tool_search_call": "tool_search",
    "web_search_call": "web_search",
}
_RESULTS = (
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
_SPOKEN_EVENTS: dict[str, tuple[str, Role, str]] = {
    "user_message": ("message", "user", "text"),
    "agent_message": ("message", "assistant", "text"),
    "agent_reasoning": ("text", "assistant", "reasoning"),
    "agent_reasoning_raw_content": ("text", "assistant", "reasoning"),
}
_ENDED_CALLS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end")


def read_rollout(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Record]:
    """Read a rollout line by line into records.

    No content makes it raise; only a file that cannot be opened does. Reading a file
    again, also one that has grown, gives the same client ids for the same lines.
    """
    rollout = _Rollout(Path(path).name)
    if is_document(path):
        yield from rollout.read_document(path, progress)
        return
    yield from read_with(rollout, path, progress, max_line_bytes=max_line_bytes)


class _Rollout(LineReader):
    """What has to be remembered of a file while it is read."""

    def __init__(self, file_name: str) -> None:
        self._thread = RolloutThread(file_name)
        self._identities = Identities()
        self._mirrors = Mirrors()
        self._names: Recent[str] = Recent()
        self._failed: Recent[bool] = Recent()
        self._last_at: int | None = None
        self._place = ""
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
        self._readers["turn_context"] = self._read_turn

    def read_document(
        self, path: str | os.PathLike[str], progress: Progress | None
    ) -> Iterator[Record]:
        """The oldest shape: one object with the session and all items."""
        document = elements(path, "items", progress)
        session = mapping_in(mapping_in(document.around).get("session"))
        if session:
            self._last_at = milliseconds(session.get("timestamp"))
            self._thread.begin(session, self._last_at)
        for entry in document.entries:
            if isinstance(entry, Counted):
                yield entry
            else:
                yield from self.take(entry)
        yield from self.finish()

    def take(self, entry: JsonLine) -> Iterator[Record]:
        """One line: with a payload, or the item itself."""
        value = entry.value
        self._last_at = milliseconds(value.get("timestamp")) or self._last_at
        if (
            self._thread.is_before_its_own(value.get("ordinal"))
            and value.get("type") != "session_meta"
        ):
            yield Counted(
                entry.line,
                "inherited",
                "what a sub-agent was given of its parent, which has its own file",
            )
            return
        payload = value.get("payload")
        kind = text_in(value.get("type"))
        if isinstance(payload, dict) and kind in ("response_item", "response"):
            yield from self._read_item(entry, payload)
        elif isinstance(payload, dict):
            yield from self._readers.get(kind, self._read_unknown)(entry, payload)
        elif not kind and not self._thread.has_begun and "id" in value:
            yield from self._read_meta(entry, value)
        elif not kind and "record_type" in value:
            yield Counted(entry.line, "state", "a mark of the program without words")
        else:
            yield from self._read_item(entry, value)

    def finish(self) -> Iterator[Record]:
        """Yield what still waits, if its turn has ended.

        The rest is left for the next time.

        Older versions do not say where turns end, and their files are seldom still being written.
        """
        for held in self._mirrors.pop_all():
            if held.has_turn_ended or not self._marks_turns:
                yield self._keep_held(held)
            else:
                reason = (
                    "told for the screen only, in a turn that has not ended; import again later"
                )
                yield Counted(held.entry.line, f"event_msg/{held.kind}"[:100], reason)

    def _read_item(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        yield from self._readers.get(text_in(item.get("type")), self._read_unknown)(entry, item)

    # What describes the session

    def _read_meta(self, entry: JsonLine, meta: Mapping[str, Any]) -> Iterator[Record]:
        is_first = not self._thread.has_begun
        self._last_at = milliseconds(meta.get("timestamp")) or self._last_at
        thread = self._thread.begin(meta, self._last_at)
        if is_first:
            self._place = text_in(thread.metadata.get("cwd"))
            yield Counted(entry.line, "session_meta", "describes the session")
        else:
            yield Counted(
                entry.line,
                "session_meta",
                "describes the session again, or the one it was copied from",
            )

    def _read_turn(self, entry: JsonLine, turn: Mapping[str, Any]) -> Iterator[Record]:
        self._model = text_in(turn.get("model")) or self._model
        self._place = text_in(turn.get("cwd")) or self._place
        yield Counted(entry.line, "turn_context", _BOOKKEEPING["turn_context"])

    def _read_compacted(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        words = text_in(item.get("message"))
        if words.strip():
            yield self._keep(
                entry, item, "system", (Part("text", words),), {"kind": "compaction_summary"}
            )
        else:
            yield Counted(entry.line, "compacted", "where the conversation was compacted")

    def _read_bookkeeping(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        kind = _kind_of(entry, item)
        yield Counted(
            entry.line, kind[:100], _BOOKKEEPING.get(kind, "a record of the program without words")
        )

    # What was said and done

    def _read_message(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        parts = parts_of(item.get("content"))
        role, kind = voice_of(text_in(item.get("role")), parts, self._thread.now.kind)
        words = "\n".join(part.text for part in parts if part.type == "text")
        if role == "system" and words.strip() and not without_memory_blocks(words).strip():
            yield Counted(entry.line, "message/hook", "what memory told the agent itself")
            return
        yield from self._mirrors.tell(
            {words, *(part.text for part in parts if part.type == "text")}
        )
        if role == "user" and words.strip():
            self._thread.suggest_title(words)
        elif kind == "environment" and not self._place:
            self._place = self._thread.note_place(
                place_in(words)
            )  # the first versions say it nowhere else
        metadata = {"kind": kind, "phase": text_in(item.get("phase"))}
        if role == "assistant":
            metadata["model"] = self._model
        yield self._keep(entry, item, role, parts, metadata)

    def _read_agent_message(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        content = item.get("content")
        if isinstance(content, list):
            content = [
                block for block in content if mapping_in(block).get("type") != "encrypted_content"
            ]
        parts = tuple(part for part in parts_of(content) if part.text.strip())
        if not parts:
            yield Counted(
                entry.line, "agent_message", "words between agents that only the model can read"
            )
            return
        is_prompt = self._thread.now.kind == "subagent"
        metadata = {
            "kind": "agent_prompt" if is_prompt else "agent_message",
            "author": text_in(item.get("author")),
            "recipient": text_in(item.get("recipient")),
        }
        yield self._keep(entry, item, "user" if is_prompt else "system", parts, metadata)

    def _read_reasoning(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        texts = [
            words_of(block) for name in ("summary", "content") for block in list_in(item.get(name))
        ]
        texts = [text for text in texts if text.strip()]
        if not texts:
            yield Counted(entry.line, "reasoning", "reasoning that the host withholds")
            return
        yield from self._mirrors.tell({*texts, "\n".join(texts)})
        yield self._keep(
            entry, item, "assistant", tuple(Part("reasoning", text) for text in texts), {}
        )

    def _read_call(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        kind = _kind_of(entry, item)
        call_id = text_in(item.get("call_id")) or text_in(item.get("id")) or None
        name = _CALL_NAMES.get(kind) or text_in(item.get("name"))
        namespace = text_in(item.get("namespace"))
        if namespace.startswith("mcp__") and not name.startswith("mcp__"):
            name = f"{namespace.rstrip('_')}__{name}"
        arguments = read_arguments(item.get(_CALLS.get(kind, "arguments")))
        if isinstance(arguments, str):
            arguments = {"input": arguments}  # a patch, or a program of its own: text and no object
        if call_id and name:
            self._names[call_id] = name
        part = Part("tool_call", name=name or None, call_id=call_id, arguments=arguments)
        yield self._keep(entry, item, "assistant", (part,), {"status": text_in(item.get("status"))})

    def _read_result(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        call_id = text_in(item.get("call_id")) or None
        found = output_of(item.get("output", item.get("tools")))
        yield from self._mirrors.tell({f"call {call_id}"} if call_id else ())
        has_failed = found.has_failed or self._failed.pop(call_id or "", False)
        name = text_in(item.get("name")) or self._names.get(call_id or "")
        part = Part(
            "tool_result", found.text, name=name or None, call_id=call_id, is_error=has_failed
        )
        metadata = {"tool_result": dict(found.facts)}
        yield self._keep(entry, item, "tool", (part, *found.placeholders), metadata)

    def _read_image(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        block = {
            "type": "image",
            "data": text_in(item.get("result")),
            "text": text_in(item.get("revised_prompt")),
        }
        yield self._keep(entry, item, "assistant", parts_of(block), {"kind": "image_generation"})

    def _read_unknown(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        kind = (text_in(item.get("type")) or text_in(entry.value.get("type")))[
            :60
        ] or "without a type"
        words = words_of(item)
        if words.strip():
            yield self._keep(entry, item, "system", (Part("text", words),), {"kind": kind})
        else:
            yield Counted(entry.line, "unknown", f"unknown record type: {kind}")

    # Events, which mostly repeat items

    def _read_event(self, entry: JsonLine, event: Mapping[str, Any]) -> Iterator[Record]:
        kind = text_in(event.get("type")) or "unnamed"
        if kind in _TURN_ENDS:
            self._marks_turns = True
            self._mirrors.end_turn()
        if kind in _EVENT_BOOKKEEPING:
            yield Counted(entry.line, f"event_msg/{kind}", _EVENT_BOOKKEEPING[kind])
        elif kind in _SPOKEN_EVENTS:
            key, role, type_ = _SPOKEN_EVENTS[kind]
            words = text_in(event.get(key))
            part = Part("reasoning" if type_ == "reasoning" else "text", words)
            yield from self._hold(entry, kind, words, role, (part,))
        elif kind in _ENDED_CALLS:
            yield from self._read_ended_call(entry, kind, event)
        elif kind == "item_completed":
            yield from self._read_completed(entry, mapping_in(event.get("item")))
        elif words_of(event).strip():
            yield from self._hold(
                entry, kind, words_of(event), "system", (Part("text", words_of(event)),)
            )
        else:
            yield Counted(
                entry.line, f"event_msg/{kind}"[:100], "an event of the program without words"
            )

    def _read_ended_call(
        self, entry: JsonLine, kind: str, event: Mapping[str, Any]
    ) -> Iterator[Record]:
        call_id = text_in(event.get("call_id"))
        code, result = event.get("exit_code"), mapping_in(event.get("result"))
        has_failed = (isinstance(code, int) and code != 0) or event.get("success") is False
        has_failed = (
            has_failed or "Err" in result or mapping_in(result.get("Ok")).get("isError") is True
        )
        self._failed[call_id] = has_failed
        output = text_in(event.get("aggregated_output")) or words_of(
            [event.get("stdout"), event.get("stderr")]
        )
        output = output or words_of(result.get("Ok")) or text_in(result.get("Err"))
        name = self._names.get(call_id) or (
            "Bash" if kind == "exec_command_end" else kind.removesuffix("_end")
        )
        part = Part("tool_result", output, name=name, call_id=call_id or None, is_error=has_failed)
        yield from self._hold(entry, kind, f"call {call_id}", "tool", (part,))

    def _read_completed(self, entry: JsonLine, item: Mapping[str, Any]) -> Iterator[Record]:
        kind = text_in(item.get("type")) or "item"
        words = text_in(item.get("text"))
        if kind.lower() == "plan" and words.strip():
            yield from self._hold(entry, "plan", words, "assistant", (Part("text", words),))
        else:
            reason = "told again for the screen; kept where the model read it"
            yield Counted(entry.line, f"event_msg/item_completed/{kind}"[:100], reason)

    def _hold(
        self, entry: JsonLine, kind: str, mark: str, role: Role, parts: tuple[Part, ...]
    ) -> Iterator[Record]:
        if not mark.strip():
            yield Counted(
                entry.line, f"event_msg/{kind}"[:100], "an event of the program without words"
            )
            return
        settled = self._mirrors.hold(
            mark, PendingEvent(entry, kind, role, parts=parts, created_at=self._last_at)
        )
        if settled is not None:
            yield settled if isinstance(settled, Counted) else self._keep_held(settled)

    def _keep_held(self, held: PendingEvent) -> Record:
        role, kind = held.role, held.kind
        if role == "user":
            role, found = voice_of("user", held.parts, self._thread.now.kind)
            kind = found or kind
            if role == "user":
                self._thread.suggest_title(held.parts[0].text)
        before, self._last_at = self._last_at, held.created_at
        record = self._keep(held.entry, {}, role, held.parts, {"kind": kind})
        self._last_at = before
        return record

    def _keep(
        self,
        entry: JsonLine,
        item: Mapping[str, Any],
        role: Role,
        parts: tuple[Part, ...],
        metadata: dict[str, Any],
    ) -> Record:
        if not has_content(parts):
            return Counted(entry.line, _kind_of(entry, item)[:100] or "message", "nothing was said")
        thread = self._thread.now
        given_id = text_in(item.get("id"))
        client_id = (
            bounded_id(given_id) if given_id else self._identities.of_line(thread.id, entry.raw)
        )
        if self._place and self._place != thread.metadata.get("cwd"):
            metadata["cwd"] = self._place
        if self._thread.is_copied(self._last_at):
            metadata["inherited"] = True
        return self._identities.keep(
            entry.line,
            thread,
            role,
            parts,
            client_id=client_id,
            created_at=self._last_at,
            metadata=metadata,
            repairs=entry.repairs,
        )


def _kind_of(entry: JsonLine, item: Mapping[str, Any]) -> str:
    """The type of an item; of one that stands in a payload of its own kind, that of the line."""
    kind = text_in(item.get("type"))
    return (
        kind if kind in _CALLS or kind in _BOOKKEEPING else text_in(entry.value.get("type")) or kind
    )
