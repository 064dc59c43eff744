"""Messages in the shape of OpenCode's next version, turned into today's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from smara.adapters.blocks import words_of
from smara.adapters.decoding import list_in, mapping_in, text_in
from smara.adapters.opencode.models import StoredMessage

_NO_WORDS = ("agent-switched", "model-switched")


def as_first(told: Mapping[str, Any]) -> StoredMessage:
    """A message with its content inside, as a message with parts."""
    kind, message_id = text_in(told.get("type")), text_in(told.get("id"))
    info = {**told, "role": "assistant" if kind in ("assistant", "shell") else "user"}
    if kind == "assistant":
        return StoredMessage(
            {**info, "modelID": text_in(mapping_in(told.get("model")).get("id"))},
            tuple(_parts(told, message_id)),
        )
    if kind == "shell":
        state = {
            "status": "completed",
            "input": {"command": told.get("command")},
            "output": told.get("output"),
        }
        part = {
            "id": f"{message_id}:shell",
            "type": "tool",
            "tool": "bash",
            "callID": told.get("callID"),
        }
        return StoredMessage(
            info, ({**part, "state": {**state, "time": _times(told.get("time"))}},)
        )
    if kind in _NO_WORDS:
        return StoredMessage(info, ({"id": f"{message_id}:{kind}", "type": kind},))
    if kind == "compaction":
        part = {"id": f"{message_id}:summary", "type": "text", "text": told.get("summary")}
        time = {"created": _at(told), "completed": _at(told) or 1}
        return StoredMessage({**info, "role": "assistant", "summary": True, "time": time}, (part,))
    text = {
        "id": f"{message_id}:text",
        "type": "text",
        "text": told.get("text"),
        "synthetic": kind != "user",
    }
    files = [
        {
            "id": f"{message_id}:file-{number}",
            "type": "file",
            "mime": file.get("mime"),
            "filename": file.get("name"),
            "url": file.get("uri"),
        }
        for number, file in enumerate(map(mapping_in, list_in(told.get("files"))), 1)
    ]
    return StoredMessage(info, (text, *files))


def _parts(told: Mapping[str, Any], message_id: str) -> Iterator[Mapping[str, Any]]:
    for number, each in enumerate(map(mapping_in, list_in(told.get("content"))), 1):
        part_id = f"{message_id}:{text_in(each.get('id')) or number}"
        if each.get("type") != "tool":
            yield {**each, "id": part_id, "time": _times(each.get("time"))}
            continue
        state = mapping_in(each.get("state"))
        given = state.get("input")
        made = {
            "status": state.get("status"),
            "input": given if isinstance(given, dict) else {"input": given} if given else {},
            "output": words_of(state.get("content")) or words_of(state.get("result")),
            "error": words_of(state.get("error")),
            "time": _times(each.get("time")),
        }
        yield {
            "id": part_id,
            "type": "tool",
            "tool": each.get("name"),
            "callID": each.get("id"),
            "state": made,
        }


def _times(time: Any) -> dict[str, Any]:
    told = mapping_in(time)
    return {"start": told.get("ran", told.get("created")), "end": told.get("completed")}


def _at(told: Mapping[str, Any]) -> Any:
    return mapping_in(told.get("time")).get("created", told.get("created"))
