"""Write notes on reads, searches, web calls, sub-agents and plans.

Covers the tool calls that neither change code nor run commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smara.messages.models import plain
from smara.observations.models import Note
from smara.observations.offline import phrases
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
    make_note,
    outline,
)
from smara.observations.offline.output import REJECTED, failure_in
from smara.observations.offline.runs import ShellCommand

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
    """Reads and searches of one stretch."""

    files: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    searches: dict[str, bool] = field(default_factory=dict)
    """What was searched for, and whether anything was found."""
    missing: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    def read(self, scene: Scene, call: ToolCall) -> None:
        """A file was opened."""
        path = scene.paths.short(path_of(call))
        if not path or is_of_host(path):
            return
        self.calls.append(call)
        if call.is_error:
            if any(map((call.output or "")[:300].__contains__, _NOTHING)):
                self.missing.append(path)
            return
        self.files[path] = self.files.get(path) or _range(call)

    def search(self, scene: Scene, call: ToolCall) -> None:
        """Something was searched for with a tool."""
        pattern = call.argument("pattern", "query", "regex", "q", "glob_pattern")
        if pattern:
            self._searched(clip(scene.paths.shorten(pattern), 90), call)

    def command(self, scene: Scene, command: ShellCommand, call: ToolCall) -> bool:
        """A command that only looks; returns whether it is worth telling."""
        program = command.key.split(" ")[0]
        words = [word.strip("'\"") for word in command.arguments]
        if program in _SEARCHING and (
            sought := _NAME.search(command.shown) or _SOUGHT.search(command.shown)
        ):
            self._searched(
                clip(next(group for group in sought.groups() if group).strip("'\""), 90), call
            )
            return True
        paths = [word for word in words if "." in word and "/" in word and not is_of_host(word)]
        if program in _READING and paths:
            self.files.setdefault(scene.paths.short(paths[-1]), None)
            self.calls.append(call)
            return True
        return False

    def _searched(self, pattern: str, call: ToolCall) -> None:
        self.calls.append(call)
        output = (call.output or "")[:300]
        is_empty = call.is_answered and (
            not output.strip() or any(map(output.__contains__, _NOTHING))
        )
        self.searches[pattern] = self.searches.get(pattern, False) or not is_empty


def is_of_host(path: str) -> bool:
    """Whether a file belongs to the agent's host rather than to the work."""
    return bool(_NOT_OF_THE_WORK.match(path)) or any(map(path.__contains__, _HOST_FOLDERS))


def look_note(scene: Scene, looks: Looks, changed: Sequence[str]) -> Note | None:
    """One line for all that was looked at; files that were then changed are told there."""
    is_focus = scene.mode in ("explore", "research", "bug_fixing", "debugging")
    files = [_shown(path, looks.files[path]) for path in looks.files if path not in changed]
    not_found = [
        pattern for pattern, is_found in looks.searches.items() if not is_found
    ] + looks.missing
    pieces = [by_folder(files, 20 if is_focus else 14)] if files else []
    found = [pattern for pattern, is_found in looks.searches.items() if is_found]
    if found:
        pieces.append(f"{phrases.SEARCHED} {joined(found, 300 if is_focus else 160, ', ')}")
    if not_found:
        pieces.append(f"{phrases.FOUND_NOTHING}: {joined(not_found, 200, ', ')}")
    if not pieces:
        return None
    facts: dict[str, Any] = {}
    if scene.mode == "explore":
        facts = {"searchQueries": list(looks.searches)[:20], "notFound": not_found[:20]}
    text = f"{phrases.LOOKED} {'; '.join(pieces)}" if files else _capital(pieces)
    return make_note(
        scene,
        "medium" if is_focus else "low",
        "note",
        text=text,
        at=looks.calls[0].at,
        inputs=["tool"],
        seqs=[seq for call in looks.calls for seq in (call.seq, call.last_seq)],
        files=list(looks.files)[:40],
        lines=[number for path in looks.files for number in looks.files[path] or ()][:40],
        **facts,
    )


def _capital(pieces: list[str]) -> str:
    whole = "; ".join(pieces)
    return whole[:1].upper() + whole[1:]


def _shown(path: str, lines: tuple[int, int] | None) -> str:
    return f"{path}:{lines[0]}-{lines[1]}" if lines else path


def _range(call: ToolCall) -> tuple[int, int] | None:
    """The lines that were read, when only a part of the file was asked for: as numbered in the
    result.
    """
    if not isinstance(call.arguments, dict) or not {
        "offset",
        "limit",
        "start_line",
        "view_range",
    } & set(call.arguments):
        return None
    lines = (call.output or "").strip("\n").split("\n", 1)
    last = (call.output or "").rstrip().rpartition("\n")[2]
    first_number, last_number = _NUMBERED.match(lines[0]), _NUMBERED.match(last)
    if not first_number or not last_number:
        return None
    return int(first_number[1]), int(last_number[1])


_ANSWERS = re.compile(r"\"([^\"\n]{1,600})\"=\"([^\"\n]{0,600})\"")
_SAID = re.compile(r"the user said:\s*(\S[^\n]{0,600})", re.IGNORECASE)
_LINK = re.compile(r"https?://[^\s\"'<>)\]}]{4,300}")


def web_note(scene: Scene, calls: Sequence[ToolCall]) -> Note | None:
    """What was looked up on the web; in research mode with what the pages said."""
    queries = [call.argument("query", "q", "search_term") for call in calls]
    pages = [link for call in calls if (link := call.argument("url"))]
    asked, fetched = joined(filter(None, queries), 300), joined(pages, 300)
    if not asked and not fetched:
        return None
    is_research = scene.mode == "research"
    said = [clip(words, 240) for call in calls if (words := _first_finding(call))]
    facts: dict[str, Any] = {}
    if is_research:
        links = [link for call in calls for link in _LINK.findall((call.output or "")[:20_000])]
        facts = {"sources": list(dict.fromkeys([*pages, *links]))[:12]}
    text = f"{phrases.SEARCHED_WEB} {asked}" if asked else ""
    text = "; ".join(filter(None, [text, f"{phrases.FETCHED} {fetched}" if fetched else ""]))
    text = text[:1].upper() + text[1:]
    return make_note(
        scene,
        "medium" if is_research else "low",
        "note",
        text=text,
        at=calls[0].at,
        inputs=["assistant", "web"],
        seqs=[seq for call in calls for seq in (call.seq, call.last_seq)],
        details=said[: 4 if is_research else 1],
        **facts,
    )


def _first_finding(call: ToolCall) -> str:
    """The first sentence of a page that says something; a list of links says nothing yet."""
    if not call.argument("url"):
        return ""
    found = outline(excerpt(call.output or ""))
    return next((words for words in found.prose if len(words) > 40), "")


def agent_note(scene: Scene, call: ToolCall) -> Note:
    """A task given to another agent, and what it reported."""
    task = call.argument("description", "title", "name") or clip(
        call.argument("prompt", "task", "message"), 200
    )
    found = outline(excerpt(call.output or ""))
    prose = telling_sentences([*found.prose, *found.closing])
    details = [f"{phrases.AGENT_FOUND} {joined(prose[:3], 300, ' ')}"] if prose else []
    details += [clip(item, 150) for item in found.items if is_telling_item(item)][:10]
    return make_note(
        scene,
        "medium",
        "finding",
        text=f"{phrases.DELEGATED} {clip(task, 220)}",
        at=call.at,
        seqs=(call.seq, call.last_seq),
        inputs=["assistant", "tool"],
        details=details,
    )


def ask_notes(scene: Scene, call: ToolCall) -> list[Note]:
    """What the user answered to a question asked through a tool; the question alone while it is
    open.
    """
    seqs = (call.seq, call.last_seq)
    answered = _ANSWERS.findall((call.output or "")[:20_000])
    if answered:
        texts = [
            f"{phrases.ANSWERED} {clip(a, 300)} ({phrases.ABOUT} {clip(q, 300)})"
            for q, a in answered[:6]
        ]
        inputs: list[Input] = ["user", "assistant"]
        return [
            make_note(
                scene,
                "high",
                "decision",
                text=text,
                at=call.at,
                seqs=seqs,
                inputs=inputs,
                is_dated=True,
            )
            for text in texts
        ]
    question = call.argument("question", "prompt", "message") or _first_question(call)
    if not question:
        return []
    text = f"{phrases.ASKED_USER} {clip(question, 300)}"
    reply = [clip(call.output, 300)] if call.output else []
    return [
        make_note(
            scene,
            "medium",
            "question",
            text=text,
            at=call.at,
            seqs=seqs,
            inputs=["assistant"],
            details=reply,
        )
    ]


def _first_question(call: ToolCall) -> str:
    questions = call.arguments.get("questions") if isinstance(call.arguments, Mapping) else None
    for question in questions if isinstance(questions, list) else ():
        if isinstance(question, Mapping) and isinstance(question.get("question"), str):
            return clean(str(question["question"]))
    return ""


def plan_note(scene: Scene, call: ToolCall) -> Note | None:
    """A plan that was shown to the user, and whether it was approved."""
    found = outline(excerpt(call.argument("plan", "explanation", "text")))
    words = [*found.items, *found.prose, *found.closing]
    if not words:
        return None
    is_approved = "approved" in (call.output or "")[:200]
    label = f"{phrases.PLANNED} {phrases.APPROVED}:" if is_approved else f"{phrases.PLANNED}:"
    return make_note(
        scene,
        "high" if is_approved else "medium",
        "decision",
        text=f"{label} {clip(words[0], 200)}",
        at=call.at,
        seqs=(call.seq, call.last_seq),
        inputs=["assistant", *(["user"] if is_approved else [])],  # type: ignore[list-item]
        details=[
            clip(item, 140)
            for item in [*found.prose[:2], *filter(is_telling_item, found.items[1:])]
        ][:10],
    )


def was_rejected(call: ToolCall) -> bool:
    """Whether the user refused to let a call run."""
    return REJECTED in (call.output or "")[:400]


def rejection_note(scene: Scene, call: ToolCall, is_quiet: bool) -> Note | None:
    """A call that the user refused, with the words that were said to it; a quiet tool's only when
    there are some.
    """
    said = _SAID.search((call.output or "")[:4_000])
    if is_quiet and not said:
        return None
    what = f"{call.name} {tool_words(scene, call)}".strip()
    text = f"{phrases.REJECTED} {clip(what, 200)}" + (f": {clip(said[1], 400)}" if said else "")
    return make_note(
        scene,
        "high",
        "change" if said else "note",
        text=text,
        at=call.at,
        seqs=(call.seq, call.last_seq),
        inputs=["user", "assistant"],
    )


def tool_note(scene: Scene, calls: Sequence[ToolCall]) -> Note:
    """Calls of tools that are not known otherwise, such as those of an MCP server."""
    told = [f"{call.name}{_arguments(scene, call)}{_result(call)}" for call in calls]
    return make_note(
        scene,
        "medium",
        "command",
        text=f"{phrases.USED} {joined(told, 400)}",
        at=calls[0].at,
        seqs=[seq for call in calls for seq in (call.seq, call.last_seq)],
        inputs=["assistant", "tool"],
    )


def tool_words(scene: Scene, call: ToolCall) -> str:
    """The arguments of a call in one short line."""
    if isinstance(call.arguments, Mapping):
        values = [
            clean(plain(value)[:2_000])
            for value in call.arguments.values()
            if value not in (None, "", False)
        ]
    else:
        values = [] if call.arguments is None else [clean(plain(call.arguments)[:2_000])]
    return clip(scene.paths.shorten(joined(values, 160, ", ")), 160)


def _arguments(scene: Scene, call: ToolCall) -> str:
    words = tool_words(scene, call)
    return f" ({words})" if words else ""


def _result(call: ToolCall) -> str:
    if not call.is_error:
        return ""
    failure = failure_in(output_lines(call, 400))
    return f": {phrases.FAILED}: {failure.line}" if failure else f": {phrases.FAILED}"
