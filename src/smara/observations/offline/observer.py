"""Observe messages without a model.

Notes quote the conversation. AgentWork groups an agent's calls, pairs failures with
their fixes, and reports what stays broken. Title, current task and next step come from
the last exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from smara.actions.commands import TELLING
from smara.actions.failures import ends_of
from smara.actions.models import Command
from smara.actions.tool_calls import files_written
from smara.actions.tool_output import REFUSAL
from smara.core.dates import zone_of
from smara.core.items import grouped
from smara.core.startup.record import dataclass, field
from smara.core.tool_names import ARGUMENTS
from smara.observations.models import Note, ObservationDraft, ObserveRequest
from smara.observations.offline.calls import (
    Looks,
    Run,
    agent_notes,
    ask_notes,
    failure_note,
    is_of_host,
    plan_notes,
    read_run,
    rejection_notes,
    run_note,
    tool_note,
    web_note,
)
from smara.observations.offline.code import (
    READ_CHARACTERS,
    FileChange,
    changes_of,
    code_note,
    lines_of,
)
from smara.observations.offline.exchanges import (
    Exchange,
    ToolCall,
    Utterance,
    kind_of,
    read,
)
from smara.observations.offline.notes import (
    CUES,
    WORDS,
    KnownNotes,
    PathShortener,
    Scene,
    clip,
    outline,
)
from smara.observations.offline.speech import Assistant, Person, Wish, announces, sort

_TITLE, _TASK = 60, 300
_WAITING = "Waiting for the user."


def thread_title(exchanges: Sequence[Exchange], is_coding: bool = True) -> str | None:
    """Return the first real request as a title.

    In a talk about life the first fact.
    """
    texts = [words.text for exchange in exchanges for words in exchange.words]
    sentences = [words for text in texts for words in outline(text).prose]
    pairs = [(sort(words, is_coding), words) for words in sentences[:40]]
    requests = [words for act, words in pairs if act == "request"] if is_coding else []
    others = [words for act, words in pairs if act != "chat"]
    title = next(iter([*requests, *others]), "")
    return clip(CUES["polite"].sub("", title, count=1).rstrip(" .:!"), _TITLE) or None


def current_task(
    exchanges: Sequence[Exchange], notes: Sequence[Note], before: str = ""
) -> str | None:
    """Return the newest unfinished request, or an open question.

    None if the messages say nothing of it: the task is then what it was before.
    """
    steps = exchanges[-1].steps if exchanges else []
    is_at_rest = bool(steps) and isinstance(steps[-1], Utterance)
    # While the agent is at work, nothing counts as done.
    done = _newest(notes, "completion", "answer") if is_at_rest else 0
    questions = [note for note in notes if note.text.startswith("User asked:")]
    wishes = [note for note in notes if note.category == "request"]
    wishes += [note for note in questions[-1:] if (note.last_seq or 0) >= done]
    newest = max(wishes, key=lambda note: note.last_seq or 0, default=None)
    words, seq = before, 0
    if newest is not None:
        words = clip(CUES["label"].sub("", newest.text, count=1).strip(), _TASK)
        seq = newest.last_seq or 0
    elif not done or before.startswith(_WAITING):
        return None
    if words and seq < done:
        # "Will do" answers a request and does not fulfill it.
        is_done = _newest(notes, "completion") > seq
        return clip(f"{_WAITING} Last {'done' if is_done else 'request'}: {words}", _TASK)
    return words or None


def suggested_response(task: str | None, notes: Sequence[Note]) -> str | None:
    """Suggest how to go on: fix failures, else continue."""
    settled = _newest(notes, "completion", "test", "fix")
    failures = [
        note for note in notes if note.category == "error" and (note.last_seq or 0) > settled
    ]
    if failures:
        return clip(f"First mend: {failures[-1].text}", _TASK)
    if task is None or task.startswith(_WAITING):
        return None
    return clip(f"Continue with: {task}", _TASK)


def _newest(notes: Sequence[Note], *categories: str) -> int:
    """Return the last message of the newest note of some categories; 0 without one."""
    return max((note.last_seq or 0 for note in notes if note.category in categories), default=0)


_LONGEST_STRETCH = 60


@dataclass(slots=True)
class _Stretch:
    looks: Looks = field(default_factory=Looks)
    changes: list[tuple[FileChange, ToolCall]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    webs: list[ToolCall] = field(default_factory=list)
    others: list[ToolCall] = field(default_factory=list)
    length: int = 0


@dataclass(slots=True)
class _Broken:
    """A command that fails, until it succeeds."""

    runs: list[Run] = field(default_factory=list)
    changed: dict[str, ToolCall] = field(default_factory=dict)


class AgentWork:
    """The agent's calls, one by one, and the notes on them."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stretch = _Stretch()
        self._broken: dict[str, _Broken] = {}
        self._background: dict[str, Command] = {}
        self.notes: list[Note] = []

    def take(self, call: ToolCall) -> None:
        """Take one more call."""
        scene, kind = self._scene, kind_of(call)
        if call.is_error and REFUSAL in (call.output or "")[:400]:
            self.notes += rejection_notes(scene, call, kind == "quiet")
            return
        self._stretch.length += 1
        if self._stretch.length > _LONGEST_STRETCH:
            self.end_stretch()
        if kind == "change":
            if call.is_error:
                return  # the file is as it was; what is done instead follows
            self._change(changes_of(call), call)
        elif kind == "look":
            self._stretch.looks.read(scene, call)
        elif kind == "search":
            pattern = call.argument(*ARGUMENTS["pattern"])
            self._stretch.looks.search(scene.paths.shorten(pattern), call)
        elif kind == "command":
            self._run(call)
        elif kind == "quiet":
            self._background_output(call, call.argument("task_id", "bash_id", "shell_id"))
        elif kind == "web":
            self._stretch.webs.append(call)
        elif kind in _NOTES_ON:
            self.notes += _NOTES_ON[kind](scene, call)
        elif call.arguments is not None or call.is_error:
            self._stretch.others.append(call)

    def _change(self, candidates: Sequence[FileChange], call: ToolCall) -> None:
        changes = [change for change in candidates if not is_of_host(change.path)]
        self._stretch.changes += [(change, call) for change in changes]
        changed = {self._scene.paths.short(change.path): call for change in changes}
        for broken in self._broken.values():
            broken.changed.update(changed)

    def _run(self, call: ToolCall) -> None:
        run = read_run(call, self._scene.paths)
        if run is None:
            return
        output = call.output or ""
        lines = ends_of(output).split("\n")
        # What stands before the part that failed was done, unless the output says otherwise.
        until = run.command.main.head if run.outcome == "failed" else ""
        self._change(
            [
                FileChange(path, "Changed", lines_of(text))
                for path, text in files_written(run.line[:READ_CHARACTERS], until=until).items()
                if not any(
                    CUES["nothing written"].search(line)
                    or (path.rpartition("/")[2] in line and CUES["not written"].search(line))
                    for line in lines
                )
            ],
            call,
        )
        if begun := CUES["background run"].search(output[:400]) or CUES["background run"].search(
            output[-600:]
        ):
            self._background[begun[1]] = run.command
        elif run.weight >= TELLING or run.committed:
            self._settle(run)
        elif name := next((name for name in self._background if name in run.line), ""):
            self._background_output(call, name)
        elif run.weight == 0 and run.shown and (run.outcome == "failed" or run.aim in self._broken):
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
        """Take a run that has ended: a failure waits, a success may mend one."""
        if run.outcome == "failed":
            self._broken.setdefault(run.aim, _Broken()).runs.append(run)
            return
        is_mended = run.outcome == "ok" and self._mend(run)
        is_commit = run.command.purpose == "commit"
        if not is_mended and not is_commit and run.weight:
            self._stretch.runs.append(run)
        if is_commit and run.outcome == "ok":
            self.notes.append(
                self._scene.note(
                    "high", "completion", f"Committed: {run.words or run.shown}", [run.call]
                )
            )
            self.end_stretch()

    def _mend(self, run: Run) -> bool:
        """End the failures that a success speaks for; return True if a fix tells of the run."""
        purpose, is_mended = run.command.purpose, False
        for aim in {part.aim: None for part in run.command.parts if part.aim in self._broken}:
            # Tests of other files do not speak for a failed one.
            here, there = map(_test_files, (run, self._broken[aim].runs[0]))
            if aim != run.aim or purpose != "test" or not here or there <= here:
                broken = self._broken.pop(aim)
                self.notes.append(failure_note(self._scene, broken.runs, run, broken.changed))
                is_mended = is_mended or aim == run.aim
        return is_mended

    def end_stretch(self) -> None:
        """Turn what was gathered into notes."""
        scene, stretch, self._stretch = self._scene, self._stretch, _Stretch()
        paths = [scene.paths.short(change.path) for change, _ in stretch.changes]
        notes = (
            stretch.looks.note(scene, paths) if stretch.looks.calls else None,
            code_note(scene, stretch.changes) if stretch.changes else None,
            run_note(scene, stretch.runs) if stretch.runs else None,
            web_note(scene, stretch.webs) if stretch.webs else None,
            tool_note(scene, stretch.others) if stretch.others else None,
        )
        self.notes += filter(None, notes)

    def finish(self) -> None:
        """End the last stretch, and write what still fails."""
        self.end_stretch()
        self.notes += [failure_note(self._scene, each.runs[-1:]) for each in self._broken.values()]


_NOTES_ON = {"agent": agent_notes, "ask": ask_notes, "plan": plan_notes}


def _test_files(run: Run) -> set[str]:
    words = [word for word in run.command.main.arguments if "/" in word or "." in word]
    return {word.partition("::")[0] for word in words}


METHOD = "offline-1"


class OfflineObserver:
    """The observer without a model: deterministic, fast, no key.

    Every word of a note beside its label stands in the messages.
    """

    method = METHOD

    def observe(self, request: ObserveRequest) -> ObservationDraft:
        """Write notes on messages, in the order of their times; never raises."""
        earlier = KnownNotes(request.known)
        notes: list[Note] = []
        exchanges: list[Exchange] = []
        threads = grouped((message.thread_id, message) for message in request.messages)
        for messages in threads.values():  # sequence numbers count within a thread
            read_exchanges, folder = read(messages)
            exchanges += read_exchanges
            notes += _notes_of(request, read_exchanges, folder)
        notes.sort(key=attrgetter("said_at"))
        task = current_task(exchanges, notes, request.current_task)
        extracted: dict[str, Any] = {}
        warnings: list[str] = []
        if request.extractors:  # most have none, and need not load what checks schemas
            from smara.observations.offline.extract import extract_offline

            extracted, warnings = extract_offline(
                request.messages, notes, request.extractors, timezone=request.timezone
            )
        return ObservationDraft(
            tuple(note for note in notes if not earlier.has(note)),
            current_task=task,
            suggested_response=suggested_response(task, notes)
            if request.wants_suggested_response
            else None,
            thread_title=thread_title(exchanges, request.flavor == "coding")
            if request.wants_title
            else None,
            extracted=extracted,
            warnings=tuple(warnings),
        )


def _notes_of(request: ObserveRequest, exchanges: Sequence[Exchange], folder: str) -> list[Note]:
    scene = Scene(
        zone_of(request.timezone),
        PathShortener(request.root or folder),
        request.mode,
        flavor=request.flavor,
        focus=frozenset(map(str.lower, CUES["long word"].findall(request.instructions)))
        - WORDS["not telling"],
    )
    person = Person(scene, exchanges)
    work = AgentWork(scene)
    notes: list[Note] = []
    question: Utterance | None = None
    for exchange in exchanges:
        words = person.notes(exchange, question)
        categories = {note.category for note in words}
        wishes: tuple[Wish, ...] = ("request", "question")
        assistant = Assistant(scene, next((each for each in wishes if each in categories), "other"))
        # The words with which the agent ended its turn; none while it is at work.
        spoken = [
            step
            for step in exchange.steps
            if isinstance(step, ToolCall) or step.voice == "assistant"
        ]
        last = spoken[-1] if spoken and isinstance(spoken[-1], Utterance) else None
        notes += words
        for step in exchange.steps:
            if isinstance(step, ToolCall):
                work.take(step)
            elif step.voice == "assistant":
                parts = outline(step.text)
                is_over = exchange.is_closed or step.is_last or bool(parts.items)
                is_end = step is last and (is_over or not all(map(announces, parts.prose)))
                notes += assistant.last(step) if is_end else assistant.between(step)
        if exchange.is_closed:
            work.end_stretch()
        if exchange.interruption is not None:
            notes.append(
                scene.note(
                    "low",
                    "note",
                    "User interrupted the work",
                    [exchange.interruption],
                    inputs=["user"],
                )
            )
        question = last if last and last.text.rstrip().endswith(("?", "？")) else None
    work.finish()
    return notes + work.notes
