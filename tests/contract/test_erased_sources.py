"""What rests on erased and on other sources is derived again from the others, or withheld."""

from __future__ import annotations

import pytest

from smara.core.events import HostEvent
from tests.agent_events import Script
from tests.contract.both import EACH_DATABASE
from tests.contract.test_decisions import AMENDED, PARKING
from tests.contract.test_decisions import say as hold
from tests.contract.test_erasing import CANARY, leaks, say
from tests.faults import recount

pytestmark = EACH_DATABASE


@pytest.fixture
def memory(place):
    return place.open(project="shop", embedder="off", models_enabled=False)


def gotcha(memory, content, *evidence, **given):
    return memory.memories.add(content, type="gotcha", evidence=list(evidence), **given).memory


def test_a_memory_stays_with_the_source_that_holds_all_its_words(memory):
    first = say(memory, f"{CANARY} wants the payment retried three times")
    second = say(memory, "The payment is retried three times before it fails", "u")
    kept = gotcha(
        memory, "The payment is retried three times",
        f"message:{first.id}", f"message:{second.id}", session_id="t",
    )  # fmt: skip
    memory.memories.update(kept.id, confidence=0.7, by="person")
    plan = memory.privacy.plan_erase(threads=["t"])
    assert plan.again == {"memories": 1}
    memory.privacy.erase(threads=["t"])
    (left,) = memory.memories.list()
    assert left.id == kept.id
    assert [each.message_id for each in left.evidence] == [second.id]
    assert (left.session_id, left.session_ids) == (None, ())
    assert memory.memories.history(kept.id) == []
    assert leaks(memory, CANARY) == []
    assert leaks(memory, first.id) == []
    assert memory.memories.problems() == []
    assert recount.problems(memory) == []


def test_a_memory_with_a_word_of_the_erased_source_alone_goes(memory):
    first = say(memory, f"{CANARY} wants the payment retried three times")
    second = say(memory, "The payment is retried three times", "u")
    gotcha(
        memory, f"The payment of {CANARY} is retried three times",
        f"message:{first.id}", f"message:{second.id}",
    )  # fmt: skip
    memory.privacy.erase(messages=[first.id])
    assert not memory.memories.list(state="all").memories
    assert leaks(memory, CANARY) == []


def test_a_memory_rests_on_the_messages_of_an_observation_that_is_made_again(memory):
    say(memory, "Always retry the payment three times before giving up")
    canary = say(memory, f"My neighbor {CANARY} lives in the harbor")
    memory.observations.observe("t")
    hits = memory.search_observations("payment").hits
    kept = gotcha(
        memory, "Always retry the payment three times", f"observation:{hits[0].observation.id}"
    )
    memory.privacy.erase(messages=[canary.id])
    (left,) = memory.memories.list()
    assert left.id == kept.id
    (evidence,) = left.evidence
    assert memory.messages.get(evidence.message_id).raw_content.startswith("Always retry")
    assert leaks(memory, CANARY) == []


def test_a_lesson_is_judged_again_from_the_sessions_that_stay(memory, clock):
    """1. Three sessions show that a push needs another command. 2. One is erased: the lesson is of
    the two others. 3. Another one is erased: one session is not enough, it waits for the next.
    """
    for number in range(3):
        push(memory, clock, f"s{number}")
    (lesson,) = memory.memories.list(type="error_pattern")
    memory.privacy.erase(threads=["s0"])
    (again,) = memory.memories.list(type="error_pattern")
    assert again.content == lesson.content
    assert again.session_ids == ("s2",)
    assert leaks(memory, '"s0"') == []
    memory.privacy.erase(threads=["s1"])
    assert not memory.memories.list(type="error_pattern").memories
    push(memory, clock, "s4")
    assert len(memory.memories.list(type="error_pattern").memories) == 1


def test_findings_of_an_older_store_are_read_with_their_short_names(memory, clock):
    for number in range(3):
        push(memory, clock, f"s{number}")
    with memory.internals.database.write() as session:
        for word, old in (("command", "cmd"), ("is_environment", "env")):
            statement = "UPDATE behavior_findings SET data = replace(data, ?, ?)"
            session.run(statement, (f'"{word}":', f'"{old}":'))
        assert session.all("SELECT data FROM behavior_findings WHERE data LIKE '%\"cmd\"%'")
    (finding,) = [each for each in memory.behavior.noticed("s2") if each.kind == "error_retry"]
    assert finding.data["command"] == "git push"
    (lesson,) = memory.memories.list(type="error_pattern")
    memory.privacy.erase(threads=["s0"])
    (again,) = memory.memories.list(type="error_pattern")
    assert again.content == lesson.content
    assert memory.behavior.failures()[0].command == "git push"


def test_a_lesson_from_a_page_keeps_its_taint_when_it_is_judged_again(memory, clock):
    """The memory came with the third session; two later ones only knew it already."""
    for number in range(5):
        script = Script(f"s{number}", clock.now_ms() + number * 86_400_000).edit("src/pay/card.py")
        script.tool("WebFetch", "text", url="https://pay.example/docs#x").green().end()
        memory.behavior.observe_batch(script.events)
        memory.behavior.finalize(f"s{number}")
    (lesson,) = memory.memories.list(type="module_insight", state="all")
    memory.privacy.erase(threads=["s2"])
    (again,) = memory.memories.list(type="module_insight", state="all")
    assert "in 4 sessions" in again.content
    assert again.taint == lesson.taint == ("web",)


def test_an_error_is_known_from_the_sessions_that_stay(memory, clock):
    """Each session met it on a branch of its own; the newest one, whose words are told, goes."""
    for number, branch in enumerate(("main", "harbor", CANARY)):
        push(memory, clock, f"s{number}", branch)
    (before,) = memory.behavior.failures()
    assert CANARY in repr(before)
    memory.privacy.erase(threads=["s2"])
    (known,) = memory.behavior.failures()
    assert (known.sessions, known.occurrences, known.resolved) == (2, 2, 2)
    assert known.fix == "git push --set-upstream origin harbor"
    assert "branch harbor has no upstream" in known.error
    assert known.last_seen_at < before.last_seen_at
    assert leaks(memory, CANARY) == []
    memory.privacy.erase(threads=["s0", "s1"])
    assert memory.behavior.failures() == []


def push(memory, clock, session_id, branch="main"):
    at = clock.now_ms()
    steps = (
        ("git push", f"fatal: The current branch {branch} has no upstream branch.", True),
        (f"git push --set-upstream origin {branch}", f"branch '{branch}' set up.", False),
    )
    events = [HostEvent("claude", "prompt", session_id, at_ms=at, prompt="Push", key="p")]
    for number, (command, output, is_failed) in enumerate(steps):
        events.append(
            HostEvent(
                "claude", "tool_fail" if is_failed else "tool_post", session_id,
                at_ms=at + number + 1, tool="Bash", tool_input={"command": command},
                tool_output=output, error=output if is_failed else None, key=f"c{number}",
            )
        )  # fmt: skip
    memory.behavior.observe_batch(events)
    memory.behavior.finalize(session_id)
    clock.advance(86_400)


def decide_twice(memory) -> tuple[str, str]:
    """A cap of 24 euros is set in one session, and one of 30 in another."""
    hold(memory, "first", PARKING)
    memory.decisions.update()
    hold(memory, "second", AMENDED, day=30)
    memory.decisions.update()
    older, newer = sorted(
        memory.decisions.list(state="all").decisions, key=lambda each: each.thread_id
    )
    return older.id, newer.id


def test_what_a_decision_of_an_erased_session_replaced_is_in_force_again(memory):
    older, newer = decide_twice(memory)
    assert memory.decisions.get(older).memory.deprecated_because == "superseded"
    memory.privacy.erase(threads=["second"])
    assert memory.decisions.get(older).memory.is_active
    assert [each.id for each in memory.decisions.search("the cap of parking_fee")] == [older]
    assert newer not in repr(memory.decisions.list(state="all"))


def test_a_decision_is_read_again_without_the_words_of_an_erased_one(memory):
    older, newer = decide_twice(memory)
    assert "stadium" in repr(memory.decisions.get(newer))
    memory.privacy.erase(threads=["first"])
    (again,) = memory.decisions.list(state="all").decisions
    assert again.id not in (older, newer)
    assert "30 euros" in repr(again)
    assert leaks(memory, "stadium") == []


def test_a_decision_that_was_erased_itself_is_not_read_again(memory):
    older, newer = decide_twice(memory)
    memory.privacy.erase(memories=[newer])
    more = (*AMENDED, ("user", "35 euros a day on event nights."), ("assistant", "Settled."))
    hold(memory, "second", more, day=30)
    memory.decisions.update()
    assert [each.id for each in memory.decisions.list(state="all")] == [older]


def test_a_page_loses_the_lines_that_came_from_the_erased_messages(memory, clock):
    page = {"scope": "resource", "resource_id": "default"}
    memory.working.put("# Page\n- Likes tea in the harbor", **page)
    clock.advance(60)
    first = say(memory, f"My neighbor {CANARY} lives in the harbor and wants a refund.")
    say(memory, "We paint the doors blue.", "u")
    clock.advance(60)
    memory.working.put(
        f"# Page\n- Likes tea in the harbor\n- Neighbor: {CANARY}\n- Blue doors", **page
    )
    assert memory.privacy.plan_erase(messages=[first.id]).again["working_memory"] == 1
    memory.privacy.erase(messages=[first.id])
    assert memory.working.get(**page).content == "# Page\n- Likes tea in the harbor\n- Blue doors"
    assert leaks(memory, CANARY) == []
    assert [each.version for each in memory.working.history(**page)] == [2, 1]
    assert memory.search("blue doors", sources=["working"]).hits


def test_a_page_of_json_keeps_its_fields(memory, clock):
    page = {"scope": "resource", "resource_id": "default"}
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    first = say(memory, f"I am {CANARY} and like doors")
    clock.advance(60)
    memory.working.put(
        {"name": CANARY, "likes": ["doors of " + CANARY, "tea"]}, schema=schema, **page
    )
    memory.privacy.erase(threads=[first.thread_id])
    assert memory.working.get(**page).value == {"name": "", "likes": ["tea"]}
    assert leaks(memory, CANARY) == []
