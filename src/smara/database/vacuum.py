"""Find the files of PostgreSQL with freed rows of projects.

A project lies in one part of each divided table and in the tables that are not divided. Any of
these may have bytes of its rows, also of those that were changed or removed long ago; the parts of
other projects have none. Counters of the server do not tell more: a crash resets them, and rows
that were cleaned up are counted no more while their bytes are still there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager

from smara.database.session import Session, number
from smara.errors import BusyError

_PLACES = r"""
SELECT coalesce(w.relname, c.relname), c.relname FROM pg_class c
  LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class w ON w.oid = i.inhparent
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    AND (w.oid IS NULL OR ?::int[] IS NULL OR ?::int[] @>
      ARRAY[substring(pg_get_expr(c.relpartbound, c.oid) FROM 'remainder (\d+)')::int])
  ORDER BY c.relname
"""
_WITH_PAGES = """
SELECT c.relname FROM pg_class c
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(?::text[])
    AND (pg_relation_size(c.oid) > 0 OR pg_relation_size(nullif(c.reltoastrelid, 0)) > 0
      OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid
        AND pg_relation_size(i.indexrelid) > current_setting('block_size')::int))
  ORDER BY c.relname
"""
"""An index keeps values of a table whose last pages were given back."""
_MOST_WAITS, _MOST_TRIES = 300, 50
_MOMENT_MS, _PAUSE_MS = 200, 300
_OLDER = """
WITH now AS (SELECT txid_current_snapshot() AS snapshot)
SELECT 1 FROM now WHERE txid_snapshot_xmin(snapshot) < ? OR EXISTS (
  SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND age(backend_xmin) > txid_snapshot_xmax(snapshot) - ?)
"""
"""Whether a transaction or a snapshot is older than a mark, the number of the next transaction."""
_OWNS_DATABASE = """
SELECT count(*) FROM pg_database WHERE datname = current_database()
  AND pg_has_role(datdba, 'USAGE')
"""
_CLEAR_STATISTICS = """
DO $$ DECLARE each record; names name[] := string_to_array(current_setting('smara.cleared'), ',');
BEGIN
  -- An index of expressions has statistics of its own.
  names := names || ARRAY(SELECT x.relname FROM pg_class t JOIN pg_index i ON i.indrelid = t.oid
    JOIN pg_class x ON x.oid = i.indexrelid WHERE t.relname = ANY(names)
    AND t.relnamespace = current_schema()::regnamespace AND i.indexprs IS NOT NULL);
  FOR each IN SELECT s.schemaname AS home, s.tablename, s.attname, s.inherited FROM pg_stats s
    JOIN pg_class c ON c.relnamespace = current_schema()::regnamespace AND c.relname = s.tablename
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = s.attname
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE s.schemaname = current_schema() AND s.tablename = ANY(names)
      AND (NOT s.inherited OR t.typcategory <> 'N')
  LOOP
    BEGIN
      IF current_setting('server_version_num')::int >= 180000 THEN
        PERFORM pg_clear_attribute_stats(
          each.home, each.tablename, each.attname, each.inherited);
      ELSE
        DELETE FROM pg_statistic s USING pg_attribute a WHERE a.attrelid = s.starelid
          AND a.attnum = s.staattnum AND a.attname = each.attname
          AND s.stainherit = each.inherited AND s.starelid = each.tablename::regclass;
      END IF;
    EXCEPTION WHEN insufficient_privilege THEN NULL;
    END;
  END LOOP;
END $$
"""


def find_places(session: Session, parts: Collection[int] | None) -> dict[str, list[str]]:
    """Return the places of each table's rows: itself, or parts of it."""
    found: dict[str, list[str]] = {}
    numbers = None if parts is None else list(parts)
    for table, place in session.all(_PLACES, (numbers, numbers)):
        found.setdefault(table, []).append(place)
    return found


def with_pages(session: Session, places: Collection[str]) -> list[str]:
    """Return those of some places whose files may hold a value."""
    return [row[0] for row in session.all(_WITH_PAGES, (list(places),))]


def clear_statistics(session: Session, tables: Collection[str]) -> None:
    """Clear the statistics of tables, which hold values of rows.

    ANALYZE leaves those of a table that is empty now. A divided table as a whole keeps those of
    numbers: they are of all its parts.
    """
    session.all("SELECT set_config('smara.cleared', ?, true)", (",".join(tables),))
    session.run(_CLEAR_STATISTICS)


def write_files(
    write: Callable[[], AbstractContextManager[Session]],
    session: Session,
    schema: str,
    *,
    tables: Collection[str],
    busy_ms: int,
) -> None:
    """Write tables and the statistics again, without deleted rows.

    Besides writing this takes half a minute for older transactions, the time of `write_each` for
    tables in use, and some seconds for the statistics.

    Raises:
        BusyError: If something is left that others use; the rest is written.
    """
    waits = iter(range(_MOST_WAITS))
    is_alone = wait_for_older(session, waits)
    left = write_each(write, session, schema, tables=tables, busy_ms=busy_ms)
    left += [] if write_statistics(session, waits) else ["pg_statistic"]
    if left:
        raise BusyError(
            f"PostgreSQL was busy: these tables are in use all the time: {', '.join(left)}."
            " Try again."
        )
    if not is_alone:
        raise BusyError(
            "PostgreSQL was busy: a transaction that began before may see what is gone, so that"
            " the files keep it. End it, and try again."
        )


def write_each(
    write: Callable[[], AbstractContextManager[Session]],
    session: Session,
    schema: str,
    *,
    tables: Collection[str],
    busy_ms: int,
) -> list[str]:
    """Write tables again, each while nothing else uses it.

    Whatever comes after a lock that waits has to wait behind it: this one waits for moments, with
    pauses in which others go on. A table in use keeps no other from being written: it is tried
    again after all had their turn. With 80 tables, all in use, that ends after 80 moments, and
    what of `busy_ms` is left then.

    Args:
        write: Opens a transaction.
        session: A session without one.
        schema: The schema of the tables.
        tables: Their names.
        busy_ms: How long to wait in all; each table is tried once at least.

    Returns:
        The tables that were in use all the time.
    """
    waiting, spent_ms = list(tables), 0
    while True:
        busy = []
        for table in waiting:
            try:
                with write() as alone:
                    moment = f"{min(_MOMENT_MS, busy_ms)}"
                    alone.all("SELECT set_config('lock_timeout', ?, true)", (moment,))
                    alone.run(f"LOCK TABLE {schema}.{table} IN ACCESS EXCLUSIVE MODE")
                    # Only now: others would plan without them for as long as all tables take.
                    clear_statistics(alone, [table])
                is_written = write_again(session, f"{schema}.{table}")
            except BusyError:
                is_written = False
            if not is_written:
                busy.append(table)
        waiting = busy
        spent_ms += len(busy) * _MOMENT_MS + _PAUSE_MS
        if not busy or spent_ms >= busy_ms:
            break
        session.one("SELECT pg_sleep(?)", (_PAUSE_MS / 1_000,))
    for table in waiting:  # one that was locked for a moment has no statistics now
        session.run(f"ANALYZE (SKIP_LOCKED) {schema}.{table}")
    return waiting


def write_statistics(session: Session, waits: Iterator[int]) -> bool:
    """Write all statistics again; return False if others interfere.

    A role that does not own the database may not: it is told nothing, and the file stays.
    """
    is_owner = number(session, _OWNS_DATABASE)
    # What was cleared table by table would be copied for a snapshot of before.
    is_alone = not is_owner or wait_for_older(session, waits)
    for _ in range(_MOST_TRIES):
        if write_again(session, "pg_catalog.pg_statistic") or not is_owner:
            return is_alone
        session.one("SELECT pg_sleep(0.1)")
    return False


def write_again(session: Session, table: str) -> bool:
    """Write a table again; return False if the server left it out.

    Its new files have no deleted rows. The server leaves out a table that something locks at this
    moment, its own autovacuum too, and says nothing of it: the file is still the same then.
    """
    file = "SELECT pg_relation_filenode(?::text::regclass)"
    before = session.one(file, (table,))
    session.run(f"VACUUM (FULL, ANALYZE, SKIP_LOCKED) {table}")
    return session.one(file, (table,)) != before


def wait_for_older(session: Session, waits: Iterator[int]) -> bool:
    """Wait for older transactions; return False if one is left.

    Rows that are gone, but that they may see, would be copied into the new files. A transaction
    that writes holds back the snapshots of all databases of the server; those that begin later do
    no harm, so a busy server is not waited for.

    Args:
        session: A session without a transaction.
        waits: An item for each tenth of a second that is left to wait.
    """
    mark = number(session, "SELECT txid_snapshot_xmax(txid_current_snapshot())")
    while session.one(_OLDER, (mark, mark)) is not None:
        if next(waits, None) is None:
            return False
        session.one("SELECT pg_sleep(0.1)")
    return True
