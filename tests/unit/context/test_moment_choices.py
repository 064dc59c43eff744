"""What is chosen for the start of a session, how use is seen, and which arm a session has: pure
arithmetic.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from smara.behavior.habits import KnownFailure
from smara.context.moments.candidates import (
    MOST,
    MOST_UNCONFIRMED,
    MemoryCandidate,
    choose,
    file_names,
    is_telling,
    score,
)
from smara.context.moments.experiment import arm_of, may_say
from smara.context.moments.usage import (
    names_of,
    runs_again,
    seen_in,
    shows_use,
    signs_of_failure,
    signs_of_memory,
)
from smara.core.events import HostEvent
from smara.knowledge.trust import Tellable, Verdict
from tests.unit.context.test_moment_words import memory


def candidate(
    number: int, type_: str = "gotcha", cost: int = 30, nearness: int | None = None, **fields
) -> MemoryCandidate:
    made = memory(
        id=f"{number:04}", type=type_, created_at=number, **{"is_verified": True, **fields}
    )
    return MemoryCandidate(
        Tellable(made, Verdict(True, True, ""), made.confidence), "- x", cost, nearness=nearness
    )


def ids(chosen) -> list[str]:
    return [each.tellable.memory.id for each in chosen]


def test_thirty_traps_do_not_crowd_out_the_one_decision():
    every = [
        *(candidate(number, confidence=0.99) for number in range(30)),
        candidate(99, "decision", confidence=0.7),
    ]
    assert "0099" in ids(choose(every, 400))


def test_what_a_type_does_not_use_goes_to_the_others():
    assert len(choose([candidate(number) for number in range(13)], 400)) == 13


def test_the_choice_keeps_within_its_room_and_number():
    every = [
        candidate(number, ("gotcha", "decision", "pattern")[number % 3]) for number in range(100)
    ]
    assert sum(each.cost for each in choose(every, 500)) <= 500
    assert len(choose(every, 100_000)) == MOST
    unsure = [candidate(number, is_verified=False) for number in range(20)]
    assert len(choose(unsure, 100_000)) == MOST_UNCONFIRMED


def test_the_order_is_by_type_and_age_whatever_the_scores_and_the_order_given():
    every = [
        candidate(3, "gotcha"),
        candidate(1, "decision"),
        candidate(2, "gotcha", confidence=0.99),
        candidate(4, "gotcha", is_verified=False),
    ]
    expected = ["0001", "0002", "0003", "0004"]
    for seed in range(10):
        shuffled = random.Random(seed).sample(every, len(every))
        assert ids(choose(shuffled, 1_000)) == expected


def test_pinned_near_and_used_things_come_first():
    plain = candidate(1)
    assert score(candidate(2, is_pinned=True)) > score(plain)
    assert score(candidate(3, nearness=0)) > score(candidate(3, nearness=1)) > score(plain)
    assert score(candidate(4, verified_uses=3)) > score(plain)
    assert score(candidate(5, is_verified=False)) < score(plain)


def event(kind: str = "tool_post", **fields) -> HostEvent:
    return HostEvent("claude", kind, "s", at_ms=1, **fields)


def bash(command: str, **fields) -> HostEvent:
    return event(tool="Bash", tool_input={"command": command}, **fields)


RECIPE = memory(
    content="Tables are made by `make tables ALL=1`; `drain_queue()` first",
    data={"command": "make"},
)


@pytest.mark.parametrize(
    ("happened", "how"),
    [
        (bash("cd x && make tables ALL=1 | tail"), "ran"),
        (bash("make tables ALL=1", error="no"), ""),
        (bash("make tables"), ""),
        (event("turn_end", text="As m-1a2b says."), "cited"),
        (event("turn_end", text="xm-1a2b9"), ""),
        (event("prompt", prompt="m-1a2b", text="m-1a2b"), ""),
        (
            event(tool="Edit", tool_input={"file_path": "z.py", "new_string": "q.drain_queue()"}),
            "named",
        ),
        (event(tool="Edit", tool_input={"file_path": "z.py", "new_string": "undrain_queue()"}), ""),
        (event(tool="Read", tool_input={"file_path": "/w/src/q.py"}), "opened"),
        (event(tool="Grep", tool_input={"pattern": "x"}, tool_output="m-1a2b drain_queue"), ""),
    ],
)
def test_use_is_seen_in_what_the_agent_does_and_not_in_what_tools_answer(happened, how):
    assert shows_use(signs_of_memory(RECIPE), seen_in(happened)) == how


def test_opening_the_file_that_brought_something_up_is_no_use():
    signs = signs_of_memory(RECIPE, is_about_file=True)
    assert shows_use(signs, seen_in(event(tool="Read", tool_input={"file_path": "src/q.py"}))) == ""


def test_a_warning_is_heeded_by_what_worked_and_ignored_by_the_command_itself():
    failure = KnownFailure(
        "npm test",
        "no npm",
        "Bash",
        occurrences=2,
        sessions=2,
        last_seen_at=0,
        how="command",
        fix="pnpm test",
        files=(),
        fingerprint="ab12",
    )
    signs = signs_of_failure(failure, is_before=True)
    assert shows_use(signs, seen_in(bash("pnpm test"))) == "ran"
    assert runs_again(signs, seen_in(bash("cd x; npm test 2>&1")))
    assert not runs_again(signs, seen_in(bash("npm run build")))
    assert not runs_again(signs_of_failure(failure, is_before=False), seen_in(bash("npm test")))
    moved = signs_of_failure(
        replace(failure, tool="Read", how="path", fix="lib/a.py"), is_before=True
    )
    assert (
        shows_use(moved, seen_in(event(tool="Read", tool_input={"file_path": "/w/lib/a.py"})))
        == "opened"
    )


def test_names_are_what_stands_between_backticks():
    assert names_of("`a` and `refresh_tokens()` in `src dir` or `db.pool`") == [
        "refresh_tokens",
        "db.pool",
    ]


def test_what_is_searched_for_must_be_particular():
    assert [
        is_telling(each)
        for each in ("retry_later", "CartTotal", r"\bfooBar\b", "error", "TODO fix", "a_b")
    ] == [True, True, True, False, False, False]


def test_a_file_is_known_by_its_own_names_and_not_by_its_folders():
    assert file_names("src/mail/q.py", None) == {"src/mail/q.py"}
    assert "src/mail" not in file_names("/w/app/src/mail/q.py", None)


def test_arms_have_their_shares_and_a_session_always_the_same():
    counts = Counter(arm_of(f"session-{number}", "shop") for number in range(10_000))
    assert 400 < counts["control"] < 600
    assert 850 < counts["passive"] < 1_150
    assert arm_of("s", "shop") == arm_of("s", "shop")
    assert {arm_of(str(n), "a") == arm_of(str(n), "b") for n in range(200)} == {True, False}
    assert [may_say("passive", point) for point in ("start", "first_message", "after_tool")] == [
        True,
        True,
        False,
    ]
