"""What commits tell together: chains of fixes; and which are still about something."""

from __future__ import annotations

import pytest

from smara.adapters.git_history import PastCommit, Present, about, chains_of, fixes_of

DAY = 86_400_000


def commit(message: str, number: int = 1, at_days: float = 0) -> PastCommit:
    return PastCommit(
        f"{number:040x}", int(at_days * DAY) + 1_700_000_000_000, "ann@example.org", message=message
    )


FIXES = [
    "Fix rounding of small prices",
    "Fix rounding of small prices in euros",
    "Fix rounding of huge prices",
]


def test_a_file_that_is_mended_again_and_again_is_told_once():
    fixes = [commit(message, at, at) for at, message in enumerate(FIXES, 1)]
    others = [commit("Add a thing", 50 + at, at) for at in range(20)]
    found = fixes_of([*fixes, *others])
    assert found == fixes
    (chain,) = chains_of(found, {each.sha: ["src/till.py", "tests/test_till.py"] for each in fixes})
    assert chain.files == ("src/till.py",)
    assert chain.content.startswith(
        "`src/till.py` had to be fixed 3 times within 3 days (until 2023-11-17)"
    )
    assert [sha for sha, _ in chain.quotes] == [each.sha for each in reversed(fixes)]


def test_a_fix_that_was_picked_into_other_branches_is_one_fix():
    messages = [FIXES[0], FIXES[2], FIXES[0], FIXES[2]]
    fixes = [commit(message, at, at) for at, message in enumerate(messages, 1)]
    assert chains_of(fixes, {each.sha: ["src/till.py"] for each in fixes}) == []


def test_fixes_that_have_nothing_in_common_or_lie_far_apart_are_no_chain():
    apart = [commit(message, at, at * 20) for at, message in enumerate(FIXES, 1)]
    unlike = [
        commit(m, at, at)
        for at, m in enumerate(["Fix the door", "Fix a lamp", "Fix one window"], 1)
    ]
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
        (
            ["docs/a.rst", "tests/test_a.py", "setup.cfg"],
            "it changed only tests, pages or settings",
        ),
        (["src/gone.py"], "its files are not there any more"),
        ([f"src/{number}.py" for number in range(40)], "it changed more than 20 files at once"),
        (["src/a.py", "docs/a.rst"], None),
    ],
)
def test_what_is_about_no_code_that_is_there_is_left_out_with_the_reason(files, why):
    assert about(files, Present(["src/a.py"]))[1] == why
