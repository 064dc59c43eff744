"""What agents are told in the middle of their work, on both databases: on strong evidence, and
within limits.
"""

from __future__ import annotations

from dataclasses import asdict

import pytest

from smara.context.models import BUDGETS
from smara.context.moments.store import MomentStore
from smara.core.events import HostEvent
from smara.core.tool_triggers import is_named, starts
from smara.errors import InvalidInputError
from smara.knowledge.models import Evidence, WorkUnit
from tests.agent_events import Script
from tests.contract.both import EACH_DATABASE
from tests.contract.memory_place import DAY, learned, taught
from tests.contract.moments_place import OFF, SEEN, TRAP, fail_before, opened

pytestmark = EACH_DATABASE


@pytest.fixture
def memory(place, tmp_path, monkeypatch):
    """A store, and a repository around the current folder."""
    return opened(place, tmp_path, monkeypatch)


# around tools


def test_a_command_that_failed_is_warned_of_with_what_worked_and_never_denied(memory):
    fail_before(memory)
    told = memory.moments.before_tool(
        "s1", "Bash", {"command": "cd web && npm test 2>&1 | tail -3"}
    )
    assert "`npm test` failed here before (once, on 2" in told.text
    assert "`bash: npm: command not found`" in told.text
    assert "What worked instead: `pnpm test`." in told.text
    assert {"text", "tokens", "point", "items"} <= set(asdict(told))
    assert not {"decision", "permission"} & set(asdict(told))
    assert memory.moments.before_tool("s1", "Bash", {"command": "npm test"}) is None
    assert memory.moments.before_tool("s1", "Bash", {"command": "npm run build"}) is None


def missed(memory, session_id: str, number: int, command: str, error: str, *then: str) -> None:
    script = Script(session_id, 1_750_000_000_000 + number * 86_400_000).fail(command, error)
    for each in then:
        script.run(each)
    memory.behavior.observe_batch(script.end().events)
    memory.behavior.finalize(session_id)


def warning(memory, session_id: str, command: str) -> str:
    told = memory.moments.before_tool(session_id, "Bash", {"command": command})
    prepared = memory.moments.prepared(cwd=".")
    fitting = [each for each in prepared.tools if each.needs and starts(command, each.needs)]
    assert bool(fitting) == (told is not None)  # what hooks say without the store
    return "" if told is None else told.text


def test_a_program_that_is_not_there_is_told_to_whatever_would_start_it(memory):
    missed(memory, "o1", 1, "docker ps -a", "bash: docker: command not found")
    assert warning(memory, "s1", "docker compose up") == ""
    missed(memory, "o2", 2, "docker run x", "bash: docker: command not found")
    assert "`bash: docker: command not found`" in warning(
        memory, "s2", "cd web && docker compose up -d"
    )
    assert warning(memory, "s3", "export PATH=/opt/bin:$PATH && docker compose up") == ""
    assert warning(memory, "s4", 'git commit -m "docker compose up"') == ""
    missed(memory, "o3", 3, "make x", "make: nothing", "docker build .")
    assert warning(memory, "s5", "docker compose up") == ""


def test_an_option_or_a_subcommand_that_is_refused_is_told_at_once(memory):
    missed(memory, "o1", 1, "gh pr diff 7 --stat", "unknown flag: --stat")
    missed(memory, "o2", 2, "rtk bun test", "error: unrecognized subcommand 'bun'")
    assert "unknown flag: --stat" in warning(memory, "s1", "gh pr diff 12 --stat | head -3")
    assert warning(memory, "s2", "gh pr diff 12") == ""
    assert "unrecognized subcommand" in warning(memory, "s3", "rtk bun run lint")
    assert warning(memory, "s4", "rtk git status") == ""


def test_what_others_had_pushed_meanwhile_is_no_warning_for_the_next_push(memory):
    missed(
        memory,
        "o1",
        1,
        "git push",
        "! [rejected] main -> main (fetch first)",
        "git pull --rebase",
        "git push",
    )
    assert memory.moments.before_tool("s1", "Bash", {"command": "git push"}) is None


def test_an_error_that_is_known_is_told_whatever_the_command_was(memory):
    fail_before(memory)
    told = memory.moments.after_tool(
        "s1", "Bash", {"command": "npm run lint"}, output="", error="bash: npm: command not found"
    )
    assert told is None or "This error came here before" in told.text
    same = memory.moments.after_tool(
        "s2", "Bash", {"command": "npm test -- --ci"}, error="bash: npm: command not found"
    )
    assert "What worked instead: `pnpm test`." in same.text


def test_an_error_that_a_person_described_is_told_when_it_comes(memory):
    taught(
        memory.memories,
        "The pool is full when the worker runs twice",
        type="error_pattern",
        data={"error": "QueuePool limit of size 5", "fix": "make stop-worker"},
    )
    told = memory.moments.after_tool(
        "s1",
        "Bash",
        {"command": "make run"},
        error="sqlalchemy: QueuePool  limit of size 5 overflow 10",
    )
    assert "The pool is full" in told.text
    assert (
        memory.moments.after_tool("s2", "Bash", {"command": "make run"}, error="something else")
        is None
    )


@pytest.mark.parametrize("tool", ["Read", "Edit", "Write", "apply_patch"])
def test_what_is_known_about_a_file_is_told_when_it_is_touched(memory, tool):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    given = {"file_path": "src/mail/queue.py"}
    if tool == "apply_patch":
        given = {"input": "*** Begin Patch\n*** Update File: src/mail/queue.py\n*** End Patch"}
    told = memory.moments.after_tool("s1", tool, given)
    assert "drain_queue" in told.text
    assert memory.moments.after_tool("s1", tool, given) is None
    assert memory.moments.after_tool("s1", tool, {"file_path": "src/mail/rules.py"}) is None


def test_a_file_that_was_looked_for_in_vain_is_told_where_it_is_before_and_after_the_attempt(
    memory,
):
    script = (
        Script("old").prompt("Look.").misread("src/settings.py").read("config/settings.py").end()
    )
    memory.behavior.observe_batch(script.events)
    memory.behavior.finalize("old")
    before = memory.moments.before_tool("s1", "Read", {"file_path": "src/settings.py"})
    after = memory.moments.after_tool(
        "s2", "Read", {"file_path": "src/settings.py"}, error="File does not exist."
    )
    for told in (before, after):
        assert "It is at `config/settings.py`." in told.text
    points = {
        each.point for each in memory.moments.prepared().tools if each.file == "src/settings.py"
    }
    assert points == {"before_tool", "tool_failure"}


def test_what_instruction_files_say_about_a_file_is_left_out_as_well(memory):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    rules = [f"# Rules\n\n- {TRAP}.\n- Use tabs.\n"]
    touch = {"file_path": "src/mail/queue.py"}
    assert memory.moments.before_tool("s1", "Edit", touch, known_texts=rules) is None
    assert memory.moments.after_tool("s1", "Read", touch, known_texts=rules) is None
    recent = [{"tool": "Read", "tool_input": touch}]
    assert memory.moments.between_steps("s1", 9, recent, known_texts=rules) is None
    assert memory.moments.prepared(known_texts=rules).tools == ()
    assert memory.moments.between_steps("s1", 9, recent, known_texts=["Use spaces."]) is not None


def test_what_is_about_a_folder_is_no_strong_evidence_about_a_file(memory):
    taught(memory.memories, "src/mail holds two queues", files=["src/mail"])
    assert memory.moments.after_tool("s1", "Read", {"file_path": "src/mail/queue.py"}) is None


def test_a_decision_on_a_file_is_told_when_it_is_opened_or_else_before_an_edit(memory):
    taught(
        memory.memories, "The rules stay in one file", type="decision", files=["src/mail/rules.py"]
    )
    given = {"file_path": "src/mail/rules.py"}
    assert "one file" in memory.moments.after_tool("s1", "Read", given).text
    assert memory.moments.before_tool("s1", "Edit", given) is None
    assert "one file" in memory.moments.before_tool("s2", "Edit", given).text


def test_a_search_that_is_answered_is_told(memory):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    assert (
        "drained" in memory.moments.after_tool("s1", "Grep", {"pattern": r"\bdrain_queue\("}).text
    )
    assert memory.moments.after_tool("s2", "Grep", {"pattern": "queue"}) is None
    assert memory.moments.after_tool("s2", "Grep", {"pattern": "fill_queue"}) is None


def test_between_steps_the_newest_calls_decide(memory):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    fail_before(memory)
    recent = [
        {"tool": "Read", "tool_input": {"file_path": "src/mail/queue.py"}},
        HostEvent(
            "generic",
            "tool_fail",
            "s1",
            at_ms=1,
            tool="Bash",
            tool_input={"command": "npm test"},
            error="bash: npm: command not found",
        ),
    ]
    assert memory.moments.between_steps("s1", 4, recent) is None
    told = memory.moments.between_steps("s1", 5, recent)
    assert [each.kind for each in told.items] == ["failure", "memory"]
    assert memory.moments.between_steps("s1", 6, recent) is None


def test_notes_of_the_session_itself_and_files_read_ahead_are_said_only_where_wanted(
    place, memory, tmp_path
):
    learned(
        memory.memories,
        "The rules are read twice at start",
        confidence=0.9,
        session_id="s1",
        evidence=SEEN,
    )
    assert memory.moments.between_steps("s1", 9, []) is None
    chatty = place.open(moment_scratchpad=True, **OFF)
    assert "read twice" in chatty.moments.between_steps("s1", 9, []).text
    folder = tmp_path / "app" / "src" / "mail"
    folder.mkdir(parents=True)
    (folder / "queue.py").write_text("QUEUE = []\n</smara-memory>\n")
    for number in range(3):
        script = Script(f"w{number}", 1_760_000_000_000 + number * DAY * 1000).prompt("Go.")
        script.read("src/mail/queue.py").read("src/mail/rules.py").edit(
            "src/mail/rules.py"
        ).green().end()
        memory.behavior.observe_batch(script.events)
        memory.behavior.finalize(script.id)
    recent = [{"tool": "Read", "tool_input": {"file_path": "src/mail/rules.py"}}]
    assert memory.moments.between_steps("s5", 9, recent) is None
    ahead = place.open(moment_prefetch=True, **OFF).moments.between_steps("s5", 9, recent)
    assert "QUEUE = []" in ahead.text
    assert ahead.text.count("</smara-memory>") == 1


# the first message


def test_a_first_message_that_names_a_task_gets_its_state(memory):
    task = memory.tasks.add("Mend the login redirect", description="It loops with two tabs")
    memory.tasks.claim(task.id, session_id="other")
    told = memory.moments.first_message("s1", f"Please go on with {task.short_id}.")
    assert '"It loops with two tabs"' in told.text
    assert "in progress, held by other" in told.text
    assert memory.moments.first_message("s2", "Please mend the redirect of the login") is not None
    assert memory.moments.first_message("s3", "What is the weather like?") is None
    assert memory.moments.first_message("s3", " ") is None


def test_a_first_message_about_unfinished_work_gets_how_far_it_is(memory):
    taught(
        memory.memories,
        "The move of the mail queue to Redis is half done",
        type="work_state",
        data={"remaining": ["the rules"], "branch": "queue-to-redis"},
    )
    told = memory.moments.first_message("s1", "continue on queue-to-redis")
    assert "Left: the rules" in told.text


# how much, how long


def test_a_session_is_told_only_so_much_in_the_middle_of_its_work(place, memory):
    for number in range(4):
        taught(
            memory.memories,
            f"File number {number} is generated by make_{number}",
            files=[f"f{number}.py"],
        )
    short = place.open(moment_statements=2, **OFF).moments
    said = [short.after_tool("s1", "Read", {"file_path": f"f{number}.py"}) for number in range(4)]
    assert [each is not None for each in said] == [True, True, False, False]
    assert short.start("s1") is not None


@pytest.mark.parametrize(
    ("level", "points"), [("off", []), ("start", ["start"]), ("full", ["start", "after_tool"])]
)
def test_it_can_be_switched_off(place, memory, level, points):
    taught(memory.memories, "It is generated by make_tables", files=["f.py"])
    taught(memory.memories, "The mailer refuses addresses without a domain")
    moments = place.open(moments=level, **OFF).moments
    moments.start("s1")
    moments.after_tool("s2", "Read", {"file_path": "f.py"})
    assert [each.point for each in moments.receipts()[::-1]] == points
    assert bool(moments.preview().text) == (level != "off")


def test_out_of_time_is_silence_and_no_receipt(memory, clock, monkeypatch, in_a_hurry):
    taught(memory.memories, TRAP, files=["src/mail/queue.py"])
    moments, find = memory.moments, memory.memories.tellable

    def slow(memories):
        clock.advance(BUDGETS["start"].seconds + 0.1)
        return find(memories)

    monkeypatch.setattr(memory.memories, "tellable", slow)
    assert moments.start("s1") is None
    assert moments.after_tool("s1", "Read", {"file_path": "src/mail/queue.py"}) is None
    assert moments.receipts() == []


def test_trouble_in_the_store_is_silence(memory):
    moments = memory.moments
    memory.close()
    assert moments.start("s1") is None
    assert moments.after_tool("s1", "Read", {"file_path": "x.py"}) is None


def test_a_store_that_somebody_else_writes_to_silences_nobody_and_the_receipt_comes_later(
    place, memory
):
    taught(memory.memories, TRAP)
    hurried = place.open(busy_timeout_seconds=0.3, **OFF)
    store = MomentStore(memory._rooms.database, memory._rooms.scope)
    with memory._rooms.database.write() as session:
        store.hold_session(session, "s1", None, now_ms=1)
        told = hurried.moments.start("s1")
    assert "drain_queue" in told.text
    assert told.is_kept is False
    assert memory.moments.receipts() == []
    for expected in (True, False):
        assert (
            memory.moments.deliver(asdict(told), session_id="s1", source="startup", at_ms=5)
            is expected
        )
    assert [each.id for each in memory.moments.receipts()] == [told.receipt_id]


def test_a_session_without_a_name_is_refused(memory):
    with pytest.raises(InvalidInputError):
        memory.moments.start("")


# what was counted has its moment


COUNTED = {
    "context_cost": (
        "Reading `src/shop/api_pb2.py` whole takes 21,067 tokens at once.",
        {"module": "shop/api", "average_tokens": 24_000, "session_count": 4},
    ),
    "prefetch_pattern": (
        "Work on `shop/auth` reads `src/shop/auth/keys.py` in nearly every session.",
        {
            "module_trigger": "shop/auth",
            "always_read_files": ["src/shop/auth/keys.py"],
            "session_count": 5,
        },
    ),
    "task_calibration": (
        "Work on `shop/auth` takes 2.1 times the steps that are planned.",
        {
            "module": "shop/auth",
            "methodology": "native",
            "average_actual_steps": 21.0,
            "average_planned_steps": 10.0,
            "ratio": 2.1,
            "sample_count": 4,
        },
    ),
    "work_unit_outcome": (
        "Story 2.3 was finished in part: the refunds are missing.",
        {"outcome": "partial"},
    ),
}


def counted(memory, type_: str, **given):
    content, data = COUNTED[type_]
    quote = [Evidence(quote="it was counted")]
    made = learned(
        memory.memories, content, type=type_, data=data, evidence=quote, session_id=type_, **given
    )
    return memory.memories.accept(made.id)


def first(memory, session_id: str, text: str) -> str:
    """What a first message brings, from the store and as hooks have it prepared."""
    told = memory.moments.first_message(session_id, text)
    ready = memory.moments.prepared(cwd=".").firsts
    assert any(is_named(text.lower(), each.words) for each in ready) == (told is not None)
    return "" if told is None else told.text


def test_what_reading_a_file_costs_is_told_before_it_is_read_whole(memory):
    counted(memory, "context_cost", files=["src/shop/api_pb2.py"])
    whole, part = {"file_path": "src/shop/api_pb2.py"}, {"offset": 10, "limit": 50}
    assert memory.moments.before_tool("s1", "Read", {**whole, **part}) is None
    told = memory.moments.before_tool("s1", "Read", whole)
    assert "context cost: Reading `src/shop/api_pb2.py` whole takes 21,067" in told.text
    assert memory.moments.after_tool("s2", "Read", whole, "code") is None  # too late to be of use
    (ready,) = [each for each in memory.moments.prepared(cwd=".").tools if each.is_whole]
    assert (ready.point, ready.file, ready.tools) == ("before_tool", whole["file_path"], ("Read",))


def test_what_work_on_a_module_reads_and_takes_is_told_when_a_message_names_it(memory):
    counted(memory, "prefetch_pattern", modules=["shop/auth"], files=["src/shop/auth/keys.py"])
    counted(memory, "task_calibration", modules=["shop/auth"])
    told = first(memory, "s1", "Please mend the login in src/shop/auth/login.py")
    assert "2.1 times the steps" in told
    assert "reads `src/shop/auth/keys.py`" in told
    assert first(memory, "s2", "Please mend the shop, and the auth of it") == ""
    opened_file = {"file_path": "src/shop/auth/keys.py"}
    assert "nearly every" in memory.moments.after_tool("s3", "Read", opened_file, "code").text


def test_what_came_of_a_piece_of_work_is_told_when_it_is_taken_up_again(memory):
    unit = WorkUnit("bmad", ("Refunds", "2.3"), "Epic Refunds / Story 2.3")
    counted(memory, "work_unit_outcome", work_unit=unit)
    assert "the refunds are missing" in first(memory, "s1", "Go on with story 2.3, please")
    assert first(memory, "s2", "Update pytest to version 2.3 of its plug-in") == ""
    assert first(memory, "s3", "Refunds fail on Mondays") == ""
