"""Update the rolling tables when a session ends.

They count what sessions have in common, without a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smara.actions.failures import ABSENT_WORDS, lacking
from smara.actions.paths import module_of
from smara.behavior.scratchpad import Entry, Pad
from smara.behavior.signals.step_overrun import main_module
from smara.behavior.store import BehaviorStore
from smara.core.escape import from_storable, to_storable
from smara.core.ids import IdMaker
from smara.database.database import Session, marks, parts

_MOST_FILES = 400
_MOST_PAIRS = 400
_MOST_SESSIONS = 50


class SessionEnd(NamedTuple):
    """A session that is counted."""

    session_id: str
    type: str
    methodology: str
    now_ms: int


class RollingTables:
    """The rolling tables of one project."""

    def __init__(self, store: BehaviorStore, new_id: IdMaker) -> None:
        self._store = store
        self._new_id = new_id

    def count(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        """Count a session under the lock of the project's memories."""
        files: dict[str, Entry] = {}
        for pad in pads:
            for path, entry in pad["files"]:
                known = files.setdefault(path, {"n": 0, "e": 0, "r": 0})
                for name in ("n", "e", "r"):
                    known[name] += entry.get(name, 0)
        self._files(session, files, ended)
        self._pairs(session, pads, ended)
        self._errors(session, pads, ended)
        self._modules(session, files, ended)
        self._calibrate(session, pads, ended)

    def _files(self, session: Session, files: Mapping[str, Entry], ended: SessionEnd) -> None:
        most = sorted(files.items(), key=lambda item: (-item[1]["n"], item[0]))[:_MOST_FILES]
        session.run_many(
            self._store.sql(
                "INSERT INTO observer_file_nodes (project_no, file_path, access_count, "
                "edit_count, session_count,"
                " edit_session_count, last_accessed_at) VALUES (:project, ?, ?, ?, 1, ?, ?)"
                " ON CONFLICT (project_no, file_path) DO UPDATE SET"
                " access_count = observer_file_nodes.access_count + excluded.access_count,"
                " edit_count = observer_file_nodes.edit_count + excluded.edit_count,"
                " session_count = observer_file_nodes.session_count + 1,"
                " edit_session_count = observer_file_nodes.edit_session_count + "
                "excluded.edit_session_count,"
                " last_accessed_at = excluded.last_accessed_at"
            ),
            [
                (to_storable(path), each["n"], each["e"], int(bool(each["e"])), ended.now_ms)
                for path, each in most
            ],
        )

    def _pairs(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        pairs: dict[str, list[int]] = {}
        for pad in pads:
            for key, entry in pad["pairs"]:
                sums = pairs.setdefault(key, [0, 0, 0, 0])
                for position, name in enumerate(("n", "d", "l", "e")):
                    sums[position] += entry.get(name, 0)
        most = dict(
            sorted(pairs.items(), key=lambda item: (-item[1][3], -item[1][0], item[0]))[
                :_MOST_PAIRS
            ]
        )
        keys = [tuple(map(to_storable, key.split("|", 1))) for key in most]
        before = self._edges(session, keys)
        rows = []
        for pair, (count, apart, lead, edits) in zip(keys, most.values(), strict=True):
            raw, sessions, edited, average, direction, breakdown = before.get(
                pair, (0, 0, 0, 0.0, 0, {})
            )
            breakdown = {**breakdown, ended.type: breakdown.get(ended.type, 0) + 1}
            average = (average * raw + apart) / (raw + count)
            edited += int(edits > 0)
            sessions += 1
            weight = round(sessions + edited + min(count, 10) / 10, 3)
            sign = (lead > 0) - (lead < 0)
            rows.append(
                (
                    *pair,
                    weight,
                    raw + count,
                    sessions,
                    edited,
                    average,
                    direction + sign,
                    json.dumps(breakdown),
                    ended.now_ms,
                )
            )
        session.run_many(
            self._store.sql(
                "INSERT INTO observer_co_access_edges (project_no, file_a, file_b, weight, "
                "raw_count, session_count,"
                " edit_session_count, avg_time_delta_ms, directional, task_type_breakdown, "
                "last_observed_at)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (project_no, "
                "file_a, file_b) DO"
                " UPDATE SET"
                " weight = excluded.weight, raw_count = excluded.raw_count, session_count = "
                "excluded.session_count,"
                " edit_session_count = excluded.edit_session_count, avg_time_delta_ms = "
                "excluded.avg_time_delta_ms,"
                " directional = excluded.directional, task_type_breakdown = "
                "excluded.task_type_breakdown,"
                " last_observed_at = excluded.last_observed_at"
            ),
            rows,
        )

    def _edges(
        self, session: Session, keys: Sequence[tuple[str, ...]]
    ) -> dict[tuple[str, ...], tuple[Any, ...]]:
        wanted = set(keys)
        firsts = sorted({key[0] for key in keys})
        found: dict[tuple[str, ...], tuple[Any, ...]] = {}
        for part in parts(firsts):
            rows = session.all(
                self._store.sql(
                    "SELECT file_a, file_b, raw_count, session_count, edit_session_count, "
                    "avg_time_delta_ms,"
                    " directional,"
                    " task_type_breakdown FROM observer_co_access_edges"
                    f" WHERE project_no = :project AND file_a IN ({marks(len(part))})"
                ),
                part,
            )
            for row in rows:
                if (row[0], row[1]) in wanted:
                    found[(row[0], row[1])] = (*row[2:5], row[5] or 0.0, row[6], json.loads(row[7]))
        return found

    def _errors(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        for pad in pads:
            main = main_module(pad)
            for print_, entry in pad["errors"]:
                row = session.one(
                    self._store.sql(
                        "SELECT sessions, resolved_how, resolved_count FROM observer_error_patterns"
                        " WHERE project_no = :project AND error_fingerprint = ?"
                    ),
                    (print_,),
                )
                sessions = json.loads(row[0]) if row else []
                if ended.session_id not in sessions:
                    sessions = [*sessions, ended.session_id][-_MOST_SESSIONS:]
                self._put_error(session, print_, entry, sessions=sessions, module=main, ended=ended)
        self._worked(session, pads, ended)

    def _worked(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        """Commands that are known to fail, and have worked in this session without failing in
        it.
        """
        failed = {entry["cmd"] for pad in pads for _, entry in pad["errors"]}
        worked = sorted(
            {to_storable(text) for pad in pads for text, _ in pad["worked"] if text not in failed}
        )
        for part in parts(worked):
            session.run(
                self._store.sql(
                    "UPDATE observer_error_patterns SET last_worked_at = ? WHERE project_no = "
                    ":project"
                    f" AND command IN ({marks(len(part))}) AND (last_worked_at IS NULL OR "
                    "last_worked_at < ?)"
                ),
                (ended.now_ms, *part, ended.now_ms),
            )
        self._found(session, pads, ended)

    def _found(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        """Programs that were not there before, and have run in this session."""
        ran = {
            part.split(" ", 1)[0]
            for pad in pads
            for text, _ in pad["worked"]
            for part in text.split(" && ")
        }
        ran -= {
            name
            for pad in pads
            for _, entry in pad["errors"]
            for name in lacking(entry["cmd"], entry["line"])[:1]
        }
        rows = session.all(
            self._store.sql(
                "SELECT error_fingerprint, command, error_message FROM observer_error_patterns"
                " WHERE project_no = :project AND tool_name = 'Bash'"
                " AND (error_message LIKE ? OR error_message LIKE ? OR error_message LIKE ?)"
            ),
            [f"%{words}%" for words in ABSENT_WORDS],
        )
        wanted = {row[0]: lacking(from_storable(row[1]), from_storable(row[2])) for row in rows}
        there = [print_ for print_, words in wanted.items() if len(words) == 1 and words[0] in ran]
        for part in parts(there):
            session.run(
                self._store.sql(
                    "UPDATE observer_error_patterns SET last_worked_at = ? WHERE project_no = "
                    ":project"
                    f" AND error_fingerprint IN ({marks(len(part))})"
                ),
                (ended.now_ms, *part),
            )

    def _put_error(
        self,
        session: Session,
        print_: str,
        entry: Entry,
        sessions: list[str],
        module: str | None,
        ended: SessionEnd,
    ) -> None:
        how = (
            json.dumps(
                {"how": entry["how"], "fix": entry.get("fix"), "files": entry.get("files", [])}
            )
            if entry.get("how")
            else None
        )
        session.run(
            self._store.sql(
                "INSERT INTO observer_error_patterns (project_no, error_fingerprint, id, "
                "tool_name, command,"
                " error_message,"
                " occurrence_count, session_count, first_seen_at, last_seen_at, resolved_how, "
                "resolved_count,"
                " module, sessions)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (project_no, error_fingerprint) DO UPDATE SET command = "
                "excluded.command,"
                " error_message = excluded.error_message,"
                " occurrence_count = observer_error_patterns.occurrence_count + "
                "excluded.occurrence_count,"
                " session_count = observer_error_patterns.session_count + 1,"
                " first_seen_at = CASE WHEN excluded.first_seen_at < "
                "observer_error_patterns.first_seen_at"
                " THEN excluded.first_seen_at ELSE observer_error_patterns.first_seen_at END,"
                " last_seen_at = CASE WHEN excluded.last_seen_at > "
                "observer_error_patterns.last_seen_at"
                " THEN excluded.last_seen_at ELSE observer_error_patterns.last_seen_at END,"
                " resolved_how = coalesce(excluded.resolved_how, "
                "observer_error_patterns.resolved_how),"
                " resolved_count = observer_error_patterns.resolved_count + "
                "excluded.resolved_count,"
                " module = coalesce(excluded.module, observer_error_patterns.module), sessions = "
                "excluded.sessions"
            ),
            (
                print_,
                self._new_id(),
                entry["tool"],
                to_storable(entry["cmd"]),
                to_storable(entry["line"]),
                entry["n"],
                ended.now_ms,
                ended.now_ms,
                to_storable(how) if how else None,
                int(how is not None),
                to_storable(module) if module else None,
                to_storable(json.dumps(sessions)),
            ),
        )

    def _modules(self, session: Session, files: Mapping[str, Entry], ended: SessionEnd) -> None:
        worked = sorted(
            {module for path, each in files.items() if each["e"] and (module := module_of(path))}
        )
        read = sorted(path for path, each in files.items() if each["r"])[:_MOST_FILES]
        for module in worked[:6]:
            session.run(
                self._store.sql(
                    "INSERT INTO observer_module_session_counts (project_no, module, count, "
                    "last_at)"
                    " VALUES (:project, ?, 1, ?) ON CONFLICT (project_no, module)"
                    " DO UPDATE SET count = observer_module_session_counts.count + 1, last_at = "
                    "excluded.last_at"
                ),
                (to_storable(module), ended.now_ms),
            )
            session.run_many(
                self._store.sql(
                    "INSERT INTO observer_module_files (project_no, module, file_path, "
                    "session_count, last_at)"
                    " VALUES (:project, ?, ?, 1, ?) ON CONFLICT (project_no, module, file_path)"
                    " DO UPDATE SET session_count = observer_module_files.session_count + 1, "
                    "last_at = excluded.last_at"
                ),
                [(to_storable(module), to_storable(path), ended.now_ms) for path in read],
            )

    def _calibrate(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        for pad in pads:
            (planned, actual), module = pad.planned(), main_module(pad)
            if planned and module:
                session.run(
                    self._store.sql(
                        "INSERT INTO observer_calibrations (project_no, module, methodology, "
                        "sample_count,"
                        " planned_steps,"
                        " actual_steps, last_at) VALUES (:project, ?, ?, 1, ?, ?, ?)"
                        " ON CONFLICT (project_no, module, methodology) DO UPDATE SET"
                        " sample_count = observer_calibrations.sample_count + 1,"
                        " planned_steps = observer_calibrations.planned_steps + "
                        "excluded.planned_steps,"
                        " actual_steps = observer_calibrations.actual_steps + "
                        "excluded.actual_steps,"
                        " last_at = excluded.last_at"
                    ),
                    (to_storable(module), ended.methodology, planned, actual, ended.now_ms),
                )

    def mark_promoted(self, session: Session, first: str, second: str, now_ms: int) -> None:
        """Note that a pair has become a memory."""
        a, b = sorted((first, second))
        session.run(
            self._store.sql(
                "UPDATE observer_co_access_edges SET promoted_at = ?"
                " WHERE project_no = :project AND file_a = ? AND file_b = ?"
            ),
            (now_ms, to_storable(a), to_storable(b)),
        )
