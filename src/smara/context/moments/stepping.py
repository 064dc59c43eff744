"""Between two steps of an agent: what its newest calls bring up, and where wanted what it has noted
itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from smara.behavior.habits import Habits
from smara.behavior.methodology.contexts import CODER_FILES, CODER_TOKENS
from smara.behavior.paths import module_of, project_path
from smara.context.moments.drafts import Deadline, Said, said_memory
from smara.context.moments.known import Known
from smara.context.moments.models import Item
from smara.context.moments.tools import Tools, call_of
from smara.context.moments.wording import as_code, tokens_of
from smara.core.delimiters import neutralized
from smara.core.events import HostEvent

MOST_RECENT = 5
MOST_FILE_CHARACTERS = 60_000
_MOST_LINES = 4
_MOST_NOTES = 3


def step_lines(
    tools: Tools,
    known: Known,
    recent: Sequence[Mapping[str, Any] | HostEvent],
    session_id: str | None,
    deadline: Deadline,
) -> list[Said]:
    """What is said before the next step, the newest call first."""
    found: dict[str, Said] = {}
    for each in reversed(recent[-MOST_RECENT:]):
        tool, arguments, output, error = _parts(each)
        for said in tools.after(call_of(tool, arguments), output, error):
            if said.item is not None:
                found.setdefault(said.item.key, said)
        deadline.check()
        if len(found) >= _MOST_LINES:
            break
    if not found and session_id is not None:
        for said in _noted(known, session_id):
            if said.item is not None:
                found.setdefault(said.item.key, said)
    return list(found.values())[:_MOST_LINES]


def read_ahead(
    known: Known, habits: Habits, recent: Sequence[Mapping[str, Any] | HostEvent]
) -> list[Said]:
    """The files that work on a module nearly always reads, with their contents, once the module is
    touched.
    """
    root = known.root()
    if root is None:
        return []
    touched = [path for each in recent for path in call_of(*_parts(each)[:2]).files]
    inside = [path for path in (project_path(each, root) for each in touched) if path is not None]
    module = module_of(inside[-1]) if inside else None
    usual = habits.prefetch(module) if module is not None else None
    if usual is None:
        return []
    found: list[Said] = []
    left = CODER_TOKENS
    for path in usual.always[:CODER_FILES]:
        text = _content(root, path) if path not in inside else None
        line = f"- {as_code(path)} as it is now:\n{neutralized(text)}" if text else ""
        tokens = tokens_of(line) if line else 0
        if line and tokens <= left:
            left -= tokens
            item = Item(
                "file",
                path,
                f"work on {module} nearly always reads it",
                text=path[:60],
                key=f"file:{path}",
                tokens=tokens,
                saved_tokens=tokens,
                saved_how="the file itself",
                signs=(f"file:{path}",),
            )
            found.append(Said(line, item))
    return found


def _content(root: str, path: str) -> str | None:
    """A file's text; secrets are no part of it, and what is no text is left out."""
    from smara.secrets import redact

    try:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            return redact(file.read(MOST_FILE_CHARACTERS)).text
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def _parts(each: Mapping[str, Any] | HostEvent) -> tuple[str, Mapping[str, Any], str, str | None]:
    if isinstance(each, HostEvent):
        return each.tool, each.tool_input, each.tool_output, each.error
    arguments, error = each.get("tool_input") or each.get("arguments") or {}, each.get("error")
    return (
        str(each.get("tool") or ""),
        arguments if isinstance(arguments, Mapping) else {},
        str(each.get("output") or ""),
        None if error is None else str(error),
    )


def _noted(known: Known, session_id: str) -> list[Said]:
    """What the session has recorded itself, the newest first."""
    page = known.memories.list(session_id=session_id, source="agent_explicit", limit=_MOST_NOTES)
    root = known.root()
    return [
        said_memory(told, "this session noted it", root) for told in known.memories.tellable(page)
    ]
