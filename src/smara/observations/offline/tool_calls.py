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
from smara.observations.models import Note
from smara.observations.offline import phrases
from smara.observations.offline.assistant import is_telling_item, telling_sentences
from smara.observations.offline.exchanges import ToolCall, output_lines, path_of
from smara.observations.offline.notes import (
    Scene,
    by_folder,
    clean,
    clip,
    excerpt,
    joined,
    make_note,
    outline,
)
from smara.observations.offline.runs import REJECTED

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
        if not call.is_error:
            self.files[path] = self.files.get(path) or _range(call)
        elif any(map((call.output or "")[:300].__contains__, _NOTHING)):
            self.missing.append(path)

    def search(self, pattern: str, call: ToolCall) -> None:
        """Take a call that searches for a pattern."""
        if not pattern:
            return
        self.calls.append(call)
        output = (call.output or "")[:300]
        is_empty = not output.strip() or any(map(output.__contains__, _NOTHING))
        pattern = clip(pattern, 90)
        self.searches[pattern] = (
            self.searches.get(pattern, False) or call.output is None or not is_empty
        )

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


def is_of_host(path: str) -> bool:
    """Return True if a file belongs to the agent's host."""
    return bool(_NOT_OF_THE_WORK.match(path)) or any(map(path.__contains__, _HOST_FOLDERS))


def look_note(scene: Scene, looks: Looks, changed: Sequence[str]) -> Note | None:
    """Note what was looked at, except changed files."""
    is_focus = scene.mode in ("explore", "research", "bug_fixing", "debugging")
    files = [
        f"{path}:{lines[0]}-{lines[1]}" if lines else path
        for path, lines in looks.files.items()
        if path not in changed
    ]
    hits = [pattern for pattern, is_found in looks.searches.items() if is_found]
    misses = [pattern for pattern, is_found in looks.searches.items() if not is_found]
    misses += looks.missing
    pieces = [f"{phrases.LOOKED} {by_folder(files, 20 if is_focus else 14)}"] if files else []
    if hits:
        pieces.append(f"{phrases.SEARCHED} {joined(hits, 300 if is_focus else 160, ', ')}")
    if misses:
        pieces.append(f"{phrases.FOUND_NOTHING}: {joined(misses, 200, ', ')}")
    if not pieces:
        return None
    facts: dict[str, Any] = {}
    if scene.mode == "explore":
        facts = {"searchQueries": list(looks.searches)[:20], "notFound": misses[:20]}
    text = "; ".join(pieces)
    return make_note(
        scene,
        "medium" if is_focus else "low",
        "note",
        text=text[:1].upper() + text[1:],
        at=looks.calls[0].at,
        inputs=["tool"],
        seqs=[seq for call in looks.calls for seq in call.seqs],
        files=list(looks.files)[:40],
        lines=[number for path in looks.files for number in looks.files[path] or ()][:40],
        **facts,
    )


def _range(call: ToolCall) -> tuple[int, int] | None:
    """Return the numbers of the lines that were read, if only a part was requested."""
    parts = {"offset", "limit", "start_line", "view_range"}
    if not isinstance(call.arguments, dict) or parts.isdisjoint(call.arguments):
        return None
    lines = (call.output or "").strip("\n").rstrip().split("\n")
    first, last = _NUMBERED.match(lines[0]), _NUMBERED.match(lines[-1])
    return (int(first[1]), int(last[1])) if first and last else None


_ANSWERS = re.compile(r"\"([^\"\n]{1,600})\"=\"([^\"\n]{0,600})\"")
_SAID = re.compile(r"the user said:\s*(\S[^\n]{0,600})", re.IGNORECASE)
_LINK = re.compile(r"https?://[^\s\"'<>)\]}]{4,300}")


def web_note(scene: Scene, calls: Sequence[ToolCall]) -> Note | None:
    """Write what was looked up on the web.

    In research mode with what the pages said.
    """
    queries = joined(
        filter(None, (call.argument("query", "q", "search_term") for call in calls)), 300
    )
    links = [link for call in calls if (link := call.argument("url"))]
    pieces = [f"{phrases.SEARCHED_WEB} {queries}"] if queries else []
    pieces += [f"{phrases.FETCHED} {joined(links, 300)}"] if links else []
    if not pieces:
        return None
    # Of a page the first sentence that says something; a list of links says nothing yet.
    pages = [outline(excerpt(call.output or "")) for call in calls if call.argument("url")]
    quotes = [next((words for words in page.prose if len(words) > 40), "") for page in pages]
    is_research = scene.mode == "research"
    facts: dict[str, Any] = {}
    if is_research:
        links += [link for call in calls for link in _LINK.findall((call.output or "")[:20_000])]
        facts = {"sources": list(dict.fromkeys(links))[:12]}
    text = "; ".join(pieces)
    return make_note(
        scene,
        "medium" if is_research else "low",
        "note",
        text=text[:1].upper() + text[1:],
        at=calls[0].at,
        inputs=["assistant", "web"],
        seqs=[seq for call in calls for seq in call.seqs],
        details=[clip(quote, 240) for quote in quotes if quote][: 4 if is_research else 1],
        **facts,
    )


def agent_note(scene: Scene, call: ToolCall) -> Note:
    """Write the task given to another agent, and what it reported."""
    task = call.argument("description", "title", "name") or call.argument(
        "prompt", "task", "message"
    )
    report = outline(excerpt(call.output or ""))
    prose = telling_sentences([*report.prose, *report.closing])
    details = [f"{phrases.AGENT_FOUND} {joined(prose[:3], 300, ' ')}"] if prose else []
    details += [clip(item, 150) for item in report.items if is_telling_item(item)][:10]
    return make_note(
        scene,
        "medium",
        "finding",
        text=f"{phrases.DELEGATED} {clip(task, 220)}",
        at=call.at,
        seqs=call.seqs,
        inputs=["assistant", "tool"],
        details=details,
    )


def ask_notes(scene: Scene, call: ToolCall) -> list[Note]:
    """Note answers to a tool's questions, or open questions."""
    answers = _ANSWERS.findall((call.output or "")[:20_000])
    if answers:
        return [
            make_note(
                scene,
                "high",
                "decision",
                text=(
                    f"{phrases.ANSWERED} {clip(answer, 300)} "
                    f"({phrases.ABOUT} {clip(question, 300)})"
                ),
                at=call.at,
                seqs=call.seqs,
                inputs=["user", "assistant"],
                is_dated=True,
            )
            for question, answer in answers[:6]
        ]
    listed = call.arguments.get("questions") if isinstance(call.arguments, Mapping) else None
    questions = [call.argument("question", "prompt", "message")] + [
        clean(each["question"])
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, Mapping) and isinstance(each.get("question"), str)
    ]
    question = next(filter(None, questions), "")
    if not question:
        return []
    note = make_note(
        scene,
        "medium",
        "question",
        text=f"{phrases.ASKED_USER} {clip(question, 300)}",
        at=call.at,
        seqs=call.seqs,
        inputs=["assistant"],
        details=[clip(call.output, 300)] if call.output else [],
    )
    return [note]


def plan_note(scene: Scene, call: ToolCall) -> Note | None:
    """Note a plan shown to the user, and its approval."""
    plan = outline(excerpt(call.argument("plan", "explanation", "text")))
    words = [*plan.items, *plan.prose, *plan.closing]
    if not words:
        return None
    is_approved = "approved" in (call.output or "")[:200]
    label = f"{phrases.PLANNED} {phrases.APPROVED}:" if is_approved else f"{phrases.PLANNED}:"
    steps = [*plan.prose[:2], *filter(is_telling_item, plan.items[1:])]
    return make_note(
        scene,
        "high" if is_approved else "medium",
        "decision",
        text=f"{label} {clip(words[0], 200)}",
        at=call.at,
        seqs=call.seqs,
        inputs=["assistant", "user"] if is_approved else ["assistant"],
        details=[clip(item, 140) for item in steps][:10],
    )


def was_rejected(call: ToolCall) -> bool:
    """Return True if the user refused to let a call run."""
    return call.is_error and REJECTED in (call.output or "")[:400]


def rejection_note(scene: Scene, call: ToolCall, is_quiet: bool) -> Note | None:
    """Write the call that the user refused, and why.

    A quiet tool's only with a reason.
    """
    reason = _SAID.search((call.output or "")[:4_000])
    if is_quiet and not reason:
        return None
    what = clip(f"{call.name} {_arguments(scene, call)}".strip(), 200)
    return make_note(
        scene,
        "high",
        "change" if reason else "note",
        text=f"{phrases.REJECTED} {what}" + (f": {clip(reason[1], 400)}" if reason else ""),
        at=call.at,
        seqs=call.seqs,
        inputs=["user", "assistant"],
    )


def tool_note(scene: Scene, calls: Sequence[ToolCall]) -> Note:
    """Note calls of unknown tools, such as an MCP server's."""
    uses: list[str] = []
    for call in calls:
        arguments = _arguments(scene, call)
        use = f"{call.name} ({arguments})" if arguments else call.name
        if call.is_error:
            failure = failure_in(output_lines(call, 400))
            use += f": {phrases.FAILED}" + (f": {clip(failure.line, 220)}" if failure else "")
        uses.append(use)
    return make_note(
        scene,
        "medium",
        "command",
        text=f"{phrases.USED} {joined(uses, 400)}",
        at=calls[0].at,
        seqs=[seq for call in calls for seq in call.seqs],
        inputs=["assistant", "tool"],
    )


def _arguments(scene: Scene, call: ToolCall) -> str:
    """Return the arguments of a call in one short line."""
    given = call.arguments.values() if isinstance(call.arguments, Mapping) else [call.arguments]
    values = [clean(plain(value)[:2_000]) for value in given if value not in (None, "", False)]
    return clip(scene.paths.shorten(joined(values, 160, ", ")), 160)
