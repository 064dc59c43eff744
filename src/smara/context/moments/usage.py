"""Detect that an injection was used.

Only what a session does afterwards counts as use, never that the injection was shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from smara.actions.commands import read_command
from smara.actions.failures import outcome_of
from smara.behavior.habits import KnownFailure
from smara.core.events import HostEvent
from smara.core.startup.regex import regex
from smara.core.tool_names import tool_arguments, tool_name
from smara.core.tool_triggers import shown_files
from smara.knowledge.models import TypedMemory

MOST_SIGNS = 12
_BACKTICKED = regex(r"`([^`\n]{1,200})`")
_IDENTIFIER = regex(r"[A-Za-z_][\w.]*(?:\(\))?")
_LEAST_NAME = 5
_MOST_TEXT = 20_000
_TOUCHING = ("Read", "Edit", "Write")
_HOW = {"ran": "ran", "id": "cited", "name": "named", "file": "opened"}
PROOFS = ("ran", "cited")
"""Signs that show a use; a name or a file may stand in the work without it."""


class ActionSign(NamedTuple):
    """The command, files and words that an event shows."""

    command: str = ""
    worked: bool = False
    is_run: bool = False
    files: tuple[str, ...] = ()
    words: str = ""


def signs_of_memory(memory: TypedMemory, is_about_file: bool = False) -> tuple[str, ...]:
    """Return what would show that a memory is used."""
    warned = _plain(str(memory.data.get("command") or ""))
    advice = (memory.data.get(name) for name in ("fix", "workaround", "alternative_used"))
    texts = [*(f"`{text}`" for text in advice if isinstance(text, str)), memory.content]
    files = [str(path) for path in memory.data.get("dependent_files", ())] or (
        [] if is_about_file else memory.files
    )
    found = [
        f"id:{memory.short_id}",
        f"id:{memory.id}",
        *(f"ran:{each}" for text in texts for each in _commands(text) if each != warned),
        *(f"name:{name}" for name in names_of(memory.content)),
        *(f"file:{path}" for path in files),
    ]
    return tuple(dict.fromkeys(found))[:MOST_SIGNS]


def signs_of_failure(failure: KnownFailure, is_before: bool) -> tuple[str, ...]:
    """Return what would show that a warning is heeded, or is not."""
    found = [f"id:{failure.fingerprint}"]
    if failure.fix and failure.how in ("command", "first"):
        found.append(f"ran:{_plain(failure.fix)}")
    if failure.fix and failure.how == "path":
        found.append(f"file:{failure.fix}")
    if is_before and failure.tool == "Bash":
        found.append(f"again:{_plain(failure.command)}")
    return tuple(found)


def names_of(text: str) -> list[str]:
    """The identifiers that a text puts between backticks.

    >>> names_of("Call `refresh_tokens()` before `db.close`, not `it`")
    ['refresh_tokens', 'db.close']
    """
    found = (each.strip() for each in _BACKTICKED.findall(text))
    whole = [each.removesuffix("()") for each in found if _IDENTIFIER.fullmatch(each)]
    return list(dict.fromkeys(each for each in whole if len(each) >= _LEAST_NAME))


def _commands(text: str) -> list[str]:
    found = [read_command(each) for each in _BACKTICKED.findall(text) if " " in each.strip()]
    return list(dict.fromkeys(each.text for each in found if each is not None))


def _plain(command: str) -> str:
    parsed = read_command(command)
    return parsed.text if parsed is not None else command.strip()


def seen_in(event: HostEvent) -> ActionSign:
    """Return what an event shows.

    What tools answer is left out: it may repeat an injection without any use of it.
    """
    tool = tool_name(event.tool)
    given = tool_arguments(tool, event.tool_input)
    try:
        written = json.dumps(given, ensure_ascii=False, default=str) if given else ""
    except (TypeError, ValueError):
        written = ""
    words = "\n".join(filter(None, (event.text, written)))[:_MOST_TEXT]
    if event.kind not in ("tool_post", "tool_fail"):
        return ActionSign(
            words=words if event.kind not in ("prompt", "session_start", "compact_post") else ""
        )
    files = (
        [each for each in (given.get("files") or [given.get("file_path")]) if isinstance(each, str)]
        if tool in _TOUCHING
        else []
    )
    line = str(given.get("command") or "") if tool == "Bash" else ""
    files += shown_files(line)
    command = _plain(line) if line else ""
    return ActionSign(
        command, outcome_of(event) == "ok", bool(command), files=tuple(files), words=words
    )


def shows_use(signs: Sequence[str], sight: ActionSign) -> str:
    """Return by what an event shows a use, or an empty text."""
    for sign in signs:
        kind, _, text = sign.partition(":")
        if kind == "ran":
            is_shown = sight.is_run and sight.worked and sight.command == text
        elif kind == "file":
            paths = [path.replace("\\", "/") for path in sight.files]
            is_shown = text in sight.files or any(path.endswith("/" + text) for path in paths)
        else:
            is_shown = kind in ("id", "name") and _is_word(text, sight.words)
        if text and is_shown:
            return _HOW[kind]
    return ""


def _is_word(word: str, text: str) -> bool:
    at = text.find(word) if word else -1
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(word) : at + len(word) + 1]
        if not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_"):
            return True
        at = text.find(word, at + 1)
    return False


def runs_again(signs: Iterable[str], sight: ActionSign) -> bool:
    """Return True if an event runs what was warned of."""
    return sight.is_run and f"again:{sight.command}" in signs


FAILED_CALL_TOKENS = 400
"""A command that fails, and its output: the middle of the 31 failed commands in the transcripts of
evaluation. Nothing else counts as saved: that a file was not read shows nothing.
"""
