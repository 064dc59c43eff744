"""Count habits of sessions in the rolling tables, and answer from them.

Known failures, files to prefetch, step calibration, files edited together. No model is
asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from smara.actions.commands import read_command
from smara.actions.failures import ABSENT_WORDS, fingerprint, is_harness, lacking, telling_line
from smara.actions.paths import modules_of
from smara.behavior.ledger import FileLedgerEntry, PairEntry
from smara.behavior.scratchpad import Pad, quote
from smara.behavior.signals import read_abandon
from smara.behavior.signals.file_access import ALWAYS, FREQUENT
from smara.behavior.signals.step_overrun import main_module
from smara.behavior.store import BehaviorStore
from smara.core.escape import from_storable, to_storable
from smara.core.ids import IdMaker
from smara.core.startup.record import dataclass
from smara.core.tool_triggers import program_triggers, starts
from smara.database.database import Session
from smara.knowledge.kinds import types_told_at
from smara.knowledge.memories import Memories

LEAST_SESSIONS = 3
ERROR_LENGTH = 240
"""So much of the line that tells an error is kept, and compared; see ``running``."""
_MOST_PROGRAMS, _MOST_OF_A_PROGRAM = 6, 50
_MOST_WARNINGS = 200
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
        """Return the failures of a command about to run.

        Args:
            command: The whole command line.
        """
        parsed = read_command(command)
        text = parsed.text if parsed is not None else command.strip()
        found = self._store.ask(
            self._failures,
            " AND command = ? ORDER BY resolved_count DESC, last_seen_at DESC",
            (to_storable(text),),
            limit=limit,
        )
        # A command that says where a program is to be found does not lack it.
        needs = [lacking(each.command, each.error) if each.tool == "Bash" else () for each in found]
        return [
            each
            for each, words in zip(found, needs, strict=True)
            if not words or starts(command, words)
        ]

    def failures_lacking(self, command: str) -> list[KnownFailure]:
        """Return the missing programs or options of a command.

        Failures with the same words come together, the most telling first.

        Args:
            command: The command line about to run; its first six programs are looked up.
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

    def failures_like(self, command: str, output: str) -> list[KnownFailure]:
        """Return the failures with the same error of a program.

        Args:
            command: The command that has failed now.
            output: What it wrote.

        Returns:
            The one failure with the same fingerprint, or none.
        """
        parsed, line = read_command(command), telling_line(output)
        if parsed is None or not line or is_harness(output):
            return []
        print_ = fingerprint("Bash", parsed.head, quote(line, ERROR_LENGTH))
        return self._store.ask(self._failures, " AND error_fingerprint = ?", (print_,), limit=1)

    def failures(self, limit: int = 50) -> list[KnownFailure]:
        """Return the errors that recur, those of most sessions first."""
        return self._store.ask(
            self._failures,
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
        return [
            KnownFailure(
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
            for row in rows
            for solved in [json.loads(from_storable(row[6])) if row[6] else {}]
        ]

    def module_files(self, module: str, limit: int) -> tuple[int, list[tuple[str, int]]]:
        """Return a module's sessions, and its files with theirs, most first.

        Args:
            module: The module, such as ``smara/tasks``.
            limit: The most files.

        Returns:
            In how many sessions the module was worked on, and for each file in how many it was
            read.
        """
        with self._store.database.read() as session:
            total = self._store.number(
                session,
                "SELECT count FROM observer_module_session_counts"
                " WHERE project_no = :project AND module = ?",
                to_storable(module),
            )
            rows = self._store.rows(
                session,
                "SELECT file_path, session_count FROM observer_module_files"
                " WHERE project_no = :project AND module = ?"
                " ORDER BY session_count DESC, file_path LIMIT ?",
                to_storable(module),
                limit,
            )
        return total, [(from_storable(path), count) for path, count in rows]

    def prefetch(self, module: str) -> Prefetch | None:
        """Return a module's files to read; ``None`` before three sessions."""
        total, files = self.module_files(module, limit=40)
        if total < LEAST_SESSIONS:
            return None
        return Prefetch(
            module,
            tuple(path for path, count in files if count / total > ALWAYS),
            tuple(path for path, count in files if FREQUENT < count / total <= ALWAYS),
            sessions=total,
        )

    def calibration(self, module: str, methodology: str = "native") -> Calibration | None:
        """Return steps taken against steps planned; ``None`` without samples."""
        row = self._store.ask(
            self._store.row,
            "SELECT sample_count, planned_steps, actual_steps FROM observer_calibrations"
            " WHERE project_no = :project AND module = ? AND methodology = ?",
            to_storable(module),
            methodology,
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
        """Return modules with their numbers of sessions, the most first."""
        rows = self._store.ask(
            self._store.rows,
            "SELECT module, count FROM observer_module_session_counts WHERE project_no = "
            ":project"
            " ORDER BY count DESC, module LIMIT ?",
            limit,
        )
        return [(from_storable(row[0]), row[1]) for row in rows]

    def _resolve_modules(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return modules by their names, or by the last parts: ``cart`` for ``shop/cart``."""
        every = [module for module, _ in self.modules(limit=1_000)]
        found: list[str] = []
        for name in names:
            end = f"/{name.replace('.', '/').strip('/')}"
            # A name that is known as it stands means no other module that ends so.
            others = [each for each in every if name not in every and f"/{each}".endswith(end)]
            found += others or [name]
        return tuple(dict.fromkeys(found))

    def edges(self, path: str | None = None, limit: int = 50) -> list[FilePair]:
        """Return co-changed files, of one file or all, strongest first.

        Args:
            path: The file, relative to the project's root; without it, all pairs.
        """
        where = " AND (file_a = ? OR file_b = ?)" if path is not None else ""
        values = (to_storable(path), to_storable(path)) if path is not None else ()
        rows = self._store.ask(
            self._store.rows,
            "SELECT file_a, file_b, weight, raw_count, session_count, edit_session_count, "
            "avg_time_delta_ms,"
            " directional, task_type_breakdown, last_observed_at, promoted_at FROM "
            "observer_co_access_edges"
            f" WHERE project_no = :project{where} ORDER BY weight DESC, file_a, file_b "
            "LIMIT ?",
            *values,
            limit,
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


_MOST_FILES = 400
_MOST_PAIRS = 400
_MOST_SESSIONS = 50


class SessionEnd(NamedTuple):
    """A session that is counted."""

    session_id: str
    type: str
    methodology: str
    now_ms: int


@dataclass(frozen=True, eq=False)
class RollingTables:
    """Writes the rolling tables of one project."""

    store: BehaviorStore
    new_id: IdMaker

    def count(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        """Count a session under the lock of the project's memories."""
        self._count_files(session, pads, ended.now_ms)
        self._count_pairs(session, pads, ended)
        self._count_errors(session, pads, ended)
        self._mark_worked(session, pads, ended.now_ms)
        for pad in pads:
            (planned, actual), module = pad.planned(), main_module(pad)
            if planned and module:
                session.run(
                    self.store.sql(
                        "INSERT INTO observer_calibrations (project_no, module, methodology,"
                        " sample_count, planned_steps, actual_steps, last_at)"
                        " VALUES (:project, ?, ?, 1, ?, ?, ?)"
                        " ON CONFLICT (project_no, module, methodology) DO UPDATE SET"
                        " sample_count = observer_calibrations.sample_count + 1, planned_steps ="
                        " observer_calibrations.planned_steps + excluded.planned_steps,"
                        " actual_steps = observer_calibrations.actual_steps"
                        " + excluded.actual_steps, last_at = excluded.last_at"
                    ),
                    (to_storable(module), ended.methodology, planned, actual, ended.now_ms),
                )

    def _count_files(self, session: Session, pads: Sequence[Pad], now_ms: int) -> None:
        files: dict[str, FileLedgerEntry] = {}
        for pad in pads:
            for path, entry in pad.files:
                total = files.setdefault(path, FileLedgerEntry())
                total.count += entry.count
                total.edits += entry.edits
                total.reads += entry.reads
        most = sorted(files.items(), key=lambda item: (-item[1].count, item[0]))[:_MOST_FILES]
        session.run_many(
            self.store.sql(
                "INSERT INTO observer_file_nodes (project_no, file_path, access_count, edit_count,"
                " session_count, edit_session_count, last_accessed_at)"
                " VALUES (:project, ?, ?, ?, 1, ?, ?)"
                " ON CONFLICT (project_no, file_path) DO UPDATE SET"
                " access_count = observer_file_nodes.access_count + excluded.access_count,"
                " edit_count = observer_file_nodes.edit_count + excluded.edit_count,"
                " session_count = observer_file_nodes.session_count + 1,"
                " edit_session_count = observer_file_nodes.edit_session_count"
                " + excluded.edit_session_count, last_accessed_at = excluded.last_accessed_at"
            ),
            [
                (to_storable(path), each.count, each.edits, int(each.edits > 0), now_ms)
                for path, each in most
            ],
        )
        read = sorted({to_storable(path) for pad in pads for path in pad.files_to_read()})
        modules = modules_of(path for path, each in files.items() if each.edits)
        for module in map(to_storable, sorted(modules)[:6]):
            session.run(
                self.store.sql(
                    "INSERT INTO observer_module_session_counts (project_no, module, count,"
                    " last_at) VALUES (:project, ?, 1, ?) ON CONFLICT (project_no, module)"
                    " DO UPDATE SET count = observer_module_session_counts.count + 1,"
                    " last_at = excluded.last_at"
                ),
                (module, now_ms),
            )
            session.run_many(
                self.store.sql(
                    "INSERT INTO observer_module_files (project_no, module, file_path,"
                    " session_count, last_at) VALUES (:project, ?, ?, 1, ?)"
                    " ON CONFLICT (project_no, module, file_path) DO UPDATE SET"
                    " session_count = observer_module_files.session_count + 1,"
                    " last_at = excluded.last_at"
                ),
                [(module, path, now_ms) for path in read[:_MOST_FILES]],
            )

    def _count_pairs(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        pairs: dict[str, PairEntry] = {}
        for pad in pads:
            for key, entry in pad.pairs:
                total = pairs.setdefault(key, PairEntry())
                total.count += entry.count
                total.apart_ms += entry.apart_ms
                total.lead += entry.lead
                total.edits += entry.edits
        most = sorted(pairs.items(), key=lambda item: (-item[1].edits, -item[1].count, item[0]))
        counts = {tuple(map(to_storable, key.split("|", 1))): each for key, each in most}
        counts = dict(list(counts.items())[:_MOST_PAIRS])
        known_rows = self.store.rows(
            session,
            "SELECT file_a, file_b, raw_count, session_count, edit_session_count,"
            " avg_time_delta_ms, directional, task_type_breakdown"
            " FROM observer_co_access_edges WHERE project_no = :project AND file_a IN (:some)",
            some=sorted({first for first, _ in counts}),
        )
        before = {row[:2]: row[2:] for row in known_rows}
        rows = []
        for pair, each in counts.items():
            raw, sessions, edited, average, direction, kinds = before.get(
                pair, (0, 0, 0, 0.0, 0, "{}")
            )
            breakdown = json.loads(kinds)
            breakdown[ended.type] = breakdown.get(ended.type, 0) + 1
            sessions += 1
            edited += int(each.edits > 0)
            rows.append(
                (
                    *pair,
                    round(sessions + edited + min(each.count, 10) / 10, 3),
                    raw + each.count,
                    sessions,
                    edited,
                    ((average or 0.0) * raw + each.apart_ms) / (raw + each.count),
                    direction + (each.lead > 0) - (each.lead < 0),
                    json.dumps(breakdown),
                    ended.now_ms,
                )
            )
        session.run_many(
            self.store.sql(
                "INSERT INTO observer_co_access_edges (project_no, file_a, file_b, weight,"
                " raw_count, session_count, edit_session_count, avg_time_delta_ms, directional,"
                " task_type_breakdown, last_observed_at)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (project_no, file_a, file_b) DO UPDATE SET"
                " weight = excluded.weight, raw_count = excluded.raw_count,"
                " session_count = excluded.session_count,"
                " edit_session_count = excluded.edit_session_count,"
                " avg_time_delta_ms = excluded.avg_time_delta_ms,"
                " directional = excluded.directional,"
                " task_type_breakdown = excluded.task_type_breakdown,"
                " last_observed_at = excluded.last_observed_at"
            ),
            rows,
        )

    def _count_errors(self, session: Session, pads: Sequence[Pad], ended: SessionEnd) -> None:
        for pad in pads:
            module = main_module(pad)
            for print_, entry in pad.errors:
                row = session.one(
                    self.store.sql(
                        "SELECT sessions FROM observer_error_patterns"
                        " WHERE project_no = :project AND error_fingerprint = ?"
                    ),
                    (print_,),
                )
                before = json.loads(row[0]) if row else []
                sessions = list(dict.fromkeys([*before, ended.session_id]))[-_MOST_SESSIONS:]
                solved = {"how": entry.how, "fix": entry.fix, "files": entry.files}
                session.run(
                    self.store.sql(
                        "INSERT INTO observer_error_patterns (project_no, error_fingerprint, id,"
                        " tool_name, command, error_message, occurrence_count, session_count,"
                        " first_seen_at, last_seen_at, resolved_how, resolved_count, module,"
                        " sessions) VALUES (:project, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)"
                        " ON CONFLICT (project_no, error_fingerprint) DO UPDATE SET"
                        " command = excluded.command, error_message = excluded.error_message,"
                        " occurrence_count = observer_error_patterns.occurrence_count"
                        " + excluded.occurrence_count,"
                        " session_count = observer_error_patterns.session_count + 1,"
                        " first_seen_at = CASE WHEN excluded.first_seen_at"
                        " < observer_error_patterns.first_seen_at THEN excluded.first_seen_at"
                        " ELSE observer_error_patterns.first_seen_at END,"
                        " last_seen_at = CASE WHEN excluded.last_seen_at"
                        " > observer_error_patterns.last_seen_at THEN excluded.last_seen_at"
                        " ELSE observer_error_patterns.last_seen_at END, resolved_how ="
                        " coalesce(excluded.resolved_how, observer_error_patterns.resolved_how),"
                        " resolved_count = observer_error_patterns.resolved_count"
                        " + excluded.resolved_count,"
                        " module = coalesce(excluded.module, observer_error_patterns.module),"
                        " sessions = excluded.sessions"
                    ),
                    (
                        print_,
                        self.new_id(),
                        entry.tool,
                        to_storable(entry.command),
                        to_storable(entry.line),
                        entry.count,
                        ended.now_ms,
                        ended.now_ms,
                        to_storable(json.dumps(solved)) if entry.how else None,
                        int(bool(entry.how)),
                        to_storable(module) if module else None,
                        to_storable(json.dumps(sessions)),
                    ),
                )

    def _mark_worked(self, session: Session, pads: Sequence[Pad], now_ms: int) -> None:
        """Mark known errors whose command, or whose missing program, has run in this session."""
        errors = [entry for pad in pads for _, entry in pad.errors]
        worked = {text for pad in pads for text, _ in pad.worked}
        self.store.run(
            session,
            "UPDATE observer_error_patterns SET last_worked_at = ? WHERE project_no = :project"
            " AND (last_worked_at IS NULL OR last_worked_at < ?) AND command IN (:some)",
            now_ms,
            now_ms,
            some=sorted(map(to_storable, worked - {entry.command for entry in errors})),
        )
        programs = {part.split(" ", 1)[0] for text in worked for part in text.split(" && ")}
        for entry in errors:
            programs -= {*lacking(entry.command, entry.line)[:1]}
        rows = session.all(
            self.store.sql(
                "SELECT error_fingerprint, command, error_message FROM observer_error_patterns"
                " WHERE project_no = :project AND tool_name = 'Bash'"
                " AND (error_message LIKE ? OR error_message LIKE ? OR error_message LIKE ?)"
            ),
            [f"%{words}%" for words in ABSENT_WORDS],
        )
        present = {(name,) for name in programs}
        self.store.run(
            session,
            "UPDATE observer_error_patterns SET last_worked_at = ? WHERE project_no = :project"
            " AND error_fingerprint IN (:some)",
            now_ms,
            some=[
                print_
                for print_, command, message in rows
                if lacking(from_storable(command), from_storable(message)) in present
            ],
        )


def worth_reading(memories: Memories, paths: Sequence[str]) -> list[str]:
    """Return the paths without those that memories warn of reading."""
    at_reading = types_told_at("read")
    types = (*at_reading, *read_abandon.SIGNAL.targets)
    warnings = memories.for_files(paths, types=types, limit=_MOST_WARNINGS)
    costly = {path for each in warnings if each.type in at_reading for path in each.files}
    symptoms = {str(each.data.get("symptom")) for each in warnings}
    return [
        path
        for path in dict.fromkeys(paths)
        if path not in costly and read_abandon.symptom_of(path) not in symptoms
    ]
