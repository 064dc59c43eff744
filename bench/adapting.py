"""What adapters add per call, beside the framework's own class on the same disk in the same run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95, take_turns

ROUNDS = 200
ITEMS = 1_000


def run(folder: Path, report: Report) -> None:
    """Measure each adapter."""
    _langgraph(folder, report)
    _sessions(folder, report)


def _langgraph(folder: Path, report: Report) -> None:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.store.sqlite import SqliteStore

    from smara.adapters.sdk.langgraph import SmaraSaver, SmaraStore

    corpus = Corpus()
    texts = [corpus.text(number) for number in range(ITEMS)]
    space = ("memories", "ana")
    with (
        smara.open(folder / "langgraph.db", project="bench") as memory,
        SqliteStore.from_conn_string(str(folder / "theirs.db")) as their_store,
        SqliteSaver.from_conn_string(str(folder / "their-saver.db")) as their_saver,
    ):
        their_store.setup()
        stores = {"ours": SmaraStore(memory), "theirs": their_store}
        for number, text in enumerate(texts):
            for store in stores.values():
                store.put(space, str(number), {"text": text})

        def compare(what: str, action: Callable[[Any], Callable[[int], object]]) -> None:
            _add(report, f"LangGraph store: {what}", {
                name: action(store) for name, store in stores.items()
            })  # fmt: skip

        compare("put", lambda s: lambda n: s.put(space, f"n{n}", {"text": texts[n]}))
        compare("get", lambda s: lambda n: s.get(space, str(n)))
        compare("search, newest 10", lambda s: lambda n: s.search(space))
        compare("search, filter", lambda s: lambda n: s.search(space, filter={"text": texts[n]}))
        ours = stores["ours"]
        _add(report, f"LangGraph store: search, query over {ITEMS:,}", {
            "ours": lambda n: ours.search(space, query=texts[n][:60])
        })  # fmt: skip
        savers: dict[str, Any] = {"ours": SmaraSaver(memory), "theirs": their_saver}
        places = {name: _place() for name in savers}

        def step(name: str) -> Callable[[int], object]:
            def put(number: int) -> None:
                checkpoint = empty_checkpoint()
                checkpoint["channel_values"] = {"log": texts[:50], "step": number}
                checkpoint["channel_versions"] = {"log": "1", "step": str(number)}
                changed = {"step": str(number), **({} if number else {"log": "1"})}
                places[name] = savers[name].put(places[name], checkpoint, {}, changed)

            return put

        _add(report, "LangGraph checkpointer: put a step", {name: step(name) for name in savers})
        _add(report, "LangGraph checkpointer: read the newest", {
            name: (lambda n, saver=saver: saver.get_tuple(_place()))
            for name, saver in savers.items()
        })  # fmt: skip


def _place() -> Any:
    return {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}


def _sessions(folder: Path, report: Report) -> None:
    """Write turns of a call with its result to sessions, and read them."""
    from agents import RunContextWrapper, SQLiteSession

    from smara.adapters.sdk.claude_agent import SmaraSessionStore
    from smara.adapters.sdk.openai_agents import SmaraSession

    corpus, wait = Corpus(), asyncio.new_event_loop().run_until_complete
    key: Any = {"project_key": "bench", "session_id": str(uuid4())}

    def turn(number: int) -> list[tuple[str, str, Any]]:
        call = {"name": "Read", "input": {"path": "src/app.py"}}
        return [("user", "text", corpus.text(number)), ("assistant", "tool_use", call),
                ("user", "tool_result", {"content": "x = 1\n" * 40}),
                ("assistant", "text", corpus.text(number + 1))]  # fmt: skip

    def items(number: int) -> list[Any]:
        kinds = {"tool_use": ("function_call", {"name": "Read", "arguments": '{"path":"a.py"}'}),
                 "tool_result": ("function_call_output", {"output": "x = 1\n" * 40})}  # fmt: skip
        return [
            {"role": role, "content": said} if kind == "text"
            else {"type": kinds[kind][0], "call_id": f"c{number}", **kinds[kind][1]}
            for role, kind, said in turn(number)
        ]  # fmt: skip

    def entries(number: int) -> list[Any]:
        at, names = f"2026-11-17T{number // 60 % 24:02}:{number % 60:02}:00Z", ("id", "tool_use_id")
        return [
            {"type": role, "uuid": str(uuid4()), "timestamp": at, "cwd": "/app",
             "message": {"role": role, "content": said if kind == "text" else [
                 {"type": kind, names[kind == "tool_result"]: f"t{number}", **said}]}}
            for role, kind, said in turn(number)
        ]  # fmt: skip

    with smara.open(folder / "sessions.db", project="bench") as memory:
        ours, theirs = SmaraSession("s", memory), SQLiteSession("s", folder / "their-session.db")
        _add(report, "OpenAI session: add a turn of 4 items", {
            "ours": lambda n: wait(ours.add_items(items(n))),
            "theirs": lambda n: wait(theirs.add_items(items(n))),
        })  # fmt: skip
        _add(report, "OpenAI session: get 50 items", {
            "ours": lambda n: wait(ours.get_items(50)),
            "theirs": lambda n: wait(theirs.get_items(50)),
        })  # fmt: skip
        recall, run = ours.instructions("Be brief."), RunContextWrapper(None, turn_input=items(0))
        agent: Any = None
        _add(report, "OpenAI session: instructions with what is known", {
            "ours": lambda n: wait(recall(run, agent))
        })  # fmt: skip
        theirs.close()
        store = SmaraSessionStore(memory)
        _add(report, "Claude session store: append a turn of 4 entries", {
            "ours": lambda n: wait(store.append(key, entries(n)))
        })  # fmt: skip
        _add(report, f"Claude session store: load {4 * ROUNDS} entries", {
            "ours": lambda n: wait(store.load(key))
        })  # fmt: skip


def _add(report: Report, what: str, actions: dict[str, Callable[[int], object]]) -> None:
    found = take_turns(ROUNDS, **actions)
    ours = found["ours"]
    value = f"p50 {p50(ours) * 1000:.2f}, p95 {p95(ours) * 1000:.2f} ms"
    if "theirs" in found:
        value += f", × {p50(ours) / p50(found['theirs']):.1f} of theirs"
    report.add(what, value)
    report.figure(f"{what} p50 ms", p50(ours) * 1000)
