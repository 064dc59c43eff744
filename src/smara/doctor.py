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
from typing import TYPE_CHECKING, Literal

from smara.codegraph.language import languages
from smara.config import Settings, default_store
from smara.core.startup.record import dataclass, replace
from smara.database.database import Database
from smara.database.filesystem import network_filesystem
from smara.database.migrate import HEAD, opened_by, schema_version
from smara.environment import store_file
from smara.errors import CorruptError, SmaraError
from smara.memory import Memory, open_database, open_memory
from smara.privacy.holders import processes_holding

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
    path = store_file(settings.db or str(default_store()))
    if path is not None and path != ":memory:":
        found += _file_findings(path, fix)
        if not os.path.exists(path) or any(finding.check == "access" for finding in found):
            return found
    try:
        languages()
    except SmaraError as error:
        found.append(Finding("languages", "problem", f"No code can be indexed: {error}"))
    return found + _inside(settings, fix)


def _file_findings(path: str, fix: bool) -> Iterator[Finding]:
    import apsw

    from smara.database.sqlite import wal_is_safe

    version = apsw.sqlite_lib_version()
    yield (
        Finding("sqlite", "ok", f"SQLite {version} is free of the WAL-reset bug.")
        if wal_is_safe(version)
        else Finding(
            "sqlite",
            "warning",
            f"SQLite {version} can lose commits in WAL mode; the rollback journal is used.",
            advice="Upgrade: pip install --upgrade apsw",
        )
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
    yield (
        Finding(
            "file system",
            "warning",
            f"The store is on a network file system ({network}); locks cannot be trusted.",
            advice="Move it to a local disk, or use PostgreSQL (--db postgresql://...).",
        )
        if network
        else Finding("file system", "ok", "The store is on a local disk.")
    )
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
    room = f"{free // 2**20:,} MiB are free."
    yield (
        Finding("disk", "problem", f"Only {room}", advice="Free some room on this disk.")
        if free < LOW_DISK_BYTES
        else Finding("disk", "ok", room)
    )
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


def _wal_finding(path: str) -> Finding:
    from smara.database.sqlite import file_size

    size = file_size(path + "-wal")
    if size <= LARGE_WAL_BYTES:
        return Finding("write-ahead log", "ok", f"{size // 1024:,} KiB.")
    holders = processes_holding(path)
    who = f" Held open by {', '.join(map(str, holders))}." if holders else ""
    return Finding(
        "write-ahead log",
        "warning",
        f"It has grown to {size // 2**20} MiB, which happens while a reader stays open.{who}",
        advice="End the process that keeps the store open; `smara doctor --fix` then shrinks it.",
    )


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
            notes = memory.projects.notes(memory.project)
            found += [Finding("project", "ok", f"{memory.project}: {each}") for each in notes]
            found += list(_content_findings(memory, fix))
    except SmaraError as error:
        found.append(_not_opened(error))
    return found


def _not_opened(error: SmaraError, check: str = "open") -> Finding:
    if error.code != "corrupt":
        return Finding(check, "problem", str(error))
    reason = error.facts.get("reason") or str(error)
    return Finding(
        "integrity", "problem", f"The file is damaged or no store ({reason}).", advice=_RESCUE
    )


def _schema_finding(database: Database) -> Finding:
    with database.read() as session:
        version = schema_version(database, session)
        is_open = version <= HEAD or opened_by(session, version) <= HEAD
    if is_open and version > HEAD:
        text = f"The store has schema {version}; this Smara knows {HEAD} and may use it."
        return Finding("schema", "ok", text)
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
    index_damage: list[str] = []
    checks: tuple[Callable[[], Finding | None], ...] = (
        lambda: _integrity_finding(memory, index_damage),
        lambda: _index_finding(memory, index_damage, fix),
        lambda: _totals_finding("tasks", memory.tasks, fix),
        lambda: _totals_finding("memories", memory.memories, fix),
        lambda: _vector_finding(memory, fix),
        lambda: _erase_finding(memory, fix),
        lambda: _text_finding(memory),
    )
    damage = set()  # several checks may meet the same
    for check in checks:
        try:
            finding = check()
        except SmaraError as error:
            finding = _not_opened(error, "store")
        if finding is not None and finding not in damage:
            damage.add(finding)
            yield finding
    if not fix or memory.path is None:
        return
    if memory.internals.database.shrink_log():
        yield Finding("write-ahead log", "ok", "It was moved into the store.")
        return
    yield Finding(
        "write-ahead log",
        "warning",
        "A reader still holds it, so it could not be moved into the store.",
        advice="End the process that keeps the store open, then run `smara doctor --fix` again.",
    )


def _integrity_finding(memory: Memory, index_damage: list[str]) -> Finding:
    """Return what is wrong with the file; damage to the index is left to the next check."""
    is_refused = False
    try:
        damage = memory.internals.database.integrity()
    except CorruptError as error:
        # An index whose settings are lost makes SQLite refuse the whole check.
        damage, is_refused = [str(error.facts.get("reason") or "its check is refused")], True
    # SQLite counts a wrong index as damage too, but it is made again without a backup.
    index_damage += [each for each in damage if "fts5" in each.casefold()]
    in_the_file = [each for each in damage if each not in index_damage]
    if not in_the_file and is_refused:
        text = "The pages were not checked: the damaged search index, below, refuses it."
        return Finding("integrity", "warning", text, advice="Rebuild the index, then check again.")
    if not in_the_file:
        return Finding("integrity", "ok", "Every page of the store is sound.")
    return Finding(
        "integrity", "problem", f"The file is damaged: {in_the_file[0]}.", advice=_RESCUE
    )


def _index_finding(memory: Memory, damage: list[str], fix: bool) -> Finding:
    return _repaired(
        Finding("search index", "ok", "It agrees with the messages."),
        memory.internals.index.problems(deep=True)
        or [f"The search index is damaged ({each})." for each in damage],
        memory.internals.index.rebuild if fix else None,
        done="It was rebuilt from {} messages.",
        repair="it is rebuilt from the messages; nothing is lost.",
    )


def _totals_finding(name: str, room: Tasks | Memories, fix: bool) -> Finding:
    return _repaired(
        Finding(name, "ok", f"Their totals agree with the {name}."),
        room.problems(),
        room.recount if fix else None,
        done="They were counted again.",
        repair="they are counted again.",
    )


def _vector_finding(memory: Memory, fix: bool) -> Finding | None:
    if not memory.embeddings.is_begun():
        return None
    return _repaired(
        Finding("vectors", "ok", "They agree with what they were made of."),
        memory.embeddings.problems(),
        memory.embeddings.mend if fix else None,
        done="What is missing is made again.",
        repair="what belongs to nothing goes, what is missing is made again.",
    )


def _text_finding(memory: Memory) -> Finding | None:
    finding = memory.transcripts.status().finding()
    return None if finding is None else Finding("texts", *finding)


def _erase_finding(memory: Memory, fix: bool) -> Finding | None:
    problems = memory.privacy.problems()
    if not problems:
        return None
    if fix and memory.privacy.finish_erase():
        return Finding("erase", "ok", f"{' '.join(problems)} They are gone now.", is_fixed=True)
    return Finding(
        "erase",
        "warning",
        " ".join(problems),
        advice="`smara doctor --fix` removes them; end other processes first.",
    )


def _repaired(
    healthy: Finding,
    problems: list[str],
    mend: Callable[[], object] | None,
    done: str,
    repair: str,
) -> Finding:
    """Return the finding if all is well; otherwise what was repaired or can be.

    Args:
        healthy: The finding without problems.
        problems: What is wrong.
        mend: Repairs it; None if nothing is to be repaired.
        done: What was done, with a place for what ``mend`` returned.
        repair: What a repair would do.
    """
    if not problems:
        return healthy
    if mend is not None:
        return replace(healthy, text=f"{problems[0]} {done.format(mend())}", is_fixed=True)
    return replace(
        healthy, level="problem", text=problems[0], advice=f"Run `smara doctor --fix`: {repair}"
    )
