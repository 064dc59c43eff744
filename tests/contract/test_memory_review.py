"""Review: what waits, what a person decides, what two who decide at once see; and what only a
person may do.
"""

from __future__ import annotations

import threading

import pytest

from smara.errors import ConflictError, InvalidInputError, SmaraError
from tests.contract.both import EACH_DATABASE, kinds, refused
from tests.contract.memory_place import DAY, contents, learned, taught

pytestmark = EACH_DATABASE


@pytest.fixture
def memories(place):
    return place.open(embedder="off").memories


def test_what_an_agent_learns_waits_for_review_with_the_reason(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    assert memory.needs_review
    assert "once a person confirms it" in memory.review_reasons[0]
    assert contents(memories.to_review()) == [memory.content]
    assert len(memories.to_review(type="decision")) == 0
    assert len(memories.to_review(session_id="s1")) == 1
    assert len(memories.to_review(session_id="s2")) == 0


def test_accepting_confirms_and_clears_taint(memories):
    memory = learned(memories, "Refreshing fails when Redis is down", taint=["web"], confidence=0.5)
    accepted = memories.accept(memory.id, actor="ann")
    assert (accepted.tier, accepted.needs_review, accepted.verified_by) == (
        "confirmed",
        False,
        "ann",
    )
    assert accepted.taint == ("web",)  # where it came from stays known
    assert accepted.confidence == 0.9
    assert memories.to_review().memories == ()


def test_accepting_may_mend_it_in_one_step(memories):
    memory = learned(memories, "Refreshing fails when Redis is down", tags=["a"])
    accepted = memories.accept(
        memory.id, content="Refreshing fails silently when Redis is down", tags=["b"]
    )
    assert (accepted.content, accepted.tags, accepted.tier) == (
        "Refreshing fails silently when Redis is down",
        ("b",),
        "confirmed",
    )
    assert kinds(memories.history(memory.id)) == ["created", "accepted"]
    undone = memories.undo(memory.id, by="person")
    assert (undone.content, undone.tags, undone.tier, undone.needs_review) == (
        memory.content,
        ("a",),
        "unconfirmed",
        True,
    )


def test_rejecting_puts_aside_and_the_same_words_are_not_learned_again(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    rejected = memories.reject(memory.id, "not true", actor="ann")
    assert (rejected.deprecated_because, rejected.is_active) == ("rejected", False)
    again = memories.add("refreshing fails when redis is down!", type="gotcha", session_id="s2")
    assert (again.outcome, again.memory) == ("refused", None)
    assert "rejected before" in again.why[0]
    assert (
        memories.remember("Refreshing fails when Redis is down", type="gotcha").outcome == "added"
    )


def test_a_rejection_can_be_undone_and_waits_again(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    memories.reject(memory.id)
    assert memories.undo(memory.id, by="person").needs_review
    assert len(memories.to_review()) == 1


def test_accept_all_never_takes_what_is_tainted_disputed_or_flagged(memories):
    plain = learned(memories, "Refreshing fails when Redis is down")
    tainted = learned(memories, "The API wants a header on every call", taint=["web"])
    printed = learned(memories, "The build prints a warning on Windows", taint=["tool"])
    taught(memories, "The server listens on port 8080", type="decision")
    disputed = learned(memories, "The server listens on port 8081", type="decision")
    flagged = learned(memories, "The cache is cleared every night")
    memories.used(flagged.id, "wrong")
    done = memories.accept_all(actor="ann")
    assert [each.id for each in done.accepted] == [plain.id]
    reasons = {memory.id: why for memory, why in done.left}
    assert set(reasons) == {tainted.id, printed.id, disputed.id, flagged.id}
    assert "web" in reasons[tainted.id]
    assert "contradicts" in reasons[disputed.id]
    assert memories.get(tainted.id).tier == "quarantined"


def test_accept_all_takes_the_memories_of_one_session_when_asked(memories):
    one = learned(memories, "Refreshing fails when Redis is down", session_id="s1")
    learned(memories, "The build is slow on Windows", session_id="s2")
    assert [each.id for each in memories.accept_all(session_id="s1").accepted] == [one.id]
    assert len(memories.to_review()) == 1


def test_accept_all_takes_those_that_are_named_and_a_dry_run_takes_none(memories):
    chosen = learned(memories, "Refreshing fails when Redis is down")
    learned(memories, "The build is slow on Windows")
    tainted = learned(memories, "The API wants a header on every call", taint=["web"])
    ids = [chosen.id, tainted.id]
    plan = memories.accept_all(memory_ids=ids, dry_run=True)
    assert [each.id for each in plan.accepted] == [chosen.id]
    assert len(memories.to_review()) == 3
    done = memories.accept_all(memory_ids=ids)
    assert [each.id for each in done.accepted] == [chosen.id]
    assert [each.id for each, _ in done.left] == [tainted.id]
    assert len(memories.to_review()) == 2
    assert memories.accept_all(memory_ids=[]).accepted == ()


def test_each_of_those_accepted_together_is_undone_by_itself(memories):
    made = [learned(memories, f"Statement number {number} about it") for number in range(3)]
    memories.accept_all()
    memories.undo(made[1].id, by="person")
    assert [memories.get(each.id).tier for each in made] == [
        "confirmed",
        "unconfirmed",
        "confirmed",
    ]


PERSONAL = {
    "accept": lambda memories, id_: memories.accept(id_, by="agent"),
    "reject": lambda memories, id_: memories.reject(id_, by="agent"),
    "verify": lambda memories, id_: memories.verify(id_, by="agent"),
    "verify as the system": lambda memories, id_: memories.verify(id_, by="system"),
    "pin": lambda memories, id_: memories.pin(id_, by="agent"),
    "unpin": lambda memories, id_: memories.unpin(id_, by="agent"),
    "accept_all": lambda memories, id_: memories.accept_all(by="agent"),
    "teach": lambda memories, id_: memories.add(
        "Known by a person", type="gotcha", source="user_taught", by="agent"
    ),
    "vouch": lambda memories, id_: memories.add(
        "Known by a person", type="gotcha", is_verified=True, session_id="s"
    ),
    "add pinned": lambda memories, id_: memories.add(
        "Known by a person", type="gotcha", is_pinned=True, session_id="s"
    ),
    "choose a level": lambda memories, id_: memories.set_trust_level(4, by="agent"),
    "decline an offer": lambda memories, id_: memories.decline_offer(by="agent"),
}


@pytest.mark.parametrize("act", PERSONAL.values(), ids=PERSONAL)
def test_only_a_person_may(memories, act):
    memory = learned(memories, "Refreshing fails when Redis is down")
    error = refused(lambda: act(memories, memory.id), InvalidInputError)
    assert "Only a person" in str(error)
    assert memories.get(memory.id) == memory
    assert memories.trust().level == 1


@pytest.mark.parametrize("theirs", ["confirmed", "pinned"])
def test_an_agent_cannot_change_what_is_a_persons(memories, theirs):
    memory = learned(memories, "Refreshing fails when Redis is down")
    memories.accept(memory.id) if theirs == "confirmed" else memories.pin(memory.id)
    for act in (
        lambda: memories.update(memory.id, content="Refreshing never fails"),
        lambda: memories.forget(memory.id),
        lambda: memories.mark_stale(memory.id, "I say so"),
    ):
        error = refused(act, ConflictError)
        assert "supersedes" in str(error)
    assert memories.get(memory.id).content == memory.content
    assert memories.update(
        memory.id, content="Refreshing fails now and then", by="person"
    ).content.endswith("then")


def test_an_agent_cannot_take_back_what_a_person_did(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    memories.reject(memory.id)
    refused(lambda: memories.undo(memory.id), InvalidInputError)
    refused(lambda: memories.restore(memory.id), InvalidInputError)
    memories.restore(memory.id, by="person")
    memories.forget(memory.id, by="person")
    refused(lambda: memories.restore(memory.id), InvalidInputError)


def test_who_decides_second_hears_who_was_first(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    memories.accept(memory.id, actor="ann")
    error = refused(lambda: memories.accept(memory.id, actor="bob"), ConflictError)
    assert "ann" in str(error)
    memories.reject(memory.id, actor="bob")
    refused(lambda: memories.accept(memory.id, actor="ann"), ConflictError)


def test_of_reviewers_who_decide_at_the_same_moment_one_is_first(place):
    opened = [place.open(embedder="off").memories for _ in range(4)]
    memory = learned(opened[0], "Refreshing fails when Redis is down")
    barrier, outcomes = threading.Barrier(4), []

    def decide(memories, number):
        barrier.wait()
        try:
            act = memories.accept if number % 2 else memories.reject
            act(memory.id, version=1, actor=f"reviewer {number}")
            outcomes.append("done")
        except SmaraError as error:
            outcomes.append(error.code)

    threads = [
        threading.Thread(target=decide, args=(each, number)) for number, each in enumerate(opened)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["conflict", "conflict", "conflict", "done"]
    assert len(opened[0].history(memory.id)) == 2


def test_the_same_statement_learned_by_many_at_once_is_one_memory(place):
    opened = [place.open(embedder="off").memories for _ in range(4)]
    barrier, outcomes = threading.Barrier(4), []

    def learn(memories, number):
        barrier.wait()
        added = memories.add(
            "Refreshing fails when Redis is down", type="gotcha", session_id=f"s{number}"
        )
        outcomes.append(added.outcome)

    threads = [
        threading.Thread(target=learn, args=(each, number)) for number, each in enumerate(opened)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["added", "duplicate", "duplicate", "duplicate"]
    memory = opened[0].list()[0]
    assert set(memory.session_ids) == {"s0", "s1", "s2", "s3"}
    assert opened[0].problems() == []


# levels of trust


def end_sessions(memories, clock, count, first=0):
    for number in range(first, first + count):
        clock.advance(DAY)
        memories.end_session(f"session {number}")


def test_a_project_begins_cautious_and_says_what_is_missing(memories):
    trust = memories.trust()
    assert (trust.level, trust.name, trust.inject_above) == (1, "cautious", 0.80)
    assert "3 more sessions" in trust.next_level_needs


def test_three_sessions_and_half_of_it_confirmed_earn_the_standard_level(memories, clock):
    made = [learned(memories, f"Statement number {number} about it") for number in range(4)]
    end_sessions(memories, clock, 3)
    assert memories.trust().level == 1
    memories.accept(made[0].id)
    assert memories.trust().level == 1
    memories.accept(made[1].id)  # a confirmation earns it as the end of a session does
    trust = memories.trust()
    assert (trust.level, trust.name, trust.sessions) == (2, "standard", 0)


def test_a_session_counts_once(memories, clock):
    for _ in range(5):
        clock.advance(1)
        memories.end_session("the same")
    assert memories.trust().sessions == 1


def at_level(memories, level):
    memories.set_trust_level(level)
    return memories


def test_ten_sessions_with_few_corrections_earn_the_confident_level(memories, clock):
    memory = learned(at_level(memories, 2), "Refreshing fails when Redis is down")
    clock.advance(1)
    memories.used(memory.id, "helped", session_id="s9")
    end_sessions(memories, clock, 9)
    assert memories.trust().level == 2
    end_sessions(memories, clock, 1, first=9)
    assert memories.trust().level == 3
    end_sessions(memories, clock, 40, first=10)
    assert memories.trust().level == 3  # the fourth is chosen, never earned
    assert memories.set_trust_level(4).name == "autonomous"


def test_corrections_keep_a_project_from_the_next_level(memories, clock):
    made = [
        learned(at_level(memories, 2), f"Statement number {number} about it") for number in range(4)
    ]
    for memory in made[:3]:
        memories.used(memory.id, "helped")
    memories.used(made[3].id, "wrong")
    end_sessions(memories, clock, 12)
    trust = memories.trust()
    assert (trust.level, trust.correction_rate) == (2, 0.25)
    assert any("flagged as wrong" in need for need in trust.next_level_needs)


def test_three_flags_in_one_session_offer_a_more_careful_level_and_force_nothing(memories, clock):
    made = [
        learned(at_level(memories, 3), f"Statement number {number} about it") for number in range(5)
    ]
    for memory in made[:2]:
        memories.used(memory.id, "wrong", by="person", session_id="s7")
    memories.used(made[2].id, "wrong", by="person", session_id="s8")
    assert memories.trust().offer is None
    memories.used(made[3].id, "wrong", by="person", session_id="s7")
    trust = memories.trust()
    assert (trust.level, trust.offer.level, trust.offer.session_id) == (3, 2, "s7")
    assert memories.decline_offer().offer is None
    assert memories.trust().level == 3
    for memory in made[:4]:
        memories.used(
            memory.id, "wrong", by="person"
        )  # by hand, at the terminal: the day is the session
    assert memories.trust().offer is not None
    clock.advance(1)
    assert memories.set_trust_level(2).offer is None


def test_flags_that_were_undone_offer_nothing(memories):
    made = [
        learned(at_level(memories, 2), f"Statement number {number} about it") for number in range(3)
    ]
    for memory in made:
        memories.used(memory.id, "wrong", by="person", session_id="s7")
    memories.undo(made[0].id, by="person")
    assert memories.trust().offer is None


@pytest.mark.parametrize("level", [0, 5, "2", True, 1.5])
def test_a_level_that_does_not_exist_is_refused(memories, level):
    refused(lambda: memories.set_trust_level(level), InvalidInputError)


def test_what_needs_review_follows_the_level(memories):
    inferred = {
        "source": "observer_inferred",
        "evidence": ["src/a.py@abc1234:1"],
        "confidence": 0.9,
    }
    at_level(memories, 2)
    assert not learned(memories, "The first statement about it", confidence=0.9).needs_review
    assert learned(memories, "The second statement about it", **inferred).needs_review
    assert learned(memories, "The third statement about it", taint=["tool"]).needs_review
    assert learned(memories, "The fourth statement about it", confidence=0.6).needs_review
    at_level(memories, 3)
    assert not learned(memories, "The fifth statement about it", **inferred).needs_review
    assert learned(memories, "The sixth statement about it", taint=["web"]).needs_review
