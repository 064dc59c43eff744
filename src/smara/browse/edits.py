"""Find the sessions that changed a file or saw its tests fail.

Tool calls and their results are in the search index: the newest messages that name the file are
read. A call counts that edits the file and did not fail; a failure counts that the report of a
test run names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from smara.actions.commands import is_test_run
from smara.actions.paths import root_of
from smara.actions.reports import failed_tests
from smara.actions.tool_calls import actions_of
from smara.browse.models import FileSession, TestFailure
from smara.core.events import HostEvent
from smara.core.text import analyze
from smara.core.tool_names import tool_arguments, tool_name
from smara.database.database import Session
from smara.database.fulltext import Within, no_of
from smara.database.projects import ProjectContext
from smara.messages.models import Message, Part
from smara.messages.store import MessageStore
from smara.messages.threads import Threads

_MOST_MESSAGES, _MOST_RESULTS, _MOST_PATHS = 400, 200, 20
_ANSWERED_WITHIN = 40
"""So many messages later the result of a call has come; agents call several tools at once."""


def editing_sessions(
    project: ProjectContext, threads: Threads, path: str, limit: int
) -> list[FileSession]:
    """Return the sessions that changed a file, the last change first.

    ``path`` is relative to the repository, with slashes.
    """
    store = MessageStore(project.database, project.scope)
    found: dict[str, FileSession] = {}
    with project.database.read() as session:
        messages = _naming(store, session, path, ("assistant",), _MOST_MESSAGES)
        for message in messages:
            calls = [part for part in message.parts if part.type == "tool_call"]
            before = found.get(message.thread_id)
            if not calls or (before is None and len(found) == limit):
                continue
            thread = threads.find(message.thread_id)
            cwd = str(thread.metadata.get("cwd") or "") if thread is not None else ""
            calls = [part for part in calls if _is_edit(part, path, cwd)]
            if calls and (done := _succeeded(store, session, message, calls)):
                newest = before or FileSession(
                    message.thread_id,
                    message.seq,
                    message.created_at,
                    agent=str(thread.metadata.get("host") or "") if thread is not None else "",
                    title=(thread.title or "") if thread is not None else "",
                )
                found[message.thread_id] = replace(newest, edits=newest.edits + done)
    return list(found.values())


def _naming(
    store: MessageStore, session: Session, path: str, roles: tuple[str, ...], limit: int
) -> list[Message]:
    """Return the messages that have the name of a file in them, the newest first."""
    name = analyze(path.rpartition("/")[2])
    terms = [*name.prose.split(), *name.code.split()]
    within = Within(store.scope.project_no, roles=roles)
    rows = store.database.fulltext.match(session, terms, within, limit) if terms else []
    messages = store.by_numbers(session, sorted({no_of(row) for row in rows}))
    newest = sorted(messages, key=lambda no: (messages[no].created_at, no), reverse=True)
    return [messages[no] for no in newest]


def failed_in_sessions(
    project: ProjectContext, paths: Collection[str], limit: int
) -> list[TestFailure]:
    """Return the tests that failed in sessions, the last failure first."""
    store = MessageStore(project.database, project.scope)
    found: dict[str, TestFailure] = {}
    with project.database.read() as session:
        messages = {
            message.id: message
            for path in sorted(paths)[:_MOST_PATHS]
            for message in _naming(store, session, path, ("tool", "user"), _MOST_RESULTS)
        }
        for message in sorted(messages.values(), key=lambda each: -each.created_at):
            for part in message.parts:
                failed = {
                    each.name: each.reason
                    for each in (failed_tests(part.text) if part.type == "tool_result" else ())
                    if each.file in paths
                }
                if not failed or not _is_test_result(store, session, message, part):
                    continue
                for name, error in failed.items():
                    newest = found.get(name) or TestFailure(
                        name, error, message.thread_id, message.seq, message.created_at, runs=0
                    )
                    found[name] = replace(newest, runs=newest.runs + 1)
    return list(found.values())[:limit]


def _is_test_result(store: MessageStore, session: Session, message: Message, result: Part) -> bool:
    """Return True if a result is that of a command that runs tests."""
    thread_no = store.thread_no(session, message.thread_id) or 0
    first = message.seq - _ANSWERED_WITHIN
    before = store.between(session, thread_no, first, message.seq + 1, _ANSWERED_WITHIN)
    for part in (part for each in before for part in each.parts if part.type == "tool_call"):
        if part.call_id == result.call_id and isinstance(part.arguments, Mapping):
            given = tool_arguments(tool_name(part.name or ""), part.arguments)
            return is_test_run(str(given.get("command", "")))
    return False


def _is_edit(part: Part, path: str, cwd: str) -> bool:
    """Return True if a call edits the file; ``cwd`` is the folder of its session."""
    if not isinstance(part.arguments, Mapping):
        return False
    tool = tool_name(part.name or "")
    given = tool_arguments(tool, part.arguments)
    event = HostEvent("", "tool_post", "", at_ms=0, cwd=cwd, tool=tool, tool_input=given)
    actions = actions_of(event, root_of(cwd) if cwd else "")
    return any(each.verb == "edit" and each.subject == path for each in actions)


def _succeeded(
    store: MessageStore, session: Session, message: Message, calls: Sequence[Part]
) -> int:
    """Count the calls whose result is no error."""
    thread_no = store.thread_no(session, message.thread_id)
    if thread_no is None:
        return 0
    after = store.between(
        session, thread_no, message.seq - 1, message.seq + _ANSWERED_WITHIN, _ANSWERED_WITHIN
    )
    results = {
        part.call_id: part for each in after for part in each.parts if part.type == "tool_result"
    }
    return sum(part.call_id in results and not results[part.call_id].is_error for part in calls)
