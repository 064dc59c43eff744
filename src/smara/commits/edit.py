"""Match a tool call with the notes on a file's lines.

A note (:mod:`.note`) is told when its lines are about to be changed; that something was undone is
told where it stood, and when the file is opened. What a note says must still be so in the file.
Hooks load this module: keep its imports few.
"""

from __future__ import annotations

from zlib import crc32

from smara.core.memory_block import CLOSING, OPENING
from smara.core.startup.regex import re, regex

TYPE_CHECKING = False  # read by hooks; see smara.core.tool_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

NOTES_AT = (
    "SELECT facts FROM line_notes WHERE project_no = :project AND place = :place AND path = :path"
)
WHY_OPENED, WHY_CHANGED = "the file was opened", "its lines are about to be changed"
_NAME = regex(
    r"(?:\b(?:def|class|func|fn|fun|function|interface|struct|enum|trait|impl|module|type|sub|proc|"
    r"object|defp?|defmodule)\s+(?:\([^)]{0,80}\)\s*)?([A-Za-z_$][\w$.]*)"
    r"|([A-Za-z_$][\w$]*)\s*(?:=\s*(?:async\s*)?(?:function\b|\()|\())"
)
_NOT_NAMES = frozenset(
    ["if", "for", "while", "switch", "return", "catch", "with", "elif", "else", "await", "new"]
)
_DEFINITION = regex(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|override|abstract"
    r"|async|pub(?:\([^)]*\))?)\s+)*(?:def|class|func|fn|fun|function)\b"
)
_PAIRS = (("old_string", "new_string"), ("oldString", "newString"), ("old_str", "new_str"))
_MOST_CHARACTERS, _MOST_LINES = 400_000, 60


def bare(line: str) -> str:
    """Return a line without how it is set in.

    >>> bare("    a =  1")
    'a = 1'
    """
    return " ".join(line.split())


def marks(lines: Iterable[str]) -> set[int]:
    """Return short marks of lines, without empty ones."""
    return {crc32(text.encode("utf-8", "surrogatepass")) for line in lines if (text := bare(line))}


def name_of(line: str) -> str:
    """Return the name of the function that a line begins.

    >>> name_of("    def apply(self, amount):"), name_of("func (s *Store) Get(id string) Row {")
    ('apply', 'Get')
    >>> name_of("static int read_all(FILE *f)"), name_of("const send = async (x) => {"), name_of("")
    ('read_all', 'send', '')
    """
    for match in _NAME.finditer(line[:200]):
        name = match[1] or match[2]
        if name not in _NOT_NAMES:
            return name
    return ""


def is_definition(line: str) -> bool:
    """Return True if a line begins a function or class."""
    return _DEFINITION.match(line) is not None


def function_at(lines: Sequence[str], number: int) -> str:
    """Return the innermost function around a line, by indentation.

    >>> function_at(["class A:", "    def b(", "        self,", "    ):", "        return 1"], 5)
    'b'
    """
    if not 0 < number <= len(lines):
        return ""
    depth = _depth(lines[number - 1]) + is_definition(lines[number - 1])
    for line in reversed(lines[:number]):
        text = line.strip()
        if text and _depth(line) < depth:
            if is_definition(line) or (text.endswith("{") and name_of(line)):
                return name_of(line)
            # A closing bracket ends what was begun at the same depth.
            depth = _depth(line) + (text[0] in ")]}")
    return ""


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


class _Change:
    """The lines that a call changes, and the functions around them."""

    def __init__(self, given: Mapping[str, Any], text: str) -> None:
        edits = list(_edits_of(given))
        self.is_whole = not edits
        if self.is_whole:
            edits = [(text, str(given.get("content") or given.get("file_text") or ""))]
        self.near: set[int] = set()
        self.lines: set[int] = set()
        self.functions: set[str] = set()
        present = text.split("\n")
        for old, new in edits:
            lines = old.split("\n")
            gone = marks(lines) - marks(new.split("\n"))
            self.near |= marks(lines)
            self.lines |= gone
            # A host that cannot be told anything before a change is told after it.
            at = max(text.find(old) if old else -1, text.find(new) if new else -1)
            first = text.count("\n", 0, at) + 1 if at >= 0 else None
            for number, line in enumerate(lines[:_MOST_LINES] if not self.is_whole else ()):
                if not line.strip() or (gone and gone.isdisjoint(marks([line]))):
                    continue
                if first is not None:
                    self.functions.add(function_at(present, first + number))
                elif is_definition(line):
                    self.functions.add(name_of(line))
        self.functions.discard("")

    def is_about(self, note: Mapping[str, Any]) -> bool:
        """Return True if a note is about lines that this changes."""
        if not note["is_undone"]:
            return not self.lines.isdisjoint(note["lines"])
        return (
            self.is_whole
            or not self.near.isdisjoint(note["now"])
            or not self.functions.isdisjoint(note["functions"])
        )


def _edits_of(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a call replaces, and what it puts there; nothing for a whole file."""
    edits = given.get("edits")
    for edit in [given, *(edits if isinstance(edits, list) else [])]:
        for old, new in _PAIRS if isinstance(edit, dict) else ():
            if isinstance(edit.get(old), str) and edit[old].strip():
                yield edit[old][:_MOST_CHARACTERS], str(edit.get(new) or "")[:_MOST_CHARACTERS]
    for value in given.values():
        if isinstance(value, str) and "*** Begin Patch" in value:
            for hunk in re.split(r"^(?:@@|\*\*\*).*\n", value[:_MOST_CHARACTERS], flags=re.M):
                lines = [line for line in hunk.split("\n") if line[:1] in (" ", "-", "+")]
                if lines:
                    old, new = (
                        "\n".join(line[1:] for line in lines if line[0] != sign) for sign in "+-"
                    )
                    yield old, new


def injection_of(note: Mapping[str, Any], point: str, is_edit: bool) -> dict[str, Any]:
    """Return a note as an injection, by the names of its fields."""
    item = {
        "kind": "commit",
        "id": note["id"],
        "why": WHY_CHANGED if is_edit else WHY_OPENED,
        "text": note["text"],
        "key": note["key"],
        "tokens": note["tokens"],
        "saved_tokens": 0,
        "saved_how": "",
        "signs": [f"id:{note['id']}"],
    }
    text = f"{OPENING}\n{note['line']}\n{CLOSING}"
    return {"text": text, "tokens": note["tokens"], "point": point, "items": [item]}


def with_place(line: str, path: str) -> str:
    """Return a note for a reader who has not opened its file."""
    where = f" in `{' '.join(path.split())}`"
    line = line.replace("- Lines that this changes were", f"- Lines{where} were", 1)
    return line.replace("- Undone here", f"- Undone{where}", 1)


def matching(
    notes: Sequence[Mapping[str, Any]], text: str, given: Mapping[str, Any] | None
) -> list[Mapping[str, Any]]:
    """Return the notes that a call is about, in order.

    Args:
        notes: The notes on a file.
        text: The file as it lies there.
        given: The arguments of a call that changes it; ``None`` for one that opens it.
    """
    text = text[:_MOST_CHARACTERS]
    here = marks(text.split("\n"))
    change = None if given is None else _Change(given, text)
    found = []
    for note in notes:
        # What is written again, or was changed since, is not as the note says.
        is_so = not note["is_undone"] or (
            here.isdisjoint(note["gone"]) and (not note["now"] or not here.isdisjoint(note["now"]))
        )
        if is_so and (note["is_undone"] if change is None else change.is_about(note)):
            found.append(note)
    return found
