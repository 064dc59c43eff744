"""Answer questions about habits from the rolling tables.

Known failures, files to prefetch, step calibration, files edited together.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from smara.actions.commands import read_command
from smara.actions.failures import fingerprint, is_harness, lacking, telling_line
from smara.behavior.scratchpad import quote
from smara.behavior.signals.file_access import ALWAYS, FREQUENT
from smara.behavior.store import BehaviorStore
from smara.core.escape import from_storable, to_storable
from smara.core.tool_triggers import program_triggers, starts
from smara.database.database import Row, Session

LEAST_SESSIONS = 3
ERROR_LENGTH = 240
"""So much of the line that tells an error is kept, and compared; see ``running``."""
_MOST_PROGRAMS, _MOST_OF_A_PROGRAM = 6, 50
_MOST_RATIO = 2.0
"""However badly plans went, nobody is told to plan for more than twice as much."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A command that failed here before, and what then worked."""

    command: str
    error: str
    tool: str
    occurrences: int
    sessions: int
    last_seen_at: int
    how: str | None = None
    """What ended it: another ``command``, another one ``first``, an ``edit``, or another
    ``path``.
    """
    fix: str | None = None
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    resolved: int = 0
    """In how many sessions something ended it."""
    worked_since: bool = False
    """Whether the same command has worked in a later session, without failing in it."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """The files that most work on a module reads."""

    module: str
    always: tuple[str, ...]
    frequently: tuple[str, ...]
    sessions: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Steps taken against steps planned."""

    module: str
    methodology: str
    ratio: float
    average_planned: float
    average_actual: float
    samples: int

    @property
    def factor(self) -> float:
        """By what an estimate is multiplied; a few samples prove nothing."""
        return min(_MOST_RATIO, max(1.0, self.ratio)) if self.samples >= LEAST_SESSIONS else 1.0


@dataclass(frozen=True, slots=True)
class FilePair:
    """Two files that are touched together."""

    file_a: str
    file_b: str
    weight: float
    raw_count: int
    session_count: int
    edit_session_count: int
    avg_time_delta_ms: float | None
    directional: int
    task_types: dict[str, int]
    last_observed_at: int
    promoted_at: int | None


class Habits:
    """Reads the rolling tables of one project."""

    def __init__(self, store: BehaviorStore) -> None:
        self._store = store

    def failures_of(self, command: str, limit: int = 3) -> list[KnownFailure]:
        """Return the failures of a command about to run."""
        parsed = read_command(command)
        text = parsed.text if parsed is not None else command.strip()
        with self._store.database.read() as session:
            found = self._failures(
                session,
                " AND command = ? ORDER BY resolved_count DESC, last_seen_at DESC",
                (to_storable(text),),
                limit=limit,
            )
        return [each for each in found if self._applies(each, command)]

    def _applies(self, failure: KnownFailure, command: str) -> bool:
        """Whether a command can fail so: one that says where a program is to be found does not lack
        it.
        """
        needs = lacking(failure.command, failure.error) if failure.tool == "Bash" else ()
        return not needs or starts(command, needs)

    def failures_lacking(self, command: str) -> list[KnownFailure]:
        """Return the missing programs or options of a command.

        Those with the same words together, the most telling first.
        """
        programs = [each.removeprefix("program:") for each in program_triggers(command)][
            :_MOST_PROGRAMS
        ]
        found: list[KnownFailure] = []
        with self._store.database.read() as session:
            for program in programs:
                begin = to_storable(f"{program} ")
                found += self._failures(
                    session,
                    " AND tool_name = 'Bash' AND (substr(command, 1, ?) = ? OR command LIKE ?)"
                    " ORDER BY resolved_count DESC, last_seen_at DESC",
                    (len(begin), begin, f"%=% {begin}%"),  # or behind variables
                    limit=_MOST_OF_A_PROGRAM,
                )
        return [each for each in found if starts(command, lacking(each.command, each.error))]

    def failures_like(self, command: str, told: str) -> list[KnownFailure]:
        """Return the failures with the same error of a program."""
        parsed, line = read_command(command), telling_line(told)
        if parsed is None or not line or is_harness(told):
            return []
        print_ = fingerprint("Bash", parsed.head, quote(line, ERROR_LENGTH))
        with self._store.database.read() as session:
            return self._failures(session, " AND error_fingerprint = ?", (print_,), limit=1)

    def failures(self, limit: int = 50) -> list[KnownFailure]:
        """The errors that come again most often."""
        with self._store.database.read() as session:
            return self._failures(
                session,
                " ORDER BY session_count DESC, occurrence_count DESC, last_seen_at DESC",
                (),
                limit=limit,
            )

    def _failures(
        self, session: Session, rest: str, values: Sequence[str | int], limit: int
    ) -> list[KnownFailure]:
        rows = session.all(
            self._store.sql(
                "SELECT command, error_message, tool_name, occurrence_count, session_count, "
                "last_seen_at, resolved_how,"
                " error_fingerprint, resolved_count, last_worked_at FROM observer_error_patterns"
                f" WHERE project_no = :project{rest} LIMIT ?"
            ),
            (*values, limit),
        )
        return [_failure(row) for row in rows]

    def prefetch(self, module: str) -> Prefetch | None:
        """Return a module's files to read; ``None`` before three sessions."""
        with self._store.database.read() as session:
            row = session.one(
                self._store.sql(
                    "SELECT count FROM observer_module_session_counts WHERE project_no = :project "
                    "AND module = ?"
                ),
                (to_storable(module),),
            )
            total = int(row[0]) if row else 0
            if total < LEAST_SESSIONS:
                return None
            rows = session.all(
                self._store.sql(
                    "SELECT file_path, session_count FROM observer_module_files WHERE project_no "
                    "= :project AND"
                    " module = ?"
                    " AND session_count * 2 > ? ORDER BY session_count DESC, file_path LIMIT 40"
                ),
                (to_storable(module), total),
            )
        shares = [(from_storable(row[0]), row[1] / total) for row in rows]
        always = tuple(path for path, share in shares if share > ALWAYS)
        return Prefetch(
            module,
            always,
            tuple(path for path, share in shares if FREQUENT < share <= ALWAYS),
            sessions=total,
        )

    def calibration(self, module: str, methodology: str = "native") -> Calibration | None:
        with self._store.database.read() as session:
            row = session.one(
                self._store.sql(
                    "SELECT sample_count, planned_steps, actual_steps FROM observer_calibrations"
                    " WHERE project_no = :project AND module = ? AND methodology = ?"
                ),
                (to_storable(module), methodology),
            )
        if row is None or not row[0] or not row[1]:
            return None
        samples, planned, actual = row
        return Calibration(
            module,
            methodology,
            round(actual / planned, 2),
            average_planned=round(planned / samples, 1),
            average_actual=round(actual / samples, 1),
            samples=samples,
        )

    def modules(self, limit: int = 20) -> list[tuple[str, int]]:
        """(module, in how many sessions it was worked on), the most first."""
        with self._store.database.read() as session:
            rows = session.all(
                self._store.sql(
                    "SELECT module, count FROM observer_module_session_counts WHERE project_no = "
                    ":project"
                    " ORDER BY count DESC, module LIMIT ?"
                ),
                (limit,),
            )
        return [(from_storable(row[0]), row[1]) for row in rows]

    def edges(self, path: str | None = None, limit: int = 50) -> list[FilePair]:
        """Return co-changed files, of one file or all, strongest first."""
        where = " AND (file_a = ? OR file_b = ?)" if path is not None else ""
        values = (to_storable(path), to_storable(path)) if path is not None else ()
        with self._store.database.read() as session:
            rows = session.all(
                self._store.sql(
                    "SELECT file_a, file_b, weight, raw_count, session_count, edit_session_count, "
                    "avg_time_delta_ms,"
                    " directional, task_type_breakdown, last_observed_at, promoted_at FROM "
                    "observer_co_access_edges"
                    f" WHERE project_no = :project{where} ORDER BY weight DESC, file_a, file_b "
                    "LIMIT ?"
                ),
                (*values, limit),
            )
        return [
            FilePair(
                from_storable(row[0]),
                from_storable(row[1]),
                row[2],
                raw_count=row[3],
                session_count=row[4],
                edit_session_count=row[5],
                avg_time_delta_ms=row[6],
                directional=row[7],
                task_types=json.loads(row[8]),
                last_observed_at=row[9],
                promoted_at=row[10],
            )
            for row in rows
        ]


def _failure(row: Row) -> KnownFailure:
    solved = json.loads(from_storable(row[6])) if row[6] else {}
    return KnownFailure(
        from_storable(row[0]),
        from_storable(row[1]),
        row[2],
        occurrences=row[3],
        sessions=row[4],
        last_seen_at=row[5],
        how=solved.get("how"),
        fix=solved.get("fix"),
        files=tuple(solved.get("files") or ()),
        fingerprint=row[7],
        resolved=row[8],
        worked_since=row[9] is not None and row[9] > row[5],
    )
