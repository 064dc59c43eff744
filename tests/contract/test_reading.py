"""Reading: lists, windows by count and by tokens, surroundings, streams."""

from __future__ import annotations

import pytest

from smara.errors import InvalidInputError, NotFoundError


def seqs(messages):
    return [message.seq for message in messages]


def shown(entries):
    return [(entry.first_seq, entry.last_seq) for entry in entries]


def test_a_thread_that_does_not_exist_has_no_messages(memory):
    assert memory.messages.list(thread_id="nobody") == []
    assert list(memory.messages.stream(thread_id="nobody")) == []
    assert memory.messages.last_tokens(thread_id="nobody", tokens=100) == []
    assert memory.history.window("nobody") == []


def test_list_gives_everything_oldest_first(memory, fill):
    fill(5)
    assert seqs(memory.messages.list(thread_id="t")) == [1, 2, 3, 4, 5]


def test_list_with_a_limit_gives_the_newest(memory, fill):
    fill(5)
    assert seqs(memory.messages.list(thread_id="t", limit=2)) == [4, 5]
    assert seqs(memory.messages.list(thread_id="t", limit=9)) == [1, 2, 3, 4, 5]
    assert memory.messages.list(thread_id="t", limit=0) == []


def test_list_after_a_message_gives_the_first_behind_it(memory, fill):
    fill(6)
    assert seqs(memory.messages.list(thread_id="t", after=2, limit=2)) == [3, 4]
    assert seqs(memory.messages.list(thread_id="t", after=4)) == [5, 6]
    assert seqs(memory.messages.list(thread_id="t", after=0, limit=2)) == [1, 2]
    assert memory.messages.list(thread_id="t", after=6) == []


def test_list_before_a_message_gives_the_newest_ahead_of_it(memory, fill):
    fill(6)
    assert seqs(memory.messages.list(thread_id="t", before=4, limit=2)) == [2, 3]
    assert seqs(memory.messages.list(thread_id="t", before=3)) == [1, 2]
    assert seqs(memory.messages.list(thread_id="t", after=1, before=5)) == [2, 3, 4]
    assert memory.messages.list(thread_id="t", before=1) == []


def test_a_negative_limit_is_refused(memory, fill):
    fill(1)
    with pytest.raises(InvalidInputError, match="limit"):
        memory.messages.list(thread_id="t", limit=-1)


def test_stream_gives_every_message_of_a_long_thread_in_order(memory, fill):
    fill(1_203)
    assert seqs(memory.messages.stream(thread_id="t")) == list(range(1, 1_204))
    assert seqs(memory.messages.stream(thread_id="t", after=1_200)) == [1_201, 1_202, 1_203]


def test_a_stream_that_is_read_slowly_sees_what_is_added_meanwhile_and_holds_nobody_up(
    memory, fill, say
):
    fill(600)
    stream = memory.messages.stream(thread_id="t")
    first = next(stream)
    say("late")
    rest = list(stream)
    assert (first.seq, len(rest)) == (1, 600 if rest[-1].raw_content == "late" else 599)


def test_a_window_by_tokens_holds_the_newest_that_fit(memory, say):
    sizes = [say(f"alpha beta gamma {number}").token_count for number in range(6)]
    budget = sizes[-1] + sizes[-2] + sizes[-3]
    assert seqs(memory.messages.last_tokens(thread_id="t", tokens=budget)) == [4, 5, 6]
    assert seqs(memory.messages.last_tokens(thread_id="t", tokens=budget - 1)) == [5, 6]
    assert seqs(memory.messages.last_tokens(thread_id="t", tokens=10**9)) == [1, 2, 3, 4, 5, 6]
    sizes = memory.messages.sizes(thread_id="t", tokens=budget)
    assert [size.seq for size in sizes] == [4, 5, 6]
    assert sum(size.tokens for size in sizes) == budget


def test_a_window_by_tokens_always_holds_the_newest_message(memory, fill):
    fill(3)
    assert seqs(memory.messages.last_tokens(thread_id="t", tokens=0)) == [3]


def test_a_window_by_tokens_may_end_before_a_message(memory, fill):
    fill(250)
    assert seqs(memory.messages.last_tokens(thread_id="t", tokens=10**9, before=240))[-1] == 239


def test_around_gives_a_message_with_its_neighbors(memory, fill):
    messages = fill(9)
    assert seqs(memory.messages.around(messages[4].id, before=2, after=1)) == [3, 4, 5, 6]
    assert seqs(memory.messages.around(messages[4].id)) == [3, 4, 5, 6, 7]
    assert seqs(memory.messages.around(messages[4].id, before=0, after=0)) == [5]


def test_around_stops_at_the_ends_of_the_thread(memory, fill, say):
    messages = fill(4)
    say("elsewhere", thread_id="other")
    assert seqs(memory.messages.around(messages[0].id, before=3, after=1)) == [1, 2]
    assert seqs(memory.messages.around(messages[3].id, before=1, after=3)) == [3, 4]


def test_around_an_unknown_message_is_not_found(memory):
    with pytest.raises(NotFoundError):
        memory.messages.around("nothing")


def test_a_history_window_shows_the_newest_entries_oldest_first(memory, fill):
    messages = fill(5)
    entries = memory.history.window("t", last=2)
    assert [(e.role, e.text, e.message_id) for e in entries] == [
        (m.role, m.raw_content, m.id) for m in messages[3:]
    ]


def test_a_history_window_of_none_is_empty(memory, fill):
    fill(3)
    assert memory.history.window("t", last=0) == []


def test_a_history_window_keeps_within_its_tokens_and_shows_the_newest_always(memory, fill):
    fill(5)
    each = memory.messages.list(thread_id="t", limit=1)[0].token_count
    assert shown(memory.history.window("t", tokens=2 * each)) == [(4, 4), (5, 5)]
    assert shown(memory.history.window("t", tokens=1)) == [(5, 5)]
    assert shown(memory.history.window("t", tokens=2 * each, last=1)) == [(5, 5)]


def test_a_history_window_may_end_before_a_message(memory, fill):
    fill(5)
    assert shown(memory.history.window("t", before=4, last=2)) == [(2, 2), (3, 3)]


def test_a_history_window_over_many_pages_is_whole(memory, fill):
    memory.threads.add("t")
    fill(333)
    entries = memory.history.window("t")
    covered = [seq for entry in entries for seq in range(entry.first_seq, entry.last_seq + 1)]
    assert covered == list(range(1, 334))
