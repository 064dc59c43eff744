"""The task at hand, the title, how to go on, and what is known already."""

from __future__ import annotations

from smara.observations.render import render
from tests.unit.observations.offline.talk import Talk, only


def test_the_current_task_is_the_newest_request():
    talk = (
        Talk()
        .user("Add login")
        .agent("Done, login works now.")
        .user("Now add logout")
        .run("make", "")
    )
    assert talk.draft().current_task == "Now add logout"


def test_a_request_that_is_done_waits_for_the_user():
    talk = Talk().user("Add login").run("make", "").agent("All done. Login is now implemented.")
    assert talk.draft().current_task == "Waiting for the user. Last done: Add login"


def test_an_answered_question_does_not_hide_the_request_before_it():
    talk = (
        Talk().user("Add login").run("make", "").user("did you push?").agent("Yes, it is pushed.")
    )
    assert talk.draft().current_task == "Waiting for the user. Last request: Add login"


def test_a_promise_is_not_told_as_done():
    talk = Talk().user("Switch the build from webpack to vite.").agent("Will do.")
    assert talk.draft().current_task == (
        "Waiting for the user. Last request: Switch the build from webpack to vite."
    )


def test_words_that_begin_with_their_label_have_it_once():
    talk = Talk().user("Add a retry.").agent("Done: added the retry in send.py, tests pass.")
    assert only(talk.notes("completion")).text == "Done: added the retry in send.py, tests pass."


def test_requests_are_of_medium_priority_and_rules_of_high():
    talk = Talk().user("Add a retry to send.py.").agent("ok").user("I prefer Jest over Vitest.")
    assert only(talk.notes("request")).priority == "medium"
    assert only(talk.notes("preference")).priority == "high"


def test_a_task_of_before_waits_for_the_user_once_the_agent_has_answered():
    talk = Talk().run("make", "").agent("All done. Login is now implemented.")
    expected = "Waiting for the user. Last request: Add login"
    assert talk.draft(current_task="Add login").current_task == expected
    assert talk.draft(current_task=expected).current_task is None, "it is what it was"
    assert Talk().run("make", "").draft(current_task="Add login").current_task is None


def test_an_open_question_is_the_task():
    assert (
        Talk().user("How does the cache work?").draft().current_task == "How does the cache work?"
    )


def test_messages_without_a_request_say_nothing_of_the_task():
    assert Talk().run("make", "").draft().current_task is None


def test_the_title_is_the_first_request_without_politeness():
    draft = Talk().user("hi").user("Could you please implement the login page? Use Zod.").draft()
    assert draft.thread_title == "implement the login page?"


def test_no_title_is_made_when_none_is_wanted():
    assert Talk().user("Add login").draft(wants_title=False).thread_title is None


def test_a_response_is_suggested_only_when_asked_for():
    talk = Talk().user("Add login").run("make test", "1 failed in 1s", is_error=True)
    assert talk.draft().suggested_response is None
    assert (
        talk.draft(wants_suggested_response=True).suggested_response
        == "First mend: make test failed: 1 failed in 1s"
    )


def test_without_a_failure_the_suggestion_is_to_go_on():
    draft = Talk().user("Add login").run("make", "").draft(wants_suggested_response=True)
    assert draft.suggested_response == "Continue with: Add login"


def test_what_is_known_is_not_written_again():
    talk = Talk().user("I prefer tabs over spaces").user("Add login").run("make build", "")
    known = render(talk.notes(), "UTC")
    assert talk.notes(known=known) == []


def test_another_number_is_news():
    known = "* 🔴 (09:15) User said: The limit of the export is 100 rows for each user"
    assert (
        len(Talk().user("The limit of the export is 200 rows for each user").notes(known=known))
        == 1
    )


def test_the_same_is_said_once_in_one_draft():
    assert only(
        Talk().user("We use PostgreSQL 16.").user("We use PostgreSQL 16.").notes("preference")
    )
