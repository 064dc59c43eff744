"""Condensing notes: what goes, what stays, and in which order."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.tokens import EstimatingCounter
from smara.observations.models import Category, Note, Priority, ReflectRequest
from smara.observations.offline import METHOD, OfflineReflector
from tests.unit.observations.offline.talk import FRAME_WORDS, MINUTE, WEDNESDAY, Talk

REFLECTOR = OfflineReflector(EstimatingCounter())
LEVELS = range(5)
KEPT: tuple[Category, ...] = (
    "preference",
    "decision",
    "change",
    "completion",
    "request",
    "blocker",
)


def note(
    text: str,
    category: Category = "statement",
    priority: Priority = "medium",
    minutes: int = 0,
    **fields,
) -> Note:
    seq = minutes + 1
    return Note(
        priority,
        category,
        text,
        said_at=WEDNESDAY + minutes * MINUTE,
        first_seq=seq,
        last_seq=seq,
        **fields,
    )


def reflect(notes: list[Note], level: int = 0, target: int = 1) -> list[Note]:
    return list(REFLECTOR.reflect(ReflectRequest(notes, level, target_tokens=target)).notes)


def tokens(notes: list[Note]) -> int:
    """As the reflector counts them, marks and times included."""
    return sum(
        EstimatingCounter().count("\n".join((each.text, *each.details))).tokens
        + 9
        + 2 * len(each.details)
        for each in notes
    )


def session() -> list[Note]:
    """A morning of work as the observer writes it."""
    talk = Talk().user("Add login to src/auth/login.py. I prefer small commits.")
    for step in range(12):
        talk.call("Read", {"file_path": f"src/auth/part{step}.py"}, "1→x")
        talk.edit(
            f"src/auth/part{step}.py", "x", f"def step_{step}(value: int) -> int:\n    return value"
        )
        talk.run("pytest -q", f"{step} passed in 1s")
        talk.agent(f"The problem is that step {step} needs the cache because the token expires.")
        talk.run(
            f"git commit -m 'feat: step {step}'", f"[login 1a2b3c{step % 10}] feat: step {step}"
        )
    return talk.agent("All done. Login is now implemented.").notes()


def test_notes_that_fit_are_left_as_they_are():
    notes = session()
    assert reflect(notes, target=100_000) == notes


def test_the_method_is_recorded():
    assert OfflineReflector.method == METHOD == "offline-1"


def test_what_is_said_again_is_kept_once_with_its_newest_time():
    notes = [
        note("User prefers: tabs over spaces", "preference", "high", minutes=minutes)
        for minutes in (0, 30)
    ]
    assert reflect(notes, target=100_000) == notes[1:]


def test_a_newer_state_replaces_the_older_one():
    old = note("User said: We use Redux for state", "statement", "high")
    new = note(
        "User changed: switched from Redux to Zustand (replaces Redux)",
        "change",
        "high",
        minutes=9,
        mode_specific={"replaces": "Redux"},
    )
    assert reflect([old, new], target=100_000) == [new]


def test_a_change_does_not_take_away_what_was_said_later():
    change = note(
        "User changed: from Redux to Zustand",
        "change",
        "high",
        minutes=0,
        mode_specific={"replaces": "Redux"},
    )
    later = note("User said: Redux comes back in the admin", "statement", "high", minutes=9)
    assert reflect([change, later], target=100_000) == [change, later]


def test_a_long_sentence_is_not_dropped_for_one_word_of_it():
    words = (
        "User said: We use Redux for state, Postgres 16 for data, Redis for the queue, Fly "
        "for hosting and Sentry"
    )
    new = note(
        "User changed: from Redux to Zustand",
        "change",
        "high",
        minutes=9,
        mode_specific={"replaces": "Redux"},
    )
    assert len(reflect([note(words, priority="high"), new], target=100_000)) == 2


@pytest.mark.parametrize("level", LEVELS)
def test_what_must_stay_stays_at_every_level(level):
    notes = session()
    kept = reflect(notes, level, tokens([each for each in notes if each.category in KEPT]) * 2)
    for category in KEPT:
        assert [each.text for each in kept if each.category == category] == [
            each.text for each in notes if each.category == category
        ]


def test_low_priority_goes_first_and_the_oldest_before_the_newest():
    notes = [
        note(f"Agent: idea {n} {'words ' * 20}".strip(), "note", "low", minutes=n)
        for n in range(12)
    ]
    notes.insert(0, note("User said: I live in Lyon", "statement", "high"))
    kept = reflect(notes, target=300)
    assert kept[0] == notes[0]
    assert kept[1:] == notes[-len(kept) + 1 :]
    assert 5 <= len(kept) < 12


def test_every_level_is_smaller_than_the_one_before_or_nothing_more_can_go():
    notes = session()
    sizes = [tokens(reflect(notes, level, 100_000)) for level in LEVELS]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 2


def test_it_stops_as_soon_as_it_fits():
    notes = session()
    smaller = reflect(notes, target=900)
    assert tokens(reflect(notes, target=1)) < tokens(smaller) < tokens(notes)


def test_failures_go_before_findings():
    notes = [
        note("pytest failed: KeyError in a.py", "error", minutes=0),
        note("Agent found: src/a.py has no key", "finding", minutes=1),
        *(note(f"User said: word {n}", "statement", minutes=2 + n) for n in range(5)),
    ]
    assert reflect(notes, 3, 100_000) == notes[1:]


def test_a_note_that_loses_its_details_takes_the_first_over():
    notes = [
        note("Ran:", "command", minutes=n, details=("make: ok", f"./tool {n}: done"))
        for n in range(2)
    ]
    assert all(each.text != "Ran:" for each in reflect(notes, 2, 30))


def afternoon() -> list[Note]:
    """What a person would look for later, among what could be said of anything."""
    talk = Talk(cwd="/home/ada/shop")
    for step in range(6):
        talk.user(f"Could you look at part {step} of the shop?").run(
            f"pytest tests/part{step} -q", "12 passed in 1.2s"
        )
        talk.agent("All of that is in order, and nothing needs to be done about it at the moment.")
    talk.user("Where should the discounts go?")
    talk.call(
        "Write",
        {"file_path": "/home/ada/shop/src/prices/rebate.py", "content": "STEP = 5\n"},
        "created",
    )
    talk.agent("The discounts now live in `src/prices/rebate.py`.")
    talk.user("We need something that joins orders.")
    talk.edit(
        "/home/ada/shop/src/orders.py",
        "x = 1",
        "def join_orders(left, right):\n    return left + right",
    )
    talk.agent("`join_orders` does it.")
    talk.user("Why is it slow?").run(
        "python -m cProfile shop.py", "1204 function calls in 3.1 seconds"
    )
    talk.agent("I profiled it: reading the catalog takes 71 % of the time.")
    talk.user("Can you recommend a book on it?")
    talk.agent('For that I would recommend "Slow Shops": it is short and to the point.')
    for step in range(6, 10):
        talk.user(f"And part {step}?").run(f"pytest tests/part{step} -q", "9 passed in 0.9s").agent(
            "All good."
        )
    return talk.notes()


@pytest.mark.parametrize("found", ["src/prices/rebate.py", "join_orders", "71 %", '"Slow Shops"'])
def test_what_somebody_will_look_for_survives_being_halved(found):
    notes = afternoon()
    kept = reflect(notes, target=tokens(notes) // 2)
    assert tokens(kept) <= tokens(notes) * 0.6
    assert any(found in line for each in kept for line in (each.text, *each.details))


def test_words_that_could_be_said_of_anything_go_first_also_the_newest():
    notes = [
        note("Agent answered: All of it is good now.", "answer", minutes=0),
        note("Agent answered: The limit is 5 in src/limits.py.", "answer", minutes=1),
        note("Agent answered: You are welcome.", "answer", minutes=2),
    ]
    assert reflect(notes, 1, tokens(notes[1:2])) == notes[1:2]


def test_details_that_hold_nothing_particular_go_before_the_others():
    details = (
        "Hotel Adler (near the station)",
        "it is nice there",
        "so is this one",
        "Hotel Post, 90 euros",
        "yes",
    )
    (kept,) = reflect([note("Agent listed:", "answer", details=details)], 2, 45)
    assert kept.details == ("Hotel Adler (near the station)", "Hotel Post, 90 euros")


def test_something_mended_still_says_how_it_ended_when_room_is_short():
    between = "; ".join(f"line {n} of app.py is as it was before" for n in range(12))
    (kept,) = reflect(
        [note(f"Fixed: make failed: no rule; {between}; then 14 passed", "fix")], 3, 1_000
    )
    assert len(kept.text) <= 242
    assert kept.text.startswith("Fixed: make failed: no rule; ")
    assert kept.text.endswith("; then 14 passed")


def test_what_holds_something_particular_goes_only_while_the_notes_are_far_too_large():
    notes = [
        note(f"Agent found: part {n} lies in bin{n}.", "finding", minutes=n) for n in range(40)
    ]
    half = tokens(notes) // 2
    kept = reflect(notes, target=half)
    assert half < tokens(kept) <= half * 1.4
    assert kept == notes[-len(kept) :]
    assert tokens(reflect(notes, 2, half)) <= half, "whoever begins with pressure gets the size"


def test_conversation_of_any_length_comes_down_to_its_size_and_what_was_preferred_is_the_last_to_go():  # noqa: E501
    notes = [
        note(f"User requested: change part{n} of the house", "request", "high", minutes=n)
        for n in range(400)
    ]
    rules = [
        note(f"User prefers: rule{n} over all", "preference", "high", minutes=7 * n)
        for n in range(9)
    ]
    kept = reflect([*notes, *rules], target=600)
    assert tokens(kept) <= 600 * 1.4
    assert [each for each in kept if each.category == "preference"] == rules
    assert notes[-1] in kept


def test_nothing_becomes_nothing():
    assert reflect([]) == []


NOTES = st.lists(
    st.builds(
        lambda text, category, priority, minutes, details, files: note(
            text, category, priority, minutes=minutes, details=tuple(details), files=tuple(files)
        ),
        st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=60)
        .map(str.strip)
        .filter(bool),
        st.sampled_from(
            [
                "request",
                "statement",
                "code",
                "command",
                "test",
                "error",
                "fix",
                "note",
                "completion",
            ]
        ),
        st.sampled_from(["high", "medium", "low"]),
        st.integers(0, 4000),
        st.lists(
            st.text("abc def", min_size=1, max_size=30).map(str.strip).filter(bool), max_size=4
        ),
        st.lists(st.sampled_from(["src/a.py", "src/b/c.py", "README.md"]), max_size=3),
    ),
    max_size=14,
)


@given(NOTES, st.sampled_from(LEVELS), st.integers(0, 400))
def test_a_reflection_invents_no_word_and_has_no_more_lines(notes, level, target):
    kept = reflect(notes, level, target)
    source = "\n".join(line for each in notes for line in (each.text, *each.details, *each.files))
    for each in kept:
        for line in (each.text, *each.details):
            assert [
                w
                for w in re.findall(r"\w+", line)
                if w.lower() not in FRAME_WORDS and w not in source
            ] == []
    assert sum(1 + len(each.details) for each in kept) <= sum(
        1 + len(each.details) for each in notes
    )
    assert [each.said_at for each in kept] == sorted(each.said_at for each in kept)


@given(NOTES, st.integers(0, 400))
def test_the_same_notes_give_the_same_reflection_and_reflecting_it_again_does_no_harm(
    notes, target
):
    once = reflect(notes, 1, target)
    assert once == reflect(notes, 1, target)
    assert len(reflect(once, 1, target)) <= len(once)


@given(NOTES, st.sampled_from(LEVELS), st.integers(0, 400))
def test_memory_is_never_replaced_by_nothing(notes, level, target):
    assert bool(reflect(notes, level, target)) == bool(notes)
