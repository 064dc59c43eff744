"""What an agent did in an exchange, stretch by stretch.

A stretch is what belongs together: looking around, then changing files, then running
things. It ends with a commit, or when files are changed again after the tests ran. Each
stretch gives a few notes at most. A failure waits: when the same command later succeeds,
one note tells both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from smara.observations.models import Note
from smara.observations.offline.changes import FileChange, changes_of, written_by_shell
from smara.observations.offline.coding import code_note
from smara.observations.offline.drafting import Scene
from smara.observations.offline.exchanges import Call
from smara.observations.offline.known import Known
from smara.observations.offline.looking import Looks, is_of_host, look_note
from smara.observations.offline.others import (
    agent_note,
    ask_notes,
    plan_note,
    rejection_note,
    tool_note,
    was_rejected,
    web_note,
)
from smara.observations.offline.running import commit_note, error_note, fix_note, run_note
from smara.observations.offline.runs import Run, background_id, command_text, read_run
from smara.observations.offline.shell import Command
from smara.observations.offline.tools import is_viewing, kind_of, path_of

_LONGEST_STRETCH = 60


@dataclass(slots=True)
class _Stretch:
    looks: Looks = field(default_factory=Looks)
    changes: list[tuple[FileChange, Call]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    webs: list[Call] = field(default_factory=list)
    others: list[Call] = field(default_factory=list)
    has_result: bool = False
    """Whether tests have run since the last change."""
    length: int = 0


@dataclass(slots=True)
class _Broken:
    """A command that fails, until it succeeds."""

    runs: list[Run]
    changed: list[str] = field(default_factory=list)


class Work:
    """Takes an agent's calls one by one and gives notes; the failures that stay come last."""

    def __init__(self, scene: Scene, known: Known) -> None:
        self._scene = scene
        self._known = known
        self._changed_at: dict[str, int] = {}
        """Every file that was changed, with the message of its last change."""
        self._stretch = _Stretch()
        self._broken: dict[str, _Broken] = {}
        self._background: dict[str, Command] = {}
        self._contents: dict[str, str] = {}
        self.notes: list[Note] = []

    def take(self, call: Call) -> None:
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

    def _look(self, call: Call) -> None:
        self._stretch.looks.read(self._scene, call)
        if call.output and not call.is_error:
            self._contents.setdefault(path_of(call), call.output)

    def _other(self, call: Call, kind: str) -> None:
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

    def _change(self, call: Call) -> None:
        if call.is_error:
            return  # the file is as it was; what is done instead follows
        if self._stretch.has_result:
            self.end_stretch()
        path = path_of(call)
        self._changed(changes_of(call, self._contents.get(path, "")), call)
        if whole := call.argument("content", "file_text", "contents"):
            self._contents[path] = whole

    def _changed(self, found: Sequence[FileChange], call: Call) -> None:
        changes = [change for change in found if not is_of_host(change.path)]
        self._stretch.changes += [(change, call) for change in changes]
        paths = [self._scene.paths.short(change.path) for change in changes]
        self._changed_at.update(dict.fromkeys(paths, call.seq))
        for broken in self._broken.values():
            broken.changed += paths

    def _run(self, call: Call) -> None:
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

    def _look_by_command(self, run: Run, call: Call) -> None:
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

    def _background_output(self, call: Call, name: str) -> None:
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


def _paths(command: Command) -> frozenset[str]:
    return frozenset(
        word.partition("::")[0] for word in command.arguments if "/" in word or "." in word
    )


def _distinct(runs: Sequence[Run]) -> list[Run]:
    """Failures that say something new, the first and the last at most."""
    lines = {run.failure.line if run.failure else "": run for run in runs}
    kept = list(lines.values())
    return kept if len(kept) <= 2 else [kept[0], kept[-1]]
