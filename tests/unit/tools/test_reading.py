"""``memory-search`` with an id opens any hit, whatever it is."""

from __future__ import annotations

import pytest

from smara.testing import open_temporary
from smara.tools import Toolbox


@pytest.fixture
def memory():
    with open_temporary() as found:
        found.messages.add(
            thread_id="t", role="user", content="The walrus cache is cleared at midnight."
        )
        found.tasks.add("Clear the walrus cache", description="Every night.")
        found.memories.remember("The walrus cache must never be cleared by hand.")
        found.observations.observe("t")
        yield found


@pytest.mark.parametrize("source", ["raw", "task", "memory", "observation"])
def test_hit_of_every_source_is_opened_by_its_id(memory, source):
    tools = Toolbox(memory)
    hits = tools.call(
        "memory-search", {"action": "search", "query": "walrus cache", "limit": 20}
    ).structured["results"]
    hit = next(each for each in hits if each["source"] == source)
    opened = tools.call("memory-search", {"action": "read", "id": hit["id"]})
    assert not opened.is_error
    assert "walrus cache" in opened.text
    content = opened.structured.get("message", opened.structured.get("record"))["content"]
    assert content == hit["content"]


def test_id_of_nothing_is_refused(memory):
    assert Toolbox(memory).call("memory-search", {"action": "read", "id": "0199-nobody"}).is_error
