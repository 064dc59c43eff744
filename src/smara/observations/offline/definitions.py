"""What written code defines: names with their signatures, tables, routes, settings, tests.

By light patterns over single lines, for many languages at once; no grammar. A pattern
never looks further than its line, and a line is bounded, so the cost is linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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


class Piece(NamedTuple):
    """One thing that is defined: the line that says it, and its name alone."""

    text: str
    name: str


@dataclass(slots=True)
class Definitions:
    """What was found in some lines, each kind in reading order."""

    names: list[Piece] = field(default_factory=list)
    routes: list[Piece] = field(default_factory=list)
    tables: list[Piece] = field(default_factory=list)
    settings: list[Piece] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    opened: list[Piece] | None = None
    """Where the last piece may still get its fields."""

    def told(self) -> list[Piece]:
        """Everything in short, the most telling first, each once."""
        plain = [Piece(text, text) for text in (*self.variables, *self.tests)]
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
        found.names = [Piece(heading, heading) for heading in headings]
        return found
    is_setting = name.endswith(_SETTING_FILES) or name.rpartition("/")[2].startswith(_SETTING_NAMES)
    fields_left = 0
    for line in lines[:MOST_LINES]:
        if is_setting:
            if setting := _SETTING.fullmatch(line):
                found.settings.append(Piece(line.strip().rstrip(","), setting[1]))
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
        return _open(found, found.tables, Piece(" ".join(table[0].split()), table[1]), fields=12)
    elif named := _NAMED.match(line) or _ARROW.match(line) or _METHOD.match(line):
        if named[1] in found.seen:
            return 0  # another clause of the same function
        found.seen.add(named[1])
        return _open(
            found,
            found.names,
            Piece(signature(line), named[1]),
            fields=8 if _has_fields(line) else 0,
        )
    elif (
        declared := _DECLARED.fullmatch(line)
        or _CONSTANT.fullmatch(line)
        or _ATTRIBUTE.fullmatch(line)
    ):
        found.names.append(Piece(signature(line), declared[1]))
    elif fields_left and _FIELD.fullmatch(line):
        _add_field(found, signature(line))
        return fields_left - 1
    else:
        return fields_left - 1 if fields_left and line[:1].isspace() else 0
    return 0


def _open(found: Definitions, kind: list[Piece], piece: Piece, fields: int) -> int:
    kind.append(piece)
    found.opened = kind
    return fields


def _add_field(found: Definitions, piece: str) -> None:
    """``User`` and ``id: int`` become ``User (id: int)``."""
    if found.opened:
        head, name = found.opened[-1]
        if len(head) + len(piece) < 240:
            has_fields = head.endswith(")") and " (" in head
            found.opened[-1] = Piece(
                f"{head[:-1]}; {piece})" if has_fields else f"{head} ({piece})", name
            )


def _take_mentions(line: str, found: Definitions) -> None:
    if "env" in line or "ENV" in line or "Environ" in line:
        found.variables += _ENVIRONMENT.findall(line)
    if "/" in line and (route := _ROUTE.search(line)):
        found.routes.append(Piece(signature(line), route[1]))
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
