"""Store receipts of injections: SQL and row mapping, no decisions."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from smara.context.models import Arm, Injection, ItemOutcome, Receipt, ReceiptItem, ReceiptTotals
from smara.core.escape import from_storable, to_storable
from smara.database.database import Row, Session, marks
from smara.database.project_store import ProjectStore

_RECEIPT = {
    "id": "id", "session_id": "session_id", "point": "point", "at": "made_at", "text": "text",
    "tokens": "tokens", "agent": "agent", "source": "source", "arm": "arm", "is_said": "is_said",
    "elapsed_ms": "elapsed_ms", "delivered_at": "delivered_at", "used_at": "used_at",
    "used_how": "used_how", "reached_at": "reached_at",
}  # fmt: skip
"""The columns of a receipt by the fields they become."""
_ITEM = {
    "kind": "kind", "id": "item_id", "why": "why", "text": "text", "tokens": "tokens",
    "saved_tokens": "saved_tokens", "saved_how": "saved_how", "outcome": "outcome", "how": "how",
    "settled_at": "settled_at",
}  # fmt: skip
_RECEIPT_COLUMNS, _ITEM_COLUMNS = ", ".join(_RECEIPT.values()), ", ".join(_ITEM.values())
_ESCAPED = frozenset({"session_id", "text", "agent", "source", "used_how", "id", "why", "how"})


class SessionCounts(NamedTuple):
    """The arm of a session, its epoch and number of statements."""

    arm: Arm | None
    epoch: int
    statements: int


class OpenItem(NamedTuple):
    """An item of which the use is not settled."""

    receipt_no: int
    position: int
    kind: str
    item_id: str
    made_at: int
    point: str
    signs: tuple[str, ...]
    ran_at: int | None
    how: str


class MomentStore(ProjectStore):
    """The tables of receipts of one project."""

    # the experiment

    def has_arms(self, session: Session) -> bool:
        row = session.one(self.sql("SELECT has_arms FROM moment_state WHERE project_no = :project"))
        return row is not None and bool(row[0])

    def put_arms(self, session: Session, has_arms: bool, now_ms: int, actor: str) -> None:
        session.run(
            self.sql(
                "INSERT INTO moment_state (project_no, has_arms, changed_at, changed_by) VALUES "
                "(:project, ?, ?, ?)"
                " ON CONFLICT (project_no) DO UPDATE SET has_arms = excluded.has_arms,"
                " changed_at = excluded.changed_at, changed_by = excluded.changed_by"
            ),
            (int(has_arms), now_ms, to_storable(actor)),
        )

    # sessions

    def find_session(self, session: Session, session_id: str) -> SessionCounts | None:
        row = session.one(
            self.sql(
                "SELECT arm, epoch, statements FROM moment_sessions WHERE project_no = :project "
                "AND session_id = ?"
            ),
            (session_id,),
        )
        return None if row is None else SessionCounts(row[0], row[1], row[2])

    def hold_session(
        self, session: Session, session_id: str, arm: Arm | None, now_ms: int
    ) -> SessionCounts:
        """Lock and return the counts of a session."""
        row = session.one(
            self.sql(
                "INSERT INTO moment_sessions (project_no, session_id, arm, started_at, last_at)"
                " VALUES (:project, ?, ?, ?, ?)"
                " ON CONFLICT (project_no, session_id) DO UPDATE SET last_at = excluded.last_at"
                " RETURNING arm, epoch, statements"
            ),
            (session_id, arm, now_ms, now_ms),
        )
        return (
            SessionCounts(row[0], row[1], row[2]) if row is not None else SessionCounts(arm, 0, 0)
        )

    def put_session(
        self, session: Session, session_id: str, row: SessionCounts, now_ms: int
    ) -> None:
        session.run(
            self.sql(
                "INSERT INTO moment_sessions (project_no, session_id, arm, epoch, statements, "
                "started_at, last_at)"
                " VALUES (:project, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (project_no, session_id) DO UPDATE SET epoch = excluded.epoch,"
                " statements = excluded.statements, last_at = excluded.last_at"
            ),
            (session_id, row.arm, row.epoch, row.statements, now_ms, now_ms),
        )

    def told_keys(self, session: Session, session_id: str, epoch: int) -> set[str]:
        """Return what a session was told since its last emptying."""
        rows = session.all(
            self.sql(
                "SELECT i.key FROM moment_receipts r JOIN moment_items i ON i.receipt_no = r.no"
                " WHERE r.project_no = :project AND r.session_id = ? AND r.epoch = ?"
            ),
            (session_id, epoch),
        )
        return {from_storable(row[0]) for row in rows}

    # receipts

    def add(
        self,
        session: Session,
        injection: Injection,
        session_id: str,
        *,
        epoch: int,
        is_said: bool,
        elapsed_ms: int,
        at_ms: int,
        delivered_at: int | None = None,
    ) -> bool:
        """Insert a receipt with its items; ``False`` when it was there already."""
        row = session.one(
            self.sql(
                "INSERT INTO moment_receipts (project_no, id, session_id, epoch, point, source, "
                "agent, arm, is_said,"
                f" text, tokens, elapsed_ms, made_at, delivered_at) VALUES (:project, {marks(13)})"
                " ON CONFLICT (project_no, id) DO NOTHING RETURNING no"
            ),
            (
                injection.receipt_id,
                session_id,
                epoch,
                injection.point,
                to_storable(injection.source),
                to_storable(injection.agent),
                injection.arm,
                int(is_said),
                to_storable(injection.text),
                injection.tokens,
                elapsed_ms,
                at_ms,
                delivered_at,
            ),
        )
        if row is None:
            return False
        session.run_many(
            self.sql(
                "INSERT INTO moment_items (receipt_no, position, project_no, kind, item_id, key, "
                "why, text, tokens,"
                " saved_tokens, saved_how, signs) VALUES (?, ?, :project, ?, ?, ?, ?, ?, ?, ?, ?, "
                "?)"
            ),
            [
                (
                    row[0],
                    position,
                    each.kind,
                    to_storable(each.id),
                    to_storable(each.key),
                    to_storable(each.why),
                    to_storable(each.text),
                    each.tokens,
                    each.saved_tokens,
                    each.saved_how,
                    to_storable(json.dumps(list(each.signs))),
                )
                for position, each in enumerate(injection.items)
            ],
        )
        return True

    def mark_delivered(self, session: Session, receipt_id: str, at_ms: int) -> int:
        return session.run(
            self.sql(
                "UPDATE moment_receipts SET delivered_at = ?"
                " WHERE project_no = :project AND id = ? AND delivered_at IS NULL AND is_said = 1"
            ),
            (at_ms, receipt_id),
        )

    def injections(
        self, session: Session, session_id: str
    ) -> builtins.list[tuple[int, str, int, int | None]]:
        """Return (number, words, when, reached) of all injections."""
        rows = session.all(
            self.sql(
                "SELECT no, text, made_at, reached_at FROM moment_receipts"
                " WHERE project_no = :project AND session_id = ? AND is_said = 1 ORDER BY "
                "made_at, no"
            ),
            (session_id,),
        )
        return [(row[0], from_storable(row[1]), row[2], row[3]) for row in rows]

    def mark_reached(self, session: Session, receipt_no: int, at_ms: int) -> int:
        return session.run(
            self.sql(
                "UPDATE moment_receipts SET reached_at = ? WHERE project_no = :project AND no = ?"
                " AND reached_at IS NULL"
            ),
            (at_ms, receipt_no),
        )

    def mark_used(self, session: Session, receipt_no: int, how: str, at_ms: int) -> None:
        session.run(
            self.sql(
                "UPDATE moment_receipts SET used_at = ?, used_how = ?"
                " WHERE project_no = :project AND no = ? AND used_at IS NULL"
            ),
            (at_ms, to_storable(how), receipt_no),
        )

    def settle(
        self,
        session: Session,
        receipt_no: int,
        position: int | None,
        outcome: ItemOutcome,
        how: str,
        at_ms: int,
        is_saving: bool = False,
    ) -> None:
        """Record the outcome of an item, or of all open items.

        Args:
            is_saving: Whether it spared a failed call; otherwise nothing counts as saved.
        """
        where, more = ("", ()) if position is None else (" AND position = ?", (position,))
        session.run(
            self.sql(
                "UPDATE moment_items SET outcome = ?, how = ?, settled_at = ?,"
                " saved_tokens = saved_tokens * ?"
                f" WHERE project_no = :project AND receipt_no = ? AND outcome IS NULL{where}"
            ),
            (outcome, to_storable(how), at_ms, int(is_saving), receipt_no, *more),
        )

    def put_trace(
        self, session: Session, receipt_no: int, position: int, ran_at: int | None, how: str
    ) -> None:
        """Record a failed call, or a trace of an open item."""
        session.run(
            self.sql(
                "UPDATE moment_items SET ran_at = ?, how = ? WHERE project_no = :project"
                " AND receipt_no = ? AND position = ?"
            ),
            (ran_at, how, receipt_no, position),
        )

    def waiting(self, session: Session, session_id: str) -> list[OpenItem]:
        """Return the items of a session that are not settled."""
        rows = session.all(
            self.sql(
                "SELECT i.receipt_no, i.position, i.kind, i.item_id, r.made_at, r.point, i.signs, "
                "i.ran_at, i.how"
                " FROM moment_receipts r JOIN moment_items i ON i.receipt_no = r.no"
                " WHERE r.project_no = :project AND r.session_id = ? AND r.is_said = 1 AND "
                "i.outcome IS NULL"
                " ORDER BY i.receipt_no, i.position LIMIT 500"
            ),
            (session_id,),
        )
        return [
            OpenItem(
                row[0],
                row[1],
                row[2],
                item_id=from_storable(row[3]),
                made_at=row[4],
                point=row[5],
                signs=tuple(json.loads(from_storable(row[6]))),
                ran_at=row[7],
                how=from_storable(row[8]),
            )
            for row in rows
        ]

    def find(self, session: Session, beginning: str) -> list[Receipt]:
        """Receipts whose id begins so, the newest first, at most two."""
        after = beginning[:-1] + chr(ord(beginning[-1]) + 1)
        return self._receipts(
            session, " AND id >= ? AND id < ? ORDER BY no DESC LIMIT 2", (beginning, after)
        )

    def list(
        self, session: Session, session_id: str | None, limit: int, offset: int
    ) -> builtins.list[Receipt]:
        where, values = (
            (" AND session_id = ?", (session_id,)) if session_id is not None else ("", ())
        )
        return self._receipts(
            session, f"{where} ORDER BY no DESC LIMIT ? OFFSET ?", (*values, limit, offset)
        )

    def number_of(self, session: Session, receipt_id: str) -> int | None:
        row = session.one(
            self.sql("SELECT no FROM moment_receipts WHERE project_no = :project AND id = ?"),
            (receipt_id,),
        )
        return None if row is None else int(row[0])

    def _receipts(
        self, session: Session, rest: str, values: Sequence[Any]
    ) -> builtins.list[Receipt]:
        rows = session.all(
            self.sql(
                f"SELECT no, {_RECEIPT_COLUMNS} FROM moment_receipts"
                f" WHERE project_no = :project{rest}"
            ),
            values,
        )
        items: dict[int, list[ReceiptItem]] = {row[0]: [] for row in rows}
        for each in self.rows(
            session,
            f"SELECT receipt_no, {_ITEM_COLUMNS} FROM moment_items WHERE project_no = :project"
            " AND receipt_no IN (:some) ORDER BY receipt_no, position",
            some=list(items),
        ):
            items[each[0]].append(ReceiptItem(**_fields(_ITEM, each)))
        return [Receipt(**_fields(_RECEIPT, row), items=tuple(items[row[0]])) for row in rows]

    def totals(self, session: Session) -> ReceiptTotals:
        row = session.one(
            self.sql(
                "SELECT count(*), coalesce(sum(is_said), 0), count(delivered_at), count(used_at),"
                " count(reached_at), coalesce(sum(CASE WHEN is_said = 1 THEN tokens ELSE 0 END), 0)"
                " FROM moment_receipts WHERE project_no = :project"
            )
        )
        saved = session.one(
            self.sql(
                "SELECT coalesce(sum(CASE WHEN saved_tokens > tokens THEN saved_tokens - tokens "
                "ELSE 0 END), 0)"
                " FROM moment_items WHERE project_no = :project AND outcome = 'used'"
            )
        )
        arms = session.all(
            self.sql(
                "SELECT arm, count(DISTINCT session_id), count(*), count(used_at) FROM "
                "moment_receipts"
                " WHERE project_no = :project AND arm IS NOT NULL GROUP BY arm ORDER BY arm"
            )
        )
        receipts, injected, delivered, used, reached, tokens = (
            int(each) for each in row or (0, 0, 0, 0, 0, 0)
        )
        return ReceiptTotals(
            receipts,
            injected,
            delivered,
            used=used,
            tokens=tokens,
            saved_tokens=int(saved[0]) if saved else 0,
            by_arm={str(each[0]): (int(each[1]), int(each[2]), int(each[3])) for each in arms},
            reached=reached,
        )


def _fields(columns: Mapping[str, str], row: Row) -> dict[str, Any]:
    fields = {
        name: from_storable(value) if name in _ESCAPED else value
        for name, value in zip(columns, row[1:], strict=True)
    }
    return fields | ({"is_said": bool(fields["is_said"])} if "is_said" in fields else {})
