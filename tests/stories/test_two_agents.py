"""A developer's day with two agents that share a memory, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import smara
from tests.surfaces.shell import environment, spawn

AGENT = """
import sys
import smara

name, path = sys.argv[1:]
for line in sys.stdin:
    verb, _, words = line.rstrip("\\n").partition(" ")
    with smara.open(path) as memory:
        if verb == "add":
            message = memory.messages.add(thread_id=name, role="assistant", content=words, resource_id="dev")
            print(message.seq, flush=True)
        else:
            print(" | ".join(hit.content for hit in memory.search(words, limit=1)), flush=True)
"""  # noqa: E501


class Agent:
    """An agent in a process of its own, which does one thing after the other."""

    def __init__(self, name: str, path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", AGENT, name, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.answer()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def test_two_agents_share_what_they_learn_and_one_is_killed(tmp_path):
    """
    1. Morning: two agents start on an empty store at the same moment, and both write.
    2. One learns where the retries live; the other, asked about it, knows at once.
    3. Both write many things at once; every message has its own number, none is lost.
    4. One is killed in the middle of the day. What it had been told was stored is there.
    5. Another takes up the thread where it ended.
    6. Evening: the developer looks from the command line; store and index are sound.
    """
    path = str(tmp_path / "smara.db")
    first, second = Agent("builder", path), Agent("tester", path)

    # 1
    first.tell("add Reading the repository")
    second.tell("add Running the tests")
    assert (first.answer(), second.answer()) == ("1", "1")

    # 2
    assert first.ask("add Retries live in src/net/backoff.py, see retry_policy") == "2"
    assert (
        second.ask("search where is the retry policy?")
        == "Retries live in src/net/backoff.py, see retry_policy"
    )

    # 3
    for number in range(20):
        first.tell(f"add built module_{number}")
        second.tell(f"add tested module_{number}")
    assert [first.answer() for _ in range(20)] == [str(seq) for seq in range(3, 23)]
    assert [second.answer() for _ in range(20)] == [str(seq) for seq in range(2, 22)]

    # 4
    assert first.ask("add The last thing I did was delete_old_cache()") == "23"
    first.kill()
    assert "delete_old_cache()" in second.ask("search delete_old_cache")

    # 5
    third = Agent("builder", path)
    assert third.ask("add Taking over") == "24"
    third.kill()
    second.kill()

    # 6
    status = spawn("--db", path, "status", "--json").data
    assert (status["threads"], status["messages"], status["resources"]) == (2, 24 + 21, 1)
    assert spawn("--db", path, "doctor").code == 0
    with smara.open(path) as memory:
        for thread in ("builder", "tester"):
            numbers = [message.seq for message in memory.messages.stream(thread_id=thread)]
            assert numbers == list(range(1, len(numbers) + 1))
