"""Describe Pi, of which only the transcripts are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from smara.adapters.host import (
    Here,
    HomeFolder,
    Host,
    Instructions,
    TranscriptFile,
    Transcripts,
    head,
    walk,
    written_at,
)
from smara.adapters.lines import text_in

HOME = HomeFolder("PI_CODING_AGENT_DIR", ".pi/agent")


def _find(here: Here) -> Iterator[TranscriptFile]:
    for path in walk(Path(HOME.path) / "sessions"):
        if path.name.endswith(".jsonl"):
            first = next(head(path, 1), {})
            yield TranscriptFile(
                str(path),
                "pi",
                text_in(first.get("cwd")),
                at_ms=written_at(path),
                session_id=text_in(first.get("id")) or path.stem,
            )


HOST = Host(
    name="pi",
    title="Pi",
    transcripts=Transcripts(
        format="pi",
        reader="smara.adapters.readers.pi:read_session",
        find=_find,
        is_record=lambda value: (
            value.get("type") == "session" and "role" not in value and {"id", "cwd"} <= set(value)
        ),
    ),
    instructions=Instructions(at_start=("AGENTS.md",), at_home=("AGENTS.md",)),
)
