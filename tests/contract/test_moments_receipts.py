"""Everything that agents are told has a receipt, on both databases: one, whole, with what came of
it.
"""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, replace

import pytest

from smara.context.moments.experiment import arm_of
from smara.core.events import HostEvent
from smara.errors import InvalidInputError, NotFoundError
from tests.contract.both import EACH_DATABASE
from tests.contract.memory_place import DAY, learned, taught
from tests.contract.moments_place import OFF, TRAP, after, fail_before, opened, ran

pytestmark = EACH_DATABASE


@pytest.fixture
def memory(place, tmp_path, monkeypatch):
    """A store, and a repository around the current folder."""
    return opened(place, tmp_path, monkeypatch)


# what is made ahead


def test_what_is_prepared_is_what_would_be_said(memory):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    task = memory.tasks.add("Mend the redirect")
    fail_before(memory)
    made = memory.moments.prepared(agent="claude")
    assert memory.moments.receipts() == []
    by = {
        (
            each.point,
            each.tools[0],
            each.file or each.command or each.pattern or each.words or each.needs,
        ): each.injection.text
        for each in made.tools
    }
    edit = memory.moments.before_tool("a", "Edit", {"file_path": "src/mail/queue.py"})
    read = memory.moments.after_tool("b", "Read", {"file_path": "src/mail/queue.py"})
    search = memory.moments.after_tool("c", "Grep", {"pattern": "drain_queue"})
    failed = memory.moments.before_tool("d", "Bash", {"command": "npm test"})
    error = memory.moments.after_tool(
        "e", "Bash", {"command": "npm test"}, error="bash: npm: command not found"
    )
    edited = memory.moments.after_tool("h", "Edit", {"file_path": "src/mail/queue.py"})
    assert by == {
        ("before_tool", "Edit", "src/mail/queue.py"): edit.text,
        ("after_tool", "Read", "src/mail/queue.py"): read.text,
        ("after_tool", "Edit", "src/mail/queue.py"): edited.text,
        ("after_tool", "Grep", "drain_queue"): search.text,
        ("before_tool", "Bash", ("npm",)): failed.text,
        ("tool_failure", "Bash", ("npm", "bash:", "npm:", "command", "found")): error.text,
    }
    (first,) = made.firsts
    assert first.words == (task.short_id,)
    assert first.injection.text == memory.moments.first_message("f", task.short_id).text
    assert made.start.text == memory.moments.start("g", agent="claude").text
    assert (first.stems, made.has_arms) == ((), False)


def test_a_start_that_was_prepared_gets_one_receipt_however_often_it_is_told(memory, clock):
    taught(memory.memories, TRAP)
    made = json.loads(json.dumps(asdict(memory.moments.preview(agent="claude"))))
    at = clock.now_ms()
    assert memory.moments.deliver(made, session_id="s1", source="startup", at_ms=at) is True
    assert memory.moments.deliver(made, session_id="s1", source="startup", at_ms=at) is False
    assert memory.moments.deliver(made, session_id="s2", source="startup", at_ms=at) is True
    (receipt,) = memory.moments.receipts("s1")
    assert (receipt.at, receipt.delivered_at, receipt.agent, receipt.source) == (
        at,
        at,
        "claude",
        "startup",
    )
    assert memory.moments.start("s1") is None


def test_after_a_start_that_was_prepared_for_a_compaction_what_was_said_before_is_said_again(
    memory, clock
):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    touch = ("Read", {"file_path": "src/mail/queue.py"})
    assert memory.moments.after_tool("s1", *touch) is not None
    assert memory.moments.after_tool("s1", *touch) is None
    other = memory.moments.preview(agent="claude")
    made = replace(other, items=(replace(other.items[0], key="memory:another"),))
    memory.moments.deliver(made, session_id="s1", source="compact", at_ms=clock.now_ms())
    assert memory.moments.after_tool("s1", *touch) is not None


def test_what_was_not_prepared_by_us_is_refused_and_a_secret_in_it_redacted(memory):
    with pytest.raises(InvalidInputError):
        memory.moments.deliver(
            {"text": "x", "tokens": 1, "point": "nowhere"}, session_id="s", at_ms=1
        )
    secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    told = {
        "text": f"key {secret}",
        "tokens": 3,
        "point": "start",
        "items": [{"kind": "memory", "id": "x", "why": secret}],
    }
    assert memory.moments.deliver(told, session_id="s", at_ms=1)
    (receipt,) = memory.moments.receipts()
    assert secret not in receipt.text + receipt.items[0].why


def test_two_processes_that_say_the_same_at_once_say_it_once(place, memory):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    said: list[object] = []
    stores = [place.open(**OFF) for _ in range(4)]
    together = threading.Barrier(4)

    def touch(store) -> None:
        together.wait()
        said.append(store.moments.after_tool("s1", "Read", {"file_path": "src/mail/queue.py"}))

    threads = [threading.Thread(target=touch, args=(each,)) for each in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([each for each in said if each is not None]) == 1
    assert len(memory.moments.receipts("s1")) == 1


# receipts


def test_a_receipt_is_handed_over_and_used_once(memory, clock):
    taught(memory.memories, TRAP)
    told = memory.moments.start("s1")
    assert memory.moments.mark_delivered(told.receipt_id) is True
    clock.advance(5)
    assert memory.moments.mark_delivered(told.receipt_id) is False
    used = memory.moments.mark_used(told.receipt_id[:8], "the agent said so")
    assert (used.used_how, used.items[0].outcome, used.is_used) == (
        "the agent said so",
        "used",
        True,
    )
    assert memory.moments.mark_used(told.receipt_id, "again").used_how == "the agent said so"
    (kept,) = memory.memories.list()
    assert kept.verified_uses == 0
    with pytest.raises(InvalidInputError):
        memory.moments.mark_used(told.receipt_id, " ")
    with pytest.raises(NotFoundError):
        memory.moments.receipt("r-0000")


def test_running_what_was_recommended_is_use_and_verifies_the_memory_once(memory):
    taught(memory.memories, "Tables are made by `make tables ALL=1` alone", files=["f.py"])
    memory.moments.after_tool("s1", "Read", {"file_path": "f.py"})
    (receipt,) = memory.moments.receipts("s1")
    event = ran(receipt, "cd x && make tables ALL=1", tool_output="done")
    assert memory.moments.heed([replace(event, kind="tool_fail", error="no")]) == 0
    assert memory.moments.heed([event]) == 1
    assert memory.moments.heed([event]) == 0
    (receipt,) = memory.moments.receipts("s1")
    assert (receipt.used_how, receipt.items[0].how) == ("ran", "ran")
    assert memory.memories.list()[0].verified_uses == 1


def test_being_shown_or_named_verifies_nothing(memory):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    told = memory.moments.after_tool("s1", "Read", {"file_path": "src/mail/queue.py"})
    (receipt,) = memory.moments.receipts()
    short = memory.memories.list()[0].short_id
    assert memory.moments.heed([after(receipt, "turn_end", text="Nothing to see")]) == 0
    assert (
        memory.moments.heed([after(receipt, "tool_post", tool="Read", tool_output=told.text)]) == 0
    )
    assert (
        memory.moments.heed(
            [after(receipt, "turn_end", text=f"As {short} says, it is drained first.")]
        )
        == 1
    )
    assert memory.moments.receipt(receipt.id).used_how == "cited"
    assert memory.memories.list()[0].verified_uses == 0


def test_what_happened_before_it_was_said_is_no_use(memory):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    memory.moments.after_tool("s1", "Read", {"file_path": "src/mail/queue.py"})
    (receipt,) = memory.moments.receipts()
    early = HostEvent("claude", "turn_end", "s1", at_ms=receipt.at - 1, text="drain_queue")
    assert memory.moments.heed([early, replace(early, session_id="s2", at_ms=receipt.at + 1)]) == 0


def test_a_warned_command_that_ran_and_failed_was_not_avoided_and_saved_nothing(memory):
    fail_before(memory)
    memory.moments.before_tool("s1", "Bash", {"command": "npm test"})
    (receipt,) = memory.moments.receipts("s1")
    advised = ran(receipt, "npm test", 5, error="not found")
    assert memory.moments.heed([advised]) == 0
    assert memory.moments.heed([after(receipt, "session_end")]) == 0
    found = memory.moments.receipt(receipt.id)
    assert (found.items[0].outcome, found.is_used, found.saved_tokens) == (None, False, 0)


def test_a_command_that_did_not_come_again_shows_no_use(memory):
    fail_before(memory)
    memory.moments.before_tool("s1", "Bash", {"command": "npm test"})
    (receipt,) = memory.moments.receipts("s1")
    assert memory.moments.heed([ran(receipt, "ls", 5), after(receipt, "session_end")]) == 0
    assert not memory.moments.receipt(receipt.id).is_used


@pytest.mark.parametrize(("command", "saved"), [("npm test", 0), ("make other", 0), ("", 1)])
def test_a_failed_call_is_saved_only_if_none_failed_before_the_advice_worked(
    memory, command, saved
):
    fail_before(memory)
    memory.moments.before_tool("s1", "Bash", {"command": "npm test"})
    (receipt,) = memory.moments.receipts("s1")
    if command:
        memory.moments.heed([ran(receipt, command, 5, error="not found")])
    assert memory.moments.heed([ran(receipt, "pnpm test", 9, tool_output="12 passed")]) == 1
    found = memory.moments.receipt(receipt.id)
    assert (found.items[0].outcome, found.used_how) == ("used", "ran")
    assert found.saved_tokens == saved * (400 - found.items[0].tokens)
    assert memory.moments.totals().saved_tokens == found.saved_tokens


def test_a_name_or_a_file_of_a_memory_in_later_work_is_a_trace_and_no_use(memory):
    taught(memory.memories, "Call `drain_queue()` before the rules change", files=["src/q.py"])
    memory.moments.start("s1")
    (receipt,) = memory.moments.receipts("s1")
    opening = after(receipt, "tool_post", tool="Read", tool_input={"file_path": "src/q.py"})
    assert memory.moments.heed([opening]) == 0
    found = memory.moments.receipt(receipt.id)
    assert (found.items[0].outcome, found.items[0].how, found.is_used) == (None, "opened", False)
    cited = after(receipt, "turn_end", text=f"As {memory.memories.list()[0].short_id} says")
    assert memory.moments.heed([cited]) == 1
    assert memory.moments.receipt(receipt.id).items[0].how == "cited"


def test_a_warning_is_ignored_when_the_command_is_run_again(memory):
    fail_before(memory)
    memory.moments.before_tool("s1", "Bash", {"command": "npm test"})
    (receipt,) = memory.moments.receipts("s1")
    assert (
        memory.moments.heed(
            [ran(receipt, "npm test", 5, error="x"), ran(receipt, "npm test", 900, error="x")]
        )
        == 1
    )
    found = memory.moments.receipt(receipt.id)
    assert (found.items[0].outcome, found.is_used) == ("repeated", False)


def test_receipts_are_listed_newest_first_counted_and_forgotten_after_half_a_year(memory, clock):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    taught(memory.memories, "The rules stay in one file", type="decision")
    memory.moments.start("s1")
    clock.advance(60)
    memory.moments.after_tool("s2", "Read", {"file_path": "src/mail/queue.py"})
    assert [each.session_id for each in memory.moments.receipts()] == ["s2", "s1"]
    assert [each.session_id for each in memory.moments.receipts(limit=1, offset=1)] == ["s1"]
    totals = memory.moments.totals()
    assert (totals.receipts, totals.injected, totals.used) == (2, 2, 0)
    clock.advance(181 * DAY)
    memory.moments.start("s3")
    memory.retention.run_due()
    assert [each.session_id for each in memory.moments.receipts()] == ["s3"]


# the experiment


def of_arm(memory, arm: str) -> str:
    return next(name for name in map(str, range(10_000)) if arm_of(name, memory.project) == arm)


def test_arms_are_off_until_a_project_opts_in(memory):
    taught(memory.memories, TRAP)
    assert memory.moments.has_arms is False
    assert memory.moments.start(of_arm(memory, "control")).arm is None
    memory.moments.set_arms(True)
    assert memory.moments.has_arms is True
    assert memory.in_project("other").moments.has_arms is False
    with pytest.raises(InvalidInputError):
        memory.moments.set_arms("yes")


def test_control_hears_nothing_passive_only_before_the_work_and_full_everything(memory):
    taught(memory.memories, "The mailer refuses addresses without a domain")
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    memory.moments.set_arms(True)
    control, passive, full = (of_arm(memory, arm) for arm in ("control", "passive", "full"))
    touch = ("Read", {"file_path": "src/mail/queue.py"})
    assert memory.moments.start(control) is None
    (withheld,) = memory.moments.receipts(control)
    assert (withheld.arm, withheld.is_said, "mailer" in withheld.text) == ("control", False, True)
    assert memory.moments.heed([after(withheld, "turn_end", text=TRAP)]) == 0
    assert memory.moments.after_tool(passive, *touch) is None
    assert memory.moments.start(passive).arm == "passive"
    assert memory.moments.after_tool(full, *touch).arm == "full"
    assert memory.moments.start(full) is not None
    assert memory.moments.prepared().has_arms
    assert memory.moments.totals().by_arm["full"][:2] == (1, 2)


# agents that work by a plan


def test_planner_coder_and_tester_are_told_what_concerns_them_with_receipts(memory, tmp_path):
    learned(
        memory.memories,
        "Caching the mail rules was tried and given up",
        type="dead_end",
        modules=["mail"],
        data={"approach_tried": "a cache", "why_it_failed": "rules change"},
    )
    taught(
        memory.memories,
        "The login needs two tabs to fail",
        type="e2e_observation",
        modules=["mail"],
        data={"observation_type": "precondition"},
    )
    planner = memory.moments.for_planner(["mail"], session_id="p")
    assert "tried and given up" in planner.text
    assert planner.text.startswith("<smara-memory>")
    assert planner.constraints == ("Not again: a cache (rules change)",)
    assert "two tabs" in memory.moments.for_qa(["mail"], session_id="p")
    assert "two tabs" in memory.moments.for_qa(["mail"], session_id="p")
    assert [each.point for each in memory.moments.receipts("p")] == ["qa", "qa", "planner"]
    assert memory.moments.for_coder(["mail"], lambda path: "x") == []
    assert memory.moments.step_limit(50, "mail") == 50


# whether it reached the model


def test_words_that_stand_in_the_record_of_a_session_have_reached_the_model(memory, clock):
    taught(memory.memories, TRAP)
    told = memory.moments.start("s1")
    elsewhere = memory.moments.start("s2")
    at = clock.now_ms()
    assert memory.moments.receipt(told.receipt_id).reached_at is None
    assert (
        memory.moments.reached(
            "s1", [(at + 20, told.text), (at + 30, "Other words."), (at + 40, told.text)]
        )
        == 1
    )
    assert memory.moments.receipt(told.receipt_id).reached_at == at + 20
    assert memory.moments.receipt(elsewhere.receipt_id).reached_at is None
    assert memory.moments.reached("s1", [(at + 20, told.text)]) == 0
    assert (memory.moments.totals().reached, memory.moments.totals().receipts) == (1, 2)


def test_the_same_words_that_a_host_passes_on_once_reach_the_model_once(memory, clock):
    taught(memory.memories, TRAP)
    told = memory.moments.prepared(agent="claude").start
    first = clock.now_ms()
    for at_ms in (first, first + DAY):
        assert memory.moments.deliver(told, session_id="s1", source="startup", at_ms=at_ms)
    assert memory.moments.reached("s1", [(first + 100, told.text)]) == 1
    assert memory.moments.reached("s1", [(first + 100, told.text)]) == 0
    newest, oldest = memory.moments.receipts("s1")
    assert (newest.reached_at, oldest.reached_at) == (None, first + 100)
    assert (
        memory.moments.reached("s1", [(first + 100, told.text), (first + DAY + 100, told.text)])
        == 1
    )
    assert memory.moments.receipts("s1")[0].reached_at == first + DAY + 100


def test_what_was_withheld_has_reached_nobody(memory, clock):
    taught(memory.memories, TRAP)
    told = memory.moments.prepared(agent="claude").start
    at = clock.now_ms()
    memory.moments.deliver(told, session_id="s1", source="startup", at_ms=at, is_said=False)
    assert memory.moments.reached("s1", [(at, told.text)]) == 0
