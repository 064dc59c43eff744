"""Messages that were erased leave gaps in a thread; compaction goes on over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE


def say(memory: Any, count: int) -> None:
    for _ in range(count):
        memory.messages.add(thread_id="t", role="user", content="a word about the parser")


@pytest.mark.parametrize("gone", [[1], [1, 4, 10], range(1, 11), [25]])
def test_thread_with_gaps_is_compacted(place: Any, gone: Sequence[int]) -> None:
    memory = place.open()
    say(memory, 29)
    with memory._rooms.database.write() as session:
        for seq in gone:
            (no,) = session.one("SELECT no FROM messages WHERE seq = ?", (seq,))
            memory._rooms.database.fulltext.remove(session, no)
            session.run("DELETE FROM messages WHERE no = ?", (no,))
    say(memory, 12)
    assert [(each.start_seq, each.end_seq) for each in memory.compactions.list("t")][-1] == (11, 20)
    assert memory.history.window("t")
    assert memory.search("parser")
