"""Secrets in names that callers give, on both databases: none of them is stored."""

from __future__ import annotations

import pytest

from tests.contract.both import EACH_DATABASE
from tests.contract.moments_place import OFF

pytestmark = EACH_DATABASE
TOKEN = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


@pytest.fixture
def memory(place):
    return place.open(**OFF)


def test_an_id_with_a_secret_is_stored_without_it_and_still_found_by_it(memory):
    stored = memory.messages.add(
        thread_id=f"t-{TOKEN}", role="user", content="hello", client_id=f"c-{TOKEN}"
    )
    again = memory.messages.add(
        thread_id=f"t-{TOKEN}", role="user", content="hello", client_id=f"c-{TOKEN}"
    )
    assert stored.id == again.id
    thread = memory.threads.find(f"t-{TOKEN}")
    assert thread is not None
    assert TOKEN not in repr((thread, stored))
    assert [each.content for each in memory.messages.list(thread_id=f"t-{TOKEN}")] == ["hello"]


def test_a_thread_of_a_resource_with_a_secret_is_written_to_listed_and_searched(memory):
    owner = {"resource_id": f"r-{TOKEN}"}
    for content in ("the parrot sleeps", "the parrot wakes"):
        memory.messages.add(thread_id=f"t-{TOKEN}", role="user", content=content, **owner)
    assert len(memory.threads.list(**owner)) == 1
    assert len(memory.search("parrot", **owner)) == 2
    assert len(memory.search("parrot", thread_id=f"t-{TOKEN}")) == 2


def test_two_ids_with_different_secrets_stay_two(memory):
    for token in (TOKEN, TOKEN[:-1] + "y"):
        memory.messages.add(thread_id=token, role="user", content=token[-1])
    assert len(memory.threads.list()) == 2


def test_a_resource_a_project_and_a_page_are_named_without_secrets(memory):
    memory.working.put("# Notes\nx", resource_id=f"r-{TOKEN}")
    assert memory.working.get(resource_id=f"r-{TOKEN}").content == "# Notes\nx"
    assert TOKEN not in repr(memory.working.get(resource_id=f"r-{TOKEN}"))
    other = memory.in_project(f"p-{TOKEN}")
    assert TOKEN not in repr(other.projects.list())
