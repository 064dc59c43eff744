"""What models do wrong, in each vendor's wire format, and many who spend one budget.

The waits between attempts pass on a fake clock; the deadline of a server that hangs is two real
seconds.
"""

from __future__ import annotations

import threading

import pytest

from smara.core.clock import SystemClock
from smara.core.deadline import CALL_THREAD
from smara.errors import BadReplyError, BudgetSpentError, ModelRefusedError, ModelUnavailableError
from smara.models.budget import ModelBudget
from smara.models.chat import ChatReply, ChatRequest, Usage
from smara.models.models import HOUR_MS, Reservation
from smara.testing import ScriptedModel, open_temporary
from tests import models_server as server_side
from tests.faults import model_workers
from tests.faults.sizes import count
from tests.models_server import WIRES, scripted_server

pytestmark = pytest.mark.usefixtures("vendor_keys")
PROMPT = "The user asked for dark mode, and then for a test of it. " * 20
RESERVED, NOTHING, TOLD = "what was reserved", "nothing", "what the server told"

FAULTS = {
    "hang": (server_side.hang(), ModelUnavailableError, "timeout", 1, RESERVED),
    "drip": (server_side.drip(), ModelUnavailableError, "timeout", 1, RESERVED),
    "rate limit": (
        server_side.status(429, retry_after=3),
        ModelUnavailableError,
        "rate_limit",
        3,
        NOTHING,
    ),
    "rate limit for long": (
        server_side.status(429, retry_after=900),
        ModelUnavailableError,
        "rate_limit",
        1,
        NOTHING,
    ),
    "quota": (server_side.quota(), ModelRefusedError, "quota", 1, NOTHING),
    "payment": (server_side.status(402), ModelRefusedError, "quota", 1, NOTHING),
    "key": (server_side.status(401), ModelRefusedError, "key", 1, NOTHING),
    "500": (server_side.status(500), ModelUnavailableError, "server", 3, NOTHING),
    "502": (server_side.status(502), ModelUnavailableError, "server", 3, NOTHING),
    "503": (server_side.status(503), ModelUnavailableError, "overloaded", 3, NOTHING),
    "529": (server_side.status(529), ModelUnavailableError, "overloaded", 3, NOTHING),
    "reset": (server_side.reset(), ModelUnavailableError, "connection", 3, RESERVED),
    "cut": (server_side.cut(), ModelUnavailableError, "connection", 3, RESERVED),
    "empty": (server_side.empty(), BadReplyError, "empty", 1, TOLD),
    "truncated": (server_side.truncated(), BadReplyError, "truncated", 1, TOLD),
    "refusal": (server_side.refusal(), ModelRefusedError, "content", 1, TOLD),
    "no JSON": (server_side.garbage(), BadReplyError, "unreadable", 1, RESERVED),
    "nothing at all": (
        server_side.garbage(b""),
        BadReplyError,
        ("unreadable", "empty"),
        1,
        (RESERVED, TOLD),
    ),
    "other JSON": (
        server_side.garbage(b'{"a": 1}'),
        BadReplyError,
        ("unreadable", "empty"),
        1,
        (RESERVED, TOLD),
    ),
    "a list": (
        server_side.garbage(b"[]"),
        BadReplyError,
        ("unreadable", "empty"),
        1,
        (RESERVED, TOLD),
    ),
    "HTML": (
        server_side.garbage(b"<html>Bad gateway</html>"),
        BadReplyError,
        "unreadable",
        1,
        RESERVED,
    ),
    "loop": (server_side.loop(), BadReplyError, "too_long", 1, TOLD),
}


@pytest.fixture
def thinking(clock):
    """Opens a memory whose model is a scripted server."""
    opened = []

    def open_with(server, wire, **settings):
        context = open_temporary(**{"clock": clock, "model": server.model(wire), **settings})
        opened.append(context)
        return context.__enter__()

    yield open_with
    for context in opened:
        context.__exit__(None, None, None)


def no_call_is_left():
    """Every thread of a call has ended; one that was left behind has some time to."""
    for thread in [thread for thread in threading.enumerate() if thread.name == CALL_THREAD]:
        thread.join(600)
        assert not thread.is_alive()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_its_error_its_attempts_and_its_price(thinking, clock, fault, wire):
    step, error, reasons, attempts, price = FAULTS[fault]
    is_endless = step.trouble in ("hang", "drip")
    seconds = 2.0 if is_endless else 60.0
    with scripted_server(step) as server:
        memory = thinking(server, wire, clock=SystemClock() if is_endless else clock)
        with pytest.raises(error) as caught:
            memory.models.complete(
                ChatRequest(PROMPT, deadline_seconds=seconds, max_output_tokens=500)
            )
        assert server.wait_until_left(), "a connection stayed open"
    assert caught.value.reason in reasons
    assert len(server.requests) == attempts
    assert clock.monotonic() <= seconds
    settled(memory, price, attempts)
    no_call_is_left()


def settled(memory, price, attempts):
    """Each attempt is a call that has ended, and counts with what it may have cost."""
    calls = memory.models.calls()
    assert [call.ended_at is not None for call in calls] == [True] * attempts
    for call in calls:
        tokens = call.input_tokens + call.output_tokens
        if price == NOTHING:
            assert tokens == 0
        elif price == RESERVED:
            assert call.output_tokens == 500
            assert not call.is_measured
        else:
            assert tokens > 0


@pytest.mark.parametrize("wire", WIRES)
def test_three_hundred_thousand_tokens_close_the_budget(thinking, wire):
    with scripted_server(server_side.loop()) as server:
        memory = thinking(server, wire, model_tokens_per_hour=200_000)
        for error in (BadReplyError, BudgetSpentError):
            with pytest.raises(error):
                memory.models.complete(ChatRequest(PROMPT, max_output_tokens=500))
    assert len(server.requests) == 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "step",
    [server_side.echo(), server_side.ok("L'utilisateur a demandé le mode sombre.")],
    ids=["echo", "French"],
)
def test_what_only_a_reader_can_judge_comes_back_as_it_is(thinking, wire, step):
    """A prompt said back and a wrong language are replies; who asked looks at them."""
    with scripted_server(step) as server:
        reply = thinking(server, wire).models.complete(ChatRequest(PROMPT))
    assert reply.text == (PROMPT if step.text is None else step.text)


@pytest.mark.parametrize("wire", WIRES)
def test_a_fault_that_passes_is_survived(thinking, wire):
    steps = [server_side.status(529), server_side.reset(), server_side.ok("Noted.")]
    with scripted_server(steps) as server:
        memory = thinking(server, wire)
        assert memory.models.complete(ChatRequest(PROMPT)).text == "Noted."
    assert [call.outcome for call in memory.models.calls()] == [
        "done",
        "model_unavailable",
        "model_unavailable",
    ]


@pytest.mark.parametrize("wire", WIRES)
def test_any_order_of_faults_stays_within_the_budget(thinking, clock, rng, wire):
    """Until the budget is spent, whatever the server does; the server itself counts what it would
    charge for.
    """
    kinds = [
        step
        for step, *_ in FAULTS.values()
        if step.trouble not in ("hang", "drip") and step.output_tokens is None
    ]
    limit, charged = count(4_000, 60_000), 0
    with scripted_server(
        [rng.choice([*kinds, server_side.ok()]) for _ in range(count(20, 600))]
    ) as server:
        memory = thinking(server, wire, model_tokens_per_hour=limit)
        for _ in range(count(20, 600)):
            try:
                reply = memory.models.complete(ChatRequest(PROMPT, max_output_tokens=100))
                charged += reply.usage.tokens
            except (BadReplyError, ModelRefusedError, ModelUnavailableError):
                continue
            except BudgetSpentError:
                break
    assert charged <= memory.models.spent(HOUR_MS).tokens <= limit
    assert clock.monotonic() < 3_600, "the window slid, and the sum proves nothing"
    no_call_is_left()


# many who spend one budget


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_many_threads_never_get_more_than_the_budget_from_the_server(thinking, wire):
    limit = 12_000
    with scripted_server(server_side.ok("Noted.", 280, 100)) as server:
        memory = thinking(server, wire, model_tokens_per_hour=limit)
        run_together(lambda: until_spent(memory), count(6, 16))
    charged = len(server.requests) * 380
    assert charged <= limit
    assert charged == memory.models.spent().tokens
    no_call_is_left()


def until_spent(memory):
    try:
        while True:
            memory.models.complete(ChatRequest(PROMPT, max_output_tokens=100))
    except BudgetSpentError:
        return


def run_together(work, how_many):
    threads = [threading.Thread(target=work) for _ in range(how_many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("kill_chance", [0.0, 0.1], ids=["living", "killed"])
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_any_number_of_processes_together_stay_within_the_budget(
    request, start, store, rng, kind, kill_chance
):
    """Some are killed in the middle of a call; what they used was charged for, and counts."""
    address = store if kind == "sqlite" else request.getfixturevalue("postgres_url")
    limit, largest = count(10_000, 200_000), 400
    workers = [
        start(model_workers.spend, address, f"{rng.random()}", limit, kill_chance)
        for _ in range(count(4, 12))
    ]
    charged = [
        tokens for worker in workers for tokens in worker.rest() if tokens != model_workers.READY
    ]
    assert sum(charged) <= limit
    if not kill_chance:  # and nobody was turned away while there was room for another call
        assert sum(charged) > limit - largest
    with smara_at(address) as memory:
        assert memory.models.spent().tokens >= sum(charged)


def smara_at(address):
    import smara

    return smara.open(address, check_index=False)


class ChecksBeforeItWrites(ModelBudget):
    """A mutant: it looks whether there is room, and writes afterwards."""

    barrier: threading.Barrier

    def reserve(self, model, purpose, most, deadline_seconds):
        reservation = Reservation(self._new_id(), model, most.tokens, microdollars=None)
        with self._store.database.read() as session:
            self._check(session, reservation, self._clock.now_ms())
        self.barrier.wait()
        with self._store.database.write() as session:
            self._store.insert(session, reservation, purpose, most, self._clock.now_ms(), 0)
        return reservation


def test_a_budget_that_checks_before_it_writes_is_caught():
    """What proves that the tests above can see an overspent budget."""
    how_many, limit = 4, 1_000
    model = ScriptedModel([ChatReply("ok", Usage(300, 100))])
    with open_temporary(chat_model=model, model_tokens_per_hour=limit) as memory:
        memory.models.budget.__class__ = ChecksBeforeItWrites
        ChecksBeforeItWrites.barrier = threading.Barrier(how_many)
        run_together(
            lambda: memory.models.complete(ChatRequest("hello", max_output_tokens=300)), how_many
        )
        assert memory.models.spent().tokens > limit
