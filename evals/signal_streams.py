"""Generated sessions of agents, with known truth: for every signal streams that show it, and such
as nearly do.

A stream is a few sessions of one project. Between what matters stand reading, looking and talking,
from a fixed seed. A *near miss* has everything but the one thing that makes the signal: the fix
that worked before the failure, files that go together once, a search that ends elsewhere each time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import smara

ROOT = "/work/shop"
START = 1_767_600_000_000
AREAS = ("billing", "catalog", "search", "users", "orders", "mail")
NAMES = (
    "store",
    "rules",
    "views",
    "client",
    "tasks",
    "models",
    "parser",
    "report",
    "cache",
    "queue",
)
TOOLS = ("npm", "yarn", "pip", "bundle", "cargo")


class Session:
    """Writes the events of one session."""

    def __init__(self, rng: random.Random, session_id: str, start: int) -> None:
        self.rng = rng
        self.id = session_id
        self.events: list[smara.HostEvent] = []
        self._now = start
        self._number = 0
        self.subagent = ""

    def event(self, kind: Any, seconds: float = 5.0, **fields: Any) -> None:
        self._now += int(seconds * 1000)
        self._number += 1
        call = (
            f"{self.id}-{self._number}"
            if kind.startswith("tool") and "tool_use_id" not in fields
            else ""
        )
        given = {"tool_use_id": call, **fields} if call else fields
        self.events.append(
            smara.HostEvent(
                "claude",
                kind,
                self.id,
                self._now,
                cwd=ROOT,
                subagent_id=self.subagent,
                key=f"{self.id}:{self._number}",
                **given,
            )
        )

    def tool(
        self, tool: str, given: dict[str, Any], output: str = "", error: str | None = None
    ) -> None:
        self.event(
            "tool_fail" if error else "tool_post",
            tool=tool,
            tool_input=given,
            tool_output=output,
            error=error,
        )

    def read(self, path: str, output: str = "code") -> None:
        self.tool("Read", {"file_path": f"{ROOT}/{path}"}, output)

    def edit(self, path: str, old: str | None = None, new: str | None = None) -> None:
        old = old if old is not None else f"old {self.rng.random()}"
        new = new if new is not None else f"new {self.rng.random()}"
        self.tool(
            "Edit", {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new}, "done"
        )

    def run(
        self, command: str, output: str = "fine", error: str | None = None, seconds: float = 2.0
    ) -> None:
        call = f"{self.id}-run-{self._number}"
        given = {"command": command}
        self.event("tool_pre", 1, tool="Bash", tool_input=given, tool_use_id=call)
        kind = "tool_fail" if error else "tool_post"
        self.event(
            kind,
            seconds,
            tool="Bash",
            tool_input=given,
            tool_use_id=call,
            tool_output=output,
            error=error,
        )

    def grep(self, pattern: str, output: str = "") -> None:
        self.tool("Grep", {"pattern": pattern}, output)

    def glob(self, pattern: str, output: str = "") -> None:
        self.tool("Glob", {"pattern": pattern}, output)

    def say(self, text: str) -> None:
        self.event("reasoning", text=text)

    def noise(self, most: int = 4) -> None:
        """What every session does and nothing is to be learned from."""
        for _ in range(self.rng.randint(0, most)):
            path = f"docs/{self.rng.choice(NAMES)}{self.rng.randint(1, 9_999)}.md"
            which = self.rng.randint(0, 3)
            if which == 0:
                self.read(path)
            elif which == 3:
                self.say("Let me look at the next file. This should be straightforward.")
            else:
                self.run("git status" if which == 1 else f"ls {path}", "it is there")

    def end(self, is_green: bool = True) -> None:
        """Tests green after the last change, a commit, the end."""
        self.run(
            "make test",
            "41 passed in 3.1s" if is_green else "",
            None if is_green else "Exit code 2\n1 failed, 40 passed",
        )
        self.event("turn_end", text="Done.")
        self.event("session_end")


@dataclass(slots=True)
class Stream:
    """Some sessions, and the words that the memory of the signal must hold; none for a near
    miss.
    """

    kind: str
    sessions: list[list[smara.HostEvent]] = field(default_factory=list)
    wanted: tuple[str, ...] = ()


Writer = Callable[[Session, dict[str, Any], int, bool], None]
"""Writes what matters of one session: (session, the stream's own names, its number, whether the
signal shows).
"""


def streams(kind: str, count: int, is_shown: bool, seed: int) -> Iterator[Stream]:
    """So many streams of a signal, or of near misses."""
    sessions, write, wanted = WRITERS[kind]
    for number in range(count):
        rng = random.Random(f"{seed}-{kind}-{is_shown}-{number}")
        names = _names(rng)
        stream = Stream(
            kind, wanted=tuple(text.format(**names) for text in wanted) if is_shown else ()
        )
        for position in range(sessions):
            session = Session(
                rng, f"{kind}-{int(is_shown)}-{number}-{position}", START + position * 86_400_000
            )
            session.event("session_start", source="startup")
            session.event("prompt", prompt="Please finish the ticket.")
            session.noise()
            write(session, names, position, is_shown)
            session.subagent = ""
            session.noise(2)
            session.end()
            stream.sessions.append(session.events)
        yield stream


def _names(rng: random.Random) -> dict[str, Any]:
    area, other = rng.sample(AREAS, 2)
    one, two, three, four = rng.sample(NAMES, 4)
    return {
        "area": area,
        "other": other,
        "a": f"src/{area}/{one}.py",
        "b": f"src/{area}/{two}.py",
        "c": f"src/{other}/{three}.py",
        "d": f"src/{other}/{four}.py",
        "one": one,
        "two": two,
        "tool": rng.choice(TOOLS),
        "word": rng.choice(("refund_total", "price_book", "retry_after", "mail_queue")),
        "n": rng.randint(10, 99),
    }


def _fresh(session: Session, stem: str = "part") -> str:
    return f"src/{session.rng.choice(AREAS)}/{stem}{session.rng.randint(1, 99_999)}.py"


def _file_access(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    for path in (n["c"], n["d"]):
        s.read(path if is_shown else _fresh(s))
    s.edit(f"src/{n['area']}/{_fresh(s).rsplit('/', 1)[1]}")


def _co_access(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    s.edit(n["a"])
    s.noise(2)
    s.edit(n["c"] if is_shown else _fresh(s))
    if not is_shown and position == 0:
        s.edit(n["c"])


def _error_retry(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    failed, fix = f"{n['tool']} test", f"p{n['tool']} test"
    s.edit(_fresh(s))
    if is_shown:
        s.run(failed, error=f"Exit code 127\nbash: {n['tool']}: command not found")
        s.noise(2)
        s.run(fix, "12 passed")
    elif position % 2:
        s.run(fix, "12 passed")
        s.run(failed, error=f"Exit code 127\nbash: {n['tool']}: command not found")
    else:
        s.run(f"grep -r {n['word']} src", error="Exit code 1")
        s.run(
            "make test",
            error="Exit code 2\nFAILED tests/test_x.py::test_y - AssertionError: 1 != 2\n1 failed",
        )
        s.edit(_fresh(s))
        s.run("make test", "41 passed")


def _backtrack(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    s.edit(n["a"], "limit = 10", f"limit = {n['n']}")
    if is_shown:
        s.run("./deploy.sh check", error="Exit code 1\nError: could not connect to the broker")
    s.edit(n["a"], f"limit = {n['n']}", "limit = 10" if is_shown else f"limit = {n['n'] + 1}")
    s.edit(_fresh(s))


def _read_abandon(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    wrong, right = f"src/{n['area']}/{n['one']}.py", f"lib/{n['area']}/{n['one']}.py"
    if is_shown:
        s.read(wrong)
        s.read(right)
        s.edit(right)
    else:
        s.read(wrong)
        s.read(f"lib/{n['area']}/{n['two']}.py")
        s.edit(f"lib/{n['area']}/{n['two']}.py")


def _repeated_grep(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    for _ in range(2):
        target = n["a"] if is_shown else _fresh(s)
        s.grep(n["word"], f"{target}:12: def {n['word']}():")
        s.read(target)
        s.noise(1)
    s.edit(_fresh(s))


def _tool_sequence(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    steps = [f"make migrate-{n['area']}", f"make seed-{n['area']}", f"./reload.sh {n['other']}"]
    if not is_shown:
        steps = [f"{step}-{s.rng.randint(1, 99_999)}" for step in steps]
    s.edit(_fresh(s))
    for step in steps:
        s.run(step)


def _time_anomaly(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    s.edit(_fresh(s))
    for _ in range(4):
        s.run(f"./quick.sh {s.rng.randint(1, 99)}", seconds=1)
    late = "Command timed out after 2m" if is_shown and position == 1 else None
    s.run(f"make index-{n['area']}", error=late, seconds=120 if is_shown else 90)


def _self_correction(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    s.read(n["a"])
    s.edit(n["b"])
    if is_shown:
        s.say(
            s.rng.choice(
                (
                    f"I initially thought the totals were cached, but `{n['word']}()` reads the "
                    "table every time.",
                    f"I was wrong about the totals. `{n['word']}()` is actually called once per "
                    "row.",
                    f"Ich dachte zuerst, dass die Summe gespeichert ist, aber `{n['word']}()` "
                    "rechnet sie jedes Mal.",
                    f"Je pensais que le total était en cache, mais `{n['word']}()` lit la table à "
                    "chaque fois.",
                    f"Pensé que el total estaba guardado, pero `{n['word']}()` lee la tabla cada "
                    "vez.",
                    f"我之前以为总数有缓存，但实际上`{n['word']}()`每次都读表。",
                    f"最初は合計がキャッシュされると思っていましたが、`{n['word']}()`は毎回表を読みます。",
                )
            )
        )
    else:
        s.say(
            s.rng.choice(
                (
                    "Wait, let me check the other file first.",
                    "Actually, this looks fine.",
                    f"Actually, I'll use `{n['word']}()` here.",
                    "If I was wrong about the cache, the test would fail.",
                    "I thought about this for a while, but let me look again.",
                    "Let me reconsider. The plan stays as it is.",
                    "Is it actually the queue, not the cache?",
                )
            )
        )


def _external_reference(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    s.edit(n["a"])
    page = n["word"] if is_shown else f"{n['word']}{s.rng.randint(1, 99_999)}"
    s.tool("WebFetch", {"url": f"https://docs.example.org/{page}"}, "a page")


def _glob_ignore(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    pattern, hidden = f"src/**/{n['one']}*.toml", f"deploy/{n['area']}/{n['one']}.toml"
    s.glob(pattern, "" if is_shown else f"src/{n['area']}/{n['one']}.toml")
    s.read(hidden if is_shown else f"src/{n['area']}/{n['one']}.toml")
    s.edit(_fresh(s))


def _import_chase(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    chain = [
        f"src/{n['area']}/{name}.py" for name in ("checkout", "pricing", "discounts", "currency")
    ]
    for path, following in zip(chain, (*chain[1:], ""), strict=True):
        stem = following.rsplit("/", 1)[-1].removesuffix(".py")
        s.read(
            path, f"from shop.{n['area']}.{stem} import thing\n" if is_shown and stem else "x = 1\n"
        )
    s.edit(_fresh(s))


def _test_order(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    path = f"src/{n['area']}/{_fresh(s).rsplit('/', 1)[1]}"
    s.edit(path)
    for _ in range(2 if is_shown else 0):
        s.run("make test", error="Exit code 2\n3 failed, 38 passed")
        s.edit(path)
    s.run("make test", "41 passed in 3.0s")


def _config_touch(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    s.edit(n["a"] if is_shown else _fresh(s))
    s.edit(f"config/{n['area']}.toml")


def _step_overrun(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    items = [f"step {number} of {s.id}" for number in range(8)]
    s.tool("TodoWrite", {"todos": [{"content": each, "status": "pending"} for each in items[:4]]})
    s.edit(f"src/{n['area']}/{_fresh(s).rsplit('/', 1)[1]}")
    grown = items if is_shown else items[:4]
    s.tool("TodoWrite", {"todos": [{"content": each, "status": "completed"} for each in grown]})


def _parallel_conflict(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    s.edit(_fresh(s))
    for turn in range(4):
        s.subagent = f"helper-{turn % 2}"
        is_shared = is_shown or n["n"] % 2
        own = n["a"] if is_shared else f"src/{n['area']}/part{turn % 2}.py"
        if is_shown and turn >= 2:  # it was read before the other changed it
            s.tool(
                "Edit", {"file_path": f"{ROOT}/{own}"}, error="File has been modified since read"
            )
        s.edit(own)
    s.subagent = ""


def _context_spike(s: Session, n: dict[str, Any], position: int, is_shown: bool) -> None:
    s.read(n["a"], "x" * (60_000 if is_shown else 8_000))
    s.edit(_fresh(s))


WRITERS: dict[str, tuple[int, Writer, tuple[str, ...]]] = {
    "file_access": (3, _file_access, ("{c}", "{d}")),
    "co_access": (3, _co_access, ("{a}", "{c}")),
    "error_retry": (2, _error_retry, ("`{tool} test`", "`p{tool} test`")),
    "backtrack": (2, _backtrack, ("{a}", "could not connect")),
    "read_abandon": (3, _read_abandon, ("src/{area}/{one}.py", "lib/{area}/{one}.py")),
    "repeated_grep": (2, _repeated_grep, ("{word}", "{a}")),
    "tool_sequence": (3, _tool_sequence, ("make migrate-{area}", "make seed-{area}")),
    "time_anomaly": (3, _time_anomaly, ("make index-{area}",)),
    "self_correction": (1, _self_correction, ("{word}()",)),
    "external_reference": (3, _external_reference, ("https://docs.example.org/{word}",)),
    "glob_ignore": (2, _glob_ignore, ("deploy/{area}/{one}.toml",)),
    "import_chase": (4, _import_chase, ("checkout.py", "discounts.py")),
    "test_order": (3, _test_order, ("{area}", "test runs")),
    "config_touch": (2, _config_touch, ("{a}", "config/{area}.toml")),
    "step_overrun": (3, _step_overrun, ("{area}", "2 times")),
    "parallel_conflict": (1, _parallel_conflict, ("{a}",)),
    "context_spike": (3, _context_spike, ("{area}", "tokens")),
}
