"""Describe Gemini CLI."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smara.adapters.blocks import parts_of
from smara.adapters.hook_output import HOOK_CLOSING, HOOK_OPENING, as_said
from smara.adapters.host import (
    END_SECONDS,
    START_SECONDS,
    STEP_SECONDS,
    Here,
    HomeFolder,
    Hooks,
    Host,
    Instructions,
    NotesFolder,
    Reach,
    Setup,
    SetupTarget,
    TranscriptFile,
    Transcripts,
    glob_sorted,
    hook_line,
    mcp_entry,
    walk,
    written_at,
)
from smara.adapters.lines import list_in, mapping_in
from smara.core.startup.regex import re, regex

HOME = HomeFolder("GEMINI_CONFIG_DIR", ".gemini")
_INJECTION = regex(f"{HOOK_OPENING}(.*?){HOOK_CLOSING}", re.S)
_SECONDS = {
    "SessionStart": START_SECONDS,
    "BeforeAgent": STEP_SECONDS,
    "AfterTool": STEP_SECONDS,
    "AfterAgent": STEP_SECONDS,
    "PreCompress": STEP_SECONDS,
    "SessionEnd": END_SECONDS,
}


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    folder = HOME.path if reach == "global" else os.path.join(root, ".gemini")

    def call(event: str, seconds: int) -> dict[str, Any]:
        line = hook_line(program, "gemini", event)
        hook = {"type": "command", "name": "smara", "command": line, "timeout": seconds * 1000}
        # An automatic compression is asked about before every call of the model, whether or not
        # anything is compressed.
        return {"matcher": "manual" if event == "PreCompress" else "*", "hooks": [hook]}

    hooks = {event: [call(event, seconds)] for event, seconds in _SECONDS.items()}
    additions = {"hooks": hooks, **mcp_entry(program)}
    return [SetupTarget(os.path.join(folder, "settings.json"), "json", additions)]


def _find(here: Here) -> Iterator[TranscriptFile]:
    from smara.adapters.readers.gemini import project_root_of

    temporary = Path(HOME.path) / "tmp"
    candidates = here.candidates()
    for path in walk(temporary):
        is_chat = "chats" in path.parts[len(temporary.parts) :] and path.name.endswith(
            (".json", ".jsonl")
        )
        if not is_chat and path.name != "logs.json":
            continue
        is_agent = is_chat and path.parent.name != "chats"
        yield TranscriptFile(
            str(path),
            "gemini",
            project_root_of(path, candidates),
            at_ms=written_at(path),
            session_id=path.parent.name if is_agent else str(path),
            is_subagent=is_agent,
        )


def _injection(record: Mapping[str, Any]) -> str:
    if record.get("type") not in ("user", "gemini"):
        return ""
    results = [mapping_in(call).get("result") for call in list_in(record.get("toolCalls"))]
    words = "\n".join(
        part.text for each in (record.get("content"), *results) for part in parts_of(each)
    )
    return as_said("\n".join(_INJECTION.findall(words)))


def _find_notes(here: Here) -> Iterator[NotesFolder]:
    from smara.adapters.readers.gemini import project_root_of

    home = Path(HOME.path)
    candidates = here.candidates()
    for folder in filter(Path.is_dir, glob_sorted(home / "tmp", "*/memory")):
        if here.has(project_root_of(folder / "MEMORY.md", candidates)):
            yield NotesFolder.of(folder, "head")
    yield NotesFolder.of(home, "additions", "GEMINI.md")._replace(is_whole=False)


HOST = Host(
    name="gemini",
    title="Gemini CLI",
    hooks=Hooks(
        events={
            "SessionStart": "session_start",
            "BeforeAgent": "prompt",
            "BeforeTool": "tool_pre",
            "AfterTool": "tool_post",
            "AfterAgent": "turn_end",
            "PreCompress": "compact_pre",
            "SessionEnd": "session_end",
        },
        answerable=("SessionStart", "BeforeAgent", "AfterTool", "PreCompress"),
        transient=("BeforeTool",),
        drain_events=("SessionStart",),
        is_payload=lambda event, payload: (
            "timestamp" in payload and event.startswith(("Before", "After"))
        ),
        has_call_ids=False,
    ),
    setup=Setup(targets=_targets, programs=("gemini",), home=HOME, is_timeout_in_ms=True),
    transcripts=Transcripts(
        format="gemini",
        reader="smara.adapters.readers.gemini:read_chat",
        find=_find,
        is_record=lambda value: "projectHash" in value and "sessionId" in value,
        documents=(
            r'(?s)\A\s*\{[^{\[]*"sessionId"\s*:[^{\[]*"projectHash"\s*:',
            r'(?s)\A\s*\{[^{\[]*"projectHash"\s*:[^{\[]*"sessionId"\s*:',
            r'(?s)\A\s*\[\s*\{(?=[^}]*"sessionId"\s*:)(?=[^}]*"messageId"\s*:)',
        ),
        injection=_injection,
    ),
    instructions=Instructions(
        patterns=("GEMINI.md", ".gemini/GEMINI.md"),
        at_start=("GEMINI.md", "AGENTS.md"),
        at_home=("GEMINI.md",),
        folder=".gemini",
    ),
    notes=_find_notes,
)
