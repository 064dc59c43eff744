"""Compaction changes what is shown, never what was said; and it can be undone (ruling 13)."""

from __future__ import annotations

import pytest

from smara.errors import NotFoundError


def runs(memory, thread_id="t"):
    """The runs in force: (first, last, level)."""
    seen = {}
    for message in memory.messages.list(thread_id=thread_id):
        if message.compaction:
            seen[message.compaction.start_seq, message.compaction.end_seq] = (
                message.compaction.level
            )
    return [(*run, level) for run, level in sorted(seen.items())]


def grow(memory, count, thread_id="t"):
    """Messages one at a time, as a conversation grows."""
    for _ in range(count):
        memory.messages.add(thread_id=thread_id, role="user", content="a word about the parser")


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (29, []), (30, [(1, 10, 1)]), (31, [(1, 10, 1)]), (39, [(1, 10, 1)]), (40, [(1, 10, 1), (11,
        20, 1)]),
        (90, [(first, first + 9, 1) for first in range(1, 70, 10)]),
    ],
)  # fmt: skip
def test_a_thread_is_compacted_at_30_messages_and_every_10_from_there(
    memory, fill, count, expected
):
    fill(count)
    assert runs(memory) == expected


def test_a_conversation_that_grows_one_by_one_is_compacted_as_one_added_at_once(memory, fill):
    grow(memory, 41, "slowly")
    fill(41, "at once")
    assert runs(memory, "slowly") == runs(memory, "at once") == [(1, 10, 1), (11, 20, 1)]


def test_summaries_90_messages_back_are_archived_three_to_one(memory, fill):
    fill(119)
    assert {level for *_, level in runs(memory)} == {1}
    fill(1)
    assert runs(memory)[0] == (1, 30, 2)
    assert {level for *_, level in runs(memory)[1:]} == {1}


def test_a_compacted_run_is_shown_once(memory, fill):
    fill(30)
    window = memory.history.window("t")
    assert [(entry.first_seq, entry.last_seq) for entry in window] == [
        (1, 10),
        *((seq, seq) for seq in range(11, 31)),
    ]
    assert (window[0].role, window[0].message_id) == ("system", None)
    texts = [message.injection_text for message in memory.messages.list(thread_id="t")]
    assert texts[0] == window[0].text
    assert texts[1:10] == [""] * 9


def test_a_compacted_run_costs_its_summary_and_counts_as_one(memory, fill):
    fill(30)
    assert [entry.first_seq for entry in memory.history.window("t", last=21)] == [1, *range(11, 31)]
    first = memory.history.window("t")[0]
    assert 0 < first.token_count < 1_000
    assert first.compaction_id == memory.compactions.list("t")[0].id


def test_compaction_leaves_the_raw_text_and_the_parts(memory, fill):
    before = fill(29)
    memory.compactions.compact("t")
    after = memory.messages.list(thread_id="t")
    assert [(m.raw_content, m.parts, m.token_count, m.seq) for m in after] == [
        (m.raw_content, m.parts, m.token_count, m.seq) for m in before
    ]
    assert all(message.compaction_level == 1 for message in after)


def test_every_raw_word_is_found_at_every_level(open_again):
    memory = open_again(
        compact_after_messages=4,
        compact_run_messages=2,
        archive_after_messages=6,
        compact_every_messages=2,
    )
    words = [f"{letter}{letter.upper()}marker" for letter in "abcdefghijklmnop"]
    for word in words:
        memory.messages.add(thread_id="t", role="user", content=f"remember {word} please")
    assert {level for *_, level in runs(memory)} == {1, 2}
    assert [memory.search(word)[0].content for word in words] == [
        f"remember {word} please" for word in words
    ]


def test_a_hit_says_whether_its_message_is_compacted(memory, say, fill):
    say("the walrus")
    say("the zebra", thread_id="other")
    memory.compactions.compact("t")
    assert (memory.search("walrus")[0].source, memory.search("zebra")[0].source) == (
        "compacted",
        "raw",
    )


def test_compact_by_command_takes_everything_in_runs_of_10(memory, fill):
    fill(25)
    done = memory.compactions.compact("t")
    assert (done.messages_compacted, done.messages_whole) == (25, 0)
    assert runs(memory) == [(1, 10, 1), (11, 20, 1), (21, 25, 1)]


def test_compact_keeps_as_many_as_it_is_told(memory, fill):
    fill(15)
    done = memory.compactions.compact("t", keep=4)
    assert (done.messages_compacted, done.messages_whole) == (11, 4)
    assert runs(memory) == [(1, 10, 1), (11, 11, 1)]


def test_compact_keeps_everything_when_there_is_less_than_it_is_told_to_keep(memory, fill):
    fill(15)
    assert memory.compactions.compact("t", keep=20).messages_compacted == 0
    assert runs(memory) == []


def test_compact_twice_is_the_same_as_once(memory, fill):
    fill(12)
    memory.compactions.compact("t")
    again = memory.compactions.compact("t")
    assert (again.compactions, again.messages_compacted) == ((), 0)
    assert len(memory.compactions.list("t")) == 2


def test_compact_of_an_empty_thread_does_nothing(memory):
    memory.threads.add("t")
    assert memory.compactions.compact("t").messages_compacted == 0


def test_compact_of_an_unknown_thread_is_not_found(memory):
    for verb in (
        memory.compactions.compact,
        memory.compactions.end_session,
        memory.compactions.compact_when_due,
    ):
        with pytest.raises(NotFoundError, match="nobody"):
            verb("nobody")


def test_compact_when_due_does_nothing_before_its_time(memory, fill):
    fill(29)
    assert memory.compactions.compact_when_due("t").messages_compacted == 0


def test_the_end_of_a_session_compacts_the_full_runs_that_are_left(memory, fill):
    fill(25)
    assert memory.compactions.end_session("t").messages_compacted == 20
    assert runs(memory) == [(1, 10, 1), (11, 20, 1)]
    assert memory.compactions.end_session("t").messages_compacted == 0


def test_the_trigger_can_be_turned_off(open_again):
    memory = open_again(compact_every_messages=0)
    grow(memory, 35)
    assert runs(memory) == []
    assert memory.compactions.compact_when_due("t").messages_compacted == 10


def test_a_record_says_what_was_done(memory, fill, clock):
    fill(10)
    record = memory.compactions.compact("t").compactions[0]
    assert memory.compactions.list("t") == [record]
    assert (record.level, record.start_seq, record.end_seq, record.message_count) == (1, 1, 10, 10)
    assert (record.method, record.created_at, record.undone_at) == (
        "offline-1",
        clock.now_ms(),
        None,
    )
    assert record.summary


def test_a_message_carries_its_compaction_as_it_is_listed(memory, say):
    say("fix the nul \x00 byte in parse_header() and lone \ud800 surrogates")
    memory.compactions.compact("t")
    assert memory.messages.list(thread_id="t")[0].compaction == memory.compactions.list("t")[0]
    assert memory.history.window("t")[0].text == memory.compactions.list("t")[0].injection_text


def test_a_summary_keeps_names_paths_and_lines_of_code(memory, say):
    say("Please fix src/auth/login.ts so that refresh_tokens rotate")
    say(
        "Done:\n```ts\nexport const LoginSchema = z.object({ email: z.string() })\n```",
        role="assistant",
    )
    record = memory.compactions.compact("t").compactions[0]
    for kept in ("src/auth/login.ts", "refresh_tokens"):
        assert kept in record.summary
    assert "export const LoginSchema" in memory.history.window("t")[0].text


def test_undo_shows_the_messages_as_before(memory, fill):
    before = fill(10)
    record = memory.compactions.compact("t").compactions[0]
    undone = memory.compactions.undo(record.id)
    assert undone.undone_at is not None
    assert memory.messages.list(thread_id="t") == before
    assert len(memory.history.window("t")) == 10


def test_undo_is_safe_to_repeat(memory, fill, clock):
    fill(10)
    record = memory.compactions.compact("t").compactions[0]
    first = memory.compactions.undo(record.id)
    clock.advance(60)
    assert memory.compactions.undo(record.id) == first


def test_undo_of_an_unknown_compaction_is_not_found(memory):
    with pytest.raises(NotFoundError, match="nothing"):
        memory.compactions.undo("nothing")


def test_an_undone_run_is_left_alone_by_the_trigger(memory, fill):
    fill(30)
    memory.compactions.undo(memory.compactions.list("t")[0].id)
    fill(30)
    assert (1, 10, 1) not in runs(memory)
    assert runs(memory)[0][0] == 11


def test_an_undone_run_is_compacted_again_by_command(memory, fill):
    fill(30)
    memory.compactions.undo(memory.compactions.list("t")[0].id)
    memory.compactions.compact("t")
    assert runs(memory)[0] == (1, 10, 1)
    assert len(memory.compactions.list("t")) == 4


def test_undo_of_an_archived_run_gives_back_its_three_summaries(memory, fill):
    fill(120)
    fold = next(record for record in memory.compactions.list("t") if record.level == 2)
    memory.compactions.undo(fold.id)
    assert runs(memory)[:3] == [(1, 10, 1), (11, 20, 1), (21, 30, 1)]


def test_an_undone_archive_is_left_alone_by_the_trigger(memory, fill):
    fill(120)
    fold = next(record for record in memory.compactions.list("t") if record.level == 2)
    memory.compactions.undo(fold.id)
    fill(10)
    assert runs(memory)[:3] == [(1, 10, 1), (11, 20, 1), (21, 30, 1)]


def test_undo_of_a_summary_inside_an_archive_shows_its_messages_whole(memory, fill):
    fill(120)
    first = memory.compactions.list("t")[0]
    inner = next(
        record
        for record in memory.compactions.list("t")
        if (record.level, record.start_seq) == (1, 11)
    )
    assert first.message_count in (10, 30)
    memory.compactions.undo(inner.id)
    levels = {
        message.seq: message.compaction_level
        for message in memory.messages.list(thread_id="t", before=31)
    }
    assert {levels[seq] for seq in range(11, 21)} == {0}


def test_no_message_stays_hidden_once_everything_is_undone(memory, fill):
    fill(120)
    for record in memory.compactions.list("t"):
        memory.compactions.undo(record.id)
    assert runs(memory) == []
    assert len(memory.history.window("t")) == 120


def test_a_compaction_is_there_after_reopening(memory, fill, open_again):
    fill(30)
    before = memory.history.window("t")
    memory.close()
    assert open_again().history.window("t") == before


def test_a_window_that_ends_inside_a_run_shows_the_run(memory, fill):
    fill(30)
    assert [
        (entry.first_seq, entry.last_seq) for entry in memory.history.window("t", before=5)
    ] == [(1, 10)]
