"""Behavior on both databases: events count once, sessions are decided on once, and what is learned
has its evidence.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from smara.behavior.methodology import ExecutionContext, WorkUnitResult
from smara.errors import BusyError, InvalidInputError, NotFoundError
from smara.knowledge.models import WorkUnit
from smara.testing import HashEmbedder, ScriptedModel
from tests.agent_events import Script
from tests.contract.both import EACH_DATABASE
from tests.contract.memory_place import DAY, contents

pytestmark = EACH_DATABASE

OFF = {"embedder": "off"}
FIX = (
    "Running `npm test` failed (output said: `bash: npm: command not found`); "
    "what worked: `pnpm test`."
)
SECRET = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


@pytest.fixture
def memory(place):
    return place.open(**OFF)


def worked(session_id: str, number: int = 0) -> Script:
    """A session with a failure and its fix, a change of two files, green tests and an end."""
    script = Script(session_id, 1_760_000_000_000 + number * DAY * 1000).prompt("Do the ticket.")
    script.fail("npm test", "bash: npm: command not found").run("pnpm test", "12 passed")
    script.read("src/mail/queue.py").read("src/mail/rules.py")
    return script.edit("src/mail/queue.py").edit("src/mail/rules.py").green().end()


def finalize(memory, script: Script):
    memory.behavior.observe_batch(script.events)
    return memory.behavior.finalize(script.id)


def counted(memory) -> tuple:
    """Everything that a doubled or a lost event would change."""
    behavior = memory.behavior
    edges = [
        (each.file_a, each.file_b, each.raw_count, each.session_count) for each in behavior.edges()
    ]
    errors = [(each.command, each.occurrences, each.sessions) for each in behavior.failures()]
    sessions = [
        (each.session_id, each.events, each.promoted, each.steps) for each in behavior.sessions()
    ]
    return edges, errors, sorted(sessions), sorted(contents(memory.memories.list()))


def test_an_error_that_came_in_two_sessions_is_remembered_with_its_evidence_and_taint(memory):
    first = finalize(memory, worked("s1"))
    assert [each.verdict for each in first.judged if each.finding.kind == "error_retry"] == [
        "waiting"
    ]
    second = finalize(memory, worked("s2", 1))
    assert (second.type, second.outcome) == ("build", "tested")
    (learned,) = [each for each in memory.memories.list() if each.type == "error_pattern"]
    assert (learned.content, learned.source, learned.tier) == (FIX, "observer_inferred", "observed")
    assert learned.taint == ("tool",)
    assert learned.needs_review
    assert [each.quote for each in learned.evidence] == [
        "$ npm test\noutput said: bash: npm: command not found",
        "$ pnpm test\n(worked)",
    ]
    assert learned.session_ids == ("s2",)
    (noticed,) = [each for each in memory.behavior.noticed("s2") if each.kind == "error_retry"]
    assert (noticed.verdict, noticed.memory_id, noticed.sessions) == ("promoted", learned.id, 2)


def test_events_that_are_told_again_in_any_order_and_grouping_change_nothing(memory, place):
    script, other = worked("s1"), worked("s2", 1)
    events = script.events
    assert memory.behavior.observe_batch(events) == (len(events), 0)
    again = [*events[5:], *events[:5], *other.events, *other.events]
    assert memory.behavior.observe_batch(again) == (
        len(other.events),
        len(events) + len(other.events),
    )
    once = place.open(project="once", **OFF)
    for each in (script, other):
        finalize(memory, each)
        finalize(once, each)
    assert counted(memory) == counted(once)
    assert memory.behavior.observe_batch(events).taken == 0
    assert memory.behavior.finalize("s1") is None
    assert counted(memory) == counted(once)


def test_two_processes_that_tell_of_one_session_leave_what_one_would(place, memory):
    """1. Two stores are opened. 2. Both tell all events, in batches, at the same time. 3. It is as
    if told once.
    """
    script = worked("s1")
    others = [place.open(**OFF) for _ in range(2)]
    batches = [script.events[start : start + 3] for start in range(0, len(script.events), 3)]
    troubles: list[BaseException] = []

    def tell(store) -> None:
        try:
            for batch in batches:
                store.behavior.observe_batch(batch)
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=tell, args=(each,)) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
    once = place.open(project="once", **OFF)
    finalize(once, script)
    memory.behavior.finalize("s1")
    edges, errors, sessions, learned = counted(memory)
    assert (errors, sessions, learned) == counted(once)[1:]
    assert {each[:2] for each in edges} == {each[:2] for each in counted(once)[0]}


def test_two_that_decide_on_a_session_at_once_decide_once(place, memory):
    finalize(memory, worked("s1"))
    memory.behavior.observe_batch(worked("s2", 1).events)
    others = [place.open(**OFF) for _ in range(3)]
    answers: list = []

    def decide(store) -> None:
        answers.append(store.behavior.finalize("s2"))

    threads = [threading.Thread(target=decide, args=(each,)) for each in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer is None for answer in answers].count(False) == 1
    assert contents(memory.memories.list()).count(FIX) == 1
    assert memory.behavior.failures()[0].sessions == 2


def test_a_long_lived_process_and_short_ones_share_a_session(place, memory):
    """1. One process watches live. 2. Another tells some of the same events. 3. Nothing is doubled
    or lost.
    """
    script = worked("s1")
    live, short = place.open(**OFF), place.open(**OFF)
    for position, event in enumerate(script.events[:-1]):
        live.behavior.observe(event)
        if position % 3 == 0:
            short.behavior.observe_batch([event])
    live.behavior.checkpoint("s1")
    short.behavior.observe_batch(script.events)
    once = place.open(project="once", **OFF)
    finalize(once, script)
    assert memory.behavior.session("s1").events == len(script.events)
    memory.behavior.finalize("s1")
    assert counted(memory)[1:] == counted(once)[1:]


def test_what_a_process_watched_is_there_for_the_next_one(place, memory):
    script = worked("s1")
    for event in script.events[:6]:
        memory.behavior.observe(event)
    memory.behavior.checkpoint("s1", WorkUnit("native", ("spec_1", "t1"), "Spec 1"))
    other = place.open(**OFF)
    restored = other.behavior.restore("s1")
    assert (restored.state, restored.events, restored.methodology) == ("open", 6, "native")
    for event in script.events[6:]:
        other.behavior.observe(event)
    done = other.behavior.finalize("s1")
    assert (done.outcome, done.steps) == ("tested", 7)


def test_a_session_that_goes_on_after_it_was_decided_on_is_decided_on_again(memory):
    finalize(memory, worked("s1"))
    assert memory.behavior.session("s1").state == "final"
    later = Script("s1", 1_770_000_000_000).prompt("More.")
    later.events = [
        replace(each, key=f"later-{each.key}")
        for each in later.edit("src/mail/x.py").green().end().events
    ]
    again = finalize(memory, later)
    assert (again.outcome, memory.behavior.session("s1").state) == ("tested", "final")


def test_a_session_end_only_enqueues_and_the_background_decides(memory, clock):
    memory.behavior.observe_batch(worked("s1").events)
    memory.behavior.observe_batch(worked("s2", 1).events)
    silent = Script("s3", clock.now_ms()).edit("src/a/x.py")
    memory.behavior.observe_batch(silent.events)
    assert [each.state for each in memory.behavior.sessions()].count("ended") == 2
    done = memory.behavior.run_due()
    assert (done.finalized, done.failed) == (2, 0)
    clock.advance(3 * 3600)
    assert memory.behavior.run_due().finalized == 1
    assert memory.behavior.run_due().total == 0
    assert FIX in contents(memory.memories.list())


def test_the_worker_does_the_same(memory):
    memory.behavior.observe_batch(worked("s1").events)
    done = memory.worker.run_once()
    assert done.learned >= 1
    assert not done.is_idle
    assert memory.behavior.session("s1").state == "final"


def test_the_worker_prunes_what_faded_and_empties_the_cache_of_vectors_once_a_day(place, clock):
    memory = place.open(embedding_model=HashEmbedder(), embedder="onnx:/nowhere")
    kept = memory.behavior.keep_work_state("s1", "- [x] schema\n- [ ] write the migration")
    memory.worker.run_once()
    with memory._rooms.database.read() as session:
        assert session.one("SELECT count(*) > 0 FROM embedding_cache")[0]
    clock.advance(22 * DAY)
    assert memory.behavior.run_due().pruned >= 1
    assert memory.memories.get(kept.memory.id).deprecated_because == "pruned"
    with memory._rooms.database.read() as session:
        assert session.one("SELECT count(*) FROM embedding_cache") == (0,)
    assert memory.behavior.run_due().total == 0


def test_nothing_is_learned_from_work_that_failed(memory):
    for number in range(3):
        script = (
            Script(f"s{number}")
            .fail("npm test", "bash: npm: command not found")
            .run("pnpm test", "12 passed")
        )
        done = finalize(memory, script.edit("src/a/x.py").red().end())
        assert done.outcome == "failed"
        assert done.promoted == ()
    assert len(memory.memories.list()) == 0


def test_of_work_that_nobody_proved_only_what_proves_itself_is_learned(memory):
    for number in range(3):
        script = Script(f"s{number}", number * DAY * 1000).edit("src/a/x.py").edit("src/a/y.py")
        script.fail("npm deploy", "bash: npm: command not found").run("pnpm deploy")
        assert finalize(memory, script.end()).outcome == "unknown"
    assert [each.type for each in memory.memories.list()] == ["error_pattern"]
    waiting = [each.why for each in memory.behavior.noticed("s2") if each.kind == "co_access"]
    assert waiting == [
        "nothing shows that the work of the session is right, nor does it show it itself"
    ]


def test_what_comes_after_a_web_page_is_quarantined(memory):
    for number in range(2):
        script = Script(f"s{number}", number * DAY * 1000).tool(
            "WebFetch", "run evil", url="https://x.example"
        )
        script.fail("npm test", "bash: npm: command not found").run("curl-x npm test").edit(
            "src/a/x.py"
        ).green()
        finalize(memory, script.end())
    (learned,) = [each for each in memory.memories.list() if each.type == "error_pattern"]
    assert (learned.taint, learned.tier) == (("tool", "web"), "quarantined")
    assert learned.confidence == pytest.approx(0.85 * 0.7, abs=0.001)


def test_secrets_are_nowhere_in_the_store(memory):
    script = (
        Script("s1")
        .fail(f"deploy --token {SECRET}", f"Error: could not use {SECRET}")
        .run(f"deploy2 --token {SECRET}")
    )
    script.prompt(f"my key is {SECRET}").say(
        f"I initially thought `{SECRET}` is old, but `{SECRET}` works in `x.py`."
    )
    finalize(memory, script.edit("src/a/x.py").green().end())
    tables = (
        "behavior_findings",
        "behavior_signals",
        "behavior_sessions",
        "observer_error_patterns",
        "memories",
    )
    with memory._rooms.database.read() as session:
        for table in tables:
            assert SECRET not in repr(session.all(f"SELECT * FROM {table}"))


def test_projects_do_not_see_each_others_behavior(memory, place):
    finalize(memory, worked("s1"))
    other = place.open(project="other", **OFF)
    assert (other.behavior.sessions(), other.behavior.failures(), other.behavior.edges()) == (
        [],
        [],
        [],
    )
    with pytest.raises(NotFoundError):
        other.behavior.noticed("s1")
    finalize(other, worked("s1"))
    assert len(other.memories.list()) == 0
    assert other.behavior.failures_of("cd /x && npm test 2>&1 | tail -3")[0].sessions == 1


def test_a_command_that_works_again_is_known_to(memory, clock):
    clock.advance(30 * DAY)
    for number in range(2):
        finalize(memory, worked(f"s{number}", number))
    assert not memory.behavior.failures_of("npm test")[0].worked_since
    again = (
        Script("s2", 1_760_000_000_000 + 5 * DAY * 1000)
        .edit("src/mail/queue.py")
        .run("npm test", "12 passed")
    )
    finalize(memory, again.end())
    assert memory.behavior.failures_of("npm test")[0].worked_since
    finalize(memory, worked("s3", 9))
    assert not memory.behavior.failures_of("npm test")[0].worked_since


def test_an_error_was_last_seen_when_it_happened_not_when_it_was_told(memory, clock):
    clock.advance(30 * DAY)
    finalize(memory, worked("s1"))
    assert (
        memory.behavior.failures_of("npm test")[0].last_seen_at < clock.now_ms() - 29 * DAY * 1000
    )


def test_the_rolling_tables_have_direction_time_between_and_kinds_of_work(memory):
    for number in range(3):
        finalize(memory, worked(f"s{number}", number))
    edge = memory.behavior.edges("src/mail/queue.py")[0]
    assert (edge.file_a, edge.file_b) == ("src/mail/queue.py", "src/mail/rules.py")
    assert (edge.session_count, edge.edit_session_count, edge.task_types) == (3, 3, {"build": 3})
    assert edge.directional == 3
    assert edge.avg_time_delta_ms == pytest.approx(5_000, rel=0.5)
    assert edge.promoted_at is not None
    (failure,) = memory.behavior.failures_of("npm test")
    assert (failure.how, failure.fix, failure.occurrences, failure.sessions) == (
        "command",
        "pnpm test",
        3,
        3,
    )
    prefetch = memory.behavior.prefetch("mail")
    assert prefetch.always == ("src/mail/queue.py", "src/mail/rules.py")


def test_a_file_that_fills_the_context_is_not_among_those_that_work_always_reads(memory):
    for number in range(3):
        script = Script(f"s{number}").read("src/mail/queue.py")
        script.read("src/mail/mail_pb2.py", "x = 1\n" * 10_000).edit("src/mail/send.py")
        finalize(memory, script.green().end())
    assert memory.behavior.prefetch("mail").always == ("src/mail/queue.py",)


def test_modules_are_looked_over_when_they_reach_a_threshold_once_and_with_a_log(memory):
    for number in range(5):
        finalize(memory, worked(f"s{number}", number))
    done = memory.behavior.run_due()
    assert done.synthesized == 1
    (entry,) = memory.behavior.synthesis_log()
    assert (entry.module, entry.trigger_count, entry.mode, entry.method) == (
        "mail",
        5,
        "threshold",
        "rules",
    )
    assert memory.behavior.run_due().synthesized == 0


def test_a_module_is_looked_over_with_its_own_errors_alone(place):
    model = ScriptedModel(["[]"] * 9)
    memory = place.open(chat_model=model, **OFF)
    for number in range(5):
        script = worked(f"s{number}", number)
        script.fail("make -C src/mail rules", "bash: m4: command not found")
        script.run("make -C src/mail/ rules M4=gm4").end()
        finalize(memory, script)
    memory.behavior.run_due()
    request = model.requests[-1].prompt
    assert "make -C src/mail rules" in request
    assert "npm test" not in request


def test_files_of_different_modules_that_go_together_are_found_once_a_week(memory, clock):
    finalize(memory, Script("other", 1_000).edit("src/pay/other.py").red().end())
    for number in range(6):
        script = Script(f"s{number}", number * DAY * 1000).edit("src/mail/queue.py")
        script = (script.edit("src/pay/card.py") if number else script).red()
        finalize(
            memory, script.end()
        )  # the work failed: nothing is promoted, and the tables count all the same
        # the modules are looked over at five sessions, when four have changed both
        memory.behavior.run_due()
    assert len(memory.memories.list()) == 0
    clock.advance(8 * DAY)
    assert memory.behavior.run_due().synthesized == 1
    assert contents(memory.memories.list()) == [
        "When `src/mail/queue.py` changes, `src/pay/card.py` is changed with it: in 5 of 6 "
        "sessions that changed it."
    ]
    clock.advance(8 * DAY)
    assert memory.behavior.run_due().synthesized == 0
    assert memory.behavior.synthesis_log()[0].mode == "weekly"


def test_two_modules_that_go_together_are_one_cluster_and_one_call_of_a_model(place, clock):
    said = (
        "`src/mail/queue.py` and `src/pay/card.py` share the retry table, and "
        "`src/pay/card.py` reads it first."
    )
    reply = (
        f'[{{"type": "gotcha", "content": "{said}", "relatedFiles": ["src/mail/queue.py", '
        f'"src/pay/card.py"]}}]'
    )
    model = ScriptedModel(["[]", "[]", reply])
    memory = place.open(chat_model=model, **OFF)
    finalize(memory, Script("other", 1_000).edit("src/pay/other.py").red().end())
    for number in range(6):
        script = Script(f"s{number}", number * DAY * 1000).edit("src/mail/queue.py")
        for path in ("src/pay/card.py", "src/pay/bill.py") if number else ():
            script.edit(path)
        finalize(memory, script.red().end())
        memory.behavior.run_due()
    asked = len(model.requests)
    clock.advance(8 * DAY)
    memory.behavior.run_due()
    assert len(model.requests) == asked + 1
    entry = memory.behavior.synthesis_log()[0]
    assert (entry.module, entry.mode, entry.memories_generated) == ("mail + pay", "weekly", 1)
    assert entry.method.startswith("model")
    assert contents(memory.memories.list()) == [said]


def test_a_model_puts_what_was_learned_into_words_in_one_call_and_names_nothing_else(place):
    said = "`npm test` does not work here (`bash: npm: command not found`); `pnpm test` does."
    model = ScriptedModel([f'[{{"number": 1, "statement": "{said}"}}]'])
    memory = place.open(chat_model=model, **OFF)
    finalize(memory, worked("s1"))
    assert len(model.requests) == 0
    done = finalize(memory, worked("s2", 1))
    assert (len(model.requests), done.model_calls) == (1, 1)
    assert said in contents(memory.memories.list())
    liar = place.open(
        project="liar",
        chat_model=ScriptedModel(['[{"number": 1, "statement": "Run `rm -rf /`."}]']),
        **OFF,
    )
    finalize(liar, worked("s1"))
    finalize(liar, worked("s2", 1))
    assert FIX in contents(liar.memories.list())


@pytest.mark.parametrize(
    ("said", "kept"), [("ui_behavior", ["ui_behavior"]), ("none", []), ("odd", ["timing"])]
)
def test_a_model_classes_what_a_browser_showed_and_leaves_out_what_says_nothing(place, said, kept):
    model = ScriptedModel([f'[{{"number": 1, "statement": "", "class": "{said}"}}]'])
    memory = place.open(chat_model=model, **OFF)
    for number in range(2):
        script = Script(f"s{number}", 1_750_000_000_000 + number * DAY * 1000)
        for _ in range(2):
            script.tool(
                "mcp:browser:click", error="Timed out waiting for selector .save", text="Save"
            )
        done = finalize(memory, script.end())
    assert [
        each.data["observation_type"] for each in memory.memories.list(type="e2e_observation")
    ] == kept
    assert (len(model.requests), done.model_calls) == (1, 1)
    assert [each.verdict for each in done.judged if each.finding.kind == "e2e"] == (
        ["promoted"] if kept else ["discarded"]
    )


def test_parallel_agents_that_see_the_same_need_no_second_session(memory):
    script = Script("s1").prompt("Do it.")
    for helper in ("h1", "h2"):
        script.subagent = helper
        script.fail("npm test", "bash: npm: command not found").run("pnpm test", "12 passed")
    script.subagent = ""
    done = finalize(memory, script.edit("src/a/x.py").green().end())
    (judged,) = [each for each in done.judged if each.finding.kind == "error_retry"]
    assert (judged.verdict, judged.why) == ("promoted", "seen by 2 agents")


def test_of_long_work_each_subtask_is_learned_from_and_nothing_twice(memory):
    script = worked("s1")
    memory.behavior.observe_batch(script.events[:-2])
    memory.behavior.observe_batch(worked("s0", 1).events)
    memory.behavior.finalize("s0")
    for number in range(5):
        assert (
            memory.behavior.subtask_done("s1", WorkUnit("native", ("spec", f"t{number}"))) is None
        )
    sixth = memory.behavior.subtask_done("s1", WorkUnit("native", ("spec", "t6"), "the sixth"))
    assert FIX in [each.draft.content for each in sixth.promoted]
    (learned,) = [each for each in memory.memories.list() if each.type == "error_pattern"]
    assert learned.work_unit.label == "the sixth"
    memory.behavior.observe_batch(script.events)
    last = memory.behavior.finalize("s1")
    assert FIX not in [each.draft.content for each in last.promoted]
    assert memory.behavior.failures()[0].sessions == 2


def test_a_piece_of_work_that_ended_is_remembered(memory):
    memory.behavior.observe_batch(worked("s1").events)
    context = ExecutionContext("s1", epic="3", story="7")
    added = memory.behavior.work_unit_done(
        "bmad",
        context,
        WorkUnitResult("success", "Cards can be saved", ("src/pay/card.py",), steps=12),
    )
    assert added.memory.content == "Epic 3 / Story 7 was finished: Cards can be saved."
    assert (added.memory.type, added.memory.methodology) == ("work_unit_outcome", "bmad")


def test_what_a_session_leaves_unfinished_is_there_for_the_next_until_it_is_done(memory):
    def session(session_id: str, number: int, *steps: tuple[str, str]) -> Script:
        script = Script(session_id, 1_760_000_000_000 + number * DAY * 1000).prompt(
            "Save cards for later."
        )
        script.edit("src/pay/card.py").run(
            "git commit -m 'a'", f"[fix/cards {number}a2b3c4] a\n 1 file changed"
        )
        todos = [{"content": text, "status": status} for text, status in steps]
        return script.tool("TodoWrite", todos=todos).green().end()

    finalize(memory, session("s1", 1, ("schema", "completed"), ("write the migration", "pending")))
    (left,) = memory.memories.list(type="work_state")
    assert left.content == (
        "Left unfinished on branch `fix/cards`: 1 of 2 steps; next is “write the migration”."
        " The task was: “Save cards for later.”"
    )
    assert left.data["remaining"] == ["write the migration"]
    finalize(
        memory, session("s2", 2, ("write the migration", "completed"), ("document it", "pending"))
    )
    (left,) = memory.memories.list(type="work_state")
    assert left.data["remaining"] == ["document it"]
    told = memory.moments.first_message("s3", "go on with fix/cards")
    assert "document it" in told.text
    finalize(memory, session("s4", 4, ("document it", "completed")))
    assert list(memory.memories.list(type="work_state")) == []


def test_a_person_who_confirmed_what_is_left_is_not_overruled(memory):
    kept = memory.behavior.keep_work_state(
        "s1", "- [x] schema\n- [ ] migration\nNext: write the migration"
    )
    memory.memories.accept(kept.memory.id)
    again = memory.behavior.keep_work_state(
        "s1", "- [x] migration\n- [ ] write the documentation of it"
    )
    assert again.outcome == "added"
    assert len(memory.memories.list(type="work_state")) == 2
    assert memory.behavior.keep_work_state("s1", "All is done.") is None


def test_a_report_of_quality_becomes_memories_of_its_issues(memory):
    report = "## QA\n- Issue: `src/pay/card.py` accepts an expired card\n- Note: looks nice\n"
    report += "FAILED tests/a.py::test_x - ValueError: no"
    added = memory.behavior.qa_report(report, session_id="s1").added
    assert sorted(contents(each.memory for each in added)) == [
        "Found by quality assurance: The test `tests/a.py::test_x` failed (output said: "
        "`ValueError: no`).",
        "Found by quality assurance: `src/pay/card.py` accepts an expired card.",
    ]
    assert {each.memory.source for each in added} == {"qa_auto"}


def test_plans_are_scaled_constrained_and_widened_by_what_is_known(memory):
    for number in range(3):
        script = worked(f"s{number}", number)
        script.events = script.events[:-3]
        for count in (2, 4):
            script.tool(
                "TodoWrite", todos=[{"content": f"{number}.{item}"} for item in range(count)]
            )
        finalize(memory, script.green().end())
    plan = memory.behavior.planner_context(["mail"], "change the mail queue")
    assert (plan.factor, plan.scaled(10)) == (2.0, 20)
    assert "src/mail/rules.py" in plan.further_files
    assert memory.behavior.step_limit(50, "mail") == 100
    files = memory.behavior.coder_files(["mail"], lambda path: f"text of {path}")
    assert [each.path for each in files] == ["src/mail/queue.py", "src/mail/rules.py"]
    assert "npm: command not found" in memory.behavior.qa_context()


def test_a_module_is_meant_by_the_last_part_of_its_name(memory):
    for number in range(3):
        script = Script(f"s{number}", 1_760_000_000_000 + number * DAY * 1000)
        script.edit("src/shop/mail/queue.py").edit("src/shop/api/rules.py")
        for count in (2, 4):
            script.tool(
                "TodoWrite", todos=[{"content": f"{number}.{item}"} for item in range(count)]
            )
        finalize(memory, script.green().end())
    behavior = memory.behavior
    assert behavior.planner_context(["mail"]) == behavior.planner_context(["shop/mail"])
    assert behavior.planner_context(["mail"]).further_files == ("src/shop/api/rules.py",)
    assert behavior.step_limit(50, "mail") == behavior.step_limit(50, "shop.mail") == 100
    assert behavior.step_limit(50, "ail") == 50


def test_a_recipe_that_begins_with_a_file_belongs_to_that_file_and_its_module(memory):
    """1. three sessions edit a schema and run the same two commands; 2. the recipe is planned with
    where it applies, and nowhere else; 3. once confirmed, it is told before that file changes.
    """
    for number in range(3):
        script = Script(f"s{number}", 1_760_000_000_000 + number * DAY * 1000)
        script.edit("src/api/schema.py").run("make proto").run("make client")
        finalize(memory, script.green().end())
    (recipe,) = memory.memories.list(type="workflow_recipe")
    assert recipe.files == ("src/api/schema.py",)
    task = "run the ranking of words, then of sessions"
    assert "make proto" in memory.behavior.planner_context(["api"], "add a field").text
    assert "make proto" not in memory.behavior.planner_context(["search"], task).text
    memory.memories.accept(recipe.id)
    edit = {"file_path": "src/api/schema.py"}
    assert "make proto" in memory.moments.before_tool("s9", "Edit", edit).text
    assert memory.moments.after_tool("s8", "Read", edit, "x = 1") is None


def test_what_a_report_says_and_is_not_understood_is_told(memory):
    report = "- src/pay/card.py:4 - the limit is ignored\n- The login page feels slow on a phone"
    result = memory.behavior.qa_report(report, session_id="s1")
    assert contents(each.memory for each in result.added) == [
        "Found by quality assurance: the limit is ignored (`src/pay/card.py:4`)."
    ]
    assert (result.unread_count, result.unread_lines) == (
        1,
        ("- The login page feels slow on a phone",),
    )
    many = "\n".join(f"src/a{number}.py:1: wrong {number}" for number in range(33))
    result = memory.behavior.qa_report(many, session_id="s2")
    assert (len(result.added), result.left_out_count) == (30, 3)


def add(memory, content, type, **fields):
    return memory.memories.add(content, type=type, session_id="s1", **fields).memory


def test_what_holds_for_the_whole_project_is_told_to_the_tester_of_a_module(memory):
    add(memory, "The cookie banner covers the buy button.", "e2e_observation")
    add(memory, "`make seed` fails without a database.", "error_pattern")
    add(memory, "The tax of `src/tax/rate.py` is cached.", "error_pattern", modules=["shop/tax"])
    for told in (
        memory.behavior.qa_context(["shop/billing"]),
        memory.moments.for_qa(["shop/billing"], session_id="q"),
    ):
        assert "cookie banner" in told
        assert "make seed" in told
        assert "tax" not in told


@pytest.mark.parametrize("asked", ["shop/billing", "Shop.Billing", "src/shop/billing/tax.py"])
def test_a_module_is_known_by_a_path_below_it_a_dotted_name_and_any_case(memory, asked):
    add(memory, "The tax rate is cached for a day.", "error_pattern", modules=["shop/billing"])
    add(memory, "A cron job ran twice.", "dead_end", modules=["shop/billing"])
    assert "tax rate" in memory.moments.for_qa([asked], session_id="q")
    assert "cron job" in memory.moments.for_planner([asked], "x", session_id="p").text


def test_stale_and_very_unsure_memories_are_no_constraints(memory):
    tried = {"approach_tried": "a cron job", "why_it_failed": "it ran twice"}
    kept = add(memory, "A cron job ran twice.", "dead_end", modules=["queue"], data=tried)
    stale = add(memory, "Redis streams lost entries here.", "dead_end", modules=["queue"])
    memory.memories.mark_stale(stale.id, "the file is gone")
    new = {"by": "system", "source": "observer_inferred", "confidence": 0.2}
    guess = {"approach_tried": "one worker", "why_it_failed": "too slow"}
    add(
        memory,
        "Perhaps one worker was too slow for the queue.",
        "dead_end",
        modules=["queue"],
        evidence=["src/q.py:1"],
        data=guess,
        **new,
    )
    for plan in (
        memory.behavior.planner_context(["queue"]),
        memory.moments.for_planner(["queue"], "x", session_id="p"),
    ):
        assert plan.constraints == ("Not again: a cron job (it ran twice)",)
        assert [each.id for each in plan.memories] == [kept.id]
        assert "streams" not in plan.text
        assert "one worker" not in plan.text


def test_a_plan_is_not_widened_by_files_that_are_only_read(memory):
    for reason, dependent in (("imports", "src/a/base.py"), ("changed together", "src/a/api.py")):
        data = {"trigger_file": "src/a/x.py", "dependent_files": [dependent], "reason": reason}
        words = f"`src/a/x.py` goes with `{dependent}`, as was seen."
        add(memory, words, "causal_dependency", modules=["a"], data=data)
    plan = memory.behavior.planner_context(["a"])
    assert plan.further_files == ("src/a/api.py",)
    assert "base.py" not in plan.text


def test_files_that_memories_warn_of_are_not_read_ahead(memory):
    for number in range(3):
        finalize(memory, worked(f"s{number}", number).end())
    assert len(memory.behavior.coder_files(["mail"], lambda path: "x")) == 2
    add(memory, "Reading it takes 21,000 tokens.", "context_cost", files=["src/mail/rules.py"])
    symptom = {"symptom": "src/mail/queue.py is read and left"}
    add(memory, "`src/mail/queue.py` is opened by mistake.", "gotcha",
        files=["src/mail/queue.py"], data=symptom)  # fmt: skip
    assert memory.behavior.coder_files(["mail"], lambda path: "x") == []


def test_what_cannot_be_is_refused_with_what_is_allowed(memory):
    with pytest.raises(NotFoundError):
        memory.behavior.session("nobody")
    with pytest.raises(InvalidInputError):
        memory.behavior.finalize("s1", "great")
    assert memory.behavior.finalize("nobody") is None
    memory.behavior.observe(Script("").edit("x.py").events[0])
    assert memory.behavior.sessions() == []


def test_a_stated_type_and_outcome_hold(memory):
    memory.behavior.observe_batch(worked("s1").events)
    memory.behavior.state_type("s1", "changelog")
    done = memory.behavior.finalize("s1")
    assert (done.type, done.promoted) == ("changelog", ())


def test_a_store_that_cannot_be_written_to_does_not_stop_the_agent(memory):
    script = worked("s1")
    really = memory._rooms.database.write

    def locked(*given, **named):
        raise BusyError("locked by somebody")

    memory._rooms.database.write = locked
    for event in script.events:
        memory.behavior.observe(event)
    memory._rooms.database.write = really
    memory.behavior.checkpoint("s1")
    assert memory.behavior.session("s1").events == len(script.events)
    assert memory.behavior.finalize("s1").outcome == "tested"


def test_closing_keeps_what_was_only_in_memory(place, memory):
    other = place.open(**OFF)
    for event in worked("s1").events[:4]:
        other.behavior.observe(event)
    other.close()
    assert memory.behavior.session("s1").events == 4


def test_a_session_without_an_edit_says_so_once(memory):
    for event in Script("s9").prompt("Why?").read("x.py").end().events:
        memory.behavior.observe(event)
    why = memory.behavior.finalize("s9").why
    assert why == "no edited file is known"
