"""Replies as models really write them become drafts, or are refused; nothing breaks the reading."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smara.errors import BadReplyError
from smara.observations.models import Extractor, ObservationDraft
from smara.observations.reply.parse import parse_reply
from tests.unit.observations.replies import (
    GOOD,
    at,
    conversation,
    message,
    minute,
    notes_of,
    only_note,
    reading,
)

TEXTS = {"type": "array", "items": {"type": "string"}}


def test_well_formed_reply_is_read_whole():
    draft = parse_reply(GOOD, reading(wants_title=True))
    assert [
        (note.priority, note.category, minute(note), note.first_seq, note.last_seq)
        for note in draft.notes
    ] == [
        ("high", "statement", "2025-12-04 09:15", 1, 1),
        ("medium", "request", "2025-12-04 09:15", 1, 1),
        ("medium", "test", "2025-12-04 09:16", 2, 3),
        ("high", "completion", "2025-12-04 14:05", 4, 4),
        ("high", "change", "2025-12-05 09:00", 5, 5),
    ]
    assert draft.notes[2].details == ("TypeError: user.id is undefined at src/auth/login.ts:45",)
    assert (draft.notes[2].files, draft.notes[2].lines) == (("src/auth/login.ts",), (45,))
    assert draft.notes[4].text == "User is switching from Express to Fastify."
    assert draft.notes[4].refers_to == "2025-12-05"
    assert draft.current_task == "Primary: switch from Express to Fastify\nSecondary: none"
    assert (draft.thread_title, draft.suggested_response, draft.warnings) == (
        "Login bug and Fastify",
        None,
        (),
    )


# marks, bullets, times


@pytest.mark.parametrize(
    "line",
    [
        "* 🔴 (09:15) User said hello",
        "- 🔴 (09:15) User said hello",
        "• 🔴 (09:15) User said hello",
        "1. 🔴 (09:15) User said hello",
        "1) 🔴 (09:15) User said hello",
        "🔴 (09:15) User said hello",
        "* (09:15) 🔴 User said hello",
        "* 09:15 🔴 User said hello",
        "* **🔴 (09:15)** User said hello",
        "* 🔴 **(09:15)** User said **hello**",
        "*🔴 (09:15) User said hello",
        "•🔴 (09:15) User said hello",
        "* 🔴(09:15)User said hello",
        "* 🔴 (9:15 AM) User said hello",
        "* 🔴 09:15 - User said hello",
        "* 🔴 [09:15] User said hello",
        "* 🔴 (2025-12-04 09:15) User said hello",
        "* 🔴️ (09:15): User said hello",
        "* [HIGH] (09:15) User said hello",
        "* High: (09:15) User said hello",
        "* 🚨 (09:15) User said hello",
        "* ❗ (09:15) User said hello",
        "\t* 🔴 (09:15) User said hello",
        "* 🔴 (09:15)  User   said  hello  ",
        "* 🔴 (09:15) User said&nbsp;hello",
        "> * 🔴 (09:15) User said hello",
    ],
)
def test_high_line_in_any_dress_is_the_same_note(line):
    note = only_note(line)
    assert (note.priority, note.text, minute(note)) == (
        "high",
        "User said hello",
        "2025-12-04 09:15",
    )


@pytest.mark.parametrize(
    ("mark", "priority"),
    [
        ("🔴", "high"),
        ("🟥", "high"),
        ("⚠️", "high"),
        ("🟡", "medium"),
        ("🟠", "medium"),
        ("🟨", "medium"),
        ("🟢", "low"),
        ("🔵", "low"),
        ("⚪", "low"),
        ("", "medium"),
        ("[low]", "low"),
        ("Medium:", "medium"),
    ],
)
def test_other_marks_have_a_priority_and_no_mark_is_medium(mark, priority):
    assert only_note(f"* {mark} (09:15) User said hello").priority == priority


@pytest.mark.parametrize(
    ("line", "priority"),
    [
        ("* ✅ (14:05) Login works", "high"),
        ("* 🟡 (14:05) ✅ Login works", "medium"),
        ("* 🟡 ✅ (14:05) Login works", "medium"),
        ("* 🟡 (14:05) Login works ✅", "medium"),
        ("* (14:05) ✔️ Login works", "high"),
    ],
)
def test_completion_mark_counts_wherever_it_stands(line, priority):
    note = only_note(line)
    assert (note.category, note.priority, note.text) == ("completion", priority, "Login works")


@pytest.mark.parametrize(
    "details",
    [
        "  * -> ran npm test\n  * -> read a.py",
        "  - ran npm test\n  - read a.py",
        "\t-> ran npm test\n\t-> read a.py",
        "* -> ran npm test\n* -> read a.py",
        "    • ran npm test\n    • read a.py",
        "   → ran npm test\n   → read a.py",
        "  1. ran npm test\n  2. read a.py",
        "  ↳ ran npm test\n  ↳ read a.py",
    ],
)
def test_indented_lines_are_details_of_the_line_above(details):
    note = only_note(f"* 🟡 (09:16) Agent debugged the login\n{details}")
    assert note.details == ("ran npm test", "read a.py")
    assert note.files == ("a.py",)


def test_indented_line_with_a_time_of_its_own_is_a_note_of_its_own():
    assert [
        note.text for note in notes_of("* 🟡 (09:15) one thing\n  * 🟢 (09:16) another thing")
    ] == [
        "one thing",
        "another thing",
    ]


def test_wrapped_line_is_joined_to_the_line_above():
    note = only_note(
        "* 🟡 (09:15) User asked to fix the login\n  bug in src/auth/login.ts\nbefore Friday"
    )
    assert note.text == "User asked to fix the login bug in src/auth/login.ts before Friday"


def test_plain_paragraphs_inside_the_tag_are_notes():
    assert [
        note.category for note in notes_of("User asked to fix it\n\nAgent ran npm install")
    ] == [
        "request",
        "command",
    ]


def test_words_before_the_first_line_are_no_note():
    assert [
        note.text for note in notes_of("Here are the observations:\n* 🟡 (09:15) one thing")
    ] == ["one thing"]


def test_lines_without_the_tag_are_taken_when_they_cannot_be_anything_else():
    text = (
        "Sure, I noted:\n- hello\n* 🔴 (09:15) User said hello\n- User asked to fix it\nUser: "
        "hi\nThat is all."
    )
    assert [note.text for note in parse_reply(text, reading()).notes] == [
        "User said hello",
        "User asked to fix it",
    ]


def test_bold_is_taken_away_but_stars_that_mean_something_stay():
    note = only_note(
        "* 🟡 (09:15) Agent **moved** `src/**/*.ts`, 2**10 and __init__.py; **kwargs stay"
    )
    assert note.text == "Agent moved `src/**/*.ts`, 2**10 and __init__.py; **kwargs stay"


def test_line_said_twice_is_one_note():
    assert (
        len(
            notes_of(
                "* 🟡 (09:15) Agent ran npm test\n* 🟢 (09:15) Agent ran npm test.\n* 🟡 (09:16) "
                "Agent ran npm test"
            )
        )
        == 2
    )


def test_known_line_is_not_noted_again():
    known = "Date: 2025-12-04 (Thu)\n* 🔴 (09:15) User said they use TypeScript"
    draft = parse_reply(GOOD, reading(known=known))
    assert "User said they use TypeScript" not in [note.text for note in draft.notes]
    assert len(draft.notes) == 4


@pytest.mark.parametrize(
    "topic",
    ["**Login feature**", "**Login feature:**", "### Login", "* Login feature:", "Login feature:"],
)
def test_line_that_only_names_a_topic_is_no_note(topic):
    notes = notes_of(f"{topic}\n* 🟡 (09:15) one thing\n\n{topic}\n  * 🟡 (09:16) another thing")
    assert [note.text for note in notes] == ["one thing", "another thing"]


def test_remark_behind_a_gap_is_not_taken_for_the_end_of_a_note():
    assert [
        note.text for note in notes_of("* 🟡 (09:15) one thing\n\nLet me know what else you need!")
    ] == ["one thing"]


def test_reply_that_only_repeats_what_is_known_is_empty():
    known = "* 🟡 (09:15) User said hello"
    with pytest.raises(BadReplyError) as caught:
        notes_of("* 🔴 (09:15) User said hello", known=known)
    assert (caught.value.reason, "known" in caught.value.hint) == ("empty", True)


# times and dates


@pytest.mark.parametrize(
    "line",
    [
        "* 🟡 (14:05) #4 Agent ran it",
        "* #4: (14:05) 🟡 Agent ran it",
        "* 🟡 (14:05) [#4] Agent ran it",
    ],
)
def test_message_is_cited_in_several_ways(line):
    note = only_note(line)
    assert (note.text, note.first_seq) == ("Agent ran it", 4)


def test_number_that_is_part_of_the_text_is_no_citation():
    assert only_note("* 🟡 (14:05) #4 is the issue to close").text == "#4 is the issue to close"


def test_heading_may_say_what_the_day_was_about():
    notes = notes_of(
        "Date: Dec 4, 2025 — login\n* 🟡 (14:05) one thing\nDate: 2025-12-05: Fastify\n* another "
        "thing"
    )
    assert [minute(note)[:10] for note in notes] == ["2025-12-04", "2025-12-05"]


def test_missing_date_heading_is_found_from_the_messages_own_times():
    notes = notes_of("* 🟡 (09:15) one thing\n* 🟡 (14:05) two things\n* 🟡 (09:00) three things")
    assert [minute(note) for note in notes] == [
        "2025-12-04 09:15",
        "2025-12-04 14:05",
        "2025-12-05 09:00",
    ]
    assert [(note.first_seq, note.last_seq) for note in notes] == [(1, 1), (4, 4), (5, 5)]


@pytest.mark.parametrize("heading", ["Date: 2024-12-04", "Date: 2025-04-12", "Date: 2031-03-10"])
def test_date_that_no_message_has_is_mended_by_the_time(heading):
    assert minute(only_note(f"{heading}\n* 🟡 (14:05) one thing")) == "2025-12-04 14:05"


def test_time_that_no_message_has_is_put_among_them():
    assert minute(only_note("Date: 2025-12-04\n* 🟡 (11:00) one thing")) == "2025-12-04 11:00"
    assert minute(only_note("Date: 2025-12-04\n* 🟡 (03:00) one thing")) == "2025-12-04 09:15"
    assert minute(only_note("Date: 2025-12-05\n* 🟡 (23:00) one thing")) == "2025-12-05 09:00"


def test_line_without_a_time_has_the_time_of_the_line_before():
    notes = notes_of(
        "* one thing\nDate: 2025-12-04\n* 🟡 (14:05) two things\n* three things\nDate: "
        "2025-12-05\n* four things"
    )
    assert [minute(note)[5:] for note in notes] == [
        "12-04 09:15",
        "12-04 14:05",
        "12-04 14:05",
        "12-05 09:00",
    ]


def test_cited_messages_decide_over_a_wrong_time():
    note = only_note("Date: 2025-12-05\n* 🟡 (23:59 #2-3) one thing")
    assert (minute(note), note.first_seq, note.last_seq) == ("2025-12-04 09:16", 2, 3)


def test_citation_beyond_the_messages_is_cut_to_them_or_ignored():
    assert (
        only_note("* 🟡 (09:00 #4-99) x y z").first_seq,
        only_note("* 🟡 (09:00 #4-99) x y z").last_seq,
    ) == (4, 5)
    assert only_note("* 🟡 (14:05 #77) x y z").first_seq == 4


def test_times_are_read_in_the_recorded_zone():
    note = only_note("Date: 2025-12-04\n* 🟡 (10:15) one thing", zone="Europe/Oslo")
    assert (minute(note), note.first_seq) == ("2025-12-04 09:15", 1)


def test_range_of_times_covers_every_message_in_it():
    note = only_note("Date: 2025-12-04\n* 🟡 (09:15-14:05) one thing")
    assert (note.first_seq, note.last_seq, minute(note)) == (1, 4, "2025-12-04 09:15")


@pytest.mark.parametrize(
    ("end", "refers_to", "text"),
    [
        ("(meaning Dec 8, 2025)", "2025-12-08", "User is away"),
        ("(meaning 2025-12-08..2025-12-14).", "2025-12-08..2025-12-14", "User is away"),
        ("(estimated 2025-12-08)", "2025-12-08", "User is away"),
        ("(meaning/estimated Dec 8)", "2025-12-08", "User is away"),
        ("[meaning December 2025]", "2025-12-01..2025-12-31", "User is away"),
        ("(meaning next week)", "2025-12-08..2025-12-14", "User is away"),
        ("(meaning soon)", None, "User is away (meaning soon)"),
        ("(meaning 2025-02-31)", None, "User is away (meaning 2025-02-31)"),
    ],
)
def test_second_time_is_kept_only_when_it_is_a_date(end, refers_to, text):
    note = only_note(f"* 🔴 (09:15) User is away {end}")
    assert (note.refers_to, note.text) == (refers_to, text)


def test_conversation_without_messages_is_read_too():
    assert notes_of("* 🟡 (09:15) one thing", messages=[])[0].said_at >= 0


def test_clock_that_was_set_back_by_an_hour_does_not_confuse_the_times():
    messages = [message(1, "a", when="2025-10-26 00:30"), message(2, "b", when="2025-10-26 01:30")]
    notes = notes_of(
        "Date: 2025-10-26\n* 🟡 (02:30) one\n* 🟡 (02:30 #2) two",
        messages=messages,
        zone="Europe/Oslo",
    )
    assert [note.said_at for note in notes] == [messages[0].created_at, messages[1].created_at]


# what may be kept


@pytest.mark.parametrize(
    "tag",
    [
        "</observations>",
        "<observations>",
        "</current-task>",
        "<system-reminder>",
        "<thread id='1'>",
        "<working-memory>",
    ],
)
def test_text_of_a_note_can_open_or_close_no_block(tag):
    escaped = tag.replace("<", "&lt;").replace(">", "&gt;")
    noted = f"* 🟡 (09:15) User typed {escaped} there\n  * -> and {escaped} here"
    task = f"<current-task>\nfix {escaped} now\n</current-task>"
    draft = parse_reply(f"<observations>\n{noted}\n</observations>\n{task}", reading())
    assert "<" not in draft.notes[0].text + "".join(draft.notes[0].details) + (
        draft.current_task or ""
    )


def test_thread_tags_are_taken_away():
    note = only_note(
        '<thread id="abc">\n* 🟡 (09:15) <thread id="x">User said hello</thread>\n</thread>'
    )
    assert note.text == "User said hello"


def test_title_is_one_line_without_quotes_and_response_only_when_wanted():
    reply = (
        GOOD.replace("Login bug and Fastify", '"**Login bug.**"\nmore')
        + "<suggested-response>Wait.</suggested-response>"
    )
    assert parse_reply(reply, reading(wants_title=True)).thread_title == "Login bug"
    assert parse_reply(reply, reading()).thread_title is None
    assert parse_reply(reply, reading()).suggested_response is None
    assert parse_reply(reply, reading(wants_suggested_response=True)).suggested_response == "Wait."


@pytest.mark.parametrize("empty", ["", "None", "n/a", "-"])
def test_section_that_says_nothing_is_none(empty):
    reply = GOOD.replace("Primary: switch from Express to Fastify\nSecondary: none", empty)
    assert parse_reply(reply, reading()).current_task is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<observations>\n</observations>", "empty"),
        ("<observations></observations><current-task>x</current-task>", "empty"),
        ("I'm sorry, but I can't help with that.", "unparsable"),
        ('{"observations": []}', "unparsable"),
        ("<observations>\n---\n***\n</observations>", "unparsable"),
        ("User: hello\nAssistant: hi there", "unparsable"),
        ("<html><body>502 Bad Gateway</body></html>", "unparsable"),
    ],
)
def test_reply_without_a_note_is_refused_with_its_reason(text, reason):
    with pytest.raises(BadReplyError) as caught:
        parse_reply(text, reading())
    assert caught.value.reason == reason


# anything at all

PIECES = st.sampled_from(
    [
        "<observations>",
        "</observations>",
        "<current-task>",
        "</current-task>",
        "<think>",
        "</think>",
        "<observed-fields>",
        "<thread-title>",
        "\n",
        "* ",
        "- ",
        "  * -> ",
        "🔴",
        "🟡",
        "✅",
        "(09:15)",
        "(9:15 PM #3-",
        "#4)",
        "Date: ",
        "2025-12-04",
        "(meaning ",
        "Dec 5)",
        "**",
        "`",
        "```\n",
        "User asked to ",
        "Agent ran ",
        "src/a.py:4",
        "{",
        "}",
        '"',
        "[",
        "]",
        "&lt;",
        "<thread id=",
        ">",
        "\r\n",
        "\t",
    ]
)
REPLIES = st.lists(
    PIECES | st.text(st.characters(exclude_categories=()), max_size=12), max_size=40
).map("".join)


def attempt(text: str, **wishes) -> ObservationDraft | None:
    try:
        return parse_reply(text, reading(**wishes))
    except BadReplyError:
        return None


@settings(max_examples=400)
@given(REPLIES)
@example("<observations>\n* 🔴 (09:15 #00000000000) x1\n</observations>")
@example("<observations>\n* 🔴 (24:00) x1 (meaning 0000-00-00)\n</observations>")
def test_any_text_is_a_draft_or_a_bad_reply(text):
    draft = attempt(
        text, mode="debugging", wants_title=True, extractors=[Extractor("prices", "x", TEXTS)]
    )
    first, last = at("2025-12-04 09:15"), at("2025-12-05 09:00")
    for note in draft.notes if draft else ():
        assert note.text.strip()
        assert "\n" not in note.text
        assert first <= note.said_at <= last
        assert "<observations" not in note.text.lower()
        assert note.first_seq is None or 1 <= note.first_seq <= (note.last_seq or 0) <= len(
            conversation()
        )


NASTY = [
    "<observations>\n* " + "*" * 5,
    "<think>",
    "<observations>",
    "<thread ",
    "**a",
    "(",
    "(meaning ",
    "🔴",
    "</observations> ",
    "&lt;",
    "[",
    '{"a":',
    "Date: ",
    "* 🔴 (09:15) x\n",
    "* -> y\n",
    "<observed-fields>",
    "User asked ",
    " " * 50,
    "\t",
    "1:1",
    "#1-",
    "`",
    "<",
    "a.b/",
    "9,",
    "-",
]


@pytest.mark.parametrize("piece", NASTY)
def test_huge_reply_of_one_piece_is_read_to_its_end(piece):
    """A reading whose time grew with the square of the length would never come back from these."""
    draft = attempt(
        f"<observations>\n* 🟡 (09:15) first thing\n{piece * (400_000 // len(piece))}",
        mode="debugging",
    )
    assert draft is None or draft.notes[0].text.startswith("first thing")
