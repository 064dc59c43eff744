"""Write notes on the runs of commands.

Successful runs share one line. Each failure, each commit and each fix has its own note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from smara.actions.commands import TELLING, WEIGHT, head_of, read_command, read_commit
from smara.actions.failures import failure_in, was_not_run
from smara.actions.models import Command, CommandPart, Failure, TestRun
from smara.actions.reports import read_test_run
from smara.actions.tool_output import exit_code, exit_code_field, unwrap_json
from smara.core.extract import one_line
from smara.core.tool_names import shell_line
from smara.observations.models import Note, Priority
from smara.observations.offline import phrases
from smara.observations.offline.exchanges import ToolCall, output_lines
from smara.observations.offline.notes import (
    PathShortener,
    Scene,
    clean,
    clip,
    joined,
    make_note,
    one_of,
)

Outcome = Literal["ok", "failed", "unknown"]

_BACKGROUND = re.compile(r"running in (?:the )?background with ID: (\w{1,40})")
_SHOWN = 140
_INSTALLED = re.compile(
    r"(?i)\b(?:successfully installed|added \d+ packages?|installed \d+|up to date)\b|^\s{0,4}\+ "
    r"\S+[@=]"
)


@dataclass(frozen=True, slots=True)
class Run:
    """A command and what came of it."""

    call: ToolCall
    command: Command
    outcome: Outcome
    failure: Failure | None = None
    tests: TestRun | None = None
    words: str = ""
    """The first words of its output."""
    subject: str = ""
    """Of a commit, its subject line, with branch and hash where they were told."""

    @property
    def seqs(self) -> tuple[int, int]:
        return self.call.seq, self.call.last_seq

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


def command_text(call: ToolCall) -> str:
    """The command line of a call.

    Some hosts give it as a list of words.
    """
    if isinstance(call.arguments, str):
        return call.arguments
    text = call.argument("command", "cmd", "script", "code", "input")
    words = call.arguments.get("command") if isinstance(call.arguments, dict) else None
    if not text and isinstance(words, list):
        text = clean(shell_line([word for word in words if isinstance(word, str)]))
    return text


def read_run(call: ToolCall, paths: PathShortener, command: Command | None = None) -> Run | None:
    """Read a run with its outcome.

    None if the host refused to run it.
    """
    line = command_text(call)
    short = paths.shorten(line)
    command = command or read_command(short) or _idle(short)
    if call.output is None:
        return Run(call, command, "unknown")
    if was_not_run(call.output):
        return None
    if (fields := unwrap_json(call.output)) is not None:
        call.output = clean(str(fields.get("output", fields.get("stdout"))))
        call.is_error = call.is_error or exit_code_field(fields) not in (None, 0)
    lines = list(output_lines(call))
    purpose = command.purpose
    has_tests = purpose in ("test", "check", "commit", "other", "network", "review")
    tests = read_test_run(lines) if has_tests else None
    failure = None
    outcome = _outcome(call, tests)
    if outcome != "ok" or (purpose in ("check", "install", "test", "commit") and tests is None):
        failure = failure_in(lines)
    if outcome == "unknown":
        outcome = "failed" if failure is not None and failure.is_certain else "ok"
    if outcome == "failed" and failure is None:
        failure = Failure(first_words(lines, 220))
    subject = ""
    if purpose == "commit":
        commit = read_commit(line, call.output)
        place = f" [{commit.branch} {commit.sha}]" if commit.sha else ""
        subject = f"{clip(commit.subject, 160)}{place}"
    return Run(
        call,
        command,
        outcome,
        failure=replace(failure, line=clip(failure.line, 220))
        if failure is not None and outcome == "failed"
        else None,
        tests=tests,
        words=_run_words(command, lines),
        subject=subject,
    )


def _idle(line: str) -> Command:
    """A line that runs nothing, such as ``cd app``; it may fail all the same."""
    part = CommandPart(one_line(line), head_of(line), head_of(line), purpose="idle")
    return Command((part,), part, part.text, is_simple=True)


def _run_words(command: Command, lines: list[str]) -> str:
    """Return the words of an output that say most about it."""
    if command.purpose == "install":
        return next((clip(line, 140) for line in lines if _INSTALLED.search(line[:300])), "")
    if command.purpose == "check":
        return verdict_in(lines) or (first_words(lines) if command.is_piped else "")
    return last_words(lines) if command.purpose == "test" else first_words(lines)


def _outcome(call: ToolCall, tests: TestRun | None) -> Outcome:
    code = exit_code(call.output or "")
    if call.is_error or code not in (None, 0) or (tests is not None and tests.has_failures):
        return "failed"
    return "ok" if code == 0 or tests is not None else "unknown"


def background_id(call: ToolCall) -> str:
    """Return a background command's name, or nothing."""
    output = call.output or ""
    match = _BACKGROUND.search(output[:400]) or _BACKGROUND.search(output[-600:])
    return match[1] if match else ""


_VARIABLE = re.compile(
    r"\s{0,12}(?:\w{1,12}: )?([A-Za-z_][\w.\[\]]{0,40})\s{0,3}(?:=|:)\s{1,4}(\S.{0,80})"
)
REJECTED = "The user doesn't want to proceed with this tool use"

_PREAMBLE = (
    "warning",
    "Compiling",
    "Generated",
    "Exit code",
    "Checking ",
    "Running ",
    "Getting ",
    "hint:",
    "> ",
)
_VERDICT = one_of(
    r"\b(?:\d{1,9}|no|found|zero)\b.{0,40}"
    r"\b(?:issues?|errors?|warnings?|problems?|suggestions?|violations?|offenses?)\b",
    r"all checks passed|success",
)


def verdict_in(lines: Iterable[str], characters: int = 110) -> str:
    """Return a checker's last verdict: "found no issues", "2 errors"."""
    verdict = ""
    for line in lines:
        if _VERDICT.search(line[:300]):
            verdict = line
    return clip(verdict, characters)


def last_words(lines: Iterable[str], characters: int = 110) -> str:
    """The last line of an output that has words in it."""
    for line in reversed(list(lines)[-40:]):
        if sum(map(str.isalpha, line[:60])) >= 4:
            return clip(line, characters)
    return ""


def first_words(lines: Iterable[str], characters: int = 110) -> str:
    """Return an output's first line with words, or its first."""
    first = ""
    for number, line in enumerate(lines):
        words = one_line(line)
        first = first or words
        if number > 60:
            break
        is_margin = line[:1] in "└│┃" or line.startswith("    ")
        if (
            sum(map(str.isalpha, words[:60])) >= 4
            and not is_margin
            and not words.startswith(_PREAMBLE)
        ):
            return clip(words, characters)
    return (
        clip(first, characters)
        if any(map(str.isalnum, first)) and not first.startswith(_PREAMBLE)
        else ""
    )


def variables_in(lines: Iterable[str], most: int = 8) -> dict[str, str]:
    """Values that an output shows: ``left: []``, ``user_id = 42``."""
    found: dict[str, str] = {}
    for line in lines:
        if len(found) >= most:
            break
        if match := _VARIABLE.fullmatch(line.rstrip()):
            found.setdefault(match[1], clip(match[2], 80))
    return found


_INLINE = 420
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s?%")
_QUIET = frozenset({"git", "revert", "commit"})


def run_note(scene: Scene, runs: Sequence[Run]) -> Note | None:
    """Note successful or unfinished runs; tests set its kind."""
    told = _told(runs)
    if not told:
        return None
    tests = [run.tests for run in runs if run.tests is not None]
    is_install = all(run.command.purpose == "install" for run in runs)
    label = phrases.INSTALLED if is_install else phrases.RAN
    whole = f"{label} {'; '.join(told)}"
    is_long = len(whole) > _INLINE
    priority: Priority = "high" if tests and scene.mode == "testing" else "medium"
    return make_note(
        scene,
        priority,
        "test" if tests else "command",
        text=f"{label}:" if is_long else whole,
        at=runs[0].call.at,
        seqs=[seq for run in runs for seq in run.seqs],
        inputs=["assistant", "tool"],
        details=told if is_long else (),
        **_test_facts(scene, runs),
    )


def _told(runs: Sequence[Run]) -> list[str]:
    """Each command once, with the outcomes of all its runs: ``make check: ok``."""
    outcomes: dict[str, list[str]] = {}
    for run in runs:
        outcomes.setdefault(run.shown, []).append(outcome_words(run))
    return [
        f"{shown}: {joined(dict.fromkeys(words), 260)}"
        for shown, words in outcomes.items()
        if shown
    ]


def outcome_words(run: Run) -> str:
    """Return a run's outcome in a few words."""
    if run.outcome == "failed":
        told = _failed_words(run)
        return f"{phrases.FAILED}: {told}" if told else phrases.FAILED
    if run.tests is not None:
        return run.tests.summary + (f"; {run.tests.coverage}" if run.tests.coverage else "")
    if run.outcome == "unknown":
        return phrases.NO_RESULT
    return run.words if run.words and run.command.purpose not in _QUIET else phrases.OK


def _failed_words(run: Run) -> str:
    """How many tests failed, and the line that tells why."""
    counts = run.tests.summary if run.tests is not None else ""
    line = run.failure.line if run.failure else ""
    return "; ".join(dict.fromkeys(filter(None, (counts, line))))


def commit_note(scene: Scene, run: Run) -> Note:
    """A commit: its subject, branch and hash."""
    text = f"{phrases.COMMITTED} {run.subject or run.words or run.shown}"
    return make_note(
        scene,
        "high",
        "completion",
        text=text,
        at=run.call.at,
        seqs=run.seqs,
        inputs=["assistant", "tool"],
    )


def error_note(scene: Scene, run: Run) -> Note:
    """Note a failure: command, error line, place, failed tests."""
    text = f"{run.shown} {outcome_words(run)}" + _place(scene, run)
    return make_note(
        scene,
        _priority(scene),
        "error",
        text=text,
        at=run.call.at,
        seqs=run.seqs,
        inputs=["assistant", "tool"],
        details=_failing(run.tests),
        **_places(scene, [run]),
        **_failure_facts(scene, [run]),
        **_test_facts(scene, [run]),
    )


def fix_note(scene: Scene, failed: Sequence[Run], mended: Run, changed: Sequence[str]) -> Note:
    """Note a mended failure: what failed, changed, and says now.

    Without ``failed`` it failed in messages that are not at hand.
    """
    after = f"; {phrases.AFTER} {joined(changed, 160, ', ')}" if changed else ""
    if failed:
        lines = dict.fromkeys(filter(None, map(_failed_words, failed)))
        told = f": {joined(lines, 560)}{_place(scene, failed[0])}" if lines else ""
        again = f"{mended.shown}: " if mended.shown != failed[0].shown else ""
        text = (
            f"{failed[0].shown} {phrases.FAILED}{told}{after}; {phrases.THEN} "
            f"{again}{outcome_words(mended)}"
        )
    else:
        text = f"{mended.shown}: {outcome_words(mended)}{after}"
    return make_note(
        scene,
        _priority(scene),
        "fix",
        text=f"{phrases.FIXED} {text}",
        at=mended.call.at,
        seqs=[seq for run in (*failed, mended) for seq in run.seqs],
        inputs=["assistant", "tool"],
        details=_failing(failed[0].tests) if failed else (),
        **_places(scene, failed, changed),
        **_failure_facts(scene, failed),
        **_test_facts(scene, [mended]),
    )


def _priority(scene: Scene) -> Priority:
    return "high" if scene.mode in ("bug_fixing", "debugging") else "medium"


def _place(scene: Scene, run: Run) -> str:
    place = scene.paths.short(run.failure.place) if run.failure else ""
    return f" ({place})" if place and place not in run.failure.line else ""  # type: ignore[union-attr]


def _places(scene: Scene, runs: Sequence[Run], changed: Sequence[str] = ()) -> dict[str, Any]:
    failures = [run.failure for run in runs if run.failure and run.failure.file]
    return {
        "files": [*(scene.paths.short(failure.file) for failure in failures), *changed],
        "lines": [failure.line_number for failure in failures],
    }


def _failing(tests: TestRun | None) -> list[str]:
    if tests is None or not tests.failing:
        return []
    more = ["…"] if len(tests.failing) > 5 else []
    return [f"{phrases.FAILING} {clip(name, 120)}" for name in tests.failing[:5]] + more


def _failure_facts(scene: Scene, runs: Sequence[Run]) -> dict[str, Any]:
    failures = [run.failure for run in runs if run.failure is not None]
    if scene.mode == "bug_fixing" and failures:
        return {"errorType": failures[0].type, "stackTrace": "\n".join(failures[0].trace)}
    if scene.mode == "debugging":
        seen = {
            name: value
            for run in runs
            for name, value in variables_in(output_lines(run.call, 200)).items()
        }
        return {
            "symptoms": [failure.line for failure in failures if failure.line][:6],
            "variables": seen,
        }
    return {}


def _test_facts(scene: Scene, runs: Sequence[Run]) -> dict[str, Any]:
    if scene.mode != "testing":
        return {}
    tests = [(run.shown, run.tests) for run in runs if run.tests is not None]
    results = [_result(name, each) for name, each in tests]
    results += [
        {"name": name, "status": phrases.FAILED} for _, each in tests for name in each.failing
    ]
    coverage = next((each.coverage for _, each in tests if each.coverage), "")
    percent = _PERCENT.search(coverage)
    return {
        "testResults": results,
        "coverage": {"percent": percent[1], "message": coverage} if percent else {},
    }


def _result(name: str, tests: TestRun) -> dict[str, Any]:
    status = phrases.FAILED if tests.has_failures else phrases.PASSED
    return {"name": name, "status": status, "message": tests.summary, **dict(tests.counts)}
