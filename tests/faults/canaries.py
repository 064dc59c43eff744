"""Canaries: words that stand in one place each, and the erase that must take them away.

Each function of `KINDS` lets a word in by one door and returns what names it for an erase. A store
in which none of them was called is what is left after all were erased.
"""

from __future__ import annotations

import json
import os
import random
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import smara
from smara.adapters.hosts import spool
from smara.core.events import HostEvent
from smara.database.postgres import PostgresDatabase
from smara.database.servers import PostgresSession
from smara.database.sqlite import SqliteDatabase, SqliteSession
from smara.environment import spool_folder
from smara.errors import NotFoundError
from smara.memory import Memory
from smara.messages.models import NewMessage, NewThread
from smara.testing import HashEmbedder

WINDOW = 12
Target = dict[str, Any]
DAY_MS = 86_400_000


def words(rng: random.Random, how_many: int) -> list[str]:
    """Return words of 20 letters that nothing else holds."""
    return ["".join(rng.choices(string.ascii_lowercase, k=20)) for _ in range(how_many)]


def open_store(address: str) -> Memory:
    return smara.open(
        address, project="shop", embedding_model=HashEmbedder(), embedder="hash",
        models_enabled=False, token_model="estimate", durability="normal",
    )  # fmt: skip


def say(memory: Memory, content: str, thread_id: str, **given: Any) -> Any:
    return memory.messages.add(thread_id=thread_id, role="user", content=content, **given)


# What stays.

TALKS = (
    "We paint the doors of the garden house blue before the winter comes.",
    "Always retry the payment three times before giving up on the customer.",
    "The river floods the cellar every spring, so the pump stays plugged in.",
)


def plant_rest(memory: Memory) -> None:
    """Let in what no erase is about."""
    for number, text in enumerate(TALKS):
        say(memory, text, f"rest{number}")
        say(memory, "Thank you, that helps me a lot with the plan.", f"rest{number}")
    memory.working.put("# Page\n- Blue doors\n", scope="resource", resource_id="default")
    memory.memories.remember("The pump stays plugged in all spring", type="gotcha")
    memory.tasks.add("Paint the doors of the garden house", labels=["house"])
    for number in range(3):
        push(memory, f"push{number}", "main", at_ms=DAY_MS * (10 + number))


def push(memory: Memory, session_id: str, branch: str, at_ms: int) -> None:
    """Watch a session in which a push fails and another one works."""
    fix = f"git push --set-upstream origin {branch}"
    steps = (
        ("git push", f"fatal: The current branch {branch} has no upstream branch.", True),
        (fix, f"branch '{branch}' set up to track.", False),
    )
    events = [HostEvent("claude", "prompt", session_id, at_ms=at_ms, prompt="Push it", key="p")]
    for number, (command, output, is_failed) in enumerate(steps):
        events.append(
            HostEvent(
                "claude", "tool_fail" if is_failed else "tool_post", session_id,
                at_ms=at_ms + 1_000 * (number + 1), tool="Bash", tool_input={"command": command},
                tool_output=output, error=output if is_failed else None, key=f"c{number}",
            )
        )  # fmt: skip
    memory.behavior.observe_batch(events)
    memory.behavior.finalize(session_id)


# Doors.


def in_thread(memory: Memory, word: str, number: int) -> Target:
    memory.threads.add(f"own{number}", title=f"About {word}", metadata={"note": word})
    say(memory, f"The cat {word} sleeps in the barn.", f"own{number}")
    memory.observations.observe(f"own{number}")
    return {"threads": [f"own{number}"]}


def in_message(memory: Memory, word: str, number: int) -> Target:
    message = say(memory, f"My neighbor {word} wants a refund.", f"rest{number % 3}")
    memory.observations.observe(f"rest{number % 3}")
    return {"messages": [message.id]}


def in_memory(memory: Memory, word: str, number: int) -> Target:
    del number
    found = memory.memories.remember(
        f"{word} pays late", type="gotcha", tags=[word], files=[f"src/{word}.py"]
    ).memory
    memory.memories.update(found.id, content=f"{word} always pays late", by="person")
    memory.moments.after_tool("told", "Read", {"file_path": f"src/{word}.py"})
    return {"memories": [found.id]}


def in_evidence(memory: Memory, word: str, number: int) -> Target:
    message = say(memory, f"{word} must be called first.", f"proof{number}")
    memory.memories.add(
        f"Call {word} first", type="gotcha", evidence=[f"message:{message.id}"],
        session_id=f"proof{number}",
    )  # fmt: skip
    return {"threads": [f"proof{number}"]}


def in_task(memory: Memory, word: str, number: int) -> Target:
    del number
    task = memory.tasks.add(f"Call {word}", description=f"about {word}", labels=[word[:15]])
    memory.tasks.update(task.id, title=f"Call {word} today")
    return {"tasks": [task.id]}


def in_page(memory: Memory, word: str, number: int) -> Target:
    message = say(memory, f"{word} lives in the harbor.", f"rest{number % 3}")
    place = {"scope": "resource", "resource_id": "default"}
    page = memory.working.get(**place).content
    memory.working.put(f"{page}\n- {word} (harbor)", **place)
    memory.working.put(f"Draft of {word}", scope="thread", thread_id=f"page{number}")
    say(memory, f"{word} again", f"page{number}")
    return {"messages": [message.id], "threads": [f"page{number}"]}


def in_decision(memory: Memory, word: str, number: int) -> Target:
    cap = f"{10 + number % 80} euros"
    turns = (
        ("user", f"The garage of {word} overcharges people. Can you look at {word}_fee?"),
        ("assistant", f"{word}_fee charges every started hour. I would cap it: what is the cap?"),
        ("user", f"{cap} a day for {word}, and the day begins when the car enters."),
        ("assistant", f"{cap} per 24 hours from entry. Does the first half hour stay free?"),
        ("user", f"Yes, only once per car and day. Never free on event nights, {word} pays then."),
        ("assistant", f"Settled: {word}_fee is capped at {cap} per 24 hours counted from entry."),
    )
    messages = [
        NewMessage(role, text, f"d{number}-{at}", created_at=DAY_MS * 20 + at)
        for at, (role, text) in enumerate(turns)
    ]
    memory.messages.append_batch(NewThread(f"decide{number}"), messages, compact=False)
    memory.decisions.read(f"decide{number}")
    return {"threads": [f"decide{number}"]}


def in_session(memory: Memory, word: str, number: int) -> Target:
    at_ms = DAY_MS * 30 + 10_000 * number
    paths = (f"src/{word}/a.py", f"src/{word}/b.py")
    events = [
        HostEvent(
            "claude", "tool_post", f"watch{number}", at_ms=at_ms + at, tool="Edit",
            tool_input={"file_path": path}, tool_output="ok", key=f"e{at}",
        )
        for at, path in enumerate(paths)
    ]  # fmt: skip
    memory.behavior.observe_batch(events)
    push(memory, f"watch{number}", word, at_ms + 1_000)
    return {"threads": [f"watch{number}"]}


def in_scratchpad(memory: Memory, word: str, number: int) -> Target:
    event = HostEvent(
        "claude", "tool_fail", f"pad{number}", at_ms=DAY_MS * 40 + number, tool="Bash",
        tool_input={"command": f"make {word}"}, error=f"no rule for {word}", key="f",
    )  # fmt: skip
    memory.behavior.observe_batch([event])
    return {"threads": [f"pad{number}"]}


def in_person(memory: Memory, word: str, number: int) -> Target:
    memory.threads.add(f"hers{number}", resource_id=word)
    say(memory, "I like doors.", f"hers{number}")
    memory.memories.remember(f"Doors number {number}", type="gotcha", actor=word)
    return {"person": word}


def in_path(memory: Memory, word: str, number: int) -> Target:
    memory.memories.remember(
        f"File number {number} is slow", type="gotcha", files=[f"lib/{word}/x.py"]
    )
    return {"path": f"lib/{word}"}


def in_text(memory: Memory, word: str, number: int) -> Target:
    """Stand in tables that no other door reaches: ledgers of model calls, titles, failures."""
    say(memory, f"She asked: {word.upper()}?", f"rest{number % 3}")
    memory.threads.update(f"rest{number % 3}", metadata={f"k{number}": word})
    database, scope = memory.internals.database, memory.internals.scope
    with database.write() as session:
        session.run(
            "INSERT INTO model_calls (project_no, id, model, purpose, outcome, reason,"
            " input_tokens, output_tokens, cached_tokens, is_measured, started_at, expires_at)"
            " VALUES (?, ?, 'm', 'observe', 'failed', ?, 1, 1, 0, 0, 1, 1)",
            (scope.project_no, f"call{number}", f"refused: {word}"),
        )
    return {"text": word}


def in_time(memory: Memory, word: str, number: int) -> Target:
    at = DAY_MS * (1_000 + 2 * number)
    say(memory, f"On that day {word} came by.", f"day{number}", created_at=at)
    return {"since": at - 1, "until": at + 1}


def in_compaction(memory: Memory, word: str, number: int) -> Target:
    thread = f"long{number}"
    for at in range(8):
        say(memory, f"Step {at} of the long plan about gardens and fences.", thread)
    message = say(memory, f"Decision: {word} gets the fence.", thread)
    for at in range(26):
        say(memory, f"Later step {at} of the plan about rivers.", thread)
    memory.compactions.compact(thread)
    return {"messages": [message.id], "threads": [thread]}


def in_spool(memory: Memory, word: str, number: int) -> Target:
    """Wait in the spool, in a brief and among what could not be read."""
    folder = spool_folder()
    payload = json.dumps({"session_id": f"spool{number}", "prompt": f"Ask {word}"}).encode()
    spool.put(folder, "claude", "UserPromptSubmit", payload, "shop")
    for place in ("briefs", "unreadable", "told"):
        os.makedirs(os.path.join(folder, place), exist_ok=True)
        Path(folder, place, f"{number}.json").write_bytes(payload)
    say(memory, f"Ask {word} for the keys.", f"spool{number}")
    return {"threads": [f"spool{number}"]}


def in_subagent(memory: Memory, word: str, number: int) -> Target:
    say(memory, "Look into it.", f"parent{number}")
    memory.threads.add(f"parent{number}/a", kind="subagent", parent_id=f"parent{number}")
    say(memory, f"I looked into {word}.", f"parent{number}/a")
    memory.observations.observe(f"parent{number}/a")
    return {"threads": [f"parent{number}"]}


KINDS: tuple[Callable[[Memory, str, int], Target], ...] = (
    in_thread, in_message, in_memory, in_evidence, in_task, in_page, in_decision, in_session,
    in_scratchpad, in_person, in_path, in_text, in_time, in_compaction, in_spool, in_subagent,
)  # fmt: skip


def plant(memory: Memory, every: Iterable[str]) -> list[Target]:
    """Let each word in by one of the doors, in turn; return what to erase."""
    return [KINDS[at % len(KINDS)](memory, word, at) for at, word in enumerate(every)]


def acts(targets: Iterable[Target], rng: random.Random) -> Iterator[Target]:
    """Yield erases of some targets each; of people, paths, texts and times of one at most."""
    waiting: dict[tuple[str, ...], list[Target]] = {}
    for target in targets:
        is_listed = all(isinstance(value, list) for value in target.values())
        waiting.setdefault(() if is_listed else tuple(target), []).append(target)
    while waiting:
        act: Target = {}
        for kind in sorted(waiting):
            for _ in range(rng.randrange(2 if kind else 14)):
                target = waiting[kind].pop()
                for name, value in target.items():
                    act[name] = value if kind else [*act.get(name, ()), *value]
                if not waiting[kind]:
                    del waiting[kind]
                    break
        if act:
            yield act


# Erasing, in a process that dies.


RECEIPT = 1_000_000
"""The step at which the rows of an erase are gone; its transaction ends before the next one."""


class _Steps:
    """Counts what an erase does to the store, and dies at a step."""

    def __init__(self, fatal: int) -> None:
        self.count = 0
        self._fatal = fatal

    def __call__(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self.count += 1
            if self._fatal >= RECEIPT and "INSERT INTO erasures" in str(given[1:]):
                self.count = RECEIPT
            if self.count == self._fatal:
                os.kill(os.getpid(), 9)
            return act(*given, **named)

        return counted


def erase(pipe: Connection, address: str, home: str, targets: list[Target], fatal: int) -> None:
    """Erase one target after the other; report the traces that each left."""
    os.environ["SMARA_DB"] = home
    steps = _Steps(fatal)
    for owner, name in (
        (SqliteSession, "run"), (PostgresSession, "run"), (SqliteDatabase, "vacuum"),
        (SqliteDatabase, "shrink_log"), (PostgresDatabase, "vacuum"),
    ):  # fmt: skip
        setattr(owner, name, steps(getattr(owner, name)))
    with open_store(address) as memory:
        for number, target in enumerate(targets):
            try:
                traces = memory.privacy.erase(**target).traces
            except NotFoundError:
                # All of it was erased by the process that was killed, or none.
                if number:
                    raise
                traces = ()
            pipe.send(traces)


# Looking.


def windows(every: Iterable[str]) -> set[bytes]:
    return {
        word[at : at + WINDOW].encode() for word in every for at in range(len(word) - WINDOW + 1)
    }


def leaks(memory: Memory, every: list[str], folders: Iterable[str]) -> list[str]:
    """Return where a window of a word is: rows, files of the database, of folders, and answers."""
    needles = windows(every)
    return [
        *_rows_with(memory, needles),
        *_files_with(_files(memory, folders), needles),
        *_answers(memory, every),
    ]


def has_window(data: bytes, needles: set[bytes]) -> bool:
    """Return True if bytes hold one of the windows."""
    return any(
        run[at : at + WINDOW] in needles
        for run in re.findall(rb"[a-z]{12,}", data.lower())
        for at in range(len(run) - WINDOW + 1)
    )


def _rows_with(memory: Memory, needles: set[bytes]) -> Iterator[str]:
    database = memory.internals.database
    with database.read() as session:
        for table, columns in database.tables(session).items():
            names = [each.name for each in columns if each.type in ("string", "bytes")]
            for row in session.all(f"SELECT {', '.join(names)} FROM {table}") if names else ():
                for name, value in zip(names, row, strict=True):
                    data = value if isinstance(value, bytes) else str(value).encode()
                    if has_window(data, needles):
                        yield f"{table}.{name}"


def _files(memory: Memory, folders: Iterable[str]) -> Iterator[Path]:
    database = memory.internals.database
    if database.kind == "sqlite":
        yield from (Path(database.path + end) for end in ("", "-wal", "-journal"))
    else:
        with database.read() as session:
            session.run("CHECKPOINT")
            row = session.one("SELECT current_setting('data_directory')") or ("",)
            # The folders of other databases are those of other tests.
            (own,) = session.one("SELECT oid FROM pg_database WHERE datname = current_database()")
        yield from Path(row[0], "base", str(own)).rglob("*")
    for folder in folders:
        yield from Path(folder).rglob("*")


def _files_with(paths: Iterable[Path], needles: set[bytes]) -> Iterator[str]:
    for path in paths:
        try:
            if path.is_file() and has_window(path.read_bytes(), needles):
                yield str(path)
        except FileNotFoundError:
            continue


def _answers(memory: Memory, every: Iterable[str]) -> Iterator[str]:
    """Yield the doors that answer with a word: words, meaning, observations, completion, names."""
    for word in every:
        doors = {
            "search": memory.search(word, limit=5),
            "observations": memory.search_observations(word),
            "threads": memory.search_threads(word),
            "complete": memory.complete(word[:6]),
            "decisions": memory.decisions.search(f"{word}_fee"),
            "file": memory.memories.list(file=f"src/{word}.py", state="all"),
            "told": memory.moments.before_tool("asks", "Edit", {"file_path": f"src/{word}.py"}),
        }
        yield from (
            f"{door} answers {word}" for door, found in doors.items() if _tells(found, word)
        )


def named(memory: Memory, targets: Iterable[Target], every: Iterable[str]) -> list[str]:
    """Return what is still told of things by their ids, and by the graph of links between them."""
    told: list[Any] = [memory.code_knowledge.links(), memory.memories.list(state="all")]
    doors: tuple[tuple[str, Callable[[str], Any]], ...] = (
        ("messages", memory.messages.find), ("messages", memory.links.tasks),
        ("threads", memory.threads.find), ("tasks", memory.tasks.find),
        ("tasks", memory.tasks.history), ("tasks", memory.links.messages),
        ("memories", memory.memories.find), ("memories", memory.memories.chain),
        ("memories", memory.memories.history), ("memories", memory.memories.why),
    )  # fmt: skip
    for target in targets:
        for name, door in doors:
            for each in target.get(name, ()):
                with suppress(NotFoundError):
                    told.append(door(each))
    needles = windows(every)
    return [repr(each) for each in told if has_window(repr(each).encode(), needles)]


def _tells(found: Any, word: str) -> bool:
    """Return True if an answer, not the question in it, holds a word."""
    hits = getattr(found, "hits", None)
    if hits is not None:  # their terms are those of the question
        found = [replace(hit, terms=()) if hasattr(hit, "terms") else hit for hit in hits]
    return word in repr(found).lower()


def _unnumbered(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without the number of the message that its task was noted at."""
    noted = {**metadata.get("observations", {})}
    noted.pop("taskSeq", None)
    return {**metadata, "observations": noted} if "observations" in metadata else dict(metadata)


def facts(memory: Memory) -> dict[str, Any]:
    """Return everything that a store tells, without numbers, times and empty messages."""
    database, scope = memory.internals.database, memory.internals.scope
    for thread in memory.threads.list():
        memory.observations.observe(thread.id)
    threads = sorted(memory.threads.list(), key=lambda each: each.id)
    found: dict[str, Any] = {
        "messages": [
            (thread.id, message.role, message.raw_content)
            for thread in threads
            for message in memory.messages.list(thread_id=thread.id)
            if message.raw_content != "[erased]"
        ],
        "titles": [(each.title, _unnumbered(each.metadata)) for each in threads],
        "memories": sorted(
            (each.content, each.type, each.is_active) for each in memory.memories.list(state="all")
        ),
        "tasks": sorted((each.title, each.status, each.labels) for each in memory.tasks.list()),
        "totals": memory.tasks.totals(),
        "page": memory.working.get(scope="resource", resource_id="default").content,
    }
    columns = {
        "observations": "text", "words": "word", "behavior_signals": "key",
        "observer_file_nodes": "file_path",
        "observer_co_access_edges": "file_a", "observer_module_files": "file_path",
        "behavior_sessions": "session_id",
    }  # fmt: skip
    with database.read() as session:
        for table, column in columns.items():
            statement = f"SELECT DISTINCT {column} FROM {table} WHERE project_no = ?"
            rows = session.all(statement, (scope.project_no,))
            found[table] = sorted(row[0] for row in rows if row[0] != "erased")
    return found
