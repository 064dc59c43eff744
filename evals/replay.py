"""Real sessions replayed in order: how many failures came again, and was a warning ready before
them?

Before every call the agent's hook would ask ``moments.before_tool``, after it
``moments.after_tool``; so does this. What is known comes from the sessions before alone. A failure
*came again* when an earlier session of the project had

* the same command with the same error,
* the same error of the same program, from another command, or
* the same file looked for where it is not.

Red tests, findings of linters, conflicts and refused commits are work, not mistakes that come
again, unless the error says that something was absent or unknown: they are counted in a column of
their own. A *warning* is what is said before a call about a failure; it is *noise* when the call
then succeeds. A call whose status is that of ``head`` or ``tail`` at its end has not succeeded when
it printed the very error that the same program had ended with before. What is said right after a
failure, because the same error is known, is counted as *told at the failure*.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import smara
from evals.promoted import PARTS
from evals.transcripts import Project

NAME = "replay"
KINDS = ("command", "error", "file")
_HARNESS = re.compile(
    r"doesn't want to proceed|requires? (?:approval|permission)|interrupted"
    r"|tool_use_error>(?!File does not exist)"
    r"|has not been read|was rejected|blocked|sibling tool call|hook error|exceeds maximum",
    re.IGNORECASE,
)
_WORK = re.compile(
    r"\b(?:\w*test\w*|jest|vitest|lint|check|build|vet|tsc|mypy|pyright|ruff|fmt|format|clippy"
    r"|golangci\S*|commit"
    r"|eslint|prettier|typecheck|compile|credo|dialyzer)\b"
)
_ABSENT = re.compile(
    r"not found|no such|denied|unknown|unrecognized|refused|upstream|rejected|not a git|missing"
    r"|ignored by|pathspec"
    r"|already"
)
_CONFLICT = re.compile(r"fix conflicts|could not apply|merge conflict", re.IGNORECASE)
_SAYS = re.compile(
    r"error|fatal|not found|no such|denied|cannot|can't|could not|unknown|invalid|failed|refused"
    r"|missing|unable"
    r"|rejected|does not exist|not a |no upstream|exception",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"^\W*$|^exit code|task failed|exit status", re.IGNORECASE)
_VARIES = re.compile(r"(?<=branch )\S+|/[\w./@+-]+/|\b[0-9a-f]{7,40}\b|\d+|\x1b\[[\d;]*m")
_PAGED = re.compile(r"\|\s*(?:head|tail)\b[^|;&]*$")
_AROUND = re.compile(
    r"^(?:cd\s+\S+\s*(?:&&|;)\s*)+|\s*(?:2>&1)?\s*\|\s*(?:head|tail)\b[^|;&]*$|\s*2>&1\s*$"
)


@dataclass(slots=True)
class Figures:
    """What came of one project."""

    project: str
    sessions: int = 0
    calls: int = 0
    failures: int = 0
    work: int = 0
    again: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    warned: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    at_failure: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    warnings: int = 0
    noise: int = 0
    other_failures: int = 0
    """Warned of, and it failed, though not as before by our rules."""
    said_after: int = 0
    examples: list[str] = field(default_factory=list)
    is_absent: bool = False


@dataclass(slots=True)
class Before:
    """What failed in earlier sessions, by the rules of this page and not by those of the
    package.
    """

    commands: set[tuple[str, str]] = field(default_factory=set)
    errors: set[tuple[str, str]] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    def kind_of(self, failure: Failure) -> str | None:
        if failure.file:
            return "file" if failure.file in self.files else None
        if (failure.command, failure.error) in self.commands:
            return "command"
        return "error" if (failure.command.split(" ")[0], failure.error) in self.errors else None

    def add(self, failures: list[Failure]) -> None:
        for each in failures:
            if each.file:
                self.files.add(each.file)
            else:
                self.commands.add((each.command, each.error))
                self.errors.add((each.command.split(" ")[0], each.error))


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed: a command with the line that says why, or a file that is not there."""

    command: str = ""
    error: str = ""
    file: str = ""


def evaluate(data: Path | None) -> list[Figures]:
    """Every project that is at hand."""
    figures = []
    for project in (each for part in PARTS.values() for each in part):
        found = Figures(project.name, is_absent=not project.is_at_hand(data))
        if not found.is_absent:
            _replay(project, data, found)
        figures.append(found)
    return figures


def _replay(project: Project, data: Path | None, found: Figures) -> None:
    before = Before()
    with _elsewhere(), smara.open(":memory:", embedder="off") as memory:
        for events in project.sessions(data):
            found.sessions += 1
            before.add(_session(memory, events, before, found=found))
            memory.behavior.finalize(events[0].session_id)
            memory.behavior.run_due()


@contextmanager
def _elsewhere() -> Iterator[None]:
    """In an empty folder: whether a file is there must not depend on where this runs."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def _session(
    memory: smara.Memory, events: list[smara.HostEvent], before: Before, found: Figures
) -> list[Failure]:
    """Replay one session; what failed in it."""
    failed: list[Failure] = []
    warned: dict[str, str] = {}
    for event in events:
        if event.kind == "tool_pre" and event.tool in ("Bash", "Read"):
            told = memory.moments.before_tool(event.session_id, event.tool, _relative(event))
            about = (
                [item for item in told.items if item.kind == "failure"] if told is not None else []
            )
            if about and told is not None:
                warned[event.tool_use_id] = told.text
        elif event.kind in ("tool_post", "tool_fail") and event.tool in ("Bash", "Read"):
            found.calls += 1
            failure = _judge(
                memory, event, before, warning=warned.pop(event.tool_use_id, ""), found=found
            )
            if failure is not None:
                failed.append(failure)
        memory.behavior.observe(event)
    return failed


def _judge(
    memory: smara.Memory, event: smara.HostEvent, before: Before, warning: str, found: Figures
) -> Failure | None:
    """Count one call that has ended."""
    failure = _failure(event) or _masked(event, before)
    found.warnings += bool(warning)
    if event.kind == "tool_post" and failure is None:
        found.noise += bool(warning)
        return None
    after = memory.moments.after_tool(
        event.session_id, event.tool, _relative(event), error=event.error or "failed"
    )
    is_told = after is not None and any(item.kind in ("failure", "memory") for item in after.items)
    found.said_after += is_told
    if failure is None:
        found.other_failures += bool(warning)
        return None
    is_work = _WORK.search(failure.command) or _CONFLICT.search(failure.error)
    if failure.command and is_work and not _ABSENT.search(failure.error):
        found.work += 1
        found.other_failures += bool(warning)
        return None
    found.failures += 1
    kind = before.kind_of(failure)
    if kind is None:
        found.other_failures += bool(warning)
        return failure
    found.again[kind] += 1
    found.warned[kind] += bool(warning)
    found.at_failure[kind] += bool(not warning and is_told)
    if not warning:
        what = failure.command or failure.file
        found.examples.append(f"{event.session_id[:8]} {kind}: {what} | {failure.error}"[:200])
    return failure


def _relative(event: smara.HostEvent) -> Mapping[str, Any]:
    path = event.tool_input.get("file_path")
    if (
        event.tool == "Read"
        and isinstance(path, str)
        and event.cwd
        and path.startswith(event.cwd + "/")
    ):
        return {**event.tool_input, "file_path": path[len(event.cwd) + 1 :]}
    return event.tool_input


def _failure(event: smara.HostEvent) -> Failure | None:
    """What failed, by plain rules; ``None`` for what the agent's own program refused, and for what
    says nothing.
    """
    if event.kind != "tool_fail":
        return None
    told = event.error or ""
    if _HARNESS.search(told[:400]):
        return None
    if event.tool == "Read":
        return (
            Failure(file=str(_relative(event).get("file_path", "")))
            if "does not exist" in told
            else None
        )
    line = _line(told)
    command = " ".join(
        _AROUND.sub("", str(event.tool_input.get("command", ""))[:2_000].strip()).split()
    )
    return Failure(command[:400], line) if line and command else None


def _masked(event: smara.HostEvent, before: Before) -> Failure | None:
    """A failure whose status a pager at the end of the line has hidden: the same program came out
    so before.
    """
    command = str(event.tool_input.get("command", ""))[:2_000]
    if event.kind != "tool_post" or event.tool != "Bash" or not _PAGED.search(command):
        return None
    bare = " ".join(_AROUND.sub("", command.strip()).split())[:400]
    failure = Failure(bare, _line(event.tool_output))
    return failure if failure.error and before.kind_of(failure) is not None else None


def _line(told: str) -> str:
    """The last line that speaks of trouble, without numbers, hashes and folders."""
    lines = [line.strip() for line in told[-4_000:].splitlines() if not _EMPTY.search(line)]
    speaking = [line for line in lines if _SAYS.search(line)]
    return " ".join(_VARIES.sub("", speaking[-1]).split()).lower()[:200] if speaking else ""


def render(figures: list[Figures]) -> str:
    """A row for each project and their sum."""
    lines = ["### Failures that came again, in sessions replayed in order", ""]
    lines += [
        "| project | sessions | calls | failures | red tests and checks | came again: command / "
        "error / file"
        " | warned before | told at the failure | warnings | of them noise |",
        "|" + "---|" * 10,
    ]
    for each in figures:
        lines.append(
            f"| {each.project} | not at hand |" + " |" * 8
            if each.is_absent
            else _row(each.project, [each])
        )
    lines.append(_row("**all**", [each for each in figures if not each.is_absent]))
    return "\n".join(lines) + "\n"


def _row(name: str, figures: list[Figures]) -> str:
    again, warned, at_failure = (
        [sum(getattr(each, what)[kind] for each in figures) for kind in KINDS]
        for what in ("again", "warned", "at_failure")
    )
    total, ready = sum(again), sum(warned)
    share = f" ({100 * ready / total:.0f} %)" if total else ""
    warnings, noise = sum(each.warnings for each in figures), sum(each.noise for each in figures)
    counts = ("sessions", "calls", "failures", "work")
    cells = [
        name,
        *(str(sum(getattr(each, what) for each in figures)) for what in counts),
        f"{total}: {' / '.join(map(str, again))}",
        f"{ready}: {' / '.join(map(str, warned))}{share}",
        f"{sum(at_failure)}: {' / '.join(map(str, at_failure))}",
        str(warnings),
        f"{noise} ({100 * noise / warnings:.0f} %)" if warnings else "0",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    import sys

    from evals.data import data_folder

    done = evaluate(data_folder())
    print(render(done))
    if "--show" in sys.argv:
        for figure in done:
            print("\n".join(f"{figure.project} {example}" for example in figure.examples))
