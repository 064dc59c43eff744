"""A session of Claude Code whose every word can be looked for in the bytes of a store."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from smara.adapters.importer import read_records
from smara.adapters.records import Imported
from smara.messages.parts import pack, parts_of

WINDOW = 12
PROMPT = "Please teach the zymurgy kettle to whistle quietly before Wednesday's harvest supper."
ANSWER = "The kettle whistled because quokka_valve() opened twice; I mended quokka_valve for good."
CJK = "茶壶在星期三之前必须安静下来，谢谢你们的帮助。"
COMMAND = "brewmaster --valve quokka --pressure 37 --until boiling-softly"
OUTPUT = "brewmaster: fatal: unobtainium gasket missing in chamber seven\nTry again tomorrow."
THANKS = "Splendid, the neighbours sleep soundly and the marmalade is finished at last."


def transcript(
    path: Path, session: str = "kettle", cwd: str = "/w", more: Iterable[str] = ()
) -> Path:
    """Write the transcript of a session: what was asked, run, failed and answered."""
    steps: list[tuple[str, object]] = [
        ("user", PROMPT),
        ("assistant", [{"type": "text", "text": ANSWER}]),
        (
            "assistant",
            [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": COMMAND}}],
        ),
        (
            "user",
            [{"type": "tool_result", "tool_use_id": "c1", "content": OUTPUT, "is_error": True}],
        ),
        ("user", CJK),
        ("user", THANKS),
        *(("user", text) for text in more),
    ]
    lines = [
        {
            "type": role,
            "uuid": f"{session}-{number}",
            "sessionId": session,
            "cwd": cwd,
            "timestamp": f"2026-03-02T09:{number:02}:00Z",
            "message": {"role": role, "content": content},
        }
        for number, (role, content) in enumerate(steps)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def texts_of(path: Path) -> list[str]:
    """Return the texts of a transcript's messages, as a store would keep them."""
    records = [each for each in read_records(path) if isinstance(each, Imported)]
    return [pack(parts_of(each.message.content))[0] for each in records]


def windows(texts: Iterable[str]) -> set[bytes]:
    """Return every piece of twelve characters of texts, in the forms that a file may hold."""
    pieces = {text[at : at + WINDOW] for text in texts for at in range(len(text) - WINDOW + 1)}
    escaped = {json.dumps(piece)[1:-1] for piece in pieces}
    return {piece.lower().encode() for piece in pieces | escaped}


def holding(paths: Iterable[Path], pieces: set[bytes]) -> list[tuple[str, bytes]]:
    """Return the files that hold one of some pieces, with the piece."""
    found = []
    for path in paths:
        try:
            content = path.read_bytes().lower() if path.is_file() else b""
        except FileNotFoundError:  # a server removes files while it works
            continue
        if content:
            found += [(path.name, piece) for piece in pieces if piece in content][:3]
    return found
