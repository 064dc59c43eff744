"""Define `smara init`: set up a repository and read what is there.

One screen says what was found, what will be written and what will be read. After consent the
reading shows its stages, or goes on in the background; see :mod:`.stages`. The last screen tells
what is known now.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
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
from smara.adapters.importer import find
from smara.adapters.instructions import InstructionReport, import_instructions
from smara.core.extract import one_line
from smara.core.files import read_regular
from smara.core.git import find_repository, git_text
from smara.core.startup.record import dataclass, field
from smara.core.startup.regex import re, regex
from smara.environment import setup_folder, spool_folder
from smara.errors import InvalidInputError, SmaraError
from smara.memory import Memory
from smara.surfaces.cli import output
from smara.surfaces.cli.commands.import_files import imported_line
from smara.surfaces.cli.options import Invocation, Reply, common
from smara.surfaces.terminal.stages import BACKGROUND, InitRun, start_in_background
from smara.texts import few

_BYTES_A_SECOND, _COMMITS_A_SECOND, _FILES_A_SECOND = 1_000_000, 800, 120
"""Rough speeds on a slow machine, for the estimate before consent."""
_COMMITS, _WIDE_COMMIT, _TOGETHER = 500, 20, 3
_HEAD_BYTES = 1_000
_GENERATED = regex(rb"@generated|do not (?:edit|modify)|(?:auto-?|code |file )generated", re.I)
_NAME_WORD = regex(r"[a-z0-9]+")


@dataclass(slots=True)
class _Survey:
    """What is there before anything is written or read."""

    root: str
    is_repository: bool
    hosts: list[FoundHost]
    transcripts: list[TranscriptFile] = field(default_factory=list)
    instructions: InstructionReport | None = None
    commits: int = 0
    languages: list[tuple[str, int]] = field(default_factory=list)
    changes: dict[str, list[SetupChange]] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)

    @property
    def sessions(self) -> int:
        return sum(not each.is_subagent for each in self.transcripts)

    @property
    def transcript_bytes(self) -> int:
        return sum(os.path.getsize(path) for path in {each.path for each in self.transcripts})

    @property
    def files(self) -> int:
        return sum(count for _, count in self.languages)

    @property
    def statements(self) -> int:
        """The statements of instruction files that are not imported yet."""
        counts = self.instructions.counts if self.instructions is not None else {}
        return counts.get("added", 0) + counts.get("changed", 0)


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
@click.option(
    "--background", is_flag=True, help="Read in the background; `smara status` says how far it is."
)
@click.option(
    "--instructions",
    "has_instructions",
    is_flag=True,
    help="Import AGENTS.md and other instruction files, too, for review.",
)
@click.option("--reading", "is_reading_only", is_flag=True, hidden=True)
@common
def init_command(
    call: Invocation,
    yes: bool,
    folder: str | None,
    keep: Any,
    has_diff: bool,
    no_read: bool,
    background: bool,
    has_instructions: bool,
    is_reading_only: bool,
) -> Reply:
    """Set up this repository: agents, past sessions, history and code.

    One screen first shows what was found, which files would be written and
    what would be read. Ctrl-C stops reading; what was read stays, and the next
    `smara init` goes on. With `--background` the prompt is back at once.
    Outside git, name the folder that is meant. With `--keep vectors` the texts
    of conversations stay in the agents' transcripts, and nothing is learned
    from them.
    """
    os.chdir(folder or ".")
    if is_reading_only:  # the process that `--background` started
        yield _read_in_background(call)
        return
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
    chosen = list(survey.changes) if yes else None
    if may_ask and place is not None:
        chosen, is_later = _ask(survey, not no_read)
        background = background or is_later
    is_reading = not no_read and place is not None and chosen is not None
    done = [
        agent
        for agent, changes in survey.changes.items()
        if agent in (chosen or ()) and apply(changes, journal) > 0
    ]
    stages = InitRun(call)
    imported = None
    is_offered = bool(survey.statements) and chosen is not None
    if is_offered and (has_instructions or (may_ask and _ask_for_instructions(survey))):
        with call.memory() as memory:
            imported = import_instructions(memory, survey.root)
    if is_reading and background:
        start_in_background(call, os.getcwd())
    elif is_reading:
        stages.run(survey.transcripts, survey.is_repository, bool(survey.files))
    elif not may_ask and not no_read and survey.commits:
        stages.read_history()  # it changes no file and asks no agent
    _write_briefs(call, survey, done)
    with call.memory() as memory:
        gains = _gains(memory)
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
            "found": survey.sessions,
            "stored": sum(each.stored for each in stages.imported.reports),
            "learned": stages.imported.learned.memories,
        },
        "commits": stages.commits,
        "files": stages.files,
        "isInterrupted": stages.is_interrupted,
        "isInBackground": is_reading and background,
        "instructions": None
        if survey.instructions is None
        else {"found": survey.statements, "isImported": imported is not None},
        "known": gains,
    }
    if is_reading and background:
        stages.busy = "just started"
    end = _End(survey, status, done, stages, gains, imported)
    _print_end(end, is_here=place is not None)


def _look(memory: Memory, root: str, journal: SetupJournal, is_here: bool) -> _Survey:
    """Find agents, sessions, instruction files, history and languages."""
    repository = find_repository(root)
    survey = _Survey(root, repository is not None, find_hosts(root, journal))
    if not is_here:
        return survey
    survey.transcripts = find(tuple(TRANSCRIPTS), Here(os.getcwd()))[0]
    with suppress(SmaraError):
        survey.instructions = import_instructions(memory, root, is_dry_run=True)
    if repository is not None:
        # Merges are not read: they say what their commits say.
        survey.commits = int(git_text(root, "rev-list", "--no-merges", "--count", "HEAD") or 0)
        survey.languages = memory.code.count_languages(
            (git_text(root, "ls-files") or "").splitlines()
        )
    for host in survey.hosts:
        if host_named(host.agent).hooks is None:  # its servers are for all repositories
            continue
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
        (survey.sessions, "past session", None),
        (survey.commits, "commit", None),
    ]
    texts = [output.count(number, noun, many) for number, noun, many in found if number]
    if texts:
        whose = "of this repository" if survey.is_repository else f"of {survey.root}"
        _row("Found", f"{', '.join(texts)} {whose}")
    if survey.instructions is not None and survey.instructions.files:
        files = few([each.path for each in survey.instructions.files])
        new = output.count(survey.statements, "new statement") if survey.statements else "imported"
        _row("Found", f"{files} ({new})")
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
        (
            f"{output.count(len(survey.transcripts), 'transcript')}"
            f" ({output.size(survey.transcript_bytes)})",
            survey.transcript_bytes / _BYTES_A_SECOND,
            bool(survey.transcripts),
        ),
        ("the history", survey.commits / _COMMITS_A_SECOND, bool(survey.commits)),
        ("the code", survey.files / _FILES_A_SECOND, bool(survey.files)),
    ]
    for what, seconds, is_there in reads:
        if is_there:
            _row("Reads", f"{what}: {_duration(seconds)}")
    output.warn(survey.refusals)


def _row(name: str, text: str) -> None:
    output.sentence(f"{name:<9}{text}", others=" " * 9)


def _ask(survey: _Survey, may_read: bool) -> tuple[list[str] | None, bool]:
    """Ask what to do.

    Returns:
        The agents to set up, or ``None`` to leave everything; and True to read in the background.
    """
    output.say()
    agents = list(survey.changes)
    what = "Set up and read all of this" if agents else "Read all of this"
    later = ", b background" if may_read else ""
    while True:
        answer = click.prompt(
            f"{what}? (y, n, d diffs, c choose{later})",
            default="y",
            type=click.Choice(["y", "yes", "n", "no", "d", "c", "b"], case_sensitive=False),
            show_choices=False,
        ).lower()
        if answer == "d":
            for changes in survey.changes.values():
                output.say(*(each.diff() for each in changes))
        elif answer == "c":
            chosen = [
                agent
                for agent in agents
                if click.confirm(f"Set up {host_named(agent).title}?", default=True)
            ]
            is_later = may_read and click.confirm("Read in the background?", default=False)
            return chosen, is_later
        else:
            return agents if answer in ("y", "yes", "b") else None, answer == "b"


def _ask_for_instructions(survey: _Survey) -> bool:
    """Ask whether the statements of instruction files become memories to review."""
    files = list(survey.instructions.files) if survey.instructions is not None else []
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    statements = output.count(survey.statements, "statement")
    return click.confirm(
        f"Import {statements} of {files[0].path}{more}, for review?", default=False
    )


def _read_in_background(call: Invocation) -> dict[str, Any]:
    """Read everything, in the process that the person does not wait for."""
    if hasattr(os, "nice"):
        os.nice(10)
    with call.memory() as memory:
        here = find_repository(os.getcwd())
        journal = SetupJournal(setup_folder())
        survey = _look(memory, here.root if here else os.getcwd(), journal, is_here=True)
    stages = InitRun(call, BACKGROUND)
    stages.run(survey.transcripts, survey.is_repository, bool(survey.files))
    _write_briefs(call, survey, [])
    return {"commits": stages.commits, "files": stages.files, "busy": stages.busy or None}


def _write_briefs(call: Invocation, survey: _Survey, done: Sequence[str]) -> None:
    """Write what the first session of each agent is told."""
    agents = [
        host.agent
        for host in survey.hosts
        if (host.is_set_up or host.agent in done) and host_named(host.agent).hooks is not None
    ]
    if not agents:
        return
    with call.memory() as memory:
        draft = prepare(memory, spool_folder(), survey.root, agents=agents)
    if draft is not None:
        finish(spool_folder(), draft)


def _gains(memory: Memory) -> dict[str, Any]:
    """Return what is known now that a person may not have known."""
    failures = [each for each in memory.behavior.failures(5) if each.occurrences > 1]
    decisions = list(memory.decisions.list(limit=100))
    commits = [each.files for each in memory.commits.list(limit=_COMMITS)]
    code = {
        path
        for path in {path for files in commits for path in files}
        if memory.code.count_languages([path]) and os.path.exists(path)
    }
    changes = [[path for path in files if path in code] for files in commits]
    busiest = Counter(path for files in changes for path in files).most_common(1)
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
        "together": [{"files": [a, b], "commits": n} for a, b, n in _together(changes)],
        "busiest": busiest[0][0] if busiest else None,
        "toReview": [{"id": each.short_id, "content": each.content} for each in review],
    }


def _together(commits: Sequence[Sequence[str]]) -> list[tuple[str, str, int]]:
    """Return the two files that change together most, if it is news that they do.

    What a tool writes follows from its source, and a test is known to go with what it tests. Of 24
    and 25 commits of two files, 15 in common count 15 · 15 / √600; so many of a file that most
    commits touch count less.
    """
    alone = Counter(path for files in commits for path in files)
    pairs: Counter[tuple[str, str]] = Counter()
    for files in commits:
        if len(files) <= _WIDE_COMMIT:
            pairs.update(combinations(sorted(files), 2))
    news = [
        (count**2 / math.sqrt(alone[one] * alone[other]), one, other, count)
        for (one, other), count in pairs.items()
        if count >= _TOGETHER and _subject(one) != _subject(other)
    ]
    return [
        (one, other, count)
        for _, one, other, count in sorted(news, reverse=True)
        if not (_is_generated(one) or _is_generated(other))
    ][:1]


def _is_generated(path: str) -> bool:
    """Return True if a file says that a tool wrote it."""
    try:
        return _GENERATED.search(read_regular(path, _HEAD_BYTES)) is not None
    except OSError:
        return False


def _subject(path: str) -> frozenset[str]:
    """Return the words of a file's name, without those that mark a test."""
    stem = os.path.basename(path).lower().rsplit(".", 1)[0]
    return frozenset(_NAME_WORD.findall(stem)) - {"test", "tests", "spec"}


@dataclass(frozen=True, slots=True)
class _End:
    """What was done, and what is known now."""

    survey: _Survey
    status: dict[str, Any]
    done: Sequence[str]
    stages: InitRun
    gains: dict[str, Any]
    imported: InstructionReport | None


def _print_end(end: _End, is_here: bool) -> None:
    """Print what was done, what is known now, and one thing to try."""
    survey, status, done, stages, gains = end.survey, end.status, end.done, end.stages, end.gains
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
    if end.imported is not None:
        output.say(f"Imported {output.count(survey.statements, 'statement')} to review.")
    if stages.is_interrupted:
        output.sentence(
            "Stopped. What was read stays; `smara init` goes on with the rest, and "
            "`smara init --background` does it while you work."
        )
    if stages.busy:
        output.sentence(
            f"Reading in the background ({stages.busy}); `smara status` says how far it is."
        )
    _print_known(gains)
    path = gains["together"][0]["files"][0] if gains["together"] else gains["busiest"]
    waiting = [each.agent for each in survey.hosts if not each.is_set_up and each.agent not in done]
    texts = status["keep"]
    steps = [
        *([("smara review", "review what was learned")] if gains["toReview"] else []),
        *([(f"smara why {path}", "everything known about a file")] if path else []),
        *((f"smara setup {agent}", "let it use and record memories") for agent in waiting),
        *(
            [("smara import", "import past sessions")]
            if survey.transcripts and not stages.imported.reports and not stages.busy
            else []
        ),
        *(
            [("smara erase --transcribed", "take stored texts out")]
            if texts["mode"] == "vectors" and texts["withText"]
            else []
        ),
        *(
            [("smara memories import", "import the instruction files, to review")]
            if survey.statements and end.imported is None
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
