"""Inject between an agent's steps and before its stages.

Stages are planner, coder and tester; `behavior` finds what they need, and here it is fenced
and gets a receipt.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from smara.actions.paths import module_of, project_path
from smara.behavior.habits import Habits, worth_reading
from smara.behavior.methodology import (
    CODER_FILES,
    CODER_TOKENS,
    PlannerContext,
    PrefetchedFile,
)
from smara.context.models import BUDGETS, InjectionItem, Point
from smara.context.moments.candidates import MemoryFinder
from smara.context.moments.draft import (
    Deadline,
    InjectionDraft,
    InjectionLine,
    as_code,
    line_of_memory,
    make_draft,
    one_line,
)
from smara.context.moments.receipts import ReceiptKeeper
from smara.context.moments.tool_calls import ToolCallLookup, call_of
from smara.core.escape import neutralize
from smara.core.events import HostEvent
from smara.core.files import read_regular
from smara.core.memory_block import tokens_of
from smara.knowledge.models import TypedMemory

MOST_RECENT = 5
MOST_FILE_CHARACTERS = 60_000
_MOST_LINES = 4
_MOST_NOTES = 3


def step_lines(
    tools: ToolCallLookup,
    finder: MemoryFinder,
    recent: Sequence[Mapping[str, Any] | HostEvent],
    session_id: str | None,
    deadline: Deadline,
) -> list[InjectionLine]:
    """Return the lines before the next step, newest call first."""
    found: dict[str, InjectionLine] = {}
    for each in reversed(recent[-MOST_RECENT:]):
        tool, arguments, output, error = _parts(each)
        for line in tools.after(call_of(tool, arguments), output, error):
            if line.item is not None:
                found.setdefault(line.item.key, line)
        deadline.check()
        if len(found) >= _MOST_LINES:
            break
    if not found and session_id is not None:
        # What the session has recorded itself, the newest first.
        memories = finder.memories
        page = memories.list(session_id=session_id, source="agent_explicit", limit=_MOST_NOTES)
        return [line_of_memory(each, "this session noted it") for each in memories.tellable(page)][
            :_MOST_LINES
        ]
    return list(found.values())[:_MOST_LINES]


def read_ahead(
    finder: MemoryFinder, habits: Habits, recent: Sequence[Mapping[str, Any] | HostEvent]
) -> list[InjectionLine]:
    """Return the files that work on a touched module reads."""
    root = finder.root()
    if root is None:
        return []
    touched = [path for each in recent for path in call_of(*_parts(each)[:2]).files]
    inside = [path for path in (project_path(each, root) for each in touched) if path is not None]
    module = module_of(inside[-1]) if inside else None
    usual = habits.prefetch(module) if module is not None else None
    if usual is None:
        return []
    found: list[InjectionLine] = []
    left = CODER_TOKENS
    for path in worth_reading(finder.memories, usual.always)[:CODER_FILES]:
        text = _content(root, path) if path not in inside else None
        line = f"- {as_code(path)} as it is now:\n{neutralize(text)}" if text else ""
        tokens = tokens_of(line) if line else 0
        if line and tokens <= left:
            left -= tokens
            item = InjectionItem(
                "file",
                path,
                f"work on {module} nearly always reads it",
                text=path[:60],
                key=f"file:{path}",
                tokens=tokens,
                signs=(f"file:{path}",),
            )
            found.append(InjectionLine(line, item))
    return found


def _content(root: str, path: str) -> str | None:
    """A file's text; secrets are no part of it, and what is no text is left out."""
    from smara.secrets import redact

    try:
        content = read_regular(os.path.join(root, path), MOST_FILE_CHARACTERS)
        return redact(content.decode()).text
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


def inject_planner(
    context: PlannerContext, finder: MemoryFinder, keeper: ReceiptKeeper, session_id: str | None
) -> PlannerContext:
    """A planner's context with its text fenced."""
    lines = [
        line_of_memory(tellable, "it is about the modules that are planned for")
        for tellable in finder.memories.tellable(context.memories, is_requested=True)
    ]
    if context.factor > 1:
        # The factor is bounded, so more may have been taken.
        least = f"{int(context.factor * 10) / 10:g}"
        lines.insert(
            0,
            InjectionLine(f"Work here took at least {least} times the steps that were planned."),
        )
    draft = make_draft(lines, BUDGETS["planner"])
    _keep(keeper, "planner", session_id, draft=draft)
    return replace(
        context,
        text=draft.text if draft is not None else "",
        constraints=tuple(one_line(each) for each in context.constraints),
    )


def inject_coder(
    files: list[PrefetchedFile], keeper: ReceiptKeeper, session_id: str | None
) -> list[PrefetchedFile]:
    """Files that are read ahead, with a receipt that names them."""
    items = tuple(
        InjectionItem(
            "file",
            each.path,
            "such work reads it nearly always",
            text=each.path[:60],
            key=f"file:{each.path}",
            tokens=each.tokens,
            signs=(f"file:{each.path}",),
        )
        for each in files
    )
    if items:
        names = ", ".join(each.path for each in files)
        _keep(
            keeper,
            "coder",
            session_id,
            draft=InjectionDraft(f"Files read ahead: {names}", sum(f.tokens for f in files), items),
        )
    return files


def inject_qa(
    finder: MemoryFinder,
    memories: Sequence[TypedMemory],
    keeper: ReceiptKeeper,
    session_id: str | None,
) -> str:
    """Return what a tester should know before the first look."""
    lines = [
        line_of_memory(tellable, "testers ask for it")
        for tellable in finder.memories.tellable(memories, is_requested=True)
    ]
    draft = make_draft(lines, BUDGETS["qa"])
    _keep(keeper, "qa", session_id, draft=draft)
    return draft.text if draft is not None else ""


def _keep(
    keeper: ReceiptKeeper, point: Point, session_id: str | None, draft: InjectionDraft | None
) -> None:
    if session_id is not None and draft is not None:
        keeper.keep(point, session_id, draft, keeper.standing(session_id))
