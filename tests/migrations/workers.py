"""What the processes of the migration tests do; a module of its own, so that they can be
spawned.
"""

from __future__ import annotations

import os
from typing import Any

from smara.config import Settings
from smara.core.clock import SystemClock
from smara.database import migrate as migration
from smara.memory import open_database


def migrate_at_once(address: str, barrier: Any, answers: Any) -> None:
    """Wait for the others, then migrate; the number of steps taken, or the error."""
    try:
        barrier.wait(600)
        database = open_database(Settings(db=address, durability="normal"))
        answers.put(migration.migrate(database, SystemClock()))
        database.close()
    except Exception as error:
        answers.put(repr(error))


def die_at_statement(address: str, number: int) -> None:
    """Migrate, and be killed before the statement of this number; exit code 0 when there were
    fewer.
    """
    database = open_database(Settings(db=address, durability="normal"))
    write, left = database.write, [number]

    class Dying:
        def __init__(self, session: Any) -> None:
            self.session = session

        def __getattr__(self, name: str) -> Any:
            if name in ("run", "one", "all"):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), 9)
            return getattr(self.session, name)

    class Write:
        def __init__(self, **how: Any) -> None:
            self.inner = write(**how)

        def __enter__(self) -> Any:
            return Dying(self.inner.__enter__())

        def __exit__(self, *error: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), 9)  # after the last statement, before the commit
            return self.inner.__exit__(*error)

    database.write = Write  # type: ignore[method-assign, assignment]
    migration.migrate(database, SystemClock())
    database.close()
