"""Changes to files: which file, the lines that came and the lines that went.

Read from the arguments of editing tools in their various shapes, from patches, and from
shell commands that write a file with ``cat > file <<EOF``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from smara.observations.offline.exchanges import Call
from smara.observations.offline.tools import path_of
from smara.observations.offline.wording import clean

Verb = Literal["created", "changed", "deleted"]

_READ_CHARACTERS = 120_000
_OLD = ("old_string", "old_str", "old_text", "search", "oldString", "SEARCH")
_NEW = (
    "new_string",
    "new_str",
    "new_text",
    "replace",
    "newString",
    "new_source",
    "insert_text",
    "code_edit",
    "REPLACE",
)
_WHOLE = ("content", "file_text", "contents", "text", "file_content", "CodeContent")
_PATCH = ("patch", "input", "diff", "patchText")
_PATCH_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.{1,400})|\+\+\+ (?:b/)?(\S{1,400})")
_NUMBER = re.compile(r"^\s{0,8}\d{1,7}(?:→|\t)", re.MULTILINE)
_HEREDOC = re.compile(
    r"(?:cat|tee)\s+(?:-a\s+)?(?:>{1,2}\s*)?([^\s<>"
    r"|&;]{1,300})\s*(?:<<-?\s*['\"]?(\w{1,40})['\"]?)[^\n]{0,80}\n"
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file, what was done to it, and the lines that tell of it."""

    path: str
    verb: Verb
    added: tuple[str, ...]
    removed: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    """Lines that stayed but were quoted to find the place."""


def changes_of(call: Call, before: str = "") -> list[FileChange]:
    """The files that an editing call changes; none when its arguments have an unknown shape.

    ``before`` is what the file was last seen to hold: a file that is written anew then
    counts with the lines that are new.
    """
    if isinstance(call.arguments, str):
        return list(_of_patch(call.arguments))
    if not isinstance(call.arguments, Mapping):
        return []
    path = path_of(call)
    edits = call.arguments.get("edits")
    if isinstance(edits, list) and path:
        pairs = [
            (_text(edit, _OLD), _text(edit, _NEW)) for edit in edits if isinstance(edit, Mapping)
        ]
        return [
            _edited(path, "\n".join(old for old, _ in pairs), "\n".join(new for _, new in pairs))
        ]
    patch = call.argument(*_PATCH)
    if patch and ("*** " in patch or "+++ " in patch):
        return list(_of_patch(patch))
    if not path:
        return []
    old, new = call.argument(*_OLD), call.argument(*_NEW)
    if old or new or patch:
        return [_edited(path, old, new or patch)]
    whole = call.argument(*_WHOLE)
    if whole:
        if before:
            return [_edited(path, _NUMBER.sub("", before[:_READ_CHARACTERS]), whole)]
        is_new = call.output is None or not (
            "updated" in call.output[:400] or "overwr" in call.output[:400]
        )
        return [FileChange(path, "created" if is_new else "changed", _lines(whole))]
    return [FileChange(path, "deleted" if "delete" in call.name.lower() else "changed", ())]


def written_by_shell(command: str) -> list[FileChange]:
    """The files that a command writes from text inside itself."""
    found: list[FileChange] = []
    for match in _HEREDOC.finditer(command[:_READ_CHARACTERS]):
        end = command.find(f"\n{match[2]}", match.end())
        body = command[match.end() : end if end >= 0 else len(command)]
        if match[1] not in ("-", "EOF"):
            found.append(FileChange(match[1].strip("'\""), "changed", _lines(body)))
    return found


def _of_patch(patch: str) -> Iterator[FileChange]:
    lines = patch[:_READ_CHARACTERS].split("\n")
    path, verb = "", "changed"
    added: list[str] = []
    removed: list[str] = []
    for line in [*lines, "*** Update File: "]:
        if line.startswith(("*** ", "+++ ")) and (head := _PATCH_FILE.match(line + " ")):
            if path:
                yield FileChange(path, verb, tuple(added), removed=tuple(removed))  # type: ignore[arg-type]
            path, added, removed = (head[2] or head[3] or "").strip(), [], []
            verb = {"Add": "created", "Delete": "deleted"}.get(head[1] or "", "changed")
        elif line.startswith("+") and path:
            added.append(line[1:])
        elif line.startswith("-") and path and not line.startswith("--- "):
            removed.append(line[1:])


def _edited(path: str, old: str, new: str) -> FileChange:
    before, after = _lines(old), _lines(new)
    old_count, new_count = Counter(before), Counter(after)
    came = new_count - old_count
    went = old_count - new_count
    stayed = tuple(line for line in after if not came[line])
    return FileChange(
        path, "changed", _taken(after, came), removed=_taken(before, went), around=stayed
    )


def _taken(lines: tuple[str, ...], wanted: Counter[str]) -> tuple[str, ...]:
    return tuple(line for line in lines if wanted[line] > 0)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(
        line[:600].rstrip() for line in clean(text[:_READ_CHARACTERS]).split("\n") if line.strip()
    )


def _text(edit: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := edit.get(name), str)), "")
