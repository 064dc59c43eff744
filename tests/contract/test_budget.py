"""The budget of models: in any hour and any day, in tokens and in money, whoever asks; on both
databases.
"""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.errors import BudgetSpentError, ConfigError, ModelRefusedError
from smara.models.budget import limits_of
from smara.models.chat import ChatReply, ChatRequest, Usage
from smara.models.failures import failure
from smara.models.models import DAY_MS, HOUR_MS, Reservation
from smara.testing import ScriptedModel
from tests.contract.both import ON_BOTH

pytestmark = ON_BOTH
HOUR, DAY = 3_600, 86_400
MODEL = "scripted"


@pytest.fixture
def budget(place):
    """Opens the budget of a memory: ``budget(model_tokens_per_hour=1000)``."""
    return lambda **given: place.open(**given).models.budget


def reserve(budget, read=100, written=0, model=MODEL, seconds=60):
    return budget.reserve(model, "observe", Usage(read, written), seconds)


def use(budget, read=100, written=0, model=MODEL):
    """A call that uses exactly what was reserved for it."""
    reservation = reserve(budget, read, written, model=model)
    budget.settle(reservation, "done", Usage(read, written))
    return reservation


def refused(budget, *given, **named):
    with pytest.raises(BudgetSpentError) as caught:
        reserve(budget, *given, **named)
    return caught.value


# limits


def test_a_call_that_fits_exactly_is_admitted_and_the_next_is_not(budget, clock):
    spending = budget(model_tokens_per_hour=1_000)
    use(spending, 600, 400)
    error = refused(spending, 1)
    assert (error.limit, error.most, error.spent, error.needed) == (
        "model_tokens_per_hour",
        1_000,
        1_000,
        1,
    )
    assert error.opens_at == clock.now_ms() + HOUR_MS


def test_a_refused_call_leaves_nothing_behind(budget):
    spending = budget(model_tokens_per_hour=1_000)
    refused(spending, 1_001)
    assert spending.spent(HOUR_MS).calls == 0
    assert reserve(spending, 1_000)


def test_a_reservation_counts_while_the_call_is_under_way(budget):
    spending = budget(model_tokens_per_hour=1_000)
    reserve(spending, 700)
    assert refused(spending, 400).spent == 700
    assert spending.spent(HOUR_MS).running_calls == 1


def test_what_was_not_used_is_given_back(budget):
    spending = budget(model_tokens_per_hour=1_000)
    reservation = reserve(spending, 400, 500)
    spending.settle(reservation, "done", Usage(100, 50, cached_tokens=80))
    assert spending.spent(HOUR_MS).tokens == 150
    assert reserve(spending, 850)


def test_a_call_that_cost_nothing_gives_everything_back(budget):
    spending = budget(model_tokens_per_hour=1_000)
    spending.settle(reserve(spending, 1_000), "model_unavailable", Usage(), "rate_limit")
    assert reserve(spending, 1_000)


def test_a_call_of_which_nobody_knows_what_it_used_keeps_its_reservation(budget):
    spending = budget(model_tokens_per_hour=1_000)
    spending.settle(reserve(spending, 700), "model_unavailable", None, "timeout")
    assert spending.spent(HOUR_MS).tokens == 700
    refused(spending, 400)


def test_a_model_that_used_more_than_it_was_allowed_is_counted_with_all_of_it(budget):
    spending = budget(model_tokens_per_hour=1_000)
    spending.settle(reserve(spending, 100, 100), "bad_reply", Usage(100, 300_000), "too_long")
    assert spending.spent(HOUR_MS).tokens == 300_100
    refused(spending, 1)


def test_settling_twice_is_settling_once(budget):
    spending = budget(model_tokens_per_hour=1_000)
    reservation = reserve(spending, 500)
    spending.settle(reservation, "done", Usage(50, 0))
    spending.settle(reservation, "failed", None)
    spending.settle(reservation, "done", Usage(400, 0))
    assert spending.spent(HOUR_MS).tokens == 50


def test_zero_is_nothing_and_not_everything(budget):
    spending = budget(model_tokens_per_day=0)
    error = refused(spending, 1)
    assert (error.limit, error.opens_at) == ("model_tokens_per_day", None)


# windows


def test_the_hour_slides(budget, clock):
    spending = budget(model_tokens_per_hour=1_000)
    began = clock.now_ms()
    use(spending, 600)
    clock.advance(1_800)
    use(spending, 400)
    assert refused(spending, 500).opens_at == began + HOUR_MS
    assert refused(spending, 700).opens_at == began + 1_800_000 + HOUR_MS
    clock.advance(1_799)
    refused(spending, 500)
    clock.advance(1)
    assert reserve(spending, 500)


def test_the_day_is_not_reset_by_a_new_hour(budget, clock):
    spending = budget(model_tokens_per_hour=1_000, model_tokens_per_day=2_500)
    for _ in range(2):
        use(spending, 1_000)
        clock.advance(HOUR)
    assert refused(spending, 600).limit == "model_tokens_per_day"
    use(spending, 500)
    clock.advance(DAY)
    use(spending, 1_000)


def test_of_two_limits_the_one_that_opens_later_is_told(budget, clock):
    spending = budget(model_tokens_per_hour=1_000, model_tokens_per_day=1_000)
    use(spending, 1_000)
    error = refused(spending, 1)
    assert (error.limit, error.opens_at) == ("model_tokens_per_day", clock.now_ms() + DAY_MS)
    assert "It opens again at 2025-10-10 08:53 UTC" in str(error)


def test_a_call_that_can_never_fit_says_what_to_raise(budget):
    error = refused(budget(model_tokens_per_hour=1_000), 1_001)
    assert error.opens_at is None
    assert "Raise model_tokens_per_hour" in str(error)


def test_a_clock_that_is_set_back_opens_nothing(budget, clock):
    spending = budget(model_tokens_per_hour=1_000)
    use(spending, 1_000)
    clock.set(clock.now_ms() - 2 * DAY_MS)
    refused(spending, 1)


# money


def test_money_is_limited_too(budget):
    spending = budget(model_dollars_per_hour=1.0, model_prices="scripted=10/100")
    use(spending, 50_000, 4_000)
    error = refused(spending, 10_001)
    assert (error.limit, error.spent, error.needed) == ("model_dollars_per_hour", 900_000, 100_010)
    assert "$1.00 per hour" in str(error)
    assert reserve(spending, 10_000)


def test_money_is_settled_with_what_was_used(budget):
    spending = budget(model_dollars_per_day=1.0, model_prices="scripted=10/100")
    spending.settle(reserve(spending, 90_000), "done", Usage(10_000, 0))
    assert (spending.spent(DAY_MS).dollars, spending.spent(DAY_MS).unpriced_calls) == (0.1, 0)


def test_a_model_without_a_price_counts_in_tokens_alone_and_that_is_told(budget):
    spending = budget(model_dollars_per_day=0.01)
    use(spending, 500_000)
    spent = spending.spent(DAY_MS)
    assert (spent.tokens, spent.dollars, spent.unpriced_calls) == (500_000, 0.0, 1)


def test_where_nothing_may_be_spent_a_price_that_nobody_knows_is_refused(budget):
    spending = budget(model_dollars_per_day=0)
    assert "model_prices" in str(refused(spending, 10))


def test_what_is_free_goes_on_when_the_money_is_spent(budget):
    spending = budget(
        model_dollars_per_hour=0.5, model_dollars_per_day=0.5, model_prices="scripted=10/100"
    )
    use(spending, 50_000)
    refused(spending, 1)
    assert reserve(spending, 1_000, model="ollama:qwen3")


def test_prices_that_cannot_be_read_are_told(place):
    with pytest.raises(ConfigError, match="model_prices"):
        _ = place.open(model_prices="cheap").models


# many who ask


def test_every_project_of_a_store_spends_the_same_budget(place):
    first, second = (place.open(project=name, model_tokens_per_hour=1_000) for name in ("a", "b"))
    use(first.models.budget, 800)
    refused(second.models.budget, 300)
    assert (len(first.models.calls()), len(second.models.calls())) == (1, 0)


def test_who_asks_while_another_is_being_admitted_waits_and_sees_it(place, clock):
    """1. One is admitted and has not committed yet. 2. Another asks, and can only be told no
    afterwards.
    """
    first, second = (place.open(model_tokens_per_hour=1_000).models for _ in range(2))
    answers, told = [], threading.Event()

    def ask():
        try:
            answers.append(reserve(second.budget, 600))
        except BudgetSpentError as error:
            answers.append(error)
        told.set()

    asking = threading.Thread(target=ask)
    with first._store.database.write() as session:
        first._store.hold_switch(session)
        first._store.insert(
            session,
            Reservation("r1", MODEL, 600, microdollars=None),
            "observe",
            Usage(600),
            clock.now_ms(),
            0,
        )
        asking.start()
        assert not told.wait(0.3)
    asking.join()
    assert [type(answer) for answer in answers] == [BudgetSpentError]


def test_the_call_of_a_process_that_is_gone_is_called_lost_and_goes_on_counting(place, clock):
    memory = place.open(model_tokens_per_hour=1_000)
    reserve(memory.models.budget, 700, seconds=30)
    assert memory.models.calls()[0].outcome == "running"
    clock.advance(91)
    again = place.open(model_tokens_per_hour=1_000)
    assert (again.models.calls()[0].outcome, again.models.spent().tokens) == ("lost", 700)
    refused(again.models.budget, 400)
    clock.advance(HOUR)
    assert reserve(again.models.budget, 1_000)


def test_a_process_that_slept_past_its_deadline_still_settles(place, clock):
    memory = place.open(model_tokens_per_hour=1_000)
    reservation = reserve(memory.models.budget, 700, seconds=30)
    clock.advance(600)
    memory.models.budget.settle(reservation, "done", Usage(10, 5))
    assert (memory.models.calls()[0].outcome, memory.models.spent().tokens) == ("done", 15)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 400), st.integers(0, 400), st.sampled_from(["done", "lost", "free"]),
            st.integers(0, 2_000)
        ),
        max_size=12,
    )
)  # fmt: skip
def test_no_sequence_of_calls_passes_a_limit_in_any_hour(place, clock, calls):
    """Calls of any size, that use what they reserved or less, are lost, or cost nothing, at any
    distance in time.
    """
    clock.advance(2 * HOUR)
    spending = place.open(model_tokens_per_hour=1_000).models.budget
    used = []
    for read, written, ending, seconds in calls:
        clock.advance(seconds)
        try:
            reservation = reserve(spending, read, written)
        except BudgetSpentError:
            continue
        really = 0 if ending == "free" else read + written // 2
        used.append((clock.now_ms(), really))
        if ending != "lost":
            spending.settle(
                reservation, "done", Usage(read, written // 2) if ending == "done" else Usage()
            )
    assert all(sum(n for at, n in used if 0 <= at - start < HOUR_MS) <= 1_000 for start, _ in used)


# the switch


def test_a_pause_holds_for_everybody_and_survives_a_restart(place, clock):
    place.open(actor="ann").models.pause("It repeats itself.")
    other = place.open(project="b", chat_model=ScriptedModel())
    with pytest.raises(
        ModelRefusedError, match=r"paused by ann at .*: It repeats itself\. .*smara models resume"
    ) as caught:
        other.models.complete(ChatRequest("hello"))
    assert (caught.value.reason, caught.value.paused_at) == ("paused", clock.now_ms())
    assert other.models.calls() == []


def test_resume_lets_calls_through_again_and_is_safe_to_repeat(place):
    memory = place.open(chat_model=ScriptedModel("Fine."))
    memory.models.pause()
    assert [memory.models.resume(), memory.models.resume()] == [True, False]
    assert memory.models.find_pause() is None
    assert memory.models.complete(ChatRequest("hello")).text == "Fine."


@pytest.mark.parametrize("reason", ["重跑 \ud800 \x00 café", "x" * 5_000])
def test_any_reason_is_kept_as_it_is(place, reason):
    memory = place.open()
    memory.models.pause(reason)
    assert memory.models.find_pause().reason == reason


# through the front door


def test_remaining_tells_what_is_left_of_each_limit(place):
    memory = place.open(
        chat_model=ScriptedModel([ChatReply("ok", Usage(900, 100))]),
        model_prices="scripted=1/1",
        model_tokens_per_hour=5_000,
    )
    memory.models.complete(ChatRequest("hello"))
    left = {each.limit.setting: each.left for each in memory.models.remaining()}
    assert left == {
        "model_tokens_per_hour": 4_000,
        "model_tokens_per_day": 4_999_000,
        "model_dollars_per_hour": 1_999_000,
        "model_dollars_per_day": 4_999_000,
        "embedding_tokens_per_hour": 20_000_000,
        "embedding_tokens_per_day": 100_000_000,
    }


# embedding: tokens of its own, the same money


def embed(budget, read, model=MODEL):
    reservation = budget.reserve(model, "embed", Usage(read), 60)
    budget.settle(reservation, "done", Usage(read))


def test_embedding_uses_none_of_the_tokens_of_chat_models(budget):
    spending = budget(model_tokens_per_hour=1_000, embedding_tokens_per_hour=50_000)
    embed(spending, 40_000)
    use(spending, 1_000)
    assert (spending.spent(HOUR_MS).tokens, spending.spent(HOUR_MS).embedding_tokens) == (
        1_000,
        40_000,
    )


def test_embedding_has_a_limit_of_its_own_and_says_when_it_opens(budget, clock):
    spending = budget(embedding_tokens_per_hour=50_000)
    embed(spending, 30_000)
    clock.advance(600)
    use(spending, 10_000)
    with pytest.raises(BudgetSpentError) as caught:
        embed(spending, 20_001)
    assert (caught.value.limit, caught.value.spent) == ("embedding_tokens_per_hour", 30_000)
    assert caught.value.opens_at == clock.now_ms() + HOUR_MS - 600_000
    assert "30,000 embedding tokens" in caught.value.message


def test_embedding_and_thinking_share_the_money(budget):
    spending = budget(model_dollars_per_hour=1.0, model_prices=f"{MODEL}=10/10")
    embed(spending, 60_000)
    assert refused(spending, 50_000).limit == "model_dollars_per_hour"


def test_every_call_is_listed_newest_first(place, clock):
    busy = failure(MODEL, "overloaded", may_be_billed=False)
    memory = place.open(chat_model=ScriptedModel([busy, "ok", ChatReply("", Usage(5, 0))]))
    memory.models.complete(ChatRequest("hello"), purpose="observe")
    clock.advance(1)
    with pytest.raises(Exception, match="answered nothing"):
        memory.models.complete(ChatRequest("hello"), purpose="reflect")
    told = [(call.purpose, call.outcome, call.reason) for call in memory.models.calls()]
    assert told == [
        ("reflect", "bad_reply", "empty"),
        ("observe", "done", None),
        ("observe", "model_unavailable", "overloaded"),
    ]
    assert len(memory.models.calls(limit=2)) == 2


def test_the_defaults_are_safe(place):
    limits = limits_of(place.open().settings)
    assert all(0 < limit.most < 10**7 for limit in limits if limit.unit != "embedding tokens")
    assert all(0 < limit.most < 10**9 for limit in limits)
