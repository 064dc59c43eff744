"""The same random operations on a database and on the model: everything readable stays equal.

``SMARA_FAULTS=large`` runs many more examples.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import smara
from smara import NewMessage, NewThread, Part, Thread
from smara.errors import SmaraError
from smara.testing import CountingIds, FakeClock
from tests import stores
from tests.contract.model import ModelMemory, Store

LARGE = os.environ.get("SMARA_FAULTS") == "large"
SMALL_RULES = {
    "compact_every_messages": 2, "compact_after_messages": 4, "compact_run_messages": 2,
    "archive_after_messages": 6,
    "token_model": "estimate",
}  # fmt: skip
THREADS = st.sampled_from(["a", "b"])
PROJECTS = ("default", "other")
CLIENT_IDS = st.none() | st.sampled_from(["c1", "c2", "c3"])
TEXTS = st.sampled_from(
    [
        "the walrus sings",
        "fix refresh_tokens in src/auth.ts",
        "重跑测试",
        "",
        "nul\x00 and \ud800",
        "push 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",
    ]
) | st.text(max_size=8)
PARTS = st.builds(
    Part, type=st.sampled_from(["text", "reasoning", "tool_result"]), text=st.text(max_size=6)
) | st.builds(
    Part,
    type=st.just("tool_call"),
    name=st.sampled_from(["Bash", "Read"]),
    arguments=st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.integers(), max_size=2),
)
CONTENTS = TEXTS | st.lists(PARTS, min_size=2, max_size=3)
MESSAGES = st.builds(
    NewMessage,
    role=st.sampled_from(["user", "assistant", "system", "tool"]),
    content=CONTENTS,
    client_id=CLIENT_IDS,
)
METADATA = st.dictionaries(
    st.sampled_from(["x", "y"]), st.none() | st.integers() | st.text(max_size=3), max_size=2
)
QUERIES = ("walrus", "sings", "fix", "重跑", "nul", "note")


class Comparison(RuleBasedStateMachine):
    """One database and one model, told the same."""

    kind: str

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.address = self.stack.enter_context(stores.empty_store(self.kind))
        self.store, self.clock = Store(), FakeClock()
        self.ids, self.model_ids = CountingIds(), CountingIds()
        self.project = "default"
        self.looks = 0

    @initialize()
    def open(self) -> None:
        self.memory = smara.open(
            self.address,
            clock=self.clock,
            new_id=self.ids,
            project=self.project,
            durability="normal",
            **SMALL_RULES,
        )
        self.model = ModelMemory(
            self.store, self.clock, self.model_ids, project=self.project, **SMALL_RULES
        )

    def teardown(self) -> None:
        try:
            if hasattr(self, "memory"):
                assert readable(self.memory) == readable(self.model)
        finally:
            if hasattr(self, "memory"):
                self.memory.close()
            self.stack.close()

    def both(self, act: Any) -> None:
        """Do the same to both; both answer the same, or refuse with the same kind of error."""
        outcomes = []
        for memory in (self.memory, self.model):
            try:
                outcomes.append(act(memory))
            except SmaraError as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]

    @rule(thread_id=THREADS, new=MESSAGES)
    def add(self, thread_id: str, new: NewMessage) -> None:
        self.both(
            lambda m: m.messages.add(
                thread_id=thread_id, role=new.role, content=new.content, client_id=new.client_id
            )
        )

    @rule(thread_id=THREADS, batch=st.lists(MESSAGES, max_size=6))
    def add_many(self, thread_id: str, batch: list[NewMessage]) -> None:
        self.both(lambda m: m.messages.add_many(thread_id=thread_id, messages=batch))

    @rule(thread_id=THREADS, count=st.integers(5, 14))
    def add_a_lot(self, thread_id: str, count: int) -> None:
        batch = [
            NewMessage("user", f"note {number} about parse_header()") for number in range(count)
        ]
        self.both(lambda m: m.messages.add_many(thread_id=thread_id, messages=batch))

    @rule(thread_id=THREADS, back=st.integers(0, 3), content=CONTENTS)
    def extend(self, thread_id: str, back: int, content: Any) -> None:
        log = self.model.messages.list(thread_id=thread_id)
        if len(log) > back:
            self.both(lambda m: m.messages.extend(log[-1 - back].id, content))

    @rule(thread_id=THREADS, up_to_seq=st.none() | st.integers(0, 20))
    def seal(self, thread_id: str, up_to_seq: int | None) -> None:
        self.both(lambda m: m.messages.seal(thread_id=thread_id, up_to_seq=up_to_seq))

    @rule(thread_id=THREADS, keep=st.integers(0, 9))
    def compact(self, thread_id: str, keep: int) -> None:
        self.both(lambda m: m.compactions.compact(thread_id, keep=keep))

    @rule(thread_id=THREADS)
    def end_session(self, thread_id: str) -> None:
        self.both(lambda m: m.compactions.end_session(thread_id))

    @rule(thread_id=THREADS, which=st.integers(0, 9))
    def undo(self, thread_id: str, which: int) -> None:
        records = self.model.compactions.list(thread_id)
        if which < len(records):
            self.both(lambda m: m.compactions.undo(records[which].id))

    @rule(thread_id=THREADS, title=st.none() | TEXTS, metadata=METADATA)
    def update_thread(self, thread_id: str, title: str | None, metadata: dict[str, Any]) -> None:
        self.both(lambda m: of_caller(m.threads.update(thread_id, title=title, metadata=metadata)))

    @rule(thread_id=THREADS, title=st.none() | TEXTS, metadata=METADATA)
    def put_thread(self, thread_id: str, title: str | None, metadata: dict[str, Any]) -> None:
        new = NewThread(thread_id, title=title, metadata=metadata)
        self.both(lambda m: of_caller(m.threads.put(new)))

    @rule(owner=st.sampled_from(["w1", "w2"]), seconds=st.sampled_from([1.0, 30.0]))
    def acquire(self, owner: str, seconds: float) -> None:
        self.both(lambda m: m.internals.leases.acquire("job", owner, seconds))

    @rule(verb=st.sampled_from(["renew", "release"]))
    def renew_or_release(self, verb: str) -> None:
        held = self.model.internals.leases.find("job")
        if held:
            self.both(lambda m: getattr(m.internals.leases, verb)(held))

    @rule(seconds=st.sampled_from([-3600.0, 0.001, 1.0, 31.0, 86_400.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(project=st.sampled_from(PROJECTS))
    def reopen(self, project: str) -> None:
        self.memory.close()
        self.project = project
        self.open()

    @invariant()
    def everything_readable_is_equal(self) -> None:
        self.looks += 1
        # Reading everything takes longer than changing something: where there are many steps, at
        # every third.
        if hasattr(self, "memory") and (not LARGE or self.looks % 3 == 0):
            assert readable(self.memory) == readable(self.model)


def of_caller(thread: Thread) -> Thread:
    """Remove what observing notes of a thread: the model knows no observing."""
    own = {key: value for key, value in thread.metadata.items() if key != "observations"}
    return replace(thread, metadata=own)


def readable(memory: Any) -> dict[str, Any]:
    """All that a caller can read, in a form that can be compared."""
    seen: dict[str, Any] = {
        "threads": [of_caller(each) for each in memory.threads.list()],
        "lease": memory.internals.leases.find("job"),
    }
    for thread in seen["threads"]:
        seen[thread.id] = (
            memory.messages.list(thread_id=thread.id),
            memory.messages.last_tokens(thread_id=thread.id, tokens=30),
            memory.history.window(thread.id),
            memory.history.window(thread.id, last=3, tokens=200),
            memory.compactions.list(thread.id),
        )
    for query in QUERIES:
        seen[query] = {
            # Texts that are the same are one hit, which names the others.
            (each, hit.source)
            for hit in memory.search(query, limit=1_000)
            for each in (hit.id, *hit.copies)
        }
    return seen


def compare(kind: str, examples: int, steps: int) -> None:
    machine = type(f"Comparison_{kind}", (Comparison,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            # Shrinking a failure may take minutes; a quick run shows the failure as it was found.
            phases=tuple(Phase) if LARGE else (Phase.explicit, Phase.generate),
            report_multiple_bugs=LARGE,
            database=None,
        ),
    )


def test_sqlite_does_what_the_model_does() -> None:
    compare("sqlite", 2_000 if LARGE else 40, 50 if LARGE else 20)


@pytest.mark.postgres
def test_postgresql_does_what_the_model_does() -> None:
    compare("postgres", 300 if LARGE else 12, 50 if LARGE else 20)
