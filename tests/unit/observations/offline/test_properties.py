"""What holds for any messages: only their words, the same every time, in order, and never a
crash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smara.messages.models import Message, Part
from smara.observations.models import CATEGORIES, MODES, PRIORITIES, Note, ObserveRequest
from smara.observations.offline import OfflineObserver
from smara.observations.offline.notes import clean
from tests.unit.observations.offline.talk import FRAME_WORDS, Talk

WORD = re.compile(r"\w+")
SENTENCES = st.sampled_from(
    [
        "Add login to src/auth/login.ts:45 by Friday.",
        "We switched from Redux to Zustand.",
        "I prefer pnpm 9.1.",
        "The root cause is a missing check in `parse_token`.",
        "All 42 tests pass now.",
        "Should I push?",
        "yes",
        "ok",
        "- item one\n- item two: 3.5 GB",
        "```ts\nexport function f(a: string): void {\n```",
        "昨天我改用了 Rust。",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "# Heading\n**bold** words 2**3",
        "<system-reminder>x</system-reminder>",
        "Ana: I have two dogs.",
        "Ben: Great!",
        "\x1b[31mred\x1b[0m",
        "E   KeyError: 'id'",
        "1 failed, 3 passed in 2s",
        "FAILED tests/a.py::test_b",
        "fatal: no upstream branch",
        "[main 1a2b3c4] feat: x",
        "No files found",
        '{"output": "x"}',
    ]
)
TEXTS = st.one_of(
    st.text(max_size=120),
    st.lists(st.one_of(SENTENCES, st.text(max_size=40)), max_size=6).map("\n".join),
)
COMMANDS = st.one_of(
    TEXTS,
    st.sampled_from(
        [
            "pytest -q tests/a.py",
            "make build && make test | tail -3",
            "git commit -m 'feat: x'",
            "git push",
            "npm i zod@3.2.1",
            "cat > x.py <<EOF\ndef g(): ...\nEOF",
            "ls src",
            "rg login src/",
            "psql -c 'select 1'",
        ]
    ),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
ARGUMENTS = st.one_of(
    st.none(),
    JSON,
    st.fixed_dictionaries({"command": COMMANDS}),
    st.fixed_dictionaries({"file_path": TEXTS, "content": TEXTS}),
    st.fixed_dictionaries(
        {"file_path": st.just("src/a.py"), "old_string": TEXTS, "new_string": TEXTS}
    ),
    st.fixed_dictionaries({"path": TEXTS, "offset": st.integers(0, 9)}),
    st.fixed_dictionaries({"pattern": TEXTS}),
    st.fixed_dictionaries({"query": TEXTS, "url": TEXTS}),
    st.dictionaries(st.text(max_size=8), JSON, max_size=3),
)
NAMES = st.sampled_from(
    [
        "Bash",
        "Write",
        "Edit",
        "Read",
        "Grep",
        "WebFetch",
        "Task",
        "AskUserQuestion",
        "ExitPlanMode",
        "TodoWrite",
        "TaskOutput",
        "x",
    ]
)
CALL_IDS = st.sampled_from(["a", "b", "c", None])
PARTS = st.one_of(
    st.builds(Part, st.just("text"), TEXTS),
    st.builds(Part, st.just("reasoning"), TEXTS),
    st.builds(Part, st.just("tool_call"), st.just(""), NAMES, CALL_IDS, ARGUMENTS),
    st.builds(Part, st.just("tool_result"), TEXTS, st.none(), CALL_IDS, is_error=st.booleans()),
    st.builds(Part, st.sampled_from(["image", "file"]), TEXTS, st.one_of(st.none(), TEXTS)),
)
ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
TIMES = st.integers(1_770_000_000_000, 1_770_000_900_000)


@st.composite
def conversations(draw: Any) -> list[Message]:
    talk = Talk()
    for _ in range(draw(st.integers(0, 10))):
        kind = draw(
            st.sampled_from(
                [None, None, None, "agent_prompt", "interruption", "compaction_summary"]
            )
        )
        talk.add(draw(ROLES), *draw(st.lists(PARTS, max_size=3)), kind=kind)
    return talk.messages


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings(each)
    elif isinstance(value, int):
        yield str(value)


def said_in(note: Note) -> Iterator[str]:
    specific = {name: value for name, value in note.mode_specific.items() if name != "inputs"}
    yield from (note.text, *note.details, *note.files, *map(str, note.lines), *strings(specific))


def unfounded(note: Note, messages: list[Message]) -> list[str]:
    """The words of a note that are neither in its source messages nor ours."""
    source = "\n".join(
        clean(each.raw_content) for each in messages if note.first_seq <= each.seq <= note.last_seq
    )
    words = [word for text in said_in(note) for word in WORD.findall(text)]
    return [word for word in words if word.lower() not in FRAME_WORDS and word not in source]


@settings(max_examples=300)
@given(conversations(), st.sampled_from(MODES), st.sampled_from(["coding", "general"]))
def test_every_word_of_a_note_was_said_in_its_messages(messages, mode, flavor):
    for note in OfflineObserver().observe(ObserveRequest(messages, mode=mode, flavor=flavor)).notes:
        assert unfounded(note, messages) == []


@given(conversations(), st.sampled_from(MODES), TEXTS)
def test_the_same_messages_give_the_same_notes(messages, mode, known):
    request = ObserveRequest(messages, mode=mode, known=known, wants_suggested_response=True)
    assert OfflineObserver().observe(request) == OfflineObserver().observe(request)


@given(conversations(), TEXTS, TEXTS)
def test_notes_are_whole_bounded_and_in_the_order_of_their_times(messages, known, instructions):
    draft = OfflineObserver().observe(
        ObserveRequest(messages, known=known, instructions=instructions)
    )
    assert [note.said_at for note in draft.notes] == sorted(note.said_at for note in draft.notes)
    seqs = {message.seq for message in messages}
    for note in draft.notes:
        assert note.category in CATEGORIES
        assert note.priority in PRIORITIES
        assert {note.first_seq, note.last_seq} <= seqs
        assert note.first_seq <= note.last_seq
        assert note.text.strip() == note.text != ""
        assert all(detail and "\n" not in detail for detail in (note.text, *note.details))
        assert len(note.text) <= 900
    assert draft.thread_title is None or 0 < len(draft.thread_title) <= 60


@given(conversations(), st.integers(0, 10))
def test_messages_can_be_observed_in_two_halves(messages, cut):
    for half in (messages[:cut], messages[cut:]):
        for note in OfflineObserver().observe(ObserveRequest(half)).notes:
            assert unfounded(note, half) == []


def test_the_check_of_words_is_able_to_fail():
    messages = Talk().user("Add login to src/a.py").messages
    note = Note(
        "high",
        "request",
        "User requested: Add logout to src/a.py",
        said_at=0,
        first_seq=1,
        last_seq=1,
    )
    assert unfounded(note, messages) == ["logout"]
