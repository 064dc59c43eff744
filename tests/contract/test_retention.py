"""Retention: each kind is kept as long as the settings say, by whoever works in the background."""

from __future__ import annotations

import json

import pytest

import smara
from smara.errors import BusyError, ConfigError
from smara.privacy.retention import KINDS, parse_rules
from smara.testing import FakeClock, HashEmbedder
from tests.contract.both import EACH_DATABASE
from tests.contract.filled_tables import fill
from tests.contract.test_erasing import CANARY, leaks, say
from tests.faults import recount

pytestmark = EACH_DATABASE
DAY = 86_400


@pytest.fixture
def opened(place):
    """Opens a memory with rules of retention: ``opened(messages_days=90)``."""

    def open_with(**limits):
        return place.open(
            project="shop",
            embedding_model=HashEmbedder(),
            embedder="hash",
            retention=limits or None,
        )

    return open_with


def report(memory, kind):
    return next(each for each in memory.retention.list() if each.kind == kind)


def gone(memory, kind="messages"):
    """How many rows of a kind one round removes."""
    before = report(memory, kind).removed
    memory.retention.run_due()
    return report(memory, kind).removed - before


def count(memory, table, where="1 = 1"):
    with memory.internals.database.read() as session:
        return session.one(f"SELECT count(*) FROM {table} WHERE {where}")[0]


def test_old_conversations_go_whole_and_leave_no_byte(opened, clock):
    memory = opened(messages_days=90)
    say(memory, f"My neighbor {CANARY} wants a refund for the blue door.", "old")
    memory.observations.observe("old")
    memory.working.put(f"# Page\n- {CANARY}", scope="thread", thread_id="old")
    memory.embeddings.embed_pending()
    clock.advance(60 * DAY)
    say(memory, "The harbor opens at nine.", "new")
    assert gone(memory) == 0
    clock.advance(31 * DAY)
    assert gone(memory) == 1
    assert leaks(memory, CANARY) == []
    assert [each.id for each in memory.threads.list()] == ["new"]
    assert not memory.search(CANARY).hits
    assert memory.search("harbor").hits
    assert recount.problems(memory) == []
    assert memory.embeddings.problems() == []


def test_without_rules_conversations_tasks_and_memories_are_kept_for_ever(opened, clock):
    memory = opened()
    say(memory, "The harbor opens at nine.")
    memory.tasks.close(memory.tasks.add("Paint the door").id, "done")
    memory.memories.remember("Doors are painted twice", type="gotcha")
    clock.advance(5_000 * DAY)
    memory.retention.run_due()
    assert memory.messages.list(thread_id="t")
    assert memory.tasks.list(status="closed")
    assert memory.memories.list(state="all").memories
    assert str(report(memory, "messages").rule) == "for ever"


def test_conversation_that_a_memory_rests_on_stays_until_the_memory_is_retired(opened, clock):
    memory = opened(messages_days=30)
    first = say(memory, f"Always retry {CANARY} three times.", "evidence")
    found = memory.memories.add(
        "Payments are retried", type="gotcha", evidence=[f"message:{first.id}"]
    ).memory
    say(memory, "Nothing to learn here today.", "other")
    clock.advance(40 * DAY)
    memory.retention.run_due()
    assert [each.id for each in memory.threads.list()] == ["evidence"]
    assert memory.memories.find(found.id)
    assert memory.retention.plan() == {"messages": (0, 1)}
    memory.memories.forget(found.id, by="person")
    clock.advance(2 * DAY)
    memory.retention.run_due()
    assert memory.threads.list() == []
    assert leaks(memory, CANARY) == []


def test_what_was_learned_in_a_session_is_kept_by_its_own_rule(opened, clock):
    memory = opened(messages_days=30)
    say(memory, "The harbor opens at nine.")
    project_no, at = memory.internals.scope.project_no, clock.now_ms()
    with memory.internals.database.write() as session:
        session.run(
            "INSERT INTO observer_error_patterns (project_no, error_fingerprint, id, tool_name,"
            " command, error_message, first_seen_at, last_seen_at, sessions)"
            " VALUES (?, 'f', 'e1', 'Bash', 'make', 'no rule', ?, ?, ?)",
            (project_no, at, at, '["t"]'),
        )
        session.run(
            "INSERT INTO moment_sessions (project_no, session_id, started_at, last_at)"
            " VALUES (?, 't', ?, ?)",
            (project_no, at, at),
        )
    clock.advance(40 * DAY)
    assert gone(memory) == 1
    assert count(memory, "observer_error_patterns") == count(memory, "moment_sessions") == 1
    clock.advance(730 * DAY)
    memory.retention.run_due()
    assert count(memory, "observer_error_patterns") == count(memory, "moment_sessions") == 0


def test_retired_memory_that_a_conversation_taught_does_not_hold_it(opened, clock):
    memory = opened(messages_days=30)
    first = say(memory, f"Always retry {CANARY} three times.")
    found = memory.memories.add(
        "Payments are retried", type="gotcha", evidence=[f"message:{first.id}"]
    ).memory
    memory.memories.forget(found.id, by="person")
    clock.advance(40 * DAY)
    assert gone(memory) == 1
    assert leaks(memory, CANARY) == []


def test_conversation_of_an_unfinished_task_stays(opened, clock):
    memory = opened(messages_days=30)
    message = say(memory, "Please paint the door of the harbor.")
    task = memory.tasks.add("Paint the door")
    memory.links.add(task.id, message.id)
    clock.advance(40 * DAY)
    memory.retention.run_due()
    assert memory.threads.list()
    memory.tasks.close(task.id, "done")
    clock.advance(2 * DAY)
    memory.retention.run_due()
    assert not memory.threads.list()
    assert memory.tasks.get(task.id).status == "closed"


def test_of_many_conversations_the_oldest_go_until_the_count_fits(opened, clock):
    memory = opened(messages_rows=4)
    for name in "abcd":
        say(memory, f"Words of {name}", name)
        say(memory, f"More words of {name}", name)
        clock.advance(60)
    assert memory.retention.plan() == {}  # any of them may still go on
    clock.advance(2 * DAY)
    memory.retention.run_due()
    assert sorted(each.id for each in memory.threads.list()) == ["c", "d"]
    assert report(memory, "messages").rows == 4
    assert recount.problems(memory) == []


def test_of_much_text_the_oldest_goes_until_the_size_fits(opened, clock):
    memory = opened(messages_mib=1)
    for name in "abc":
        say(memory, f"{name} " * 200_000, name)
        clock.advance(2 * DAY)
    memory.retention.run_due()
    assert sorted(each.id for each in memory.threads.list()) == ["b", "c"]
    assert report(memory, "messages").size_bytes <= 1 << 20


def test_outputs_of_tools_go_and_the_conversation_stays(opened, clock):
    memory = opened(tool_outputs_days=10)
    say(memory, "Please run the tests of the harbor.")
    memory.messages.add(thread_id="t", role="tool", content=f"42 passed for {CANARY}")
    memory.observations.observe("t")
    notes = len(memory.search_observations("harbor tests").hits)
    clock.advance(11 * DAY)
    memory.retention.run_due()
    assert [each.raw_content for each in memory.messages.list(thread_id="t")] == [
        "Please run the tests of the harbor.",
        "[erased]",
    ]
    assert len(memory.search_observations("harbor tests").hits) == notes
    assert recount.problems(memory) == []
    clock.advance(2 * DAY)
    assert gone(memory, "tool_outputs") == 0


def test_closed_tasks_go_but_for_those_that_unfinished_ones_depend_on(opened, clock):
    memory = opened(closed_tasks_days=30)
    first, second, third = (memory.tasks.add(f"Task {name}") for name in "abc")
    memory.tasks.add("Later", depends_on=[second.id])
    memory.tasks.close(first.id, "done")
    memory.tasks.close(second.id, "done")
    clock.advance(31 * DAY)
    assert gone(memory, "closed_tasks") == 1
    assert memory.tasks.find(first.id) is None
    assert memory.tasks.find(second.id)
    assert memory.tasks.find(third.id)
    assert memory.tasks.problems() == []


def test_retired_memories_go_and_may_be_learned_again(opened, clock):
    memory = opened(retired_memories_days=10)
    old = memory.memories.remember(f"{CANARY} pays late", type="gotcha").memory
    memory.memories.remember("Doors are painted twice", type="gotcha")
    memory.memories.update(old.id, content="Customers pay late", by="person")
    memory.memories.forget(old.id, by="person")
    clock.advance(11 * DAY)
    assert gone(memory, "retired_memories") == 1
    assert leaks(memory, CANARY) == []
    assert [each.content for each in memory.memories.list(state="all").memories] == [
        "Doors are painted twice"
    ]
    assert memory.memories.problems() == []


def test_memory_that_a_retired_one_had_replaced_does_not_come_back_into_force(opened, clock):
    memory = opened(retired_memories_days=10)
    old = memory.memories.remember("The door is painted blue", type="decision").memory
    new = memory.memories.remember("The door is painted red", type="decision").memory
    memory.memories.supersede(old.id, new.id, by="person")
    clock.advance(5 * DAY)
    memory.memories.forget(new.id, by="person")
    with memory.internals.database.write() as session:
        session.run("UPDATE memories SET deprecated_at = deprecated_at + ? WHERE id = ?",
                    (20 * DAY * 1000, old.id))  # fmt: skip
    clock.advance(12 * DAY)
    assert gone(memory, "retired_memories") == 1
    assert memory.memories.find(new.id) is None
    assert not memory.memories.get(old.id).is_active
    assert memory.memories.problems() == []


def test_page_of_a_person_keeps_what_an_old_conversation_put_there(opened, clock):
    memory = opened(messages_days=10)
    memory.threads.add("t", resource_id="ann")
    say(memory, "My favorite harbor is Quackenbush harbor in the north.")
    page = "# Page\n- favorite harbor: Quackenbush harbor in the north"
    memory.working.put(page, scope="resource", resource_id="ann")
    clock.advance(12 * DAY)
    assert gone(memory) == 1
    assert memory.working.get(scope="resource", resource_id="ann").content == page


def test_the_page_stays_and_its_old_versions_go(opened, clock):
    memory = opened(page_versions_rows=2)
    for number in range(6):
        memory.working.put(f"# Page\n- {number}", scope="resource", resource_id="ann")
        clock.advance(60)
    assert gone(memory, "page_versions") == 3
    assert memory.working.get(scope="resource", resource_id="ann").content.endswith("5")
    assert count(memory, "working_memory_versions") == 3


def test_journals_are_bounded_without_any_setting(opened, clock):
    memory = opened()
    bounded = {each.kind for each in memory.retention.list() if each.rule.is_bounded}
    assert bounded == {
        "page_versions", "model_calls", "sessions", "errors", "receipts", "leases", "events",
    }  # fmt: skip
    fill(memory)  # at the beginning of time
    memory.retention.run_due()
    for table in ("model_calls", "moment_receipts", "moment_items", "observer_error_patterns"):
        assert count(memory, table) == 0, table
    assert count(memory, "messages") > 0
    assert count(memory, "memories") > 0


def test_calls_that_a_budget_counts_stay_whatever_the_rule_is(opened, clock):
    memory = opened(model_calls_rows=1)
    with memory.internals.database.write() as session:
        for number in range(4):
            session.run(
                "INSERT INTO model_calls (project_no, id, model, purpose, input_tokens,"
                " output_tokens, cached_tokens, is_measured, started_at, expires_at)"
                " VALUES (?, ?, 'm', 'p', 1, 1, 0, 1, ?, 0)",
                (memory.internals.scope.project_no, str(number), clock.now_ms() + number),
            )
    clock.advance(DAY)
    assert gone(memory, "model_calls") == 0
    clock.advance(2 * DAY)
    assert gone(memory, "model_calls") == 3
    assert count(memory, "model_calls", "id = '3'") == 1


def test_a_kind_is_looked_at_once_a_day_and_the_status_says_when(opened, clock):
    memory = opened(messages_days=10)
    assert report(memory, "messages").kept_at is None
    say(memory, "The harbor opens at nine.")
    began_at = clock.now_ms()
    memory.retention.run_due()
    shown = next(each for each in memory.status()["retention"] if each["kind"] == "messages")
    assert shown["rule"] == "10 days"
    assert (shown["rows"], shown["oldestAt"], shown["keptAt"]) == (1, began_at, began_at)
    assert shown["bytes"] > 20
    clock.advance(DAY / 2)
    memory.retention.run_due()
    assert report(memory, "messages").kept_at == began_at
    clock.advance(DAY)
    memory.retention.run_due()
    assert report(memory, "messages").kept_at == clock.now_ms()


def test_a_file_is_rewritten_when_words_went_and_at_most_once_a_week(opened, clock):
    memory = opened(messages_days=1)
    database, rewritten = memory.internals.database, []
    vacuum, database.vacuum = database.vacuum, lambda projects: rewritten.append(clock.now_ms())
    for day in range(16):
        say(memory, f"Words of day {day}", f"t{day}")
        clock.advance(DAY)
        memory.retention.run_due()
    database.vacuum = vacuum
    days = [(at - rewritten[0]) // (DAY * 1000) for at in rewritten]
    assert days == [0, 7, 14]


def test_files_that_others_use_are_tried_again_a_day_later(opened, clock):
    """What comes after retention in a round goes on."""
    memory = opened(messages_days=1)
    database, tries = memory.internals.database, []

    def refuse(projects):
        tries.append(clock.now_ms())
        raise BusyError("in use")

    vacuum, database.vacuum = database.vacuum, refuse
    say(memory, "Words of the harbor")
    clock.advance(2 * DAY)
    assert memory.retention.run_due(is_patient=True) == 1
    for _ in range(24):
        clock.advance(DAY / 12)
        memory.retention.run_due(is_patient=True)
    assert [(at - tries[0]) // (DAY * 1000) for at in tries] == [0, 1, 2]
    with pytest.raises(BusyError):
        memory.retention.erase()
    database.vacuum = vacuum


def test_a_large_file_is_rewritten_by_the_worker_alone(opened, clock, monkeypatch):
    memory = opened(messages_days=1)
    monkeypatch.setattr("smara.privacy.retention._SMALL_BYTES", 0)
    first = memory.memories.remember(f"{CANARY} pays late", type="gotcha").memory
    memory.memories.update(first.id, content="Customers pay late", by="person")
    memory.memories.forget(first.id, by="person")
    say(memory, "Words of the harbor")
    clock.advance(2 * DAY)
    memory.retention.run_due()
    state = "kind = 'rewrite' AND kept_at IS NOT NULL"
    assert count(memory, "retention_state", state) == 0
    memory.retention.run_due(is_patient=True)
    assert count(memory, "retention_state", state) == 1


class SlowClock(FakeClock):
    """A clock on which every look takes four seconds."""

    def monotonic(self) -> float:
        self.advance(4)
        return super().monotonic()


def test_a_round_is_bounded_and_the_next_one_goes_on(place):
    place.clock = SlowClock()
    memory = place.open(project="shop", embedder="off", retention={"messages_days": 10})
    words = [{"role": "user", "content": "Words of the harbor"}] * 200
    for name in range(12):
        memory.messages.add_many(thread_id=f"t{name}", messages=words)
    place.clock.advance(11 * DAY)
    left = []
    while memory.retention.run_due():
        left.append(len(memory.threads.list()))
    assert left[0] > 0
    assert left == sorted(left, reverse=True)
    assert left[-1] == 0
    assert len(left) > 1
    assert report(memory, "messages").removed == 2_400


def test_while_another_process_keeps_the_rules_nothing_is_done(opened, clock):
    memory = opened(messages_days=10)
    say(memory, "The harbor opens at nine.")
    clock.advance(11 * DAY)
    name = f"retention:{memory.internals.scope.project_no}"
    lease = memory.internals.leases.acquire(name, "elsewhere:1", 60)
    assert gone(memory) == 0
    assert memory.threads.list()
    memory.internals.leases.release(lease)
    assert gone(memory) == 1


def test_a_batch_that_loses_its_lease_changes_nothing(opened, clock):
    memory = opened(messages_days=10)
    say(memory, "The harbor opens at nine.")
    clock.advance(11 * DAY)
    retention, leases = memory.retention, memory.internals.leases
    name = f"retention:{memory.internals.scope.project_no}"
    lost = leases.acquire(name, "elsewhere:1", 60)
    leases.release(lost)
    with pytest.raises(smara.errors.LeaseLostError):
        retention._batch("messages", lost, set())
    assert memory.threads.list()


def test_transcript_that_is_read_again_does_not_bring_a_conversation_back(opened, clock):
    memory = opened(messages_days=10)
    at = clock.now_ms()
    say(memory, f"{CANARY} said this", client_id="c1")
    clock.advance(11 * DAY)
    memory.retention.run_due()
    with pytest.raises(smara.SmaraError, match="erased"):
        say(memory, f"{CANARY} said this", client_id="c1", created_at=at)
    assert say(memory, "A new beginning", created_at=at + 1).seq == 1


def test_every_removal_of_words_is_in_the_record_of_erasures(opened, clock):
    memory = opened(messages_days=10)
    say(memory, "The harbor opens at nine.")
    clock.advance(11 * DAY)
    memory.retention.run_due()
    with memory.internals.database.read() as session:
        (row,) = session.all("SELECT actor, target, counts, outcome FROM erasures")
    assert row[:2] == ("smara", "retention")
    assert json.loads(row[2])["chosen"] == {"messages": 1}
    assert row[3] == "expired"
    assert memory.privacy.problems() == []


def test_a_worker_keeps_the_rules_of_every_project(place, clock):
    for name in ("shop", "bank"):
        memory = place.open(project=name, embedder="off", retention={"messages_days": 10})
        say(memory, "The harbor opens at nine.", f"of {name}")
    clock.advance(11 * DAY)
    for _ in range(3):
        memory.internals.workers.run_once()
    assert count(memory, "threads") == 0


def test_plan_says_what_would_go_and_erase_does_it_at_once(opened, clock):
    memory = opened(messages_days=10, closed_tasks_rows=1)
    say(memory, f"{CANARY} at the harbor.")
    for number in range(3):
        memory.tasks.close(memory.tasks.add(f"Task {number}").id, "done")
        clock.advance(1)
    clock.advance(11 * DAY)
    assert memory.retention.plan() == {"messages": (1, 0), "closed_tasks": (2, 0)}
    assert memory.threads.list()
    assert memory.retention.erase() == {"messages": 1, "closed_tasks": 2}
    assert memory.retention.plan() == {}
    assert leaks(memory, CANARY) == []
    assert recount.problems(memory) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mesages_days=3", "'mesages_days' is not a kind with a unit"),
        ("messages=3", "messages_days = 90"),
        ("messages_years=3", "days, rows and mib"),
        ("messages_days=soon", "must be a whole number, not 'soon'"),
        ("messages_days=-3", "must be a whole number, not '-3'"),
        ("model_calls_days=1", "at least 2, because budgets count"),
        ("events_days=3", "at least 8, because events may wait"),
    ],
)
def test_rule_that_cannot_be_is_refused_when_a_store_is_opened(place, text, words):
    with pytest.raises(ConfigError, match=words):
        place.open(retention=text)


def test_rules_are_a_table_in_the_file_and_a_line_in_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "smara.toml"
    file.write_text("[retention]\nmessages_days = 90\nreceipts_mib = 8\n")
    monkeypatch.setenv("SMARA_CONFIG", str(file))
    rules = parse_rules(smara.config.load_settings().retention)
    assert str(rules["messages"]) == "90 days"
    assert str(rules["receipts"]) == "180 days, 8 MiB"
    monkeypatch.setenv("SMARA_RETENTION", "receipts_days=0; closed_tasks_rows=1000")
    rules = parse_rules(smara.config.load_settings().retention)
    assert str(rules["receipts"]) == "for ever"
    assert str(rules["closed_tasks"]) == "1,000 rows"
    assert rules.keys() == KINDS.keys()
