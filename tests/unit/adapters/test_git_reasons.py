"""What of a commit's message is worth remembering, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.adapters.git_history.chains import chains_of, fixes_of
from smara.adapters.git_history.models import PastCommit
from smara.adapters.git_history.reasons import candidate_of
from smara.adapters.git_history.reverts import revert_of
from smara.adapters.git_history.text import read_commit, subject_of
from smara.adapters.git_history.worth import Present, about

DAY = 86_400_000


def commit(message: str, number: int = 1, at_days: float = 0) -> PastCommit:
    return PastCommit(f"{number:040x}", int(at_days * DAY) + 1_700_000_000_000, "ann@example.org", message)


def test_a_wrapped_sentence_is_read_whole_and_trailers_are_not():
    text = read_commit(
        "Fixed #12 -- Kept the lock. (#34)\n\nReleasing it early lets a second writer in, because\nthe file is"
        " written twice.\n\n    some code\n\nThanks to Bob for the report\nand the patch.\nSigned-off-by: Ann"
    )
    assert text.subject == "Kept the lock."
    assert text.sentences == (
        "Releasing it early lets a second writer in, because the file is written twice.",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "subject"),
    [
        ("fix(db)!: keep the lock (#12)", "keep the lock"), ("[web] Keep it", "Keep it"),
        ("JIRA-12: Keep it (#3) (#4)", "Keep it"), ("Refs #1, #2 -- Keep it.", "Keep it."), ("Keep it", "Keep it"),
    ],
)  # fmt: skip
def test_marks_of_trackers_are_no_part_of_the_subject(first, subject):
    assert subject_of(first) == subject


@pytest.mark.parametrize(
    ("message", "type_"),
    [
        ("Open the file in binary mode\n\nText mode breaks on Windows, because line ends are changed there.", "gotcha"),
        ("Read settings at start\n\nIt was decided to read them once, since the disk may be slow.", "decision"),
        ("Pool connections per worker\n\nSharing them must not be: the driver silently mixes answers.", "gotcha"),
    ],
)  # fmt: skip
def test_a_reason_becomes_a_decision_or_a_trap_with_its_words_quoted(message, type_):
    made = candidate_of(commit(message))
    assert made is not None
    assert (made.kind, made.type) == ("reason", type_)
    assert made.content.startswith(message.split("\n")[0])
    assert made.quotes[0][0] == commit(message).sha
    assert message.split("\n\n")[1] in made.quotes[0][1]


@pytest.mark.parametrize(
    "message",
    [
        "Bump urllib3 from 1 to 2\n\nThis is needed because the old version breaks on the new interpreter.",
        "Fix the door\n\nI changed this because I do not like how it broke the other day, sorry.",
        "Clean up the store\n\nThe helper was removed because nobody has called it since the big rewrite of it.",
        "Add tests for the door\n\nOtherwise the door could break again without anybody seeing it at all.",
        "Keep the lock open\n\nThis reverts what abcdef1234 did because it broke all of the other writers.",
        "Keep the lock\n\nSee the ticket, because it says all that there is to say about these locks.",
        "Make the door wider",
        "",
    ],
)
def test_chores_talk_and_half_sentences_are_left_alone(message):
    assert candidate_of(commit(message)) is None


def test_a_sentence_that_leans_on_the_one_before_takes_it_along():
    made = candidate_of(
        commit(
            "Prepare related fields first\n\nObjects were partitioned before their fields were prepared. This caused a"
            " failed assertion on backends that return rows."
        )
    )
    assert made is not None
    assert "Objects were partitioned before" in made.content


def test_a_breaking_change_is_a_decision():
    body = "BREAKING CHANGE: the store must be named, there is no default any more."
    made = candidate_of(commit(f"feat(api)!: name the store\n\n{body}"))
    assert made is not None
    assert (made.kind, made.type) == ("breaking", "decision")
    assert "there is no default any more" in made.content


def test_a_revert_with_a_reason_is_a_dead_end():
    message = 'Reverted "Copied nodes shallowly."\n\nThis reverts commit 903aaa3 because nodes are shared by two trees.'
    made = revert_of(commit(message), set())
    assert made is not None
    assert made.type == "dead_end"
    assert made.data == {
        "approach_tried": "Copied nodes shallowly",
        "why_it_failed": "because nodes are shared by two trees.",
    }
    assert made.content == "Tried and reverted: “Copied nodes shallowly”. Because nodes are shared by two trees."


@pytest.mark.parametrize(
    ("message", "later"),
    [
        ('Revert "Copy nodes"\n\nThis reverts commit 903aaa35f35ddfa33.', set()),
        ('Revert "Copy nodes"\n\nIt broke the build of the whole tree on two platforms.', {"copy nodes"}),
        ('Revert "Revert "Copy nodes""\n\nIt did not break anything at all after looking closely.', set()),
    ],
)
def test_a_revert_without_a_reason_or_that_did_not_last_is_none(message, later):
    assert revert_of(commit(message), later) is None


FIXES = ["Fix rounding of small prices", "Fix rounding of small prices in euros", "Fix crash of the till on holidays"]


def test_a_file_that_is_mended_again_and_again_is_told_once():
    fixes = [commit(message, at, at) for at, message in enumerate(FIXES, 1)]
    others = [commit("Add a thing", 50 + at, at) for at in range(20)]
    found = fixes_of([*fixes, *others])
    assert found == fixes
    (chain,) = chains_of(found, {each.sha: ["src/till.py", "tests/test_till.py"] for each in fixes})
    assert chain.files == ("src/till.py",)
    assert chain.content.startswith("`src/till.py` had to be fixed 3 times within 3 days (until 2023-11-17)")
    assert [sha for sha, _ in chain.quotes] == [each.sha for each in reversed(fixes)]


def test_fixes_that_have_nothing_in_common_or_lie_far_apart_are_no_chain():
    apart = [commit(message, at, at * 20) for at, message in enumerate(FIXES, 1)]
    unlike = [commit(m, at, at) for at, m in enumerate(["Fix the door", "Fix a lamp", "Fix one window"], 1)]
    for fixes in (apart, unlike):
        assert chains_of(fixes, {each.sha: ["src/till.py"] for each in fixes}) == []


def test_where_every_commit_is_a_fix_it_must_say_what_it_mends():
    commits = [commit("Fixed #1 -- Made a thing", at) for at in range(9)]
    named = commit("Fixed #2 -- Mended it\n\nRegression in 0123456789abcdef.", 99)
    assert fixes_of([*commits, named]) == [named]


def test_a_file_that_moved_with_its_folder_is_found_again():
    present = Present(["src/requests/api.py", "lib/a.py", "other/a.py"])
    assert present.find("requests/api.py") == "src/requests/api.py"
    assert present.find("lib/a.py") == "lib/a.py"
    assert present.find("gone.py") is None


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (["docs/a.rst", "tests/test_a.py", "setup.cfg"], "it changed only tests, pages or settings"),
        (["src/gone.py"], "its files are not there any more"),
        ([f"src/{number}.py" for number in range(40)], "it changed more than 20 files at once"),
        (["src/a.py", "docs/a.rst"], None),
    ],
)
def test_what_is_about_no_code_that_is_there_is_left_out_with_the_reason(files, why):
    assert about(files, Present(["src/a.py"]))[1] == why


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
    for message in (line, f"Keep the lock\n\nThis reverts commit {'a1' * 900} so that {line * 3} because {line}."):
        assert len(read_commit(message).subject) <= 400
        assert candidate_of(commit(message)) is None
        revert_of(commit(message), set())


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=400)
    | st.lists(
        st.sampled_from(
            ["Fix", "because", "it", ". ", "\n\n", "Revert", '"x y z ab"', "#1", "!: ", "* ", "```", "a" * 60]
        ),
        max_size=30,
    ).map(" ".join)
)
def test_no_message_is_too_odd(message):
    made = candidate_of(commit(message)) or revert_of(commit(message), set())
    assert made is None or (made.content and len(made.content) < 2_000)
