"""Observe messages without a model.

Notes quote the conversation. AgentWork groups an agent's calls, pairs failures with
their fixes, and reports what stays broken. Title, current task and next step come from
the last exchange.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from smara.core.dates import zone_of
from smara.core.extract import word_set
from smara.messages.models import Message
from smara.observations.models import Note, ObservationDraft, ObserveRequest
from smara.observations.offline import phrases
from smara.observations.offline.acts import sort
from smara.observations.offline.assistant import Asked, Assistant, only_announces
from smara.observations.offline.code import FileChange, changes_of, code_note, written_by_shell
from smara.observations.offline.exchanges import (
    Conversation,
    Exchange,
    ToolCall,
    Utterance,
    is_viewing,
    kind_of,
    path_of,
    read,
)
from smara.observations.offline.notes import (
    KnownNotes,
    PathShortener,
    Scene,
    clip,
    make_note,
    outline,
)
from smara.observations.offline.person import Person, speakers_in
from smara.observations.offline.runs import (
    Run,
    ShellCommand,
    background_id,
    command_text,
    commit_note,
    error_note,
    fix_note,
    read_run,
    run_note,
)
from smara.observations.offline.tool_calls import (
    Looks,
    agent_note,
    ask_notes,
    is_of_host,
    look_note,
    plan_note,
    rejection_note,
    tool_note,
    was_rejected,
    web_note,
)

_POLITE = re.compile(
    r"(?:(?:please|pls|hi|hello|hey|ok|okay|so|now|can you|could you|would you|will you|i want "
    r"you to|i need you to"
    r"|i'd like you to|let's|help me)[,!]?\s{1,3}){1,4}",
    re.IGNORECASE,
)
_LABELS = (phrases.REQUESTED, phrases.ASKED, phrases.GIVEN_TASK, phrases.ANSWERED)
_TITLE, _TASK = 60, 300


def thread_title(exchanges: Sequence[Exchange], is_coding: bool = True) -> str | None:
    """A short title: the first real request, or of a conversation about life the first words that
    tell something.
    """
    said = [
        words
        for exchange in exchanges
        for each in exchange.said
        for words in outline(each.text).prose
    ]
    sorted_words = [(sort(words, is_coding), words) for words in said[:40]]
    requests = [words for act, words in sorted_words if act == "request"] if is_coding else []
    others = [words for act, words in sorted_words if act != "chat"]
    chosen = next(iter([*requests, *others]), "")
    return clip(_without_politeness(chosen).rstrip(" .:!"), _TITLE) or None


def current_task(exchanges: Sequence[Exchange], notes: Sequence[Note]) -> str | None:
    """The newest request that is not reported as done, or a question without an answer.

    None when these messages say nothing of it: the task is then what it was.
    """
    requests = [
        note for note in notes if note.category == "request" and note.text.startswith(_LABELS)
    ]
    questions = [
        note
        for note in notes
        if note.category == "question" and note.text.startswith(phrases.ASKED)
    ]
    if questions and not _is_done(questions[-1], exchanges, notes):
        requests = sorted([*requests, questions[-1]], key=_place)
    if not requests:
        return None
    newest = max(requests, key=_place)
    words = clip(_without_label(newest.text), _TASK)
    if _is_done(newest, exchanges, notes):
        return clip(f"{phrases.WAITING} {words}", _TASK)
    return words or None


def _place(note: Note) -> int:
    return note.last_seq or 0


def _is_done(asked: Note, exchanges: Sequence[Exchange], notes: Sequence[Note]) -> bool:
    """Whether the agent has said its last word on it, and that it is done or answered."""
    ends = [
        note
        for note in notes
        if note.category in ("completion", "answer") and _place(note) > _place(asked)
    ]
    return bool(ends) and _is_at_rest(exchanges)


def suggested_response(exchanges: Sequence[Exchange], notes: Sequence[Note]) -> str | None:
    """How to go on: mend what fails, else continue with the task."""
    task = current_task(exchanges, notes)
    settled = max(
        (_place(note) for note in notes if note.category in ("completion", "test", "fix")),
        default=0,
    )
    open_errors = [note for note in notes if note.category == "error" and _place(note) > settled]
    if open_errors:
        return clip(f"{phrases.MEND} {open_errors[-1].text}", _TASK)
    if task is None or task.startswith(phrases.WAITING):
        return None
    return clip(f"{phrases.CONTINUE} {task}", _TASK)


def _without_label(text: str) -> str:
    return next((text[len(label) :].strip() for label in _LABELS if text.startswith(label)), text)


def _is_at_rest(exchanges: Sequence[Exchange]) -> bool:
    """Whether the agent has the last word, with no call behind it."""
    steps = exchanges[-1].steps if exchanges else []
    return bool(steps) and isinstance(steps[-1], Utterance)


def _without_politeness(words: str) -> str:
    polite = _POLITE.match(words)
    return words[polite.end() :] if polite else words


_LONGEST_STRETCH = 60


@dataclass(slots=True)
class _Stretch:
    looks: Looks = field(default_factory=Looks)
    changes: list[tuple[FileChange, ToolCall]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    webs: list[ToolCall] = field(default_factory=list)
    others: list[ToolCall] = field(default_factory=list)
    has_result: bool = False
    """Whether tests have run since the last change."""
    length: int = 0


@dataclass(slots=True)
class _Broken:
    """A command that fails, until it succeeds."""

    runs: list[Run]
    changed: list[str] = field(default_factory=list)


class AgentWork:
    """Takes an agent's calls one by one and gives notes; the failures that stay come last."""

    def __init__(self, scene: Scene, known: KnownNotes) -> None:
        self._scene = scene
        self._known = known
        self._changed_at: dict[str, int] = {}
        """Every file that was changed, with the message of its last change."""
        self._stretch = _Stretch()
        self._broken: dict[str, _Broken] = {}
        self._background: dict[str, ShellCommand] = {}
        self._contents: dict[str, str] = {}
        self.notes: list[Note] = []

    def take(self, call: ToolCall) -> None:
        """One more call."""
        kind = kind_of(call)
        if call.is_error and was_rejected(call):
            self.notes += [
                note for note in [rejection_note(self._scene, call, kind == "quiet")] if note
            ]
            return
        self._stretch.length += 1
        if self._stretch.length > _LONGEST_STRETCH:
            self.end_stretch()
        if kind == "change" and not is_viewing(call):
            self._change(call)
        elif kind in ("look", "change"):
            self._look(call)
        elif kind == "search":
            self._stretch.looks.search(self._scene, call)
        elif kind == "command":
            self._run(call)
        elif kind == "quiet":
            self._background_output(call, call.argument("task_id", "bash_id", "shell_id"))
        else:
            self._other(call, kind)

    def _look(self, call: ToolCall) -> None:
        self._stretch.looks.read(self._scene, call)
        if call.output and not call.is_error:
            self._contents.setdefault(path_of(call), call.output)

    def _other(self, call: ToolCall, kind: str) -> None:
        if kind == "web":
            self._stretch.webs.append(call)
        elif kind == "agent":
            self.notes.append(agent_note(self._scene, call))
        elif kind == "ask":
            self.notes += ask_notes(self._scene, call)
        elif kind == "plan":
            self.notes += [note for note in [plan_note(self._scene, call)] if note]
        elif call.arguments is not None or call.is_error:
            self._stretch.others.append(call)

    def _change(self, call: ToolCall) -> None:
        if call.is_error:
            return  # the file is as it was; what is done instead follows
        if self._stretch.has_result:
            self.end_stretch()
        path = path_of(call)
        self._changed(changes_of(call, self._contents.get(path, "")), call)
        if whole := call.argument("content", "file_text", "contents"):
            self._contents[path] = whole

    def _changed(self, found: Sequence[FileChange], call: ToolCall) -> None:
        changes = [change for change in found if not is_of_host(change.path)]
        self._stretch.changes += [(change, call) for change in changes]
        paths = [self._scene.paths.short(change.path) for change in changes]
        self._changed_at.update(dict.fromkeys(paths, call.seq))
        for broken in self._broken.values():
            broken.changed += paths

    def _run(self, call: ToolCall) -> None:
        run = read_run(call, self._scene.paths)
        if run is None:
            return
        if written := written_by_shell(command_text(call)):
            self._changed(written, call)
        if name := background_id(call):
            self._background[name] = run.command
            return
        if run.command.kind in ("look", "idle"):
            self._look_by_command(run, call)
        else:
            self._settle(run)

    def _look_by_command(self, run: Run, call: ToolCall) -> None:
        name = next((name for name in self._background if name in command_text(call)), "")
        if name:
            self._background_output(call, name)
        elif (
            run.command.kind == "idle"
            and run.command.shown
            and (run.outcome == "failed" or run.command.key in self._broken)
        ):
            self._settle(run)
        else:
            self._stretch.looks.command(self._scene, run.command, call)

    def _background_output(self, call: ToolCall, name: str) -> None:
        """The output of a command that went on in the background, read later."""
        command = self._background.get(name)
        if command is None or call.output is None or "<status>running" in call.output[:400]:
            return
        run = read_run(call, self._scene.paths, command)
        if run is not None and (run.tests is not None or run.outcome == "failed"):
            del self._background[name]
            self._settle(run)

    def _settle(self, run: Run) -> None:
        """A run has ended: a failure waits, a success may mend one."""
        if run.outcome == "failed":
            broken = self._broken.get(run.command.key)
            if broken is not None:
                broken.runs.append(run)
            else:
                self._broken[run.command.key] = _Broken([run])
            self._stretch.has_result = True
            return
        is_told = self._mend(run)
        if not is_told and run.command.kind not in ("commit", "idle"):
            self._stretch.runs.append(run)
        if run.command.kind == "commit" and run.outcome == "ok":
            self.notes.append(commit_note(self._scene, run))
            self.end_stretch()
        elif run.tests is not None:
            self._stretch.has_result = True

    def _mend(self, run: Run) -> bool:
        """End the failures that a success speaks for; returns whether its own outcome is told with
        one.
        """
        is_told = False
        for key in [key for key in self._broken if key in run.command.keys]:
            broken = self._broken[key]
            if run.outcome == "ok" and (key != run.command.key or _covers(run, broken.runs[0])):
                del self._broken[key]
                self.notes.append(
                    fix_note(
                        self._scene, broken.runs, run, changed=list(dict.fromkeys(broken.changed))
                    )
                )
                is_told = is_told or key == run.command.key
        if not is_told and run.outcome == "ok" and run.command.kind in ("test", "build", "commit"):
            is_told = self._mend_known(run)
        return is_told

    def _mend_known(self, run: Run) -> bool:
        """A success of what failed in messages that were observed before."""
        if not self._known.is_failing(run.command.key):
            return False
        fix = fix_note(self._scene, [], run, changed=list(self._changed_at))
        self.notes.append(replace(fix, first_seq=min([run.call.seq, *self._changed_at.values()])))
        return True

    def end_stretch(self) -> None:
        """What was gathered becomes notes."""
        stretch, self._stretch = self._stretch, _Stretch()
        self.notes += [note for note in self._notes_of(stretch) if note is not None]

    def _notes_of(self, stretch: _Stretch) -> Iterator[Note | None]:
        scene = self._scene
        if stretch.looks.calls:
            yield look_note(
                scene,
                stretch.looks,
                [scene.paths.short(change.path) for change, _ in stretch.changes],
            )
        if stretch.changes:
            yield code_note(scene, stretch.changes)
        if stretch.runs:
            yield run_note(scene, stretch.runs)
        if stretch.webs:
            yield web_note(scene, stretch.webs)
        if stretch.others:
            yield tool_note(scene, stretch.others)

    def finish(self) -> None:
        """The last stretch, and what still fails."""
        self.end_stretch()
        for broken in self._broken.values():
            self.notes += [error_note(self._scene, run) for run in _distinct(broken.runs)]
        self._broken = {}

    @property
    def open_failures(self) -> list[Run]:
        """What fails at this moment, oldest first."""
        return [broken.runs[-1] for broken in self._broken.values()]


def _covers(run: Run, failed: Run) -> bool:
    """Whether a success speaks for what failed: tests of other files do not."""
    if run.command.kind != "test":
        return True
    named, wanted = _paths(run.command), _paths(failed.command)
    return not named or wanted <= named


def _paths(command: ShellCommand) -> frozenset[str]:
    return frozenset(
        word.partition("::")[0] for word in command.arguments if "/" in word or "." in word
    )


def _distinct(runs: Sequence[Run]) -> list[Run]:
    """Failures that say something new, the first and the last at most."""
    lines = {run.failure.line if run.failure else "": run for run in runs}
    kept = list(lines.values())
    return kept if len(kept) <= 2 else [kept[0], kept[-1]]


METHOD = "offline-1"
_WORD = re.compile(r"[A-Za-z_][\w-]{4,40}")
_NOT_TELLING = word_set(
    "about after always anything besides every everything keep look mention note observe please "
    "record things"
)


class OfflineObserver:
    """Deterministic, fast, no key. Every word of a note beside its label was said in the
    messages.
    """

    method = METHOD

    def observe(self, request: ObserveRequest) -> ObservationDraft:
        """The notes on some messages, in the order of their times. Never raises, whatever the
        messages hold.
        """
        known = KnownNotes(request.known)
        notes: list[Note] = []
        readings: list[Conversation] = []
        for messages in _by_thread(request.messages):
            reading = read(messages)
            readings.append(reading)
            notes += _notes_of(request, reading, known)
        notes.sort(key=attrgetter("said_at"))
        exchanges = [exchange for reading in readings for exchange in reading.exchanges]
        extracted, warnings = _extracted(request, notes)
        return ObservationDraft(
            tuple(note for note in notes if not known.has(note)),
            current_task=current_task(exchanges, notes),
            suggested_response=suggested_response(exchanges, notes)
            if request.wants_suggested_response
            else None,
            thread_title=thread_title(exchanges, request.flavor == "coding")
            if request.wants_title
            else None,
            extracted=extracted,
            warnings=tuple(warnings),
        )


def _extracted(request: ObserveRequest, notes: Sequence[Note]) -> tuple[dict[str, Any], list[str]]:
    if not request.extractors:  # most have none, and need not load what checks schemas
        return {}, []
    from smara.observations.offline.extract import extract_offline

    return extract_offline(request.messages, notes, request.extractors, timezone=request.timezone)


def _by_thread(messages: Sequence[Message]) -> Iterable[list[Message]]:
    """The messages of each thread; sequence numbers count within one."""
    order = {
        thread: place
        for place, thread in enumerate(dict.fromkeys(message.thread_id for message in messages))
    }
    placed = sorted(messages, key=lambda message: order[message.thread_id])
    return [list(group) for _, group in groupby(placed, key=attrgetter("thread_id"))]


def _notes_of(request: ObserveRequest, reading: Conversation, known: KnownNotes) -> list[Note]:
    scene = Scene(
        zone_of(request.timezone),
        PathShortener(
            reading.folder,
            (
                path_of(step)
                for each in reading.exchanges
                for step in each.steps
                if isinstance(step, ToolCall)
            ),
            request.root,
        ),
        request.mode,
        flavor=request.flavor,
        wanted=frozenset(word.lower() for word in _WORD.findall(request.instructions))
        - _NOT_TELLING,
    )
    person = Person(scene, speakers_in(reading.exchanges))
    work = AgentWork(scene, known)
    notes: list[Note] = []
    asked: Utterance | None = None
    for exchange in reading.exchanges:
        said = person.notes(exchange, asked)
        notes += said
        notes += _notes_of_agent(scene, exchange, work, asked=_what_was_asked(said))
        asked = _question_at_end(exchange)
    work.finish()
    return notes + work.notes


def _notes_of_agent(scene: Scene, exchange: Exchange, work: AgentWork, asked: Asked) -> list[Note]:
    assistant = Assistant(scene, asked)
    last = _last_words(exchange)
    notes: list[Note] = []
    for step in exchange.steps:
        if isinstance(step, ToolCall):
            work.take(step)
        elif step.voice == "reasoning":
            notes += assistant.thought(step)
        else:
            is_end = step is last and (
                exchange.is_closed or step.is_last or not only_announces(step.text)
            )
            notes += assistant.last(step) if is_end else assistant.between(step)
    if exchange.is_closed:
        work.end_stretch()
    if exchange.interrupted is not None:
        seq, at = exchange.interrupted
        notes.append(
            make_note(
                scene, "low", "note", text=phrases.INTERRUPTED, at=at, seqs=[seq], inputs=["user"]
            )
        )
    return notes


def _last_words(exchange: Exchange) -> Utterance | None:
    """The words with which the agent ended its turn; none while it is still at work."""
    spoken = [
        step for step in exchange.steps if isinstance(step, ToolCall) or step.voice == "assistant"
    ]
    last = spoken[-1] if spoken else None
    return last if isinstance(last, Utterance) else None


def _question_at_end(exchange: Exchange) -> Utterance | None:
    last = _last_words(exchange)
    return last if last is not None and last.text.rstrip().endswith(("?", "？")) else None


def _what_was_asked(notes: Sequence[Note]) -> Asked:
    categories = {note.category for note in notes}
    if "request" in categories:
        return "request"
    return "question" if "question" in categories else "other"
