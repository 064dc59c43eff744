"""Requests that are sent again, and the feed of what happened, on both databases."""

from __future__ import annotations

import pytest

from smara.errors import ConflictError, InvalidInputError
from smara.requests.requests import RUNNING_MS, DoneRequest
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE


@pytest.fixture
def requests(memory):
    return memory.internals.requests


def test_first_is_done_and_second_is_told_what_it_made(requests):
    assert requests.begin("k", "POST a") is None
    requests.finish("k", "tasks.get", "t-1")
    assert requests.begin("k", "POST a") == DoneRequest("tasks.get", "t-1")


def test_key_stands_for_one_request(requests):
    requests.begin("k", "POST a")
    requests.finish("k")
    with pytest.raises(ConflictError, match="another request"):
        requests.begin("k", "POST b")


def test_request_that_runs_is_waited_for_and_one_that_was_lost_is_not_repeated(requests, clock):
    requests.begin("k", "POST a")
    with pytest.raises(ConflictError, match="still running"):
        requests.begin("k", "POST a")
    clock.advance(RUNNING_MS / 1_000)
    with pytest.raises(ConflictError, match="may have been done"):
        requests.begin("k", "POST a")


def test_request_that_was_refused_may_be_sent_again(requests):
    requests.begin("k", "POST a")
    requests.abandon("k")
    assert requests.begin("k", "POST a") is None


def test_keys_of_projects_are_apart(memory, requests):
    requests.begin("k", "POST a")
    assert memory.in_project("other").internals.requests.begin("k", "POST a") is None


def test_no_word_of_a_key_or_a_request_is_stored(memory, requests):
    requests.begin("zebra", "POST zebra")
    with memory.internals.database.read() as session:
        rows = session.all("SELECT key, request FROM request_keys", ())
    assert "zebra" not in str([tuple(row) for row in rows])


def test_feed_tells_in_order_what_happened_after_a_place(memory, say, clock):
    start = memory.feed.newest()
    say("hello", thread_id="t")
    clock.advance(1)
    task = memory.tasks.add("mend the door")
    clock.advance(1)
    memory.tasks.close(task.id, "done")
    page = memory.feed.list(start)
    assert [each.kind for each in page] == ["message.added", "task.created", "task.closed"]
    assert (page[0].thread_id, page[1].id) == ("t", task.short_id)
    assert memory.feed.list(page.cursor).events == ()
    assert page.cursor == memory.feed.newest()


def test_feed_of_another_project_is_another(memory, say):
    say("hello")
    assert memory.in_project("other").feed.list().events == ()


@pytest.mark.parametrize("cursor", ["x", "m", "m1.", "m1,t2", "m-1", "m99999999999999999999"])
def test_what_is_no_place_is_refused(memory, cursor):
    with pytest.raises(InvalidInputError):
        memory.feed.list(cursor)
