"""Examine the servers around a store on PostgreSQL, and its fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from smara.config import Settings
from smara.database.partitions import DIVIDED
from smara.database.servers import ServerPool, is_pooled, split_schema
from smara.doctor import Finding
from smara.environment import store_file
from smara.errors import SmaraError
from smara.fleet.queue import QueueCount, find_queue
from smara.memory import Memory, open_memory

_WAITING_SECONDS = 600.0
_LAG_BYTES = 64 * 2**20
_CHECK_SECONDS = 5.0
# A role that may not read the statistics of others sees that their sessions are there, and nothing
# of what these do: type, state and times are NULL.
_SESSIONS = """
SELECT current_setting('server_version'), current_setting('max_connections')::int,
  count(*) FILTER (WHERE is_hidden OR backend_type = 'client backend'),
  count(*) FILTER (WHERE is_hidden AND is_here),
  coalesce(max(extract(epoch FROM now() - xact_start))
    FILTER (WHERE is_here AND state LIKE 'idle in transaction%'), 0)
FROM (SELECT *, datname = current_database() AS is_here,
  backend_type IS NULL AND datid IS NOT NULL AND usesysid IS NOT NULL AS is_hidden
  FROM pg_stat_activity) sessions
"""
_PARTS = """
SELECT p.relname, count(*), pg_catalog.pg_size_pretty(sum(pg_total_relation_size(c.oid)))
FROM pg_class p JOIN pg_inherits i ON i.inhparent = p.oid JOIN pg_class c ON c.oid = i.inhrelid
WHERE p.relnamespace = ?::text::regnamespace AND p.relkind = 'p' GROUP BY 1 ORDER BY 1
"""
_INVALID = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = ?::text::regnamespace AND NOT i.indisvalid
AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index b WHERE b.index_relid = i.indexrelid)
"""


def examine_cluster(settings: Settings) -> list[Finding]:
    """Return findings about the servers; none for a SQLite file."""
    if not settings.db or store_file(settings.db) is not None:
        return []
    try:
        with open_memory(
            settings.db,
            project=settings.project,
            busy_timeout_seconds=settings.busy_timeout_seconds,
            replica_url=settings.replica_url,
            fleet_url=settings.fleet_url,
            check_index=False,
            embed_in_background=False,
        ) as memory:
            return list(_findings(memory))
    except SmaraError:  # the examination of the store says why
        return []


def _findings(memory: Memory) -> Iterator[Finding]:
    checks: tuple[Callable[[Memory], Iterator[Finding]], ...] = (
        _connections, _partitions, _replica, _fleet,
    )  # fmt: skip
    for check in checks:
        try:
            yield from check(memory)
        except SmaraError as error:
            yield Finding(check.__name__.strip("_"), "warning", str(error))


def _connections(memory: Memory) -> Iterator[Finding]:
    database: Any = memory.internals.database
    with database.read() as session:
        version, most, used, hidden, idle = session.one(_SESSIONS) or ("?", 1, 0, 0, 0)
        is_behind_pooler = is_pooled(session.connection)
    text = f"PostgreSQL {version}, {used} of {most} connections in use."
    if used > 0.8 * most:
        advice = "Put a pooler in front, run fewer processes, or raise max_connections."
        yield Finding("server", "warning", text, advice=advice)
    else:
        yield Finding("server", "ok", text)
    if idle > _WAITING_SECONDS:
        yield Finding(
            "transactions",
            "warning",
            f"A client has kept a transaction open for {idle / 60:,.0f} minutes; dead rows stay.",
            advice="End it, and set idle_in_transaction_session_timeout.",
        )
    if hidden:
        yield Finding(
            "transactions",
            "ok",
            f"Not checked in {hidden:,} sessions of other roles, which this one cannot see into"
            " (GRANT pg_read_all_stats lets it).",
        )
    how = "through a pooler" if is_behind_pooler else "directly"
    yield Finding("pooler", "ok", f"The store is reached {how}.")


def _partitions(memory: Memory) -> Iterator[Finding]:
    database: Any = memory.internals.database
    with database.read() as session:
        parts = session.all(_PARTS, (database.schema,))
        invalid = [row[0] for row in session.all(_INVALID, (database.schema,))]
        tables = database.tables(session)
    divided = {row[0]: row[1] for row in parts}
    missing = [name for name in DIVIDED if name not in divided]
    moving = [name for name in tables if name.endswith(("_whole", "_parts"))]
    sizes = ", ".join(f"{name} {count} parts ({size})" for name, count, size in parts)
    if missing or moving:
        yield Finding(
            "partitions",
            "warning",
            f"Not all large tables are divided by project: {', '.join([*missing, *moving])}.",
            advice="Open the store once with this release; it moves what is left.",
        )
    else:
        yield Finding("partitions", "ok", f"Divided by project: {sizes}.")
    for name in invalid:
        yield Finding(
            "indexes",
            "problem",
            f"The index {name} was not finished, and answers nothing.",
            advice=f"Run in PostgreSQL: REINDEX INDEX CONCURRENTLY {database.schema}.{name}",
        )


def _replica(memory: Memory) -> Iterator[Finding]:
    url = memory.settings.replica_url
    if not url:
        return
    with memory.internals.database.read() as session:
        mark = str((session.one("SELECT pg_current_wal_lsn()::text") or ("0/0",))[0])
    pool = ServerPool(split_schema(url)[0], _CHECK_SECONDS)
    try:
        with pool.transaction("BEGIN READ ONLY") as session:
            is_replica, behind, seconds = session.one(
                "SELECT pg_is_in_recovery(), ?::pg_lsn - pg_last_wal_replay_lsn(),"
                " extract(epoch FROM now() - pg_last_xact_replay_timestamp())",
                (mark,),
            ) or (False, 0, 0)
    except SmaraError as error:
        advice = "Searches are answered by the primary meanwhile. Check the server and the URL."
        yield Finding("replica", "warning", f"It does not answer: {error}", advice=advice)
        return
    finally:
        pool.close()
    if not is_replica:
        advice = "Make replica_url name a streaming replica of db, or leave it out."
        yield Finding("replica", "problem", "replica_url leads to a primary.", advice=advice)
    elif behind > _LAG_BYTES:
        yield Finding(
            "replica",
            "warning",
            f"It is {int(behind) // 2**20:,} MiB behind (last change {seconds or 0:,.0f} s ago).",
            advice="Searches are answered by the primary meanwhile. Check its disk and network.",
        )
    else:
        yield Finding("replica", "ok", f"It is {max(0, int(behind)) // 1024:,} KiB behind.")


def _fleet(memory: Memory) -> Iterator[Finding]:
    queue = find_queue(memory)
    if queue is None:
        return
    (alive, gone), counts = queue.workers(), queue.counts()
    waiting = sum(each.waiting for each in counts)
    if not alive and waiting:
        yield Finding(
            "workers",
            "problem",
            f"No worker is alive, and {waiting:,} jobs wait.",
            advice="Run `smara worker --fleet 2` (behind a pooler with SMARA_FLEET_URL, the URL of"
            f" PostgreSQL itself), or DROP SCHEMA {queue.schema} CASCADE to do without a fleet.",
        )
    else:
        yield Finding("workers", "ok", f"{alive} queues are served, {gone} workers are gone.")
    for each in counts:
        yield _queue_finding(each)


def _queue_finding(each: QueueCount) -> Finding:
    name, wait = f"queue {each.queue}", each.oldest_seconds
    text = f"{each.waiting:,} jobs wait, {each.running:,} run, {each.failed:,} failed."
    if each.failed:
        advice = "Run a worker with --verbose to see why; work that is left is put again."
        return Finding(name, "warning", text, advice=advice)
    if each.stalled:
        text += f" {each.stalled:,} belong to workers that are gone."
        advice = "They are given to others within a minute, if a worker is alive."
        return Finding(name, "warning", text, advice=advice)
    if wait > _WAITING_SECONDS:
        text += f" The oldest has waited for {wait / 60:,.0f} minutes."
        return Finding(name, "warning", text, advice="Add workers, or raise fleet_limits.")
    return Finding(name, "ok", text)
