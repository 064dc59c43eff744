"""Write notes on reads, searches, web calls, sub-agents and plans.

Covers the tool calls that neither change code nor run commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smara.actions.failures import failure_in
from smara.actions.models import Command
from smara.messages.models import plain
from smara.observations.models import Category, Note
from smara.observations.offline.assistant import is_telling_item, telling_sentences
from smara.observations.offline.exchanges import ToolCall, output_lines, path_of
from smara.observations.offline.notes import (
    Input,
    Scene,
    by_folder,
    clean,
    clip,
    excerpt,
    joined,
    outline,
)

REJECTED = "The user doesn't want to proceed with this tool use"
_NOTHING = (
    "No files found",
    "No matches found",
    "No results",
    "0 matches",
    "no matches",
    "No such file",
    "does not exist",
)
_NUMBERED = re.compile(r"\s{0,8}(\d{1,7})(?:→|\t|\|)")
_READING = frozenset({"cat", "head", "tail", "less", "sed", "bat", "nl"})
_SEARCHING = frozenset({"grep", "rg", "ag", "find", "fd", "git grep"})
_HOST_FOLDERS = ("/.claude/", "/.codex/", "/.cursor/")
_NOT_OF_THE_WORK = re.compile(r"/(?:tmp|dev|proc)/")
_NAME = re.compile(r"-i?(?:name|path)\s+(\S{1,90})")
_SOUGHT = re.compile(r"\s(?:\"([^\"]{1,120})\"|'([^']{1,120})'|([^-\s\d][^\s]{0,120}))")


@dataclass(slots=True)
class Looks:
    """The reads and searches of one stretch of work."""

    files: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    searches: dict[str, bool] = field(default_factory=dict)
    """What was searched for, and whether anything was found."""
    missing: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    def read(self, scene: Scene, call: ToolCall) -> None:
        """Take a call that opens a file."""
        path = scene.paths.short(path_of(call))
        if not path or is_of_host(path):
            return
        self.calls.append(call)
        parts = {"offset", "limit", "start_line", "view_range"}
        if call.is_error:
            if any(map((call.output or "")[:300].__contains__, _NOTHING)):
                self.missing.append(path)
        elif isinstance(call.arguments, dict) and not parts.isdisjoint(call.arguments):
            lines = (call.output or "").strip("\n").rstrip().split("\n")
            first, last = _NUMBERED.match(lines[0]), _NUMBERED.match(lines[-1])
            numbers = (int(first[1]), int(last[1])) if first and last else None
            self.files[path] = self.files.get(path) or numbers
        else:
            self.files.setdefault(path)

    def search(self, pattern: str, call: ToolCall) -> None:
        """Take a call that searches for a pattern."""
        if not pattern:
            return
        self.calls.append(call)
        output = (call.output or "")[:300]
        is_empty = not output.strip() or any(map(output.__contains__, _NOTHING))
        pattern = clip(pattern, 90)
        is_hit = call.output is None or not is_empty
        self.searches[pattern] = self.searches.get(pattern, False) or is_hit

    def command(self, scene: Scene, command: Command, call: ToolCall) -> None:
        """Take a looking command, if it names its object."""
        program = command.main.aim.split(" ")[0]
        words = [word.strip("'\"") for word in command.main.arguments]
        paths = [word for word in words if "." in word and "/" in word and not is_of_host(word)]
        pattern = _NAME.search(command.main.text) or _SOUGHT.search(command.main.text)
        if program in _SEARCHING and pattern:
            self.search(next(group for group in pattern.groups() if group).strip("'\""), call)
        elif program in _READING and paths:
            self.files.setdefault(scene.paths.short(paths[-1]), None)
            self.calls.append(call)

    def note(self, scene: Scene, changed: Sequence[str]) -> Note | None:
        """Note what was looked at, except changed files."""
        is_focus = scene.mode in ("explore", "research", "bug_fixing", "debugging")
        files = [
            f"{path}:{lines[0]}-{lines[1]}" if lines else path
            for path, lines in self.files.items()
            if path not in changed
        ]
        hits = [pattern for pattern, is_hit in self.searches.items() if is_hit]
        misses = [pattern for pattern, is_hit in self.searches.items() if not is_hit]
        misses += self.missing
        pieces = [f"Looked at {by_folder(files, 20 if is_focus else 14)}"] if files else []
        if hits:
            pieces.append(f"searched for {joined(hits, 300 if is_focus else 160, ', ')}")
        if misses:
            pieces.append(f"nothing found: {joined(misses, 200, ', ')}")
        if not pieces:
            return None
        facts: dict[str, Any] = {}
        if scene.mode == "explore":
            facts = {"searchQueries": list(self.searches)[:20], "notFound": misses[:20]}
        text = "; ".join(pieces)
        return scene.note(
            "medium" if is_focus else "low",
            "note",
            text[:1].upper() + text[1:],
            self.calls,
            inputs=["tool"],
            files=list(self.files)[:40],
            lines=[number for numbers in self.files.values() for number in numbers or ()][:40],
            **facts,
        )


def is_of_host(path: str) -> bool:
    """Return True if a file belongs to the agent's host."""
    return bool(_NOT_OF_THE_WORK.match(path)) or any(map(path.__contains__, _HOST_FOLDERS))


_ANSWERS = re.compile(r"\"([^\"\n]{1,600})\"=\"([^\"\n]{0,600})\"")
_SAID = re.compile(r"the user said:\s*(\S[^\n]{0,600})", re.IGNORECASE)
_LINK = re.compile(r"https?://[^\s\"'<>)\]}]{4,300}")


def web_note(scene: Scene, calls: Sequence[ToolCall]) -> Note | None:
    """Write what was looked up on the web.

    In research mode with what the pages said.
    """
    queries = [call.argument("query", "q", "search_term") for call in calls]
    links = [link for call in calls if (link := call.argument("url"))]
    pieces = [f"searched the web: {joined(filter(None, queries), 300)}"] if any(queries) else []
    pieces += [f"fetched {joined(links, 300)}"] if links else []
    if not pieces:
        return None
    # Of a page the first sentence that says something; a list of links says nothing yet.
    pages = [outline(excerpt(call.output or "")) for call in calls if call.argument("url")]
    quotes = [next((words for words in page.prose if len(words) > 40), "") for page in pages]
    is_research = scene.mode == "research"
    if is_research:
        links += [link for call in calls for link in _LINK.findall((call.output or "")[:20_000])]
    text = "; ".join(pieces)
    return scene.note(
        "medium" if is_research else "low",
        "note",
        text[:1].upper() + text[1:],
        calls,
        inputs=["assistant", "web"],
        details=[clip(quote, 240) for quote in quotes if quote][: 4 if is_research else 1],
        sources=list(dict.fromkeys(links))[:12] if is_research else (),
    )


def agent_notes(scene: Scene, call: ToolCall) -> list[Note]:
    """Write the task given to another agent, and what it reported."""
    task = call.argument("description", "title", "name", "prompt", "task", "message")
    report = outline(excerpt(call.output or ""))
    prose = telling_sentences(report.prose)
    details = [f"It reported: {joined(prose[:3], 300, ' ')}"] if prose else []
    details += [clip(item, 150) for item in report.items if is_telling_item(item)][:10]
    text = f"Delegated: {clip(task, 220)}"
    return [scene.note("medium", "finding", text, [call], details=details)]


def ask_notes(scene: Scene, call: ToolCall) -> list[Note]:
    """Note answers to a tool's questions, or open questions."""
    answers = _ANSWERS.findall((call.output or "")[:20_000])
    if answers:
        texts = [
            f"User answered: {clip(answer, 300)} (asked: {clip(question, 300)})"
            for question, answer in answers[:6]
        ]
        who: list[Input] = ["user", "assistant"]
        return [
            scene.note("high", "decision", text, [call], inputs=who, is_dated=True)
            for text in texts
        ]
    listed = call.arguments.get("questions") if isinstance(call.arguments, Mapping) else None
    questions = [call.argument("question", "prompt", "message")] + [
        clean(each["question"])
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, Mapping) and isinstance(each.get("question"), str)
    ]
    question = next(filter(None, questions), "")
    details = [clip(call.output, 300)] if call.output else []
    text = f"Agent asked: {clip(question, 300)}"
    note = scene.note("medium", "question", text, [call], inputs=["assistant"], details=details)
    return [note] if question else []


def plan_notes(scene: Scene, call: ToolCall) -> list[Note]:
    """Note a plan shown to the user, and its approval."""
    plan = outline(excerpt(call.argument("plan", "explanation", "text")))
    words = [*plan.items, *plan.prose]
    is_approved = "approved" in (call.output or "")[:200]
    label = "Plan approved by the user:" if is_approved else "Plan:"
    steps = [*plan.prose[:2], *filter(is_telling_item, plan.items[1:])]
    return [
        scene.note(
            "high" if is_approved else "medium",
            "decision",
            f"{label} {clip(title, 200)}",
            [call],
            inputs=["assistant", "user"] if is_approved else ["assistant"],
            details=[clip(item, 140) for item in steps][:10],
        )
        for title in words[:1]
    ]


def rejection_notes(scene: Scene, call: ToolCall, is_quiet: bool) -> list[Note]:
    """Write the call that the user refused, and why.

    A quiet tool's only with a reason.
    """
    reason = _SAID.search((call.output or "")[:4_000])
    if is_quiet and not reason:
        return []
    text = f"User rejected: {clip(f'{call.name} {_arguments(scene, call)}'.strip(), 200)}"
    text += f": {clip(reason[1], 400)}" if reason else ""
    category: Category = "change" if reason else "note"
    return [scene.note("high", category, text, [call], inputs=["user", "assistant"])]


def tool_note(scene: Scene, calls: Sequence[ToolCall]) -> Note:
    """Note calls of unknown tools, such as an MCP server's."""
    uses: list[str] = []
    for call in calls:
        arguments = _arguments(scene, call)
        use = f"{call.name} ({arguments})" if arguments else call.name
        if call.is_error:
            failure = failure_in(output_lines(call, 400))
            use += f": failed: {clip(failure.line, 220)}" if failure else ": failed"
        uses.append(use)
    return scene.note("medium", "command", f"Used {joined(uses, 400)}", calls)


def _arguments(scene: Scene, call: ToolCall) -> str:
    """Return the arguments of a call in one short line."""
    given = call.arguments.values() if isinstance(call.arguments, Mapping) else [call.arguments]
    values = [clean(plain(value)[:2_000]) for value in given if value not in (None, "", False)]
    return clip(scene.paths.shorten(joined(values, 160, ", ")), 160)
