"""Read shell commands and write notes on their runs.

Successful runs share one line. Each failure, each commit and each fix has its own note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from smara.core.command_kinds import is_check_run, is_test_run
from smara.core.extract import word_set
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
    one_line,
    one_of,
)
from smara.observations.offline.output import (
    OutputFailure,
    TestRun,
    exit_code,
    failure_in,
    first_words,
    last_words,
    test_run_in,
    variables_in,
    verdict_in,
    was_not_run,
)

RunKind = Literal["commit", "test", "build", "install", "git", "query", "other", "look", "idle"]
# The most telling part of a line that runs several things gives the line its kind.
_WEIGHT: tuple[RunKind, ...] = (
    "idle",
    "look",
    "other",
    "git",
    "query",
    "install",
    "build",
    "test",
    "commit",
)

_LONGEST = 20_000
_QUOTED_OR_SPLIT = re.compile(r"'[^']{0,4000}'|\"(?:[^\"\\]|\\.){0,4000}\"|&&|\|\||[;\n]")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w{1,40})['\"]?")
_REDIRECT = re.compile(r"\s*(?:[12&]?>{1,2}\s*(?:&[12]|/dev/null|\S{1,200})|2>&1)\s*")
_PAGER = re.compile(r"\s*\|\s*(?:tail|head|cat|less|tee|wc|sort|uniq)\b[^|]{0,80}$")
_FILTER = re.compile(r"\s*\|\s*(?:grep|rg|awk|sed|jq|cut|tr|xargs)\b.{0,300}$")
_ASSIGNMENT = re.compile(r"(?:[A-Za-z_]\w{0,60}=\S{0,200}\s+)+(?=\S)")
_PREFIX = one_of(
    r"(?:sudo|time|nohup|env|npx|bunx|pnpx|uvx|exec|command|timeout\s+\S{1,10}|bundle\s+exec"
    r"|poetry\s+run|uv\s+run)\s+",
    r"(?:pipenv\s+run|python3?\s+-m)\s+|(?:\./)?\.?venv/bin/|node_modules/\.bin/|\./",
    flags=0,
)
_LOOKS = word_set(
    "ls cat head tail find grep rg ag sed awk wc pwd which whereis tree stat file jq cut sort "
    "uniq diff less more du df"
    " ps env printenv date whoami uname type id hostname top lsof history basename dirname "
    "realpath readlink xxd od"
    " md5sum sha256sum"
)
_IDLE = word_set(
    "cd echo true false sleep export set unset printf clear exit wait pushd popd source . : test "
    "[ read"
)
_BUILDS = one_of(
    r"(?:\S{0,80}/)?(?:make|webpack|vite|esbuild|rollup|rustc|gcc|g\+\+|clang|cmake|ninja|javac"
    r"|pre-commit)\b",
    r"(?:docker|docker-compose|nx|turbo|deno|terraform|helm|npm|pnpm|yarn|bun|mix|cargo|go|gradle"
    r"|\S{0,40}gradlew|mvn"
    r"|dotnet|swift|sbt|zig|bazel|flutter|stack|cabal)"
    r"\s+(?:run\s+|compose\s+)?(?:\w{1,20}:)?(?:build|validate|plan|apply|package|generate"
    r"|codegen|check|fmt|lint)",
    flags=0,
)
_INSTALLS = one_of(
    r"(?:pip3?|uv\s+pip|conda|mamba|apt|apt-get|brew|gem|dnf|yum|apk|pacman|choco|winget|cargo|go"
    r"|pipx)"
    r"\s+(?:-\S{1,40}\s+){0,4}(?:install|add)\b",
    r"(?:npm|pnpm|yarn|bun)\s+(?:install|i|add|remove|uninstall|rm|upgrade|up|ci)\b",
    r"(?:uv|poetry|cargo|pdm|hatch|bundle|rye|deno|dotnet)\s+(?:add|remove)\b",
    r"go\s+get\b|composer\s+require\b|mix\s+deps\.(?:get|update|add)\b",
    flags=0,
)
_INTERPRETERS = word_set("node python python3 ruby bash sh zsh perl php deno elixir julia Rscript")
_QUERIES = re.compile(r"(?:psql|sqlite3|mysql|mongosh?|redis-cli|bq|duckdb|clickhouse-client)\b")
_GIT_LOOKS = word_set(
    "status log diff show branch ls-files blame describe rev-parse remote reflog grep shortlog "
    "config tag"
)


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A command line: its kind, the program with its verb, and how it is shown."""

    kind: RunKind
    key: str
    """Two runs with one key are runs of the same thing: ``mix test``, ``git push``."""
    shown: str
    arguments: tuple[str, ...] = ()
    """The words of the telling part that are no options."""
    keys: frozenset[str] = frozenset()
    """The keys of all that the line runs."""
    is_masked: bool = False
    """Whether the exit code is that of a pager or a filter, and says nothing."""


def read_command(line: str, characters: int = 140) -> ShellCommand:
    """What a command line runs."""
    parts = [_bare(part) for part in _parts(line[:_LONGEST])]
    kinds = [kind_of_part(part) for part in parts]
    ranked = max(
        range(len(parts)), key=lambda place: (_WEIGHT.index(kinds[place]), -place), default=None
    )
    if ranked is None:
        return ShellCommand("idle", "", clip(line, characters))
    kind, main = kinds[ranked], parts[ranked]
    floor = 0 if kind in ("idle", "look") else 2
    shown = [part for part, each in zip(parts, kinds, strict=True) if _WEIGHT.index(each) >= floor]
    words = _words(_unprefixed(main))
    arguments = tuple(word for word in words[1:] if not word.startswith("-"))
    line_shown = "git commit" if kind == "commit" else clip(" && ".join(shown), characters)
    keys = frozenset(_key(_words(_unprefixed(part))) for part in parts)
    return ShellCommand(
        kind, _key(words), line_shown, arguments=arguments, keys=keys, is_masked="|" in line
    )


def _parts(line: str) -> list[str]:
    """The commands of a line; text that is fed to a command belongs to it and is left out."""
    if here := _HEREDOC.search(line):
        line = line[: here.start()] + _behind_heredoc(line, here)
    found: list[str] = []
    start = 0
    for match in _QUOTED_OR_SPLIT.finditer(line):
        if match[0][0] not in "'\"":
            found.append(line[start : match.start()])
            start = match.end()
    found.append(line[start:])
    return [
        stripped for part in found if (stripped := one_line(part)) and not stripped.startswith("#")
    ][:40]


def _behind_heredoc(line: str, here: re.Match[str]) -> str:
    end = line.find(f"\n{here[1]}", here.end())
    first_line_end = line.find("\n", here.end())
    on_first_line = line[here.end() : first_line_end] if first_line_end >= 0 else ""
    return on_first_line + (line[end + 1 + len(here[1]) :] if end >= 0 else "")


def _bare(part: str) -> str:
    """A command without its redirections, pagers and filters."""
    for _ in range(3):
        part = _PAGER.sub("", part)
    part = _FILTER.sub("", part) if not part.startswith(("grep", "rg", "find", "cat")) else part
    return one_line(_REDIRECT.sub(" ", part))


def _unprefixed(part: str) -> str:
    if assigned := _ASSIGNMENT.match(part):
        part = part[assigned.end() :]
    for _ in range(3):
        if match := _PREFIX.match(part):
            part = part[match.end() :]
    return part


def kind_of_part(part: str) -> RunKind:
    """The kind of one command."""
    bare = _unprefixed(part)
    words = bare.split(None, 2)
    if not words:
        return "idle"
    program = words[0].rpartition("/")[2]
    if program == "git":
        return _kind_of_git(words[1] if len(words) > 1 else "")
    if program in _IDLE:
        return "idle"
    if program in _LOOKS:
        return "look"
    if is_test_run(bare):
        return "test"
    if _INSTALLS.match(bare):
        return "install"
    if is_check_run(bare) or _BUILDS.match(bare):
        return "build"
    return "query" if _QUERIES.match(bare) else "other"


def _kind_of_git(verb: str) -> RunKind:
    if verb in ("commit", "add"):
        return "commit" if verb == "commit" else "idle"
    return "look" if verb in _GIT_LOOKS else "git"


def _words(part: str) -> list[str]:
    return part.split()[:40]


def _key(words: list[str]) -> str:
    """The program and its verb; of an interpreter its script."""
    if words and words[0] in _INTERPRETERS:
        script = next((word for word in words[1:] if not word.startswith("-")), "")
        return f"{words[0]} {script.rpartition('/')[2]}".strip()
    if len(words) > 1 and re.fullmatch(r"[a-z][\w:.-]{1,30}", words[1]) and "/" not in words[1]:
        return " ".join(words[:3] if words[1] in ("run", "exec", "compose") else words[:2])
    return words[0] if words else ""


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

    call: ToolCall
    command: ShellCommand
    outcome: Outcome
    failure: OutputFailure | None = None
    tests: TestRun | None = None
    words: str = ""
    """The first words of its output."""
    subject: str = ""
    """Of a commit, its subject line, with branch and hash where they were told."""

    @property
    def seqs(self) -> tuple[int, int]:
        return self.call.seq, self.call.last_seq


def command_text(call: ToolCall) -> str:
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


def read_run(
    call: ToolCall, paths: PathShortener, command: ShellCommand | None = None
) -> Run | None:
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
        failure = OutputFailure(first_words(lines, 220))
    subject = _subject(line, call.output) if command.kind == "commit" else ""
    words = _run_words(command, lines)
    return Run(
        call,
        command,
        outcome,
        failure=failure if outcome == "failed" else None,
        tests=tests,
        words=words,
        subject=subject,
    )


def _run_words(command: ShellCommand, lines: list[str]) -> str:
    """The words of an output that say most about it."""
    if command.kind == "install":
        return next((clip(line, 140) for line in lines if _INSTALLED.search(line[:300])), "")
    if command.kind == "build":
        return verdict_in(lines) or (first_words(lines) if command.is_masked else "")
    return last_words(lines) if command.kind == "test" else first_words(lines)


def _outcome(call: ToolCall, tests: TestRun | None) -> Outcome:
    code = exit_code(call.output or "")
    if (
        call.is_error
        or (code is not None and code != 0)
        or (tests is not None and tests.has_failures)
    ):
        return "failed"
    return "ok" if code == 0 or tests is not None else "unknown"


def _unwrap(call: ToolCall) -> None:
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


def background_id(call: ToolCall) -> str:
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


_INLINE = 420
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)\s?%")
_QUIET_KINDS = frozenset({"git", "commit"})


def run_note(scene: Scene, runs: Sequence[Run]) -> Note | None:
    """Runs that went well, or whose end was not seen, as one note; the tests among them give it its
    kind.
    """
    told = _told(runs)
    if not told:
        return None
    tests = [run.tests for run in runs if run.tests is not None]
    is_install = all(run.command.kind == "install" for run in runs)
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
        outcomes.setdefault(run.command.shown, []).append(outcome_words(run))
    return [
        f"{shown}: {joined(dict.fromkeys(words), 260)}"
        for shown, words in outcomes.items()
        if shown
    ]


def outcome_words(run: Run) -> str:
    """What came of a run in a few words, its own where it has some."""
    if run.outcome == "failed":
        told = _failed_words(run)
        return f"{phrases.FAILED}: {told}" if told else phrases.FAILED
    if run.tests is not None:
        return run.tests.summary + (f"; {run.tests.coverage}" if run.tests.coverage else "")
    if run.outcome == "unknown":
        return phrases.NO_RESULT
    return run.words if run.words and run.command.kind not in _QUIET_KINDS else phrases.OK


def _failed_words(run: Run) -> str:
    """How many tests failed, and the line that tells why."""
    counts = run.tests.summary if run.tests is not None else ""
    line = run.failure.line if run.failure else ""
    return "; ".join(dict.fromkeys(filter(None, (counts, line))))


def commit_note(scene: Scene, run: Run) -> Note:
    """A commit: its subject, branch and hash."""
    text = f"{phrases.COMMITTED} {run.subject or run.words or run.command.shown}"
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
    """A failure: the command, the line that tells what went wrong, its place, the tests that
    failed.
    """
    text = f"{run.command.shown} {outcome_words(run)}" + _place(scene, run)
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
    """A failure that is over: what failed, what was changed since, and what the same command says
    now.

    Without ``failed`` it failed in messages that are not at hand.
    """
    after = f"; {phrases.AFTER} {joined(changed, 160, ', ')}" if changed else ""
    if failed:
        lines = dict.fromkeys(filter(None, map(_failed_words, failed)))
        told = f": {joined(lines, 560)}{_place(scene, failed[0])}" if lines else ""
        again = (
            f"{mended.command.shown}: " if mended.command.shown != failed[0].command.shown else ""
        )
        text = (
            f"{failed[0].command.shown} {phrases.FAILED}{told}{after}; {phrases.THEN} "
            f"{again}{outcome_words(mended)}"
        )
    else:
        text = f"{mended.command.shown}: {outcome_words(mended)}{after}"
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
    tests = [(run.command.shown, run.tests) for run in runs if run.tests is not None]
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
