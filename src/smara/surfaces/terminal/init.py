"""Define `smara init`: set up a repository and read what is there.

One screen says what was found, what will be written and what will be read. After consent, each
stage shows its progress, keeps what it has done when it is interrupted, and goes on the next time.
The last screen tells what is known now.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import click

from smara.adapters.host import Here, TranscriptFile
from smara.adapters.host_specs import TRANSCRIPTS, host_named
from smara.adapters.hosts.precompute import finish, prepare
from smara.adapters.hosts.setup import (
    FoundHost,
    SetupChange,
    SetupJournal,
    apply,
    find_hosts,
    plan,
    program,
    refuse_tracked,
    targets_of,
)
from smara.adapters.importer import BulkImport, BulkReport, find
from smara.adapters.instructions import find_instructions
from smara.core.extract import one_line
from smara.core.git import find_repository, git_text
from smara.core.startup.record import dataclass, field
from smara.environment import setup_folder, spool_folder
from smara.errors import InvalidInputError, SmaraError
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.import_files import imported_line
from smara.surfaces.cli.options import Invocation, Reply, common
from smara.texts import few

HISTORY_SECONDS, DECISION_SECONDS, VECTOR_SECONDS = 60.0, 60.0, 30.0
_BYTES_A_SECOND, _COMMITS_A_SECOND, _FILES_A_SECOND = 1_000_000, 800, 120
"""Rough speeds on a slow machine, for the estimate before consent."""
_WIDE_COMMIT, _TOGETHER = 20, 3


@dataclass(slots=True)
class _Survey:
    """What is there before anything is written or read."""

    root: str
    is_repository: bool
    hosts: list[FoundHost]
    sessions: list[TranscriptFile] = field(default_factory=list)
    instructions: int = 0
    commits: int = 0
    languages: list[tuple[str, int]] = field(default_factory=list)
    changes: dict[str, list[SetupChange]] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)

    @property
    def session_bytes(self) -> int:
        return sum(os.path.getsize(path) for path in {each.path for each in self.sessions})

    @property
    def files(self) -> int:
        return sum(count for _, count in self.languages)


@click.command("init")
@click.option(
    "--yes",
    is_flag=True,
    help="Set up all agents, read what is there, and do not ask.",
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False),
    help="Outside git: the folder to remember, with all below it.",
)
@click.option(
    "--keep",
    type=click.Choice(["text", "vectors"]),
    help="What is kept of this project's conversations from now on.",
)
@click.option("--diff", "has_diff", is_flag=True, help="Show what would change in each file.")
@click.option("--no-read", is_flag=True, help="Set up only; read sessions, history and code later.")
@common
def init_command(
    call: Invocation, yes: bool, folder: str | None, keep: Any, has_diff: bool, no_read: bool
) -> Reply:
    """Set up this repository: agents, past sessions, history and code.

    One screen first shows what was found, which files would be written and
    what would be read. Ctrl-C stops reading; what was read stays, and the next
    `smara init` goes on. Outside git, name the folder that is meant. With
    `--keep vectors` the texts of conversations stay in the agents' transcripts,
    and nothing is learned from them.
    """
    os.chdir(folder or ".")
    may_ask = not yes and not call.as_json and sys.stdin.isatty()
    here = find_repository(os.getcwd())
    root, journal = here.root if here else os.getcwd(), SetupJournal(setup_folder())
    with call.memory() as memory:
        place = memory.projects.at(os.getcwd(), memory.settings.project)
        if place is None and (
            folder or (may_ask and click.confirm(f"No git repository here. Remember {root} alone?"))
        ):
            place = memory.projects.add_folder(root)
    if place is None and yes:
        raise InvalidInputError(
            f"{root} is in no git repository, so nothing was set up or imported. Go to a "
            "repository, or name the folder that you mean: smara init --yes --folder "
            f"{shlex.quote(root)}"
        )
    if keep is not None:
        with call.memory() as memory:
            memory.transcripts.keep(keep)  # counts from the next opening on
    with call.memory() as memory:
        status = memory.status()
        survey = _look(memory, root, journal, is_here=place is not None)
    if not call.as_json:
        _print_survey(survey, status, has_diff)
    chosen = (
        _ask(survey, has_diff)
        if may_ask and place is not None
        else list(survey.changes)
        if yes
        else None
    )
    is_reading = not no_read and place is not None and chosen is not None
    done = [
        agent
        for agent, changes in survey.changes.items()
        if agent in (chosen or ()) and apply(changes, journal) > 0
    ]
    stages = _Stages(call)
    if is_reading:
        stages.run(survey)
    elif not may_ask and not no_read and survey.commits:
        stages.read_history()  # it changes no file and asks no agent
    _write_briefs(call, survey, done)
    with call.memory() as memory:
        gains = _known(memory)
    yield {
        **status,
        "hosts": [
            {
                "agent": host.agent,
                "name": host.name,
                "program": host.program,
                "setUp": ["project"] if host.agent in done else list(host.set_up),
                "hasPlugin": host.has_plugin,
            }
            for host in survey.hosts
        ],
        "sessions": {
            "found": len(survey.sessions),
            "stored": sum(each.stored for each in stages.imported.reports),
            "learned": stages.imported.learned.memories,
        },
        "commits": stages.commits,
        "files": stages.files,
        "isInterrupted": stages.is_interrupted,
        "known": gains,
    }
    _print_end(call, survey, status, done, stages, gains, is_here=place is not None)


def _look(memory: Memory, root: str, journal: SetupJournal, is_here: bool) -> _Survey:
    """Find agents, sessions, instruction files, history and languages."""
    repository = find_repository(root)
    survey = _Survey(root, repository is not None, find_hosts(root, journal))
    if not is_here:
        return survey
    survey.sessions = find(tuple(TRANSCRIPTS), Here(os.getcwd()))[0]
    survey.instructions = len(find_instructions(root))
    if repository is not None:
        survey.commits = int(git_text(root, "rev-list", "--count", "HEAD") or 0)
        survey.languages = memory.code.count_languages(
            (git_text(root, "ls-files") or "").splitlines()
        )
    for host in survey.hosts:
        if host.has_plugin or (host.set_up and "project" not in host.set_up):
            continue
        try:
            changes = plan(targets_of(host.agent, "project", root, program=program()), journal)
            refuse_tracked(changes, root, host.agent)
            if needed := [each for each in changes if each.is_needed]:
                survey.changes[host.agent] = needed
        except SmaraError as error:
            survey.refusals.append(f"{host.name} cannot be set up: {error}")
    return survey


def _duration(seconds: float) -> str:
    """Return an estimate in round numbers.

    >>> _duration(0.2), _duration(14), _duration(130)
    ('a moment', 'about 20 s', 'about 3 min')
    """
    if seconds < 2:
        return "a moment"
    if seconds < 60:
        return f"about {-(-int(seconds + 0.999) // 10) * 10} s"
    return f"about {-(-int(seconds) // 60)} min"


def _print_survey(survey: _Survey, status: dict[str, Any], has_diff: bool) -> None:
    """Print what was found, what would be written and what would be read."""
    _row("Folder", survey.root)
    _row("Project", status["project"])
    _row("Store", status["store"]["path"])
    if status["messages"]:
        messages, threads = (output.count(status[f"{n}s"], n) for n in ("message", "thread"))
        _row("Stored", f"{messages} in {threads}")
    if status["keep"]["mode"] == "vectors":
        _row("Keeps", "vectors; the text of conversations stays in the agents' transcripts.")
        _row("", "Nothing is learned from them; what no transcript has is not kept.")
        _row("", f"The key of its terms is {status['keep']['key']}")
    names = {"project": "in this repository", "global": "for all repositories"}
    for host in survey.hosts:
        places = [names[reach] for reach in host.set_up] + ["as a plug-in"] * host.has_plugin
        _row("Found", host.name + (f", set up {' and '.join(places)}" if places else ""))
    found = [
        (len(survey.sessions), "past session", None),
        (survey.commits, "commit", None),
        (survey.instructions, "instruction file", None),
    ]
    texts = [output.count(number, noun, many) for number, noun, many in found if number]
    if texts:
        whose = "of this repository" if survey.is_repository else f"of {survey.root}"
        _row("Found", f"{', '.join(texts)} {whose}")
    if survey.languages:
        _row("Found", few([f"{name} ({output.count(n, 'file')})" for name, n in survey.languages]))
    for agent, changes in survey.changes.items():
        for change in changes:
            kind = "new" if change.before is None else "changed"
            where = os.path.relpath(change.path, survey.root)
            _row("Writes", f"{where} ({kind}, for {host_named(agent).title})")
            if has_diff:
                output.say(change.diff())
    reads = [
        (f"{output.count(len(survey.sessions), 'session')} ({output.size(survey.session_bytes)})",
         survey.session_bytes / _BYTES_A_SECOND, bool(survey.sessions)),
        ("the history", survey.commits / _COMMITS_A_SECOND, bool(survey.commits)),
        ("the code", survey.files / _FILES_A_SECOND, bool(survey.files)),
    ]  # fmt: skip
    for what, seconds, is_there in reads:
        if is_there:
            _row("Reads", f"{what}: {_duration(seconds)}")
    output.warn(survey.refusals)


def _row(name: str, text: str) -> None:
    output.sentence(f"{name:<9}{text}", others=" " * 9)


def _ask(survey: _Survey, has_diff: bool) -> list[str] | None:
    """Ask what to do; return the agents to set up, or ``None`` to leave everything."""
    output.say()
    agents = list(survey.changes)
    what = "Set up and read all of this" if agents else "Read all of this"
    while True:
        answer = click.prompt(
            f"{what}? (y, n, d for the diffs, c to choose)",
            default="y",
            type=click.Choice(["y", "yes", "n", "no", "d", "c"], case_sensitive=False),
            show_choices=False,
        )
        if answer == "d":
            for changes in survey.changes.values():
                output.say(*(each.diff() for each in changes))
        elif answer == "c":
            return [
                agent
                for agent in agents
                if click.confirm(f"Set up {host_named(agent).title}?", default=True)
            ]
        else:
            return agents if answer.startswith("y") else None


class _Stages:
    """The reading, stage by stage; an interrupt ends it and keeps what was read."""

    def __init__(self, call: Invocation) -> None:
        self._call = call
        self.imported = BulkReport()
        self.commits = 0
        self.files = 0
        self.is_interrupted = False

    def run(self, survey: _Survey) -> None:
        """Read sessions, history, code, decisions and vectors."""
        stages: list[tuple[bool, Callable[[], None]]] = [
            (bool(survey.sessions), lambda: self._read_sessions(survey)),
            (survey.is_repository, self.read_history),
            (bool(survey.files), self._read_code),
            (bool(survey.sessions), self._read_decisions),
            (True, self._make_vectors),
        ]
        for is_wanted, stage in stages:
            if not is_wanted:
                continue
            try:
                stage()
            except SmaraError as error:
                output.warn([f"Not everything was read: {error}"])
            except KeyboardInterrupt:
                self.is_interrupted = True
                return

    def _read_sessions(self, survey: _Survey) -> None:
        with self._call.memory(models_enabled=False) as memory:
            self.imported = BulkImport(memory).run(survey.sessions, output.bar)

    def read_history(self) -> None:
        """Read the commits that are new."""
        with self._call.memory() as memory, output.bar("Reading commits") as progress:
            self.commits = memory.commits.keep_up(HISTORY_SECONDS, progress).added

    def _read_code(self) -> None:
        with self._call.memory() as memory, output.bar("Indexing code") as progress:
            self.files = memory.code.index(progress=progress).files

    def _read_decisions(self) -> None:
        until = time.monotonic() + DECISION_SECONDS
        with self._call.memory(models_enabled=False) as memory, output.bar("Decisions") as progress:
            memory.decisions.update(has_time=lambda: time.monotonic() < until, progress=progress)

    def _make_vectors(self) -> None:
        with self._call.memory() as memory, output.bar("Vectors") as progress:
            if memory.settings.keep == "text":
                memory.embeddings.embed_pending(
                    deadline_seconds=VECTOR_SECONDS,
                    tell=lambda done: (
                        progress(done.embedded, done.embedded + done.waiting)
                        if progress is not None
                        else None
                    ),
                )


def _write_briefs(call: Invocation, survey: _Survey, done: Sequence[str]) -> None:
    """Write what the first session of each agent is told."""
    agents = [host.agent for host in survey.hosts if host.is_set_up or host.agent in done]
    if not agents:
        return
    with call.memory() as memory:
        draft = prepare(memory, spool_folder(), survey.root, agents=agents)
    if draft is not None:
        finish(spool_folder(), draft)


def _known(memory: Memory) -> dict[str, Any]:
    """Return what is known now that a person may not have known."""
    failures = [each for each in memory.behavior.failures(5) if each.occurrences > 1]
    decisions = list(memory.decisions.list(limit=100))
    pairs: Counter[tuple[str, str]] = Counter()
    for commit in memory.commits.list(limit=500):
        if 2 <= len(commit.files) <= _WIDE_COMMIT:
            there = sorted(each for each in commit.files if os.path.exists(each))
            pairs.update(combinations(there, 2))
    together = [(*pair, count) for pair, count in pairs.most_common(1) if count >= _TOGETHER]
    review = list(memory.memories.to_review(limit=3))
    return {
        "failure": None
        if not failures
        else {
            "command": failures[0].command,
            "error": failures[0].error,
            "occurrences": failures[0].occurrences,
            "sessions": failures[0].sessions,
            "fix": failures[0].fix if failures[0].how else None,
        },
        "decisions": [{"id": each.short_id, "rule": each.rule} for each in decisions],
        "together": [{"files": [a, b], "commits": n} for a, b, n in together],
        "toReview": [{"id": each.short_id, "content": each.content} for each in review],
    }


def _print_end(
    call: Invocation,
    survey: _Survey,
    status: dict[str, Any],
    done: Sequence[str],
    stages: _Stages,
    gains: dict[str, Any],
    is_here: bool,
) -> None:
    """Print what was done, what is known now, and one thing to try."""
    output.say()
    for host in survey.hosts:
        if host.agent in done:
            _row("Set up", f"{host.name}; undo it with `smara setup {host.agent} --remove`")
            setup = host_named(host.agent).setup
            if setup is not None and "project" in setup.advice:
                _row("", setup.advice["project"])
    if stages.imported.reports:
        output.sentence(imported_line(stages.imported))
    if stages.commits:
        output.say(f"Read {output.count(stages.commits, 'commit')} of this repository.")
    if stages.files:
        output.say(f"Indexed {output.count(stages.files, 'file')}.")
    if stages.is_interrupted:
        output.say("Stopped. What was read stays; `smara init` goes on with the rest.")
    _print_known(gains)
    path = gains["together"][0]["files"][0] if gains["together"] else ""
    waiting = [each.agent for each in survey.hosts if not each.is_set_up and each.agent not in done]
    texts = status["keep"]
    steps = [
        *([("smara review", "review what was learned")] if gains["toReview"] else []),
        *([(f"smara why {path}", "everything known about a file")] if path else []),
        *((f"smara setup {agent}", "let it use and record memories") for agent in waiting),
        *(
            [("smara import", "import past sessions")]
            if survey.sessions and not stages.imported.reports
            else []
        ),
        *(
            [("smara erase --transcribed", "take stored texts out")]
            if texts["mode"] == "vectors" and texts["withText"]
            else []
        ),
        ("smara search 'words'", "search everything"),
    ]
    if not is_here:
        steps = [(f"smara init --folder {shlex.quote(survey.root)}", "remember this folder")]
    width = max(len(command) for command, _ in steps)
    output.say()
    for position, (command, purpose) in enumerate(steps):
        output.say(f"{'Next:' if position == 0 else '     '}  {command:<{width}}  {purpose}")


def _print_known(gains: dict[str, Any]) -> None:
    """Print the most repeated failure, decisions, files that belong together, what to review."""
    failure, decisions, together = gains["failure"], gains["decisions"], gains["together"]
    rows = []
    if failure is not None:
        fix = f"; what helped: {failure['fix']}" if failure["fix"] else ""
        rows.append(
            (
                "Fails most",
                f"`{one_line(failure['command'], 60)}`, {failure['occurrences']:,} times in "
                f"{output.count(failure['sessions'], 'session')}: "
                f"{one_line(failure['error'], 120)}{one_line(fix, 120)}",
            )
        )
    if decisions:
        rule = one_line(decisions[0]["rule"], 160)
        rows.append(("Decided", f"{output.count(len(decisions), 'decision')}; the newest: {rule}"))
    for each in together:
        files = " and ".join(each["files"])
        rows.append(("Together", f"{files} changed in {each['commits']:,} of the same commits"))
    for position, each in enumerate(gains["toReview"]):
        text = f"{each['id']}  {one_line(each['content'], 160)}"
        rows.append(("To review" if position == 0 else "", text))
    if rows:
        output.say("", "Now known", bold=True)
    for name, text in rows:
        output.say(output.paragraph(text, f"  {name:<12}", " " * 14))
