"""Plans and unfinished work: what an agent's list of steps says, whichever tool it keeps it
with.
"""

from __future__ import annotations

from smara.behavior import work_state
from smara.behavior.methodology import NATIVE
from smara.behavior.signals import step_overrun
from tests.agent_events import Script


def listed(script: Script, *items: tuple[str, str]) -> Script:
    return script.tool(
        "TodoWrite", todos=[{"content": text, "status": status} for text, status in items]
    )


def made(script: Script, number: int, text: str) -> Script:
    return script.tool(
        "TaskCreate", f"Task #{number} created successfully: {text}", subject=text, description="…"
    )


def changed(script: Script, number: int, status: str) -> Script:
    return script.tool(
        "TaskUpdate", f"Updated task #{number} status", taskId=str(number), status=status
    )


def state(script: Script) -> dict[str, object]:
    return work_state.state_of(script.pads()[0], NATIVE)


def test_a_list_that_is_written_anew_says_what_is_done_and_left():
    script = listed(
        Script(), ("write the schema", "in_progress"), ("write the migration", "pending")
    )
    script.edit("src/db/schema.py")
    listed(script, ("write the schema", "completed"), ("write the migration", "pending"))
    assert state(script) == {
        "done": ["write the schema"],
        "remaining": ["write the migration"],
        "next_step": "write the migration",
        "open_files": ["src/db/schema.py"],
    }


def test_items_that_are_made_one_by_one_are_a_plan_too():
    script = made(made(made(made(Script(), 1, "parse"), 2, "resolve"), 3, "print"), 4, "document")
    changed(changed(changed(script, 1, "completed"), 2, "in_progress"), 3, "deleted")
    assert state(script) == {
        "done": ["parse"],
        "remaining": ["resolve", "document"],
        "next_step": "resolve",
    }


def test_a_plan_of_which_nothing_was_begun_or_all_was_done_leaves_nothing():
    assert state(made(Script(), 1, "parse")) == {}
    assert state(changed(made(made(Script(), 1, "parse"), 2, "print"), 1, "in_progress")) == {}
    assert state(changed(made(Script(), 1, "parse"), 1, "completed")) == {}
    assert state(Script().edit("a.py")) == {}


def test_a_last_step_without_its_tick_and_a_list_the_talk_has_left_are_not_unfinished():
    assert state(listed(Script(), ("parse", "completed"), ("run the tests", "in_progress"))) == {}
    script = listed(Script().prompt("Parse."), ("parse", "completed"), ("resolve", "pending"))
    assert state(script)["remaining"] == ["resolve"]
    assert state(script.prompt("What is the weather?").say("Fine.")) == {}


def test_items_made_after_work_began_are_growth_and_after_all_was_done_another_plan():
    script = changed(made(made(Script().edit("src/mail/a.py"), 1, "a"), 2, "b"), 1, "in_progress")
    made(made(script, 3, "c"), 4, "d")
    (finding,) = script.findings("step_overrun")
    assert (finding.data["planned"], finding.data["actual"]) == (2, 4)
    for number in (1, 2, 3, 4):
        changed(script, number, "completed")
    made(made(script, 5, "e"), 6, "f")
    (finding,) = script.findings("step_overrun")
    assert (finding.data["planned"], finding.data["actual"]) == (4, 6)
    assert step_overrun.SIGNAL.kind == finding.kind


def test_open_boxes_in_the_last_words_are_left_until_the_person_speaks_again():
    script = Script().say(
        "All green.\n- [x] unit tests\n- [ ] tests on Windows\nNext: ask for a machine"
    )
    assert state(script)["remaining"] == ["tests on Windows"]
    assert state(script)["next_step"] == "ask for a machine"
    assert state(script.prompt("Forget Windows.")) == {}


def test_a_list_from_the_middle_of_the_work_is_not_its_last_words():
    script = Script().say("What it takes:\n- [x] the type\n- [ ] the page needs an update")
    assert state(script.read("docs/page.md"))["remaining"] == ["the page needs an update"]
    assert state(script.edit("docs/page.md")) == {}


def test_a_list_for_whoever_reviews_the_work_is_not_left_by_it():
    assert (
        state(
            Script().say(
                "Summary\n- [x] parse\n\n## Test plan\n- [x] unit\n- [ ] try it on Windows"
            )
        )
        == {}
    )


def test_an_answer_to_a_question_is_no_task():
    script = listed(
        Script().prompt("Save cards for later use").prompt("1"),
        ("one", "completed"),
        ("two", "pending"),
    )
    assert work_state.task_of(script.pads()[0]) == "Save cards for later use"


def test_what_an_editor_puts_before_a_persons_words_is_no_part_of_the_task():
    script = Script().prompt(
        "<ide_opened_file>The user opened a.py</ide_opened_file>\nSave cards for later use"
    )
    assert script.pads()[0].facts.prompt == "Save cards for later use"


def test_the_branch_and_the_files_after_the_last_commit_are_told():
    script = listed(Script().edit("src/a.py"), ("one", "completed"), ("two", "pending"))
    script.run("git commit -m 'one'", "[fix/cards 1a2b3c4] one\n 1 file changed").edit("src/b.py")
    found = state(script)
    assert (found["branch"], found["open_files"]) == ("fix/cards", ["src/b.py"])


def test_secrets_in_a_plan_or_in_last_words_are_not_kept():
    secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
    script = listed(Script(), (f"use {secret}", "in_progress")).say(f"- [ ] rotate {secret}")
    assert secret not in str(script.pads()[0].facts)
