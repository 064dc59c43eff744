"""Record the runs of commands in the scratchpad.

Runs are followed from a failure to its fix, with tests, commits and repeated sequences.
"""

from __future__ import annotations

import re
from typing import Any

from smara.actions import commands
from smara.actions.commands import read_commit
from smara.actions.failures import (
    ends_of,
    fingerprint,
    is_absent_tool,
    is_environment,
    is_harness,
    telling_line,
)
from smara.actions.models import LOOKING, Action, Command
from smara.actions.paths import stem_of
from smara.actions.reports import are_tests_green, failed_tests, has_run_tests
from smara.behavior.scratchpad import QUOTE, Entry, Pad, quote
from smara.core.events import HostEvent
from smara.core.tool_triggers import looks_elsewhere
from smara.secrets import redact

_MOST_OPEN = 6
_FIX_STEPS = 12
"""A command that works so many steps later was hardly tried because of the failure."""
_OPEN_STEPS = 60
_MOST_BETWEEN = 4
_CHAIN = 5
_PATHS = re.compile(r"[\w./@+-]+")
_WORK = frozenset({"test", "check"})
"""Commands that take as long as their work takes; others wait for a person's leave, or for a
network.
"""


def ran(pad: Pad, event: HostEvent, action: Action, failed: bool) -> None:
    """A command has run."""
    command = action.command
    if command is None:
        return
    facts = pad.facts
    facts.runs += 1
    _time(pad, event, command)
    told = (event.error or "") + "\n" + event.tool_output if event.error else event.tool_output
    if command.purpose == "test":
        _tested(pad, command, told, failed=failed)
    if failed:
        facts.chain = []
        _open(pad, command, told)
        return
    if command.has("commit"):
        _committed(pad, event)
    if command.has("review"):
        facts.reviewed = True
    if command.has("revert"):
        _reverted(pad, command)
    if command.purpose not in LOOKING:
        where = looks_elsewhere(str(event.tool_input.get("command", ""))[:QUOTE])
        where = "" if where in command.text else where  # a variable is part of the command
        if not where:
            pad["worked"].count(command.text, pad.step)
        _close(pad, command, f"{redact(where).text} && {command.text}" if where else command.text)
        for part in command.parts:
            if part.purpose not in LOOKING and part.purpose != "edit":
                # A commit has another message each time, and is the same step; so has a push
                # another branch.
                is_named = commands.is_named_anew(part.text)
                _chained(pad, part.head if is_named else part.text[:80])


def _time(pad: Pad, event: HostEvent, command: Command) -> None:
    began = pad.facts.starts.pop(event.tool_use_id[:64], None) if event.tool_use_id else None
    if began is None or event.at_ms < began:
        return
    seconds = (event.at_ms - began) / 1000
    pad.facts.run_seconds = [*pad.facts.run_seconds, round(seconds, 1)][-64:]
    entry = pad["durations"].count(command.text, pad.step)
    entry["t"] = max(entry.get("t", 0.0), round(seconds, 1))
    entry["b"] = min(entry.get("b", seconds), round(seconds, 1))
    if command.purpose in _WORK and command.is_simple:
        entry["w"] = True
    if "timed out" in (event.error or event.tool_output)[:600].lower():
        entry["x"] = entry.get("x", 0) + 1


# failures and what ended them


def _open(pad: Pad, command: Command, told: str) -> None:
    line = telling_line(told)
    if not line or is_harness(told) or commands.fails_by_nature(command.text):
        return
    is_surroundings = is_environment(line)
    if command.purpose in ("test", "check") and not (
        is_absent_tool(line) and not has_run_tests(told)
    ):
        return  # red tests and findings of linters are work, not trouble
    shown = quote(line, 240)
    print_ = fingerprint("Bash", command.head, shown)
    entry = pad["errors"].count(print_, pad.step)
    entry.update(tool="Bash", cmd=command.text, line=shown, env=is_surroundings)
    if command.purpose not in LOOKING:  # nothing is run in the place of a look
        _note_open(pad, print_, command.text, is_simple=command.is_simple)


def _note_open(pad: Pad, print_: str, what: str, is_simple: bool) -> None:
    facts = pad.facts
    kept = [each for each in facts.open_failures if each["fp"] != print_]
    opened = {
        "fp": print_,
        "cmd": what,
        "step": pad.step,
        "edits": [],
        "between": [],
        "simple": is_simple,
    }
    facts.open_failures = [*kept, opened][-_MOST_OPEN:]


def _close(pad: Pad, command: Command, said: str) -> None:
    """A command has worked, as it was said: which failures does that end?"""
    still: list[dict[str, Any]] = []
    for each in pad.facts.open_failures:
        age = pad.step - each["step"]
        if age > _OPEN_STEPS:
            continue
        how = _ended_by(each, command, age, is_elsewhere=said != command.text)
        if how is None:
            if len(each["between"]) < _MOST_BETWEEN:
                each["between"].append(command.text[:200])
            still.append(each)
        elif how != "again":
            _resolve(pad, each, how, fix=said)
    pad.facts.open_failures = still


def _ended_by(
    failure: dict[str, Any], command: Command, age: int, is_elsewhere: bool
) -> str | None:
    if command.text == failure["cmd"]:
        if failure["edits"]:
            return "edit"
        if is_elsewhere and failure["simple"]:
            return "command"  # the same program, found where it is
        # With several commands in between, or none, nobody can tell what helped.
        return "first" if len(failure["between"]) == 1 else "again"
    is_tried = (
        age <= _FIX_STEPS and not failure["edits"] and failure["simple"] and command.is_simple
    )
    return "command" if is_tried and commands.is_same_aim(failure["cmd"], command.text) else None


def _resolve(pad: Pad, failure: dict[str, Any], how: str, fix: str) -> None:
    entry = pad["errors"].find(failure["fp"])
    if entry is None:
        return
    entry["how"] = how
    entry["done"] = pad.step
    entry["fix"] = quote(failure["between"][0] if how == "first" else fix, 280)
    entry["files"] = failure["edits"][:3] if how == "edit" else []


def missed(pad: Pad, path: str, told: str) -> None:
    """A file was looked for where it is not."""
    print_ = fingerprint("Read", "", path)
    entry = pad["errors"].count(print_, pad.step)
    entry.update(tool="Read", cmd=path, line=told, env=True)
    _note_open(pad, print_, path, is_simple=True)
    pad.facts.open_failures[-1]["read"] = True


def found(pad: Pad, path: str) -> None:
    """A file was read: perhaps the one that was looked for elsewhere."""
    opened = pad.facts.open_failures
    if not any(each.get("read") for each in opened):
        return
    still = []
    for each in opened:
        is_other = (
            each.get("read") and path != each["cmd"] and pad.step - each["step"] <= _FIX_STEPS
        )
        if is_other and stem_of(path) == stem_of(each["cmd"]):
            _resolve(pad, each, "path", fix=path)
        else:
            still.append(each)
    pad.facts.open_failures = still


def edited(pad: Pad, path: str) -> None:
    """A file was changed: what works afterwards may work because of it."""
    for each in pad.facts.open_failures:
        if path not in each["edits"] and len(each["edits"]) < 6:
            each["edits"].append(path)
    for _, entry in pad["tests"]:
        if entry.get("red") and not entry.get("green"):
            changed = entry.setdefault("files", [])
            if path not in changed and len(changed) < 4:
                changed.append(path)
    suffix = path.rsplit(".", 1)[-1] if "." in path else path.rsplit("/", 1)[-1]
    _chained(pad, f"edit *.{suffix}"[:80])


# tests


def _tested(pad: Pad, command: Command, told: str, failed: bool) -> None:
    facts = pad.facts
    verdict = are_tests_green(told, failed)
    if verdict is None:
        return
    facts.test_runs += 1
    is_counted = facts.last_source_edit > facts.green_at
    facts.runs_so_far = facts.runs_so_far + 1 if is_counted else 0
    facts.last_test, facts.last_test_ok = pad.step, verdict
    if verdict:
        if is_counted:
            facts.green_after = [*facts.green_after, facts.runs_so_far][-20:]
        facts.green_at, facts.runs_so_far = pad.step, 0
        for _, entry in pad["tests"]:
            if entry.get("red") and not entry.get("green") and entry["cmd"] == command.head:
                entry["green"] = pad.step
        return
    for test in failed_tests(ends_of(told)):
        path = test.file
        entry = pad["tests"].count(quote(test.name, 280), pad.step)
        entry.setdefault("red", pad.step)
        entry.setdefault("why", quote(test.reason, 240))
        entry["cmd"] = command.head
        entry.pop("green", None)
        entry["at"] = quote(path, 160)
        # A test that was written to fail first tells nothing when it does.
        entry.setdefault("own", _is_edited(pad, path) if path else bool(facts.first_test_edit))


def _is_edited(pad: Pad, path: str) -> bool:
    """Whether the session has changed a file, which a test run may name without its folder."""
    if "/" in path:
        entry = pad["files"].find(path)
        return bool(entry is not None and entry.get("e"))
    return any(entry.get("e") and each.endswith(f"/{path}") for each, entry in pad["files"])


# commits, what was taken back, what was given up


def _committed(pad: Pad, event: HostEvent) -> None:
    facts = pad.facts
    facts.last_commit = pad.step
    commit = read_commit(str(event.tool_input.get("command") or ""), event.tool_output)
    if not commit.sha:
        return
    facts.branch = quote(commit.branch, 100)
    entry = pad["commits"].count(commit.sha, pad.step)
    entry["message"] = quote(
        (commit.message or commit.subject).replace("\\n", "\n").replace("\n", " ¶ "), 3 * QUOTE
    )
    since = facts.committed_at
    entry["files"] = [path for path, each in pad["files"] if each.get("e") and each["s"] > since][
        :12
    ]
    facts.committed_at = pad.step


def _reverted(pad: Pad, command: Command) -> None:
    words = set(_PATHS.findall(command.text))
    is_all = bool({".", "--hard"} & words) or "checkout ." in command.text
    for path, entry in list(pad["files"]):
        if entry.get("e") and (is_all or path in words or path.rsplit("/", 1)[-1] in words):
            taken_back(pad, path, int(entry.get("es", pad.step)), what=command.text[:160])


def taken_back(pad: Pad, path: str, since: int, what: str) -> None:
    """An edit was undone."""
    entry = pad["backtracks"].count(path, pad.step)
    entry["q"] = what
    entry["since"] = since
    failure = _newest_failure(pad, since)
    if failure is not None:
        entry["cmd"], entry["line"] = failure["cmd"], failure["line"]
    elif pad.facts.last_test_ok is False and pad.facts.last_test >= since:
        red = max((each for _, each in pad["tests"]), key=lambda each: int(each["s"]), default=None)
        if red is not None:
            entry["cmd"], entry["line"] = "the tests", red["why"]


def gave_up(pad: Pad, entry: Entry) -> None:
    """Record an approach that was given up, and why."""
    since = max(0, pad.step - 15)
    failure = _newest_failure(pad, since)
    if failure is not None:
        entry["cmd"], entry["line"] = failure["cmd"], failure["line"]
    entry["edited"] = [path for path, each in pad["files"] if each.get("e") and each["s"] >= since][
        :4
    ]
    entry["at_edit"] = pad.facts.edits


def _newest_failure(pad: Pad, since: int) -> Entry | None:
    near = [each for _, each in pad["errors"] if each["s"] >= since]
    return max(near, key=lambda each: int(each["s"]), default=None)


# what is done in the same order


def _chained(pad: Pad, what: str) -> None:
    facts = pad.facts
    chain: list[str] = facts.chain
    if chain and chain[-1] == what:
        return
    chain = [*chain, what][-_CHAIN:]
    facts.chain = chain
    for length in range(3, len(chain) + 1):
        steps = chain[-length:]
        runs = [each for each in steps if not each.startswith("edit ")]
        is_whole = len(set(runs)) >= 2 and len(set(steps)) == length
        # A change stands at the beginning or is none of it: what comes after it is the next round.
        if is_whole and not any(each.startswith("edit ") for each in steps[1:]):
            entry = pad["sequences"].count(" → ".join(steps), pad.step)
            entry["steps"] = steps
