"""Write notes on changed files and the definitions in them.

Changes are read from edits, patches and shell redirections; definitions are names with
signatures, tables, routes, settings and tests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from smara.observations.models import Note
from smara.observations.offline import phrases
from smara.observations.offline.exchanges import ToolCall, path_of
from smara.observations.offline.notes import Scene, clean, clip, common_folder, joined, make_note

_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|async|abstract|final|override"
    r"|virtual|sealed|open"
    r"|pub(?:\(\w{1,10}\))?|unsafe|extern|inline|declare|partial|suspend|data"
    r"|constexpr)\s{1,4}){0,5}"
)
_NAMED = re.compile(
    rf"\s{{0,60}}{_MODIFIERS}"
    r"(?:defmodule|defmacro|defp?|fn|func|fun|function\*?|class|interface|struct|enum|trait|type"
    r"|module|protocol|record"
    r"|impl|namespace|union|extension|sub)\s{1,4}(?:\([^()]{0,60}\)\s?)?([A-Za-z_$][\w.$:?!]{0,80})"
)
_ARROW = re.compile(
    r"\s{0,60}(?:export\s{1,3})?(?:default\s{1,3})?(?:const|let|var"
    r"|val)\s{1,3}([A-Za-z_$][\w$]{1,80})\s?(?::[^=]{1,60})?=\s?"
    r"(?:async\b|function\b|\([^()]{0,120}\)\s?(?::[^=]{1,40})?=>|\w{1,40}\s?=>|z\.|yup\.|new\s"
    r"|create\w{1,30}\(|define\w{1,30}\()"
)
_METHOD = re.compile(
    r"\s{1,40}(?:(?:public|private|protected|static|async|final|override|get|set"
    r"|readonly)\s{1,3}){0,4}"
    r"(?!(?:if|for|while|switch|catch|return|function|else|do|with|await|new|throw|super|require"
    r"|import|expect|assert)\b)"
    r"(?:[A-Za-z_$][\w<>\[\],.?]{0,60}\s{1,3})?([A-Za-z_$][\w$]{1,60})\([^()]{0,160}\)\s?(?::\s?[^{;]{1,60})?\{$"
)
_DECLARED = re.compile(
    r"\s{0,40}(?:(?:create|drop|add|alter) (?:unique_)?(?:index|table|constraint)|attribute|field"
    r"|column|has_many"
    r"|has_one|belongs_to|many_to_many|create|update|destroy|action|identity|resource|table"
    r"|add_column|add_index|rename"
    r"|remove|scope|validates?|event|input|slot|attr|hook|resources)[ "
    r"(]{1,3}[:\"'](\w{1,60})[^\n]{0,120}"
)
_CONSTANT = re.compile(
    r"\s{0,8}(?:export\s|pub\s|static\s|final\s|const\s|public\s|let\s|readonly\s|#define\s){0,5}"
    r"([A-Z][A-Z0-9_]{2,60})\s{0,30}(?::[^=]{1,40})?(?:=|\s)\s{0,3}\S.{0,80}"
)
_ATTRIBUTE = re.compile(r"\s{0,8}@([a-z]\w{2,40})\s{1,2}(?!\"\"\")[\d\"'\[:%{~]\S{0,80}.{0,60}")
_TABLE = re.compile(
    r"\b(?:CREATE\s(?:UNIQUE\s)?(?:TABLE|INDEX|VIEW)|ALTER\sTABLE"
    r"|DROP\sTABLE)\s(?:IF\s(?:NOT\s)?EXISTS\s)?"
    r"[\"'`\[]?([\w.]{1,80})[\"'`\]]?(?:\s(?:ADD|DROP|RENAME)\s.{0,80})?",
    re.IGNORECASE,
)
_ROUTE = re.compile(
    r"(?:@?\b\w{1,20}\.)?\b(?:get|post|put|patch|delete|live|route|HandleFunc|Handle|path|re_path"
    r"|Get|Post|Put|Patch|Delete)"
    r"\s{0,2}\(?\s?[\"'`](/[^\"'`\s]{0,120})[\"'`]"
)
_TEST = re.compile(
    r"\s{0,40}(?:(?:async\s)?def\s(test_\w{1,100})|func\s(Test\w{1,80})|(?:fn|void"
    r"|fun)\s(test\w{1,80})"
    r"|(?:test|it|describe|context|scenario|specify)(?:\.\w{1,10})?\s?\(?\s?([\"'`])(.{1,120}?)\4)"
)
_IMPORT = re.compile(
    r"\s{0,12}(?:import\s.{0,160}?from\s[\"']([^\"']{1,80})[\"']|import\s[\"']([^\"']{1,80})[\"']"
    r"|from\s([\w.]{1,80})\simport"
    r"|import\s([\w.]{1,80})|use\s([\w:.]{3,80})|(?:alias|require)\s([A-Z][\w.]{2,80})"
    r"|#include\s[<\"]([^>\"]{1,80})"
    r"|.{0,40}\brequire\([\"']([^\"']{1,80})[\"']\))"
)
_ENVIRONMENT = re.compile(
    r"(?:process\.env\.|import\.meta\.env\.|environ(?:\.get)?[\[(][\"']|getenv\(?[\"']"
    r"|get_env!?\([\"']|ENV\[[\"']"
    r"|env::var\([\"']|Environment\.GetEnvironmentVariable\([\"'])([A-Z][A-Z0-9_]{2,60})"
)
_FAILURE = re.compile(
    r"\b(?:except|catch|rescue|raise|throw(?:s|\snew)?|panic!"
    r"|Err)\b[\s(]{0,3}((?:\w{1,30}\.){0,3}[A-Z]\w{2,60})"
)
_SETTING = re.compile(r"\s{0,40}[\"']?([\w.@/-]{2,60})[\"']?\s{0,3}[:=]\s?[^\s{\[|>].{0,120}")
_FIELD = re.compile(
    r"\s{1,40}[\"']?[A-Za-z_]\w{0,40}[\"']?\??\s{0,20}"
    r"(?:[:=]\s{0,4}\S.{0,70}|\s(?:TEXT|INTEGER|INT|BIGINT|REAL|UUID|BOOLEAN|TIMESTAMP|DATE"
    r"|JSONB?|BLOB|VARCHAR|NUMERIC)\b"
    r".{0,70}|\s[\w.*\[\]]{1,40})"
)
_HEADING = re.compile(r"#{1,4}\s(.{1,100})")
_SETTING_FILES = (
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".ini",
    ".cfg",
    ".env",
    ".properties",
    ".conf",
    ".tf",
    ".lock",
)
_SETTING_NAMES = ("dockerfile", "makefile", ".env", "procfile", "requirements.txt")
_PROSE_FILES = (".md", ".mdx", ".rst", ".txt")
_TAIL = re.compile(r"\s*(?:\{|:|\bdo|=>|=|\(|,|\.\.\.)\s*$")

MOST_LINES = 3_000


class CodeDefinition(NamedTuple):
    """One thing that is defined: the line that says it, and its name alone."""

    text: str
    name: str


@dataclass(slots=True)
class Definitions:
    """What was found in some lines, each kind in reading order."""

    names: list[CodeDefinition] = field(default_factory=list)
    routes: list[CodeDefinition] = field(default_factory=list)
    tables: list[CodeDefinition] = field(default_factory=list)
    settings: list[CodeDefinition] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    opened: list[CodeDefinition] | None = None
    """Where the last piece may still get its fields."""

    def told(self) -> list[CodeDefinition]:
        """Everything in short, the most telling first, each once."""
        plain = [CodeDefinition(text, text) for text in (*self.variables, *self.tests)]
        return list(
            dict.fromkeys([*self.tables, *self.routes, *self.names, *self.settings, *plain])
        )


def definitions(lines: Sequence[str], path: str = "") -> Definitions:
    """What the lines of a file define, use from elsewhere, read from the environment and set."""
    found = Definitions()
    name = path.lower()
    if name.endswith(_PROSE_FILES) and not name.endswith("requirements.txt"):
        headings = [
            heading[1].strip()
            for line in lines[:MOST_LINES]
            if (heading := _HEADING.fullmatch(line.strip()))
        ]
        found.names = [CodeDefinition(heading, heading) for heading in headings]
        return found
    is_setting = name.endswith(_SETTING_FILES) or name.rpartition("/")[2].startswith(_SETTING_NAMES)
    fields_left = 0
    for line in lines[:MOST_LINES]:
        if is_setting:
            if setting := _SETTING.fullmatch(line):
                found.settings.append(CodeDefinition(line.strip().rstrip(","), setting[1]))
            continue
        fields_left = _take(line, found, fields_left)
    return found


def _take(line: str, found: Definitions, fields_left: int) -> int:
    """Look at one line; returns for how many lines more the fields of what it opens are wanted."""
    _take_mentions(line, found)
    if test := _TEST.match(line):
        found.tests.append(test[1] or test[2] or test[3] or test[5])
    elif imported := _IMPORT.match(line):
        found.imports.append(next(group for group in imported.groups() if group))
    elif table := _TABLE.search(line):
        return _open(
            found, found.tables, CodeDefinition(" ".join(table[0].split()), table[1]), fields=12
        )
    elif named := _NAMED.match(line) or _ARROW.match(line) or _METHOD.match(line):
        if named[1] in found.seen:
            return 0  # another clause of the same function
        found.seen.add(named[1])
        return _open(
            found,
            found.names,
            CodeDefinition(signature(line), named[1]),
            fields=8 if _has_fields(line) else 0,
        )
    elif (
        declared := _DECLARED.fullmatch(line)
        or _CONSTANT.fullmatch(line)
        or _ATTRIBUTE.fullmatch(line)
    ):
        found.names.append(CodeDefinition(signature(line), declared[1]))
    elif fields_left and _FIELD.fullmatch(line):
        _add_field(found, signature(line))
        return fields_left - 1
    else:
        return fields_left - 1 if fields_left and line[:1].isspace() else 0
    return 0


def _open(
    found: Definitions, kind: list[CodeDefinition], piece: CodeDefinition, fields: int
) -> int:
    kind.append(piece)
    found.opened = kind
    return fields


def _add_field(found: Definitions, piece: str) -> None:
    """``User`` and ``id: int`` become ``User (id: int)``."""
    if found.opened:
        head, name = found.opened[-1]
        if len(head) + len(piece) < 240:
            has_fields = head.endswith(")") and " (" in head
            found.opened[-1] = CodeDefinition(
                f"{head[:-1]}; {piece})" if has_fields else f"{head} ({piece})", name
            )


def _take_mentions(line: str, found: Definitions) -> None:
    if "env" in line or "ENV" in line or "Environ" in line:
        found.variables += _ENVIRONMENT.findall(line)
    if "/" in line and (route := _ROUTE.search(line)):
        found.routes.append(CodeDefinition(signature(line), route[1]))
    if failure := _FAILURE.search(line):
        found.failures.append(failure[1])


def _has_fields(line: str) -> bool:
    words = ("interface ", "struct ", "type ", "record ", "class ", "Schema", "z.object", "enum ")
    return any(map(line.__contains__, words))


def signature(line: str) -> str:
    """A defining line without what only opens its body, in at most 110 characters."""
    words = " ".join(line.split())
    for _ in range(3):
        words = _TAIL.sub("", words)
    return words if len(words) <= 110 else f"{words[:109]}…"


def defined_names(lines: Sequence[str]) -> dict[str, str]:
    """The names that lines define as functions, classes and types, each with its signature."""
    found: dict[str, str] = {}
    for line in lines[:MOST_LINES]:
        if match := _NAMED.match(line) or _ARROW.match(line) or _CONSTANT.fullmatch(line):
            found.setdefault(match[1], signature(line))
    return found


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


def changes_of(call: ToolCall, before: str = "") -> list[FileChange]:
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


_FOR_A_NEW_FILE, _FOR_A_CHANGED_FILE, _WHEN_MANY = 560, 400, 300
_MANY = 7
_TELLS = re.compile(r"[^\W\d_]{3}")
_WEAK = re.compile(
    r"\s*(?:end|else|return|break|[)}\]>;,]+|</?\w{1,12}>|#.{0,80}|//.{0,80}|\"\"\"|'''"
    r"|\*.{0,80})[;,)]*\s*"
)


@dataclass(slots=True)
class _WrittenFile:
    """All that happened to one file in a stretch."""

    path: str
    verb: str = phrases.EDITED
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    around: list[str] = field(default_factory=list)
    quoted: list[str] = field(default_factory=list)
    """Lines of changes that define nothing."""


def code_note(scene: Scene, changes: Sequence[tuple[FileChange, ToolCall]]) -> Note | None:
    """What a stretch of work wrote, or None when it wrote nothing."""
    files = _by_file(scene, changes)
    if not files:
        return None
    calls = [call for _, call in changes]
    gone = [name for file in files for name in _gone(file)]
    facts: dict[str, Any] = {}
    if scene.mode == "refactoring":
        facts = {"filesAffected": [file.path for file in files], "breaking": gone[:12]}
    text, details = _written(files)
    return make_note(
        scene,
        "medium",
        "code",
        text=text,
        at=calls[0].at,
        details=details,
        inputs=["assistant"],
        seqs=[seq for call in calls for seq in (call.seq, call.last_seq)],
        files=[file.path for file in files],
        **facts,
    )


def _by_file(scene: Scene, changes: Sequence[tuple[FileChange, ToolCall]]) -> list[_WrittenFile]:
    files: dict[str, _WrittenFile] = {}
    for change, _ in changes:
        path = scene.paths.short(change.path)
        file = files.setdefault(path, _WrittenFile(path))
        if change.verb != "changed":
            file.verb = phrases.CREATED if change.verb == "created" else phrases.DELETED
        file.added += change.added
        file.removed += change.removed
        file.around += change.around
        if change.added and not definitions(change.added, path).told():
            file.quoted += _telling_lines(change.added)[:2]
    return list(files.values())


def _written(files: Sequence[_WrittenFile]) -> tuple[str, list[str]]:
    if len(files) == 1:
        told = told_of(files[0])
        return f"{files[0].verb} {files[0].path}" + (f": {told}" if told else ""), []
    folder = common_folder([file.path for file in files])
    details = [_line(file, folder, len(files) >= _MANY) for file in files]
    return (f"{phrases.CODE_IN} {folder}" if folder else phrases.CODE), details


def _line(file: _WrittenFile, folder: str, is_one_of_many: bool) -> str:
    told = told_of(file, _WHEN_MANY if is_one_of_many else None)
    verb = "" if file.verb == phrases.EDITED else f"{file.verb} "
    return f"{verb}{file.path.removeprefix(folder)}" + (f": {told}" if told else "")


def told_of(file: _WrittenFile, characters: int | None = None) -> str:
    """What a file defines now; when nothing new is defined, where it was changed and the words that
    came.
    """
    room = characters or (_FOR_A_NEW_FILE if file.verb == phrases.CREATED else _FOR_A_CHANGED_FILE)
    found = definitions(file.added, file.path)
    defined = found.told()
    pieces = [_fitted(defined, room - 100) if defined else joined(_quoted(file), room)]
    if defined and len(pieces[0]) < room // 2:
        pieces += [clip(line, 90) for line in file.quoted[:2]]
    uses = found.imports if defined else ()
    for label, names in (
        (phrases.REMOVED, _gone(file)),
        (phrases.IMPORTS, uses),
        (phrases.HANDLES, found.failures),
    ):
        if names:
            pieces.append(f"{label} {joined(dict.fromkeys(names), 100, ', ')}")
    return joined(filter(None, pieces), room + 120)


def _fitted(pieces: list[CodeDefinition], characters: int) -> str:
    """Signatures as long as there is room, then only the names of the rest."""
    kept: list[str] = []
    for place, piece in enumerate(pieces):
        if kept and sum(map(len, kept)) + len(piece.text) > characters * 2 // 3:
            rest = joined(
                dict.fromkeys(each.name for each in pieces[place:]), characters // 2, ", "
            )
            return "; ".join([*kept, rest])
        kept.append(clip(piece.text, characters))
    return "; ".join(kept)


def _quoted(file: _WrittenFile) -> list[str]:
    """The first lines that came and say something, behind the definition that they stand under."""
    if not file.added and file.removed:
        return [f"{phrases.REMOVED} {clip(line, 90)}" for line in file.removed[:2]]
    under = list(defined_names(file.around).values())[:1]
    return [clip(line, 90) for line in [*under, *_telling_lines(file.added)[:3]]]


def _telling_lines(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if _TELLS.search(line) and not _WEAK.fullmatch(line)]


def _gone(file: _WrittenFile) -> list[str]:
    """Names that were defined and are no more."""
    if not file.removed:
        return []
    kept = "\n".join([*file.added, *file.around])
    return [name for name in defined_names(file.removed) if name not in kept][:8]
