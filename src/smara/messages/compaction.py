"""Show old messages as summaries without changing any message.

Runs of old messages get a summary; runs of old summaries are folded into one. A compaction
can be undone, because the messages stay in the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from smara.core import log
from smara.core.escape import to_storable
from smara.core.extract import code_lines, distinct, first_sentence, fit, names_in
from smara.core.scope import is_id, require_id
from smara.core.startup.record import dataclass
from smara.database.database import Session
from smara.database.projects import ProjectContext
from smara.errors import InvalidInputError, NotFoundError
from smara.messages.models import Compaction, Message
from smara.messages.store import MessageStore, compaction_of
from smara.secrets import redact

FOLD = 3
"""How many level-1 summaries one level-2 summary stands for."""

_COLUMNS = (
    "id, level, start_seq, end_seq, message_count, summary, code, method, created_at, undone_at"
)


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The result of a compaction."""

    compactions: tuple[Compaction, ...]
    messages_compacted: int
    messages_whole: int


def runs_due(whole: Sequence[int], after_messages: int, run_messages: int) -> list[tuple[int, int]]:
    """The runs to summarize, as (first, last) sequence numbers, oldest first.

    A run is taken while at least ``after_messages`` are whole, and never spans a gap.

    >>> runs_due(range(1, 31), 30, 10)
    [(1, 10)]
    >>> runs_due(range(1, 41), 30, 10)
    [(1, 10), (11, 20)]
    >>> runs_due(range(1, 30), 30, 10)
    []
    """
    found: list[tuple[int, int]] = []
    left = list(whole)
    while left and len(left) >= max(after_messages, 1):
        run = left[:run_messages]
        gap = next((at for at in range(1, len(run)) if run[at] != run[at - 1] + 1), len(run))
        found.append((run[0], run[gap - 1]))
        left = left[gap:]
    return found


def folds_due(
    level_1: Sequence[tuple[int, int]], last_seq: int, archive_after: int
) -> list[tuple[int, int]]:
    """The stretches of three adjacent level-1 runs that lie ``archive_after`` messages back.

    >>> folds_due([(1, 10), (11, 20), (21, 30)], 120, 90)
    [(1, 30)]
    >>> folds_due([(1, 10), (11, 20), (21, 30)], 119, 90)
    []
    """
    old = [run for run in level_1 if run[1] <= last_seq - archive_after]
    found: list[tuple[int, int]] = []
    at = 0
    while at + FOLD <= len(old):
        group = old[at : at + FOLD]
        if all(left[1] + 1 == right[0] for left, right in pairwise(group)):
            found.append((group[0][0], group[-1][1]))
            at += FOLD
        else:
            at += 1
    return found


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a run: text and code lines worth keeping."""

    text: str
    code: str = ""
    method: str | None = None
    """How it was made, where that is not how its summarizer makes them all."""


class Summarizer(Protocol):
    """Turns a run of messages into a summary.

    ``method`` is stored with every summary that does not name its own.
    """

    method: str

    def summarize(self, messages: Sequence[Message], level: int) -> Summary: ...


_READ_CHARACTERS = 6_000
_NAMES_CHARACTERS = 2_000


class OfflineSummarizer:
    """Deterministic, fast, no key: keeps requests, names and defining lines."""

    method = "offline-1"

    def summarize(self, messages: Sequence[Message], level: int) -> Summary:
        """One run as text.

        Level 2 keeps the requests and the names alone.
        """
        texts = [(message.role, message.raw_content[:_READ_CHARACTERS]) for message in messages]
        budget = 900 if level == 1 else 360
        requests = [first_sentence(text) for role, text in texts if role == "user"]
        answers = [first_sentence(text) for role, text in texts if role == "assistant"]
        names = distinct(name for _, text in texts for name in names_in(text[:_NAMES_CHARACTERS]))
        lines = []
        for label, items, characters, separator in (
            ("User asked", requests, budget // 2, "; "),
            ("Assistant", answers if level == 1 else [], budget // 3, "; "),
            ("Names", names, budget // 2, ", "),
        ):
            stripped = filter(None, (item.rstrip(".;, ") for item in items))
            fitting = fit(distinct(stripped), characters)
            if fitting:
                lines.append(f"{label}: {separator.join(fitting)}.")
        text = " ".join(lines) or first_sentence(texts[0][1] if texts else "")
        code = "\n".join(fit(code_lines(text for _, text in texts), 1_200)) if level == 1 else ""
        return Summary(text or "(nothing but empty messages)", code)


class _CompactionConflictError(Exception):
    """Another process compacted the same messages first; the transaction is undone."""


class Compactions:
    """Compacts the threads of one project, by trigger or by command."""

    def __init__(
        self, project: ProjectContext, store: MessageStore, summarizer: Summarizer
    ) -> None:
        self._project = project
        self._store = store
        self._summarizer = summarizer
        self._settings = project.settings

    def compact_when_due(self, thread_id: str, newest: Sequence[Message] = ()) -> CompactionResult:
        """Compact what the rules say is old enough.

        Args:
            thread_id: The thread to compact.
            newest: Messages at the thread's end that the caller has at hand.

        Returns:
            The compactions that were made, none if nothing is due, and how many messages are
            compacted and whole.

        Raises:
            NotFoundError: If there is no such thread.
        """
        if newest and newest[-1].seq < self._settings.compact_after_messages:
            return CompactionResult((), 0, newest[-1].seq)
        return self._compact(thread_id, self._settings.compact_after_messages, at_hand=newest)

    def compact(self, thread_id: str, keep: int = 0) -> CompactionResult:
        """Compact every whole message but the newest ``keep``, now.

        Args:
            thread_id: The thread to compact.
            keep: How many of the newest messages stay whole.

        Returns:
            The compactions that were made, and how many messages are compacted and whole.

        Raises:
            NotFoundError: If there is no such thread.
            InvalidInputError: If the project keeps vectors only.
        """
        if self._settings.keep == "vectors":
            raise InvalidInputError(
                "This project keeps vectors and no words of conversations, so that there are no"
                " summaries of them."
            )
        return self._compact(thread_id, 1, keep, undone_too=True)

    def end_session(self, thread_id: str) -> CompactionResult:
        """Compact the full runs left at a session's end.

        Args:
            thread_id: The thread of the session.

        Returns:
            The compactions that were made, and how many messages are compacted and whole.

        Raises:
            NotFoundError: If there is no such thread.
        """
        return self._compact(thread_id, self._settings.compact_run_messages)

    def reaches_to(self, thread_id: str, keep: int = 0, is_when_due: bool = False) -> int:
        """Return the last message of the summaries, made or due; or 0.

        Args:
            thread_id: The thread.
            keep: How many of the newest messages stay whole.
            is_when_due: True for what ``compact_when_due`` would do, not ``compact``.

        Returns:
            A sequence number; 0 without a summary.

        Raises:
            NotFoundError: If there is no such thread.
        """
        thread_no, last_seq = self._thread(thread_id)
        after = self._settings.compact_after_messages if is_when_due else 1
        _, runs = self._runs(thread_no, last_seq, after, keep=keep, undone_too=not is_when_due)
        in_force = self._in_force(thread_no)
        return max(runs[-1][1] if runs else 0, in_force[-1][2] if in_force else 0)

    def renew(self, thread_id: str, method: str) -> int:
        """Renew the summaries of a method where a better one exists.

        Their ids stay, and with them what can be undone.

        Args:
            thread_id: The thread whose summaries are renewed.
            method: The method that made them, such as ``offline-1``.

        Returns:
            How many were renewed.

        Raises:
            NotFoundError: If there is no such thread.
        """
        thread_no, _ = self._thread(thread_id)
        rows = self._store.ask(
            self._store.rows,
            "SELECT no, level, start_seq, end_seq FROM compactions"
            " WHERE project_no = :project AND thread_no = ?"
            " AND undone_at IS NULL AND method = ? ORDER BY start_seq, no",
            thread_no,
            method,
        )
        better = []
        for no, level, first, last in rows:
            there = self._messages(thread_no, first, last)
            if there and (made := self._make((first, last), there, level)).method != method:
                words = to_storable(made.summary), to_storable(made.code), made.method
                better.append((*words, no, method))
        if better:
            with self._store.database.write(is_derived=True) as session:
                session.run_many(
                    self._store.sql(
                        "UPDATE compactions SET summary = ?, code = ?, method = ?"
                        " WHERE project_no = :project AND no = ? AND method = ?"
                    ),
                    better,
                )
        return len(better)

    def _compact(
        self,
        thread_id: str,
        after_messages: int,
        keep: int = 0,
        undone_too: bool = False,
        at_hand: Sequence[Message] = (),
    ) -> CompactionResult:
        thread_no, last_seq = self._thread(thread_id)
        whole, runs = self._runs(
            thread_no, last_seq, after_messages, keep=keep, undone_too=undone_too
        )
        made = self._attempt(thread_no, 1, runs, at_hand) if runs else []
        is_long = last_seq > self._settings.archive_after_messages
        folds = self._folds(thread_no, last_seq, undone_too) if is_long else []
        folded = self._attempt(thread_no, 2, folds) if folds else []
        compacted = sum(compaction.message_count for compaction in made)
        if made or folded:
            log.event("thread.compacted", thread=thread_id, messages=compacted, folded=len(folded))
        return CompactionResult((*made, *folded), compacted, len(whole) - compacted)

    def _thread(self, thread_id: str) -> tuple[int, int]:
        row = self._store.ask(
            self._store.row,
            "SELECT no, last_seq FROM threads WHERE project_no = :project AND id = ?",
            require_id(thread_id, "thread_id"),
        )
        if row is None:
            raise NotFoundError(
                f"There is no thread {thread_id!r} in this project.", thread_id=thread_id
            )
        return int(row[0]), int(row[1])

    def _runs(
        self, thread_no: int, last_seq: int, after_messages: int, keep: int, undone_too: bool
    ) -> tuple[Sequence[int], list[tuple[int, int]]]:
        """Return the messages that are shown whole, and the runs of them that are due.

        Messages whose compaction a person undid are left out, unless ``undone_too``: only
        an explicit command compacts them again.
        """
        whole: Sequence[int]
        if undone_too:
            compacted = [range(first, last + 1) for _, first, last in self._in_force(thread_no)]
            inside = {seq for run in compacted for seq in run}
            whole = [seq for seq in range(1, last_seq + 1) if seq not in inside]
        else:
            last = self._store.ask(
                self._store.number,
                "SELECT coalesce(max(end_seq), 0) FROM compactions"
                " WHERE project_no = :project AND thread_no = ?",
                thread_no,
            )
            whole = range(last + 1, last_seq + 1)
        due = whole[: max(0, len(whole) - keep)] if keep else whole
        return whole, runs_due(due, after_messages, self._settings.compact_run_messages)

    def _in_force(self, thread_no: int) -> list[tuple[int, int, int]]:
        """Return (level, first, last) of the compactions that are shown, oldest first."""
        rows = self._store.ask(
            self._store.rows,
            "SELECT level, start_seq, end_seq FROM compactions WHERE project_no = "
            ":project AND thread_no = ?"
            " AND parent_no IS NULL AND undone_at IS NULL ORDER BY start_seq",
            thread_no,
        )
        return [(int(row[0]), int(row[1]), int(row[2])) for row in rows]

    def _folds(self, thread_no: int, last_seq: int, undone_too: bool) -> list[tuple[int, int]]:
        """Return the archives that are due, but for those a person has undone.

        A command makes them again.
        """
        level_1 = [(first, last) for level, first, last in self._in_force(thread_no) if level == 1]
        due = folds_due(level_1, last_seq, self._settings.archive_after_messages)
        if undone_too or not due:
            return due
        rows = self._store.ask(
            self._store.rows,
            "SELECT start_seq, end_seq FROM compactions WHERE project_no = :project AND "
            "thread_no = ?"
            " AND level = 2 AND undone_at IS NOT NULL",
            thread_no,
        )
        undone = {(int(row[0]), int(row[1])) for row in rows}
        return [stretch for stretch in due if stretch not in undone]

    def _attempt(
        self,
        thread_no: int,
        level: int,
        stretches: Sequence[tuple[int, int]],
        at_hand: Sequence[Message] = (),
    ) -> list[Compaction]:
        """Summarize stretches and write them together; nothing if another process was faster."""
        first, last = stretches[0][0], stretches[-1][1]
        is_at_hand = (
            bool(at_hand)
            and at_hand[0].seq <= first
            and at_hand[-1].seq - at_hand[0].seq + 1 == len(at_hand)
        )
        found = at_hand if is_at_hand else self._messages(thread_no, first, last)
        made = [
            self._make(stretch, there, level)
            for stretch in stretches
            # Messages that were erased leave gaps; a stretch of which nothing is left needs no
            # summary.
            if (there := [message for message in found if stretch[0] <= message.seq <= stretch[1]])
        ]
        try:
            with self._store.database.write(is_derived=True) as session:
                session.run(
                    self._store.sql(
                        "UPDATE threads SET last_seq = last_seq WHERE project_no = :project AND "
                        "no = ?"
                    ),
                    (thread_no,),
                )
                for compaction in made:
                    self._write(session, thread_no, compaction)
        except _CompactionConflictError:
            return []
        return made

    def _write(self, session: Session, thread_no: int, compaction: Compaction) -> None:
        """Write one compaction.

        What it covers must be whole, or for level 2 exactly three of level 1. The latter become
        its children and stay, for undo.
        """
        stretch = (thread_no, compaction.start_seq, compaction.end_seq)
        rows = session.all(
            self._store.sql(
                "SELECT level FROM compactions WHERE project_no = :project AND thread_no = ? AND "
                "end_seq >= ?"
                " AND start_seq <= ? AND parent_no IS NULL AND undone_at IS NULL"
            ),
            stretch,
        )
        if [row[0] for row in rows] != ([] if compaction.level == 1 else [1] * FOLD):
            raise _CompactionConflictError
        no = self._store.number(
            session,
            "INSERT INTO compactions (project_no, thread_no, id, level, start_seq, end_seq, "
            "message_count, summary, code, method, created_at)"
            " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING no",
            thread_no,
            compaction.id,
            compaction.level,
            compaction.start_seq,
            compaction.end_seq,
            compaction.message_count,
            to_storable(compaction.summary),
            to_storable(compaction.code),
            compaction.method,
            compaction.created_at,
        )
        if compaction.level == 2:
            session.run(
                self._store.sql(
                    "UPDATE compactions SET parent_no = ? WHERE project_no = :project AND "
                    "thread_no = ?"
                    " AND end_seq >= ? AND start_seq <= ? AND parent_no IS NULL AND undone_at IS "
                    "NULL AND level = 1"
                ),
                (no, *stretch),
            )

    def _messages(self, thread_no: int, first: int, last: int) -> list[Message]:
        return self._store.ask(
            self._store.between, thread_no, first - 1, last + 1, last - first + 1
        )

    def _make(
        self, stretch: tuple[int, int], messages: Sequence[Message], level: int
    ) -> Compaction:
        summary = self._summarizer.summarize(messages, level)
        return Compaction(
            id=self._project.new_id(),
            level=level,
            start_seq=stretch[0],
            end_seq=stretch[1],
            message_count=len(messages),
            summary=redact(summary.text).text,
            code=redact(summary.code).text,
            method=summary.method or self._summarizer.method,
            created_at=self._project.clock.now_ms(),
        )

    def list(self, thread_id: str) -> list[Compaction]:
        """Return the compactions of a thread, oldest first.

        Folded and undone ones are among them.

        Args:
            thread_id: The thread; one that does not exist has no compactions.

        Returns:
            The compactions with their levels and states.
        """
        rows = self._store.ask(
            self._store.rows,
            f"SELECT {_COLUMNS} FROM compactions WHERE project_no = :project AND "
            "thread_no ="
            " (SELECT no FROM threads WHERE project_no = :project AND id = ?) ORDER BY "
            "start_seq, no",
            require_id(thread_id, "thread_id"),
        )
        return [compaction_of(row) for row in rows]

    def undo(self, compaction_id: str) -> Compaction:
        """Show the messages of a compaction as before; safe to repeat.

        A level-2 compaction gives way to the level-1 summaries it was made of; undoing one of
        those undoes the archive around it, too.

        Args:
            compaction_id: The id of a compaction, as :meth:`list` shows it.

        Returns:
            The compaction, with the time at which it was undone.

        Raises:
            NotFoundError: If there is no such compaction.
        """
        columns = f"{_COLUMNS}, no, parent_no, thread_no"
        statement = f"SELECT {columns} FROM compactions WHERE project_no = :project"
        with self._store.database.write() as session:
            select = self._store.sql(f"{statement} AND id = ?")
            row = session.one(select, (compaction_id,)) if is_id(compaction_id) else None
            if row is None:
                raise NotFoundError(
                    f"There is no compaction {compaction_id!r} in this project.", id=compaction_id
                )
            no, parent_no = row[10:12]
            # An archive hides it; the other summaries of the archive stay.
            is_in_force = row[9] is None
            if is_in_force and parent_no is not None:
                self._mark_undone(session, parent_no)
            if is_in_force:
                self._mark_undone(session, no)
            undone = compaction_of((session.one(select, (compaction_id,)) or row)[:10])
            if is_in_force:
                # What was observed when it was compacted is shown as it was said again.
                [thread] = self._store.threads_by_numbers(session, [row[12]]).values()
                after = undone.start_seq - 1
                if thread.raw_after is not None:
                    after = min(after, thread.raw_after)
                self._store.put_outlook(session, thread.id, rawAfter=after)
            return undone

    def _mark_undone(self, session: Session, no: int) -> None:
        """Let go of what a compaction holds, and note when it was undone."""
        session.run(
            self._store.sql(
                "UPDATE compactions SET parent_no = NULL WHERE project_no = :project AND "
                "parent_no = ?"
            ),
            (no,),
        )
        session.run(
            self._store.sql(
                "UPDATE compactions SET undone_at = ? WHERE project_no = :project AND no = ?"
            ),
            (self._project.clock.now_ms(), no),
        )
