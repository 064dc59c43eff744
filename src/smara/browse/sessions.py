"""Read the sessions of a project, with their outcomes and arms.

A day is one of UTC. What a session was told is in its receipts; what came of it is in what the
hooks saw.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from smara.browse.models import ArmReport, DayOfUse, HostLife, SessionLine
from smara.core.escape import from_storable
from smara.core.validate import check_page
from smara.database.project_store import ProjectStore

if TYPE_CHECKING:
    from smara.database.projects import ProjectContext

DAY_MS = 86_400_000
# To see a difference of 10 points between two shares, four times in five, at the usual 5 %.
_POINTS, _POWER = 0.10, 15.7
_LEAST_SESSIONS = 20
_OF_SESSION = "FROM moment_receipts r WHERE r.project_no = t.project_no AND r.session_id = t.id"


class SessionViews:
    """The sessions of one project, as people look at them."""

    def __init__(self, project: ProjectContext) -> None:
        self._project = project
        self._store = ProjectStore(project.database, project.scope)

    def hosts(self) -> builtins.list[HostLife]:
        """Return the agents that were seen at work, the last one first.

        Returns:
            Each host with its sessions and its last sign of life.
        """
        rows = self._store.ask(
            self._store.rows,
            "SELECT agent, count(*), max(last_event_at), sum(events) FROM behavior_sessions"
            " WHERE project_no = :project GROUP BY agent ORDER BY 3 DESC",
        )
        return [HostLife(str(row[0]), int(row[1]), int(row[2]), int(row[3])) for row in rows]

    def timeline(self, limit: int = 50, offset: int = 0) -> builtins.list[SessionLine]:
        """Return the sessions, the last used first, with what came of each.

        Args:
            limit: The most sessions.
            offset: How many to skip.

        Returns:
            Each session with its outcome, and how much it was told, used and learned.
        """
        check_page(limit, offset)
        rows = self._store.ask(
            self._store.rows,
            "SELECT t.id, t.title, t.kind, t.last_seq, t.tokens, t.updated_at, b.agent,"
            " b.outcome, coalesce(b.steps, 0),"
            f" (SELECT count(nullif(r.is_said, 0)) {_OF_SESSION}),"
            f" (SELECT count(r.used_at) {_OF_SESSION}), (SELECT count(*) FROM memory_keys k"
            " WHERE k.project_no = t.project_no AND k.kind = 'session' AND k.value = t.id)"
            " FROM threads t LEFT JOIN behavior_sessions b ON b.project_no = t.project_no"
            " AND b.session_id = t.id WHERE t.project_no = :project"
            " ORDER BY t.updated_at DESC LIMIT ? OFFSET ?",
            limit,
            offset,
        )
        return [
            SessionLine(
                from_storable(row[0]),
                None if row[1] is None else from_storable(row[1]),
                *row[2:],
            )
            for row in rows
        ]

    def arms(self) -> ArmReport:
        """Return what the arms of the experiment show so far.

        Returns:
            Each arm with its sessions, and how many more are needed before a difference of ten
            points would show.
        """
        good = "('tested', 'committed', 'accepted')"
        with self._store.database.read() as session:
            is_on = bool(
                self._store.number(
                    session, "SELECT has_arms FROM moment_state WHERE project_no = :project"
                )
            )
            rows = self._store.rows(
                session,
                "SELECT s.arm, count(*), sum(CASE WHEN b.outcome IS NOT NULL"
                " AND b.outcome <> 'unknown' THEN 1 ELSE 0 END),"
                f" sum(CASE WHEN b.outcome IN {good} THEN 1 ELSE 0 END)"
                " FROM moment_sessions s LEFT JOIN behavior_sessions b"
                " ON b.project_no = s.project_no AND b.session_id = s.session_id"
                " WHERE s.project_no = :project AND s.arm IS NOT NULL GROUP BY s.arm",
            )
        arms = {str(row[0]): (int(row[1]), int(row[2] or 0), int(row[3] or 0)) for row in rows}
        return arm_report(is_on, arms)

    def activity(self, days: int = 30) -> builtins.list[DayOfUse]:
        """Return the receipts of each of the last days, today last.

        Args:
            days: How many days, at most 366.

        Returns:
            Every day, those without a session too.
        """
        check_page(days)
        today = self._project.clock.now_ms() // DAY_MS
        first = today - min(days, 366) + 1
        rows = self._store.ask(
            self._store.rows,
            f"SELECT made_at / {DAY_MS}, count(*), count(used_at), sum(tokens)"
            " FROM moment_receipts WHERE project_no = :project AND made_at >= ?"
            " AND is_said = 1 GROUP BY 1",
            first * DAY_MS,
        )
        counts = {int(row[0]): (int(row[1]), int(row[2]), int(row[3])) for row in rows}
        return [
            DayOfUse(each * DAY_MS, *counts.get(each, (0, 0, 0)))
            for each in range(first, today + 1)
        ]


def arm_report(is_on: bool, arms: Mapping[str, tuple[int, int, int]]) -> ArmReport:
    """Return what arms show: sessions, those with an outcome, and good ones.

    With one session in three that ends well, a difference of ten points needs about
    15.7 × 0.33 × 0.67 / 0.01 = 350 sessions with an outcome in each arm.

    >>> arm_report(True, {"control": (40, 30, 10), "full": (600, 400, 133)}).more
    320
    """
    outcomes = {name: counts[1] for name, counts in arms.items()}
    control, full = arms.get("control", (0, 0, 0)), arms.get("full", (0, 0, 0))
    total, good = control[1] + full[1], control[2] + full[2]
    share = good / total if total else 0.5
    needed = max(_LEAST_SESSIONS, math.ceil(_POWER * share * (1 - share) / _POINTS**2 / 10) * 10)
    more = max(0, needed - min(outcomes.get("control", 0), outcomes.get("full", 0)))
    difference = error = None
    if not more and control[1] and full[1]:
        first, second = control[2] / control[1], full[2] / full[1]
        difference = second - first
        error = 1.96 * math.sqrt(first * (1 - first) / control[1] + second * (1 - second) / full[1])
    return ArmReport(is_on, dict(arms), more, difference, error)
