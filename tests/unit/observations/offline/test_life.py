"""The general flavor: conversations about life."""

from __future__ import annotations

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


def test_reactions_are_dropped():
    assert Talk().user("That's so cool! Sounds amazing.").notes(flavor="general") == []


def test_named_speakers_keep_their_names_and_set_no_task():
    talk = (
        Talk().user("Ana: I adopted a dog named Ned.").user("Ben: Great! I tried pottery.").user("Ana: Call me later!")
    )
    draft = talk.draft(flavor="general")
    assert [note.text for note in draft.notes][:2] == ["Ana: I adopted a dog named Ned.", "Ben: I tried pottery."]
    assert draft.current_task is None


def test_a_list_of_recommendations_keeps_what_sets_each_apart():
    answer = (
        "Here are hotels in Nice:\n1. **Grand Plaza**: downtown, $180 a night\n2. **Seaside Inn**: pet-friendly\n"
        "Enjoy your stay!"
    )
    text = Talk().user("Which hotels are there in Nice?").agent(answer).text("answer", flavor="general")
    assert "Grand Plaza: downtown, $180 a night" in text
    assert "Seaside Inn: pet-friendly" in text


def test_numbers_of_an_answer_survive():
    answer = "The new build loads 43.7 % faster and memory fell from 2.8 GB to 940 MB."
    text = Talk().user("How much did it bring?").agent(answer).text(flavor="general")
    assert all(piece in text for piece in ("43.7 %", "2.8 GB", "940 MB"))


def test_the_title_is_the_first_thing_that_was_told():
    talk = Talk().user("Hi! I'm planning a trip to San Francisco in May. Can you help?")
    assert talk.draft(flavor="general").thread_title == "I'm planning a trip to San Francisco in May"
