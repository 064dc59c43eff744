"""Look for erased words where they must not be any more.

A piece of text that some record still holds is no trace: it was said elsewhere too.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from glob import escape, glob

from smara.core.escape import to_storable
from smara.database.database import Database, Session
from smara.environment import spool_folder
from smara.privacy.tables import BY_NAME


def find_traces(database: Database, samples: Sequence[str]) -> list[str]:
    """Return files and indexes that hold a sample no record holds."""
    traces: dict[str, None] = {}
    with database.snapshot() as session:
        columns = {
            name: [each.name for each in found if each.type == "string"]
            for name, found in database.tables(session).items()
        }
        for sample in samples:
            tables = [
                name
                for name, texts in columns.items()
                if texts and _is_in(session, name, texts, to_storable(sample))
            ]
            if not any(BY_NAME[name].holds == "records" or "code" in name for name in tables):
                traces |= dict.fromkeys(tables)
                traces |= dict.fromkeys(_files_with(database, sample))
    return list(traces)


def _is_in(session: Session, table: str, columns: Sequence[str], sample: str) -> bool:
    joined = " OR ".join(f"{name} LIKE ? ESCAPE '!'" for name in columns)
    pattern = sample
    for sign in "!%_":
        pattern = pattern.replace(sign, f"!{sign}")
    statement = f"SELECT 1 FROM {table} WHERE {joined} LIMIT 1"
    return session.one(statement, [f"%{pattern}%"] * len(columns)) is not None


def _files_with(database: Database, sample: str) -> Iterator[str]:
    """Yield the files of the store whose bytes hold a sample, escaped or not."""
    needles = {form.encode("utf-8", "replace") for form in (sample, to_storable(sample))}
    for path in store_files(database):
        try:
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                if any(data.find(needle) >= 0 for needle in needles):
                    yield path
        except (OSError, ValueError):
            continue  # gone meanwhile, or empty


def store_files(database: Database) -> list[str]:
    """Return the files of a store, with what waits in its spool."""
    found = [
        os.path.join(folder, name) for folder, _, names in os.walk(spool_folder()) for name in names
    ]
    if database.kind == "sqlite":
        found += [database.path + end for end in ("", "-wal", "-journal")]
    return found


def out_of_reach(database: Database) -> list[str]:
    """Return places of copies that an erase does not change."""
    reasons = ["backups, archives and exports that were written before"]
    if database.kind == "sqlite":
        saved = glob(f"{escape(database.path)}.before-restore-*")
        reasons += [f"the former store {path}" for path in sorted(saved)]
        reasons.append("free blocks and snapshots of the disk")
    else:
        reasons.append("the write-ahead log, replicas and base backups of the server")
    return [*reasons, "the agents' own transcripts", "models that were sent the words"]
