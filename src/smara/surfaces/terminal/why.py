"""Define `smara why`: tell everything known about a place in the code.

What was decided and learned comes first, then the reasons that commits state, who changed it with
what, the sessions that edited it, the failures its tests met, what depends on it, and the tasks
that name it. Each line says where it comes from.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import click

from smara.browse.models import FileSession, TestFailure
from smara.codegraph.models import SymbolCard
from smara.commits.models import Commit, LineReason
from smara.core.extract import one_line
from smara.core.git import find_repository
from smara.core.log import redact_text
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.decisions.models import Decision
from smara.errors import InvalidInputError, NotFoundError, SmaraError
from smara.knowledge.models import TypedMemory
from smara.memory import Memory
from smara.shapes import commit_json, decision_json, line_reason_json, task_json
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.memories.show import memories_json
from smara.surfaces.cli.options import Invocation, Reply, common
from smara.surfaces.cli.render import mark, node_heading, print_tasks, styled, trust_of
from smara.tasks.models import Task
from smara.texts import call_place, memory_facts, place, reached_json

_COMMITS = 200
_WIDE_COMMIT = 30
"""A commit of more files says little about which of them belong together."""
_TOGETHER = 2
_FEW = 4
_MOST_REASONS = 5
_LINE = regex(r"(.+):(\d+)$")


@dataclass(slots=True)
class _CodePlace:
    """A place in the code and what is known about it."""

    path: str
    root: str
    line: int | None = None
    name: str = ""
    card: SymbolCard | None = None
    memories: list[TypedMemory] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    reasons: list[LineReason] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    sessions: list[FileSession] = field(default_factory=list)
    failures: list[TestFailure] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    note: str = ""
    folder_error: SmaraError | None = None
    """For a folder: names its files, for where nothing is known about the folder itself."""

    @property
    def label(self) -> str:
        return f"{self.path}:{self.line or self.name}" if self.line or self.name else self.path

    def is_about(self, reason: LineReason) -> bool:
        """Return True if a reason is about this place."""
        if not self.name:
            return True
        node = self.card and self.card.node
        own = range(node.first_line, node.last_line + 1) if node else range(0)
        return self.name.rpartition(".")[2] in reason.functions or any(
            line in own for line in reason.lines
        )

    @property
    def authors(self) -> list[tuple[str, int]]:
        return Counter(each.author for each in self.commits).most_common(_FEW)

    @property
    def together(self) -> list[tuple[str, int]]:
        """The files that most often changed in the same commits."""
        narrow = [each for each in self.commits if len(each.files) <= _WIDE_COMMIT]
        counts = Counter(path for each in narrow for path in each.files if path != self.path)
        there = ((path, n) for path, n in counts.most_common() if n >= _TOGETHER)
        found = (pair for pair in there if os.path.exists(os.path.join(self.root, pair[0])))
        return list(islice(found, _FEW))


@click.command("why")
@click.argument("target", metavar="PATH[:LINE]|NAME")
@common
def why_command(call: Invocation, target: str) -> Reply:
    """Show everything known about a file, a line or a name.

    PATH, PATH:LINE, PATH:NAME or the NAME of a function or class: what was
    decided and learned about it, the reasons that commits state, who changed it
    and what changed with it, the sessions that edited it, the failures that its
    tests met, what depends on it, and the tasks that name it.
    """
    with call.memory() as memory:
        found = _find(memory, target)
        shapes = memories_json(memory, found.memories)
        blocked = memory.tasks.blocked(found.tasks)
    if found.note:
        call.warnings.append(found.note)
    yield _json(found, shapes)
    _print_head(found)
    sections = [
        _print_memories(found, shapes),
        _print_decisions(found),
        _print_reasons(found),
        _print_changes(found),
        _print_sessions(found),
        _print_failures(found),
        _print_code(found),
        _print_tasks(found, blocked),
    ]
    if not any(sections):
        output.say("")
        output.sentence(
            "Nothing is known about it yet: no memory, decision, task or commit names it."
        )
    words = found.name or os.path.basename(found.path)
    output.say("", f"smara search {words!r} finds what was said about it.", dim=True)
    if not (found.memories or found.decisions):
        output.say(f'smara remember "…" --file {found.path} teaches the next agent.', dim=True)


def _find(memory: Memory, target: str) -> _CodePlace:
    """Collect what is known about a target.

    Raises:
        NotFoundError: If no file or name is meant.
    """
    found = _locate(memory, target)
    memories = _memories(memory, found)
    decided = {each.id: each for each in memory.decisions.list(path=found.path)}
    found.decisions = [decided[each.id] for each in memories if each.id in decided]
    found.memories = [each for each in memories if each.id not in decided]
    if found.folder_error is not None and not memories:
        raise found.folder_error
    if find_repository(os.getcwd()) is not None:
        with output.bar("Reading commits") as progress:
            memory.commits.update(progress=progress)
        found.commits = memory.commits.list(path=found.path, limit=_COMMITS)
        reasons = [each for each in memory.commits.why(found.path) if found.is_about(each)]
        if found.line is not None:
            # The line's own reason first, then what else is known of its file.
            reasons.sort(key=lambda each: found.line not in each.lines)
        found.reasons = reasons
    found.sessions = memory.browse.edits(found.path, _FEW + 1)
    tests = found.card.tests if found.card is not None else ()
    found.failures = memory.browse.test_failures(
        {found.path, *(each.node.path for each in tests)}, _FEW + 1
    )
    words = list(filter(None, (found.name, found.path, os.path.basename(found.path))))
    hits = memory.search_tasks(words[0], 20)
    found.tasks = [
        each.task
        for each in hits
        if any(_names(word, f"{each.task.title} {each.task.description or ''}") for word in words)
    ]
    return found


def _memories(memory: Memory, code: _CodePlace) -> list[TypedMemory]:
    """Return the memories about a place; those about another function of its file are not."""
    memories = {each.id: each for each in memory.memories.list(file=code.path, limit=100)}
    if code.card is None:
        return list(memories.values())
    near = {each.memory_id for each in memory.code_knowledge.about([code.card.node], limit=50)}
    for memory_id in sorted(near - set(memories), reverse=True):  # the newest first
        with suppress(NotFoundError):
            memories[memory_id] = memory.memories.get(memory_id)
    elsewhere = {
        each.memory_id
        for each in memory.code_knowledge.links()
        if code.name and each.path == code.path and each.symbol
    }
    return [each for each in memories.values() if each.id in near or each.id not in elsewhere]


def _locate(memory: Memory, target: str) -> _CodePlace:
    """Return the place that a target names, with its node if the code is indexed."""
    line = None
    path = target
    if not os.path.exists(target) and (match := _LINE.match(target)) and os.path.exists(match[1]):
        path, line = match[1], int(match[2])
    name = ""
    if not os.path.exists(path) and os.path.exists(target.partition(":")[0]):
        path, _, name = target.partition(":")
    is_file = os.path.exists(path)
    if line is not None:
        _require_line(path, line)
    note, card, queries = "", None, None
    folder_error: SmaraError | None = None
    if os.path.isdir(path):
        folder_error = InvalidInputError(f"{path!r} is a folder. Name a file in it.")
    with suppress(NotFoundError):  # not indexed
        queries = memory.code.asking()
    if not is_file and queries is None:
        raise NotFoundError(
            f"{target!r} is no file here, and names of functions are found in the index of the "
            "code. `smara code index` makes it."
        )
    if queries is not None:
        note = memory.code.catch_up() or ""
        root = queries.root
        query = target if not is_file else _inside(path, root)
        query += f":{line or name}" if is_file and (line or name) else ""
        try:
            card = queries.symbol(query)
        except SmaraError as error:
            if isinstance(error, NotFoundError) and not is_file:
                hint = f"`smara search {shlex.quote(target)}` looks in everything that was said."
                raise NotFoundError(f"{error} {hint}", **error.facts) from None
            if not is_file:
                raise
            if folder_error is not None and isinstance(error, InvalidInputError):
                folder_error = error
            note = "" if isinstance(error, NotFoundError | InvalidInputError) else str(error)
    if card is not None:
        name = card.node.qualname if card.node.kind != "file" else ""
        return _CodePlace(card.node.path, root, line, name, card, note=note)
    repository = find_repository(os.path.dirname(os.path.abspath(path)))
    root = repository.root if repository else os.getcwd()
    where = _inside(path, root)
    return _CodePlace(where, root, line, name, note=note, folder_error=folder_error)


def _require_line(path: str, line: int) -> None:
    """Raise NotFoundError if a file has no such line."""
    with suppress(OSError), open(path, "rb") as file:
        lines = sum(1 for _ in file)
        if not 1 <= line <= lines:
            raise NotFoundError(f"{path} has no line {line}: it has {output.count(lines, 'line')}.")


def _inside(path: str, root: str) -> str:
    """Return a path from the root; another drive of Windows has none."""
    whole = os.path.abspath(path)
    try:
        whole = os.path.relpath(whole, root)
    except ValueError:
        pass
    return whole.replace(os.sep, "/")


def _names(word: str, text: str) -> bool:
    """Return True if a text has a word of its own."""
    return re.search(rf"(?<![\w/.]){re.escape(word)}(?![\w/])", text) is not None


def _json(code: _CodePlace, memories: list[dict[str, Any]]) -> dict[str, Any]:
    card = code.card
    return {
        "path": code.path,
        "line": code.line,
        "name": code.name or None,
        "memories": memories,
        "decisions": [decision_json(each) for each in code.decisions],
        "reasons": [line_reason_json(each) for each in code.reasons],
        "changes": {
            "commits": len(code.commits),
            "authors": [{"name": name, "commits": n} for name, n in code.authors],
            "last": commit_json(code.commits[0]) if code.commits else None,
            "together": [{"path": path, "commits": n} for path, n in code.together],
        },
        "sessions": [
            {
                "threadId": each.thread_id,
                "message": f"{each.thread_id}:{each.seq}",
                "at": each.at,
                "edits": each.edits,
                "host": each.agent or None,
                "title": each.title or None,
            }
            for each in code.sessions
        ],
        "failures": [
            {
                "test": each.test,
                "error": each.error,
                "message": f"{each.thread_id}:{each.seq}",
                "at": each.at,
                "runs": each.runs,
            }
            for each in code.failures
        ],
        "code": card
        and {
            "firstLine": card.node.first_line,
            "lastLine": card.node.last_line,
            "signature": card.node.signature,
            "dependents": card.dependents,
            "usedBy": [reached_json(each) for each in card.callers],
            "tests": [reached_json(each) for each in card.tests],
        },
        "tasks": [task_json(each) for each in code.tasks],
    }


def _print_head(code: _CodePlace) -> None:
    card = code.card
    output.say(node_heading(card.node) if card is not None else code.label, bold=True)
    if card is not None and card.node.signature:
        output.sentence(" ".join(card.node.signature.split()))
    if code.line is not None:
        with suppress(OSError, IndexError), open(code.path, encoding="utf-8") as file:
            text = file.read().splitlines()[code.line - 1].strip()
            output.say(f"{code.line}  {redact_text(text)}", dim=True)


def _title(text: str) -> None:
    output.say("", text, bold=True)


def _print_memories(code: _CodePlace, shapes: Sequence[dict[str, Any]]) -> bool:
    if code.memories:
        _title("Know before you change it")
    for each, shape in zip(code.memories, shapes, strict=True):
        text = one_line(each.content, 400)
        lines = output.paragraph(text, f"    {each.short_id}  ", " " * (len(each.short_id) + 6))
        head = styled(each.short_id, bold=output.is_terminal())
        click.echo(f"  {mark(trust_of(each))}{lines[3:].replace(each.short_id, head, 1)}")
        facts = f"{memory_facts(shape, is_local=True)} · {output.when(each.evidence_at)}"
        indent = " " * (len(each.short_id) + 6)
        output.say(output.paragraph(facts, indent, indent), dim=True)
    return bool(code.memories)


def _print_decisions(code: _CodePlace) -> bool:
    if code.decisions:
        _title("Decided")
    for each in code.decisions:
        plan = "plan: " if each.is_plan else ""
        _print_item(each.short_id, output.when(each.decided_at), plan + each.rule)
        for text in each.quotations[:1]:
            if one_line(text) != one_line(each.rule):
                output.say(
                    output.paragraph(f"“{one_line(text, 300)}”", "      ", "      "), dim=True
                )
    return bool(code.decisions)


def _print_item(name: str, when: str, text: str) -> None:
    """Print an id and a time, and a text below or beside them."""
    click.echo(f"  {styled(name, bold=output.is_terminal())}  {when}")
    output.say(output.paragraph(one_line(text, 600), "      ", "      "))


def _print_reasons(code: _CodePlace) -> bool:
    if code.reasons:
        _title("Why it is so, from the history")
    for each in code.reasons[:_MOST_REASONS]:
        commit, undone = each.commit, each.undone_by
        head = styled(commit.short_id, bold=output.is_terminal())
        output_line = f"  {head}  {output.when(commit.at)}  "
        taken = len(f"  {commit.short_id}  {output.when(commit.at)}  ")
        rest = output.paragraph(output.printable(commit.subject), " " * taken, "      ")
        click.echo(output_line + rest[taken:])
        output.say(output.paragraph(one_line(commit.reason, 500), "      ", "      "))
        if undone is None:
            here = " This line is one of them." if code.line in each.lines else ""
            verb = "stands" if len(each.lines) == 1 else "stand"
            stand = f"{output.count(len(each.lines), 'line')} of it {verb} today.{here}"
            output.say(output.paragraph(stand, "      ", "      "), dim=True)
        else:
            text = (
                f"Undone {output.when(undone.at)} by {undone.short_id} “{undone.subject}”, which "
                "states no reason."
            )
            output.say(output.paragraph(text, "      ", "      "), fg="yellow")
    if len(code.reasons) > _MOST_REASONS:
        more = len(code.reasons) - _MOST_REASONS
        output.say(f"  and {more} more: smara commits why {code.path}", dim=True)
    return bool(code.reasons)


def _print_changes(code: _CodePlace) -> bool:
    if not code.commits:
        return False
    _title("Changed, as its file" if code.name else "Changed")
    last, total = code.commits[0], len(code.commits)
    many = f"{total:,}{'+' if total == _COMMITS else ''}"
    who = ", ".join(f"{name} ({n})" for name, n in code.authors)
    if len(code.authors) == 1:
        who = code.authors[0][0]
    _print_fact("by", f"{who}: {many} {'commit' if total == 1 else 'commits'}")
    _print_fact("last", f"{output.when(last.at)}, {last.short_id} “{last.subject}”")
    if code.together:
        _print_fact("with", ", ".join(f"{path} ({n} of {many})" for path, n in code.together))
    return True


def _print_sessions(code: _CodePlace) -> bool:
    """Print the sessions that edited the file, with the message of the last edit."""
    if code.sessions:
        _title("Edited in sessions, as its file" if code.name else "Edited in sessions")
    for each in code.sessions[:_FEW]:
        head = f"{output.short(each.thread_id)}:{each.seq}"
        many = f", {output.count(each.edits, 'edit')}" if each.edits > 1 else ""
        by = f" by {each.agent}" if each.agent else ""
        click.echo(f"  {styled(head, bold=output.is_terminal())}  {output.when(each.at)}{by}{many}")
        if each.title:
            output.say(output.paragraph(one_line(each.title, 160), "      ", "      "), dim=True)
    if len(code.sessions) > _FEW:
        output.say("  and earlier ones", dim=True)
    return bool(code.sessions)


def _print_failures(code: _CodePlace) -> bool:
    """Print the tests that failed, with the message that reports the last failure."""
    if code.failures:
        _title("Its tests failed")
    for each in code.failures[:_FEW]:
        head = f"{output.short(each.thread_id)}:{each.seq}"
        runs = f", {output.count(each.runs, 'run')}" if each.runs > 1 else ""
        click.echo(f"  {styled(head, bold=output.is_terminal())}  {output.when(each.at)}{runs}")
        output.say(output.paragraph(one_line(each.test, 200), "      ", "      "))
        if each.error:
            output.say(output.paragraph(one_line(each.error, 200), "      ", "      "), dim=True)
    if len(code.failures) > _FEW:
        output.say("  and earlier ones", dim=True)
    return bool(code.failures)


def _print_fact(name: str, text: str) -> None:
    output.say(output.paragraph(text, f"  {name:<8}", " " * 10))


def _print_code(code: _CodePlace) -> bool:
    card = code.card
    if card is None or not (card.callers or card.tests or card.dependents):
        return False
    _title("Depends on it")
    for title, reached in (("used by", card.callers), ("tests", card.tests)):
        places = [
            f"{place(each.node) if title == 'tests' else call_place(each)}"
            f"{f' {each.node.qualname}' if each.node.kind != 'file' else ''}"
            for each in reached
        ]
        lines = list(dict.fromkeys(places))
        more = [f"and {len(lines) - _FEW} more"] if len(lines) > _FEW else []
        for number, line in enumerate([*lines[:_FEW], *more]):
            _print_fact(title if number == 0 else "", line)
    _print_fact("in all", f"{card.dependents:,}; `smara code impact {code.label}` lists them")
    return True


def _print_tasks(code: _CodePlace, blocked: set[str]) -> bool:
    if code.tasks:
        _title("Tasks")
        print_tasks(code.tasks, blocked, indent="  ")
    return bool(code.tasks)
