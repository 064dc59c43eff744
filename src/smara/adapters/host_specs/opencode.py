"""Describe OpenCode."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from smara.adapters.host import (
    TEXT,
    Here,
    HomeFolder,
    Hooks,
    Host,
    Instructions,
    Reach,
    Setup,
    SetupTarget,
    TranscriptFile,
    Transcripts,
    glob_sorted,
    has_mcp,
    walk,
    written_at,
)
from smara.adapters.lines import is_database, mapping_in, milliseconds, text_in

HOME = HomeFolder("XDG_CONFIG_HOME", ".config", "opencode")
STORE = HomeFolder("XDG_DATA_HOME", ".local/share", "opencode")


def _targets(reach: Reach, root: str, program: str) -> list[SetupTarget]:
    from importlib import resources  # hooks wait for what is imported above

    is_global = reach == "global"
    folder = HOME.path if is_global else os.path.join(root, ".opencode")
    source = resources.files("smara.adapters.hosts") / "opencode" / "smara.ts"
    content = source.read_text(encoding="utf-8").replace('"smara"', json.dumps(program), 1)
    plugin = SetupTarget(os.path.join(folder, "plugins", "smara.ts"), "own", body=content)
    if not is_global:  # an older version wrote the second, which teams commit
        place = os.path.join(root, "opencode.json")
        return [plugin, SetupTarget(place, "json", is_former=True)]
    if not has_mcp():
        return [plugin]
    server = {"type": "local", "command": [program, "mcp"], "enabled": True}
    place = os.path.join(HOME.path, "opencode.json")
    return [plugin, SetupTarget(place, "json", {"mcp": {"smara": server}})]


def _find(here: Here) -> Iterator[TranscriptFile]:
    from smara.adapters.readers.opencode import read_object, session_rows

    home = Path(STORE.path)
    ids: set[str] = set()
    for path in filter(Path.is_file, glob_sorted(home, "opencode*.db")):
        for info in session_rows(path) or ():
            ids.add(str(info["id"]))
            yield _session(str(path), info, str(info["id"]))
    # What was taken over into the database lies in the old files, too.
    for path in walk(home / "storage" / "session"):
        if path.name.endswith(".json") and path.stem not in ids:
            content = read_object(path)
            yield _session(str(path), content if isinstance(content, dict) else {}, None)


def _session(path: str, info: Mapping[str, Any], only: str | None) -> TranscriptFile:
    parent, own = text_in(info.get("parentID")), text_in(info.get("id")) or path
    return TranscriptFile(
        path,
        "opencode",
        text_in(info.get("directory")),
        at_ms=milliseconds(mapping_in(info.get("time")).get("updated")) or written_at(path),
        session_id=parent or own,
        is_subagent=bool(parent),
        only=only,
    )


def _is_file(path: str | os.PathLike[str]) -> bool:
    """Return True for a database, or a session file with its messages beside it."""
    if is_database(path):
        return True
    folder = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    return os.path.basename(folder) == "session" and os.path.isdir(
        os.path.join(os.path.dirname(folder), "message")
    )


def _has_sessions(path: str | os.PathLike[str]) -> bool:
    from smara.adapters.readers.opencode import session_rows

    return not is_database(path) or session_rows(path) is not None


def _locate(session_id: str) -> str:
    from smara.adapters.readers.opencode import has_session

    path = os.path.join(STORE.path, "opencode.db")
    return path if os.path.isfile(path) and has_session(path, session_id) else ""


HOST = Host(
    name="opencode",
    title="OpenCode",
    hooks=Hooks(
        events={
            "session.start": "session_start",
            "chat.message": "prompt",
            "tool.execute.before": "tool_pre",
            "tool.execute.after": "tool_post",
            "session.idle": "turn_end",
            "session.error": "turn_fail",
            "session.compacting": "compact_pre",
            "session.compacted": "compact_post",
            "session.deleted": "session_end",
            "file.edited": "file_changed",
            "todo.updated": "task",
        },
        answerable=("session.start", "chat.message", "tool.execute.after"),
        transient=("tool.execute.before",),
        has_background=True,
        output={"context": TEXT},
        helper_kinds={
            "prompt": None,
            "session_start": "subagent_start",
            "turn_end": "subagent_stop",
        },
    ),
    setup=Setup(
        targets=_targets,
        programs=("opencode",),
        home=HOME,
        advice={"project": "For the tools as well:  opencode mcp add  (local, `smara mcp`)"},
    ),
    transcripts=Transcripts(
        format="opencode",
        reader="smara.adapters.readers.opencode:read_sessions",
        find=_find,
        is_record=lambda value: (
            "role" not in value and "directory" in value and str(value.get("id")).startswith("ses_")
        ),
        documents=(r'(?s)\A\s*\{\s*(?:"info"\s*:\s*\{)?[^{\[]*"id"\s*:\s*"ses_',),
        is_file=_is_file,
        has_sessions=_has_sessions,
        locate=_locate,
        has_many_sessions=True,
    ),
    instructions=Instructions(at_start=("AGENTS.md",), at_home=("AGENTS.md",)),
)
