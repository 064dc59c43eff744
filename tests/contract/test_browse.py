"""What people look at, on both databases: counts, misses, windows, answers and arms."""

from __future__ import annotations

import pytest

from smara.browse.ask import cited
from smara.browse.models import KINDS
from smara.browse.sessions import arm_report
from smara.errors import InvalidInputError, NotFoundError
from smara.messages.models import Part
from smara.search.models import Hit
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE

TEXTS = (
    ("gotcha", "The cache worker gives up on a queue after four tries."),
    ("gotcha", "A login without a token is refused at noon."),
    ("preference", "Prefer tabs over spaces in Makefiles."),
)


@pytest.fixture
def texts(memory):
    return [
        memory.memories.add(text, type=type_, files=["src/door.py"], modules=["src"]).memory
        for type_, text in TEXTS
    ]


def values(memory, facet, **filters):
    counts = memory.browse.facets("memories", filters).facets[facet]
    return {each.value: each.count for each in counts}


def test_each_facet_is_counted_under_the_filters_of_the_others(memory, texts):
    memory.memories.pin(texts[0].id, by="person")
    assert values(memory, "type") == {"gotcha": 2, "preference": 1}
    assert values(memory, "type", type="gotcha") == {"gotcha": 2, "preference": 1}
    assert values(memory, "type", is_pinned="yes") == {"gotcha": 1}
    assert memory.browse.facets("memories", {"is_pinned": "yes", "module": "src"}).total == 1
    assert memory.browse.facets("memories", {"module": "lib"}).total == 0


def test_counts_follow_every_change(memory, texts):
    assert memory.browse.facets().total == 3
    memory.memories.forget(texts[0].id, by="person")
    assert memory.browse.facets().total == 2
    assert memory.browse.facets("memories", {"state": "deprecated"}).total == 1
    memory.memories.mark_stale(texts[1].id, "the login is gone", by="person")
    assert memory.browse.facets("memories", {"is_stale": "yes"}).total == 1
    assert [each.id for each in memory.memories.list(is_stale=True)] == [texts[1].id]
    assert texts[1].id not in {each.id for each in memory.memories.list(is_stale=False)}


def test_what_the_viewer_may_not_see_is_not_counted(memory, texts):
    memory.memories.remember("My own editor is vim.", visibility="personal", actor="ann")
    assert memory.browse.facets().total == 3


def test_every_kind_is_counted_and_a_strange_facet_is_refused(memory, say):
    say("hello")
    memory.tasks.add("Paint the door")
    assert memory.browse.facets("messages").total == 1
    assert memory.browse.facets("tasks", {"status": "open"}).total == 1
    assert memory.browse.facets("tasks", {"priority": "4"}).total == 0
    for kind in KINDS:
        assert memory.browse.facets(kind).kind == kind
    with pytest.raises(InvalidInputError, match="no facet walrus"):
        memory.browse.facets("tasks", {"walrus": "1"})


def test_messages_of_all_threads_come_newest_first_by_page(memory, say):
    for no in range(5):
        say(f"message {no}", f"t{no % 2}")
    first = memory.browse.messages(limit=2)
    assert [each.message.content for each in first] == ["message 4", "message 3"]
    second = memory.browse.messages(limit=2, before=first[-1].no)
    assert [each.message.content for each in second] == ["message 2", "message 1"]
    assert len(memory.browse.messages(thread_id="t0")) == 3
    assert memory.browse.messages(role="tool") == []


def test_memories_used_lately_are_counted(memory, texts, clock):
    memory.memories.used(texts[0].id, outcome="helped", by="person")
    assert memory.browse.used_since(30) == 1
    clock.advance(31 * 86_400)
    assert memory.browse.used_since(30) == 0


def test_a_miss_names_the_stage_at_which_the_record_fell_out(memory, texts):
    assert memory.browse.why_not("cache worker", texts[0].short_id).stage == "found"
    missed = memory.browse.why_not("banana cache", texts[2].id)
    assert (missed.stage, missed.missing) == ("no_match", ("banana", "cache"))
    assert memory.browse.why_not("cache", "m-none").stage == "unknown"
    memory.memories.forget(texts[0].id, by="person")
    assert memory.browse.why_not("cache worker", texts[0].id).stage == "hidden"


def test_a_record_behind_the_limit_is_told_its_rank(memory, say):
    for no in range(12):
        last = say(f"the cache worker says {no}")
    found = {memory.browse.why_not("cache worker", last.id, limit=20).stage}
    low = [
        miss
        for message in memory.messages.list(thread_id="t")
        if (miss := memory.browse.why_not("cache worker", message.id, limit=3)).stage
        == "below_limit"
    ]
    assert found == {"found"}
    assert len(low) == 9
    assert all(miss.rank > 3 for miss in low)


def test_without_a_model_the_answer_quotes_and_cites(memory, texts):
    reply = memory.browse.ask("How often does the cache worker try?")
    assert reply.method == "extractive"
    assert "four tries" in reply.text
    assert reply.citations[0].id == texts[0].id
    assert "[1]" in reply.text
    assert memory.browse.ask("zebra xylophone quux").method == "none"


def test_a_window_starts_no_observation(memory, say):
    for no in range(20):
        say(f"message {no} " + "word " * 50)
    window = memory.browse.window("t")
    assert window.messages == 20
    assert window.tokens >= window.message_tokens > 0
    assert memory.observations.list() == []
    with pytest.raises(NotFoundError):
        memory.browse.window("nowhere")


def test_a_window_holds_what_an_agent_would_be_sent_and_says_how_far_the_next_steps_are(
    memory, say
):
    for no in range(300):
        say(f"message {no} " + "word " * 400)
    window = memory.browse.window("t")
    context = memory.context.process_input("t", deadline_seconds=0.0)
    assert window.messages == len(context.messages)
    assert window.message_tokens == context.receipt.message_tokens
    assert window.left_out == context.receipt.left_out_messages > 0
    pending, limits = window.state["pendingTokens"], window.limits
    assert window.until["leaving"] == pending - limits["retain"] > 0
    assert window.until["reflection"] == limits["reflectAfter"]
    assert window.until["buffer"] == window.until["wait"] == 0
    assert window.plan["blocks"]


def test_every_day_says_what_agents_were_told_and_what_they_used(memory, clock, say):
    say("hello")
    memory.memories.remember("Never mock the database.")
    told = memory.moments.start("s1")
    clock.advance(2 * 86_400)
    days = memory.browse.activity(days=5)
    assert [each.received for each in days] == [0, 0, 1, 0, 0]
    assert days[2].tokens == told.tokens
    assert all(each.at % 86_400_000 == 0 for each in days)


def test_memories_in_force_are_counted_day_by_day(memory, clock):
    first = memory.memories.remember("Releases are cut on Fridays.").memory
    clock.advance(2 * 86_400)
    memory.memories.remember("Never mock the database.")
    memory.memories.forget(first.id, by="person")
    days = memory.browse.growth(days=4)
    assert [each.in_force for each in days] == [0, 1, 1, 1]
    assert [(each.added, each.retired) for each in days] == [(0, 0), (1, 0), (0, 0), (1, 1)]


def test_working_pages_are_listed(memory, say):
    say("hello")
    memory.working.put("# Goal", scope="thread", thread_id="t")
    [page] = memory.browse.working()
    assert (page.scope, page.thread_id, page.version) == ("thread", "t", 1)


def test_arms_without_enough_sessions_say_how_many_are_missing(memory):
    report = memory.browse.arms()
    assert (report.is_on, report.arms, report.difference) == (False, {}, None)
    few = arm_report(True, {"control": (40, 30, 10), "full": (600, 400, 133)})
    assert (few.more, few.difference) == (320, None)
    many = arm_report(True, {"control": (900, 800, 240), "full": (900, 800, 400)})
    assert many.more == 0
    assert many.difference == pytest.approx(0.2)
    assert 0 < many.error < 0.06


def test_a_citation_that_leads_nowhere_is_marked_dead():
    hits = [Hit("m1", "memory", "The port is 6399.", 0)]
    reply = cited("Which port?", "It is 6399 [1], not 6379 [7]. [Memory #m1: port]", "fake", hits)
    assert reply.text == "It is 6399 [1], not 6379 [2]. [1]"
    assert [(each.id, each.is_dead) for each in reply.citations] == [("m1", False), ("[7]", True)]


def test_the_timeline_counts_what_each_session_was_told_and_learned(memory, say):
    say("hello", "s1")
    say("hello again", "s2")
    memory.memories.remember("Never mock the database.")
    memory.memories.add("Port 6399 is Redis.", type="requirement", session_id="s1", files=["a.py"])
    memory.moments.start("s1")
    lines = {line.id: line for line in memory.browse.timeline()}
    assert (lines["s1"].messages, lines["s1"].received, lines["s1"].learned) == (1, 1, 1)
    assert (lines["s2"].received, lines["s2"].used, lines["s2"].outcome) == (0, 0, None)
    assert len(memory.browse.timeline(limit=1, offset=1)) == 1


def test_modules_hosts_failures_and_coverage_of_a_store_without_code(memory, texts):
    assert [(each.value, each.count) for each in memory.browse.modules_named()] == [("src", 3)]
    assert memory.browse.hosts() == []
    assert memory.browse.failures() == {"observations": 0, "vectors": 0}
    assert memory.browse.coverage() == memory.browse.groups() == []


def test_health_falls_with_what_waits_and_what_the_code_contradicts(memory):
    for number in range(4):
        memory.memories.remember(f"Rule {number}: the door of house {number} stays shut.")
    assert memory.browse.health().score == 100
    memory.memories.mark_stale(memory.memories.list()[0].id, "the door is gone", by="person")
    memory.memories.add(TEXTS[0][1], type="gotcha", by="agent", files=["src/door.py"])
    health = memory.browse.health()
    assert {each.name: (each.points, each.of) for each in health.parts} == {
        "reviewed": (32, 40),
        "fresh": (32, 40),
        "working": (20, 20),
    }
    assert (health.score, health.to_review, health.stale) == (84, 1, 1)


def test_folders_add_up_what_is_known_of_their_modules(memory, tmp_path):
    """`src` has nothing but `src/shop`, and is shown as that; `tools` stands beside it."""
    user = "from src.shop.prices.price import net\n\n\ndef draw():\n    return net()\n"
    for path, text in {
        "src/shop/web/forms/form.py": user,
        "src/shop/web/page.py": user,
        "src/shop/prices/price.py": "def net():\n    return 1\n",
        "tools/run.py": "def run():\n    return 1\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    memory.code.index(tmp_path)
    memory.memories.add("Forms are checked twice.", type="gotcha", files=["src/shop/web/page.py"])
    top = {each.path: each for each in memory.browse.groups()}
    assert set(top) == {"src/shop", "tools"}
    assert (top["src/shop"].total("files"), top["src/shop"].total("traps")) == (3, 1)
    inside = {each.path: each for each in memory.browse.groups("src/shop/")}
    assert set(inside) == {"src/shop/web", "src/shop/prices"}
    assert [used for used, _ in inside["src/shop/web"].uses] == ["src/shop/prices"]
    assert (inside["src/shop/prices"].is_module, inside["src/shop/web"].is_module) == (True, False)
    assert memory.browse.groups("src/walrus") == []


def test_arms_count_the_sessions_of_the_experiment(memory):
    memory.memories.remember("Never mock the database.")
    memory.moments.set_arms(True)
    for no in range(60):
        memory.moments.start(f"s{no}")
    report = memory.browse.arms()
    assert report.is_on
    assert sum(counts[0] for counts in report.arms.values()) == 60
    assert report.more > 0


def put_edits(memory, thread_id, cwd, *calls):
    """Store a session: each call is a tool, its path, and whether it failed."""
    memory.threads.add(thread_id, title=f"Work in {thread_id}", metadata={"cwd": cwd})
    for number, (tool, path, has_failed) in enumerate(calls):
        call = Part("tool_call", name=tool, call_id=f"c{number}", arguments={"file_path": path})
        result = Part("tool_result", "done", call_id=f"c{number}", is_error=has_failed)
        memory.messages.add(thread_id=thread_id, role="assistant", content=[call])
        memory.messages.add(thread_id=thread_id, role="tool", content=[result])


def test_sessions_that_edited_a_file_are_found_and_no_others(memory):
    put_edits(memory, "edited", "/w/app", ("Edit", "/w/app/src/door.py", False))
    put_edits(memory, "only-read", "/w/app", ("Read", "/w/app/src/door.py", False))
    put_edits(memory, "failed", "/w/app", ("Edit", "/w/app/src/door.py", True))
    put_edits(memory, "another-file", "/w/app", ("Edit", "/w/app/lib/door.py", False))
    put_edits(memory, "another-tree", "/w/app", ("Edit", "/w/old/src/door.py", False))
    relative = ("write_file", "src/door.py", False), ("Edit", "src/door.py", False)
    put_edits(memory, "twice", "/elsewhere/app", *relative)
    found = {each.thread_id: each for each in memory.browse.edits("src/door.py")}
    assert set(found) == {"edited", "twice"}
    assert (found["twice"].edits, found["twice"].seq) == (2, 3)
    assert found["edited"].title == "Work in edited"
    assert [each.thread_id for each in memory.browse.edits("src/door.py", 1)] == ["twice"]


def put_run(memory, thread_id, command, output):
    """Store a session with one command and what it wrote."""
    call = Part("tool_call", name="Bash", call_id="r", arguments={"command": command})
    memory.messages.add(thread_id=thread_id, role="assistant", content=[call])
    result = Part("tool_result", output, call_id="r", is_error=True)
    memory.messages.add(thread_id=thread_id, role="tool", content=[result])


def test_failures_of_tests_are_those_that_a_test_run_reports(memory):
    red = "FAILED tests/test_door.py::test_shut - assert 1 == 2\n1 failed, 3 passed in 0.1s"
    put_run(memory, "first", "pytest", red)
    put_run(memory, "second", "python -m pytest tests", red)
    put_run(memory, "looks", "cat old.log", red)
    put_run(memory, "other", "pytest", red.replace("tests/", "lib/"))
    put_run(memory, "green", "pytest", "tests/test_door.py ....\n4 passed in 0.1s")
    assert memory.browse.test_failures([]) == []
    (found,) = memory.browse.test_failures(["tests/test_door.py"])
    assert (found.test, found.runs) == ("tests/test_door.py::test_shut", 2)
    assert "assert 1 == 2" in found.error
    assert (found.thread_id, found.seq) == ("second", 2)
