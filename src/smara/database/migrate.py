"""Apply numbered migrations, the same numbers for both databases.

Released migrations are never edited. A step that only adds (a table, a column with a default, an
index) says so in its first line, ``-- Opened by schema 58 and later.``: code that knows no more
than that opens the store. A database that is newer otherwise is refused. Such code erases nothing
once a table was added; see `smara.privacy.erase`. A column that may hold words of other rows is
no such step: an erase by older code would leave them.
"""

from __future__ import annotations

from functools import cache

from smara.core.clock import Clock
from smara.core.startup.record import dataclass
from smara.core.startup.regex import regex
from smara.database.database import Database, DatabaseKind, Session
from smara.database.partitions import MOVED, move_rows
from smara.database.session import number
from smara.errors import ConflictError, SchemaTooNewError

_NAME = regex(r"(\d{4})_(\w+)\.sql")
_OPENED_BY = regex(r"-- Opened by schema (\d+) and later\.\n")

HEAD = 58
"""The number of the newest migration; kept by hand so that opening need not list the folder."""
# The number that a store has while a copy is written into it: half a store must not be used.
COPYING = 1_000_000


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number, its name and its SQL."""

    number: int
    name: str
    sql: str

    @property
    def opened_by(self) -> int:
        """The oldest schema whose code opens a store with this step."""
        stated = _OPENED_BY.match(self.sql)
        return int(stated[1]) if stated else self.number


@cache
def migrations(kind: DatabaseKind) -> tuple[Migration, ...]:
    """Every step for one kind of database, in order."""
    from importlib import resources  # needed only by a store that is not up to date

    found = []
    for entry in (resources.files("smara.database") / "migrations" / kind).iterdir():
        match = _NAME.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda step: step.number))


def migrate(database: Database, clock: Clock, target: int = HEAD) -> int:
    """Bring the database up to ``target``; the number of steps taken.

    Safe to repeat and to run from several processes at once.
    """
    with database.read() as session:
        version = schema_version(database, session)
        _refuse_newer(session, version)
    if version >= target:
        return 0
    taken = 0
    for moved in MOVED:
        if database.kind == "postgres" and 0 < version < moved <= target:
            taken += _take_steps(database, clock, moved - 1)
            move_rows(
                database,
                moved,
                lambda session, moved=moved: schema_version(database, session) >= moved,  # type: ignore[misc]
            )
    return taken + _take_steps(database, clock, target)


def _take_steps(database: Database, clock: Clock, target: int) -> int:
    """Take the steps up to a number in one transaction; return how many."""
    with database.write() as session:
        if database.kind == "postgres":
            session.run(database.lock_statement)
        version = schema_version(database, session)  # another process may have been faster
        _refuse_newer(session, version)
        steps = [step for step in migrations(database.kind) if version < step.number <= target]
        for step in steps:
            if step.number == 1:
                if database.kind == "sqlite":
                    session.run("PRAGMA application_id = 1397571922")
                session.run(
                    "CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
                    " applied_at BIGINT NOT NULL)"
                )
            session.run(step.sql)
            session.run(
                "INSERT INTO migrations (number, name, applied_at) VALUES (?, ?, ?)",
                (step.number, step.name, clock.now_ms()),
            )
            if step.opened_by < step.number:
                session.run(
                    "UPDATE migrations SET opened_by = ? WHERE number = ?",
                    (step.opened_by, step.number),
                )
            if database.kind == "sqlite":
                session.run(f"PRAGMA user_version = {step.number}")
    return len(steps)


def schema_version(database: Database, session: Session) -> int:
    """Return the newest migration's number; 0 for an empty database."""
    if database.kind == "sqlite":
        return number(session, "PRAGMA user_version")
    # Asked of the catalog itself: to_regclass may answer from before another process's commit.
    row = session.one(
        "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = current_schema() AND c.relname = 'migrations'"
    )
    if row is None:
        return 0
    return number(session, "SELECT coalesce(max(number), 0) FROM migrations")


def opened_by(session: Session, version: int) -> int:
    """Return the oldest schema whose code opens a newer store."""
    row = session.one("SELECT max(coalesce(opened_by, number)), max(number) FROM migrations")
    return int(row[0]) if row is not None and row[1] == version else version


def _refuse_newer(session: Session, version: int) -> None:
    if version == COPYING:
        raise ConflictError(
            "A copy into this store is not finished. Call `smara copy` again as before; it goes on"
            " where it was."
        )
    if version > HEAD and opened_by(session, version) > HEAD:
        raise SchemaTooNewError(
            f"This database has schema {version}, and this Smara knows up to {HEAD}. "
            "Upgrade with `pip install --upgrade smara`; nothing was changed.",
            found=version,
            known=HEAD,
        )
