"""Look for erased words where they must not be any more.

A piece of text that some record still holds is no trace: it was said elsewhere too. Files of a
server of PostgreSQL are read by the server itself, if its role may.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from glob import escape, glob
from itertools import chain, compress, product

from smara.core.escape import to_storable
from smara.database.database import Database, Row, Session, parts
from smara.database.session import number
from smara.environment import spool_folder
from smara.privacy.tables import RECORDS

_CHUNK_BYTES = 32 << 20
_RECORDS = frozenset(table.name for table in RECORDS)
_STATISTICS = r"""
SELECT DISTINCT s.tablename, t.relname = ANY(?), n.piece
  FROM (SELECT schemaname, tablename, replace(replace(concat(most_common_vals, histogram_bounds,
    most_common_elems), '\"', '"'), '\\', '\') AS held FROM pg_stats) s
  JOIN unnest(?::text[]) AS n (piece) ON strpos(s.held, n.piece) > 0
  JOIN pg_class c ON c.relnamespace = current_schema()::regnamespace AND c.relname = s.tablename
  LEFT JOIN pg_index i ON i.indexrelid = c.oid -- one of an expression has its own
  JOIN pg_class t ON t.oid = coalesce(i.indrelid, c.oid)
  WHERE s.schemaname = current_schema()
"""


def find_traces(
    database: Database, samples: Sequence[str], projects: Collection[int] | None = None
) -> list[str]:
    """Return files and indexes that hold a sample no record holds.

    Looked at are those in which the projects lie, with all that others have there.
    """
    with database.snapshot() as session:
        places = database.places(session, projects) if database.kind == "postgres" else {}
        holders: dict[str, list[str]] = {sample: [] for sample in samples}
        for name, columns in database.tables(session).items():
            texts = [each.name for each in columns if each.type == "string"]
            for place, part in product(places.get(name, [name]) if texts else (), parts(samples)):
                for sample in _find_samples(session, place, texts, samples=part):
                    holders[sample].append(name)
        own = {
            sample: tables
            for sample, tables in holders.items()
            if not any(name in _RECORDS or "code" in name for name in tables)
        }
        traces = dict.fromkeys(chain(*own.values()))
        needles = sorted({form for sample in own for form in forms_of(sample)})
        found = _files_with(database, session, needles, places=places) if needles else ()
        return list(traces | dict.fromkeys(found))


def _find_samples(
    session: Session, table: str, columns: Sequence[str], samples: Sequence[str]
) -> Iterator[str]:
    """Yield the samples that a table holds; asked for in one statement."""
    joined = " OR ".join(f"{name} LIKE ? ESCAPE '!'" for name in columns)
    statement = ", ".join([f"EXISTS (SELECT 1 FROM {table} WHERE {joined})"] * len(samples))
    forms = (re.sub(r"([!%_])", r"!\1", to_storable(each)) for each in samples)
    values = [f"%{form}%" for form in forms for _ in columns]
    return compress(samples, session.one(f"SELECT {statement}", values) or ())


def _files_with(
    database: Database,
    session: Session,
    needles: Sequence[bytes],
    places: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """Yield the files of the store whose bytes hold one of some pieces."""
    for path in store_files(database):
        try:
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                if any(data.find(needle) >= 0 for needle in needles):
                    yield path
        except (OSError, ValueError):
            continue  # gone meanwhile, or empty
    if database.kind == "postgres":
        yield from _server_files_with(session, needles, places)


def _server_files_with(
    session: Session, needles: Sequence[bytes], places: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield tables and indexes of a server in whose files, or statistics, a piece is."""
    names = [*chain(places, *places.values())]
    values = [needle.decode("utf-8", "replace") for needle in needles]
    found = session.all(_STATISTICS, (names, values))
    yield from (f"statistics of {table}" for table, is_here, _ in found if is_here)
    # The parts of others keep their statistics, which are in one file with all others.
    own = set(needles) - {value.encode() for _, is_here, value in found if not is_here}
    for name, path, size, segment in _relations(session, names) if may_read_files(session) else ():
        # Nothing goes over the end of a page, of which a chunk and a segment have a whole number.
        for start in range(0, size, _CHUNK_BYTES):
            file = f"{path}.{start // segment}" if start >= segment else path
            row = session.one(
                "SELECT pg_read_binary_file(?, ?, ?, true)", (file, start % segment, _CHUNK_BYTES)
            )
            data = bytes(row[0]) if row and row[0] is not None else b""
            if any(
                each in data
                for each in (own if name.endswith(("pg_statistic", "pg_toast_2619")) else needles)
            ):
                yield name
                break


def _relations(session: Session, names: Sequence[str]) -> list[Row]:
    """Return files of tables, their indexes and statistics: name, file, size, size of a segment."""
    return session.all(
        "WITH own AS (SELECT c.oid, c.reltoastrelid FROM pg_class c"
        " WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY(?)"
        " OR c.oid = 'pg_catalog.pg_statistic'::regclass),"
        " heaps AS (SELECT oid FROM own UNION SELECT reltoastrelid FROM own),"
        " every AS (SELECT oid FROM heaps UNION SELECT i.indexrelid FROM pg_index i"
        " JOIN heaps h ON h.oid = i.indrelid)"
        " SELECT every.oid::regclass::text, pg_relation_filepath(every.oid),"
        " pg_relation_size(every.oid), pg_size_bytes(current_setting('segment_size')) FROM every"
        " WHERE every.oid <> 0 AND pg_relation_filepath(every.oid) IS NOT NULL ORDER BY 1",
        (names,),
    )


def may_read_files(session: Session) -> bool:
    """Return True if the server reads its own files for this role."""
    row = session.one(
        "SELECT has_function_privilege('pg_read_binary_file(text, bigint, bigint, boolean)',"
        " 'execute')"
    )
    return bool(row and row[0])


def store_files(database: Database) -> list[str]:
    """Return the files of a store, with what waits in its spool."""
    found = [
        os.path.join(folder, name) for folder, _, names in os.walk(spool_folder()) for name in names
    ]
    if database.kind == "sqlite":
        found += [database.path + end for end in ("", "-wal", "-journal")]
    return found


def forms_of(text: str) -> set[bytes]:
    """Return the forms of a text in files: plain, escaped, JSON."""
    escaped = [json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)]
    return {form.encode("utf-8", "replace") for form in (text, to_storable(text), *escaped)}


def clear_spool(
    texts: Iterable[str], sessions: Iterable[str], *, is_everything: bool = False
) -> int:
    """Remove erased things from the spool; return the number of files.

    Briefs and what sessions were told are made again from the store. Of events that wait, and of
    those that could not be read, the files go that hold one of the texts or name a session.
    """
    folder = spool_folder()
    for name in ("briefs", "told"):
        shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    needles = [form.lower() for text in texts for form in forms_of(text)]
    needles += [json.dumps(name).lower().encode() for name in sessions]
    removed = 0
    for path in (
        os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
    ):
        with suppress(OSError):
            with open(path, "rb") as file:
                content = file.read().lower()
            if is_everything or any(needle in content for needle in needles):
                os.unlink(path)
                removed += 1
    return removed


def out_of_reach(database: Database) -> list[str]:
    """Return places of copies that an erase does not change."""
    reasons = [
        "backups, archives and exports that were written before: a restored backup brings it back"
    ]
    if database.kind == "sqlite":
        saved = glob(f"{escape(database.path)}.before-restore-*")
        reasons += [f"the former store {path}" for path in sorted(saved)]
        reasons.append("free blocks and snapshots of the disk")
    else:
        with database.read() as session:
            reasons += _server_copies(session)
    return [*reasons, "the agents' own transcripts", "models that were sent the words"]


def _server_copies(session: Session) -> list[str]:
    """Return where a server keeps copies, by its settings."""
    rows = session.all(
        "SELECT name, CASE WHEN unit = 'MB' THEN setting || ' MB' WHEN unit = 's'"
        " THEN setting || ' s' ELSE setting END FROM pg_settings WHERE name IN ('max_wal_size',"
        " 'wal_keep_size', 'checkpoint_timeout', 'archive_mode', 'log_statement',"
        " 'log_min_duration_statement')"
    )
    settings: dict[str, str] = {str(name): str(value) for name, value in rows}
    copies = [
        "the write-ahead log: overwritten after checkpoints (checkpoint_timeout"
        f" {settings['checkpoint_timeout']}), kept up to max_wal_size {settings['max_wal_size']}"
        f" and wal_keep_size {settings['wal_keep_size']}"
    ]
    for table, what in (
        ("pg_replication_slots", "replication slots, which hold the log back for their readers"),
        ("pg_stat_replication", "replicas, which replay the erase and keep logs of their own"),
    ):
        count = number(session, f"SELECT count(*) FROM {table}")
        copies += [f"{count} {what}"] if count else []
    is_archived = settings["archive_mode"] != "off"
    copies.append(
        "the archive of the log (archive_mode is on), as long as you keep it, and base backups"
        if is_archived
        else "base backups of the server (archive_mode is off: the log is not archived)"
    )
    if settings["log_statement"] != "none" or settings["log_min_duration_statement"] != "-1":
        copies.append("the server's log, which is set to hold statements")
    statement = "SELECT count(*) FROM pg_database WHERE datname = current_database()"
    if not number(session, f"{statement} AND pg_has_role(datdba, 'member')"):
        copies.append(
            "old statistics of columns, until the server cleans them up: only the owner of the"
            " database may"
        )
    if not may_read_files(session):
        copies.append(
            "the files of the server: this role may not read them, so that tables and statistics"
            " alone were searched"
        )
    return copies
