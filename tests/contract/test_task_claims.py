"""Claims: one holder at a time, named to everybody else; given back, handed over, and let go when a
session is gone.
"""

from __future__ import annotations

import pytest

from smara.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    TaskBlockedError,
    TaskClaimedError,
)
from tests.contract.both import EACH_DATABASE, kinds, refused
from tests.contract.task_place import DAY, HOUR, MINUTE, titles

pytestmark = EACH_DATABASE


# Claiming.


def test_claim_puts_the_task_in_work_and_names_its_holder(tasks, clock):
    added = tasks.add("x")
    clock.advance(5)
    claimed = tasks.claim(added.id, actor="ann", session_id="s1")
    assert claimed == tasks.get(added.id)
    assert (claimed.status, claimed.session_id, claimed.holder) == ("in_progress", "s1", "s1")
    assert (claimed.claimed_at, claimed.updated_at) == (clock.now_ms(), clock.now_ms())


def test_claim_without_a_session_is_held_by_the_actor(tasks):
    claimed = tasks.claim(tasks.add("x").id, actor="ann")
    assert (claimed.status, claimed.session_id, claimed.holder) == ("in_progress", None, "ann")


def test_a_person_who_claims_what_was_assigned_to_another_holds_it(tasks):
    assert tasks.claim(tasks.add("x", assignee="bob").id, actor="ann").holder == "ann"


def test_claim_by_second_session_names_the_holder(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="abc-123")
    seen_at = clock.now_ms()
    clock.advance(5 * MINUTE)
    error = refused(lambda: tasks.claim(added.id, session_id="s2"), TaskClaimedError)
    assert (error.holder, error.seen_at, error.code) == ("abc-123", seen_at, "task_claimed")
    assert error.task_id in (added.id, added.short_id)
    assert error.brief == "Already claimed by session abc-123"
    assert "abc-123" in str(error)
    assert error.hint.strip()
    assert tasks.get(added.id).holder == "abc-123"


def test_claim_of_what_a_person_holds_names_the_person(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, actor="ann")
    for other in (
        {"actor": "bob"},
        {"actor": "bob", "session_id": "s1"},
        {"actor": "ann", "session_id": "s1"},
    ):
        error = refused(lambda: tasks.claim(added.id, **other), TaskClaimedError)  # noqa: B023
        assert error.holder == "ann"


def test_a_session_is_held_apart_from_another_of_the_same_actor(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, actor="ann", session_id="s1")
    for other in ({"session_id": "s2"}, {}):
        refused(lambda: tasks.claim(added.id, actor="ann", **other), TaskClaimedError)  # noqa: B023


def test_claim_repeated_by_the_holder_changes_nothing_and_writes_no_event(tasks):
    added = tasks.add("x")
    first = tasks.claim(added.id, session_id="s1")
    assert tasks.claim(added.id, session_id="s1").holder == first.holder
    assert kinds(tasks.history(added.id)) == ["created", "claimed"]
    person = tasks.add("y")
    tasks.claim(person.id, actor="ann")
    assert tasks.claim(person.id, actor="ann").holder == "ann"
    assert kinds(tasks.history(person.id)) == ["created", "claimed"]


def test_a_refused_claim_writes_no_event(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    refused(lambda: tasks.claim(added.id, session_id="s2"), TaskClaimedError)
    assert kinds(tasks.history(added.id)) == ["created", "claimed"]


def test_claim_of_a_blocked_task_is_refused_and_names_the_blockers(tasks):
    blockers = [tasks.add(f"blocker {number}") for number in range(2)]
    done = tasks.add("done")
    tasks.close(done.id, "done")
    added = tasks.add("x", depends_on=[done.id, *(each.id for each in blockers)])
    child = tasks.add("child", parent=added.id)
    error = refused(lambda: tasks.claim(added.id, session_id="s1"), TaskBlockedError)
    assert set(error.blocking) == {each.short_id for each in (*blockers, child)}
    assert (error.brief, error.code) == ("Task is blocked by open dependencies", "task_blocked")
    assert blockers[0].short_id in str(error)
    assert error.hint.strip()
    assert tasks.get(added.id).status == "open"


def test_claim_of_a_closed_task_is_a_conflict(tasks):
    added = tasks.add("x")
    tasks.close(added.id, "done")
    error = refused(lambda: tasks.claim(added.id, session_id="s1"), ConflictError)
    assert error.brief
    assert error.hint.strip()
    assert tasks.get(added.id).status == "closed"


def test_a_holder_whose_task_became_blocked_still_holds_it(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    tasks.depend(added.id, tasks.add("blocker").id)
    assert tasks.claim(added.id, session_id="s1").holder == "s1"
    refused(lambda: tasks.claim(added.id, session_id="s2"), TaskClaimedError)


def test_a_session_may_hold_several_tasks(tasks):
    for title in ("x", "y"):
        tasks.claim(tasks.add(title).id, session_id="s1")
    assert tasks.totals().in_progress == 2


def test_claim_next_takes_what_ready_shows_first_until_nothing_is_left(tasks, task):
    for title, priority in (("b", 2), ("a", 0), ("c", 3)):
        task(title, priority=priority)
    task("blocked", priority=0, depends_on=[tasks.list(priority=3)[0].id])
    taken = [tasks.claim_next(session_id=f"s{number}") for number in range(3)]
    assert titles(taken) == ["a", "b", "c"]
    assert [each.holder for each in taken] == ["s0", "s1", "s2"]
    assert all(tasks.get(each.id) == each for each in taken)
    assert tasks.claim_next(session_id="s4") is None


def test_claim_next_takes_only_what_is_asked_for(tasks, task):
    task("task", priority=0)
    task("bug", type="bug", priority=4, labels=["x"])
    task("labelled", priority=4, labels=["x"])
    assert tasks.claim_next(session_id="s1", type="bug").title == "bug"
    assert tasks.claim_next(session_id="s1", label="x").title == "labelled"
    assert tasks.claim_next(session_id="s1", type="bug") is None
    assert tasks.claim_next(session_id="s1", label="nothing") is None


def test_claim_next_in_an_empty_project_takes_nothing(tasks):
    assert tasks.claim_next(session_id="s1") is None


# Giving back and handing over.


def test_release_gives_the_task_back(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    released = tasks.release(added.id, session_id="s1")
    assert released == tasks.get(added.id)
    assert (released.status, released.session_id, released.claimed_at, released.holder) == (
        "open",
        None,
        None,
        None,
    )
    assert tasks.claim(added.id, session_id="s2").holder == "s2"
    assert kinds(tasks.history(added.id)) == ["created", "claimed", "released", "claimed"]


def test_release_by_a_person_gives_the_task_back(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, actor="ann")
    assert tasks.release(added.id, actor="ann").holder is None
    assert tasks.claim(added.id, actor="bob").holder == "bob"


def test_release_of_what_nobody_holds_changes_nothing(tasks):
    added = tasks.add("x")
    closed = tasks.close(tasks.add("y").id, "done")
    for each in (added, closed):
        before = tasks.get(each.id)
        assert tasks.release(each.id, session_id="s1") == before
        assert "released" not in kinds(tasks.history(each.id))


def test_release_by_another_is_refused_unless_forced(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    error = refused(lambda: tasks.release(added.id, session_id="s2"), TaskClaimedError)
    assert error.holder == "s1"
    assert tasks.get(added.id).holder == "s1"
    assert tasks.release(added.id, session_id="s2", force=True).status == "open"
    assert kinds(tasks.history(added.id)) == ["created", "claimed", "released"]


def test_hand_over_to_a_session_makes_it_the_holder(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    given = tasks.hand_over(added.id, to_session="s2", session_id="s1")
    assert given == tasks.get(added.id)
    assert (given.status, given.session_id, given.holder) == ("in_progress", "s2", "s2")
    assert kinds(tasks.history(added.id)) == ["created", "claimed", "handed_over"]
    refused(lambda: tasks.claim(added.id, session_id="s1"), TaskClaimedError)
    assert tasks.claim(added.id, session_id="s2").holder == "s2"


def test_hand_over_to_a_person_makes_them_the_holder(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    assert tasks.hand_over(added.id, to_assignee="ann", session_id="s1").holder == "ann"
    clock.advance(400 * DAY)
    assert tasks.expire() == []
    assert tasks.claim(added.id, actor="ann").holder == "ann"


def test_hand_over_to_a_session_of_a_named_person_keeps_both(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    given = tasks.hand_over(added.id, to_session="s2", to_assignee="ann", session_id="s1")
    assert (given.session_id, given.assignee, given.holder) == ("s2", "ann", "s2")


def test_hand_over_by_another_is_refused_unless_forced(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    assert (
        refused(
            lambda: tasks.hand_over(added.id, to_session="s2", session_id="s2"), TaskClaimedError
        ).holder
        == "s1"
    )
    assert tasks.get(added.id).holder == "s1"
    assert tasks.hand_over(added.id, to_session="s2", session_id="s2", force=True).holder == "s2"


def test_hand_over_to_nobody_is_refused(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    refused(lambda: tasks.hand_over(added.id, session_id="s1"), InvalidInputError)
    assert tasks.get(added.id).holder == "s1"


def test_hand_over_gives_the_new_session_its_full_time(tasks, clock):
    """The receiver may not have been heard of for days; the claim must not be gone before it
    looks.
    """
    tasks.seen("s2")
    clock.advance(DAY)
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    tasks.hand_over(added.id, to_session="s2", session_id="s1")
    clock.advance(200 * MINUTE)
    assert tasks.expire() == []
    clock.advance(60 * MINUTE)
    assert titles(tasks.expire()) == ["x"]


# Expiry.


def test_a_claim_of_a_silent_session_is_let_go(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    clock.advance(239 * MINUTE)
    assert tasks.expire() == []
    assert tasks.get(added.id).holder == "s1"
    clock.advance(2 * MINUTE)
    let_go = tasks.expire()
    assert titles(let_go) == ["x"]
    assert let_go[0] == tasks.get(added.id)
    assert (let_go[0].status, let_go[0].session_id, let_go[0].claimed_at) == ("open", None, None)
    assert kinds(tasks.history(added.id)) == ["created", "claimed", "expired"]
    assert tasks.expire() == []


def test_an_expired_claim_says_whose_it_was(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    clock.advance(5 * HOUR)
    tasks.expire()
    event = tasks.history(added.id)[0]
    assert (event.kind, event.before["session_id"], event.before["status"]) == (
        "expired",
        "s1",
        "in_progress",
    )
    assert event.after["status"] == "open"


@pytest.mark.parametrize("look", ["ready", "list", "claim", "claim_next"])
def test_whoever_looks_for_work_finds_what_a_silent_session_held(tasks, clock, look):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    clock.advance(5 * HOUR)
    if look == "ready":
        found = tasks.ready()
        assert (titles(found), found.ready_count) == (["x"], 1)
    elif look == "list":
        assert titles(tasks.list(status="open")) == ["x"]
    elif look == "claim":
        assert tasks.claim(added.id, session_id="s2").holder == "s2"
    else:
        assert tasks.claim_next(session_id="s2").holder == "s2"
    assert kinds(tasks.history(added.id))[:3] == ["created", "claimed", "expired"]


def test_a_session_that_shows_signs_of_life_keeps_its_claim(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    for _ in range(24):
        clock.advance(HOUR)
        tasks.seen("s1")
        assert tasks.expire() == []
    clock.advance(5 * HOUR)
    assert titles(tasks.expire()) == ["x"]


def test_a_repeated_claim_renews_it(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    for _ in range(3):
        clock.advance(200 * MINUTE)
        assert tasks.claim(added.id, session_id="s1").holder == "s1"
    assert kinds(tasks.history(added.id)) == ["created", "claimed"]


def test_a_sign_of_life_of_one_session_does_not_keep_the_claim_of_another(tasks, clock):
    first, second = tasks.add("x"), tasks.add("y")
    tasks.claim(first.id, session_id="s1")
    tasks.claim(second.id, session_id="s2")
    clock.advance(200 * MINUTE)
    tasks.seen("s2")
    clock.advance(60 * MINUTE)
    assert titles(tasks.expire()) == ["x"]
    assert tasks.get(second.id).holder == "s2"


def test_a_sign_of_life_keeps_every_claim_of_the_session(tasks, clock):
    for title in ("x", "y"):
        tasks.claim(tasks.add(title).id, session_id="s1")
    clock.advance(200 * MINUTE)
    tasks.seen("s1")
    clock.advance(200 * MINUTE)
    assert tasks.expire() == []


def test_a_claim_of_a_person_never_expires(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, actor="ann")
    clock.advance(1_000 * DAY)
    assert tasks.expire() == []
    assert list(tasks.ready()) == []
    assert tasks.get(added.id).holder == "ann"


def test_the_time_after_which_claims_expire_can_be_set(open_again, clock):
    tasks = open_again(claim_expires_after_minutes=10).tasks
    tasks.claim(tasks.add("x").id, session_id="s1")
    clock.advance(9 * MINUTE)
    assert tasks.expire() == []
    clock.advance(2 * MINUTE)
    assert titles(tasks.expire()) == ["x"]


def test_claims_never_expire_when_the_time_is_zero(open_again, clock):
    tasks = open_again(claim_expires_after_minutes=0).tasks
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    clock.advance(1_000 * DAY)
    assert tasks.expire() == []
    assert list(tasks.ready()) == []
    assert tasks.get(added.id).holder == "s1"


def test_the_claims_of_a_session_that_ends_are_let_go_at_once(tasks, task):
    for title in ("x", "y", "z"):
        task(title)
    mine = [tasks.claim_next(session_id="s1") for _ in range(2)]
    other = tasks.claim_next(session_id="s2")
    let_go = tasks.end_session("s1")
    assert {each.id for each in let_go} == {each.id for each in mine}
    assert {each.status for each in let_go} == {"open"}
    assert tasks.get(other.id).holder == "s2"
    assert kinds(tasks.history(mine[0].id)) == ["created", "claimed", "expired"]
    assert tasks.end_session("s1") == []
    assert tasks.end_session("nobody") == []


def test_a_session_that_ended_and_claims_again_holds_what_it_claims(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    tasks.end_session("s1")
    assert tasks.claim(added.id, session_id="s1").holder == "s1"
    assert tasks.expire() == []
    assert tasks.get(added.id).holder == "s1"


def test_an_ended_session_leaves_what_it_closed_closed(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    tasks.close(added.id, "done", session_id="s1")
    assert tasks.end_session("s1") == []
    assert tasks.get(added.id).status == "closed"


def test_a_claim_let_go_is_lost_to_the_session_that_comes_back_too_late(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    clock.advance(5 * HOUR)
    tasks.claim(added.id, session_id="s2")
    for late in (
        lambda: tasks.claim(added.id, session_id="s1"),
        lambda: tasks.close(added.id, "done", session_id="s1"),
        lambda: tasks.release(added.id, session_id="s1"),
        lambda: tasks.hand_over(added.id, to_session="s3", session_id="s1"),
    ):
        assert refused(late, TaskClaimedError).holder == "s2"
    assert tasks.get(added.id).holder == "s2"


def test_a_sign_of_life_of_an_unknown_session_does_no_harm(tasks):
    assert tasks.seen("never heard of") is None
    assert tasks.expire() == []


def test_a_clock_that_steps_back_takes_no_claim_away(tasks, clock):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    clock.set(clock.now_ms() - 10 * DAY * 1_000)
    assert tasks.expire() == []
    assert tasks.claim(added.id, session_id="s1").holder == "s1"


# Closing and reopening.


def test_close_needs_a_summary_and_keeps_it(tasks, clock):
    added = tasks.add("x")
    for blank in ("", "  ", "\n"):
        assert "summary" in str(refused(lambda: tasks.close(added.id, blank), InvalidInputError))  # noqa: B023
    assert tasks.get(added.id).status == "open"
    clock.advance(5)
    closed = tasks.close(added.id, "It was the hinge.")
    assert closed == tasks.get(added.id)
    assert (closed.status, closed.summary, closed.close_reason) == (
        "closed",
        "It was the hinge.",
        "completed",
    )
    assert (closed.closed_at, closed.updated_at, closed.holder) == (
        clock.now_ms(),
        clock.now_ms(),
        None,
    )


def test_every_reason_to_close_is_kept_and_an_unknown_one_is_refused(tasks):
    for reason in ("completed", "wontfix", "duplicate"):
        assert tasks.close(tasks.add("x").id, "done", reason=reason).close_reason == reason
    added = tasks.add("x")
    with pytest.raises(InvalidInputError, match="completed, wontfix, duplicate"):
        tasks.close(added.id, "done", reason="bored")
    assert tasks.get(added.id).status == "open"


def test_closing_again_with_the_same_words_changes_nothing(tasks, clock):
    added = tasks.add("x")
    before = tasks.close(added.id, "done")
    clock.advance(5)
    assert tasks.close(added.id, "done") == before
    assert tasks.close(added.id, "done", session_id="another") == before
    assert kinds(tasks.history(added.id)) == ["created", "closed"]


def test_closing_again_with_other_words_is_a_conflict(tasks):
    added = tasks.add("x")
    before = tasks.close(added.id, "done")
    for summary, reason in (("other", "completed"), ("done", "wontfix")):
        error = refused(lambda: tasks.close(added.id, summary, reason=reason), ConflictError)  # noqa: B023
        assert error.hint.strip()
    assert tasks.get(added.id) == before


def test_what_nobody_holds_can_be_closed_by_anybody(tasks):
    assert tasks.close(tasks.add("x").id, "done", session_id="s7").status == "closed"


def test_what_another_holds_can_be_closed_only_by_force(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    assert (
        refused(lambda: tasks.close(added.id, "done", session_id="s2"), TaskClaimedError).holder
        == "s1"
    )
    assert (
        refused(lambda: tasks.close(added.id, "done", actor="bob"), TaskClaimedError).holder == "s1"
    )
    assert tasks.get(added.id).status == "in_progress"
    assert tasks.close(added.id, "done", session_id="s2", force=True).status == "closed"


def test_the_holder_closes_what_it_holds(tasks):
    for who in ({"session_id": "s1"}, {"actor": "ann"}):
        added = tasks.add("x")
        tasks.claim(added.id, **who)
        assert tasks.close(added.id, "done", **who).status == "closed"


def test_a_blocked_task_may_be_closed(tasks):
    added = tasks.add("x", depends_on=[tasks.add("blocker").id])
    assert tasks.close(added.id, "no longer needed", reason="wontfix").status == "closed"


def test_reopen_makes_a_closed_task_claimable_again_and_keeps_its_summary(tasks):
    added = tasks.add("x")
    tasks.claim(added.id, session_id="s1")
    tasks.close(added.id, "It was the hinge.", session_id="s1")
    reopened = tasks.reopen(added.id, session_id="s2")
    assert reopened == tasks.get(added.id)
    assert (reopened.status, reopened.holder, reopened.session_id, reopened.claimed_at) == (
        "open",
        None,
        None,
        None,
    )
    assert (reopened.summary, reopened.closed_at) == ("It was the hinge.", None)
    assert tasks.claim(added.id, session_id="s2").holder == "s2"
    assert kinds(tasks.history(added.id)) == ["created", "claimed", "closed", "reopened", "claimed"]


def test_reopen_of_what_is_not_closed_changes_nothing(tasks):
    added, held = tasks.add("x"), tasks.add("y")
    held = tasks.claim(held.id, session_id="s1")
    assert tasks.reopen(added.id) == added
    assert tasks.reopen(held.id, session_id="s1") == held
    assert kinds(tasks.history(added.id)) == ["created"]
    assert kinds(tasks.history(held.id)) == ["created", "claimed"]


def test_a_reopened_task_can_be_closed_with_other_words(tasks):
    added = tasks.add("x")
    tasks.close(added.id, "done")
    tasks.reopen(added.id)
    assert tasks.close(added.id, "really done", reason="duplicate").summary == "really done"


def test_a_session_id_that_is_no_id_is_refused(tasks):
    added = tasks.add("x")
    for wrong in ("   ", "line\nbreak", "x" * 513, "nul\x00"):
        with pytest.raises(InvalidInputError):
            tasks.claim(added.id, session_id=wrong)
    assert tasks.get(added.id).status == "open"


def test_closing_an_unknown_task_without_a_summary_is_refused_either_way(tasks):
    with pytest.raises((NotFoundError, InvalidInputError)):
        tasks.close("t-zzzzzzz", "")
