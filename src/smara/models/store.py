"""Store model calls and the pause switch in the database.

SQL and row mapping only; no decisions. A call belongs to a project and its list is isolated like
everything else. The sums are not: the budget belongs to the whole store, so that many projects
cannot spend it many times.
"""

from __future__ import annotations

from smara.core.escape import from_storable, to_storable
from smara.database.database import Row, Session
from smara.database.project_store import ProjectStore
from smara.models.chat import Usage
from smara.models.models import READING, ModelCall, Pause, Reservation, WindowUsage


class CallStore(ProjectStore):
    """The tables ``model_calls`` and ``model_switch``."""

    def hold_switch(self, session: Session) -> Pause | None:
        """Lock admissions until the transaction ends; return True if paused.

        On SQLite the transaction has locked everything already; on PostgreSQL this locks the row,
        and the sums read after it see every call admitted before.
        """
        return _pause(
            session.one(
                "UPDATE model_switch SET no = no WHERE no = 1 RETURNING paused_at, reason, actor"
            )
        )

    def find_pause(self, session: Session) -> Pause | None:
        return _pause(session.one("SELECT paused_at, reason, actor FROM model_switch WHERE no = 1"))

    def put_pause(self, session: Session, pause: Pause | None) -> None:
        words = (to_storable(pause.reason), to_storable(pause.actor)) if pause else (None, None)
        session.run(
            "UPDATE model_switch SET paused_at = ?, reason = ?, actor = ? WHERE no = 1",
            (pause.paused_at if pause else None, *words),
        )

    def spent(self, session: Session, since_ms: int) -> WindowUsage:
        """Sum the usage after a moment; running calls at their most."""
        row = session.one(
            "SELECT coalesce(sum(CASE WHEN purpose IN (?, ?) THEN 0 ELSE input_tokens + "
            "output_tokens END), 0),"
            " coalesce(sum(cost_microdollars), 0), count(*),"
            " coalesce(sum(CASE WHEN cost_microdollars IS NULL THEN 1 ELSE 0 END), 0),"
            " coalesce(sum(CASE WHEN outcome IS NULL THEN 1 ELSE 0 END), 0),"
            " coalesce(sum(CASE WHEN purpose IN (?, ?) THEN input_tokens + output_tokens ELSE 0 "
            "END), 0)"
            " FROM model_calls WHERE started_at > ?",
            (*READING, *READING, since_ms),
        )
        return WindowUsage(*(int(value) for value in row)) if row else WindowUsage()

    def uses(self, session: Session, since_ms: int) -> list[tuple[int, WindowUsage]]:
        """Return each call's time and usage since then, oldest first."""
        return [
            (
                at,
                WindowUsage(
                    0 if purpose in READING else tokens,
                    int(cost),
                    embedding_tokens=tokens if purpose in READING else 0,
                ),
            )
            for at, tokens, cost, purpose in session.all(
                "SELECT started_at, input_tokens + output_tokens, coalesce(cost_microdollars, 0), "
                "purpose FROM model_calls"
                " WHERE started_at > ? ORDER BY started_at",
                (since_ms,),
            )
        ]

    def insert(
        self,
        session: Session,
        reservation: Reservation,
        purpose: str,
        most: Usage,
        now_ms: int,
        expires_at: int,
    ) -> None:
        session.run(
            self.sql(
                "INSERT INTO model_calls (project_no, id, model, purpose, input_tokens, "
                "output_tokens, cached_tokens,"
                " cost_microdollars, is_measured, started_at, expires_at)"
                " VALUES (:project, ?, ?, ?, ?, ?, 0, ?, 0, ?, ?)",
            ),
            (
                reservation.id,
                reservation.model,
                purpose,
                most.input_tokens,
                most.output_tokens,
                reservation.microdollars,
                now_ms,
                expires_at,
            ),
        )

    def end(
        self,
        session: Session,
        call_id: str,
        outcome: str,
        reason: str | None,
        now_ms: int,
        usage: Usage | None,
        microdollars: int | None,
    ) -> None:
        """Record a call's end; without a usage it stays as reserved."""
        if usage is not None:
            session.run(
                self.sql(
                    "UPDATE model_calls SET input_tokens = ?, output_tokens = ?, cached_tokens = ?,"
                    " cost_microdollars = ?, is_measured = ?"
                    " WHERE project_no = :project AND id = ? AND outcome IS NULL"
                ),
                (
                    usage.input_tokens,
                    usage.output_tokens,
                    usage.cached_tokens,
                    microdollars,
                    int(not usage.is_estimated),
                    call_id,
                ),
            )
        session.run(
            self.sql(
                "UPDATE model_calls SET outcome = ?, reason = ?, ended_at = ?"
                " WHERE project_no = :project AND id = ? AND outcome IS NULL"
            ),
            (outcome, reason, now_ms, call_id),
        )

    def list(self, session: Session, limit: int, now_ms: int) -> list[ModelCall]:
        """The newest calls of this project, newest first."""
        rows = session.all(
            self.sql(
                "SELECT id, model, purpose, coalesce(outcome, CASE WHEN expires_at > ?"
                " THEN 'running' ELSE 'lost' END), reason, input_tokens, output_tokens,"
                " cached_tokens, cost_microdollars, is_measured, started_at, ended_at"
                " FROM model_calls WHERE project_no = :project"
                " ORDER BY started_at DESC, no DESC LIMIT ?"
            ),
            (now_ms, limit),
        )
        dollars = [None if row[8] is None else row[8] / 1_000_000 for row in rows]
        return [
            ModelCall(*(*row[:8], cost, bool(row[9]), *row[10:]))
            for row, cost in zip(rows, dollars, strict=True)
        ]


def _pause(row: Row | None) -> Pause | None:
    if row is None or row[0] is None:
        return None
    return Pause(int(row[0]), from_storable(row[1]), from_storable(row[2]))
