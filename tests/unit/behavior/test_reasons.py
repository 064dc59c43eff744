"""What of a commit's message is worth remembering, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.behavior.commit_reasons import reason_of, revert_of
from smara.commits.message import read_commit, subject_of


def test_a_wrapped_sentence_is_read_whole_and_trailers_are_not():
    text = read_commit(
        "Fixed #12 -- Kept the lock. (#34)\n\nReleasing it early lets a second writer in, "
        "because\nthe file is"
        " written twice.\n\n    some code\n\nThanks to Bob for the report\nand the "
        "patch.\nSigned-off-by: Ann"
    )
    assert text.subject == "Kept the lock."
    assert text.sentences == (
        "Releasing it early lets a second writer in, because the file is written twice.",
    )


@pytest.mark.parametrize(
    ("first", "subject"),
    [
        ("fix(db)!: keep the lock (#12)", "keep the lock"), ("[web] Keep it", "Keep it"),
        ("JIRA-12: Keep it (#3) (#4)", "Keep it"), ("Refs #1, #2 -- Keep it.", "Keep it."),
        ("Keep it", "Keep it"),
    ],
)  # fmt: skip
def test_marks_of_trackers_are_no_part_of_the_subject(first, subject):
    assert subject_of(first) == subject


@pytest.mark.parametrize(
    ("message", "type_"),
    [
        ("Open the file in binary mode\n\nText mode breaks on Windows, because line ends are "
         "changed there.", "gotcha"),
        ("Read settings at start\n\nIt was decided to read them once, since the disk may be slow.",
        "decision"),
        ("Pool connections per worker\n\nSharing them must not be: the driver silently mixes "
         "answers.", "gotcha"),
    ],
)  # fmt: skip
def test_a_reason_becomes_a_decision_or_a_trap_with_its_words_quoted(message, type_):
    made = reason_of(message)
    assert made is not None
    assert (made.kind, made.type) == ("reason", type_)
    assert made.content == ": ".join(message.split("\n\n"))
    assert made.fields == {"cause" if type_ == "gotcha" else "rationale": message.split("\n\n")[1]}


@pytest.mark.parametrize(
    "message",
    [
        "Bump urllib3 from 1 to 2\n\nThis is needed because the old version breaks on the new "
        "interpreter.",
        "Fix the door\n\nI changed this because I do not like how it broke the other day, sorry.",
        "Clean up the store\n\nThe helper was removed because nobody has called it since the big "
        "rewrite of it.",
        "Add tests for the door\n\nOtherwise the door could break again without anybody seeing it "
        "at all.",
        "Keep the lock open\n\nThis reverts what abcdef1234 did because it broke all of the other "
        "writers.",
        "Keep the lock\n\nSee the ticket, because it says all that there is to say about these "
        "locks.",
        "Make the door wider",
        "",
    ],
)
def test_chores_talk_and_half_sentences_are_left_alone(message):
    assert reason_of(message) is None


def test_a_sentence_that_leans_on_the_one_before_takes_it_along():
    made = reason_of(
        "Prepare related fields first\n\nObjects are partitioned before their fields are "
        "prepared. This must not be"
        " done on backends that return rows."
    )
    assert made is not None
    assert made.why.startswith("Objects are partitioned before")


@pytest.mark.parametrize(
    "message",
    [
        "Read the cache once\n\nThe cache was empty because nobody had ever called the function "
        "that fills it.",
        "Show prices in euros\n\nThe page is now read from the table, so the view does not need "
        "to know of rows.",
        "Widen the page\n\nAdds some padding below the list to prevent the text from overflowing "
        "into the footer.",
        "Make the till stop\n\nMake the reader check its input to avoid possible issues in the "
        "future of the shop.",
        "Keep the door shut\n\nThis is safe, since the API of the door does not change and users "
        "are not affected.",
        "Add a limit\n\nSending a large basket currently fails because the body does not fit into "
        "one request.",
        "Count again\n\nBecause the till is restarted at night, the empty basket silently cleared "
        "what others had.",
        "Hold the lock\n\nThe reader does not properly handle two tills, which breaks the sums of "
        "the whole shop.",
        "Move the shop\n\nIn PR #1234 we added a door because the wall does not have one on the "
        "side of the street.",
        "fix: read twice\n\nThat way worked here, but the other still treated it as bad because "
        "it could not read it.",
    ],
)
def test_a_fault_that_is_gone_and_what_is_done_differently_now_are_no_reasons(message):
    assert reason_of(message) is None


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (
            "Pause writes of the log during a checkpoint to prevent messages from being dropped",
            "Pause writes of the log during a checkpoint to prevent messages from being dropped.",
        ),
        (
            "Address review feedback\n\n- High: **Reject refs that start with a dash, so that a "
            "user's branch cannot\n"
            "  become an option of git**\n- Rename x",
            "Reject refs that start with a dash, so that a user's branch cannot become an option "
            "of git.",
        ),
        (
            "Lock the till\\n\\nTwo clerks must not open it at once, as it does not count twice.",
            "Lock the till: Two clerks must not open it at once, as it does not count twice.",
        ),
    ],
)
def test_a_reason_may_stand_in_the_subject_in_an_item_or_after_unexpanded_line_ends(
    message, content
):
    made = reason_of(message)
    assert made is not None
    assert made.content == content


@pytest.mark.parametrize(
    "message",
    [
        "Fix an issue where the door would break when it is opened from the inside by nobody at "
        "all",
        "feat!: update to `http` 1.0\n\nBREAKING CHANGE: Upgrade to `http` 1.0 now.",
        "feat!: rings\n\nBREAKING CHANGE: Problem: the bell rings twice for every letter that "
        "must be brought.",
    ],
)
def test_what_is_mended_or_says_only_what_the_subject_says_is_no_reason(message):
    assert reason_of(message) is None


def test_a_heading_before_a_reason_is_no_part_of_it():
    made = reason_of(
        "Hold the lock\n\nSummary: Releasing it must not happen early because it lets a second "
        "writer in."
    )
    assert made is not None
    assert made.why.startswith("Releasing it must")


def test_what_a_bot_has_quoted_into_a_message_is_not_read():
    body = (
        "> The risk is low,\nbecause the cache must never be shared between the two "
        "workers.\n\nDone."
    )
    assert reason_of(f"Keep two caches in the shop\n\n{body}") is None


def test_a_breaking_change_is_a_decision():
    body = "BREAKING CHANGE: the store must be named, there is no default any more."
    made = reason_of(f"feat(api)!: name the store\n\n{body}")
    assert made is not None
    assert (made.kind, made.type) == ("breaking", "decision")
    assert "there is no default any more" in made.content


def test_a_revert_with_a_reason_is_a_dead_end():
    message = (
        'Reverted "Copied nodes shallowly."\n\nThis reverts commit 903aaa3 because nodes '
        "are shared by two trees."
    )
    made = revert_of(message)
    assert made is not None
    assert made.type == "dead_end"
    assert made.fields == {
        "approach_tried": "Copied nodes shallowly",
        "why_it_failed": "because nodes are shared by two trees.",
    }
    assert (
        made.content
        == "Tried and reverted: “Copied nodes shallowly”. Because nodes are shared by two trees."
    )


@pytest.mark.parametrize(
    ("message", "later"),
    [
        ('Revert "Copy nodes"\n\nThis reverts commit 903aaa35f35ddfa33.', set()),
        (
            'Revert "Copy nodes"\n\nIt broke the build of the whole tree on two platforms.',
            {"copy nodes"},
        ),
        (
            'Revert "Revert "Copy nodes""\n\nIt did not break anything at all after looking '
            "closely.",
            set(),
        ),
    ],
)
def test_a_revert_without_a_reason_or_that_did_not_last_is_none(message, later):
    assert revert_of(message, later) is None


@pytest.mark.parametrize(
    "line",
    [
        "Fixed " + "#1" * 300,
        "Fixed " + "#12, " * 300,
        "(" + "a#1," * 300,
        "[" * 500,
        "Revert " + '"x' * 300,
        "a-" * 400,
    ],
)
def test_a_line_made_to_be_hard_is_read_at_once(line):
    for message in (
        line,
        f"Keep the lock\n\nThis reverts commit {'a1' * 900} so that {line * 3} because {line}.",
    ):
        assert len(read_commit(message).subject) <= 400
        assert reason_of(message) is None
        revert_of(message)


@settings(max_examples=200)
@given(
    st.text(max_size=400)
    | st.lists(
        st.sampled_from(
            [
                "Fix",
                "because",
                "it",
                ". ",
                "\n\n",
                "Revert",
                '"x y z ab"',
                "#1",
                "!: ",
                "* ",
                "```",
                "a" * 60,
            ]
        ),
        max_size=30,
    ).map(" ".join)
)
def test_no_message_is_too_odd(message):
    made = reason_of(message) or revert_of(message)
    assert made is None or (made.content and len(made.content) < 2_000)


@pytest.mark.parametrize(
    "why",
    [
        "In XREADGROUP, because the claim does not propagate entries, counts are inconsistent.",
        "The fetcher has no offline loader, so every failure logged two errors before it was told.",
        "The header drew the count on top of the pager, because the pager does not shrink at all.",
        "The current client does not support the command, because it always asks for a full one.",
        "The copy is 32 bit, but this bug must never be seen, because all flags are below that.",
    ],
)
def test_the_fault_that_a_change_has_ended_is_no_reason(why):
    assert reason_of(f"Keep counts alike on replicas\n\n{why}") is None
