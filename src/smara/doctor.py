"""Examine a store: problems, why they matter, what to do.

It opens nothing that cannot be opened and repairs nothing unless asked to: a store too
new, damaged or unreadable is examined from outside.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from smara.config import Settings, default_store
from smara.database.database import Database
from smara.database.filesystem import network_filesystem
from smara.database.migrate import HEAD, schema_version
from smara.errors import SmaraError
from smara.memory import Memory, open_database, open_memory

if TYPE_CHECKING:
    from smara.knowledge.memories import Memories
    from smara.tasks.tasks import Tasks

Level = Literal["ok", "warning", "problem"]

LOW_DISK_BYTES = 200 * 1024 * 1024
LARGE_WAL_BYTES = 64 * 1024 * 1024
_RESCUE = (
    "Copy the file and its -wal aside first; then put a backup in its place,"
    " or save what can be read with the program sqlite3 (.recover)."
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the doctor looked at."""

    check: str
    level: Level
    text: str
    advice: str = ""
    is_fixed: bool = False


def examine(settings: Settings, fix: bool = False) -> list[Finding]:
    """Examine everything; with ``fix`` repair what can be repaired.

    Permissions, the write-ahead log and the index.
    """
    found: list[Finding] = []
    is_postgres = settings.db is not None and settings.db.startswith(
        ("postgresql://", "postgres://")
    )
    if not is_postgres and settings.db != ":memory:":
        path = _path(settings.db)
        found += list(_file_findings(path, fix))
        if not os.path.exists(path) or any(finding.check == "access" for finding in found):
            return found
    found += _inside(settings, fix)
    return found


def _path(db: str | None) -> str:
    return str(default_store()) if db is None else os.path.expanduser(db.removeprefix("sqlite:///"))


def _file_findings(path: str, fix: bool) -> Iterator[Finding]:
    import apsw

    from smara.database.sqlite import wal_is_safe

    version = apsw.sqlite_lib_version()
    if wal_is_safe(version):
        yield Finding("sqlite", "ok", f"SQLite {version} is free of the WAL-reset bug.")
    else:
        yield Finding(
            "sqlite",
            "warning",
            f"SQLite {version} can lose commits in WAL mode; the rollback journal is used.",
            advice="Upgrade: pip install --upgrade apsw",
        )
    if not os.path.exists(path):
        yield Finding(
            "store",
            "warning",
            f"There is no store at {path} yet.",
            advice="Run `smara init`, or add a message.",
        )
        return
    yield from _permission_findings(path, fix)
    network = network_filesystem(path)
    if network:
        yield Finding(
            "file system",
            "warning",
            f"The store is on a network file system ({network}); locks cannot be trusted.",
            advice="Move it to a local disk, or use PostgreSQL (--db postgresql://...).",
        )
    else:
        yield Finding("file system", "ok", "The store is on a local disk.")
    yield _disk_finding(path)
    yield _wal_finding(path)


def _permission_findings(path: str, fix: bool) -> Iterator[Finding]:
    if not os.access(path, os.R_OK):
        yield Finding(
            "access",
            "problem",
            f"{path} cannot be read by you.",
            advice=f"Run: chmod u+rw '{path}'",
        )
        return
    if not os.access(path, os.W_OK) or not os.access(
        os.path.dirname(os.path.abspath(path)), os.W_OK
    ):
        yield Finding(
            "access",
            "problem",
            f"{path} or its folder cannot be written by you, so nothing can be stored.",
            advice="Make the file and its folder writable for your user.",
        )
        return
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if sys.platform == "win32" or not mode & 0o077:
        yield Finding("permissions", "ok", "Only you can read the store.")
        return
    if fix:
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.chmod(path + suffix, 0o600)
    yield Finding(
        "permissions",
        "ok" if fix else "problem",
        f"Others on this machine could read the store (mode {mode:04o}).",
        advice=f"Run: chmod 600 '{path}'",
        is_fixed=fix,
    )


def _disk_finding(path: str) -> Finding:
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
    if free < LOW_DISK_BYTES:
        return Finding(
            "disk",
            "problem",
            f"Only {free // 2**20} MiB are free.",
            advice="Free some room on this disk.",
        )
    return Finding("disk", "ok", f"{free // 2**20:,} MiB are free.")


def _wal_finding(path: str) -> Finding:
    try:
        size = os.stat(path + "-wal").st_size
    except OSError:
        size = 0
    if size <= LARGE_WAL_BYTES:
        return Finding("write-ahead log", "ok", f"{size // 1024:,} KiB.")
    holders = processes_holding(path)
    who = f" Held open by process {', '.join(map(str, holders))}." if holders else ""
    return Finding(
        "write-ahead log",
        "warning",
        f"It has grown to {size // 2**20} MiB, which happens while a reader stays open.{who}",
        advice="End the process that keeps the store open; `smara doctor --fix` then shrinks it.",
    )


def processes_holding(path: str) -> list[int]:
    """Other processes that have the file open, where the system tells (Linux)."""
    found = []
    real = os.path.realpath(path)
    for folder in Path("/proc").glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        try:
            if any(os.readlink(entry) == real for entry in (folder / "fd").iterdir()):
                found.append(int(folder.name))
        except OSError:
            continue
    return sorted(found)


def _inside(settings: Settings, fix: bool) -> list[Finding]:
    try:
        database = open_database(settings)
    except SmaraError as error:
        return [_not_opened(error)]
    try:
        schema = _schema_finding(database)
    except SmaraError as error:
        return [_not_opened(error)]
    finally:
        database.close()
    if schema.level == "problem":
        return [schema]
    found = [schema]
    try:
        with open_memory(
            settings.db,
            project=settings.project,
            busy_timeout_seconds=settings.busy_timeout_seconds,
            check_index=False,
            embed_in_background=False,
        ) as memory:
            found += [Finding("store", "warning", warning) for warning in memory.warnings]
            found += list(_content_findings(memory, fix))
    except SmaraError as error:
        found.append(_not_opened(error))
    return found


def _not_opened(error: SmaraError) -> Finding:
    if error.code != "corrupt":
        return Finding("open", "problem", str(error))
    reason = error.facts.get("reason") or str(error)
    return Finding(
        "integrity", "problem", f"The file is damaged or no store ({reason}).", advice=_RESCUE
    )


def _schema_finding(database: Database) -> Finding:
    with database.read() as session:
        version = schema_version(database, session)
    if version > HEAD:
        return Finding(
            "schema",
            "problem",
            f"The store has schema {version}; this Smara knows up to {HEAD}.",
            advice="Upgrade: pip install --upgrade smara",
        )
    if version < HEAD:
        return Finding(
            "schema",
            "ok",
            f"The store has schema {version} and is brought to {HEAD} when it is used.",
        )
    return Finding("schema", "ok", f"The store has schema {version}, the newest.")


def _content_findings(memory: Memory, fix: bool) -> Iterator[Finding]:
    in_the_index: list[str] = []
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        lambda: _integrity_findings(memory, in_the_index),
        lambda: _index_findings(memory, in_the_index, fix),
        lambda: _totals_findings("tasks", memory.tasks, fix),
        lambda: _totals_findings("memories", memory.memories, fix),
        lambda: _vector_findings(memory, fix),
    )
    for check in checks:
        try:
            yield from check()
        except SmaraError as error:
            yield Finding("store", "problem", str(error))
    if fix and memory.path is not None:
        yield _shrunk(memory.shrink_log())


def _shrunk(is_moved: bool) -> Finding:
    if is_moved:
        return Finding("write-ahead log", "ok", "It was moved into the store.")
    return Finding(
        "write-ahead log",
        "warning",
        "A reader still holds it, so it could not be moved into the store.",
        advice="End the process that keeps the store open, then run `smara doctor --fix` again.",
    )


def _integrity_findings(memory: Memory, in_the_index: list[str]) -> Iterator[Finding]:
    """What is wrong with the file; what is wrong with the index alone is left to the next check."""
    damage = memory.integrity()
    # SQLite counts a wrong index as damage too, but it is made again without a backup.
    in_the_index += [each for each in damage if "FTS5 table" in each]
    in_the_file = [each for each in damage if each not in in_the_index]
    if in_the_file:
        yield Finding(
            "integrity", "problem", f"The file is damaged: {in_the_file[0]}.", advice=_RESCUE
        )
    else:
        yield Finding("integrity", "ok", "Every page of the store is sound.")


def _index_findings(memory: Memory, damage: list[str], fix: bool) -> Iterator[Finding]:
    problems = memory.index.problems(deep=True) or [
        f"The search index is damaged ({each})." for each in damage
    ]
    if not problems:
        yield Finding("search index", "ok", "It agrees with the messages.")
    elif fix:
        count = memory.index.rebuild()
        yield Finding(
            "search index",
            "ok",
            f"{problems[0]} It was rebuilt from {count} messages.",
            is_fixed=True,
        )
    else:
        yield Finding(
            "search index",
            "problem",
            problems[0],
            advice="Run `smara doctor --fix`: it is rebuilt from the messages; nothing is lost.",
        )


def _totals_findings(name: str, room: Tasks | Memories, fix: bool) -> Iterator[Finding]:
    problems = room.problems()
    if not problems:
        yield Finding(name, "ok", f"Their totals agree with the {name}.")
    elif fix:
        room.recount()
        yield Finding(name, "ok", f"{problems[0]} They were counted again.", is_fixed=True)
    else:
        yield Finding(
            name, "problem", problems[0], advice="Run `smara doctor --fix`: they are counted again."
        )


def _vector_findings(memory: Memory, fix: bool) -> Iterator[Finding]:
    if not memory.embeddings.is_begun():
        return
    problems = memory.embeddings.problems()
    if not problems:
        yield Finding("vectors", "ok", "They agree with what they were made of.")
    elif fix:
        memory.embeddings.mend()
        yield Finding(
            "vectors", "ok", f"{problems[0]} What is missing is made again.", is_fixed=True
        )
    else:
        yield Finding(
            "vectors",
            "problem",
            problems[0],
            advice="Run `smara doctor --fix`: what belongs to nothing goes, what is missing is "
            "made "
            "again.",
        )
