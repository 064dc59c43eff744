"""Describe Codex."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smara.adapters.blocks import words_of
from smara.adapters.host import (
    DRAIN_SECONDS,
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
    has_mcp,
    head,
    hook_line,
    is_readable,
    walk,
    written_at,
)
from smara.adapters.host_specs.claude import EVENTS
from smara.adapters.lines import mapping_in, text_in

HOME = HomeFolder("CODEX_HOME", ".codex")
_ENDINGS = (".jsonl", ".jsonl.zst", ".json")
_RECORD_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
# Codex hands a server hardly any of its environment: without these it would open another store
# than the hooks.
_VARIABLES = [
    "SMARA_DB",
    "SMARA_HOME",
    "SMARA_PROJECT",
    "SMARA_CONFIG",
    "SMARA_ACTOR",
    "XDG_DATA_HOME",
]


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    """Return the hooks and the server.

    Commands never change between releases, because Codex asks its user again for every hook
    whose text has changed.
    """
    folder = HOME.path if reach == "global" else os.path.join(root, ".codex")

    def call(event: str, seconds: int = STEP_SECONDS, **more: Any) -> dict[str, Any]:
        line = hook_line(program, "codex", event)
        return {"type": "command", "command": line, "timeout": seconds, **more}

    drain = call("drain", DRAIN_SECONDS, **{"async": True})
    calls = {
        "PostCompact": [call("PostCompact")],
        "PostToolUse": [call("PostToolUse")],
        "PreCompact": [call("PreCompact")],
        "PreToolUse": [call("PreToolUse")],
        "SessionEnd": [call("SessionEnd", END_SECONDS)],
        "SessionStart": [call("SessionStart", START_SECONDS), drain],
        "Stop": [call("Stop"), drain],
        "SubagentStop": [call("SubagentStop")],
        "UserPromptSubmit": [call("UserPromptSubmit")],
    }
    hooks = {event: [{"hooks": each}] for event, each in calls.items()}
    targets = [SetupTarget(os.path.join(folder, "hooks.json"), "json", {"hooks": hooks})]
    if has_mcp():
        body = (
            f'[mcp_servers.smara]\ncommand = {json.dumps(program)}\nargs = ["mcp"]\nenv_vars = '
            f"{json.dumps(_VARIABLES)}\n"
        )
        targets.append(SetupTarget(os.path.join(folder, "config.toml"), "toml", body=body))
    return targets


def _untrusted(home: str, paths: list[str]) -> str:
    """Return the first file whose hooks the user was not asked about yet."""
    import tomllib  # hooks wait for what is imported above

    try:
        with open(os.path.join(home, "config.toml"), "rb") as file:
            state = tomllib.load(file).get("hooks", {}).get("state", {})
    except (OSError, ValueError, AttributeError):
        state = {}
    keys = [str(key) for key in (state if isinstance(state, dict) else ())]
    for path in paths:
        names = (f"{path}:", f"{os.path.realpath(path)}:")
        if not any(key.startswith(names) for key in keys):
            return path
    return ""


def _find(here: Here) -> Iterator[TranscriptFile]:
    from smara.adapters.readers.codex import place_in

    for folder in ("sessions", "archived_sessions"):
        for path in walk(Path(HOME.path) / folder):
            if not path.name.startswith("rollout-") or not path.name.endswith(_ENDINGS):
                continue
            meta: Mapping[str, Any] = {}
            cwd = ""
            for value in head(path, 6):
                meta = meta or mapping_in(value.get("payload")) or (value if "id" in value else {})
                cwd = cwd or text_in(meta.get("cwd")) or place_in(words_of(value.get("content")))
                if cwd:
                    break
            session = text_in(meta.get("session_id")) or text_in(meta.get("id")) or path.name
            yield TranscriptFile(
                str(path),
                "codex",
                cwd,
                at_ms=written_at(path),
                session_id=session,
                is_subagent=bool(mapping_in(meta.get("source")).get("subagent")),
                is_unreadable=not is_readable(path),
            )


def _is_record(value: Mapping[str, Any]) -> bool:
    if text_in(value.get("type")) in _RECORD_TYPES and isinstance(value.get("payload"), dict):
        return True
    # The first versions began with a line about the session, without a type.
    keys = set(value)
    return not keys & {"type", "role"} and {"id", "timestamp", "instructions"} <= keys


def _injection(record: Mapping[str, Any]) -> str:
    payload = mapping_in(record.get("payload"))
    if payload.get("type") == "message" and payload.get("role") == "developer":
        return words_of(payload.get("content"))
    return ""


def _find_notes(here: Here) -> Iterator[NotesFolder]:
    home = Path(HOME.path) / "memories"
    # The summary and the raw notes say the same in other words; recaps of sessions are what
    # MEMORY.md is made from.
    handbook = NotesFolder.of(home, "handbook", "MEMORY.md")
    notes = NotesFolder.of(home / "extensions" / "ad_hoc" / "notes")
    yield from (handbook, notes._replace(place=handbook.place))


HOST = Host(
    name="codex",
    title="Codex",
    hooks=Hooks(
        events=EVENTS,
        answerable=(
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "SubagentStart",
        ),
        transient=("PreToolUse",),
        has_background=True,
        most_characters=9_500,  # about 2,500 tokens
        mark="turn_id",
        exit_codes="smara.adapters.hosts.exit_codes:rollout_codes",
    ),
    setup=Setup(
        targets=_targets,
        programs=("codex",),
        home=HOME,
        advice={
            "project": "Codex runs them once they are trusted: start `codex` here; it asks, "
            "`codex exec` never.",
            "global": "Codex runs them once they are trusted: start `codex`; it asks, "
            "`codex exec` never.",
        },
        untrusted=_untrusted,
    ),
    transcripts=Transcripts(
        format="codex",
        reader="smara.adapters.readers.codex:read_rollout",
        find=_find,
        is_record=_is_record,
        documents=(r'(?s)\A\s*\{\s*"session"\s*:\s*\{.*?"items"\s*:\s*\[',),
        injection=_injection,
    ),
    instructions=Instructions(
        at_start=("AGENTS.override.md", "AGENTS.md"), at_home=("AGENTS.md",), folder=".codex"
    ),
    notes=_find_notes,
)
