"""Install, inspect and sweep the queue of a store.

The queue is procrastinate's, in a schema of its own beside the store's. Triggers of the store put
jobs into it, within the transaction that makes work due; see ``queue.sql``.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from smara.actions.intake import SILENT_SESSION_MS
from smara.core import log
from smara.database.servers import is_pooled, split_schema, translated_errors
from smara.errors import BusyError, ConfigError, InvalidInputError, MissingExtraError
from smara.observations.factory import due_rules
from smara.observations.worker import FROM_THREADS, PENDING, UNBUFFERED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from smara.memory import Memory

Queue = Literal["threads", "learning", "vectors"]
QUEUES: tuple[Queue, ...] = ("threads", "learning", "vectors")
GONE_AFTER_SECONDS = 30.0
"""A worker without a sign of life for so long is gone, and its jobs are given to others."""
_MOST_SCHEMA = 63 - len("_fleet")


class Swept(NamedTuple):
    """The counts of one sweep."""

    put: int
    retried: int


class QueueCount(NamedTuple):
    """The jobs of one queue."""

    queue: str
    waiting: int
    running: int
    stalled: int
    failed: int
    oldest_seconds: float
    """How long the job that has waited longest could have been run."""


def require_fleet(memory: Memory) -> None:
    """Raise an error unless this store can be served by a fleet.

    Raises:
        InvalidInputError: If the store is not on PostgreSQL.
        MissingExtraError: If procrastinate is not installed.
    """
    if memory.internals.database.kind != "postgres":
        raise InvalidInputError(
            "A fleet of workers needs a store on PostgreSQL. This store is a SQLite file, which "
            "`smara worker` serves with one process."
        )
    try:
        import procrastinate  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "A fleet needs the procrastinate package. Install it with `pip install 'smara[fleet]'`."
        ) from error


class JobQueue:
    """The queue of one store."""

    def __init__(self, memory: Memory) -> None:
        database: Any = memory.internals.database
        self._database = database
        self._settings = memory.settings
        self._clock = memory.internals.project.clock
        self.store = database.schema
        self.schema = f"{database.schema}_fleet"
        self.conninfo = split_schema(memory.settings.fleet_url or database.conninfo)[0]

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """Connect to the server itself, not to a pooler.

        Raises:
            ConfigError: If there is a pooler at the URL.
        """
        import psycopg

        with (
            translated_errors(),
            psycopg.connect(self.conninfo, autocommit=True) as connection,
        ):
            if is_pooled(connection):
                raise ConfigError(
                    "The workers of a fleet are told of new jobs over connections of their own, "
                    "which a pooler cuts. Set SMARA_FLEET_URL to the URL of PostgreSQL itself."
                )
            connection.execute(f"SET search_path TO {self.schema}")
            yield connection

    def install(self) -> None:
        """Create the queue or bring it up to date; repeatable.

        Raises:
            BusyError: If another process has the lock or a table for longer than
                ``busy_timeout_seconds``.
            ConfigError: If the URL leads to a pooler or the schema's name is too long.
        """
        if len(self.store) > _MOST_SCHEMA:
            raise ConfigError(f"The schema {self.store!r} is too long a name for a fleet.")
        with self.connection() as connection:
            try:
                with translated_errors():
                    self._install(connection)
            except BusyError as error:
                seconds = self._settings.busy_timeout_seconds
                raise BusyError(
                    "The queue of the fleet could not be prepared: another process had its lock, or"
                    f" a table of the store, for {seconds:g} seconds (busy_timeout_seconds)."
                    " Nothing was changed. Try again."
                ) from error

    def _install(self, connection: Any) -> None:
        from procrastinate.schema import SchemaManager, migrations_path

        steps = sorted(each.name for each in migrations_path.glob("*.sql"))
        with connection.transaction():
            busy_ms = int(self._settings.busy_timeout_seconds * 1000)
            connection.execute(f"SET LOCAL lock_timeout TO {busy_ms}")
            lock = "SELECT pg_advisory_xact_lock(1397571923, hashtext(%s))"
            connection.execute(lock, (self.store,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            row = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone()
            if row[0] is None:
                connection.execute(SchemaManager.get_schema())
                done = steps[-1]
            else:
                row = connection.execute("SELECT value FROM state WHERE name = 'step'").fetchone()
                done = row[0] if row else ""
            for step in steps:
                if step > done:
                    connection.execute((migrations_path / step).read_text(encoding="utf-8"))
            connection.execute(self._definition())
            connection.execute(
                "INSERT INTO state (name, value) VALUES ('step', %s)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (steps[-1],),
            )
            self._put_rules(connection)

    def _definition(self) -> str:
        """The functions and triggers, with the names of both schemas."""
        text = (resources.files("smara.fleet") / "queue.sql").read_text(encoding="utf-8")
        for name, value in (
            ("fleet", self.schema),
            ("store", self.store),
            ("pending", PENDING),
            ("unbuffered", UNBUFFERED),
            ("from_threads", FROM_THREADS.replace("?", "rule.scope")),
        ):
            text = text.replace(f"{{{name}}}", value)
        return text

    def _put_rules(self, connection: Any) -> None:
        settings, rules = self._settings, due_rules(self._settings)
        urgent = settings.observe_after_tokens * settings.block_fraction
        connection.execute(
            "INSERT INTO rules (scope, buffer_after_tokens, urgent_after_tokens, stale_after_ms,"
            " silent_after_ms, has_vectors) VALUES (%s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (is_one) DO UPDATE SET scope = excluded.scope,"
            " buffer_after_tokens = excluded.buffer_after_tokens,"
            " urgent_after_tokens = excluded.urgent_after_tokens,"
            " stale_after_ms = excluded.stale_after_ms,"
            " silent_after_ms = excluded.silent_after_ms, has_vectors = excluded.has_vectors",
            (
                rules.scope,
                rules.buffer_after_tokens,
                int(urgent),
                rules.stale_after_ms,
                SILENT_SESSION_MS,
                settings.embedder != "off",
            ),
        )

    def is_installed(self) -> bool:
        """Return True if a fleet has served this store."""
        with self._database.read() as session:
            row = session.one("SELECT to_regclass(?)", (f"{self.schema}.rules",))
        return bool(row and row[0])

    def put(self, queue: Queue, project_no: int, key: int, attempt: int, seconds: float) -> None:
        """Put a job that is tried again after some seconds."""
        schema = self.schema
        with self._database.write(is_derived=True) as session:
            session.one(
                f"SELECT {schema}.put_job(?, ?::bigint, ?::bigint, false, ?::bigint, ?::float8)",
                (queue, project_no, key, attempt, seconds),
            )

    def look(self, queue: Queue, key: int) -> None:
        """Put a job for a thread or for sessions if due."""
        schema, now = self.schema, self._clock.now_ms()
        name = "look_at_thread" if queue == "threads" else "look_at_sessions"
        with self._database.write(is_derived=True) as session:
            session.one(f"SELECT {schema}.{name}(?::bigint, ?::bigint)", (key, now))

    def sweep(self, is_full: bool = False, gone_after_seconds: float = GONE_AFTER_SECONDS) -> Swept:
        """Put what time has made due, and repair what was lost.

        Args:
            is_full: Look at every project for work without a job.
            gone_after_seconds: Give the jobs of workers to others after so long a silence.
        """
        schema, now = self.schema, self._clock.now_ms()
        with self._database.write(is_derived=True) as session:
            row = session.one(
                f"SELECT put, retried FROM {schema}.sweep(?::bigint, ?::float8, ?)",
                (now, gone_after_seconds, is_full),
            )
        swept = Swept(*row) if row else Swept(0, 0)
        if any(swept):
            log.event("fleet.swept", put=swept.put, retried=swept.retried)
        return swept

    def put_daily(self, hour: int) -> int:
        """Put the daily jobs of one in 24 projects; return how many."""
        schema = self.schema
        with self._database.write(is_derived=True) as session:
            row = session.one(
                f"SELECT count(*) FILTER (WHERE {schema}.put_job('learning', no, no))"
                " FROM projects WHERE no % 24 = ?",
                (hour,),
            )
        return int(row[0]) if row else 0

    def counts(self) -> list[QueueCount]:
        """Return the jobs of each queue."""
        schema = self.schema
        with self._database.read() as session:
            rows = session.all(
                "SELECT queue_name, count(*) FILTER (WHERE status = 'todo'),"
                " count(*) FILTER (WHERE status = 'doing'),"
                " count(*) FILTER (WHERE status = 'doing' AND (w.id IS NULL"
                " OR w.last_heartbeat < now() - make_interval(secs => ?))),"
                " count(*) FILTER (WHERE status = 'failed'),"
                " coalesce(max(extract(epoch FROM now() - coalesce(scheduled_at, (SELECT min(at)"
                f" FROM {schema}.procrastinate_events e WHERE e.job_id = j.id)))) FILTER"
                " (WHERE status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now())), 0)"
                f" FROM {schema}.procrastinate_jobs j"
                f" LEFT JOIN {schema}.procrastinate_workers w ON w.id = j.worker_id"
                " GROUP BY queue_name ORDER BY queue_name",
                (GONE_AFTER_SECONDS,),
            )
        return [QueueCount._make((*row[:5], float(row[5]))) for row in rows]

    def workers(self) -> tuple[int, int]:
        """Return how many workers are alive, and how many gone."""
        schema = self.schema
        with self._database.read() as session:
            row = session.one(
                "SELECT count(*) FILTER (WHERE last_heartbeat >= now() - make_interval(secs => ?)),"
                f" count(*) FROM {schema}.procrastinate_workers",
                (GONE_AFTER_SECONDS,),
            )
        alive, every = row or (0, 0)
        return int(alive), int(every) - int(alive)


def find_queue(memory: Memory) -> JobQueue | None:
    """Return the queue of a store, or ``None`` without a fleet."""
    if memory.internals.database.kind != "postgres":
        return None
    queue = JobQueue(memory)
    return queue if queue.is_installed() else None


def parse_limits(text: str) -> dict[Queue, int]:
    """Read how many jobs of each queue a process runs at once.

    >>> parse_limits("threads=8; vectors=2")
    {'threads': 8, 'learning': 1, 'vectors': 2}
    """
    limits: dict[Queue, int] = {"threads": 4, "learning": 1, "vectors": 1}
    for entry in filter(None, (each.strip() for each in text.split(";"))):
        name, _, count = (piece.strip() for piece in entry.partition("="))
        queue = next((each for each in QUEUES if each == name), None)
        if queue is None or not count.isdecimal() or int(count) > 64:
            raise ConfigError(
                f"fleet_limits: {entry!r} is not a limit of a queue. Write threads=4; learning=1; "
                "vectors=1, each at most 64."
            )
        limits[queue] = int(count)
    return limits
