"""Events over HTTP, and requests that are sent again."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import smara
from smara.surfaces.http import events
from tests.surfaces.http_server import Site, http_site
from tests.surfaces.shell import DEADLINE_SECONDS


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path) as opened:
        yield opened


class Stream:
    """An open stream of events."""

    def __init__(
        self, site: Site, last_id: str | None = None, query: str = "", **headers: str
    ) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", site.port, DEADLINE_SECONDS)
        own = {} if "Cookie" in headers else {"Authorization": f"Bearer {site.key}"}
        given = {**own, **headers}
        if last_id is not None:
            given["Last-Event-ID"] = last_id
        self.connection.request("GET", f"/events{query}", headers=given)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.headers["Content-Type"].startswith("text/event-stream")
        self.last_id = last_id
        self.begin()

    def begin(self) -> None:
        while self._line():  # the head ends with an empty line
            pass

    def _line(self) -> str:
        line = self.answer.readline().decode().rstrip("\n")
        if line.startswith("id: "):
            self.last_id = line[4:]
        return line

    def next(self) -> dict:
        """The next event."""
        kind = ""
        while True:
            line = self._line()
            if line.startswith("event: "):
                kind = line[7:]
            if line.startswith("data: "):
                return {**json.loads(line[6:]), "event": kind}

    def rest(self) -> bytes:
        return self.answer.read()

    def close(self) -> None:
        self.connection.close()


@contextmanager
def stream(site: Site, last_id: str | None = None, **headers: str) -> Iterator[Stream]:
    opened = Stream(site, last_id, **headers)
    try:
        yield opened
    finally:
        opened.close()


def test_what_happens_is_told_by_name_and_without_words(site):
    with stream(site) as watching:
        made = site.post("/tasks", {"title": "zebra"})
        site.post("/threads/t/messages", {"role": "user", "content": "zebra"})
        site.post(f"/tasks/{made['id']}/close", {"summary": "zebra"})
        told = [watching.next() for _ in range(3)]
    assert [each["event"] for each in told] == ["task.created", "message.added", "task.closed"]
    assert told[0]["id"] == made["id"]
    assert told[1]["threadId"] == "t"
    assert "zebra" not in json.dumps(told)


def test_what_another_process_writes_is_told_too(site, store):
    with stream(site) as watching:
        with smara.open(store, project="default") as other:
            memory = other.memories.remember("Use uv, never pip, in this repository").memory
        told = watching.next()
        assert (told["event"], told["id"]) == ("memory.created", memory.short_id)


def test_what_was_missed_is_told_first_and_once(site):
    with stream(site) as watching:
        site.post("/tasks", {"title": "one"})
        watching.next()
        seen = watching.last_id
    for title in ("two", "three"):
        site.post("/tasks", {"title": title})
    with stream(site, seen) as watching:
        site.post("/threads/t/messages", {"role": "user", "content": "four"})
        told = [watching.next()["event"] for _ in range(3)]
    assert told == ["task.created", "task.created", "message.added"]


def test_server_that_was_started_again_goes_on_where_the_client_was(store, tmp_path):
    with http_site(store, tmp_path) as site, stream(site) as watching:
        site.post("/tasks", {"title": "one"})
        watching.next()
        seen = watching.last_id
    with smara.open(store, project="default") as memory:
        memory.tasks.add("two")
    with http_site(store, tmp_path) as site, stream(site, seen) as watching:
        assert watching.next()["event"] == "task.created"


def test_one_who_missed_too_much_is_told_to_load_again(site, monkeypatch):
    monkeypatch.setattr(events, "_MOST_WAITING", 5)
    with stream(site) as watching:
        start = watching.last_id
    for number in range(8):
        site.post("/tasks", {"title": f"task {number}"})
    with stream(site, start) as watching:
        assert watching.next()["event"] == "reset"


@pytest.mark.parametrize("is_browser", [False, True], ids=["key", "browser"])
def test_a_stream_ends_with_the_key_that_opened_it(site, monkeypatch, is_browser):
    monkeypatch.setattr(events, "_BEAT_SECONDS", 0.01)
    key = site.named_key("leaver")
    headers = {"Authorization": f"Bearer {key}"}
    if is_browser:
        path = site.ask("POST", "/login/codes", key=key).json["path"]
        cookie = site.ask("GET", path, key=None).headers["Set-Cookie"].partition(";")[0]
        headers = {"Cookie": cookie}
    with stream(site, **headers) as watching, stream(site) as other:
        with site.service.store.memory() as memory:
            memory.internals.requests.access.revoke("leaver")
        watching.rest()  # it comes to an end
        site.post("/tasks", {"title": "x"})
        assert other.next()["event"] == "task.created"


def test_wrong_place_is_refused(site):
    reply = site.ask("GET", "/events", Last_Event_ID="nonsense!")
    assert (reply.status, reply.code) == (400, "invalid_input")


def test_many_clients_are_served_by_one_reader(site):
    """200 at once; the feed is read a few times, not a few times for each."""
    opened = [Stream(site) for _ in range(200)]
    site.post("/tasks", {"title": "one"})
    assert {each.next()["event"] for each in opened} == {"task.created"}
    channel = site.service.events.channels["default"]
    assert len(channel.watchers) == 200
    assert channel.polls < 100
    for each in opened:
        each.close()


def test_stream_ends_with_the_server(store, tmp_path):
    with http_site(store, tmp_path) as site:
        watching = Stream(site)
    assert b"event" not in watching.rest()
    watching.close()


def test_projects_are_apart_in_the_stream(site):
    site.post("/tasks", {"title": "red one"}, Smara_Project="red")
    with stream(site, **{"Smara-Project": "red"}) as watching:
        site.post("/tasks", {"title": "of default"})
        made = site.post("/tasks", {"title": "red two"}, Smara_Project="red")
        assert watching.next()["id"] == made["id"]


def test_too_many_streams_are_refused(site, monkeypatch):
    monkeypatch.setattr(events, "MOST_WATCHERS", 1)
    with stream(site):
        reply = site.ask("GET", "/events")
        assert (reply.status, reply.code) == (503, "too_many_watchers")


def test_feed_gives_the_same_in_pages(site):
    start = site.get("/feed/newest")["value"]
    for number in range(5):
        site.post("/tasks", {"title": f"task {number}"})
        site.post("/threads/t/messages", {"role": "user", "content": f"message {number}"})
    kinds, cursor = [], start
    while page := site.get(f"/feed?limit=3&after={cursor}")["events"]:
        kinds += [each["kind"] for each in page]
        cursor = site.get(f"/feed?limit=3&after={cursor}")["cursor"]
    assert sorted(kinds) == ["message.added"] * 5 + ["task.created"] * 5


def test_messages_that_are_older_than_others_are_not_passed_by(site):
    """What is imported has its own times."""
    start = site.get("/feed/newest")["value"]
    for at in (3_000, 1_000, 2_000):
        site.post("/threads/t/messages", {"role": "user", "content": f"{at}", "createdAt": at})
    seen, cursor = [], start
    for _ in range(3):
        page = site.get(f"/feed?limit=1&after={cursor}")
        seen += [each["at"] for each in page["events"]]
        cursor = page["cursor"]
    assert seen == [3_000, 1_000, 2_000]


def test_request_that_is_sent_again_is_done_once(site):
    first = site.ask("POST", "/tasks", {"title": "once"}, Idempotency_Key="k")
    second = site.ask("POST", "/tasks", {"title": "once"}, Idempotency_Key="k")
    assert (first.status, second.status) == (201, 201)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert first.json == second.json
    assert "once" not in str(site.get("/tasks")).replace("once", "", 1)


def test_request_that_is_sent_again_to_another_server_is_done_once(store, tmp_path):
    with http_site(store, tmp_path) as site:
        first = site.ask("POST", "/tasks", {"title": "once"}, Idempotency_Key="k").json
    with http_site(store, tmp_path, key=site.key) as site:
        second = site.ask("POST", "/tasks", {"title": "once"}, Idempotency_Key="k")
        assert second.json == first
        assert second.headers["Idempotent-Replayed"] == "true"


def test_key_of_another_request_is_refused(site):
    site.ask("POST", "/tasks", {"title": "one"}, Idempotency_Key="k")
    for method, path, body in (("POST", "/tasks", {"title": "two"}), ("POST", "/threads", {})):
        reply = site.ask(method, path, body, Idempotency_Key="k")
        assert (reply.status, reply.code) == (409, "conflict")


def test_request_that_was_refused_can_be_sent_again(site):
    body = {"dependsOn": "t-none"}
    assert site.ask("POST", "/tasks/t-sign/depend", body, Idempotency_Key="k").status == 404
    assert site.ask("POST", "/tasks/t-sign/depend", body, Idempotency_Key="k").status == 404


def test_two_at_once_with_one_key_do_it_once(site):
    replies: list[int] = []
    together = threading.Barrier(4)

    def send() -> None:
        together.wait(DEADLINE_SECONDS)
        replies.append(site.ask("POST", "/tasks", {"title": "once"}, Idempotency_Key="k").status)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(DEADLINE_SECONDS)
    assert set(replies) <= {201, 409}
    titles = [each["title"] for each in site.get("/tasks")["tasks"]]
    assert titles.count("once") == 1


def test_a_page_follows_every_kind_of_event_without_naming_it(site, store):
    with stream(site, query="?as=changed") as watching, smara.open(store) as memory:
        memory.jobs.add("worker", {"observed": 1})
        note = memory.memories.remember("Never mock the database.").memory
        memory.memories.pin(note.id, by="person")
        seen = [watching.next() for _ in range(3)]
    assert {each["event"] for each in seen} == {"changed"}
    assert {"job.done", "memory.created"} < {each["kind"] for each in seen}
