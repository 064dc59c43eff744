"""Name the processes that keep erased bytes in a store.

A reader of SQLite keeps the log as it is; a transaction of PostgreSQL keeps the rows that it may
still see.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from smara.database.database import Database
from smara.secrets import redact

_LONGEST_PROGRAM = 60


class Holder(NamedTuple):
    """A process that has a store open."""

    pid: int
    program: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.program})"


def holders_of(database: Database) -> list[Holder]:
    """Return the other processes that use a store, where the system tells."""
    if database.kind == "sqlite":
        return processes_holding(database.path)
    with database.read() as session:
        rows = session.all(
            "SELECT pid, coalesce(nullif(application_name, ''), usename, backend_type)"
            " || coalesce(' at ' || host(client_addr), '') FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND"
            " ((backend_xid IS NOT NULL AND xact_start < clock_timestamp() - interval '5 seconds')"
            " OR (datname = current_database() AND (backend_xmin IS NOT NULL"
            " OR state LIKE 'idle in transaction%'))) ORDER BY pid"
        )
    return [Holder(int(pid), str(program)[:_LONGEST_PROGRAM]) for pid, program in rows]


def processes_holding(path: str) -> list[Holder]:
    """Return other processes that have a file open (Linux)."""
    found = []
    real = os.path.realpath(path)
    for folder in Path("/proc").glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        try:
            if any(os.readlink(entry) == real for entry in (folder / "fd").iterdir()):
                words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                program = " ".join([os.path.basename(words[0]), *words[1:]]).strip()
                found.append(Holder(int(folder.name), redact(program).text[:_LONGEST_PROGRAM]))
        except OSError:
            continue
    return sorted(found)
