"""The life of a memory: novelty, use, contradiction, merging, forgetting, pruning, staleness, and
the way back.
"""

from __future__ import annotations

import pytest

from smara.actions.error_quote import UNQUOTED
from smara.errors import ConflictError, InvalidInputError, NotFoundError
from smara.knowledge.models import Evidence, NewMemory, Relation
from smara.knowledge.review import GRACE_DAYS
from tests.contract.both import EACH_DATABASE, kinds, refused
from tests.contract.memory_place import DAY, Files, contents, learned, taught

pytestmark = EACH_DATABASE


@pytest.fixture
def memories(place):
    return place.open(embedder="off").memories


# novelty


def test_what_is_known_is_not_stored_twice_and_notes_where_it_was_seen(memories):
    first = learned(memories, "Use pnpm, not npm, for installing packages", files=["package.json"])
    again = memories.add(
        "use pnpm and not npm for installing packages!",
        type="gotcha",
        session_id="s2",
        files=["other.json"],
        evidence=[Evidence(path="package.json", first_line=3)],
    )
    assert (again.outcome, again.memory.id, again.similar_to) == (
        "duplicate",
        first.id,
        first.short_id,
    )
    assert (again.memory.session_ids, again.memory.files) == (("s1", "s2"), ("package.json",))
    assert str(again.memory.evidence[0]) == "package.json:3"
    assert kinds(memories.history(first.id)) == ["created", "seen_again"]
    assert memories.totals().total == 1


def test_what_is_less_trusted_gives_nothing_but_the_session_it_was_seen_in(memories):
    first = learned(memories, "Use pnpm, not npm, for installing packages")
    again = memories.add(
        "Use pnpm, not npm, for installing packages",
        type="gotcha",
        session_id="s2",
        taint=["web"],
        evidence=[Evidence(quote="a page said so")],
        tags=["evil"],
    )
    assert (again.outcome, again.memory.id) == ("duplicate", first.id)
    assert (again.memory.taint, again.memory.evidence, again.memory.tags) == ((), (), ())
    assert again.memory.session_ids == ("s1", "s2")


def test_what_is_more_trusted_takes_the_place_of_the_same_words(memories):
    first = learned(memories, "Use pnpm, not npm, for installing packages", taint=["web"])
    added = memories.remember("Use pnpm, not npm, for installing packages", type="gotcha")
    assert (added.outcome, added.memory.tier, added.similar_to) == (
        "added",
        "confirmed",
        first.short_id,
    )
    old = memories.get(first.id)
    assert (old.deprecated_because, old.superseded_by) == ("merged", added.memory.id)


def test_the_same_sentence_twice_from_a_person_is_one(memories):
    taught(memories, "Use pnpm, not npm, for installing packages")
    assert (
        memories.remember("use pnpm, not npm, for installing packages.", type="gotcha").outcome
        == "duplicate"
    )


def test_near_repetitions_of_another_type_are_kept_and_the_same_words_are_not(memories):
    taught(memories, "Auth tests need Redis and a token", type="requirement")
    assert (
        memories.add("Auth tests need Redis and token", type="gotcha", session_id="s").outcome
        == "added"
    )
    assert (
        memories.add("Auth tests need Redis and a token", type="gotcha", session_id="s").outcome
        == "duplicate"
    )


@pytest.mark.parametrize("order", [1, -1])
def test_one_fix_is_one_memory_if_a_failure_of_it_showed_no_error(memories, order):
    """Another error of the same command, or another fix, is another memory."""

    def failed(said, fix="PYTHONPATH=src pytest -q"):
        words = f" (output said: `{said}`)" if said != UNQUOTED else ""
        return memories.add(
            f"Running `pytest -q` failed{words}; what worked: `{fix}`.",
            type="error_pattern",
            session_id="s",
            data={"command": "pytest -q", "fix": fix, "error": said, "fingerprint": said},
        ).outcome

    shop = "ModuleNotFoundError: No module named 'shop'"
    assert [failed(each) for each in (UNQUOTED, shop)[::order]] == ["added", "duplicate"]
    assert failed("OSError: [Errno 98] Address already in use", "PORT=0 pytest -q") == "added"
    assert failed(UNQUOTED, "docker compose run --rm app pytest -q") == "added"


def test_meaning_can_be_plugged_in_and_its_trouble_keeps_nothing_out(place):
    from smara.errors import DeadlineError
    from smara.knowledge.memories import Memories

    memory = place.open(embedder="off")
    first = taught(memory.memories, "Auth tests hang unless REDIS_URL is set")
    no = memory.memories._store.numbers_of_ids
    with memory._rooms.database.read() as session:
        number = no(session, [first.id])[first.id]
    close = Memories(memory.memories._journal, similar=lambda draft: [(number, 0.93)])
    said = "Set REDIS_URL or the tests of auth will hang"
    found = close.add(said, type="gotcha", session_id="s1")
    assert (found.outcome, found.memory.id) == ("duplicate", first.id)
    assert "0.93" in found.why[0]
    assert (
        close.add(
            "Set REDIS_URL or tests of billing will hang in CI 7", type="gotcha", session_id="s1"
        ).outcome
        == "added"
    )

    def broken(draft):
        raise DeadlineError("too slow")

    assert (
        Memories(memory.memories._journal, similar=broken)
        .add(said, type="gotcha", session_id="s")
        .outcome
        == "added"
    )


def test_a_paraphrase_is_known_by_its_meaning(place):
    memory = place.open()
    first = learned(memory.memories, "Auth tests hang unless REDIS_URL is set")
    memory.embeddings.embed_pending()
    memory.search("warm up")
    again = memory.memories.add(
        "Set REDIS_URL or the tests of auth will hang", type="gotcha", session_id="s2"
    )
    assert (again.outcome, again.memory.id) == ("duplicate", first.id)
    other = memory.memories.add(
        "Set REDIS_PORT or the tests of auth will hang", type="gotcha", session_id="s2"
    )
    assert other.outcome == "added"


def test_junk_and_echoes_are_refused_as_a_value_with_the_reason(memories):
    for text in ("I will now run the tests", "ok", "Should we use Redis?"):
        refusal = memories.add(text, type="gotcha", session_id="s1")
        assert (refusal.outcome, refusal.memory) == ("refused", None)
        assert refusal.why
    boot = "Rules:\n- Use pnpm, never npm, for installing packages."
    echo = memories.add(
        "Use pnpm, never npm, to install packages",
        type="preference",
        session_id="s1",
        already_told=[boot],
    )
    assert echo.outcome == "refused"
    assert memories.totals().total == 0


def test_a_session_brings_only_so_many(memories):
    def infer(number, **given):
        return memories.add(
            f"Statement number {number} about it",
            type="module_insight",
            source="observer_inferred",
            evidence=["src/a.py@abc1234:1"],
            **{"session_id": "s1", **given},
        ).outcome

    assert [infer(number, session_type="insights") for number in range(7)] == ["added"] * 5 + [
        "refused"
    ] * 2
    assert infer(9, session_type="build") == "added"
    assert infer(10, session_id="s2", session_type="insights") == "added"
    assert infer(11, session_id="s3", session_type="changelog") == "refused"
    assert infer(12, session_id=None, session_type="changelog") == "refused"


# use


def test_being_shown_is_no_use_and_use_counts_once_per_session(memories, clock):
    memory = learned(memories, "Refreshing fails when Redis is down")
    clock.advance(DAY)
    memories.get(memory.id)
    memories.for_files(["a.py"])
    assert memories.get(memory.id).last_verified_use_at is None
    for _ in range(3):
        memories.used(memory.id, "helped", session_id="s2")
    used = memories.used(memory.id, "helped", session_id="s3")
    assert (used.verified_uses, used.uses_since_wrong, used.last_verified_use_at) == (
        2,
        2,
        clock.now_ms(),
    )


def test_every_fifth_use_raises_the_confidence_and_ten_make_a_review_unnecessary(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    values = [memories.used(memory.id, "helped", session_id=f"u{number}") for number in range(20)]
    assert [values[number].confidence for number in (3, 4, 9, 14, 19)] == [
        0.8,
        0.85,
        0.9,
        0.95,
        0.95,
    ]
    assert [values[number].needs_review for number in (8, 9)] == [True, False]


def test_no_number_of_uses_clears_what_is_tainted(memories):
    memory = learned(memories, "Refreshing fails when Redis is down", taint=["web"])
    for number in range(25):
        memories.used(memory.id, "helped", session_id=f"u{number}")
    after = memories.get(memory.id)
    assert (after.tier, after.needs_review, after.confidence, after.verified_uses) == (
        "quarantined",
        True,
        0.8,
        0,
    )
    assert after.last_verified_use_at is None
    assert memories.used(memory.id, "confirmed", by="person").tier == "confirmed"


def test_what_was_wrong_is_worth_half_and_waits_for_review(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    flagged = memories.used(memory.id, "wrong", note="it works", actor="robot")
    assert (flagged.confidence, flagged.corrections, flagged.needs_review) == (0.4, 1, True)
    assert "robot: it works" in flagged.review_reasons[-1]


def test_an_agents_flag_on_what_a_person_confirmed_asks_the_person(memories):
    memory = taught(memories, "Refreshing fails when Redis is down")
    flagged = memories.used(memory.id, "wrong")
    assert (flagged.confidence, flagged.tier, flagged.needs_review) == (0.95, "confirmed", True)
    theirs = memories.used(memory.id, "wrong", by="person")
    assert (theirs.tier, theirs.confidence) == ("unconfirmed", 0.475)


def test_work_that_failed_is_noted_and_changes_nothing(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    memories.used(memory.id, "failed")
    assert memories.get(memory.id) == memory
    assert kinds(memories.history(memory.id)) == ["created", "used"]
    refused(lambda: memories.used(memory.id, "shown"), InvalidInputError)


def test_confidence_fades_from_the_last_verified_use(memories, clock):
    memory = learned(memories, "Refreshing fails when Redis is down")
    clock.advance(60 * DAY)
    assert memories.confidence(memories.get(memory.id)).value == pytest.approx(0.4)
    memories.used(memory.id, "helped")
    assert memories.confidence(memories.get(memory.id)).value == pytest.approx(0.8)


# contradiction and replacement


def test_a_newer_contradicting_memory_retires_the_older_and_both_are_kept(memories):
    old = learned(memories, "The server listens on port 8080", type="decision")
    added = memories.add("The server listens on port 8081", type="decision", session_id="s2")
    assert added.superseded == (old.id,)
    assert "8080 has become 8081" in added.why[0]
    retired = memories.get(old.id)
    assert (retired.deprecated_because, retired.superseded_by) == ("superseded", added.memory.id)
    assert memories.get(added.memory.id).supersedes == (old.id,)
    third = memories.add("The server listens on port 8082", type="decision", session_id="s3").memory
    for each in (old.id, added.memory.id, third.id):
        assert [memory.id for memory in memories.chain(each)] == [old.id, added.memory.id, third.id]
    assert contents(memories.list()) == ["The server listens on port 8082"]


def test_a_less_trusted_contradiction_retires_nothing_until_a_person_accepts_it(memories):
    old = taught(memories, "The server listens on port 8080", type="decision")
    added = memories.add("The server listens on port 8081", type="decision", session_id="s2")
    assert (added.superseded, added.disputes) == ((), (old.id,))
    assert memories.get(old.id).is_active
    assert any("contradicts" in reason for reason in added.memory.review_reasons)
    memories.accept(added.memory.id)
    assert memories.get(old.id).deprecated_because == "superseded"
    memories.undo(added.memory.id, by="person")
    assert memories.get(old.id).is_active
    assert memories.get(added.memory.id).needs_review


def test_what_is_pinned_is_retired_by_a_person_alone(memories):
    old = learned(memories, "The server listens on port 8080", type="decision")
    memories.pin(old.id)
    newer = memories.add("The server listens on port 8081", type="decision", session_id="s2")
    assert newer.disputes == (old.id,)
    taught = memories.remember("The server listens on port 8082", type="decision")
    assert set(taught.superseded) == {old.id, newer.memory.id}


def test_an_unsure_contradiction_keeps_both_and_asks(memories):
    old = learned(memories, "Use pytest for running tests", type="decision")
    added = memories.add("Use nose for running tests", type="decision", session_id="s2")
    assert (added.superseded, added.disputes) == ((), (old.id,))
    memories.accept(added.memory.id)
    assert memories.get(old.id).is_active


def test_old_text_that_is_read_again_does_not_bring_back_what_was_superseded(memories):
    learned(memories, "The server listens on port 8080", type="decision")
    newer = memories.add("The server listens on port 8081", type="decision", session_id="s2").memory
    again = memories.add("The server listens on port 8080", type="decision", session_id="s3")
    assert again.outcome == "refused"
    assert "superseded before" in again.why[0]
    back = memories.add(
        "The server listens on port 8080",
        type="decision",
        session_id="s3",
        supersedes=[newer.short_id],
    )
    assert (back.outcome, back.superseded) == ("added", (newer.id,))


def test_a_newer_count_of_the_same_thing_takes_the_place_of_the_older(memories):
    data = {"module": "auth", "average_tokens": 9_000, "session_count": 4}
    common = {
        "type": "context_cost",
        "source": "observer_inferred",
        "evidence": ["src/auth.py@abc1234:1"],
    }
    old = learned(memories, "Work on auth takes nine thousand tokens", data=data, **common)
    added = memories.add(
        "A session in auth needs about 12k tokens",
        data={**data, "average_tokens": 12_000},
        session_id="s2",
        **common,
    )
    assert added.superseded == (old.id,)


def test_superseding_by_hand_follows_trust(memories):
    old, new = (
        taught(memories, "The walrus sings at noon"),
        learned(memories, "The walrus sings at dawn", type="pattern"),
    )
    error = refused(lambda: memories.supersede(old.id, new.id), ConflictError)
    assert "confirmed" in str(error)
    assert memories.supersede(old.id, new.id, by="person", why="it changed").supersedes == (old.id,)
    refused(lambda: memories.supersede(new.id, old.id, by="person"), ConflictError)
    refused(lambda: memories.supersede(new.id, new.id, by="person"), InvalidInputError)
    refused(lambda: memories.supersede("m-zzzz", new.id), NotFoundError)


BIRDS = [("walrus", "noon"), ("heron", "dawn"), ("pelican", "dusk"), ("swift", "midnight")]


def test_superseding_is_undone_from_either_side(memories):
    for side in (0, 1):
        pair = [
            learned(memories, f"The {bird} sings at {time}")
            for bird, time in BIRDS[2 * side : 2 * side + 2]
        ]
        memories.supersede(pair[0].id, pair[1].id)
        memories.undo(pair[side].id)
        assert [memories.get(each.id).is_active for each in pair] == [True, True]
        assert memories.get(pair[1].id).supersedes == ()
        assert memories.chain(pair[0].id) == []


def test_a_change_of_two_is_undone_only_while_neither_was_changed_since(memories):
    old, new = (
        learned(memories, "The walrus sings at noon"),
        learned(memories, "The heron sings at dawn"),
    )
    memories.supersede(old.id, new.id)
    memories.update(new.id, confidence=0.7)
    error = refused(lambda: memories.undo(old.id), ConflictError)
    assert new.short_id in str(error)
    memories.undo(new.id)
    memories.undo(old.id)
    assert memories.get(old.id).is_active


def test_merging_joins_what_both_know_and_is_undone_as_one(memories):
    one = learned(
        memories, "Refreshing fails when Redis is down", files=["a.py"], tags=["x"], session_id="s1"
    )
    two = learned(
        memories, "When Redis is down, refresh breaks", files=["b.py"], tags=["y"], session_id="s2"
    )
    merged = memories.merge(one.id, [two.id])
    assert (merged.files, merged.tags, merged.session_ids) == (
        ("a.py", "b.py"),
        ("x", "y"),
        ("s1", "s2"),
    )
    assert (memories.get(two.id).deprecated_because, memories.get(two.id).superseded_by) == (
        "merged",
        one.id,
    )
    memories.undo(two.id)
    assert (memories.get(one.id).files, memories.get(two.id).is_active) == (("a.py",), True)


def test_merging_never_launders_and_never_demotes(memories):
    clean = learned(memories, "Refreshing fails when Redis is down", files=["a.py"])
    dirty = learned(memories, "When Redis is down, refresh breaks", files=["b.py"], taint=["web"])
    refused(lambda: memories.merge(dirty.id, [clean.id]), ConflictError)
    kept = memories.merge(clean.id, [dirty.id])
    assert (kept.tier, kept.files, kept.taint) == ("unconfirmed", ("a.py",), ())
    other = learned(memories, "The build is slow on Windows", taint=["tool"])
    worse = learned(memories, "On Windows builds take ages", taint=["tool", "web"])
    assert memories.merge(worse.id, [other.id], by="person").tier == "quarantined"


# forgetting, pruning, restoring


def test_forgetting_puts_aside_and_restoring_brings_back(memories):
    memory = learned(memories, "Refreshing fails when Redis is down")
    forgotten = memories.forget(memory.id, "no longer true")
    assert (forgotten.is_active, forgotten.deprecated_because) == (False, "forgotten")
    assert memories.forget(memory.id) == forgotten
    assert memories.list().memories == ()
    assert contents(memories.list(state="deprecated")) == [memory.content]
    refused(lambda: memories.update(memory.id, confidence=0.1), ConflictError)
    assert memories.restore(memory.id).is_active
    assert memories.restore(memory.id).is_active


def test_what_faded_is_put_aside_and_after_a_month_removed(memories, clock):
    short = learned(memories, "The branch is half rebased", type="work_state")
    long = learned(memories, "Refreshing fails when Redis is down")
    clock.advance(21 * DAY)
    assert memories.prune() == memories.prune(dry_run=True)
    clock.advance(1)
    assert memories.prune(dry_run=True).deprecated == (short.short_id,)
    assert memories.prune().deprecated == (short.short_id,)
    assert memories.get(short.id).deprecated_because == "pruned"
    clock.advance(GRACE_DAYS * DAY)
    assert memories.prune().deleted == ()
    clock.advance(1)
    assert memories.prune().deleted == (short.short_id,)
    assert memories.find(short.id) is None
    assert memories.get(long.id).is_active
    assert memories.problems() == []


def test_verified_pinned_and_lasting_memories_are_never_pruned(memories, clock):
    kept = [
        taught(memories, "Refreshing fails when Redis is down"),
        learned(memories, "Use SQLite for it", type="decision"),
        memories.pin(learned(memories, "The branch is half rebased", type="work_state").id),
    ]
    clock.advance(5_000 * DAY)
    assert memories.prune().deprecated == ()
    memories.forget(kept[0].id, by="person")
    clock.advance(365 * DAY)
    assert memories.prune().deleted == ()
    assert len(memories.list(state="all")) == 3


def test_superseded_memories_are_history_and_stay(memories, clock):
    old = learned(memories, "The server listens on port 8080", type="decision")
    memories.add("The server listens on port 8081", type="decision", session_id="s2")
    clock.advance(5_000 * DAY)
    assert memories.prune().deleted == ()
    assert len(memories.chain(old.id)) == 2


def test_what_was_rejected_stays_rejected_after_it_was_removed(memories, clock):
    memory = learned(memories, "Refreshing fails when Redis is down")
    memories.reject(memory.id)
    clock.advance(31 * DAY)
    assert memories.prune().deleted == (memory.short_id,)
    again = memories.add("Refreshing fails when Redis is down", type="gotcha", session_id="s2")
    assert (again.outcome, memories.totals().total) == ("refused", 0)
    assert "rejected before" in again.why[0]


def test_removing_leaves_nothing_that_points_nowhere(memories, clock):
    old, new = (
        learned(memories, "The walrus sings at noon"),
        learned(memories, "The heron sings at dawn"),
    )
    memories.relate(old.id, Relation("required_with", memory_id=new.id))
    memories.merge(old.id, [new.id])
    clock.advance(31 * DAY)
    assert memories.prune().deleted == (new.short_id,)
    assert memories.get(old.id).relations == ()
    assert kinds(memories.history(old.id))[0] == "created"


def test_what_is_restored_is_not_pruned_again_at_once(memories, clock):
    memory = learned(memories, "The branch is half rebased", type="work_state")
    clock.advance(30 * DAY)
    memories.prune()
    memories.restore(memory.id)
    assert memories.prune().deprecated == ()


def test_the_end_of_a_session_prunes_once_a_day(memories, clock):
    learned(memories, "The branch is half rebased", type="work_state")
    clock.advance(22 * DAY)
    memories.end_session("s1")
    assert memories.totals().active == 0
    assert memories.totals().total == 1


# staleness


def test_what_became_of_files_is_noted_as_an_event(memories, clock):
    gone = learned(memories, "auth.py opens a socket at import", files=["auth.py"])
    theirs = taught(memories, "auth.py must not import models", files=["auth.py"])
    rewritten = learned(memories, "models.py is imported by nobody", files=["models.py"])
    untouched = learned(memories, "views.py renders the page", files=["views.py"])
    memories.accept(rewritten.id)
    clock.advance(40 * DAY)
    found = memories.check_files(Files(gone=["auth.py"], written={"models.py": clock.now_ms()}))
    assert {each.id for each in found} == {gone.id, theirs.id, rewritten.id}
    assert memories.get(gone.id).is_stale
    assert memories.get(theirs.id).stale_because == "auth.py is gone"
    assert memories.get(rewritten.id).needs_review
    assert memories.get(untouched.id).version == 1
    assert memories.history(gone.id)[0].by == "system"
    assert (
        memories.check_files(Files(gone=["auth.py"], written={"models.py": clock.now_ms()})) == []
    )
    assert memories.verify(theirs.id).stale_at is None


def test_without_a_history_of_files_nothing_is_checked(memories):
    learned(memories, "auth.py opens a socket at import", files=["auth.py"])
    assert memories.check_files() == []


# undoing


def test_changes_are_undone_one_by_one_back_to_the_beginning(memories):
    memory = learned(memories, "Refreshing fails when Redis is down", tags=["a"])
    memories.update(memory.id, tags=["b"], content="Refreshing fails if Redis is down")
    memories.mark_stale(memory.id, "it was rewritten")
    memories.forget(memory.id)
    for _ in range(3):
        memories.undo(memory.id)
    undone = memories.get(memory.id)
    assert (undone.tags, undone.content, undone.is_active, undone.is_stale) == (
        ("a",),
        memory.content,
        True,
        False,
    )
    error = refused(lambda: memories.undo(memory.id), ConflictError)
    assert "as it was made" in str(error)
    assert kinds(memories.history(memory.id)) == [
        "created",
        "updated",
        "marked_stale",
        "forgotten",
        "undone",
        "undone",
        "undone",
    ]
    assert [event.is_undone for event in memories.history(memory.id)][::-1] == [
        False,
        True,
        True,
        True,
        False,
        False,
        False,
    ]


# the whole of it


def test_why_tells_everything(place, clock):
    memory = place.open(embedder="off")
    said = memory.messages.add(
        thread_id="t", role="user", content="Please remember: the server is on port 8080"
    )
    memories = memory.memories
    old = learned(
        memories,
        "The server listens on port 8080",
        type="decision",
        evidence=[f"message:{said.id}"],
    )
    added = memories.add(
        "The server listens on port 8081",
        type="decision",
        session_id="s2",
        derived_from=[old.short_id],
        evidence=["src/server.py@abc1234:3-4"],
        commit="abc1234",
    )
    clock.advance(10 * DAY)
    why = memories.why(old.short_id)
    assert [(each.is_there, each.told_by) for each in why.sources] == [(True, "user")]
    assert "port 8080" in why.sources[0].text
    assert [each.id for each in why.chain] == [old.id, added.memory.id]
    assert why.trust.tier == "unconfirmed"
    newer = memories.why(added.memory.id)
    assert [each.id for each in newer.origins] == [old.id]
    assert newer.confidence.value == 0.8
    assert not newer.injection.allowed
    text = "\n".join([*why.lines(), *newer.lines()])
    for part in (
        "port 8080",
        old.short_id,
        added.memory.short_id,
        "unconfirmed",
        "does not fade",
        "superseded",
        "abc1234",
    ):
        assert part in text


def test_an_audit_measures_what_a_store_is_full_of(memories, clock):
    good = [
        taught(memories, f"Module number {number} is for something else") for number in range(5)
    ]
    with memories._journal.begin(
        None, None, "system"
    ) as turn:  # as another program's rules would have let it in
        from smara.knowledge.add import prepare_new

        for text in (
            "I will now run the tests",
            "The API port is 8080",
            "The API port is 8081",
            "The API port is 8081",
        ):
            fields = prepare_new(NewMemory(text, "decision", session_id="s"), (), True).fields
            extra = {
                "session_ids": [],
                "taint": ["web"],
                "review_reasons": ["x"],
                "needs_review": True,
            }
            turn.next_operation()
            turn.insert({**fields, **extra})
    memories.mark_stale(good[0].id, "gone", by="person")
    found = memories.audit(examples=2)
    counts = {
        name: getattr(found, name).count
        for name in ("junk", "duplicates", "contradictions", "stale", "tainted", "unreviewed")
    }
    assert counts == {
        "junk": 1,
        "duplicates": 1,
        "contradictions": 2,
        "stale": 1,
        "tainted": 4,
        "unreviewed": 4,
    }
    assert (found.active, found.junk.share) == (9, pytest.approx(1 / 9, abs=1e-4))
    assert len(found.tainted.examples) == 2
    assert "plan" in found.junk.examples[0].why
    assert found.without_evidence.count == 4
    assert 0 <= found.health < 100


def test_an_audit_of_nothing_is_healthy(memories):
    assert (memories.audit().health, memories.audit().junk.share) == (100, 0.0)
