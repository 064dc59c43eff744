"""Read the issues of a quality report, whatever its shape.

A report is JSON or XML (linters, SARIF, JUnit), or text: lines that a place begins, lists, tables,
and blocks of `File:`, `Problem:`, `Fix:`. An issue names a file or a test and says something about
it. Lines that belong to no issue are reported, so that nothing is lost in silence.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from smara.actions.commands import CUES, WORDS
from smara.actions.failures import ends_of
from smara.actions.reports import failed_tests, read_test_run
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex

_MOST_TEXT = 400_000
_MOST_ISSUES = 200
_MOST_DEPTH = 12
_SHOWN_LINES = 3
_MOST_TEXT_OF_ITEM = 200

_NAMES: dict[str, str] = {
    name: kind
    for kind, names in {
        "path": "file path filename filepath file_path file_name location where uri files component"
        " source_file relativepath nodeid absolute_path",
        "line": "line lines lineno line_number linenumber start_line startline row beginline begin",
        "text": "problem issue defect description message bug finding error what details detail"
        " observed actual symptom text comment body failure note notes reason msg impact",
        "title": "title summary name check heading",
        "fix": "fix suggestion recommendation solution remedy suggested_fix recommended_fix"
        " how_to_fix proposed_fix resolution action",
        "severity": "severity priority level",
        "status": "status outcome result conclusion state verdict",
    }.items()
    for name in names.split()
}  # fmt: skip
_PLACE = CUES["issue place"]
_FENCE = regex(r"^\s*(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class QaIssue:
    """One problem that a report names, with its place."""

    text: str
    path: str = ""
    line: int | None = None
    test: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class QaIssues:
    """The issues of a report, and what of it was not understood."""

    issues: tuple[QaIssue, ...] = ()
    unread_count: int = 0
    unread_lines: tuple[str, ...] = ()
    """The first lines that belong to no issue, at most three."""


def read_issues(report: str) -> QaIssues:
    """Read the issues of a report in whichever shape it is."""
    report = report[:_MOST_TEXT]
    found: list[QaIssue] = []
    text = report
    for document, values in _documents(report):
        found += values
        text = text.replace(document, "\n" if values else document, 1)
    tests = [each for each in failed_tests(ends_of(text)) if each.reason or each.file]
    found += [QaIssue(t.reason or "it fails", t.file, test=t.name) for t in tests]
    is_test_log = bool(tests) and read_test_run(text.splitlines()) is not None
    blocks = _Blocks([each.name for each in tests])
    for line in text.splitlines():
        blocks.read(line)
    found += blocks.end()
    unread = [] if is_test_log else blocks.unread
    unique: dict[tuple[str, str], QaIssue] = {}
    for each in found:
        unique.setdefault((each.path, each.text), each)
    shown = tuple(" ".join(line.split())[:120] for line in unread[:_SHOWN_LINES])
    return QaIssues(tuple(unique.values())[:_MOST_ISSUES], len(unread), shown)


# documents


def _documents(report: str) -> Iterator[tuple[str, list[QaIssue]]]:
    """Each part that is JSON or XML, as it stands in the report, with its issues."""
    fenced = [match[1] for match in re.finditer(r"```\w*\n(.*?)```", report, re.DOTALL)]
    lines = [line for line in report.splitlines() if line.startswith("{") and line.endswith("}")]
    for part in dict.fromkeys([report, *fenced, *lines]):
        start = part.lstrip()[:1]
        try:
            if start in ("{", "["):
                yield part, list(_from_json(json.loads(part), {}, 0))
            elif start == "<" and "<!" not in part.replace("<![CDATA[", ""):  # no entities
                yield part, list(_from_xml(ElementTree.fromstring(part.strip()), {}))  # noqa: S314
            else:
                continue
        except (ValueError, RecursionError, ElementTree.ParseError):
            continue
        if part is report:
            return


def _from_json(value: Any, above: Mapping[str, str], depth: int) -> Iterator[QaIssue]:
    """Issues of a tree: a node with words, whose place is its own or that of a node above."""
    if depth > _MOST_DEPTH:
        return
    if isinstance(value, list):
        for each in value:
            yield from _from_json(each, above, depth + 1)
    elif isinstance(value, dict):
        own = _facts(value)
        if own.get("status", "").lower() in WORDS["good states"]:
            return
        below = {**above, **{k: v for k, v in own.items() if k in ("path", "line", "test")}}
        inner = [
            issue
            for name, each in value.items()
            if isinstance(each, dict | list) and _kind(name) != "text"
            for issue in _from_json(each, below, depth + 1)
        ]
        words = own.get("text") or (own.get("title") if "path" in own else None)
        yield from inner or _issue({**below, **own, "text": words or ""})


def _kind(name: str) -> str | None:
    return _NAMES.get(re.sub(r"[\s-]+", "_", name.strip()).lower())


def _facts(value: Mapping[str, Any]) -> dict[str, str]:
    """The fields of one node by their kind, those of its location included."""
    facts: dict[str, str] = {}
    for name, each in value.items():
        kind = _kind(name)
        if isinstance(each, dict) and kind in ("text", "title"):
            each = each.get("text") or each.get("message") or each.get("markdown")
        elif isinstance(each, dict | list) and re.search(
            r"location|region|span|start|range|^lines$", name, re.I
        ):
            for inner in each if isinstance(each, list) else [each]:
                for key, found in _facts(inner).items() if isinstance(inner, dict) else ():
                    facts.setdefault(key, found)
            continue
        if (
            kind
            and isinstance(each, str | int)
            and not isinstance(each, bool)
            and str(each).strip()
        ):
            facts.setdefault(kind, str(each).strip())
    return facts


def _from_xml(node: ElementTree.Element, above: Mapping[str, str]) -> Iterator[QaIssue]:
    own = _facts(node.attrib)
    below = {**above, **{k: v for k, v in own.items() if k in ("path", "line")}}
    title = own.get("title", "")
    if _PLACE.fullmatch(title):
        below["path"] = title
    elif title and node.attrib.get("classname"):
        below["test"] = f"{node.attrib['classname']}::{title}"
    if re.fullmatch(r"(?i)failure|error|issue|bug|violation|problem|bugInstance", node.tag):
        words = own.get("text") or " ".join((node.text or "").split())[:400]
        yield from _issue({**below, **own, "text": words})
    for child in node:
        yield from _from_xml(child, below)


def _issue(facts: Mapping[str, str]) -> Iterator[QaIssue]:
    """The issue that fields describe, if they name a place and say something."""
    place = _PLACE.search(facts.get("path", "")) or _PLACE.search(facts.get("test", ""))
    path = facts.get("path", "").removeprefix("file://") if not place else place["path"]
    test = facts.get("test", "") or (
        place["path"] + place["test"] if place and place["test"] else ""
    )
    text = " ".join(facts.get("text", "").split())
    line = re.match(r"\d+", facts.get("line", "") or (place and place["line"]) or "")
    if (path or test) and len(text) > 2:
        number = int(line[0]) if line else None
        yield QaIssue(text, path, number, test=test, fix=" ".join(facts.get("fix", "").split()))


# text


@dataclass
class _Block:
    """One item of a text and the fields that follow it."""

    facts: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    is_done: bool = False
    is_open: bool = False
    """An item of a list or a heading, whose words go on below it."""


class _Blocks:
    """Lines, taken together to items; what is in no issue is unread."""

    def __init__(self, tests: list[str]) -> None:
        self.unread: list[str] = []
        self._tests = tests
        self._issues: list[QaIssue] = []
        self._block = _Block()
        self._file = ""
        self._columns: list[str] | None = None
        self._is_code = False

    def read(self, line: str) -> None:
        if _FENCE.match(line):
            self._is_code = not self._is_code
        elif self._is_code or any(name in line for name in self._tests):
            self._block.lines.append("")
        elif "|" in line and line.strip().startswith("|"):
            self._row([cell.strip() for cell in line.strip().strip("|").split("|")], line)
        elif not CUES["ruled line"].fullmatch(line):
            self._columns = None
            self._line(line)

    def _line(self, line: str) -> None:
        bare = CUES["line of issue"].match(line)
        if bare and self._file and not _PLACE.search(line):
            number, words = bare["at"] or bare["line"], bare["said"] or bare["rest"]
            self._start({"path": self._file, "line": number, "text": _plain(words)}, line)
            return
        place = _PLACE.search(line)
        if (
            place
            and place["line"]
            and CUES["points at"].match(line)
            and not _plain(line[place.end() :])
        ):
            if "path" in self._block.facts:
                self._start({}, None)
            self._add({"path": place[0]}, line)
            self._block.is_open = True
            return
        item = CUES["listed item"].match(line)
        named = CUES["named field"].match(item["rest"] if item else line)
        if named and (kind := _kind(named["name"])) and not _PLACE.fullmatch(named["name"]):
            is_next = kind in self._block.facts and kind in ("path", "text", "title")
            if is_next or (item and kind == "text" and "path" not in self._block.facts):
                self._start({}, None)
            self._add({kind: named["value"].strip(" *_")}, line)
            if kind != "severity" and _PLACE.search(named["value"]) and kind in ("text", "title"):
                self._add(_spoken(named["value"]), line)
            return
        if item:
            is_nested = bool(item["indent"]) and "path" in self._block.facts
            facts = {"status": "fixed"} if (item["box"] or " ") in "xX" else _spoken(item["rest"])
            if is_nested and "path" not in facts:
                self._add(
                    {"text": _plain(item["rest"])} if "text" not in self._block.facts else {}, line
                )
            else:
                self._start(facts, line)
                self._block.is_open = True
                self._file = (
                    facts["path"] if not facts.get("text") and "path" in facts else self._file
                )
            return
        bold = re.fullmatch(r"\s*\*\*(.+?)\*\*:?\s*", line)
        spoken = _spoken(bold[1] if bold else line)
        stripped = CUES["severity tag"].sub("", line, count=1).strip(" `*")
        begins = _PLACE.match(stripped)
        if begins and begins.end() == len(stripped.rstrip(":")):
            self._start({}, line)
            self._file = begins["path"]
            self._block.facts["path"] = begins[0]
        elif (
            bold
            or (begins and len(spoken.get("text", "")) > 2)
            or (CUES["severity tag"].match(line) and spoken)
            or (place and place["line"])
        ):
            self._start(spoken, line)
            self._block.is_open = bool(bold)
        elif (self._block.lines and line[:1].isspace()) or "path" in self._block.facts:
            text = self._block.facts.get("text", "")
            self._add({}, line)
            is_other_field = named and not re.search(r"(?:Error|Exception)$", named["name"])
            if not is_other_field and (
                not text or (self._block.is_open and len(text) < _MOST_TEXT_OF_ITEM)
            ):
                self._block.facts["text"] = f"{text} {_plain(line)}".strip()
        else:
            self._start({}, line)

    def _row(self, cells: list[str], line: str) -> None:
        if all(CUES["ruled line"].fullmatch(cell) for cell in cells):
            self._block.is_done = True  # what stood above are names of columns
            return
        if self._columns is None:
            self._columns = [_kind(cell.strip("*_ ")) or "" for cell in cells]
            self._start({}, line)
            return
        facts: dict[str, str] = {}
        for kind, cell in zip(self._columns, cells, strict=False):
            if kind and cell:
                facts.setdefault(kind, cell.strip("`* "))
        if "path" not in facts:
            facts["path"] = next(filter(_PLACE.search, cells), "").strip("`* ")
        if "text" not in facts:
            others = [c for c in cells if c and not _PLACE.fullmatch(c.strip("`")) and " " in c]
            facts["text"] = facts.get("title") or max(others, key=len, default="")
        self._start(facts if facts["path"] else {}, line)

    def _start(self, facts: Mapping[str, str], line: str | None) -> None:
        self._flush()
        self._block = _Block(dict(facts), [line] if line is not None else [])

    def _add(self, facts: Mapping[str, str], line: str) -> None:
        self._block.lines.append(line)
        for kind, value in facts.items():
            self._block.facts.setdefault(kind, value)

    def _flush(self) -> None:
        block, facts = self._block, self._block.facts
        is_good = facts.get("status", "").lower().strip(" .!") in WORDS["good states"]
        if is_good or re.match(r"note\b", facts.get("text", ""), re.IGNORECASE):
            return
        if facts.get("title") and facts.get("text") and facts["title"] not in facts["text"]:
            facts["text"] = f"{facts['title']}: {facts['text']}"
        found = list(_issue({**facts, "text": facts.get("text") or facts.get("title", "")}))
        self._issues += found
        if not found and not block.is_done:
            self.unread += [
                line for line in block.lines if line.strip() and not _is_no_statement(line)
            ]

    def end(self) -> list[QaIssue]:
        self._flush()
        return self._issues


def _spoken(rest: str) -> dict[str, str]:
    """Place and words of one line."""
    place = _PLACE.search(rest)
    words = _plain(rest)
    if not place:
        return {"title": words} if words else {}
    before, after = _plain(rest[: place.start()]), _plain(rest[place.end() :])
    # A place within a sentence is part of it; one at an end is not.
    is_within = bool(before and after) or re.search(r"\b(?:in|at|of|for|to|from|by)$", before)
    return {"path": place[0], "text": words if is_within else before or after}


def _plain(text: str) -> str:
    """Words without marks, tags of severity and signs around them."""
    text = text.strip()
    while tag := CUES["severity tag"].match(text):
        text = text[tag.end() :].strip()
    return text.strip(" \t*_#>:–—-,;()[]").replace("**", "")


def _is_no_statement(line: str) -> bool:
    """Headings, verdicts, sums and good news are no issue."""
    return bool(
        line.lstrip().startswith("#")
        or CUES["no issue"].search(line)
        or re.fullmatch(r"\W*[\w ]{1,20}:\s*\w+\W*|[\w ]{1,24}:?", line.strip())
    )
