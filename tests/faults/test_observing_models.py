"""Observing with a model over the wire: whatever it does, nothing moves that should not, and the
agent goes on.

A scripted server on loopback speaks the formats of Anthropic and OpenAI. Each of its faults is met
at each place where a model is called: a turn that observes, the background that buffers, and the
reflection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from smara.errors import ConfigError
from smara.observations.models import Extractor
from smara.testing import FakeClock, open_temporary
from tests import models_server as server_side
from tests.faults.sizes import count

pytestmark = pytest.mark.usefixtures("vendor_keys")

SETTINGS = {
    "observe_after_tokens": 1_000, "reflect_after_tokens": 200, "durability": "normal",
    "observe_timezone": "UTC",
    "compact_every_messages": 0, "model_deadline_seconds": 3.0, "block_deadline_seconds": 5.0,
}  # fmt: skip
GOOD = """<observations>
Date: 2025-10-09
* 🔴 (08:53) User asked for dark mode in src/theme.ts
* 🟡 (08:53) Agent added toggleTheme() to src/theme.ts
</observations>
<current-task>Primary: dark mode in src/theme.ts</current-task>
<thread-title>Dark mode</thread-title>"""
CHINESE = """<observations>
Date: 2025-10-09
* 🔴 (08:53) 用户要求为应用程序添加深色模式，并且希望所有页面都支持主题切换功能
* 🟡 (08:53) 助手在主题文件中添加了切换函数，并为新的功能编写了单元测试，全部测试都已经通过
* 🟡 (08:53) 用户确认了新的颜色方案，要求在下一个版本发布之前完成所有界面的检查工作
</observations>"""
FAULTS = {
    "hang": server_side.hang(),
    "rate limit": server_side.status(429, retry_after=900),
    "quota": server_side.quota(),
    "500": server_side.status(500),
    "529": server_side.status(529),
    "reset": server_side.reset(),
    "empty": server_side.empty(),
    "truncated": server_side.truncated(GOOD[:60]),
    "refusal": server_side.refusal(),
    "no JSON": server_side.garbage(),
    "echo": server_side.echo(),
    "loop": server_side.loop(),
    "wrong language": server_side.ok(CHINESE),
    "no observations": server_side.ok("Sure, I can help you with that."),
}
OUTAGES = ("hang", "rate limit", "quota", "500", "529", "reset", "no JSON")
WIRES = ("anthropic", "openai")
GO_ON = [{"role": "user", "content": "Please go on with src/theme.ts."}]
DEADLINE = 60.0
BLOCKED = {
    "observe_after_tokens": 80, "block_deadline_seconds": DEADLINE, "model_deadline_seconds": 30.0,
}  # fmt: skip

Opened = Callable[..., Any]


@pytest.fixture
def thinking(clock: FakeClock) -> Iterator[Opened]:
    """Opens a memory whose model is a scripted server, with a conversation in it."""
    opened = []

    def open_with(server: Any, wire: str, **more: Any) -> Any:
        context = open_temporary(clock=clock, model=server.model(wire), **{**SETTINGS, **more})
        opened.append(context)
        memory = context.__enter__()
        for _ in range(4):
            memory.messages.add_many(
                thread_id="t",
                messages=[
                    {
                        "role": "user",
                        "content": "Please add dark mode to src/theme.ts and a test for it.",
                    },
                    {
                        "role": "assistant",
                        "content": "I added toggleTheme() to src/theme.ts; 12 tests pass.",
                    },
                ],
            )
        return memory

    yield open_with
    for context in opened:
        context.__exit__(None, None, None)


def state(memory: Any) -> tuple[Any, ...]:
    """All that a failure must leave as it is."""
    return (
        memory.observations.observed_seq("t"),
        tuple(memory.observations.pending("t")),
        [(row.id, row.state) for row in memory.observations.list(limit=1_000)],
        memory.observations.record("t"),
    )


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("way", ["observe", "buffer"])
def test_cursor_stays_where_it_is_when_the_model_fails(
    thinking: Opened, way: str, fault: str, wire: str
) -> None:
    # A server that hangs is waited for in real time; there is nothing more to come.
    deadline = {"model_deadline_seconds": 1.0} if fault == "hang" else {}
    with server_side.scripted_server([FAULTS[fault]]) as server:
        memory = thinking(server, wire, **deadline)
        before = state(memory)
        outcome = getattr(memory.observations, way)("t")
        assert not outcome.success
        assert outcome.error
        assert outcome.code
        after = state(memory)
        assert after[:3] == before[:3]
        (failure,) = memory.observations.failures()
        assert (failure.thread_id, failure.attempts, failure.is_dead) == ("t", 1, False)
        assert (failure.operation == "outage") is (fault in OUTAGES)
        assert [message.content for message in memory.context.process_input("t").messages[-2:]], (
            "the agent goes on"
        )
        assert all(each.left >= 0 for each in memory.models.remaining())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", ["hang", "500", "refusal", "empty", "loop"])
def test_model_that_fails_at_reflecting_is_done_without(
    thinking: Opened, fault: str, wire: str
) -> None:
    """The observations stay, or are condensed by rules; nothing is lost to a bad reply."""
    with server_side.scripted_server([server_side.ok(GOOD), FAULTS[fault]]) as server:
        memory = thinking(server, wire)
        assert memory.observations.observe("t").success
        before = {row.text for row in memory.observations.list(limit=1_000)}
        memory.observations.reflect("t", is_forced=True)
        assert before <= {row.text for row in memory.observations.list(limit=1_000)}
        assert memory.observations.active("t")


@pytest.mark.parametrize("wire", WIRES)
def test_good_reply_becomes_observations_with_their_source(thinking: Opened, wire: str) -> None:
    with server_side.scripted_server([server_side.ok(GOOD)]) as server:
        memory = thinking(server, wire)
        assert memory.observations.observe("t").success
        texts = [row.text for row in memory.observations.active("t")]
        assert any("toggleTheme()" in text for text in texts)
        assert all(row.method.startswith("model:") for row in memory.observations.active("t"))
        assert memory.threads.get("t").title == "Dark mode"
        assert "dark mode in src/theme.ts" in memory.context.process_input("t").system


# A turn is delayed by at most the deadline: the model takes its time for real, the turn by the fake
# clock.


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "hang"])
def test_turn_past_the_limit_goes_on_with_its_messages_when_the_model_fails(
    thinking: Opened, fault: str, wire: str
) -> None:
    with server_side.scripted_server([FAULTS[fault]]) as server:
        memory = thinking(server, wire, **BLOCKED)
        context = memory.context.process_input("t", GO_ON)
        assert server.requests, "the model was asked"
        assert context.receipt.waited_seconds <= DEADLINE
        assert told(context) == 8, "all that was said is there"
        assert memory.observations.observed_seq("t") == 0


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("trouble", [server_side.hang(), server_side.drip()], ids=["hang", "drip"])
def test_turn_past_the_limit_waits_until_the_deadline_for_a_model_that_hangs(
    thinking: Opened, clock: FakeClock, trouble: Any, wire: str
) -> None:
    with server_side.scripted_server([trouble]) as server:
        memory = thinking(server, wire, **BLOCKED)
        found: list[Any] = []
        turn = threading.Thread(
            target=lambda: found.append(memory.context.process_input("t", GO_ON)), daemon=True
        )
        turn.start()
        assert clock.awaited()
        assert server.asked.wait(600)
        clock.advance(DEADLINE - 1)
        assert clock.awaited()
        assert not found
        clock.advance(1)
        turn.join(600)
        (context,) = found
        assert context.receipt.waited_seconds == DEADLINE
        assert told(context) == 8
        assert context.receipt.notes
        assert memory.observations.observed_seq("t") == 0
        server.closing.set()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("operation", ["buffer", "reflect"])
@pytest.mark.parametrize("fault", ["hang", "500", "empty", "loop"])
def test_turn_never_waits_for_what_is_done_in_the_background(
    thinking: Opened, operation: str, fault: str, wire: str
) -> None:
    """Neither on the way in nor on the way out; with a model that hangs, the turn is over while it
    still does.
    """
    steps = [FAULTS[fault]] if operation == "buffer" else [server_side.ok(GOOD), FAULTS[fault]]
    with server_side.scripted_server(steps) as server:
        memory = thinking(server, wire, reflect_after_tokens=10, model_deadline_seconds=30.0)
        if operation == "reflect":
            assert memory.observations.observe("t").success
            server.asked.clear()
        assert len(memory.context.process_output("t", GO_ON * 30)) == 30
        assert server.asked.wait(600), "something goes on in the background"
        context = memory.context.process_input("t", GO_ON)
        assert context.receipt.waited_seconds == 0
        assert told(context) >= 30
        server.closing.set()


def told(context: Any) -> int:
    """How many stored messages a context has; what came in is its last."""
    assert context.messages[-1].content == GO_ON[0]["content"]
    return sum(message.seq is not None for message in context.messages)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", [name for name in OUTAGES if name != "hang"])
def test_outage_is_waited_out_and_the_model_observes_after_all(
    thinking: Opened, clock: FakeClock, fault: str, wire: str
) -> None:
    with server_side.scripted_server(
        [*[FAULTS[fault]] * count(15, 60), server_side.ok(GOOD)]
    ) as server:
        memory = thinking(server, wire)
        for _ in range(200):
            if memory.observations.observe("t").success:
                break
            assert [failure.is_dead for failure in memory.observations.failures()] == [False]
            assert memory.observations.status("t")["waiting"]
            clock.advance(900)
        assert all(row.method.startswith("model:") for row in memory.observations.active("t"))
        assert memory.observations.pending("t").tokens == 0
        assert memory.observations.failures() == []


def test_model_that_never_works_is_replaced_by_rules_and_seen(
    thinking: Opened, clock: FakeClock
) -> None:
    with server_side.scripted_server([server_side.ok("Sure, I can help you with that.")]) as server:
        memory = thinking(server, "openai")
        for _ in range(6):
            memory.observations.observe("t")
            clock.advance(3_600)
        assert memory.observations.pending("t").tokens == 0
        assert {row.method for row in memory.observations.active("t")} == {"offline-1"}
        (failure,) = memory.observations.failures()
        assert failure.is_dead


def test_spent_budget_keeps_the_messages_and_asks_nobody(thinking: Opened) -> None:
    with server_side.scripted_server([server_side.ok(GOOD)]) as server:
        memory = thinking(server, "openai", model_tokens_per_hour=10)
        outcome = memory.observations.observe("t")
        assert (outcome.success, outcome.code) == (False, "budget_spent")
        assert server.requests == []
        assert memory.observations.observed_seq("t") == 0


def test_extractors_fail_one_by_one(clock: FakeClock) -> None:
    """Values of the user's own: what fits its schema is kept, what does not is left out, and so is
    nothing else.
    """
    files, mood = '{"paths": ["src/theme.ts"]}', '{"level": "high"}'
    reply = (
        f"{GOOD}\n<observed-files>{files}</observed-files>\n<observed-mood>{mood}</observed-mood>"
    )
    extractors = [
        Extractor(
            "files", "Every file that was changed.", {"type": "object", "required": ["paths"]}
        ),
        Extractor(
            "mood", "How it goes, from 1 to 5.", {"properties": {"level": {"type": "integer"}}}
        ),
    ]
    with (
        server_side.scripted_server([server_side.ok(reply)]) as server,
        open_temporary(
            clock=clock, model=server.model("openai"), extractors=extractors, **SETTINGS
        ) as memory,
    ):
        memory.messages.add(
            thread_id="t",
            role="user",
            content="Please add dark mode: toggleTheme() in src/theme.ts.",
        )
        assert memory.observations.observe("t").success
        assert memory.observations.extracted("t") == [{"files": {"paths": ["src/theme.ts"]}}]
        assert memory.observations.active("t")


def test_cut_off_and_empty_replies_are_asked_for_again_with_more_room(thinking: Opened) -> None:
    """Through the same door as in production, before anything counts as a failure."""
    steps = [server_side.truncated(GOOD[:60]), server_side.empty(), server_side.ok(GOOD)]
    with server_side.scripted_server(steps) as server:
        memory = thinking(server, "openai")
        assert memory.observations.observe("t").success
    rooms = [each.body["max_completion_tokens"] for each in server.requests]
    assert rooms == [4_000, 8_000, 16_000]
    assert memory.observations.failures() == []
    assert memory.observations.active("t")[0].method.startswith("model:openai")


def test_observer_and_reflector_have_models_and_settings_of_their_own(clock: FakeClock) -> None:
    with server_side.scripted_server(server_side.ok(GOOD)) as server:
        settings = {
            **SETTINGS,
            "observe_model": server.model("anthropic", "small"),
            "observe_model_settings": '{"temperature": 0.3, "top_p": 0.9}',
            "reflect_model": server.model("openai", "large"),
        }
        with open_temporary(clock=clock, **settings) as memory:
            memory.messages.add(thread_id="t", role="user", content="Add dark mode to src/theme.ts")
            memory.messages.add(
                thread_id="t", role="assistant", content="I added toggleTheme() to src/theme.ts."
            )
            assert memory.observations.observe("t").success
            memory.observations.reflect("t", is_forced=True)
        bodies = [each.body for each in server.requests]
    assert [each["model"] for each in bodies[:2]] == ["small", "large"]
    assert (bodies[0]["temperature"], bodies[0]["top_p"]) == (0.3, 0.9)
    assert "temperature" not in bodies[1]


def test_an_observation_names_the_one_model_that_answered(clock: FakeClock) -> None:
    """With tiers the setting names several, and each note was written by one of them."""
    with server_side.scripted_server(server_side.ok(GOOD)) as server:
        small, large = server.model("openai", "small"), server.model("anthropic", "large")
        tiers = f"<20000: {small}; else: {large}"
        with open_temporary(clock=clock, **{**SETTINGS, "model": tiers}) as memory:
            memory.messages.add(thread_id="t", role="user", content="Add dark mode to src/theme.ts")
            memory.messages.add(
                thread_id="t", role="assistant", content="I added toggleTheme() to src/theme.ts."
            )
            assert memory.observations.observe("t").success
            methods = {row.method.split()[0] for row in memory.observations.active("t")}
    assert methods == {"model:openai:small"}


@pytest.mark.parametrize("fault", ["empty", "loop", "no observations", "wrong language"])
def test_a_bad_reply_says_that_it_is_tried_again(thinking: Opened, fault: str) -> None:
    with server_side.scripted_server([FAULTS[fault]]) as server:
        outcome = thinking(server, "openai").observations.observe("t")
        assert (outcome.code, outcome.is_retryable) == ("bad_reply", True)


def test_settings_of_requests_that_cannot_be_read_are_told(clock: FakeClock) -> None:
    given = {"model": "openai:gpt-5-mini", "observe_model_settings": '{"max_tokens": 9}'}
    with (
        open_temporary(clock=clock, **given) as memory,
        pytest.raises(ConfigError, match="observe_model_settings"),
    ):
        memory.observations.planned("t")
