"""Empty stores for tests, of both databases: copied rather than migrated each time.

Tests of the migrations themselves, and of what a path without a file does, open a store without
this.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from smara.testing import empty_store as empty_store_file
from tests import postgres

BOTH = [pytest.param("sqlite"), pytest.param("postgres", marks=pytest.mark.postgres)]
"""For a fixture or a test that takes the kind of a store."""
POOLED = pytest.param("pooled", marks=pytest.mark.postgres)
"""PostgreSQL behind a pooler."""


def new_file(path: Path) -> Path:
    """Put a store with its tables, and no row of anybody's, at a path where there is nothing
    yet.
    """
    return put_file(path, empty_store_file())


def put_file(path: Path, content: bytes) -> Path:
    """Put a copy of a store at a path where there is nothing yet, as private as the store itself
    would make it.
    """
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    return path


@contextmanager
def empty_store(kind: str, folder: Path | None = None) -> Iterator[str]:
    """Where a store is that is up to date and empty; a file is put into the folder, or into one of
    its own.
    """
    if kind == "sqlite" and folder is not None:
        yield str(new_file(folder / "smara.db"))
    elif kind == "sqlite":
        with tempfile.TemporaryDirectory(prefix="smara-") as own:
            yield str(new_file(Path(own) / "smara.db"))
    else:
        is_pooled = kind == "pooled" or bool(os.environ.get("SMARA_TEST_POOLER"))
        reason = postgres.missing()
        if is_pooled and postgres.pooler() is None:
            reason = "pgbouncer is not installed; `apt-get install pgbouncer`"
        if reason:
            pytest.skip(reason)
        with postgres.fresh_store(is_pooled) as url:
            yield url


def files_of(database: Any, log_since: float | None = None) -> list[Path]:
    """Return the files that may hold what a store keeps.

    Of a server these are its folder without the other databases, which are those of other tests,
    and of its log what was written since a time.
    """
    if database.kind == "sqlite":
        path = Path(database.path)
        return list(path.parent.glob(f"{path.name}*"))
    with database.read() as session:
        session.run("CHECKPOINT")
        (folder,) = session.one("SELECT current_setting('data_directory')")
        (own,) = session.one("SELECT oid FROM pg_database WHERE datname = current_database()")
    paths = []
    for part in Path(folder).iterdir():
        if part.name == "base":
            paths += (part / str(own)).rglob("*")
        elif part.name != "pg_wal":
            paths += [part, *part.rglob("*")]
        elif log_since is not None:
            paths += [each for each in part.iterdir() if each.stat().st_mtime >= log_since]
    return paths
