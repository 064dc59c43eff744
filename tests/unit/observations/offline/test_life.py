"""The general flavor: conversations about life."""

from __future__ import annotations

import pytest

from tests.unit.observations.offline.talk import Talk, only


def test_what_people_tell_of_themselves_is_high_and_near_to_the_words():
    note = only(Talk().user("I have two kids: Emma (12) and Jake (9).").notes(flavor="general"))
    assert (note.category, note.priority) == ("statement", "high")
    assert note.text == "User said: I have two kids: Emma (12) and Jake (9)."


def test_a_fact_and_a_question_in_one_message_are_told_apart():
    notes = Talk().user("I moved to Lyon for work. Can you suggest a gym?").notes(flavor="general")
    assert [note.category for note in notes] == ["request", "change"]
    assert notes[0].priority == "medium"


def test_each_event_with_its_own_date_is_a_line_of_its_own():
    text = "I bought shoes for $120 at SportMart yesterday. My sister is visiting next week."
    notes = Talk().user(text).notes(flavor="general")
    assert [note.refers_to for note in notes] == ["2026-03-10", "2026-03-16..2026-03-22"]


def test_outcomes_and_solved_problems_are_noted_though_nobody_says_i():
    talk = (
        Talk()
        .user("The washing machine stops with error E21, what can I do?")
        .agent("Look at what you can reach.")
    )
    talk.user("It works again! Cleaning the drain filter solved it.").agent("Great news.")
    said = [note.text for note in talk.notes(flavor="general")]
    assert "User said: It works again! Cleaning the drain filter solved it." in said


@pytest.mark.parametrize(
    "words",
    [
        "The landlord raised the rent again.",
        "The vet says the cough is harmless.",
        "The wedding is over, and everybody danced.",
        "The application got rejected.",
    ],
)
def test_what_is_told_of_others_and_of_things_is_noted(words):
    assert only(Talk().user(words).notes(flavor="general")).text.endswith(words)


def test_requests_and_questions_about_life_are_told_apart():
    text = "What does a visa for Japan cost? Please draft a packing list for two weeks."
    notes = Talk().user(text).notes(flavor="general")
    assert [note.category for note in notes] == ["question", "request"]


def test_reactions_are_dropped():
    assert Talk().user("That's so cool! Sounds amazing.").notes(flavor="general") == []


def test_named_speakers_keep_their_names_and_set_no_task():
    talk = (
        Talk()
        .user("Ana: I adopted a dog named Ned.")
        .user("Ben: Great! I tried pottery.")
        .user("Ana: Call me later!")
    )
    draft = talk.draft(flavor="general")
    assert [note.text for note in draft.notes][:2] == [
        "Ana: I adopted a dog named Ned.",
        "Ben: I tried pottery.",
    ]
    assert draft.current_task is None


def test_a_list_of_recommendations_keeps_what_sets_each_apart():
    answer = (
        "Here are hotels in Nice:\n1. **Grand Plaza**: downtown, $180 a night\n2. **Seaside "
        "Inn**: pet-friendly\n"
        "Enjoy your stay!"
    )
    text = (
        Talk()
        .user("Which hotels are there in Nice?")
        .agent(answer)
        .text("answer", flavor="general")
    )
    assert "Grand Plaza: downtown, $180 a night" in text
    assert "Seaside Inn: pet-friendly" in text


def test_numbers_of_an_answer_survive():
    answer = "The new build loads 43.7 % faster and memory fell from 2.8 GB to 940 MB."
    text = Talk().user("How much did it bring?").agent(answer).text(flavor="general")
    assert all(piece in text for piece in ("43.7 %", "2.8 GB", "940 MB"))


def test_the_title_is_the_first_thing_that_was_told():
    talk = Talk().user("Hi! I'm planning a trip to San Francisco in May. Can you help?")
    assert (
        talk.draft(flavor="general").thread_title == "I'm planning a trip to San Francisco in May"
    )
