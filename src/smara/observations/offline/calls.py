"""Write notes on tool calls: commands, reads, searches, web calls, sub-agents, plans.

Commands are grouped by outcome. Each failure, each commit and each fix has its own note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smara.actions.commands import (
    COMMITTED,
    TELLING,
    WEIGHT,
    beside_commit,
    head_of,
    read_command,
    read_commit,
)
from smara.actions.error_quote import is_quotable_test, marked, output_words
from smara.actions.failures import failure_in, read_outcome, was_not_run
from smara.actions.models import Command, CommandPart, Failure, Outcome, TestRun
from smara.actions.reports import read_test_run
from smara.actions.tool_output import exit_code_field, unwrap_json
from smara.core.extract import one_line
from smara.core.items import grouped
from smara.core.startup.record import dataclass, field, replace
from smara.core.tool_names import ARGUMENTS, shell_line
from smara.messages.models import plain
from smara.observations.models import Category, Note
from smara.observations.offline.exchanges import ToolCall, form_answers, output_lines, path_of
from smara.observations.offline.notes import (
    CUES,
    PathShortener,
    Scene,
    by_folder,
    clean,
    clip,
    excerpt,
    joined,
    outline,
)
from smara.observations.offline.speech import telling_sentences

NO_RESULT = "no result seen"
_SHOWN = 140


@dataclass(frozen=True, slots=True)
class Run:
    """A command and what came of it."""

    call: ToolCall
    line: str
    command: Command
    outcome: Outcome
    failure: Failure | None = None
    tests: TestRun | None = None
    words: str = ""
    """The words of its output that say most; of a commit its subject, with branch and hash."""
    committed: str = ""
    """The same, where its line made a commit, whatever came of the rest."""

    @property
    def aim(self) -> str:
        """The program and its verb.

        Two runs with one aim are runs of the same thing.
        """
        return self.command.main.aim

    @property
    def weight(self) -> int:
        """The weight of a run: 0 for idle, 1 for looking."""
        return WEIGHT[self.command.purpose]

    @property
    def shown(self) -> str:
        """The telling parts of its line."""
        command = self.command
        if command.purpose == "commit":
            return "git commit"
        least = min(self.weight, TELLING)
        parts = [part.text for part in command.parts if WEIGHT[part.purpose] >= least]
        return clip(" && ".join(parts) if len(parts) > 1 else command.text, _SHOWN)


def read_run(call: ToolCall, paths: PathShortener, command: Command | None = None) -> Run | None:
    """Read a run with its outcome.

    None if the host refused to run it.
    """
    line = (
        call.arguments
        if isinstance(call.arguments, str)
        else call.argument(*ARGUMENTS["command"], "code", "input")
    )
    given = call.arguments.get("command") if isinstance(call.arguments, Mapping) else None
    if not line and isinstance(given, list):  # some hosts give it as a list of words
        line = clean(shell_line([word for word in given if isinstance(word, str)]))
    short = paths.shorten(line)
    if command is None and (command := read_command(short)) is None:
        # It runs nothing, such as ``cd app``; it may fail all the same.
        part = CommandPart(one_line(short), head_of(short), head_of(short), purpose="idle")
        command = Command((part,), part, part.text, is_simple=True)
    if call.output is None:
        return Run(call, line, command, "unknown")
    if was_not_run(call.output):
        return None
    code = None
    if (fields := unwrap_json(call.output)) is not None:
        call.output = clean(str(fields.get("output", fields.get("stdout"))))
        code = exit_code_field(fields)
    lines = list(output_lines(call))
    purpose = command.purpose
    words = _telling_words(command, lines)
    if purpose == "commit":
        commit = read_commit(line, call.output)
        place = f" [{commit.branch} {commit.sha}]" if commit.sha else ""
        words = f"{clip(commit.subject, 160)}{place}" or words
    outcome = read_outcome(
        line or command.text, call.output, is_error=call.is_error, code=code, command=command
    )
    committed = words if purpose == "commit" and COMMITTED.search(call.output) else ""
    if outcome == "failed" and committed:
        # The commit was made, and speaks of itself alone: what stands beside it failed.
        last = command.parts[-1]
        command = beside_commit(command, line) or replace(
            command, parts=(last,), main=last, text=last.text
        )
        outcome = "ok" if command.purpose == "commit" else outcome
        lines = [each for each in lines if not CUES["word of a commit"].search(each)]
    failure = failure_in(lines) if outcome != "ok" else None
    if outcome == "failed" and failure is None:
        failure = Failure(first_words(lines, 220))
    return Run(
        call,
        line,
        command,
        outcome,
        failure=failure and replace(failure, line=clip(failure.line, 220)),
        tests=read_test_run(lines) if purpose in _TESTING else None,
        words=words,
        committed=committed,
    )


_MOST_VARIABLES = 8
_TESTING = frozenset({"test", "check", "commit", "other", "network", "review"})

_PREAMBLE = (
    "warning", "Compiling", "Generated", "Exit code", "Checking ", "Running ", "Getting ",
    "hint:", "> ",
)  # fmt: skip


def _telling_words(command: Command, lines: Sequence[str]) -> str:
    """Return the words of an output that say most about it."""
    if command.purpose == "check":
        verdicts = [line for line in lines if CUES["verdict"].search(line[:300])]
        if verdicts or not command.is_piped:
            return clip(verdicts[-1], 110) if verdicts else ""
    return first_words(lines)


def first_words(lines: Sequence[str], characters: int = 110) -> str:
    """Return an output's first line with words, or its first."""
    for line in lines[:61]:
        words = one_line(line)
        is_margin = line[:1] in "└│┃" or line.startswith("    ") or words.startswith(_PREAMBLE)
        if sum(map(str.isalpha, words[:60])) >= 4 and not is_margin:
            return clip(words, characters)
    first = next(filter(None, map(one_line, lines[:62])), "")
    is_said = any(map(str.isalnum, first)) and not first.startswith(_PREAMBLE)
    return clip(first, characters) if is_said else ""


_QUIET = frozenset({"git", "revert", "commit"})


def run_note(scene: Scene, runs: Sequence[Run]) -> Note | None:
    """Note successful or unfinished runs; tests set its kind."""
    outcomes = grouped((run.shown, outcome_words(run)) for run in runs)
    # Each command once, with the outcomes of all its runs: ``make check: ok``.
    lines = [
        f"{shown}: {joined(dict.fromkeys(words), 260)}"
        for shown, words in outcomes.items()
        if shown
    ]
    if not lines:
        return None
    has_tests = any(run.tests is not None for run in runs)
    label = "Installed" if all(run.command.purpose == "install" for run in runs) else "Ran"
    return scene.note(
        "high" if has_tests and scene.mode == "testing" else "medium",
        "test" if has_tests else "command",
        f"{label} {'; '.join(lines)}",
        [run.call for run in runs],
        **_test_facts(scene, runs),
    )


def outcome_words(run: Run) -> str:
    """Return a run's outcome in a few words."""
    if run.outcome == "failed":
        return ": ".join(filter(None, ("failed", _failed_words(run))))
    if run.tests is not None:
        return run.tests.summary + (f"; {run.tests.coverage}" if run.tests.coverage else "")
    if run.call.output is None:
        return NO_RESULT
    if run.outcome == "unknown" and run.failure is not None:
        return output_words(run.failure.line)
    return "ok" if run.command.purpose in _QUIET else marked(run.words) or "ok"


def _failed_words(run: Run) -> str:
    """How many tests failed, and the line that tells why."""
    counts = run.tests.summary if run.tests is not None else ""
    line = output_words(run.failure.line) if run.failure and run.failure.line != counts else ""
    return "; ".join(filter(None, (counts, line)))


def failure_note(
    scene: Scene,
    failed: Sequence[Run],
    mended: Run | None = None,
    changed: Mapping[str, ToolCall] | None = None,
) -> Note:
    """Note a failure, or how it was mended."""
    failures = [run.failure for run in failed if run.failure]
    place = scene.paths.short(failures[0].place) if failures else ""
    place = f" ({place})" if place and place not in failures[0].line else ""
    if mended is None:
        text = f"{failed[0].shown} {outcome_words(failed[0])}{place}"
    else:
        after = f"; after changes in {joined(changed, 160, ', ')}" if changed else ""
        lines = dict.fromkeys(filter(None, map(_failed_words, failed)))
        why = f": {joined(lines, 560)}{place}" if lines else ""
        again = f"{mended.shown}: " if mended.shown != failed[0].shown else ""
        text = f"Fixed: {failed[0].shown} failed{why}{after}; then {again}{outcome_words(mended)}"
    facts: dict[str, Any] = _test_facts(scene, [mended] if mended else failed)
    if scene.mode == "bug_fixing" and failures:
        facts |= {"errorType": failures[0].type, "stackTrace": "\n".join(failures[0].trace)}
    elif scene.mode == "debugging":
        variables: dict[str, str] = {}
        for run in failed:
            shown: dict[str, str] = {}
            for line in output_lines(run.call, 200):
                if len(shown) < _MOST_VARIABLES and (
                    match := CUES["variable"].fullmatch(line.rstrip())
                ):
                    shown.setdefault(match[1], clip(match[2], 80))
            variables |= shown
        facts |= {
            "symptoms": [each.line for each in failures if each.line][:6],
            "variables": variables,
        }
    failing = list(filter(is_quotable_test, failed[0].tests.failing if failed[0].tests else ()))
    details = [f"Committed: {run.committed}" for run in failed if run.committed]
    details += [f"failing: {clip(name, 120)}" for name in failing[:5]]
    calls = [run.call for run in ([mended] if mended else []) + list(failed)]
    located = [each for each in failures if each.file]
    return scene.note(
        "high" if scene.mode in ("bug_fixing", "debugging") else "medium",
        "error" if mended is None else "fix",
        text,
        [*calls, *(changed or {}).values()],
        details=[*details, *(["…"] if len(failing) > 5 else [])],
        files=[*(scene.paths.short(each.file) for each in located), *(changed or ())],
        lines=[each.line_number for each in located],
        **facts,
    )


def _test_facts(scene: Scene, runs: Sequence[Run]) -> dict[str, Any]:
    if scene.mode != "testing":
        return {}
    tests = [(run.shown, run.tests) for run in runs if run.tests is not None]
    results: list[dict[str, Any]] = [
        {
            "name": name,
            "status": "failed" if each.has_failures else "passed",
            "message": each.summary,
            **dict(each.counts),
        }
        for name, each in tests
    ]
    results += [{"name": name, "status": "failed"} for _, each in tests for name in each.failing]
    coverage = next((each.coverage for _, each in tests if each.coverage), "")
    percent = CUES["percent"].search(coverage)
    return {
        "testResults": results,
        "coverage": {"percent": percent[1], "message": coverage} if percent else {},
    }


_NOTHING = (
    "No files found", "No matches found", "No results", "0 matches", "no matches",
    "No such file", "does not exist",
)  # fmt: skip
_HOST_FOLDERS = ("/.claude/", "/.codex/", "/.cursor/")


@dataclass(slots=True)
class Looks:
    """The reads and searches of one stretch of work."""

    files: dict[str, None] = field(default_factory=dict)
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
            self.files[path] = None
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
        is_hit = call.output is None or not is_empty
        self.searches[pattern] = self.searches.get(pattern, False) or is_hit

    def command(self, scene: Scene, command: Command, call: ToolCall) -> None:
        """Take a looking command, if it names its object."""
        program = command.main.aim.split(" ")[0]
        words = [word.strip("'\"") for word in command.main.arguments]
        paths = [word for word in words if "." in word and "/" in word and not is_of_host(word)]
        pattern = CUES["sought name"].search(command.main.text) or CUES["sought words"].search(
            command.main.text
        )
        if (command.purpose == "search" or program in ("find", "fd")) and pattern:
            self.search(next(group for group in pattern.groups() if group).strip("'\""), call)
        elif command.purpose == "read" and paths:
            self.files[scene.paths.short(paths[-1])] = None
            self.calls.append(call)

    def note(self, scene: Scene, changed: Sequence[str]) -> Note | None:
        """Note what was looked at, except changed files."""
        is_focus = scene.mode in ("explore", "research", "bug_fixing", "debugging")
        files = [path for path in self.files if path not in changed]
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
        searched: dict[str, Any] = {
            "searchQueries": list(self.searches)[:20],
            "notFound": misses[:20],
        }
        text = "; ".join(pieces)
        return scene.note(
            "medium" if is_focus else "low",
            "note",
            text[:1].upper() + text[1:],
            self.calls,
            inputs=["tool"],
            files=list(self.files)[:40],
            **(searched if scene.mode == "explore" else {}),
        )


def is_of_host(path: str) -> bool:
    """Return True if a file belongs to the agent's host."""
    return bool(CUES["not of the work"].match(path)) or any(map(path.__contains__, _HOST_FOLDERS))


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
        links += [
            link for call in calls for link in CUES["link"].findall((call.output or "")[:20_000])
        ]
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
    details += [clip(item, 150) for item in report.items[:10]]
    return [
        scene.note("medium", "finding", f"Delegated: {clip(task, 220)}", [call], details=details)
    ]


def ask_notes(scene: Scene, call: ToolCall) -> list[Note]:
    """Note answers to a tool's questions, or open questions."""
    answers = form_answers(call)
    if answers:
        return [
            scene.note(
                "high",
                "decision",
                f"User answered: {clip(answer, 300)} (asked: {clip(question, 300)})",
                [call],
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
    return [
        scene.note(
            "high" if is_approved else "medium",
            "decision",
            f"{label} {clip(title, 200)}",
            [call],
            inputs=["assistant", "user"] if is_approved else ["assistant"],
            details=[clip(item, 140) for item in (*plan.prose[:2], *plan.items[1:])][:10],
        )
        for title in words[:1]
    ]


def rejection_notes(scene: Scene, call: ToolCall, is_quiet: bool) -> list[Note]:
    """Write the call that the user refused, and why.

    A quiet tool's only with a reason.
    """
    reason = CUES["reason of refusal"].search((call.output or "")[:4_000])
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
    given = call.arguments.values() if isinstance(call.arguments, Mapping) else [call.arguments]
    values = [clean(plain(value)[:2_000]) for value in given if value not in (None, "", False)]
    return clip(scene.paths.shorten(joined(values, 160, ", ")), 160)
