"""Write notes on changed files and the definitions in them.

Changes are read from edits, patches and shell redirections; definitions are names with
signatures, tables, routes, settings and tests.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from smara.core.extract import shorten
from smara.core.startup.record import dataclass, field
from smara.core.tool_names import ARGUMENTS, patched_file
from smara.observations.models import Note
from smara.observations.offline.exchanges import ToolCall, path_of
from smara.observations.offline.notes import CUES, Scene, clean, clip, joined

# A line without any of these is not searched: ignoring case is slow.
_TABLE_WORDS = ("TABLE", "INDEX", "VIEW")
_SETTING_FILES = (
    ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".env", ".properties", ".conf", ".tf",
    ".lock",
)  # fmt: skip
_SETTING_NAMES = ("dockerfile", "makefile", ".env", "procfile", "requirements.txt")
_PROSE_FILES = (".md", ".mdx", ".rst", ".txt")

MOST_LINES = 3_000


Kind = Literal["table", "route", "name", "setting", "test"]
"""The most telling first."""


class CodeDefinition(NamedTuple):
    """A defined thing: the line that says it, and its name alone."""

    kind: Kind
    text: str
    name: str


def definitions(lines: Sequence[str], path: str = "") -> list[CodeDefinition]:
    """Return what lines define and set, the most telling first, each once."""
    found = sorted(_definitions(lines, path), key=lambda each: get_args(Kind).index(each.kind))
    return list(dict.fromkeys(found))


def _definitions(lines: Sequence[str], path: str) -> Iterator[CodeDefinition]:
    name = path.lower()
    is_prose = name.endswith(_PROSE_FILES) and not name.endswith("requirements.txt")
    is_setting = name.endswith(_SETTING_FILES) or name.rpartition("/")[2].startswith(_SETTING_NAMES)
    seen: set[str] = set()
    for line in lines[:MOST_LINES]:
        if is_prose:
            if heading := CUES["title line"].fullmatch(line.strip()):
                yield CodeDefinition("name", heading[1].strip(), heading[1].strip())
            continue
        if is_setting:
            if setting := CUES["setting"].fullmatch(line):
                yield CodeDefinition("setting", line.strip().rstrip(","), setting[1])
            continue
        if "/" in line and (route := CUES["route"].search(line)):
            yield CodeDefinition("route", signature(line), route[1])
        if test := CUES["test"].match(line):
            title = test[1] or test[2] or test[3] or test[5]
            yield CodeDefinition("test", title, title)
        elif any(map(line.upper().__contains__, _TABLE_WORDS)) and (
            table := CUES["table"].search(line)
        ):
            yield CodeDefinition("table", " ".join(table[0].split()), table[1])
        elif (
            named := CUES["named"].match(line)
            or CUES["arrow"].match(line)
            or CUES["method"].match(line)
        ):
            if named[1] not in seen:  # else it is another clause of the same function
                seen.add(named[1])
                yield CodeDefinition("name", signature(line), named[1])
        elif (
            declared := CUES["declared"].fullmatch(line)
            or CUES["constant"].fullmatch(line)
            or CUES["attribute"].fullmatch(line)
        ):
            yield CodeDefinition("name", signature(line), declared[1])


def signature(line: str) -> str:
    """Return a defining line without what opens its body."""
    words = " ".join(line.split())
    for _ in range(3):
        words = CUES["opens body"].sub("", words)
    return shorten(words, 110)


READ_CHARACTERS = 120_000
_PATCH = ("patch", "input", "diff", "patchText")


@dataclass(slots=True)
class FileChange:
    """A change to one file, with the lines that tell of it."""

    path: str
    verb: Literal["Created", "Changed", "Deleted"]
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    around: list[str] = field(default_factory=list)
    """Lines that stayed but were quoted to find the place."""
    plain: list[str] = field(default_factory=list)
    """Telling lines of changes that define nothing."""

    @property
    def gone(self) -> list[str]:
        """Names that were defined and are no longer."""
        names = [each.name for each in definitions(self.removed, self.path) if each.kind == "name"]
        here = "\n".join([*self.added, *self.around]) if names else ""
        return [name for name in names if name not in here][:8]


def changes_of(call: ToolCall) -> list[FileChange]:
    """Return the files that an editing call changes."""
    if not isinstance(call.arguments, Mapping):
        return _of_patch(call.arguments) if isinstance(call.arguments, str) else []
    path = path_of(call)
    edits = call.arguments.get("edits")
    if isinstance(edits, list) and path:
        old, new = (
            "\n".join(
                next((text for name in names if isinstance(text := edit.get(name), str)), "")
                for edit in edits
                if isinstance(edit, Mapping)
            )
            for names in (ARGUMENTS["old_string"], ARGUMENTS["new_string"])
        )
        return [_edited(path, old, new)]
    patch = call.argument(*_PATCH)
    if patch and ("*** " in patch or "+++ " in patch):
        return _of_patch(patch)
    if not path:
        return []
    old, new = (call.argument(*ARGUMENTS[f"{age}_string"]) for age in ("old", "new"))
    if old or new or patch:
        return [_edited(path, old, new or patch)]
    if content := call.argument(*ARGUMENTS["content"]):
        output = (call.output or "")[:400]
        is_new = "updated" not in output and "overwr" not in output
        return [FileChange(path, "Created" if is_new else "Changed", lines_of(content))]
    return [FileChange(path, "Deleted" if "delete" in call.name.lower() else "Changed")]


def _of_patch(patch: str) -> list[FileChange]:
    changes = [FileChange("", "Changed")]
    # In the apply_patch format "+++ x" is an added line.
    heads = "*" if "*** Begin Patch" in patch else "*+"
    for line in patch[:READ_CHARACTERS].split("\n"):
        if line[:1] in heads and (heading := patched_file(line)):
            changes.append(FileChange(heading[1], heading[0]))
        elif line.startswith("+"):
            changes[-1].added.append(line[1:])
        elif line.startswith("-") and not line.startswith("--- "):
            changes[-1].removed.append(line[1:])
    return [change for change in changes if change.path]


def _edited(path: str, old: str, new: str) -> FileChange:
    before, after = lines_of(old), lines_of(new)
    came, went = Counter(after) - Counter(before), Counter(before) - Counter(after)
    return FileChange(
        path,
        "Changed",
        [line for line in after if came[line]],
        removed=[line for line in before if went[line]],
        around=[line for line in after if not came[line]],
    )


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that say something."""
    lines = clean(text[:READ_CHARACTERS]).split("\n")
    return [line[:600].rstrip() for line in lines if line.strip()]


_FOR_A_NEW_FILE, _FOR_A_CHANGED_FILE, _WHEN_MANY = 560, 400, 300
_MANY = 7


def code_note(scene: Scene, changes: Sequence[tuple[FileChange, ToolCall]]) -> Note | None:
    """Write what a stretch of work wrote, file by file."""
    files: dict[str, FileChange] = {}
    for change, _ in changes:
        path = scene.paths.short(change.path)
        file = files.setdefault(path, FileChange(path, "Changed"))
        file.verb = file.verb if change.verb == "Changed" else change.verb
        file.added += change.added
        file.removed += change.removed
        file.around += change.around
        if not definitions(change.added, path):
            file.plain += _telling_lines(change.added)[:2]
    if not files:
        return None
    folder, details = "", []
    if len(files) == 1:
        text = _line_of(file, file.path, f"{file.verb} ")
    else:
        folders = {posixpath.dirname(path) for path in files}
        if len(folders) == 1 and "/" in (only := folders.pop()):
            folder = f"{only}/"
        text = f"Changed code in {folder}" if folder else "Changed code:"
        most = _WHEN_MANY if len(files) >= _MANY else None
        for file in files.values():
            verb = "" if file.verb == "Changed" else f"{file.verb} "
            details.append(_line_of(file, file.path.removeprefix(folder), verb, characters=most))
    facts: dict[str, Any] = {}
    if scene.mode == "refactoring":
        gone = [name for file in files.values() for name in file.gone]
        facts = {"filesAffected": list(files), "breaking": gone[:12]}
    return scene.note(
        "medium",
        "code",
        text,
        [call for _, call in changes],
        details=details,
        inputs=["assistant"],
        files=list(files),
        **facts,
    )


def _line_of(file: FileChange, path: str, verb: str, characters: int | None = None) -> str:
    """Write what a file defines now; else where it was changed and the words that came."""
    room = characters or (_FOR_A_NEW_FILE if file.verb == "Created" else _FOR_A_CHANGED_FILE)
    if defined := definitions(file.added, file.path):
        pieces = [_signatures(defined, room - 100)]
        if len(pieces[0]) < room // 2:
            pieces += [clip(line, 90) for line in file.plain[:2]]
    elif file.removed and not file.added:
        pieces = [f"removed {clip(line, 90)}" for line in file.removed[:2]]
    else:
        # The first lines that came and say something, behind the definition around them.
        under = [each.text for each in definitions(file.around) if each.kind == "name"][:1]
        lines = [clip(line, 90) for line in [*under, *_telling_lines(file.added)[:3]]]
        pieces = [joined(lines, room)]
    if file.gone:
        pieces.append(f"removed {joined(file.gone, 100, ', ')}")
    about = joined(filter(None, pieces), room + 120)
    return f"{verb}{path}: {about}" if about else f"{verb}{path}"


def _signatures(pieces: list[CodeDefinition], characters: int) -> str:
    """Join signatures as long as there is room, then only the names of the rest."""
    shown: list[str] = []
    for place, piece in enumerate(pieces):
        if shown and sum(map(len, shown)) + len(piece.text) > characters * 2 // 3:
            rest = dict.fromkeys(each.name for each in pieces[place:])
            return "; ".join([*shown, joined(rest, characters // 2, ", ")])
        shown.append(clip(piece.text, characters))
    return "; ".join(shown)


def _telling_lines(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if CUES["word of line"].search(line)]
