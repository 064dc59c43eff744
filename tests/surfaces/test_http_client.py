"""``smara.connect``: the same memory, over HTTP. The contract holds its rooms; this is the rest."""

from __future__ import annotations

import threading

import pytest

import smara
from smara.errors import (
    ConfigError,
    ConnectionLostError,
    InvalidInputError,
    NotFoundError,
    TaskClaimedError,
    UsageError,
)
from smara.surfaces.http.server import announced
from tests.surfaces.http_server import http_site


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path) as opened:
        yield opened


@pytest.fixture
def memory(site):
    with smara.connect(site.url, key=site.key) as connected:
        yield connected


def test_it_is_a_memory_with_the_same_records(memory, store):
    assert isinstance(memory, smara.Memory)
    with smara.open(store, project="default") as local:
        assert memory.project == local.project
        assert memory.tasks.list() == local.tasks.list()
        assert memory.threads.list() == local.threads.list()
        assert memory.messages.list(thread_id="login") == local.messages.list(thread_id="login")
        hits = [memory.search("LoginSchema"), local.search("LoginSchema")]
        assert hits[0][0].snippet == hits[1][0].snippet
        assert [each.id for each in hits[0]] == [each.id for each in hits[1]]
        assert memory.tasks.show("t-docs") == local.tasks.show("t-docs")


def test_key_that_the_server_left_is_found(site, monkeypatch, tmp_path):
    monkeypatch.setenv("SMARA_HOME", str(tmp_path))
    with announced(site.url, site.key, site.folder), smara.connect(site.url) as memory:
        assert memory.tasks.get("t-sign").title
    with pytest.raises(ConfigError, match="smara keys add"):
        smara.connect(site.url)


def test_wrong_key_address_and_silence_are_told(site, tmp_path):
    with pytest.raises(ConfigError):
        smara.connect(site.url, key="wrong")
    with pytest.raises(ConfigError, match="not an address"):
        smara.connect("store.db", key="x")
    with pytest.raises(ConnectionLostError, match="smara serve"):
        smara.connect("http://127.0.0.1:9", key="x")


def test_server_that_was_started_again_is_asked_again(store, tmp_path):
    with http_site(store, tmp_path) as first:
        memory = smara.connect(first.url, key=first.key)
        assert memory.tasks.find("t-sign")
    with pytest.raises(ConnectionLostError):
        memory.tasks.get("t-sign")
    address = f"127.0.0.1:{first.port}"
    with http_site(store, tmp_path, address=address, key=first.key):
        assert memory.tasks.get("t-sign").short_id == "t-sign"
    memory.close()


def test_errors_are_those_of_the_rooms_with_their_facts(memory, site):
    with pytest.raises(NotFoundError):
        memory.tasks.get("t-none")
    memory.tasks.claim("t-sign", session_id="a", actor="ada")
    with pytest.raises(TaskClaimedError) as caught:
        memory.tasks.claim("t-sign", session_id="b")
    assert caught.value.code == "task_claimed"
    assert "holder" in caught.value.facts
    with pytest.raises(InvalidInputError):
        memory.tasks.add("")


@pytest.mark.parametrize(
    "use",
    [
        lambda memory: memory.privacy.backup("x.db"),
        lambda memory: memory.code.watch(),
        lambda memory: memory.with_settings(model="x"),
        lambda memory: memory.behavior.coder_files([], str),
        lambda memory: memory.memories.add_many([], also=print),
    ],
)
def test_what_is_not_served_says_so(memory, use):
    with pytest.raises(UsageError, match="over HTTP"):
        use(memory)


def test_wrong_arguments_are_refused_as_python_does(memory):
    with pytest.raises(TypeError):
        memory.tasks.add()
    with pytest.raises(TypeError):
        memory.tasks.add("title", colour="red")


def test_projects_are_apart_and_made_on_first_use(memory, store):
    red = memory.in_project("red")
    red.tasks.add("in red")
    assert [each.title for each in red.tasks.list()] == ["in red"]
    assert "in red" not in str(memory.tasks.list())
    assert {"default", "red"} <= {each.id for each in memory.projects.list()}


def test_many_threads_share_one_client(memory):
    def add(number: int) -> None:
        for at in range(5):
            memory.messages.add(thread_id=f"t{number}", role="user", content=f"message {at}")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [len(memory.messages.list(thread_id=f"t{number}")) for number in range(6)] == [5] * 6


def test_session_and_actor_stand_in_the_history(site):
    with smara.connect(site.url, key=site.key, session="s1", actor="ada") as memory:
        memory.tasks.claim("t-sign")
        task = memory.tasks.get("t-sign")
    assert (task.session_id, task.assignee) == ("s1", "ada")


def test_stream_of_records_comes_whole(memory):
    assert {each.short_id for each in memory.tasks.export()} == {
        "t-hooks",
        "t-sign",
        "t-docs",
        "t-old",
    }
    memory.messages.add_many(
        thread_id="long", messages=[{"role": "user", "content": f"m{n}"} for n in range(620)]
    )
    assert len(list(memory.messages.stream(thread_id="long"))) == 620
    assert len(memory.messages.list(thread_id="long")) == 620
