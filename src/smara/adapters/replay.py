"""Replay the events of imported transcripts, so that behavior learns from them.

`EventReader` derives from a transcript the same events that hooks report, under the same
keys, so that a call counts once. `Learner` passes them to behavior learning. A run is
bounded; what it skips is reported and is learned by importing again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from smara.actions.intake import SILENT_SESSION_MS
from smara.actions.tool_output import PERSISTED, REFUSAL, bare, file_text
from smara.adapters.host_specs import HOOKS, host_of_format
from smara.adapters.readers.transcript import Recent
from smara.adapters.records import Imported, Record
from smara.behavior.store import by_session
from smara.core.clock import Clock, SystemClock
from smara.core.events import HostEvent, Kind, event_key
from smara.core.startup.record import dataclass, field, fields
from smara.core.tool_names import tool_arguments, tool_name
from smara.errors import NotFoundError, SmaraError
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread, Part

OUTPUT_CHARACTERS = 200_000
_STREAMS = ("stdout", "stderr")
_SAID_BY_A_PERSON = (None, "command", "queued_prompt", "shell_input", "user_message")


@dataclass(frozen=True, eq=False)
class EventReader:
    """A reader that turns records into events, matching calls with results."""

    otherwise_at_ms: int = 0
    _threads: dict[str, _ThreadEvents] = field(default_factory=dict, init=False)
    _sessions: set[str] = field(default_factory=set, init=False)

    def read(self, record: Record) -> Iterator[HostEvent]:
        """Yield the events of one record.

        Nothing comes of what is no message, was copied, or is a mere log of prompts.
        """
        if not isinstance(record, Imported) or record.message.metadata.get("inherited") is True:
            return
        thread, message = record.thread, record.message
        if thread.kind == "compaction" or "told_by" in thread.metadata:
            return
        events = self._threads.get(thread.id)
        if events is None:
            content = () if isinstance(message.content, str) else message.content
            if "host" not in thread.metadata and all(part.type != "tool_call" for part in content):
                return  # a talk without tools is no agent's work
            events = self._threads[thread.id] = _ThreadEvents(thread, self.otherwise_at_ms)
            if events.session_id not in self._sessions:
                # Under one key whichever file comes first: it shows that a transcript was read.
                self._sessions.add(events.session_id)
                key = event_key(events.session_id, "session_start", "import")
                yield events.make("session_start", message, key=key, source="import")
        yield from events.of_message(message)


class _ThreadEvents:
    """Make the events of one thread, of which it remembers the open calls."""

    def __init__(self, thread: NewThread, otherwise_at_ms: int) -> None:
        is_agent = thread.kind == "subagent"
        above = thread.metadata.get("session") or thread.parent_id
        self.session_id = str(above or thread.id) if is_agent else thread.id
        self._subagent = str(thread.metadata.get("agent_id") or thread.id) if is_agent else ""
        self._agent = host_of_format(str(thread.metadata.get("host"))).name
        self._cwd = str(thread.metadata.get("cwd") or "")
        self._at_ms = thread.created_at or otherwise_at_ms
        self._is_in_turn = False
        self._calls: Recent[tuple[str, Mapping[str, Any], int]] = Recent()
        """The tool, arguments and time of calls without a result yet, by their ids."""

    def make(
        self, kind: Kind, message: NewMessage, *, what: str = "", key: str = "", **facts: Any
    ) -> HostEvent:
        """Return an event, by default under the key of its message."""
        name = f"import:{self._subagent}:{message.client_id or ''}:{what}"
        return HostEvent(
            self._agent,
            kind,
            self.session_id,
            at_ms=self._at_ms,
            cwd=self._cwd,
            subagent_id=self._subagent,
            model=str(message.metadata.get("model") or ""),
            key=key or event_key(self.session_id, kind, name),
            **facts,
        )

    def of_message(self, message: NewMessage) -> Iterator[HostEvent]:
        """Yield the events of one message."""
        self._at_ms = message.created_at or self._at_ms
        self._cwd = str(message.metadata.get("cwd") or self._cwd)
        content = message.content
        parts = (Part("text", content),) if isinstance(content, str) else tuple(content)
        words = "\n".join(part.text for part in parts if part.type == "text")
        thoughts = "\n".join(part.text for part in parts if part.type == "reasoning")
        kind, has_words = message.metadata.get("kind"), bool(words.strip())
        is_person = kind in _SAID_BY_A_PERSON and not self._subagent
        if message.role == "user" and has_words and is_person:
            if self._is_in_turn:
                yield self.make("turn_end", message, what="turn")
            self._is_in_turn = True
            yield self.make("prompt", message, prompt=words)
        elif message.role == "assistant":
            if thoughts.strip():
                yield self.make("reasoning", message, text=thoughts, what="thought")
            if has_words:
                yield self.make("step", message, text=words)
        elif message.role == "system" and kind == "compaction_summary":
            yield self.make("compact_post", message, text=words)
        for number, part in enumerate(parts):
            use_id = part.call_id or ""
            if part.type == "tool_call":
                tool = tool_name(part.name or "")
                given = tool_arguments(
                    tool, part.arguments if isinstance(part.arguments, dict) else {}
                )
                if use_id:
                    self._calls[use_id] = (tool, given, self._at_ms)
                key = event_key(self.session_id, "tool_pre", use_id) if use_id else ""
                call = {"tool": tool, "tool_input": given, "tool_use_id": use_id}
                yield self.make("tool_pre", message, what=f"call-{number}", key=key, **call)
            elif (
                part.type == "tool_result"
                and part.name not in (*_STREAMS, "message")
                and use_id in self._calls  # otherwise nothing can be learned from it
                and kind != "running_output"  # of a running command the result comes later
            ):
                yield from self._result(message, part, parts)

    def _result(
        self, message: NewMessage, part: Part, parts: Sequence[Part]
    ) -> Iterator[HostEvent]:
        use_id = part.call_id or ""
        tool, given, began_at = self._calls.pop(use_id)
        words = bare(part.text)
        if words.startswith(REFUSAL):
            return
        if words.startswith(PERSISTED):  # the model saw its beginning alone
            words = "\n".join(each.text for each in parts if each.name in _STREAMS) or words
        output = (file_text(words) if tool == "Read" else words)[:OUTPUT_CHARACTERS]
        yield self.make(
            "tool_fail" if part.is_error else "tool_post",
            message,
            tool=tool,
            tool_input=given,
            tool_use_id=use_id,
            tool_output=output,
            error=output if part.is_error else None,
            duration_ms=max(0, self._at_ms - began_at),
            key=event_key(self.session_id, "tool_post", use_id),
        )


MOST_SESSIONS = 200
MOST_EVENTS = 100_000
BATCH = 500
_TOOL_KINDS = ("tool_pre", "tool_post", "tool_fail")


@dataclass(slots=True)
class LearnReport:
    """The result of learning from imported sessions.

    Attributes:
        sessions: In which something new was seen.
        memories: That were made of it and wait for review.
        left_out: Sessions that were too many for one run.
        decisions: That people made in the sessions.
    """

    sessions: int = 0
    events: int = 0
    memories: int = 0
    left_out: int = 0
    decisions: int = 0
    problems: list[str] = field(default_factory=list)

    def __iadd__(self, more: LearnReport) -> LearnReport:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(more, each.name))
        return self


def end_at_silences(
    memory: Memory, session_id: str, events: Sequence[HostEvent]
) -> tuple[LearnReport, Sequence[HostEvent]]:
    """Observe a session up to its last long silence.

    It is finalized at each of them. Hooks and imports end a session by this same rule.

    Args:
        memory: The memory that learns.
        session_id: The session.
        events: Its events in order, none of which was ingested before.

    Returns:
        What was learned, and the events after the last silence, which are left to observe.
    """
    try:
        last_ms = memory.behavior.session(session_id, is_whole=True).last_event_at
    except NotFoundError:
        last_ms = events[0].at_ms if events else 0
    done, start = LearnReport(), 0
    for number, event in enumerate(events):
        if event.subagent_id:
            continue
        if event.at_ms - last_ms > SILENT_SESSION_MS:
            done.events += memory.behavior.observe_batch(events[start:number]).taken
            final = memory.behavior.finalize(session_id)
            done.memories += len(final.promoted) if final is not None else 0
            start = number
        last_ms = event.at_ms
    return done, events[start:]


@dataclass(slots=True)
class _Watched:
    """A session of this run: what may be taken of it, and what was.

    Attributes:
        after_ms: Only what happened later is new.
        is_open: It was heard of and not decided on.
        hooked_ms: When hooks last told of it, if they did without its transcript. Of calls alone
            both tellings are known to be one; of hosts that give calls no id, only what happened
            later is new even so.
        is_new: Nothing was known of it before this run.
    """

    after_ms: int = -1
    is_open: bool = False
    hooked_ms: int = -1
    is_left_out: bool = False
    is_new: bool = False
    taken: int = 0
    last_ms: int = 0


class Learner:
    """A learner from the sessions of one import, decided at its end."""

    def __init__(
        self,
        memory: Memory,
        *,
        most_sessions: int = MOST_SESSIONS,
        most_events: int = MOST_EVENTS,
        clock: Clock | None = None,
    ) -> None:
        self._memory = memory
        self._clock = clock or SystemClock()
        self._most_sessions = most_sessions
        self._most_events = most_events
        self._sessions: dict[str, _Watched] = {}
        self._reader = EventReader()
        self._pending: list[HostEvent] = []
        self.learned = LearnReport()

    def begin_file(self, at_ms: int = 0) -> None:
        """Begin another transcript, written at a time.

        What has no time of its own happened then.
        """
        self._reader = EventReader(at_ms)

    def take(self, record: Record) -> None:
        """Watch what one record tells."""
        for event in self._reader.read(record):
            watched = self._sessions.get(event.session_id)
            if watched is None:
                watched = self._sessions[event.session_id] = self._look(event)
            if self._wants(watched, event):
                watched.last_ms = max(watched.last_ms, event.at_ms)
                self._pending.append(event)
        if len(self._pending) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what was seen so far; errors must not fail the import."""
        pending, self._pending = self._pending, []
        for session_id, events in by_session(pending).items():
            try:
                done, rest = end_at_silences(
                    self._memory, session_id, self._memory.internals.intake.fresh(events)
                )
                done.events += self._memory.behavior.observe_batch(rest).taken
            except SmaraError as error:
                self._trouble(session_id, error)
                continue
            self._sessions[session_id].taken += done.events
            self.learned += done

    def finish(self, progress: Callable[[int, int], None] | None = None) -> LearnReport:
        """Finalize every session that has ended with something new, oldest first."""
        self.flush()
        silent_since = self._clock.now_ms() - SILENT_SESSION_MS
        # One that an earlier run was stopped in the middle of is still open, though nothing of it
        # is new now.
        due = sorted(
            (each.last_ms, name)
            for name, each in self._sessions.items()
            if (each.taken or each.is_open) and each.last_ms <= silent_since
        )
        for number, (_, session_id) in enumerate(due, 1):
            try:
                done = self._memory.behavior.finalize(session_id)
                self.learned.memories += 0 if done is None else len(done.promoted)
            except SmaraError as error:
                self._trouble(session_id, error)
            if progress:
                progress(number, len(due))
        self.learned.sessions = sum(each.taken > 0 for each in self._sessions.values())
        self.learned.left_out = sum(each.is_left_out for each in self._sessions.values())
        return self.learned

    def read_decisions(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Read new sessions for decisions; errors must not fail the import."""
        try:
            is_all = False
            while not is_all:
                report = self._memory.decisions.update(progress=progress)
                self.learned.decisions += report.added
                is_all = report.is_all or not report.threads
        except SmaraError as error:
            self._trouble("decisions", error)

    def _look(self, first: HostEvent) -> _Watched:
        try:
            stored = self._memory.behavior.session(first.session_id, is_whole=True)
        except NotFoundError:
            is_too_much = (
                sum(each.is_new for each in self._sessions.values()) >= self._most_sessions
                or self.learned.events + len(self._pending) >= self._most_events
            )
            return _Watched(is_left_out=is_too_much, is_new=not is_too_much)
        except SmaraError as error:
            self._trouble(first.session_id, error)
            return _Watched(is_left_out=True)
        if stored.state == "final":
            return _Watched(after_ms=stored.last_event_at)
        is_hooked = bool(
            self._memory.internals.intake.fresh([first])
        )  # no transcript of it was read yet
        return _Watched(is_open=True, hooked_ms=stored.last_event_at if is_hooked else -1)

    def _wants(self, watched: _Watched, event: HostEvent) -> bool:
        if watched.is_left_out or event.at_ms <= watched.after_ms:
            return False
        if watched.hooked_ms < 0:
            return True
        # Without its id, nothing shows that a call is the one that a hook has told of.
        has_ids = HOOKS[event.agent].has_call_ids
        return event.kind in _TOOL_KINDS and (has_ids or event.at_ms > watched.hooked_ms)

    def _trouble(self, session_id: str, error: SmaraError) -> None:
        if len(self.learned.problems) < 10:
            self.learned.problems.append(f"nothing was learned from session {session_id}: {error}")
