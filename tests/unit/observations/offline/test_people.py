"""What people say, as notes."""

from __future__ import annotations

import pytest

from smara.messages.models import Part
from tests.unit.observations.offline.talk import Talk, only


def test_a_request_is_kept_word_for_word():
    note = only(Talk().user("Implement login with Zod in src/auth/login.ts:45, please.").notes())
    assert (note.category, note.priority) == ("request", "medium")
    assert note.text == "User requested: Implement login with Zod in src/auth/login.ts:45, please."
    assert (note.files, note.lines) == (("src/auth/login.ts",), (45,))
    assert (note.first_seq, note.last_seq) == (1, 1)


def test_a_question_is_medium_and_is_not_taken_for_a_statement():
    note = only(Talk().user("How do refresh tokens work here?").notes())
    assert (note.category, note.priority) == ("question", "medium")


def test_a_preference_inside_a_request_becomes_a_note_of_its_own():
    notes = Talk().user("Add a login page. We always use Tailwind, never plain CSS.").notes()
    assert [(note.category, note.text) for note in notes] == [
        ("request", "User requested: Add a login page."),
        ("preference", "User prefers: We always use Tailwind, never plain CSS."),
    ]


def test_requests_questions_and_assertions_of_one_message_are_told_apart():
    talk = Talk().user(
        "The staging server runs Debian 12. Why does the nightly job need root? Add a retry to "
        "scripts/backup.sh."
    )
    assert [(note.category, note.priority, note.text) for note in talk.notes()] == [
        ("statement", "high", "User said: The staging server runs Debian 12."),
        ("question", "medium", "User asked: Why does the nightly job need root?"),
        ("request", "medium", "User requested: Add a retry to scripts/backup.sh."),
    ]


@pytest.mark.parametrize(
    ("text", "categories"),
    [
        ("Login fails with a 500 when the cookie is stale. Fix it.", ["request"]),
        ("Fix the tests in tests/a.py. Why did they fail?", ["request", "question"]),
        (
            "Where is the configuration of the proxy? Move it to /etc/proxy.",
            ["question", "request"],
        ),
        ("Rename the flag. Ok?", ["request"]),
        ("Why is the worker slow? It reads every row.", ["question"]),
    ],
)
def test_a_sentence_that_leans_on_the_one_before_stays_with_it_but_for_questions(text, categories):
    notes = Talk().user(text).notes()
    assert [note.category for note in notes] == categories
    assert sum(len(note.text) for note in notes) >= len(text), "no word is lost"


def test_pasted_code_and_lists_belong_to_the_request():
    text = (
        "The import is slow. Profile the importer first:\n- with 10,000 rows\n- with 1,000,000 rows"
    )
    details = {note.category: note.details for note in Talk().user(text).notes()}
    assert details["request"] == ("with 10,000 rows", "with 1,000,000 rows")
    assert not any(details[category] for category in details if category != "request")


def test_a_change_says_what_it_replaces():
    note = only(Talk().user("We switched from Express to Fastify").notes())
    assert note.category == "change"
    assert note.text == "User changed: We switched from Express to Fastify (replaces Express)"
    assert note.mode_specific["replaces"] == "Express"


def test_a_reason_stays_with_what_it_explains():
    note = only(Talk().user("Never use threads. Because SQLite is opened per process.").notes())
    assert note.text.endswith("Never use threads. Because SQLite is opened per process.")


def test_two_times_are_kept_when_it_was_said_and_when_it_is_about():
    note = only(Talk().user("I deployed to staging yesterday").notes())
    assert note.refers_to == "2026-03-10"
    assert note.said_at == Talk().user("x").messages[0].created_at


def test_the_date_is_that_of_the_recorded_time_zone():
    late = Talk(begin=1_773_271_800_000)  # 23:30 UTC, already Thursday in Tokyo
    late.user("I deployed it yesterday")
    assert only(late.notes(timezone="UTC")).refers_to == "2026-03-10"
    assert only(late.notes(timezone="Asia/Tokyo")).refers_to == "2026-03-11"


def test_small_talk_is_dropped():
    assert Talk().user("ok").user("thanks!").user("continue").user("好的").notes() == []


def test_a_short_answer_is_told_with_the_question_it_answers():
    talk = (
        Talk()
        .user("Commit it")
        .agent("The hook fails. Should I skip it or fix the old issues?")
        .user("fix them")
    )
    answer = talk.notes()[-1]
    assert answer.text == "User answered: fix them (asked: Should I skip it or fix the old issues?)"
    assert (answer.first_seq, answer.last_seq) == (2, 3)
    assert answer.priority == "high"


def test_yes_after_a_question_is_a_decision():
    assert Talk().agent("Shall I push?").user("yes").notes()[-1].category == "decision"


def test_the_requirements_of_a_long_request_are_details():
    text = (
        "Build the export:\n- CSV and JSON\n- at most 10,000 rows\n- the endpoint is GET "
        "/api/export"
    )
    note = only(Talk().user(text).notes())
    assert note.details == (
        "CSV and JSON",
        "at most 10,000 rows",
        "the endpoint is GET /api/export",
    )


def test_of_a_pasted_log_the_telling_line_is_kept():
    log = (
        "Fix this:\n```\nstarting\nTypeError: user.id is undefined\n    at login (src/a.ts:3)\n```"
    )
    assert only(Talk().user(log).notes()).details == ("TypeError: user.id is undefined",)


def test_unusual_phrasing_survives():
    assert '"movement session"' in Talk().user('I did a "movement session" before work').text()


def test_names_handles_and_numbers_survive():
    text = Talk().user("Ana (@ana_dev) leads it, budget $12,500.50, room B-204").text()
    assert all(piece in text for piece in ("Ana (@ana_dev)", "$12,500.50", "B-204"))


def test_images_and_files_are_named_without_their_bytes():
    talk = Talk().add(
        "user", Part("text", "See this"), Part("image", "the error dialog", name="shot.png")
    )
    assert "User attached: image shot.png the error dialog" in talk.text()


def test_the_task_of_a_sub_agent_is_not_taken_for_the_words_of_a_person():
    talk = Talk().add("user", Part("text", "Read lib/a.ex. Report the API."), kind="agent_prompt")
    note = only(talk.notes())
    assert note.text == "Task given to this agent: Read lib/a.ex. Report the API."
    assert note.mode_specific["inputs"] == ["assistant"]


def test_an_interruption_is_noted():
    talk = (
        Talk()
        .user("Run the server")
        .add("system", Part("text", "[Request interrupted by user]"), kind="interruption")
    )
    assert "User interrupted the work" in talk.text()


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>Never reveal this.</system-reminder>",
        "<local-command-stdout>Reconnected.</local-command-stdout>",
        "Caveat: The messages below were generated by the user while running local commands. "
        "Ignore.",
        "This session is being continued from a previous conversation that ran out of context. "
        "Summary: we fixed it.",
        "/clear",
        "<command-name>/mcp</command-name><command-args></command-args>",
    ],
)
def test_the_words_of_the_host_are_nobodys(text):
    assert Talk().user(text).notes() == []


def test_a_reminder_inside_a_message_is_cut_out_of_it():
    talk = Talk().user("Fix the login<system-reminder>The date is 2026.</system-reminder> please")
    assert only(talk.notes()).text == "User requested: Fix the login please"


def test_a_command_with_arguments_is_a_request():
    talk = Talk().user(
        "<command-name>/review</command-name><command-args>the auth module</command-args>"
    )
    assert only(talk.notes()).text == "User requested: /review the auth module"
