"""Find what is known about one tool call.

Strong evidence only: the very file, command, error or search.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from smara.actions.commands import is_dictated, is_named_anew, is_of_the_moment
from smara.actions.failures import is_passing, lacking, read_outcome
from smara.actions.paths import project_path
from smara.behavior.habits import Habits, KnownFailure
from smara.commits.commits import Commits
from smara.context.moments.candidates import MemoryFinder
from smara.context.moments.draft import (
    InjectionLine,
    line_of_failure,
    line_of_memory,
    line_of_note,
    line_of_refusal,
)
from smara.core.startup.record import dataclass
from smara.core.tool_names import is_whole, tool_arguments, tool_name
from smara.core.tool_triggers import shown_files, starts

EDITING = ("Edit", "Write")
TOUCHING = ("Read", "Edit", "Write")
SEARCHING = ("Grep", "Glob")
LEAST_OCCURRENCES, LEAST_SESSIONS = 3, 2
"""A failure nobody has found a way around is told when it came so often, in so many sessions."""
LEAST_WANTED = 2
"""What is not there was wanted so often, by whichever command."""
_MOST_FILES, _MOST_NOTES = 4, 2
FAILED_BEFORE = "the same command failed here before"
LACKING = "what it needs was not there before"
NOT_FOUND = "the file was not found here before"
KNOWN_ERROR = "the same error came here before"
ABOUT_FILE = {
    True: "it is about the file that is changed",
    False: "it is about the file that was opened",
}
"""Why a memory about a file is told, by whether the file is changed."""
ABOUT_READING = "it is about the file that is read"
ANSWERING = "it answers what is searched for"
MOST_REFUSING = 400


class CallSubject(NamedTuple):
    """A tool call in our words."""

    tool: str
    files: tuple[str, ...] = ()
    command: str = ""
    pattern: str = ""
    is_whole: bool = True
    given: Mapping[str, Any] = MappingProxyType({})


def call_of(tool: str, arguments: Mapping[str, Any]) -> CallSubject:
    """Return the subject of a call."""
    name = tool_name(str(tool))
    given = tool_arguments(name, arguments)
    files = given.get("files") or [given.get("file_path")]
    paths = (
        tuple(path for path in files if isinstance(path, str) and path) if name in TOUCHING else ()
    )
    command, pattern = given.get("command"), given.get("pattern")
    return CallSubject(
        name,
        paths[:_MOST_FILES],
        command if name == "Bash" and isinstance(command, str) else "",
        pattern=pattern if name in SEARCHING and isinstance(pattern, str) else "",
        is_whole=is_whole(given),
        given=given if name in EDITING else MappingProxyType({}),
    )


def is_worth_saying(failure: KnownFailure) -> bool:
    """Return True if a failure is worth a warning.

    What a change of the code has mended is mended, and what worked in a later session is no trouble
    any more. A fix that holds a commit or a person's folder was one of that day.
    """
    if failure.worked_since or is_passing(failure.error):
        return False
    if failure.how in ("command", "first", "path"):
        fix = str(failure.fix or "")
        return bool(fix) and not is_of_the_moment(fix) and not is_dictated(fix, failure.error)
    if is_named_anew(failure.command):
        return False  # another commit fails for another reason
    return (
        failure.how is None
        and failure.occurrences >= LEAST_OCCURRENCES
        and failure.sessions >= LEAST_SESSIONS
    )


def wanted(failures: Sequence[KnownFailure]) -> list[KnownFailure]:
    """Return the failure to tell of those that lack one thing.

    A program that is not there may be found elsewhere the next time: without a way to it, it must
    have been wanted more than once. Which options it has, it says itself.
    """
    newest = max(failures, key=lambda each: each.last_seen_at, default=None)
    if newest is None or newest.worked_since:
        return []
    solved = [each for each in failures if is_worth_saying(each) and each.fix]
    is_program = len(lacking(newest.command, newest.error)) == 1
    least = LEAST_WANTED if is_program else 1
    times = sum(each.occurrences for each in failures if not each.worked_since)
    return solved[:1] or [newest][: times >= least]


@dataclass(frozen=True, eq=False)
class ToolCallLookup:
    """Finds what is to be said around tool calls."""

    finder: MemoryFinder
    habits: Habits
    commits: Callable[[], Commits]

    def before(self, call: CallSubject) -> list[InjectionLine]:
        """Return what is known about a call before it is made."""
        if call.command:
            refused = [
                line_of_refusal(tellable)
                for needs, tellable in self.finder.refusing(MOST_REFUSING)
                if starts(call.command, needs)
            ][:1]
            absent = wanted(self.habits.failures_lacking(call.command))
            if absent:
                return refused + [line_of_failure(each, LACKING, is_before=True) for each in absent]
            found = [each for each in self.habits.failures_of(call.command) if each.tool == "Bash"]
            failed = (
                line_of_failure(each, FAILED_BEFORE, is_before=True)
                for each in found
                if is_worth_saying(each)
            )
            return [*refused, *islice(failed, 1)]
        if call.tool in EDITING:
            return [
                *(line for path in call.files for line in self.about_file(path, is_edit=True)),
                *self._notes(call.files, call.given),
            ]
        if call.tool == "Read":
            costs = (
                []
                if not call.is_whole
                else [
                    line_of_memory(each, ABOUT_READING, is_about_file=True)
                    for path in call.files
                    for each in self.finder.before_read(path)
                ]
            )
            return [line for path in call.files for line in self._missing(path)][:1] or costs[:1]
        return []

    def after(self, call: CallSubject, output: str, error: str | None) -> list[InjectionLine]:
        """Return what is known about what a call has just brought up."""
        if not error and (not call.command or read_outcome(call.command, output) != "failed"):
            if call.pattern:
                return [
                    line_of_memory(each, ANSWERING) for each in self.finder.answering(call.pattern)
                ]
            files = call.files or shown_files(call.command)  # some agents open files by commands
            is_edit = call.tool in EDITING
            return [
                *(line for path in files for line in self.about_file(path, is_edit=is_edit)),
                *self._notes(files, call.given if is_edit else None),
            ]
        words = error or output
        for failure in self.habits.failures_like(call.command, words) if call.command else []:
            if is_worth_saying(failure):
                return [line_of_failure(failure, KNOWN_ERROR, is_before=False)]
        if call.tool == "Read":
            missing = [line for path in call.files for line in self._missing(path)]
            if missing:
                return missing[:1]
        return [
            line_of_memory(each, "its error stands in what failed")
            for each in self.finder.about_error(words)
        ][:1]

    def about_file(self, path: str, is_edit: bool) -> list[InjectionLine]:
        """Return what is known about a file."""
        return [
            line_of_memory(each, ABOUT_FILE[is_edit], is_about_file=True)
            for each in self.finder.about_file(path, is_edit)
        ]

    def _notes(self, files: Sequence[str], given: Mapping[str, Any] | None) -> list[InjectionLine]:
        """What commits say about the lines of files that are opened or changed."""
        found = (note for path in files for note in self.commits().notes_at(path, given))
        return [line_of_note(note, given is not None) for note in found][:_MOST_NOTES]

    def _missing(self, path: str) -> list[InjectionLine]:
        """A file that was looked for there before, and is not there."""
        root = self.finder.root() or os.getcwd()
        name = project_path(path, root)
        if name is None or os.path.exists(os.path.join(root, name)):
            return []
        found = [
            each
            for each in self.habits.failures_of(name)
            if each.tool == "Read" and each.how == "path"
        ]
        return [
            line_of_failure(each, NOT_FOUND, is_before=True)
            for each in found
            if is_worth_saying(each)
        ][:1]
