"""What is done every day, on SQLite and on PostgreSQL in turns, in one run.

Two stores with the same content. Each row has the time on both, and the processor time of our
process and of the server: a busy machine moves the clock alone. What takes more than three times
as long on PostgreSQL is a miss, to be mended or explained on the page. PostgreSQL is that of
SMARA_EVAL_POSTGRES:
``SMARA_TEST_DURABLE=1 python -m tests.with_postgres python -m bench databases``.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import smara
from bench import exporting, hooking, saying, tasking
from bench.corpus import Corpus, rare_name
from bench.measure import Report, p50, p95
from bench.tenants import server_seconds

SIZES = (10_000, 100_000)
LARGE = (*SIZES, 1_000_000)
MOST = 3.0
"""So many times the time on SQLite may anything take on PostgreSQL."""
TASKS = 5_000
_ROUNDS = 60
_MEMORIES = 6 * _ROUNDS
_HOOKS = 12
_BATCH = 500
_ERASED = 100
"""Messages of a thread that is erased."""
Action = Callable[[smara.Memory, int], object]


class Taken(NamedTuple):
    """Seconds of one call by the clock, and of the processor here and at the server."""

    wall: float
    own: float
    server: float = 0.0


def run(folder: Path, report: Report, sizes: tuple[int, ...] = SIZES) -> None:
    """Measure each size in two stores of its own."""
    url = os.environ.get("SMARA_EVAL_POSTGRES")
    if url is None:
        print("needs PostgreSQL: python -m tests.with_postgres python -m bench databases")
        return
    for size in sizes:
        place = folder / f"databases-{size}"
        place.mkdir()
        places = _places(place, url, f"both_{size}")
        stores = {
            name: smara.open(at, project="bench", compact_every_messages=0)
            for name, at in places.items()
        }
        try:
            _measure(place, report, stores, size)
        finally:
            for store in stores.values():
                store.close()
    _hooks(folder, report, url)
    _import(folder, report, url)


def _places(folder: Path, url: str, key: str) -> dict[str, str]:
    there = re.sub(r"schema=\w+", f"schema={key}", url)
    return {"SQLite": str(folder / f"{key}.db"), "PostgreSQL": there}


def _measure(folder: Path, report: Report, stores: dict[str, smara.Memory], size: int) -> None:
    label, corpus = f"{size:,} messages", Corpus(11)
    batches = [
        list(corpus.messages(_BATCH, start)) for start in range(0, size - _BATCH + 1, _BATCH)
    ]
    add: Action = lambda memory, n: memory.messages.add_many(  # noqa: E731 - one of the actions
        thread_id=f"t{n // 2}", messages=batches[n]
    )
    _tell(report, f"{label}: append, batch of {_BATCH}", _turns(stores, add, range(len(batches))))
    for store in stores.values():
        saying.fill_knowledge(store, Corpus(11), _MEMORIES)
        store.tasks.put_many(tasking.tasks(TASKS))
        store.embeddings.embed_pending()
        _settle(store)
    questions = corpus.questions(_ROUNDS)
    # Names of messages that were written, as these have them.
    names = [rare_name(50 * n, corpus.words) for n in range(1, _ROUNDS + 1)]
    for what, action in _actions(folder, questions, names).items():
        _tell(report, f"{label}: {what}", _turns(stores, action, range(_ROUNDS)))
    for store in stores.values():
        store.messages.add_many(thread_id="gone", messages=corpus.messages(_ERASED))
    erase: Action = lambda memory, n: memory.privacy.erase(threads=["gone"])  # noqa: E731 - as above
    _tell(report, f"{label}: erase a thread of {_ERASED}, files written again",
          _turns(stores, erase, range(1), is_warm=False))  # fmt: skip


def _actions(folder: Path, questions: list[str], names: list[str]) -> dict[str, Action]:
    corpus = Corpus(3)
    texts = [corpus.text(number) for number in range(_ROUNDS)]

    def claim(memory: smara.Memory, number: int) -> None:
        task = memory.tasks.claim(memory.tasks.ready(limit=1)[0].id, session_id=f"s{number}")
        memory.tasks.release(task.id, session_id=f"s{number}")

    return {
        "append, one": lambda memory, n: memory.messages.add(
            thread_id="single", role="user", content=texts[n]
        ),
        "search, a question": lambda memory, n: memory.search(questions[n]),
        "search, a rare name": lambda memory, n: memory.search(names[n]),
        f"ready, of {TASKS:,} tasks": lambda memory, n: memory.tasks.ready(),
        "ready, claim and release": claim,
        "start of a session": lambda memory, n: memory.moments.start(f"a{n}", cwd=str(folder)),
        "before a change": lambda memory, n: memory.moments.before_tool(
            f"b{n}", "Edit", {"file_path": f"src/m0/f{n * 6}.py"}
        ),
        "after a search": lambda memory, n: memory.moments.after_tool(
            f"c{n}", "Grep", {"pattern": f"call_{n * 6}"}
        ),
        "first message": lambda memory, n: memory.moments.first_message(
            f"d{n}", "Please go on with task number 7 about the tests"
        ),
    }


def _turns(
    stores: dict[str, smara.Memory], action: Action, numbers: Iterable[int], is_warm: bool = True
) -> dict[str, list[Taken]]:
    """Let the stores take turns; the first call of each prepares, where there are several."""
    found: dict[str, list[Taken]] = {name: [] for name in stores}
    for number in numbers:
        for name, store in stores.items():
            has_server = name == "PostgreSQL"
            server = server_seconds(store) if has_server else 0.0
            started, used = time.perf_counter(), time.process_time()
            action(store, number)
            own, wall = time.process_time() - used, time.perf_counter() - started
            server = server_seconds(store) - server if has_server else 0.0
            if number or not is_warm:
                found[name].append(Taken(wall, own, server))
    return found


def _tell(report: Report, what: str, found: dict[str, list[Taken]]) -> None:
    plain, other = found["SQLite"], found["PostgreSQL"]
    ratio = p50([each.wall for each in other]) / p50([each.wall for each in plain])
    used = [p50([each.own + each.server for each in some]) * 1000 for some in (plain, other)]
    parts = [
        f"{p50([each.wall for each in some]) * 1000:,.1f} / "
        f"{p95([each.wall for each in some]) * 1000:,.1f}"
        for some in (plain, other)
    ]
    served = p50([each.server for each in other]) * 1000
    report.figure(f"databases {what}", ratio)
    report.figure(f"databases {what}, processor", used[1] / max(used[0], 1e-3))
    report.add(
        f"{what}, p50 / p95, SQLite and PostgreSQL",
        f"{parts[0]} and {parts[1]} ms = {ratio:.1f}; processor {used[0]:,.1f} and {used[1]:,.1f}"
        f" (server {served:,.1f}) = {used[1] / max(used[0], 1e-3):.1f}",
        f"<= {MOST:g}",
        ratio <= MOST,
    )


def _settle(store: smara.Memory) -> None:
    """Let the database count what is there, as the server does by itself within a minute."""
    if store.internals.database.kind == "postgres":
        database: Any = store.internals.database
        with database.read() as session:  # outside a transaction no schema is set
            tables = database.tables(session)
        with database.autocommit() as session:
            for table in tables:
                session.run(f"VACUUM (ANALYZE) {database.schema}.{table}")


def _hooks(folder: Path, report: Report, url: str) -> None:
    """Run hooks that speak as processes, in a repository with a file that has a trap."""
    place = folder / "hooks-both"
    place.mkdir()
    subprocess.run(["git", "init", "-q", str(place)], check=True)  # noqa: S607 - git is where the user has it
    places = _places(place, url, "both_hooks")
    known = {"tool_name": "Read", "tool_response": "x", "tool_input": {"file_path": "known.py"}}
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "hook, start of a session": ("SessionStart", {"source": "startup"}),
        "hook, tool result, something known": ("PostToolUse", {**known, "tool_use_id": "1"}),
    }
    with chdir(place):
        for at in places.values():
            with smara.open(at) as memory:
                memory.memories.add(
                    "known.py must be read before it is changed: its tables are generated",
                    type="gotcha", files=["known.py"], by="person", source="user_taught",
                )  # fmt: skip
    for at in places.values():
        hooking.once("drain", {}, place, store=at)  # prepares what hooks say
    for what, (event, payload) in cases.items():
        found: dict[str, list[Taken]] = {name: [] for name in places}
        spoken = dict.fromkeys(places, 0)
        for number in range(_HOOKS + 1):
            for name, at in places.items():
                about = {**payload, "session_id": f"{name}-{what[6:10]}-{number}"}
                taken, size = hooking.once(event, about, place, store=at)
                spoken[name] += bool(size)
                if number:  # the first run compiles
                    found[name].append(Taken(taken.wall, taken.processor))
        # On a busy machine a hook gives up before its answer is there.
        what += f", spoken {spoken['SQLite']} and {spoken['PostgreSQL']} of {_HOOKS + 1}"
        _tell(report, what, found)


def _import(folder: Path, report: Report, url: str) -> None:
    """Import one archive into an empty store of each."""
    size, archive, places = SIZES[0], folder / "both.zip", _places(folder, url, "both_import")
    with smara.open(folder / "both-source.db", embedder="off", project="bench") as memory:
        for start in range(0, size, 1_000):
            memory.messages.add_many(
                thread_id=f"t{start // 1000}", messages=Corpus().messages(1_000, start)
            )
        memory.privacy.export(archive)
    found = {}
    for name, at in places.items():
        _, _, seconds = exporting.measure(at, archive, "import")
        found[name] = [Taken(seconds, 0.0)]
    ratio = found["PostgreSQL"][0].wall / found["SQLite"][0].wall
    report.figure("databases import", ratio)
    report.add(
        f"import of {size:,} messages, SQLite and PostgreSQL",
        f"{found['SQLite'][0].wall:.1f} and {found['PostgreSQL'][0].wall:.1f} s = {ratio:.1f}",
        f"<= {MOST:g}",
        ratio <= MOST,
    )
