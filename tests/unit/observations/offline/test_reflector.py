"""Condensing notes: what goes, what stays, and in which order."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.core.tokens import EstimatingCounter
from smara.observations.models import Category, Note, Priority, ReflectRequest
from smara.observations.offline import METHOD, OfflineReflector
from smara.observations.offline.phrases import FRAME_WORDS
from smara.observations.render import render
from tests.unit.observations.offline.talk import MINUTE, WEDNESDAY, Talk

REFLECTOR = OfflineReflector(EstimatingCounter())
LEVELS = range(5)
KEPT: tuple[Category, ...] = ("preference", "decision", "change", "completion", "request", "blocker")


def note(
    text: str, category: Category = "statement", priority: Priority = "medium", minutes: int = 0, **fields
) -> Note:
    seq = minutes + 1
    return Note(priority, category, text, WEDNESDAY + minutes * MINUTE, first_seq=seq, last_seq=seq, **fields)


def reflect(notes: list[Note], level: int = 0, target: int = 1) -> list[Note]:
    return list(REFLECTOR.reflect(ReflectRequest(notes, level, target_tokens=target)).notes)


def size(notes: list[Note]) -> int:
    return len(render(notes, "UTC"))


def session() -> list[Note]:
    """A morning of work as the observer writes it."""
    talk = Talk().user("Add login to src/auth/login.py. I prefer small commits.")
    for step in range(12):
        talk.call("Read", {"file_path": f"src/auth/part{step}.py"}, "1→x")
        talk.edit(f"src/auth/part{step}.py", "x", f"def step_{step}(value: int) -> int:\n    return value")
        talk.run("pytest -q", f"{step} passed in 1s")
        talk.agent(f"The problem is that step {step} needs the cache because the token expires.")
        talk.run(f"git commit -m 'feat: step {step}'", f"[login 1a2b3c{step % 10}] feat: step {step}")
    return talk.agent("All done. Login is now implemented.").notes()


def test_notes_that_fit_are_left_as_they_are():
    notes = session()
    assert reflect(notes, target=100_000) == notes


def test_the_method_is_recorded():
    assert OfflineReflector.method == METHOD == "offline-1"


def test_what_is_said_again_is_kept_once_with_its_newest_time():
    notes = [note("User prefers: tabs over spaces", "preference", "high", minutes) for minutes in (0, 30)]
    assert reflect(notes, target=100_000) == notes[1:]


def test_a_newer_state_replaces_the_older_one():
    old = note("User said: We use Redux for state", "statement", "high")
    new = note(
        "User changed: switched from Redux to Zustand (replaces Redux)",
        "change",
        "high",
        9,
        mode_specific={"replaces": "Redux"},
    )
    assert reflect([old, new], target=100_000) == [new]


def test_a_change_does_not_take_away_what_was_said_later():
    change = note("User changed: from Redux to Zustand", "change", "high", 0, mode_specific={"replaces": "Redux"})
    later = note("User said: Redux comes back in the admin", "statement", "high", 9)
    assert reflect([change, later], target=100_000) == [change, later]


def test_a_long_sentence_is_not_dropped_for_one_word_of_it():
    words = "User said: We use Redux for state, Postgres 16 for data, Redis for the queue, Fly for hosting and Sentry"
    new = note("User changed: from Redux to Zustand", "change", "high", 9, mode_specific={"replaces": "Redux"})
    assert len(reflect([note(words, priority="high"), new], target=100_000)) == 2


def test_a_stretch_of_work_becomes_one_note_with_files_names_and_the_last_outcome():
    notes = [
        note("Looked at src/auth/a.py", "note", "low", 0, files=("src/auth/a.py",)),
        note("Changed src/auth/b.py: def login(user)", "code", minutes=5, files=("src/auth/b.py",)),
        note("Ran pytest: 1 failed", "test", minutes=9),
        note("Ran pytest: 3 passed", "test", minutes=20),
    ]
    (merged,) = reflect(notes, 1, 100_000)
    assert merged.text.startswith("Worked on (until 09:35): src/auth/b.py; pytest: 3 passed")
    assert "1 failed" not in merged.text
    assert merged.files == ("src/auth/b.py",)
    assert (merged.first_seq, merged.last_seq) == (1, 21)


def test_work_of_two_days_is_not_mixed():
    notes = [note(f"Ran ./tool {n}: ok", "command", minutes=n * 1440) for n in range(2)]
    assert reflect(notes, 1, 100_000) == notes


def test_the_hour_is_that_of_the_time_zone():
    notes = [note("Ran a: ok", "command", minutes=n, files=("x.py",)) for n in (0, 10)]
    request = ReflectRequest([notes[0], replace(notes[1], text="Ran b: ok")], level=1, timezone="Asia/Tokyo")
    assert "(until 18:25)" in REFLECTOR.reflect(request).notes[0].text


@pytest.mark.parametrize("level", LEVELS)
def test_what_must_stay_stays_at_every_level(level):
    notes = session()
    kept = reflect(notes, level)
    for category in KEPT:
        assert [each.text for each in kept if each.category == category] == [
            each.text for each in notes if each.category == category
        ]


def test_low_priority_goes_first_and_the_oldest_before_the_newest():
    notes = [note(f"Agent: idea {n} {'words ' * 20}".strip(), "note", "low", n) for n in range(12)]
    notes.insert(0, note("User said: I live in Lyon", "statement", "high"))
    kept = reflect(notes, target=300)
    assert kept[0] == notes[0]
    assert kept[1:] == notes[-len(kept) + 1 :]
    assert 5 <= len(kept) < 12


def test_every_level_is_smaller_than_the_one_before_or_nothing_more_can_go():
    notes = session()
    sizes = [size(reflect(notes, level, 100_000)) for level in LEVELS]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0] / 2


def test_it_stops_as_soon_as_it_fits():
    notes = session()
    smaller = reflect(notes, target=900)
    assert size(reflect(notes, target=1)) < size(smaller) < size(notes)


def test_failures_that_were_mended_go_before_findings():
    notes = [
        note("pytest failed: KeyError", "error", minutes=0), note("Agent found: the key is gone", "finding", minutes=1),
        note("Fixed: pytest failed: KeyError; then 3 passed", "fix", minutes=2),
    ]  # fmt: skip
    assert [each.category for each in reflect(notes, 3, 100_000)] == ["finding", "fix"]


def test_a_note_that_loses_its_details_takes_the_first_over():
    notes = [note("Ran:", "command", minutes=n, details=("make: ok", f"./tool {n}: done")) for n in range(2)]
    assert all(each.text != "Ran:" for each in reflect(notes, 2, 30))


def test_whose_words_they_are_survives_merging():
    notes = [
        note("Ran a: ok", "command", minutes=0, mode_specific={"inputs": ["assistant", "tool"]}),
        note("Searched b", "command", minutes=1, mode_specific={"inputs": ["web"]}),
    ]
    (merged,) = reflect(notes, 1, 100_000)
    assert merged.mode_specific["inputs"] == ["assistant", "tool", "web"]


def test_nothing_becomes_nothing():
    assert reflect([]) == []


NOTES = st.lists(
    st.builds(
        lambda text, category, priority, minutes, details, files: note(
            text, category, priority, minutes, details=tuple(details), files=tuple(files)
        ),
        st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=60).map(str.strip).filter(bool),
        st.sampled_from(["request", "statement", "code", "command", "test", "error", "fix", "note", "completion"]),
        st.sampled_from(["high", "medium", "low"]), st.integers(0, 4000),
        st.lists(st.text("abc def", min_size=1, max_size=30).map(str.strip).filter(bool), max_size=4),
        st.lists(st.sampled_from(["src/a.py", "src/b/c.py", "README.md"]), max_size=3),
    ),
    max_size=14,
)  # fmt: skip


@given(NOTES, st.sampled_from(LEVELS), st.integers(0, 400))
def test_a_reflection_invents_no_word_and_has_no_more_lines(notes, level, target):
    kept = reflect(notes, level, target)
    source = "\n".join(line for each in notes for line in (each.text, *each.details, *each.files))
    for each in kept:
        text = re.sub(r"^Worked on \(until \d\d:\d\d\)", "", each.text)
        for line in (text, *each.details):
            assert [w for w in re.findall(r"\w+", line) if w.lower() not in FRAME_WORDS and w not in source] == []
    assert sum(1 + len(each.details) for each in kept) <= sum(1 + len(each.details) for each in notes)
    assert [each.said_at for each in kept] == sorted(each.said_at for each in kept)


@given(NOTES, st.integers(0, 400))
def test_the_same_notes_give_the_same_reflection_and_reflecting_it_again_does_no_harm(notes, target):
    once = reflect(notes, 1, target)
    assert once == reflect(notes, 1, target)
    assert len(reflect(once, 1, target)) <= len(once)


@given(NOTES, st.sampled_from(LEVELS), st.integers(0, 400))
def test_memory_is_never_replaced_by_nothing(notes, level, target):
    assert bool(reflect(notes, level, target)) == bool(notes)
