"""Count the modules that a call visits, and the calls that leave their module.

``python -m bench.walk [PART OF A NAME]``. Each walk is made twice; the second time it is traced
with ``sys.setprofile`` in all its threads. Only functions of the package count, and no
comprehensions. *Calls leaving* is the share of calls from one function of the package to another
that stands in another module; *edges leaving* is the same of distinct pairs of functions. The last
walk is one of httpx, to compare with.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import smara
from smara.adapters.hosts.drain import drain
from smara.adapters.hosts.spool import put

OPTIONS: dict[str, Any] = {"token_model": "estimate"}
COMPREHENSIONS = {"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"}


class Walk:
    """The functions of a package that a traced call visited."""

    def __init__(self, package: Any = smara) -> None:
        self._root = str(Path(package.__file__).parent) + os.sep
        self.functions: Counter[tuple[str, str, int]] = Counter()
        self.edges: Counter[tuple[Any, Any]] = Counter()
        self.depth = 0
        self._local = threading.local()

    def _module(self, code: Any) -> str | None:
        name = code.co_filename
        inside = name.startswith(self._root)
        return name[len(self._root) : -3].replace(os.sep, ".") if inside else None

    def __call__(self, frame: Any, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        module = self._module(code)
        if module is None or code.co_name in COMPREHENSIONS or code.co_name == "<module>":
            return
        stack = self._local.__dict__.setdefault("stack", [])
        if event == "return":
            if stack and stack[-1][1] is code:
                stack.pop()
            return
        key = (module, code.co_qualname, code.co_firstlineno)
        self.functions[key] += 1
        if stack:
            self.edges[stack[-1][0], key] += 1
        stack.append((key, code))
        self.depth = max(self.depth, len(stack))

    def row(self) -> dict[str, Any]:
        """Return the columns of the table."""
        calls = sum(self.functions.values())
        within = sum(self.edges.values())
        leaving = sum(n for (a, b), n in self.edges.items() if a[0] != b[0])
        edges_leaving = sum(a[0] != b[0] for a, b in self.edges)
        modules = {key[0] for key in self.functions}
        return {
            "calls": calls,
            "functions": len(self.functions),
            "modules": len(modules),
            "rooms": len({each.split(".")[0] for each in modules}),
            "depth": self.depth,
            "leave": round(100 * leaving / max(1, within)),
            "leave_of_edges": round(100 * edges_leaving / max(1, len(self.edges))),
        }


def traced(work: Callable[[], object], package: Any = smara) -> Walk:
    """Return what a piece of work visits."""
    walk = Walk(package)
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return walk


TALK = [
    ("user", "The login form loses the address if the password is short. Fix src/login.ts."),
    ("assistant", "src/login.ts resets the form when `LoginSchema` fails. I keep the values now."),
    ("user", "Good. We always use zod for schemas here, never yup."),
    ("assistant", "Understood: zod it is. I ran `npm test` and all 14 tests passed."),
    ("user", "Now add a rate limit of 5 tries a minute to the endpoint /api/login."),
    ("assistant", "Added a token bucket in src/limit.ts with tests. npm test: 17 passed."),
]


def search() -> Walk:
    with (
        tempfile.TemporaryDirectory() as folder,
        smara.open(f"{folder}/s.db", **OPTIONS) as memory,
    ):
        for role, words in TALK:
            memory.messages.add(thread_id="t", role=role, content=words)
        memory.embeddings.embed_pending()
        memory.search("other words")
        return traced(lambda: memory.search("login schema"))


def add() -> Walk:
    with (
        tempfile.TemporaryDirectory() as folder,
        smara.open(f"{folder}/s.db", **OPTIONS) as memory,
    ):
        memory.messages.add(thread_id="t", role="user", content="warm words `code()` here")
        return traced(lambda: memory.messages.add(thread_id="t", role="user", content=TALK[0][1]))


def events_of(wrong: str, right: str, path: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the nine events of a session in which one command fails and another one works."""
    return [
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "Run the tests, please."}),
        (
            "PostToolUseFailure",
            {
                "tool_name": "Bash",
                "tool_input": {"command": f"{wrong} test"},
                "tool_use_id": "u1",
                "error": f"Exit code 127\nbash: {wrong}: command not found",
            },
        ),
        (
            "PostToolUse",
            {
                "tool_name": "Bash",
                "tool_input": {"command": f"{right} test"},
                "tool_use_id": "u2",
                "tool_response": {"stdout": "12 passed", "stderr": ""},
            },
        ),
        (
            "PostToolUse",
            {
                "tool_name": "Edit",
                "tool_use_id": "u3",
                "tool_response": {},
                "tool_input": {"file_path": path, "old_string": "a", "new_string": "b"},
            },
        ),
        (
            "PostToolUse",
            {
                "tool_name": "Bash",
                "tool_input": {"command": f"{right} test"},
                "tool_use_id": "u4",
                "tool_response": {"stdout": "12 passed", "stderr": ""},
            },
        ),
        ("PreCompact", {"trigger": "manual"}),
        ("Stop", {"last_assistant_message": "The tests pass now."}),
        ("SessionEnd", {"reason": "exit"}),
    ]


def hook() -> Walk:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "w")
        work.mkdir()
        with smara.open(f"{folder}/s.db", project="p", embedder="off", **OPTIONS) as memory:

            def send(session: str, events: list[tuple[str, dict[str, Any]]]) -> str:
                spool = f"{folder}/spool-{session}"
                for event, payload in events:
                    facts = {"session_id": session, "cwd": str(work), "hook_event_name": event}
                    put(spool, "claude", event, json.dumps(facts | payload).encode(), cwd=str(work))
                return spool

            def take(spool: str) -> None:
                drain(memory, spool)
                memory.behavior.run_due()

            take(send("warm-1", events_of("mocha", "vitest", "src/w.py")))
            take(send("warm-2", events_of("mocha", "vitest", "src/w.py")))
            take(send("first", events_of("npm", "pnpm", "src/a.py")))
            before = len(memory.memories.list(state="all", limit=100))
            spool = send("traced", events_of("npm", "pnpm", "src/a.py"))
            found = traced(lambda: take(spool))
            after = len(memory.memories.list(state="all", limit=100))
            if after != before + 1:
                sys.stderr.write(f"the traced session taught {after - before} memories, not 1\n")
            return found


def process_input() -> Walk:
    with (
        tempfile.TemporaryDirectory() as folder,
        smara.open(f"{folder}/s.db", embedder="off", **OPTIONS) as memory,
    ):
        for thread in ("warm", "t"):
            for role, words in TALK:
                memory.messages.add(thread_id=thread, role=role, content=words)
        memory.context.process_input("warm")
        return traced(lambda: memory.context.process_input("t"))


def observe() -> Walk:
    with (
        tempfile.TemporaryDirectory() as folder,
        smara.open(f"{folder}/s.db", embedder="off", **OPTIONS) as memory,
    ):
        for thread in ("warm", "t"):
            for role, words in TALK:
                memory.messages.add(thread_id=thread, role=role, content=words)
        memory.observations.observe("warm")
        return traced(lambda: memory.observations.observe("t"))


def anchor() -> Walk:
    """Trace a request of httpx: 195 calls, 14 modules, 30 %."""
    import httpx

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"words": "walrus"})

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        client.get("http://localhost/warm").json()
        return traced(lambda: client.get("http://localhost/a", params={"q": "1"}).json(), httpx)


WALKS = {
    "(a) memory.search": search,
    "(b) drain of 9 hook events -> memory": hook,
    "(c) messages.add": add,
    "(d) process_input": process_input,
    "(d') observations.observe, 6 messages": observe,
    "httpx GET + json": anchor,
}

COLUMNS = ("calls", "functions", "modules", "rooms", "depth", "leave", "leave_of_edges")


def main() -> None:
    """Print a row for each walk, or for those whose name holds the argument."""
    logging.disable(logging.CRITICAL)
    print("| walk | calls | functions | modules | rooms | depth | calls leaving | edges leaving |")
    print("|" + "---|" * 8)
    # A repository around it would have its commits read, too.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, make in WALKS.items():
            if len(sys.argv) < 2 or sys.argv[1] in name:
                make()  # what is compiled, cached or loaded on first use is no part of a walk
                row = make().row()
                cells = [f"{row[column]:,}" for column in COLUMNS[:5]]
                shares = [f"{row[column]} %" for column in COLUMNS[5:]]
                print("|", " | ".join([name, *cells, *shares]), "|")


if __name__ == "__main__":
    main()
