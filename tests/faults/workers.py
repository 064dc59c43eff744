"""What runs in processes of its own. Each reports through its pipe only after a call has
returned.
"""

from __future__ import annotations

import itertools
import json
import os
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import smara
from smara.adapters.importer import Importer
from smara.database.leases import Lease
from smara.errors import LeaseLostError
from smara.testing import open_temporary
from tests.faults import vfs

READY = "ready"
THREADS = 3
MARK = "zebrafinch"
"""A word of every message, for the search that must find them."""


def text_of(client_id: str) -> str:
    """The text of a message, known from its id alone."""
    step = sum(ord(letter) * place for place, letter in enumerate(client_id, 1)) % 9973
    return (
        f"{MARK} says {client_id}: open src/store/{client_id}.py and call handle_{client_id}() "
        f"in step {step}"
    )


def watched(at: int | None) -> str | None:
    """The name of a file system that kills this process at its ``at``-th write; ``None`` without
    one.
    """
    if at is None:
        return None
    killing.append(vfs.Killing("killing", at))
    return "killing"


killing: list[vfs.Killing] = []


def append(
    pipe: Connection, path: str, first: int, durability: str, kill_at: int | None = None
) -> None:
    """Append one by one, and every fifth time many at once, until killed."""
    pipe.send(READY)
    with smara.open(path, durability=durability, vfs=watched(kill_at)) as memory:
        for number in itertools.count(first):
            thread_id = f"t{number % THREADS}"
            if number % 5:
                ids = [f"a{number}"]
                memory.messages.add(
                    thread_id=thread_id, role="user", content=text_of(ids[0]), client_id=ids[0]
                )
            else:
                ids = [f"a{number}x{place}" for place in range(12)]
                batch = [
                    {"role": "assistant", "content": text_of(each), "client_id": each}
                    for each in ids
                ]
                memory.messages.add_many(thread_id=thread_id, messages=batch)
            pipe.send(ids)


def import_files(pipe: Connection, path: str, files: list[str], kill_at: int | None = None) -> None:
    """Import files one after the other; the name of each is told when its import has returned."""
    pipe.send(READY)
    with smara.open(path, vfs=watched(kill_at)) as memory:
        for file in files:
            Importer(memory).import_file(file)
            pipe.send(file)


def compact(pipe: Connection, path: str, kill_at: int | None = None) -> None:
    """Compact, by command and by rule, and undo every fourth compaction, until there is nothing
    left.
    """
    pipe.send(READY)
    with smara.open(path, compact_every_messages=0, vfs=watched(kill_at)) as memory:
        for thread in memory.threads.list():
            for keep in (150, 100, 50, 0):
                made = memory.compactions.compact(thread.id, keep=keep).compactions
                pipe.send(("made", [each.id for each in made]))
                for each in made[::4]:
                    memory.compactions.undo(each.id)
                    pipe.send(("undone", [each.id]))


def migrate(pipe: Connection, path: str, kill_at: int | None = None) -> None:
    """Open a store of an older schema, which brings it up to date."""
    pipe.send(READY)
    with smara.open(path, vfs=watched(kill_at)) as memory:
        pipe.send(memory.threads.totals()["messages"])


def write_jsonl(file: Path, count: int) -> dict[str, str]:
    """A file in our plain format; what it must lead to."""
    ids = [f"{file.stem}j{number}" for number in range(count)]
    lines = [
        json.dumps(
            {
                "thread": f"{file.stem}-{number % 2}",
                "role": "user",
                "content": text_of(each),
                "id": each,
            }
        )
        for number, each in enumerate(ids)
    ]
    file.write_text("\n".join(sorted(lines)) + "\n")
    return {each: text_of(each) for each in ids}


def write_transcript(file: Path, count: int) -> dict[str, str]:
    """A file like those that Claude Code writes; what it must lead to."""
    ids = [f"{file.stem}u{number}" for number in range(count)]
    with file.open("w") as out:
        for number, each in enumerate(ids):
            role = "assistant" if number % 2 else "user"
            words: Any = text_of(each)
            message = {"role": role, "content": words}
            if role == "assistant":
                message |= {
                    "id": f"msg_{each}",
                    "model": "m",
                    "content": [{"type": "text", "text": words}],
                }
            record = {
                "type": role,
                "uuid": each,
                "parentUuid": ids[number - 1] if number else None,
                "sessionId": f"session-{file.stem}",
                "timestamp": "2026-02-11T20:16:53.366Z",
                "isSidechain": False,
                "message": message,
            }
            out.write(json.dumps(record) + "\n")
    return {each: text_of(each) for each in ids}


def add_some(pipe: Connection, where: str, name: str, count: int, durability: str = "full") -> None:
    """Append ``count`` messages to the shared threads; any error is told instead of raised."""
    try:
        with smara.open(where, durability=durability) as memory:
            pipe.send(READY)
            for number in range(count):
                client_id = f"{name}n{number}"
                memory.messages.add(
                    thread_id=f"t{number % THREADS}",
                    role="user",
                    content=text_of(client_id),
                    client_id=client_id,
                )
        pipe.send(("done", count))
    except Exception as error:
        pipe.send(("error", repr(error)))


def search_until_told(pipe: Connection, where: str) -> None:
    """Search and list without a pause until told to stop."""
    searches = 0
    try:
        with smara.open(where) as memory:
            pipe.send(READY)
            while not pipe.poll():
                assert len(memory.search(f"{MARK} handle_w1n{searches % 50}", limit=5)) <= 5
                seqs = [message.seq for message in memory.messages.list(thread_id="t1", limit=40)]
                assert seqs == list(range(seqs[0], seqs[0] + len(seqs))) if seqs else True
                searches += 1
        pipe.recv()
        pipe.send(("done", searches))
    except Exception as error:
        pipe.send(("error", repr(error)))


def checkpoint_until_told(pipe: Connection, where: str) -> None:
    """Move the write-ahead log into the file without a pause until told to stop."""
    times = 0
    try:
        with smara.open(where) as memory:
            pipe.send(READY)
            while not pipe.poll():
                memory.internals.database.shrink_log()
                times += 1
        pipe.recv()
        pipe.send(("done", times))
    except Exception as error:
        pipe.send(("error", repr(error)))


def hold(pipe: Connection, where: str, is_fenced: bool) -> None:
    """Take the lease, say so, wait for the word, then write under it; say what came of it."""
    with smara.open(where) as memory:
        lease = memory.internals.leases.acquire(
            "work", f"holder-{os.getpid()}", lease_seconds=LEASE_SECONDS
        )
        pipe.send(lease is not None)
        believed_until = lease.expires_at if lease else 0
        pipe.recv()
        if lease is None:
            return
        try:
            write_under(
                memory,
                lease,
                f"holder-{os.getpid()}",
                is_fenced=is_fenced,
                believed_until=believed_until,
            )
            pipe.send("written")
        except LeaseLostError:
            pipe.send("refused")


def hold_long(pipe: Connection, where: str) -> None:
    """Ask for the lease for an hour; say whether it was granted, and live on."""
    with smara.open(where) as memory:
        pipe.send(
            memory.internals.leases.acquire("work", f"holder-{os.getpid()}", lease_seconds=3600)
            is not None
        )
        pipe.recv()


LEASE_SECONDS = 0.05


def write_under(
    memory: smara.Memory, lease: Lease, who: str, is_fenced: bool, believed_until: int = 0
) -> None:
    """Do the leased work: one row in a table of results, written once a grant.

    Without the fence it does what a careful client does that has none: it looked at its
    clock when the lease was granted, and believes.
    """
    with memory._rooms.database.write() as session:
        if is_fenced:
            memory.internals.leases.guard(session, lease)
        elif not believed_until:
            raise AssertionError("the mutant trusts the time it was told")
        session.run("INSERT INTO results (worker, fence) VALUES (?, ?)", (who, lease.fence))


def open_first(pipe: Connection, where: str) -> None:
    """Open a store that may not exist yet at the same moment as others, and add a message."""
    pipe.send(READY)
    pipe.recv()
    try:
        with smara.open(where) as memory:
            name = f"p{os.getpid()}"
            memory.messages.add(thread_id="t", role="user", content=text_of(name), client_id=name)
            pipe.send(("done", list(memory.warnings)))
    except Exception as error:
        pipe.send(("error", repr(error)))


def append_until_told(pipe: Connection, where: str) -> None:
    """Add one message after the other until told to stop."""
    with smara.open(where) as memory:
        pipe.send(READY)
        n = 0
        while not pipe.poll():
            memory.messages.add(thread_id="t", role="user", content=text_of(f"m{n}"))
            n += 1
    pipe.recv()
    pipe.send("done")


def hold_the_lock(pipe: Connection, where: str) -> None:
    """Hold the write lock of a store until told."""
    with smara.open(where) as memory, memory._rooms.database.write():
        pipe.send(READY)
        pipe.recv()


with open_temporary() as _memory:
    # Forked processes find everything imported and loaded: the encodings, the scanner, the stemmer.
    _memory.messages.add(
        thread_id="warm", role="user", content="Everything is loaded by_now, in src/warm.py"
    )
    _memory.search("what is loaded by_now?")
