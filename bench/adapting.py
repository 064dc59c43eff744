"""What adapters add per call, beside the framework's own class on the same disk in the same run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import smara
from bench.corpus import Corpus
from bench.measure import Report, p50, p95, take_turns

ROUNDS = 200
ITEMS = 1_000


def run(folder: Path, report: Report) -> None:
    """Measure each adapter."""
    _langgraph(folder, report)


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


def _add(report: Report, what: str, actions: dict[str, Callable[[int], object]]) -> None:
    found = take_turns(ROUNDS, **actions)
    ours = found["ours"]
    value = f"p50 {p50(ours) * 1000:.2f}, p95 {p95(ours) * 1000:.2f} ms"
    if "theirs" in found:
        value += f", × {p50(ours) / p50(found['theirs']):.1f} of theirs"
    report.add(what, value)
    report.figure(f"{what} p50 ms", p50(ours) * 1000)
