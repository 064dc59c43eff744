"""Records of Claude Code as its transcripts hold them, and what a reader makes of a file of
them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from smara.adapters.readers.claude_code import read_transcript
from smara.adapters.records import Counted, Imported, Record
from smara.messages.models import Part

Write = Callable[..., Path]
SESSION = "5e551011-0000-4000-8000-000000000001"
_count = iter(range(10**9))


def record(type: str = "user", **fields: Any) -> dict[str, Any]:
    number = next(_count)
    return {
        "type": type,
        "uuid": f"uuid-{number}",
        "parentUuid": None,
        "sessionId": SESSION,
        "timestamp": "2026-02-11T20:16:53.366Z",
        "cwd": "/home/me/app",
        "gitBranch": "main",
        "version": "2.1.39",
        "isSidechain": False,
        **fields,
    }


def user(content: Any = "hello", **fields: Any) -> dict[str, Any]:
    return record("user", message={"role": "user", "content": content}, **fields)


def assistant(
    content: Any = "hi", *, id: str = "msg_1", usage: Any = None, **fields: Any
) -> dict[str, Any]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    message = {
        "role": "assistant",
        "id": id,
        "model": "claude-x",
        "content": blocks,
        "usage": usage,
    }
    return record("assistant", message=message, requestId="req_1", **fields)


def call(name: str = "Bash", id: str = "toolu_1", **input: Any) -> dict[str, Any]:
    return assistant([{"type": "tool_use", "id": id, "name": name, "input": input}])


def result(text: Any, id: str = "toolu_1", **fields: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": text}
    return user([{**block, "is_error": fields.pop("is_error", False)}], **fields)


def progress(data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return record("progress", data=data, parentToolUseID="toolu_1", **fields)


def output(text: str) -> dict[str, Any]:
    return progress({"type": "bash_progress", "fullOutput": text})


def queue(operation: str, content: str | None = None) -> dict[str, Any]:
    words = {} if content is None else {"content": content}
    return {"type": "queue-operation", "operation": operation, "sessionId": SESSION, **words}


def read_all(path: Path, **options: Any) -> list[Record]:
    return list(read_transcript(path, **options))


def imported(path: Path) -> list[Imported]:
    return [item for item in read_all(path) if isinstance(item, Imported)]


def counted(path: Path) -> list[tuple[str, str]]:
    return [(item.kind, item.reason) for item in read_all(path) if isinstance(item, Counted)]


def the_only(path: Path) -> Imported:
    (item,) = read_all(path)
    assert isinstance(item, Imported), item
    return item


def texts(item: Imported) -> list[str]:
    return [part.text for part in item.message.content if isinstance(part, Part)]
