"""Record the runs of commands in the scratchpad.

Runs are followed from a failure to its fix, with tests, commits and repeated sequences.
"""

from __future__ import annotations

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
from smara.actions.models import LOOKING, Command, Outcome
from smara.actions.paths import rooted, stem_of
from smara.actions.reports import are_tests_green, count_tests, failed_tests, has_run_tests
from smara.actions.tool_calls import folder_of
from smara.behavior.cues import CUES
from smara.behavior.ledger import ErrorEntry
from smara.behavior.scratchpad import QUOTE, EventPlace, OpenFailure, Pad, quote
from smara.core.events import HostEvent
from smara.core.startup.regex import re, regex
from smara.core.tool_triggers import looks_elsewhere
from smara.secrets import redact

_MOST_OPEN = 6
_FIX_STEPS = 12
"""A command that works so many steps later was hardly tried because of the failure."""
_OPEN_STEPS = 60
_MOST_BETWEEN = 4
_CHAIN = 5
_COMMIT_AT = regex(r"\bgit\s+(?:-C\s+(\"[^\"]*\"|'[^']*'|\S+)\s+)?[^|;&\n]{0,80}?\bcommit\b")
_WORDED = regex(r"\scommit\b.*\s(?:-\w*m|--message)\b", re.DOTALL)
_WORK = frozenset({"test", "check"})
"""Commands that take as long as their work takes; others wait for a person's leave, or for a
network.
"""


def record_run(pad: Pad, event: HostEvent, command: Command, outcome: Outcome) -> None:
    """Record that a command has run."""
    facts, failed = pad.facts, outcome == "failed"
    facts.runs += 1
    facts.changing_runs += any(part.purpose not in LOOKING for part in command.parts)
    began = facts.starts.pop(event.tool_use_id[:64], None) if event.tool_use_id else None
    took_ms = event.duration_ms
    if took_ms is None and began is not None and event.at_ms >= began:
        took_ms = event.at_ms - began
    if took_ms is not None:
        seconds = took_ms / 1000
        rounded = round(seconds, 1)
        facts.run_seconds = [*facts.run_seconds, rounded][-64:]
        times = pad.durations.count(command.text, pad.step)
        times.most_seconds = max(times.most_seconds, rounded)
        times.least_seconds = min(seconds if times.count == 1 else times.least_seconds, rounded)
        times.is_work = times.is_work or (command.purpose in _WORK and command.is_simple)
        times.timeouts += "timed out" in (event.error or event.tool_output)[:600].lower()
    output = (event.error or "") + "\n" + event.tool_output if event.error else event.tool_output
    if failed and command.purpose == "commit" and commands.COMMITTED.search(event.tool_output):
        # The commit was made, and speaks of itself alone: the rest of the line failed.
        if _is_here(pad, event):
            _record_commit(pad, event, is_amended="--amend" in command.text)
        line, output = event.tool_input.get("command"), commands.COMMITTED.sub("", output)
        command = commands.beside_commit(command, str(line)) or command
    if command.purpose == "test":
        _record_tests(pad, event, command, output=output, failed=failed)
    if failed:
        facts.chain = []
        _open(pad, command, output)
        return
    for part in command.parts:
        if part.purpose == "revert" or CUES["moves"].match(part.text):
            facts.edit = facts.code_edit = EventPlace(event.at_ms, pad.step)
        if CUES["drops"].match(part.text):
            _drop_commits(pad)
        if part.purpose == "commit" and _is_here(pad, event):
            _record_commit(pad, event, is_amended="--amend" in part.text)
    if command.has("review"):
        facts.reviewed = True
    if command.has("revert"):
        words = set(CUES["path word"].findall(command.text))
        is_all = bool({".", "--hard"} & words) or "checkout ." in command.text
        for path, entry in list(pad.files):
            if entry.edits and (is_all or path in words or path.rsplit("/", 1)[-1] in words):
                record_backtrack(pad, path, entry.first_edit_step, what=command.text[:160])
                entry.standing = 0
    if command.purpose not in LOOKING and outcome == "ok":  # else it has mended nothing
        where = looks_elsewhere(str(event.tool_input.get("command", ""))[:QUOTE])
        where = "" if where in command.text else where  # a variable is part of the command
        if not where:
            pad.worked.count(command.text, pad.step)
        _close(pad, command, f"{redact(where).text} && {command.text}" if where else command.text)
        for part in command.parts:
            if part.purpose not in LOOKING and part.purpose != "edit":
                # A commit has another message each time, and is the same step; so has a push
                # another branch.
                is_named = commands.is_named_anew(part.text)
                _extend_chain(pad, part.head if is_named else part.text[:80])


# failures and what ended them


def _open(pad: Pad, command: Command, output: str) -> None:
    line = telling_line(output)
    if not line or is_harness(output) or commands.fails_by_nature(command.text):
        return
    if command.purpose in _WORK and not (is_absent_tool(line) and not has_run_tests(output)):
        return  # red tests and findings of linters are work, not trouble
    shown = quote(line, 240)
    print_ = fingerprint("Bash", command.head, shown)
    entry = pad.errors.count(print_, pad.step)
    entry.tool, entry.command, entry.line = "Bash", command.text, shown
    entry.is_environment = is_environment(line)
    if command.purpose not in LOOKING:  # nothing is run in the place of a look
        _add_open(pad, OpenFailure(print_, command.text, pad.step, [], [], command.is_simple))


def _add_open(pad: Pad, failure: OpenFailure) -> None:
    others = [each for each in pad.facts.open_failures if each.fingerprint != failure.fingerprint]
    pad.facts.open_failures = [*others, failure][-_MOST_OPEN:]


def _close(pad: Pad, command: Command, fix: str) -> None:
    """End the failures that a working command resolves; ``fix`` is the command as it was given."""
    still: list[OpenFailure] = []
    for each in pad.facts.open_failures:
        age = pad.step - each.step
        if age > _OPEN_STEPS:
            continue
        how = _resolution(each, command, age, is_elsewhere=fix != command.text)
        if how is None:
            if len(each.between) < _MOST_BETWEEN:
                each.between.append(command.text[:200])
            still.append(each)
        elif how != "again":
            _resolve(pad, each, how, fix=fix)
    pad.facts.open_failures = still


def _resolution(failure: OpenFailure, command: Command, age: int, is_elsewhere: bool) -> str | None:
    if command.text == failure.command:
        if failure.edits:
            return "edit"
        if is_elsewhere and failure.is_simple:
            return "command"  # the same program, found where it is
        # With several commands in between, or none, it cannot be told what helped.
        return "first" if len(failure.between) == 1 else "again"
    is_tried = age <= _FIX_STEPS and not failure.edits and failure.is_simple and command.is_simple
    return "command" if is_tried and commands.is_same_aim(failure.command, command.text) else None


def _resolve(pad: Pad, failure: OpenFailure, how: str, fix: str) -> None:
    if (entry := pad.errors.find(failure.fingerprint)) is not None:
        entry.how = how
        entry.resolved_step = pad.step
        entry.fix = quote(failure.between[0] if how == "first" else fix, 280)
        entry.files = failure.edits[:3] if how == "edit" else []


def record_missing_file(pad: Pad, path: str, line: str) -> None:
    """Record that a file was looked for where it is not."""
    print_ = fingerprint("Read", "", path)
    entry = pad.errors.count(print_, pad.step)
    entry.tool, entry.command, entry.line, entry.is_environment = "Read", path, line, True
    _add_open(pad, OpenFailure(print_, path, pad.step, [], [], is_simple=True, is_read=True))


def record_found_file(pad: Pad, path: str) -> None:
    """Resolve a missing file by its namesake that was read."""
    for each in pad.facts.open_failures[:]:
        is_other = each.is_read and path != each.command and pad.step - each.step <= _FIX_STEPS
        if is_other and stem_of(path) == stem_of(each.command):
            _resolve(pad, each, "path", fix=path)
            pad.facts.open_failures.remove(each)


def record_edit(pad: Pad, path: str) -> None:
    """Record a changed file: what works afterwards may work because of it."""
    for each in pad.facts.open_failures:
        if path not in each.edits and len(each.edits) < 6:
            each.edits.append(path)
    for _, entry in pad.tests:
        is_red = entry.red_step and not entry.green_step
        if is_red and path not in entry.files and len(entry.files) < 4:
            entry.files.append(path)
    _extend_chain(pad, f"edit {path}")


# tests


def _record_tests(
    pad: Pad, event: HostEvent, command: Command, *, output: str, failed: bool
) -> None:
    facts = pad.facts
    is_hidden = commands.hides_exit(str(event.tool_input.get("command", "")), "test")
    is_green = are_tests_green(output, failed, is_hidden=is_hidden)
    if is_green is None:
        return
    facts.test_runs += 1
    is_counted = facts.last_source_edit > facts.green_step
    facts.runs_so_far = facts.runs_so_far + 1 if is_counted else 0
    facts.last_test, facts.last_test_ok = pad.step, is_green
    tests = " && ".join(part.text for part in command.parts if part.purpose == "test")
    facts.test, facts.test_command = (
        EventPlace(event.at_ms, pad.step),
        quote(tests or command.text, 120),
    )
    facts.test_counts = count_tests(output, is_green)
    if is_green:
        if is_counted:
            facts.green_after = [*facts.green_after, facts.runs_so_far][-20:]
        facts.green_step, facts.runs_so_far = pad.step, 0
        for _, entry in pad.tests:
            if entry.red_step and not entry.green_step and entry.command == command.head:
                entry.green_step = pad.step
        return
    for test in failed_tests(ends_of(output)):
        entry = pad.tests.count(quote(test.name, 280), pad.step)
        if entry.count == 1:
            entry.red_step, entry.reason = pad.step, quote(test.reason, 240)
            # A test that was written to fail first tells nothing when it does.
            entry.is_own = bool(facts.first_test_edit)
            if test.file:
                # A test run may name a file without its folder.
                edited = pad.edited_files()
                is_whole = "/" in test.file
                entry.is_own = test.file in edited or (
                    not is_whole and any(each.endswith(f"/{test.file}") for each in edited)
                )
        entry.command, entry.file = command.head, quote(test.file, 160)
        entry.green_step = 0


# commits, what was taken back


def _drop_commits(pad: Pad, newest: int | None = None) -> None:
    """Note that the newest commits, or all, were replaced or taken back."""
    for _, entry in [each for each in pad.commits if each[1].at_ms][-(newest or 0) :]:
        entry.at_ms = 0


def _is_here(pad: Pad, event: HostEvent) -> bool:
    """Return False if a commit was made in a folder outside of the session's repository."""
    line = str(event.tool_input.get("command", ""))
    found = _COMMIT_AT.search(line)
    folder = folder_of(line[: found.start()], event.cwd) if found else ""
    if found and found[1]:
        folder = folder_of(f"cd {found[1]}", folder)
    root = pad.facts.root.rstrip("/")
    return not (folder and root) or f"{rooted(folder)}/".startswith(f"{rooted(root)}/")


def _record_commit(pad: Pad, event: HostEvent, is_amended: bool) -> None:
    facts = pad.facts
    facts.commit = EventPlace(event.at_ms, pad.step)
    if is_amended:
        _drop_commits(pad, newest=1)
    line = str(event.tool_input.get("command") or "")
    commit = read_commit(line, event.tool_output)
    if not commit.sha:
        return
    facts.branch = quote(commit.branch, 100)
    entry = pad.commits.count(commit.sha, pad.step)
    # The subject that git prints of a file or a merge may have been written by anyone.
    subject = commit.subject if _WORDED.search(line) else ""
    message = (commit.message or subject).replace("\\n", "\n")
    entry.message = quote(message.replace("\n", " ¶ "), 3 * QUOTE)
    entry.files = pad.edited_files(facts.commit_step)[:12]
    entry.at_ms = event.at_ms
    facts.commit_step = pad.step


def record_backtrack(pad: Pad, path: str, since: int, what: str) -> None:
    """Record that an edit was undone."""
    entry = pad.backtracks.count(path, pad.step)
    entry.quote = what
    entry.since_step = since
    if (failure := newest_failure(pad, since)) is not None:
        entry.command, entry.line = failure.command, failure.line
    elif pad.facts.last_test_ok is False and pad.facts.last_test >= since:
        red = max((each for _, each in pad.tests), key=lambda each: each.last_step, default=None)
        if red is not None:
            entry.command, entry.line = "the tests", red.reason


def newest_failure(pad: Pad, since: int) -> ErrorEntry | None:
    """Return the newest error since a step."""
    near = [each for _, each in pad.errors if each.last_step >= since]
    return max(near, key=lambda each: each.last_step, default=None)


# what is done in the same order


def _extend_chain(pad: Pad, what: str) -> None:
    if pad.facts.chain[-1:] == [what]:
        return
    chain = pad.facts.chain = [*pad.facts.chain, what][-_CHAIN:]
    for length in range(3, len(chain) + 1):
        steps = chain[-length:]
        runs = {each for each in steps if not each.startswith("edit ")}
        is_whole = len(runs) >= 2 and len(set(steps)) == length
        # A change stands at the beginning or is none of it: what comes after it is the next round.
        if is_whole and not any(each.startswith("edit ") for each in steps[1:]):
            pad.sequences.count(" → ".join(steps), pad.step).steps = steps
