"""What the processes of the behavior tests do; a module of its own, so that they can be spawned."""

from __future__ import annotations

import os
from typing import Any

import smara
from tests.agent_events import Script

DAY_MS = 86_400_000


def session(number: int) -> Script:
    """A session with a failure and its fix, and two files that change together; green at its
    end.
    """
    script = Script(f"s{number}", 1_760_000_000_000 + number * DAY_MS).prompt("Do the ticket.")
    script.fail("npm test", "bash: npm: command not found").run("pnpm test", "12 passed")
    return script.read("src/a/x.py").edit("src/a/x.py").edit("src/b/y.py").green().end()


def die_while_learning(address: str, number: int, what: str) -> None:
    """Tell of the third session or decide on it, and be killed before the statement of this number.

    Exit code 0 when there were fewer statements.
    """
    with smara.open(
        address, embedder="off", embed_in_background=False, durability="normal"
    ) as memory:
        if what == "finalize":
            memory.behavior.observe_batch(session(2).events)
        die_before(memory._rooms.database, number)
        if what == "finalize":
            memory.behavior.finalize("s2")
        else:
            memory.behavior.observe_batch(session(2).events)


def tell_and_decide(address: str, barrier: Any, answers: Any) -> None:
    """Wait for the others, then tell of all sessions and decide on each; what was promoted, or the
    error.
    """
    try:
        with smara.open(
            address, embedder="off", embed_in_background=False, durability="normal"
        ) as memory:
            barrier.wait(600)
            promoted = 0
            for number in range(3):
                events = session(number).events
                for start in range(0, len(events), 2):
                    memory.behavior.observe_batch(events[start : start + 2])
                done = memory.behavior.finalize(f"s{number}")
                promoted += len(done.promoted) if done is not None else 0
            answers.put(promoted)
    except Exception as error:
        answers.put(repr(error))


def die_before(database: Any, number: int) -> None:
    """Be killed before the statement of this number that writes; also between the last one and its
    commit.
    """
    write, left = database.write, [number]

    class Dying:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            if name in ("run", "one", "all", "run_many"):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), 9)
            return getattr(self.inner, name)

    class Write:
        def __init__(self, *given: Any, **named: Any) -> None:
            self.inner = write(*given, **named)

        def __enter__(self) -> Any:
            return Dying(self.inner.__enter__())

        def __exit__(self, *error: Any) -> Any:
            if left[0] == 0:
                os.kill(os.getpid(), 9)  # after the last statement, before the commit
            return self.inner.__exit__(*error)

    database.write = Write
