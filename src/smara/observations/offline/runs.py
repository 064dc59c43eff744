"""Commands that were run, each with its outcome as far as the result tells it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from smara.observations.offline.exchanges import Call, output_lines
from smara.observations.offline.paths import Paths
from smara.observations.offline.shell import Command, read_command
from smara.observations.offline.telling import (
    Failure,
    exit_code,
    failure_in,
    first_words,
    last_words,
    verdict_in,
    was_not_run,
)
from smara.observations.offline.test_runs import TestRun, test_run_in
from smara.observations.offline.wording import clean, clip, one_line

Outcome = Literal["ok", "failed", "unknown"]

_BACKGROUND = re.compile(r"running in (?:the )?background with ID: (\w{1,40})")
_INSTALLED = re.compile(
    r"(?i)\b(?:successfully installed|added \d+ packages?|installed \d+|up to date)\b|^\s{0,4}\+ "
    r"\S+[@=]"
)
_COMMIT = re.compile(r"\[([\w./ ()#-]{1,120}?) ([0-9a-f]{7,40})\] (.{1,200})")
_MESSAGE = re.compile(
    r"-m\s*(?:\"\$\(cat <<-?\s*'?\"?(\w{1,20})'?\"?\s*\n\s*([^\n]{1,200})|\"([^\"\n]{1,200})"
    r"|'([^'\n]{1,200}))"
)


@dataclass(frozen=True, slots=True)
class Run:
    """A command and what came of it."""

    call: Call
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


def command_text(call: Call) -> str:
    """The command line of a call; some hosts give it as a list of words."""
    if isinstance(call.arguments, str):
        return call.arguments
    text = call.argument("command", "cmd", "script", "code", "input")
    words = call.arguments.get("command") if isinstance(call.arguments, dict) else None
    if not text and isinstance(words, list):
        text = clean(_shell_words([word for word in words if isinstance(word, str)]))
    return text


def _shell_words(words: list[str]) -> str:
    """``["bash", "-lc", "make test"]`` is ``make test``."""
    if len(words) > 2 and words[1] in ("-c", "-lc", "-ic"):
        return words[2]
    return " ".join(words)


def read_run(call: Call, paths: Paths, command: Command | None = None) -> Run | None:
    """A run with its outcome, or None when the host refused to run it."""
    line = command_text(call)
    command = command or read_command(paths.shorten(line))
    if call.output is None:
        return Run(call, command, "unknown")
    if was_not_run(call.output):
        return None
    _unwrap(call)
    lines = list(output_lines(call))
    tests = test_run_in(lines) if command.kind in ("test", "build", "commit", "other") else None
    failure = None
    outcome = _outcome(call, tests)
    if outcome != "ok" or (
        command.kind in ("build", "install", "test", "commit") and tests is None
    ):
        failure = failure_in(lines)
    if outcome == "unknown" and failure is not None and not failure.is_certain:
        failure = None
    outcome = (
        "failed"
        if failure is not None and outcome == "unknown"
        else "ok"
        if outcome == "unknown"
        else outcome
    )
    if outcome == "failed" and failure is None:
        failure = Failure(first_words(lines, 220))
    subject = _subject(line, call.output) if command.kind == "commit" else ""
    words = _words(command, lines)
    return Run(
        call,
        command,
        outcome,
        failure=failure if outcome == "failed" else None,
        tests=tests,
        words=words,
        subject=subject,
    )


def _words(command: Command, lines: list[str]) -> str:
    """The words of an output that say most about it."""
    if command.kind == "install":
        return next((clip(line, 140) for line in lines if _INSTALLED.search(line[:300])), "")
    if command.kind == "build":
        return verdict_in(lines) or (first_words(lines) if command.is_masked else "")
    return last_words(lines) if command.kind == "test" else first_words(lines)


def _outcome(call: Call, tests: TestRun | None) -> Outcome:
    code = exit_code(call.output or "")
    if (
        call.is_error
        or (code is not None and code != 0)
        or (tests is not None and tests.has_failures)
    ):
        return "failed"
    return "ok" if code == 0 or tests is not None else "unknown"


def _unwrap(call: Call) -> None:
    """Some hosts give the output as JSON with an exit code beside it."""
    text = call.output or ""
    if not text.startswith('{"') or len(text) > 2_000_000:
        return
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return
    inner = value.get("output", value.get("stdout")) if isinstance(value, dict) else None
    if isinstance(inner, str):
        about = value.get("metadata")
        code = value.get("exit_code", about.get("exit_code") if isinstance(about, dict) else None)
        call.output = clean(inner)
        call.is_error = call.is_error or (isinstance(code, int) and code != 0)


def background_id(call: Call) -> str:
    """The name under which a command goes on in the background, or nothing."""
    output = call.output or ""
    match = _BACKGROUND.search(output[:400]) or _BACKGROUND.search(output[-600:])
    return match[1] if match else ""


def _subject(line: str, output: str) -> str:
    if told := _COMMIT.search(output[:4_000]):
        return f"{clip(told[3], 160)} [{told[1]} {told[2]}]"
    if given := _MESSAGE.search(line[:20_000]):
        return clip(one_line(given[2] or given[3] or given[4] or ""), 160)
    return ""
