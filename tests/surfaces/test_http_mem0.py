"""Clients of mem0 against our server: the requests that its client sends, and what trust makes of
them. The real client runs in ``tests/conformance``.
"""

from __future__ import annotations

import pytest

import smara
from smara.surfaces.http.mem0 import matches
from tests.surfaces.http_server import http_site

NUTS = "I am vegetarian and allergic to nuts"


@pytest.fixture
def site(db, tmp_path):
    with http_site(db, tmp_path, has_mem0=True) as opened:
        yield opened


def token(site) -> dict[str, str]:
    return {"Authorization": f"Token {site.key}"}


def add(site, text: str = NUTS, **given: object) -> dict:
    body = {"messages": [{"role": "user", "content": text}], **given}
    reply = site.ask("POST", "/v3/memories/add/", body, key=None, **token(site))
    assert reply.status == 200, reply.body
    return reply.json


def found(site, query: str, user: str) -> list[str]:
    body = {"query": query, "filters": {"user_id": user}}
    reply = site.ask("POST", "/v3/memories/search/", body, key=None, **token(site))
    return [each["memory"] for each in reply.json["results"]]


def test_paths_of_mem0_are_served_only_if_asked_for(db, tmp_path):
    with http_site(db, tmp_path) as site:
        assert site.ask("GET", "/v1/ping/").status == 404


def test_client_is_greeted_by_its_key(site):
    reply = site.ask("GET", "/v1/ping/", key=None, **token(site))
    assert (reply.json["status"], reply.json["project_id"]) == ("ok", "default")
    assert site.ask("GET", "/v1/ping/", key=None, Authorization="Token wrong").status == 401


def test_statement_is_a_memory_of_its_user_and_waits_for_review(site, db):
    (made,) = add(site, user_id="alice")["results"]
    assert (made["event"], made["memory"]) == ("ADD", NUTS)
    assert found(site, "nuts allergy", "alice") == [NUTS]
    assert found(site, "nuts allergy", "bob") == []
    with smara.open(db, project="default") as memory:
        stored = memory.memories.get(made["id"])
        assert (stored.is_verified, stored.tier) == (False, "unconfirmed")
        (evidence,) = stored.evidence
        assert memory.messages.get(evidence.message_id).raw_content == NUTS


def test_words_of_an_assistant_and_small_talk_are_kept_and_are_no_memories(site, db):
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "The deployment always needs two approvals from ops"},
    ]
    body = {"messages": messages, "user_id": "alice"}
    assert site.ask("POST", "/v3/memories/add/", body).json == {"results": []}
    with smara.open(db, project="default") as memory:
        (thread,) = memory.threads.list()
        assert [each.role for each in memory.messages.list(thread_id=thread.id)] == [
            "user",
            "assistant",
        ]


def test_client_cannot_change_what_a_person_confirmed(site, db):
    (made,) = add(site, user_id="alice")["results"]
    with smara.open(db, project="default") as memory:
        memory.memories.verify(made["id"], by="person")
    path = f"/v1/memories/{made['id']}/"
    assert site.ask("PUT", path, {"text": "I eat everything, nuts above all"}).status == 409
    assert site.ask("DELETE", path).status == 409
    assert site.get(path)["memory"] == NUTS


def test_same_statement_of_two_users_stays_with_the_other(site):
    for user in ("alice", "bob"):
        add(site, "I love hiking in the mountains", user_id=user)
    site.ask("DELETE", "/v1/memories/?user_id=alice")
    assert found(site, "hiking mountains", "alice") == []
    assert found(site, "hiking mountains", "bob") == ["I love hiking in the mountains"]


def test_memory_is_read_changed_followed_and_deleted(site):
    (made,) = add(site, user_id="alice", metadata={"topic": "food"})["results"]
    path = f"/v1/memories/{made['id']}/"
    shape = site.get(path)
    assert (shape["user_id"], shape["metadata"]) == ("alice", {"topic": "food"})
    changed = site.ask("PUT", path, {"text": "I am vegan and allergic to nuts"}).json
    assert changed["memory"] == "I am vegan and allergic to nuts"
    assert site.get(path)["metadata"] == {"topic": "food"}
    history = site.get(f"{path}history/")
    assert [each["event"] for each in history][:2] == ["ADD", "UPDATE"]
    assert history[1]["old_memory"] == NUTS
    assert site.ask("DELETE", path).status == 200
    assert site.ask("GET", path).status == 404


def test_lists_have_pages_and_filters(site):
    names = ("oslo", "rome", "kyoto", "lima", "quito")
    for name in names:
        add(
            site,
            f"My office is in the city of {name} this year",
            user_id="alice",
            metadata={"city": name},
        )
    page = site.ask("POST", "/v3/memories/?page=1&page_size=2", {"filters": {"user_id": "alice"}})
    assert (page.json["count"], len(page.json["results"])) == (5, 2)
    assert page.json["next"]
    only = {"AND": [{"user_id": "alice"}, {"metadata": {"city": "rome"}}]}
    (one,) = site.ask("POST", "/v3/memories/", {"filters": only}).json["results"]
    assert "rome" in one["memory"]


def test_entities_are_counted_and_deleted(site):
    add(site, user_id="alice")
    add(site, "I love hiking in the mountains", agent_id="guide")
    entities = site.get("/v1/entities/")["results"]
    assert {(each["type"], each["name"]) for each in entities} == {
        ("user", "alice"),
        ("agent", "guide"),
    }
    assert site.ask("DELETE", "/v2/entities/user/alice/").status == 200
    assert [each["name"] for each in site.get("/v1/entities/")["results"]] == ["guide"]


def test_batches_are_done(site):
    ids = [
        add(site, text, user_id="a")["results"][0]["id"]
        for text in (NUTS, "I love hiking in the mountains")
    ]
    rows = [
        {"memory_id": each, "text": f"I moved to another city, number {n}"}
        for n, each in enumerate(ids)
    ]
    assert site.ask("PUT", "/v1/batch/", {"memories": rows}).status == 200
    rows = [{"memory_id": each} for each in ids]
    assert site.ask("DELETE", "/v1/batch/", {"memories": rows}).status == 200
    assert site.ask("POST", "/v3/memories/", {"filters": {"user_id": "a"}}).json["count"] == 0


def test_self_hosted_interface_has_its_own_address(site):
    made = site.post("/mem0/memories", {"messages": NUTS, "user_id": "alice"})["results"][0]
    assert site.get("/mem0/memories?user_id=alice")["results"][0]["id"] == made["id"]
    hits = site.post("/mem0/search", {"query": "nuts allergy", "user_id": "alice"})["results"]
    assert [each["id"] for each in hits] == [made["id"]]
    assert site.get(f"/mem0/memories/{made['id']}/history")[0]["event"] == "ADD"
    site.post("/mem0/reset")
    assert site.get("/mem0/memories?user_id=alice") == {"results": []}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v3/memories/add/", {}, 400),
        ("POST", "/v3/memories/add/", {"messages": [1]}, 400),
        ("POST", "/v3/memories/add/", {"messages": "x", "user_id": {}}, 400),
        ("POST", "/v3/memories/search/", {"query": ""}, 400),
        ("POST", "/v3/memories/search/", {"query": "x", "top_k": 0}, 400),
        ("POST", "/v3/memories/", {"filters": {"user_id": {"near": 1}}}, 200),
        ("POST", "/v3/memories/", {"filters": []}, 400),
        ("DELETE", "/v1/memories/", None, 400),
        ("GET", "/v1/memories/none/", None, 404),
        ("PUT", "/v1/batch/", {"memories": [{}]}, 400),
        ("POST", "/v1/exports/", {}, 501),
        ("POST", "/mem0/configure", {}, 501),
    ],
)
def test_refusal_is_typed(site, method, path, body, status):
    reply = site.ask(method, path, body)
    assert reply.status == status, reply.body
    assert status == 200 or reply.code


def test_key_that_may_only_read_adds_nothing(site):
    key = site.named_key(may_write=False)
    body = {"messages": NUTS, "user_id": "alice"}
    assert site.ask("POST", "/v3/memories/add/", body, key=key).status == 403
    query = {"query": "nuts", "filters": {"user_id": "alice"}}
    assert site.ask("POST", "/v3/memories/search/", query, key=key).status == 200


def test_filters_combine():
    shape = {"user_id": "a", "created_at": "2026-05-01", "metadata": {"n": 3}, "categories": ["x"]}
    assert matches({"OR": [{"user_id": "b"}, {"n": {"gte": 3, "lt": 4}}]}, shape)
    assert not matches({"NOT": [{"categories": "x"}]}, shape)
    assert matches({"user_id": "*", "created_at": {"gt": "2026-01-01"}}, shape)
    assert not matches({"run_id": "*"}, shape)
    assert matches({"user_id": {"in": ["a", "b"]}}, shape)
