"""Read and write watched sessions, scratchpads and signals in the database.

SQL and row mapping only; the store decides nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from smara.behavior.models import BehaviorStatus, FindingVerdict, Noticed, WatchedSession
from smara.behavior.scratchpad import PadSnapshot
from smara.core.escape import from_storable, to_storable
from smara.core.events import HostEvent
from smara.core.items import grouped
from smara.database.database import Row, Session
from smara.database.project_store import ProjectStore
from smara.errors import InvalidInputError, NotFoundError

_SESSION_FIELDS = tuple(field.name for field in fields(WatchedSession))
_SESSION = ", ".join(_SESSION_FIELDS)
_LEAST_PREFIX = 4
_HISTORY = 24
"""Of so many sessions it is looked at what was seen in each."""


class WatchedSessionRow(NamedTuple):
    """A session's facts for the decision."""

    no: int
    version: int
    state: str
    stated_type: str | None
    methodology: str
    work_unit: str | None
    promoted: int
    model_calls: int
    subtasks: int
    agent: str
    finalized_at: int | None
    evidence: str


class SignalRow(NamedTuple):
    """A signal of this project, and what it was made into."""

    no: int
    memory_id: str | None


def key_of(text: str) -> str:
    """Return a signal's bounded lookup key.

    Paths and commands can be longer than an index likes.
    """
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


class BehaviorStore(ProjectStore):
    """The tables of one project."""

    # sessions

    def lock(self, session: Session, event: HostEvent) -> WatchedSessionRow:
        """Return a session's row, created and locked for the transaction."""
        session.run(
            self.sql(
                "INSERT INTO behavior_sessions (project_no, session_id, agent, state, version, "
                "started_at,"
                " last_event_at)"
                " VALUES (:project, ?, ?, 'open', 0, ?, ?) ON CONFLICT (project_no, session_id)"
                " DO UPDATE SET version = behavior_sessions.version + 1"
            ),
            (to_storable(event.session_id), event.agent, event.at_ms, event.at_ms),
        )
        return self.get(session, event.session_id)

    def find(self, session: Session, session_id: str) -> WatchedSessionRow | None:
        row = session.one(
            self.sql(
                "SELECT no, version, state, stated_type, methodology, work_unit, promoted, "
                "model_calls, subtasks, agent, finalized_at, evidence"
                " FROM behavior_sessions WHERE project_no = :project AND session_id = ?"
            ),
            (to_storable(session_id),),
        )
        return None if row is None else WatchedSessionRow(*row)

    def get(self, session: Session, session_id: str) -> WatchedSessionRow:
        """Return a session's row, or raise ``NotFoundError``."""
        row = self.find(session, session_id)
        if row is None:
            raise NotFoundError(
                f"No session {session_id} was watched. `smara behavior sessions` lists them.",
                session_id=session_id,
            )
        return row

    def put(
        self, session: Session, no: int, fields: Mapping[str, Any], version: int | None = None
    ) -> bool:
        """Update a session; with a version, only if it is unchanged."""
        columns = ", ".join(f"{name} = ?" for name in fields)
        where, values = "", (*fields.values(), no)
        if version is not None:
            columns += ", version = version + 1"
            where, values = " AND version = ?", (*values, version)
        statement = (
            f"UPDATE behavior_sessions SET {columns} WHERE project_no = :project AND no = ?{where}"
        )
        return session.run(self.sql(statement), values) == 1

    def count_events(
        self, session: Session, no: int, count: int, last_at: int, is_ended: bool
    ) -> None:
        session.run(
            self.sql(
                "UPDATE behavior_sessions SET events = events + ?, state = ?,"
                " last_event_at = CASE WHEN last_event_at < ? THEN ? ELSE last_event_at END"
                " WHERE project_no = :project AND no = ?"
            ),
            (count, "ended" if is_ended else "open", last_at, last_at, no),
        )

    def sessions(
        self, session: Session, rest: str, values: Sequence[Any] = ()
    ) -> list[WatchedSession]:
        rows = session.all(
            self.sql(f"SELECT {_SESSION} FROM behavior_sessions WHERE project_no = :project{rest}"),
            values,
        )
        return list(map(_session, rows))

    def session(self, session: Session, beginning: str, is_whole: bool = False) -> WatchedSession:
        """Return the session whose id begins so, an equal one first."""
        given = to_storable(beginning)
        begins = " AND substr(session_id, 1, ?) = ? ORDER BY length(session_id) LIMIT 2"
        found = self.sessions(session, begins, (len(given), given))
        if not found or is_whole or len(given) < _LEAST_PREFIX:
            return self.sessions(session, " AND no = ?", (self.get(session, beginning).no,))[0]
        if len(found) > 1 and found[0].session_id != beginning:
            raise InvalidInputError(
                f"Several sessions begin with {beginning!r}. Give more of the id.",
                field="session_id",
            )
        return found[0]

    # events and scratchpads

    def pads(self, session: Session, no: int) -> dict[str, list[bytes]]:
        """Return a session's scratchpads by their parts."""
        rows = session.all(
            self.sql(
                "SELECT part, pad FROM behavior_pads WHERE project_no = :project AND session_no = ?"
                " ORDER BY part, number"
            ),
            (no,),
        )
        return grouped((from_storable(part), bytes(pad)) for part, pad in rows)

    def put_pad(
        self, session: Session, no: int, part: str, saved: PadSnapshot, now_ms: int
    ) -> None:
        """Store a scratchpad whole, or its changes."""
        if saved.number == 0:
            session.run(
                self.sql(
                    "DELETE FROM behavior_pads WHERE project_no = :project AND session_no = ? AND "
                    "part = ?"
                ),
                (no, to_storable(part)),
            )
        session.run(
            self.sql(
                "INSERT INTO behavior_pads (session_no, part, number, project_no, pad, updated_at)"
                " VALUES (?, ?, ?, :project, ?, ?)"
            ),
            (no, to_storable(part), saved.number, saved.data, now_ms),
        )

    def clear_pads(self, session: Session, no: int) -> None:
        session.run(
            self.sql("DELETE FROM behavior_pads WHERE project_no = :project AND session_no = ?"),
            (no,),
        )

    # signals and findings

    def signal(self, session: Session, kind: str, key: str) -> SignalRow | None:
        row = session.one(
            self.sql(
                "SELECT no, memory_id FROM behavior_signals WHERE project_no = :project AND kind "
                "= ? AND key = ?"
            ),
            (kind, key_of(key)),
        )
        return None if row is None else SignalRow(*row)

    def history(
        self, session: Session, signal_no: int, but_session: int
    ) -> list[tuple[dict[str, Any], int]]:
        """Return findings of other valid sessions, newest first.

        (what was seen, as how many sessions it counts).
        """
        rows = session.all(
            self.sql(
                "SELECT data, counts_as FROM behavior_findings WHERE project_no = :project AND "
                "signal_no = ?"
                " AND session_no <> ? AND is_valid = 1 ORDER BY found_at DESC, session_no DESC "
                f"LIMIT {_HISTORY}"
            ),
            (signal_no, but_session),
        )
        return [(data_of(row[0]), int(row[1])) for row in rows]

    def edit_sessions(self, session: Session, paths: Sequence[str]) -> dict[str, int]:
        """In how many sessions files were edited, those that have ended before."""
        rows = self.rows(
            session,
            "SELECT file_path, edit_session_count FROM observer_file_nodes"
            " WHERE project_no = :project AND file_path IN (:some)",
            some=[to_storable(path) for path in paths],
        )
        return {from_storable(row[0]): row[1] for row in rows}

    def changing_sessions(self, session: Session) -> int:
        """Count the ended sessions that changed files."""
        return self.number(
            session,
            "SELECT count(*) FROM behavior_sessions WHERE project_no = :project AND type = 'build'",
        )

    def is_edge_promoted(self, session: Session, first: str, second: str) -> bool:
        """Return True if a pair of files is a memory already."""
        a, b = sorted((first, second))
        row = session.one(
            self.sql(
                "SELECT promoted_at FROM observer_co_access_edges"
                " WHERE project_no = :project AND file_a = ? AND file_b = ?"
            ),
            (to_storable(a), to_storable(b)),
        )
        return row is not None and row[0] is not None

    def mark_edge_promoted(self, session: Session, first: str, second: str, now_ms: int) -> None:
        """Note that a pair of files has become a memory."""
        a, b = sorted((first, second))
        session.run(
            self.sql(
                "UPDATE observer_co_access_edges SET promoted_at = ?"
                " WHERE project_no = :project AND file_a = ? AND file_b = ?"
            ),
            (now_ms, to_storable(a), to_storable(b)),
        )

    def promoted_data(self, session: Session, kind: str, limit: int = 200) -> list[dict[str, Any]]:
        """Return the data of promoted findings of a kind."""
        rows = session.all(
            self.sql(
                "SELECT f.data FROM behavior_signals s JOIN behavior_findings f"
                " ON f.project_no = s.project_no AND f.signal_no = s.no"
                " WHERE s.project_no = :project AND s.kind = ? AND s.memory_id IS NOT NULL AND "
                "f.verdict = 'promoted'"
                " ORDER BY s.no DESC LIMIT ?"
            ),
            (kind, limit),
        )
        return [data_of(row[0]) for row in rows]

    def put_finding(
        self, session: Session, session_no: int, judged: FindingVerdict, now_ms: int
    ) -> None:
        """Write what became of a finding; what was promoted once stays so."""
        from smara.behavior.signals.registry import signal_of  # it loads every signal

        finding = judged.finding
        is_promoted = judged.verdict == "promoted"
        signal_no = self.number(
            session,
            "INSERT INTO behavior_signals (project_no, kind, key, subject, first_at, last_at, "
            "promoted_at,"
            " memory_id)"
            " VALUES (:project, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project_no, kind, key) DO "
            "UPDATE SET"
            " last_at = excluded.last_at, subject = excluded.subject,"
            " promoted_at = coalesce(behavior_signals.promoted_at, excluded.promoted_at),"
            " memory_id = coalesce(behavior_signals.memory_id, excluded.memory_id) RETURNING no",
            finding.kind,
            key_of(finding.key),
            to_storable(finding.subject),
            now_ms,
            now_ms,
            now_ms if is_promoted else None,
            judged.memory_id if is_promoted or judged.verdict == "known" else None,
        )
        session.run(
            self.sql(
                "INSERT INTO behavior_findings (signal_no, session_no, project_no, value, step, "
                "counts_as,"
                " is_valid, taint,"
                " data, verdict, why, memory_id, found_at) VALUES (?, ?, :project, ?, ?, ?, ?, ?, "
                "?, ?, ?, ?, ?)"
                " ON CONFLICT (signal_no, session_no) DO UPDATE SET counts_as = excluded.counts_as,"
                " is_valid = excluded.is_valid, taint = excluded.taint, data = excluded.data,"
                " verdict = CASE WHEN behavior_findings.verdict = 'promoted' THEN 'promoted' ELSE "
                "excluded.verdict END,"
                " why = CASE WHEN behavior_findings.verdict = 'promoted' THEN "
                "behavior_findings.why ELSE"
                " excluded.why END,"
                " memory_id = coalesce(behavior_findings.memory_id, excluded.memory_id), found_at "
                "= excluded.found_at"
            ),
            (
                signal_no,
                session_no,
                signal_of(judged.finding.kind).value,
                finding.step,
                finding.counts_as,
                int(judged.is_valid),
                " ".join(judged.taint),
                to_storable(json.dumps(dict(finding.data))),
                judged.verdict,
                to_storable(judged.why),
                judged.memory_id,
                now_ms,
            ),
        )

    def noticed(self, session: Session, session_no: int) -> list[Noticed]:
        rows = session.all(
            self.sql(
                "SELECT s.kind, s.subject, f.value, f.verdict, f.why, f.step, f.memory_id, "
                "f.taint, f.data,"
                " (SELECT count(*) FROM behavior_findings o WHERE o.project_no = :project AND "
                "o.signal_no = s.no)"
                " FROM behavior_findings f JOIN behavior_signals s ON s.no = f.signal_no"
                " WHERE f.project_no = :project AND f.session_no = ? ORDER BY f.value DESC, "
                "f.step, s.no"
            ),
            (session_no,),
        )
        return [
            Noticed(
                row[0],
                from_storable(row[1]),
                row[2],
                sessions=row[9],
                verdict=row[3],
                why=from_storable(row[4]),
                step=row[5],
                memory_id=row[6],
                taint=tuple(row[7].split()),
                data=data_of(row[8]),
            )
            for row in rows
        ]

    def status(self, session: Session) -> BehaviorStatus:
        """Count for a person to look at."""
        states: dict[str, int] = dict(
            session.all(
                self.sql(
                    "SELECT state, count(*) FROM behavior_sessions WHERE project_no = :project"
                    " GROUP BY state"
                )
            )
        )
        kinds: dict[str, int] = dict(
            session.all(
                self.sql(
                    "SELECT kind, count(*) FROM behavior_signals WHERE project_no = :project"
                    " GROUP BY kind ORDER BY kind"
                )
            )
        )
        row = session.one(
            self.sql(
                "SELECT (SELECT max(last_event_at) FROM behavior_sessions"
                " WHERE project_no = :project),"
                " (SELECT count(*) FROM behavior_signals WHERE project_no = :project"
                " AND promoted_at IS NOT NULL),"
                " (SELECT count(*) FROM observer_file_nodes WHERE project_no = :project),"
                " (SELECT count(*) FROM observer_co_access_edges WHERE project_no = :project),"
                " (SELECT count(*) FROM observer_error_patterns WHERE project_no = :project),"
                " (SELECT count(*) FROM observer_module_session_counts WHERE project_no = :project)"
            )
        )
        last, promoted, files, edges, errors, modules = row or (None, 0, 0, 0, 0, 0)
        signals = sum(kinds.values())
        return BehaviorStatus(
            **states,
            signals=signals,
            promoted=promoted,
            waiting=signals - promoted,
            last_event_at=last,
            files=files,
            edges=edges,
            errors=errors,
            modules=modules,
            by_kind=kinds,
        )

    # what is due

    def due(self, session: Session, idle_before: int, limit: int) -> list[str]:
        """Return sessions that ended or went silent, oldest first."""
        rows = session.all(
            self.sql(
                "SELECT session_id FROM behavior_sessions WHERE project_no = :project"
                " AND (state = 'ended' OR (state = 'open' AND last_event_at <= ?)) ORDER BY "
                "last_event_at, no LIMIT ?"
            ),
            (idle_before, limit),
        )
        return [from_storable(row[0]) for row in rows]

    def job_times(self, session: Session) -> dict[str, int]:
        """Return when each job was last done."""
        rows = session.all(
            self.sql("SELECT name, last_at FROM behavior_jobs WHERE project_no = :project")
        )
        return {row[0]: row[1] for row in rows}

    def claim_job(self, session: Session, name: str, now_ms: int, every_ms: int) -> bool:
        """Claim a periodic job; return True if it is due."""
        session.run(
            self.sql(
                "INSERT INTO behavior_jobs (project_no, name, last_at) VALUES (:project, ?, ?)"
                " ON CONFLICT (project_no, name) DO NOTHING"
            ),
            (name, now_ms - every_ms),
        )
        statement = (
            "UPDATE behavior_jobs SET last_at = ? WHERE project_no = :project AND name = "
            "? AND last_at <= ?"
        )
        return session.run(self.sql(statement), (now_ms, name, now_ms - every_ms)) == 1


_OLD_KEYS = {
    "q": "quote", "cmd": "command", "a": "first", "b": "second", "lang": "language",
    "env": "is_environment",
}  # fmt: skip


def data_of(stored: str) -> dict[str, Any]:
    """Return the data of a stored finding, old short keys as words."""
    return {
        _OLD_KEYS.get(key, key): each for key, each in json.loads(from_storable(stored)).items()
    }


def _session(row: Row) -> WatchedSession:
    columns = dict(zip(_SESSION_FIELDS, row, strict=True))
    texts = {name: from_storable(columns[name]) for name in ("session_id", "why", "evidence")}
    return WatchedSession(**{**columns, **texts, "evidence": tuple(texts["evidence"].splitlines())})


def by_session(events: Iterable[HostEvent]) -> dict[str, list[HostEvent]]:
    """Group events by session, in one order for locking."""
    return dict(sorted(grouped((event.session_id, event) for event in events).items()))
