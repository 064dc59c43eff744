"""No query can raise or run away: any text is a query, and each is bounded by steps that are
counted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

import smara
from smara.database import fulltext_sqlite
from smara.database import fulltext_sqlite as records_sqlite
from smara.database import fulltext_sqlite as words_sqlite
from smara.errors import InvalidInputError
from smara.search import gather
from smara.search.gather import CANDIDATES
from smara.search.query import MOST_TERMS
from tests.faults.sizes import SEED, count

SAID = """
the a is in of and parser config loads retries token cache index thread failed error build deploy schema user session
timeout why when does what database migration lock café naïve Größe straße Ωmega 東京 検索 数据库 запрос
"""  # noqa: E501
WORDS = SAID.split()
NAMES = [
    f"{verb}_{noun}"
    for verb in ("load", "parse", "retry", "drop")
    for noun in ("config", "token", "cache", "index")
]
PATHS = [f"src/{name}/{name}.py" for name in ("store", "search", "cli", "parser")]
SYNTAX = r"""
AND OR NOT NEAR NEAR/3 NEAR(a,5) prose: code: scope: {prose code}: ^ * + - " ' '' "" ( ) [ ] { } : ; -- /* */ \ % _ $1 ?
:x @x & | ! <-> :* ` ~ ^p1 ^t1 ^ruser rank
"""  # noqa: E501
OPERATORS = SYNTAX.split()
SQL = [
    "'; DROP TABLE messages; --",
    "1=1 OR ''=''",
    "UNION SELECT * FROM threads",
    "message_index MATCH 'a'",
    "') OR (1=1",
]
STRANGE = ["\x00", "\ud800", "\udfff", "\ufdd0", "\ufeff", "\u202e", "\u2066", "\u200d", "\u200b",
    "\u0301" * 40,
           "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0010ffff", "\ufffe", "\r\n", "\x1b[31m",
           "İ", "ß", "ﬁ", "½",
           "\u2028", "٣٤", "𝒳", "ก็", "한국어", "עברית"]  # fmt: skip


def fill(memory: smara.Memory, messages: int, most_words: int = 0) -> None:
    """Conversations that hold words of the queries, so that these find something, among many of
    their own.
    """
    rng = random.Random(7)
    for thread in range(10):
        batch = [
            {"role": "user" if number % 2 else "assistant", "content": _said(rng, most_words)}
            for number in range(messages // 10)
        ]
        memory.messages.add_many(thread_id=f"t{thread}", messages=batch)


def _said(rng: random.Random, most_words: int) -> str:
    own = [
        f"{rng.choice(('kelp', 'fjord', 'mango', 'quartz'))}{rng.randrange(3_000)}"
        for _ in range(8)
    ]
    shared = (
        _pieces(rng, most_words or 1, (WORDS, NAMES, PATHS))
        if most_words or rng.random() < 0.2
        else []
    )
    return " ".join(own + shared + ["error"] * (rng.random() < 0.05))


def _pieces(rng: random.Random, most: int, pools: tuple[list[str], ...]) -> list[str]:
    return [rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, most))]


def random_query(rng: random.Random) -> str:
    """Some text: mostly words and operators, at times something long, foreign or broken."""
    kind = rng.random()
    if kind < 0.45:
        return rng.choice((" ", "", " ")).join(
            _pieces(rng, 12, (WORDS, NAMES, PATHS, OPERATORS, STRANGE, SQL))
        )
    if kind < 0.6:
        return " ".join(_pieces(rng, 8, (WORDS, NAMES)))
    if kind < 0.72:
        return "".join(
            chr(rng.choice((rng.randrange(0x20, 0x7F), rng.randrange(0x250))))
            for _ in range(rng.randint(0, 40))
        )
    if kind < 0.82:
        return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randint(0, 30)))
    if kind < 0.88:
        return " ".join([rng.choice(WORDS + NAMES + OPERATORS)] * rng.choice((2, 33, 256)))
    if kind < 0.92:
        return rng.choice("([{\"'^*-") * rng.choice((1, 50, 3000)) + rng.choice(WORDS)
    if kind < 0.96:
        name = rng.choice(NAMES + PATHS)
        return name[rng.randrange(len(name)) :] + rng.choice(("", "_", ".", "x", "*"))
    if kind < 0.998:
        return "".join(
            rng.choice("東京大阪検索数据库索引запрос") for _ in range(rng.randint(1, 60))
        )
    return pasted_log(rng, rng.choice((2_000, 20_000, 100_000)))


def pasted_log(rng: random.Random, size: int) -> str:
    """A log as people paste it into a search box."""
    lines = [
        f"2026-03-0{rng.randint(1, 9)}T12:00:{n % 60:02d} ERROR [{rng.choice(NAMES)}] "
        f"0x{rng.getrandbits(64):016x} "
        + " ".join(_pieces(rng, 10, (WORDS, NAMES, PATHS, OPERATORS)))
        for n in range(size // 120)
    ]
    return "\n".join(lines)


def complaint(memory: smara.Memory, query: str, limit: int) -> str | None:
    """What is wrong with the answer to a query; ``None`` when nothing is."""
    try:
        answer = memory.search(query, limit)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    trace = answer.trace
    if len(answer) > limit:
        return f"{len(answer)} hits, {limit} were asked for"
    if trace.terms > MOST_TERMS:
        return f"{trace.terms} terms"
    if trace.postings > gather.POSTINGS_LIMIT + 7 * gather.CONJUNCTION_LIMIT:
        return f"{trace.postings} postings"
    if trace.candidates > CANDIDATES:
        return f"{trace.candidates} candidates"
    return f"warnings {answer.warnings}" if answer.warnings else None


def complaints(memory: smara.Memory, rng: random.Random, queries: int) -> Iterator[tuple[str, str]]:
    for _ in range(queries):
        query, limit = random_query(rng), rng.choice((1, 5, 10, 10, 50))
        found = complaint(memory, query, limit)
        if found:
            yield query[:300], found


PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_random_queries_never_raise_and_stay_within_their_bounds(
    store: str, rng: random.Random, part: int
) -> None:
    with smara.open(store, search_deadline_seconds=60.0) as memory:
        fill(memory, 2_000 if part == 0 else 300)
        assert list(complaints(memory, rng, count(1_500, 200_000) // PARTS)) == [], f"seed {SEED}"


@pytest.mark.postgres
def test_random_queries_never_raise_on_postgres(postgres_url: str, rng: random.Random) -> None:
    with smara.open(postgres_url, search_deadline_seconds=60.0) as memory:
        fill(memory, 1_000)
        assert list(complaints(memory, rng, count(200, 4_000))) == [], f"seed {SEED}"


def test_common_words_stay_within_limits_that_are_met(
    store: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With limits so low that most queries meet them, the counts still hold, and the answer says it
    was cut.
    """
    for name, value in (("TERM_LIMIT", 60), ("POSTINGS_LIMIT", 200), ("CONJUNCTION_LIMIT", 20)):
        monkeypatch.setattr(gather, name, value)
    with smara.open(store, search_deadline_seconds=60.0) as memory:
        fill(memory, 1_000, most_words=14)
        assert list(complaints(memory, rng, count(150, 5_000))) == [], f"seed {SEED}"
        trace = memory.search(
            "parser config retries token cache index thread failed error build"
        ).trace
        assert trace.postings <= 200 + 7 * 20
        assert not trace.is_complete


def test_pasted_log_and_repeated_words_cost_no_more_than_their_distinct_terms(
    store: str, rng: random.Random
) -> None:
    with smara.open(store, search_deadline_seconds=60.0) as memory:
        fill(memory, 500)
        for query in (
            pasted_log(rng, 100_000),
            "error " * 256,
            '"error" ' * 1_000,
            "(" * 5_000 + "error",
        ):
            answer = memory.search(query)
            assert answer.trace.terms <= MOST_TERMS
            assert answer.trace.postings <= 2_000 * MOST_TERMS
            assert answer.warnings == ()
        assert memory.search("error " * 256).trace.postings == memory.search("error").trace.postings


@pytest.mark.parametrize(
    "ask",
    [lambda memory, text: memory.search_threads(text), lambda memory, text: memory.complete(text)],
)
def test_random_texts_never_make_completion_or_thread_search_raise(
    store: str, rng: random.Random, ask: Callable[[smara.Memory, str], object]
) -> None:
    with smara.open(store, search_deadline_seconds=60.0) as memory:
        fill(memory, 300)
        for _ in range(count(300, 20_000)):
            query = random_query(rng)
            try:
                ask(memory, query)
            except Exception as error:
                pytest.fail(f"{query[:300]!r}: {error!r}, seed {SEED}")


def test_fuzz_sees_errors_when_quoting_is_off(
    store: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: terms handed to FTS5 as they are written."""
    # Each has taken the name for its own, so all are imported before: one that came later would
    # keep the mutant.
    for module in (fulltext_sqlite, records_sqlite, words_sqlite):
        monkeypatch.setattr(module, "quoted", lambda term: term)
    with smara.open(store, search_deadline_seconds=60.0) as memory:
        fill(memory, 200)
        assert any(complaints(memory, rng, 300)), f"seed {SEED}"


def test_search_that_is_out_of_time_answers_and_does_not_raise(store: str) -> None:
    """A deadline that has passed already; in a store whose sums alone take longer than a look at
    the clock.
    """
    with smara.open(store) as memory:
        with memory._rooms.database.write() as session:
            session.run_many(
                "INSERT INTO threads (project_no, id, resource_id, kind, metadata, created_at, "
                "updated_at)"
                " VALUES (1, ?, 'default', 'conversation', '{}', 1, 1)",
                [(f"thread{number}",) for number in range(6_000)],
            )
        memory.messages.add(thread_id="thread1", role="user", content="parser config")
    with smara.open(store, search_deadline_seconds=0.0) as memory:
        answer = memory.search("parser config")
        assert not answer.trace.is_complete
        assert memory.search_threads("parser config").hits == ()
        assert isinstance(memory.complete("pars"), list)


@pytest.mark.postgres
def test_search_that_is_out_of_time_answers_and_does_not_raise_on_postgres(
    postgres_url: str,
) -> None:
    with smara.open(postgres_url) as memory:
        fill(memory, 1_000)
        # Somebody holds the table: every look into the index now runs into the deadline.
        with (
            smara.open(postgres_url, search_deadline_seconds=0.05) as late,
            memory._rooms.database.write() as session,
        ):
            session.run("LOCK TABLE message_index IN ACCESS EXCLUSIVE MODE")
            answer = late.search("parser config")
    assert not answer.trace.is_complete
    assert answer.warnings


@pytest.mark.parametrize("name", ["thread_id", "resource_id", "task_id"])
@pytest.mark.parametrize("value", ["\ud800", "a\x00b", "x" * 100_000, "' OR 1=1", ""])
def test_strange_filters_find_nothing_or_are_refused_by_name(
    store: str, name: str, value: str
) -> None:
    with smara.open(store) as memory:
        memory.messages.add(thread_id="t", role="user", content="parser config")
        try:
            found = [hit.content for hit in memory.search("parser", **{name: value})]
        except InvalidInputError as error:
            found = [] if name in str(error) else [str(error)]
        assert found == []
