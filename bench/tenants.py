"""A project of 500 messages among others: its search while the rest grows 100 times.

Two stores of one server, with the same project; beside it 8 others in the first, 800 in the second.
Both take turns. The machine may be busy, so that besides the clock it counts what depends on the
store alone: pages that the statements of a search touch (``EXPLAIN (ANALYZE, BUFFERS)``), locks,
indexes, the time of planning, and processor time of the server. PostgreSQL is that of
SMARA_EVAL_POSTGRES: ``python -m tests.with_postgres python -m bench tenants``.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import smara
from bench.corpus import Corpus
from bench.generator import Generator, fill
from bench.measure import Report, p50, p95
from smara.database.servers import PostgresSession, with_dollar_marks

GROWTH = 100
QUESTIONS = 60
ROUNDS = 3
MOST = 1.2
"""So many times its cost may a search have in the grown store."""
_SEED = 5
_INDEXES = (
    "SELECT count(*) FROM pg_class WHERE relkind IN ('i', 'I')"
    " AND relnamespace = current_schema()::regnamespace"
)
_LOCKS = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'"


class Cost(NamedTuple):
    """The cost of one search on the server."""

    pages: int
    locks: int
    planning_ms: float
    statements: dict[str, int]
    """The pages of each."""


def run(folder: Path, report: Report, growth: int = GROWTH) -> None:
    """Make both stores, and let them take turns."""
    url = os.environ.get("SMARA_EVAL_POSTGRES")
    if url is None:
        print("needs PostgreSQL: python -m tests.with_postgres python -m bench tenants")
        return
    places = {"small": f"{url}_small", "grown": f"{url}_grown"}
    try:
        for name, place in places.items():
            copies = growth - 1 if name == "grown" else 0
            messages = make(place, copies)
            report.add(f"tenants, {name}", f"1 project of 500 beside {messages:,} messages")
        for kind, embedder in (("words", "off"), ("words and meaning", None)):
            given: dict[str, Any] = {"embedder": embedder} if embedder else {}
            stores = {
                name: smara.open(place, project="tenant", **given) for name, place in places.items()
            }
            _compare(stores, kind, report)
            for store in stores.values():
                store.close()
    finally:
        import psycopg

        from smara.database.servers import split_schema

        for place in places.values():
            conninfo, schema = split_schema(place)
            with psycopg.connect(conninfo, autocommit=True) as connection:
                connection.execute("SET client_min_messages TO warning")
                connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def make(place: str, copies: int) -> int:
    """Write the tenant, the templates and their copies; return the messages of the others."""
    with smara.open(place, project="tenant") as memory:
        fill(memory, _SEED)
        generator = Generator(memory)
        generator.make_templates()
        generator.copy(copies)
        generator.settle()
        return generator.messages


def _compare(stores: dict[str, smara.Memory], kind: str, report: Report) -> None:
    questions = Corpus(_SEED).questions(QUESTIONS)
    for store in stores.values():
        assert store.search(questions[0], deep=True).trace.used_meaning is (kind != "words")
        for question in questions:
            store.search(question)
    clock: dict[str, list[float]] = {name: [] for name in stores}
    spent: dict[str, float] = dict.fromkeys(stores, 0.0)
    for number in range(QUESTIONS * ROUNDS):
        for name, store in stores.items():
            question = questions[number % QUESTIONS]
            before, started = server_seconds(store), time.perf_counter()
            store.search(question)
            clock[name].append(time.perf_counter() - started)
            spent[name] += server_seconds(store) - before
    costs = {name: [cost(store, each) for each in questions[:20]] for name, store in stores.items()}

    def add(what: str, unit: str, values: dict[str, float], is_target: bool = True) -> None:
        ratio = values["grown"] / values["small"] if values["small"] else 1.0
        report.figure(f"tenants {kind} {what}", ratio)
        report.add(
            f"{kind}: {what}, small / grown",
            f"{values['small']:,.2f} / {values['grown']:,.2f} {unit} = {ratio:.2f}",
            f"<= {MOST:g}" if is_target else "",
            ratio <= MOST if is_target else None,
        )

    count = QUESTIONS * ROUNDS
    for what, pick in (("p50", p50), ("p95", p95)):
        add(f"search {what}", "ms", {name: pick(each) * 1000 for name, each in clock.items()})
    add(
        "server processor time a search",
        "ms",
        {name: seconds / count * 1000 for name, seconds in spent.items()},
    )
    picks: tuple[tuple[str, str, Callable[[Cost], float]], ...] = (
        ("pages read a search", "pages", lambda each: each.pages),
        ("locks of a search", "locks", lambda each: each.locks),
        ("planning of a search", "ms", lambda each: each.planning_ms),
        ("different statements of a search", "statements", lambda each: len(each.statements)),
    )
    for what, unit, value in picks:
        values = {name: statistics.median(map(value, found)) for name, found in costs.items()}
        # A tree that is one page higher costs each look a page: that grows with the logarithm.
        add(what, unit, values, is_target="pages" not in what)
    _add_statements(costs, kind, report)
    indexes = {}
    for name, store in stores.items():
        with store.internals.database.read() as session:
            indexes[name] = float((session.one(_INDEXES) or (0,))[0])
    add("indexes of the store", "indexes", indexes)


def _add_statements(costs: dict[str, list[Cost]], kind: str, report: Report) -> None:
    """Name the statements that touch the most more pages in the grown store."""
    pages = {
        name: {
            sql: sum(each.statements.get(sql, 0) for each in found) / len(found)
            for sql in {sql for each in found for sql in each.statements}
        }
        for name, found in costs.items()
    }
    more = {sql: count - pages["small"].get(sql, 0.0) for sql, count in pages["grown"].items()}
    for sql in sorted(more, key=lambda sql: -more[sql])[:5]:
        report.add(
            f"{kind}: {' '.join(sql.split())[:150]}",
            f"{pages['small'].get(sql, 0.0):,.0f} / {pages['grown'][sql]:,.0f} pages",
        )


def cost(store: smara.Memory, question: str) -> Cost:
    """Explain each statement of one search, in one transaction."""
    with _statements() as statements:
        store.search(question)
    pages: dict[str, int] = {}
    planning = 0.0
    with store.internals.database.read() as session:
        connection: Any = session.connection  # type: ignore[attr-defined]
        for sql, values in statements:
            if not sql.lstrip().upper().startswith(("SELECT", "WITH")):
                continue
            plan = connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {with_dollar_marks(sql)}", values or None
            ).fetchone()[0][0]
            touched = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
            pages[sql] = pages.get(sql, 0) + touched
            planning += plan["Planning Time"]
        locks = int((session.one(_LOCKS) or (0,))[0])
    return Cost(sum(pages.values()), locks, planning, pages)


@contextmanager
def _statements() -> Iterator[list[tuple[str, Sequence[Any]]]]:
    """Write down the statements that are sent meanwhile."""
    found: list[tuple[str, Sequence[Any]]] = []
    before = PostgresSession.all, PostgresSession.one

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: PostgresSession, sql: str, values: Sequence[Any] = ()) -> Any:
            found.append((sql, values))
            return original(self, sql, values)

        return call

    PostgresSession.all, PostgresSession.one = map(wrap, before)  # type: ignore[assignment, method-assign]
    try:
        yield found
    finally:
        PostgresSession.all, PostgresSession.one = before  # type: ignore[method-assign]


def server_seconds(store: smara.Memory) -> float:
    """Return the processor time of the processes that serve a store."""
    pool: Any = store.internals.database._pool._pool  # type: ignore[attr-defined]
    spent = 0
    for connection in list(pool._pool):
        file = Path(f"/proc/{connection.info.backend_pid}/schedstat")
        spent += int(file.read_text().split()[0]) if file.exists() else 0
    return spent / 1e9
