"""Leases: one worker at a time, and a late one can never write (rulings 9 and 10)."""

from __future__ import annotations

import pytest

from smara.errors import LeaseLostError


def guarded(memory, lease):
    """Write under a lease, as a worker does."""
    with memory._rooms.database.write() as session:
        memory.internals.leases.guard(session, lease)


def test_the_first_to_ask_gets_the_lease(memory, clock):
    lease = memory.internals.leases.acquire("observe:t", "w1", lease_seconds=30)
    assert (lease.name, lease.owner, lease.fence, lease.taken_over_from) == (
        "observe:t",
        "w1",
        1,
        None,
    )
    assert lease.expires_at == clock.now_ms() + 30_000
    assert lease.operation_id


def test_a_second_worker_is_told_no_until_it_expires(memory, clock):
    memory.internals.leases.acquire("job", "w1", lease_seconds=30)
    assert memory.internals.leases.acquire("job", "w2") is None
    clock.advance(29.999)
    assert memory.internals.leases.acquire("job", "w2") is None
    clock.advance(0.001)
    assert memory.internals.leases.acquire("job", "w2").owner == "w2"


def test_the_holder_itself_is_told_no_too(memory):
    memory.internals.leases.acquire("job", "w1")
    assert memory.internals.leases.acquire("job", "w1") is None


def test_different_names_are_different_leases(memory):
    assert memory.internals.leases.acquire("a", "w1")
    assert memory.internals.leases.acquire("b", "w2")


def test_taking_over_an_expired_lease_raises_the_fence_and_names_the_former_owner(memory, clock):
    first = memory.internals.leases.acquire("job", "w1", lease_seconds=1)
    clock.advance(2)
    second = memory.internals.leases.acquire("job", "w2")
    assert (second.fence, second.taken_over_from) == (first.fence + 1, "w1")
    assert second.operation_id != first.operation_id


def test_the_fence_rises_with_every_grant_also_after_release(memory):
    fences = []
    for _ in range(4):
        lease = memory.internals.leases.acquire("job", "w")
        fences.append(lease.fence)
        memory.internals.leases.release(lease)
    assert fences == sorted(set(fences))


def test_a_released_lease_goes_to_the_next_and_was_not_taken_over(memory):
    assert memory.internals.leases.release(memory.internals.leases.acquire("job", "w1")) is True
    assert memory.internals.leases.acquire("job", "w2").taken_over_from is None


def test_release_is_safe_to_repeat(memory):
    lease = memory.internals.leases.acquire("job", "w1")
    assert (memory.internals.leases.release(lease), memory.internals.leases.release(lease)) == (
        True,
        False,
    )


def test_release_of_a_lost_lease_leaves_the_new_holder_alone(memory, clock):
    late = memory.internals.leases.acquire("job", "w1", lease_seconds=1)
    clock.advance(2)
    memory.internals.leases.acquire("job", "w2")
    assert memory.internals.leases.release(late) is False
    assert memory.internals.leases.find("job").owner == "w2"


def test_renew_prolongs_from_now(memory, clock):
    lease = memory.internals.leases.acquire("job", "w1", lease_seconds=30)
    clock.advance(20)
    renewed = memory.internals.leases.renew(lease, lease_seconds=30)
    assert renewed.expires_at == clock.now_ms() + 30_000
    clock.advance(20)
    assert memory.internals.leases.acquire("job", "w2") is None
    guarded(memory, renewed)


def test_a_slow_worker_that_renews_is_never_robbed(memory, clock):
    lease = memory.internals.leases.acquire("job", "w1", lease_seconds=10)
    for _ in range(50):
        clock.advance(9)
        lease = memory.internals.leases.renew(lease, lease_seconds=10)
        assert memory.internals.leases.acquire("job", "w2") is None


def test_the_lease_as_first_given_still_writes_after_a_renewal(memory, clock):
    lease = memory.internals.leases.acquire("job", "w1", lease_seconds=10)
    memory.internals.leases.renew(lease, lease_seconds=60)
    clock.advance(30)
    guarded(memory, lease)


def test_renew_after_expiry_is_refused_though_nobody_took_it(memory, clock):
    lease = memory.internals.leases.acquire("job", "w1", lease_seconds=1)
    clock.advance(1)
    with pytest.raises(LeaseLostError, match="job"):
        memory.internals.leases.renew(lease)


def test_renew_after_another_took_it_is_refused(memory, clock):
    late = memory.internals.leases.acquire("job", "w1", lease_seconds=1)
    clock.advance(2)
    memory.internals.leases.acquire("job", "w2")
    with pytest.raises(LeaseLostError, match="Acquire"):
        memory.internals.leases.renew(late)


def test_renew_after_release_is_refused(memory):
    lease = memory.internals.leases.acquire("job", "w1")
    memory.internals.leases.release(lease)
    with pytest.raises(LeaseLostError):
        memory.internals.leases.renew(lease)


def test_the_guard_lets_the_holder_write(memory):
    guarded(memory, memory.internals.leases.acquire("job", "w1"))


def test_the_guard_refuses_a_worker_paused_past_its_expiry(memory, clock):
    late = memory.internals.leases.acquire("job", "w1", lease_seconds=5)
    clock.advance(6)
    with pytest.raises(LeaseLostError):
        guarded(memory, late)


def test_the_guard_refuses_the_former_holder_and_lets_the_new_one_write(memory, clock):
    late = memory.internals.leases.acquire("job", "w1", lease_seconds=5)
    clock.advance(6)
    new = memory.internals.leases.acquire("job", "w2")
    with pytest.raises(LeaseLostError):
        guarded(memory, late)
    guarded(memory, new)


def test_the_guard_refuses_an_earlier_grant_of_the_same_owner(memory):
    first = memory.internals.leases.acquire("job", "w1")
    memory.internals.leases.release(first)
    memory.internals.leases.acquire("job", "w1")
    with pytest.raises(LeaseLostError):
        guarded(memory, first)


def test_find_tells_who_holds_it(memory):
    assert memory.internals.leases.find("job") is None
    lease = memory.internals.leases.acquire("job", "w1")
    assert memory.internals.leases.find("job") == lease
    memory.internals.leases.release(lease)
    assert memory.internals.leases.find("job") is None


def test_a_clock_that_goes_back_grants_no_lease_twice(memory, clock):
    lease = memory.internals.leases.acquire("job", "w1", lease_seconds=30)
    clock.set(clock.now_ms() - 3_600_000)
    assert memory.internals.leases.acquire("job", "w2") is None
    guarded(memory, lease)


def test_a_clock_that_jumps_a_day_ahead_takes_the_lease_from_the_first_and_not_from_the_second(
    memory, clock
):
    late = memory.internals.leases.acquire("job", "w1", lease_seconds=30)
    clock.advance(86_400)
    new = memory.internals.leases.acquire("job", "w2", lease_seconds=30)
    clock.set(clock.now_ms() - 86_400_000)
    guarded(memory, new)
    with pytest.raises(LeaseLostError):
        guarded(memory, late)


def test_a_lease_is_held_across_processes_and_projects(memory, open_again):
    memory.internals.leases.acquire("job", "w1")
    assert open_again(project="other").internals.leases.acquire("job", "w2") is None


def test_the_error_of_a_lost_lease_says_what_to_do(memory, clock):
    late = memory.internals.leases.acquire("job", "w1", lease_seconds=1)
    clock.advance(2)
    with pytest.raises(LeaseLostError) as caught:
        memory.internals.leases.renew(late)
    assert (caught.value.code, caught.value.is_retryable) == ("lease_lost", False)
    assert "Acquire it again" in str(caught.value)
