"""Giants and oddities: stored whole and found, or refused with a clear error; bounded, never
silently dropped.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.adapters.importer import Importer
from smara.errors import InvalidInputError
from tests.faults import recount
from tests.faults.sizes import IS_LARGE, count

MIB = 1024 * 1024
GIANT = count(4, 64) * MIB
CACHE = 24 * MIB
"""SQLite's page cache, which a small giant fills as well as a large one."""
TINY = count(20_000, 1_000_000)
DEPTH = count(30_000, 100_000)


def measured(program: str, *arguments: object) -> dict[str, Any]:
    """Run a program in a process of its own; what it prints as JSON, its memory use among it."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


GIANT_PROGRAM = """
import hashlib, json, random, resource, sys
import smara

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def text(kind, size):
    if kind == "words":
        words = [f"word{n}" for n in range(5000)]
        random.Random(1).shuffle(words)
        line = " ".join(words) + "\\n"
        return (line * (size // len(line) + 1))[: size - 30] + " the needle_at_the_end of it"
    if kind == "one word":
        return "x" * (size - 1)
    letters = [chr(0x4E00 + n) for n in range(3000)]
    random.Random(1).shuffle(letters)
    return ("".join(letters) * (size // 9000 + 1))[: size // 3 - 4] + "龘靐齉"

path, kind, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
with smara.open(path) as memory:
    memory.messages.add(thread_id="warm", role="user", content="everything is loaded")
    memory.search("loaded")
    giant = text(kind, size)
    baseline = peak()
    memory.messages.add(thread_id="t", role="user", content=giant, client_id="giant")
    stored = peak()
    query = {"words": "needle_at_the_end", "one word": "x" * 5000, "cjk": "龘靐齉"}[kind]
    hits = memory.search(query)
    snippet = hits[0].snippet if hits else ""
    digest = hashlib.sha256(giant.encode()).hexdigest()
    del giant, hits
with smara.open(path) as memory:
    found = memory.messages.list(thread_id="t")[0]
    print(json.dumps({
        "is_same": hashlib.sha256(found.raw_content.encode()).hexdigest() == digest,
        "snippet": snippet, "baseline": baseline, "stored": stored, "searched": peak(), "tokens": found.token_count,
    }))
"""  # noqa: E501


@pytest.mark.parametrize(
    ("kind", "needle"), [("words", "needle_at_the_end"), ("one word", ""), ("cjk", "龘靐齉")]
)
def test_giant_message_is_stored_whole_and_found_in_bounded_memory(
    store: str, kind: str, needle: str
) -> None:
    told = measured(GIANT_PROGRAM, store, kind, GIANT)
    per_byte = (told["stored"] - told["baseline"]) / GIANT
    sys.stdout.write(f"{kind}: {per_byte:.1f} bytes of memory per byte to store, {told}\n")
    assert told["is_same"]
    assert needle in told["snippet"]
    assert told["tokens"] > 0
    assert told["stored"] <= told["baseline"] + 12 * GIANT + CACHE, told
    if (
        not IS_LARGE
    ):  # the large tier recounts elsewhere; analyzing 64 MiB again here would double its time
        with smara.open(store) as memory:
            assert recount.problems(memory) == []


def test_message_beyond_the_limit_is_refused_by_size_and_nothing_is_stored(store: str) -> None:
    with smara.open(store, max_message_bytes=1_000) as memory:
        memory.messages.add(thread_id="t", role="user", content="x" * 1_000)
        for content in ("x" * 1_001, "é" * 501, [{"type": "tool_result", "text": "y" * 1_001}]):
            with pytest.raises(InvalidInputError, match="at most 1,000 are stored"):
                memory.messages.add(thread_id="t", role="user", content=content)
        with pytest.raises(InvalidInputError, match="Message 1:"):
            batch = [{"role": "user", "content": "fits"}, {"role": "user", "content": "x" * 1_001}]
            memory.messages.add_many(thread_id="t", messages=batch)
        assert memory.threads.get("t").message_count == 1
        assert recount.problems(memory) == []


def test_line_beyond_the_limit_is_counted_with_its_number(store: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    sizes = (10, 2_000, 10)
    lines = [json.dumps({"thread": "t", "role": "user", "content": "x" * size}) for size in sizes]
    file.write_text("\n".join(lines) + "\n")
    with smara.open(store, max_message_bytes=1_000) as memory:
        report = Importer(memory).import_file(file)
        assert (report.lines, report.stored, [line for line, _ in report.refused]) == (3, 2, [2])


STRANGE = [
    "\x00", "a\x00b", "\ud800", "end \udfff", "\ud83d\ude00", "\ufdd0", "\ufdd0" + "0000",
    "\ufdd0d800", "\ufffe\uffff",
    "\u202eright to left", "é" * 5000, "\r\n\t\x0b\x1b[0m", "", " ", "\x00" * 5000, "\ud800\udc00",
    "\U0010ffff", "🏳️‍🌈",
]  # fmt: skip


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def where(request: pytest.FixtureRequest, store: str) -> str:
    """A store of either kind."""
    return store if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def test_strange_characters_come_back_as_they_were(where: str) -> None:
    with smara.open(where) as memory:
        for number, text in enumerate(STRANGE):
            # Two halves of a pair side by side are one character in JSON, which metadata is.
            metadata = json.loads(json.dumps({"kept": text, text or "k": 1}))
            added = memory.messages.add(
                thread_id="t", role="tool", content=f"{text} marker{number}", metadata=metadata
            )
            found = memory.messages.get(added.id)
            assert found.raw_content == added.raw_content == f"{text} marker{number}"
            assert found.metadata == added.metadata == metadata
            assert [hit.id for hit in memory.search(f"marker{number}", limit=1)] == [added.id]
            part = {
                "type": "tool_call",
                "name": "edit",
                "arguments": {"text": text, "list": [text, {text: text}]},
            }
            called = memory.messages.add(
                thread_id="calls", role="assistant", content=[part, {"type": "text", "text": text}]
            )
            again = memory.messages.get(called.id)
            assert again.parts == called.parts
            assert again.parts[0].arguments == part["arguments"]
        if memory._rooms.database.kind == "sqlite":
            assert memory.internals.database.integrity() == []
        assert memory.internals.index.problems(deep=True) == []


def test_strange_characters_in_summaries_and_titles_come_back_as_they_were(store: str) -> None:
    with smara.open(store, compact_every_messages=0) as memory:
        memory.threads.add("t", title="a\x00b \ud800")
        memory.messages.add_many(
            thread_id="t",
            messages=[
                {"role": "user", "content": f"call run\x00_{n}() \ud800 now"} for n in range(20)
            ],
        )
        made = memory.compactions.compact("t").compactions
        shown = memory.messages.list(thread_id="t")[0].compaction
        assert shown is not None
        assert (shown.summary, shown.code) == (made[0].summary, made[0].code)
        assert memory.threads.get("t").title == "a\x00b \ud800"


def deep_list(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def deep_dict(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("deep", [deep_list, deep_dict])
@pytest.mark.parametrize("depth", [150, 900, 2_000, DEPTH])
def test_deep_json_is_stored_whole_or_refused_with_a_reason(
    store: str, deep: Any, depth: int
) -> None:
    """Never a ``RecursionError``, whatever the depth, and what was stored can be read again."""
    with smara.open(store) as memory:
        attempts: list[dict[str, Any]] = [
            {"content": "x", "metadata": {"deep": deep(depth)}},
            {"content": [{"type": "tool_call", "name": "n", "arguments": {"deep": deep(depth)}}]},
            {"content": [{"type": "tool_call", "name": "n", "arguments": deep(depth)}]},
        ]
        stored, reasons = 0, list[str]()
        for attempt in attempts:
            try:
                added = memory.messages.add(thread_id="t", role="assistant", **attempt)
            except InvalidInputError as error:
                reasons.append(str(error))
                continue
            stored += 1
            found = memory.messages.get(added.id)
            assert (json.dumps(found.metadata), len(found.parts)) == (json.dumps(added.metadata), 1)
        try:
            memory.threads.update("t", metadata={"deep": deep(depth)}) if stored else None
        except InvalidInputError as error:
            reasons.append(str(error))
        assert [reason for reason in reasons if "deep" not in reason] == []
        assert memory.threads.totals()["messages"] == stored
        assert recount.problems(memory) == []


def test_deep_lines_are_counted_and_the_others_imported(store: str, tmp_path: Path) -> None:
    bomb = "[" * DEPTH + "]" * DEPTH
    objects = '{"a":' * DEPTH + "1" + "}" * DEPTH
    open_ended = "[" * DEPTH
    lines = [
        '{"thread": "t", "role": "user", "content": "before the bomb"}',
        f'{{"thread": "t", "role": "user", "content": "x", "metadata": {bomb}}}',
        f'{{"thread": "t", "role": "assistant", "content": [{{"type": "tool_call", "arguments": '
        f"{objects}}}]}}",
        objects,
        bomb,
        open_ended,
        '{"thread": "t", "role": "user", "content": "lone \\ud800 and NUL \\u0000 inside"}',
        '{"thread": "t", "role": "user", "content": "after the bomb"}',
    ]
    file = tmp_path / "deep.jsonl"
    file.write_text("\n".join(lines) + "\n")
    with smara.open(store) as memory:
        report = Importer(memory).import_file(file)
        assert report.lines == len(lines)
        assert report.stored + report.repeated + sum(report.counted.values()) + len(
            report.refused
        ) == len(lines)
        assert report.stored == 3
        assert len(memory.search("bomb")) == 2
        assert recount.problems(memory) == []


TINY_PROGRAM = """
import json, resource, sys
import smara

def now():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

path, total = sys.argv[1], int(sys.argv[2])
size, early = 2_000, 0
with smara.open(path, compact_every_messages=int(sys.argv[3]), durability="normal") as memory:
    for first in range(0, total, size):
        batch = [{"role": "user", "content": f"m{n}", "client_id": f"c{n}"} for n in range(first, first + size)]
        memory.messages.add_many(thread_id=f"t{first // size % 50}", messages=batch)
        if first == max(total // 5 // size, 1) * size:
            early = now()
    late = now()
    print(json.dumps({"early": early, "late": late, "totals": memory.threads.totals(),
                      "hits": [hit.content for hit in memory.search(f"m{total - 1}", limit=1)]}))
"""  # noqa: E501


def test_very_many_tiny_messages_are_all_there_in_bounded_memory(store: str) -> None:
    told = measured(TINY_PROGRAM, store, TINY, 0)
    sys.stdout.write(f"{told}\n")
    assert told["totals"]["messages"] == TINY
    assert told["hits"] == [f"m{TINY - 1}"]
    assert told["late"] - told["early"] < 200 * MIB, told
    with smara.open(store) as memory, memory._rooms.database.read() as session:
        assert memory.warnings == []
        counted = session.one(
            "SELECT count(*), count(DISTINCT client_id), sum(token_count), max(seq) FROM messages"
        )
        sums = session.one(
            "SELECT sum(last_seq), sum(index_rows), sum(tokens), max(last_seq) FROM threads"
        )
        assert counted is not None
        assert sums == (counted[0], counted[0], counted[2], counted[3])
        assert counted[:2] == (TINY, TINY)
        if not IS_LARGE:
            assert recount.problems(memory) == []
    sizes = [Path(store).stat().st_size / TINY]
    assert sizes[0] < 1_500, "bytes on disk per tiny message"
