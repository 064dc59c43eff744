"""Every room over HTTP: the routes, their description, pages, versions and errors."""

from __future__ import annotations

import re

import pytest
from jsonschema import Draft202012Validator

import smara
from smara.memory import Memory, Room
from smara.surfaces.http import openapi
from smara.surfaces.http.codec import walk
from smara.surfaces.http.openapi import document
from smara.surfaces.http.routes import ROUTES, Router
from smara.surfaces.http.shape import SHAPES
from tests import http_reference
from tests.surfaces.http_server import http_site
from tests.surfaces.shell import smara as command_line


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path) as opened:
        yield opened


def operations():
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_description_has_every_route_and_no_other():
    described = {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path, _ in operations()}
    served = {(each.method, re.sub(r"\{\w+\}", "{}", each.path)) for each in ROUTES}
    assert described == served
    assert len(ROUTES) == len(described)


def test_description_is_a_whole_with_unique_names():
    whole = document()
    names = [operation["operationId"] for _, _, operation in operations()]
    assert len(names) == len(set(names))
    known = set(whole["components"]["schemas"])
    used = {
        each["$ref"].rpartition("/")[2]
        for each in walk(whole)
        if isinstance(each, dict) and "$ref" in each
    }
    assert used <= known
    for schema in whole["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_description_has_the_parameters_of_the_methods_and_says_what_writes():
    by_name = {operation["operationId"]: operation for _, _, operation in operations()}
    claim = by_name["tasks.claim"]
    assert claim["x-writes"] is True
    assert "If-Match" in {each["name"] for each in claim["parameters"]}
    body = by_name["messages.add"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["role", "content"]
    assert body["properties"]["role"] == {"enum": ["user", "assistant", "system", "tool"]}
    assert by_name["post.search"]["x-writes"] is False


def test_every_room_is_served_or_named_here():
    """A room that is added must be served, or its absence must be decided."""
    rooms = {name for name, value in vars(Memory).items() if isinstance(value, Room)}
    served = {route.call.partition(".")[0] for route in ROUTES}
    # The nodes of the first are of one process; the second is for adapters beside the store.
    assert rooms - served == {"code_knowledge", "frameworks"}


def test_a_new_shape_has_a_schema():
    assert {each.__name__ for each in SHAPES} == set(openapi.SHAPED)


def test_openapi_is_served(site):
    assert site.get("/openapi.json") == document()


def validator(schema):
    whole = {"components": document()["components"], **schema}
    return Draft202012Validator(whole)


def test_answers_are_what_the_description_says(site, tmp_path):
    """A story through the rooms; every answer is held against its schema."""
    site.post("/threads/login/messages", {"role": "user", "content": "We use argon2 for hashes."})
    text = "Run `make seed` before the integration tests, or they fail without fixtures"
    made = site.post("/memories/remember", {"text": text, "files": ["Makefile"]})
    site.ask("PUT", "/working", {"content": "# Now\n- seeds", "scope": "resource"})
    site.post("/threads/login/observe", {"isNow": True})
    memory, message = made["memory"]["id"], site.get("/threads/login/messages")["messages"][0]["id"]
    queries = {
        "/search": "?query=schema", "/search/threads": "?query=schema", "/complete": "?prefix=l",
        "/search/pattern": "?pattern=seed", "/tasks/search": "?query=webhooks",
        "/memories/search": "?query=seed", "/observations/search": "?query=argon",
        "/decisions/search": "?text=argon", "/decisions/reasons": "?question=why",
        "/memories/for-files": "?paths=Makefile", "/memories/guess-type": "?text=never",
        "/working": "?scope=resource", "/working/history": "?scope=resource",
        "/working/render": "?scope=resource", "/threads/{}/messages/newest": "?tokens=100",
        "/threads/{}/messages/sizes": "?tokens=100",
        "/working/versions/{}": "?scope=resource",
        "/browse/why-not": "?query=schema&recordId=t-sign",
    }  # fmt: skip
    values = {
        "thread_id": "login", "task_id": "t-sign", "memory_id": memory, "message_id": message,
        "version": "1",
    }  # fmt: skip
    left_out, held, problems = set(), 0, []
    for route in ROUTES:
        if route.method != "GET" or route.signature.is_stream:
            continue
        if not set(route.in_path) <= set(values) or route.segments[0] in ("code", "commits"):
            left_out.add(route.path)
            continue
        path = re.sub(r"\{(\w+)\}", lambda found: values[found[1]], route.path)
        reply = site.ask("GET", path + queries.get(re.sub(r"\{\w+\}", "{}", route.path), ""))
        assert reply.status == 200, (path, reply.body)
        operation = document()["paths"][
            re.sub(r"\{(\w+)\}", lambda found: "{" + openapi.camel(found[1]) + "}", route.path)
        ]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        problems += [
            f"{path}: {list(each.absolute_path)} {each.message[:200]}"
            for each in validator(schema).iter_errors(reply.json)
        ]
        held += 1
    assert problems == []
    assert held > 60


def test_shapes_are_those_of_the_command_line(site):
    site.post("/memories/remember", {"text": "Use uv, never pip, in this repository"})
    pairs = [
        (site.get("/tasks/t-sign/show"), command_line("--json", "tasks", "show", "t-sign").data),
        (site.get("/threads")["threads"], command_line("--json", "threads", "list").data),
        (
            site.get("/threads/login/messages")["messages"],
            command_line("--json", "messages", "list", "--thread", "login").data,
        ),
        (
            site.get("/memories")["memories"],
            command_line("--json", "memories", "list").data["memories"],
        ),
        (
            site.get("/search?query=LoginSchema&neighbors=1")["results"],
            command_line("--json", "search", "LoginSchema").data["results"],
        ),
        (site.get("/status")["tasks"], command_line("--json", "status").data["tasks"]),
    ]
    assert [each for each, _ in pairs] == [each for _, each in pairs]


def test_cursor_leads_through_all_pages(site):
    for number in range(25):
        site.post("/threads/long/messages", {"role": "user", "content": f"message {number}"})
        site.post("/tasks", {"title": f"task {number}"})
    for path, noun, name in (
        ("/threads/long/messages", "messages", "content"),
        ("/tasks?status=open", "tasks", "title"),
    ):
        seen: list[str] = []
        cursor, pages = "", 0
        while cursor is not None:
            mark = "&" if "?" in path else "?"
            page = site.get(f"{path}{mark}limit=10" + (f"&cursor={cursor}" if cursor else ""))
            seen += [each[name] for each in page[noun]]
            cursor, pages = page["nextCursor"], pages + 1
        assert len(seen) == len(set(seen)) >= 25
        assert pages >= 3


@pytest.mark.parametrize("cursor", ["x", "=", "dGFza3MubGlzdCAx", "w4RkZA", "%00"])
def test_cursor_of_another_list_is_refused(site, cursor):
    reply = site.ask("GET", f"/threads?cursor={cursor}")
    assert (reply.status, reply.code) == (400, "invalid_input")


def test_second_editor_is_told_of_both_versions(site):
    """On everything that can be edited; nothing of the second is written."""
    text = "Run `make seed` before the integration tests, or they fail without fixtures"
    memory = site.post("/memories/remember", {"text": text})["memory"]["id"]
    site.ask("PUT", "/working", {"content": "one", "scope": "resource"})
    cases = [
        ("/tasks/t-sign", "", {"title": "First"}, {"title": "Second"}, "title"),
        ("/threads/login", "", {"title": "First"}, {"title": "Second"}, "title"),
        (f"/memories/{memory}", "", {"tags": ["first"]}, {"tags": ["second"]}, "tags"),
    ]
    for path, query, first, second, name in cases:
        seen = site.ask("GET", path + query).headers["ETag"]
        done = site.ask("PATCH", path, first, If_Match=seen)
        assert done.status == 200, done.body
        assert done.headers["ETag"] not in (seen, None)
        refused = site.ask("PATCH", path, second, If_Match=seen)
        assert (refused.status, refused.code) == (409, "stale")
        assert refused.json["current"]["record"][name] == first[name]
        assert refused.json["yours"]["changes"][name] == second[name]
        assert refused.json["current"]["etag"] == done.headers["ETag"]
        assert site.get(path)[name] == first[name]
        again = site.ask("PATCH", path, second, If_Match=done.headers["ETag"])
        assert again.status == 200, again.body
    seen = site.ask("GET", "/working?scope=resource").headers["ETag"]
    put = {"content": "two", "scope": "resource"}
    assert site.ask("PUT", "/working", put, If_Match=seen).status == 200
    refused = site.ask("PUT", "/working", {**put, "content": "three"}, If_Match=seen)
    assert (refused.status, refused.json["current"]["record"]["content"]) == (409, "two")


@pytest.mark.parametrize("room", ["tasks", "threads", "memories"])
def test_change_between_the_look_and_the_write_is_seen(site, store, room, monkeypatch):
    """Another process writes after If-Match was compared, and before the write."""
    text = "Run `make seed` before the integration tests, or they fail without fixtures"
    memory = site.post("/memories/remember", {"text": text})["memory"]["id"]
    path = {"tasks": "/tasks/t-sign", "threads": "/threads/login"}.get(room, f"/memories/{memory}")
    change = {"tags": ["mine"]} if room == "memories" else {"title": "mine"}
    tag = site.ask("GET", path).headers["ETag"]
    from smara.surfaces.http import api

    real = api.bound

    def slow(opened, call):
        if call.endswith(".update"):
            with smara.open(store, project="default") as other:
                if room == "tasks":
                    other.tasks.update("t-sign", title="theirs")
                elif room == "threads":
                    other.threads.update("login", title="theirs")
                else:
                    other.memories.update(memory, tags=["theirs"], by="person")
        return real(opened, call)

    monkeypatch.setattr(api, "bound", slow)
    refused = site.ask("PATCH", path, change, If_Match=tag)
    assert (refused.status, refused.code) == (409, "stale")
    current = refused.json["current"]["record"]
    assert "theirs" in (current.get("title"), *current.get("tags", ()))


def test_unchanged_record_is_not_sent_again(site):
    tag = site.ask("GET", "/tasks/t-sign").headers["ETag"]
    reply = site.ask("GET", "/tasks/t-sign", If_None_Match=tag)
    assert (reply.status, reply.body) == (304, b"")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/tasks/t-none", None, 404, "not_found"),
        ("GET", "/nothing", None, 404, "no_route"),
        ("DELETE", "/tasks", None, 405, "wrong_method"),
        ("GET", "/tasks?color=red", None, 400, "invalid_input"),
        ("GET", "/tasks?limit=0", None, 400, "invalid_input"),
        ("GET", "/tasks?limit=many", None, 400, "invalid_input"),
        ("GET", "/tasks?limit=100000", None, 400, "invalid_input"),
        ("GET", "/search", None, 400, "invalid_input"),
        ("POST", "/tasks", {}, 400, "invalid_input"),
        ("POST", "/tasks", {"title": 1}, 400, "invalid_input"),
        ("POST", "/tasks", {"title": "a", "color": "red"}, 400, "invalid_input"),
        ("POST", "/tasks/t-docs/claim", {}, 409, "task_blocked"),
        ("POST", "/tasks/t-sign/depend", {"dependsOn": "t-docs"}, 409, "dependency_cycle"),
        ("GET", "/status?project=nowhere", None, 404, "not_found"),
    ],
)  # fmt: skip
def test_refusal_has_a_status_and_a_code(site, method, path, body, status, code):
    reply = site.ask(method, path, body)
    assert (reply.status, reply.code) == (status, code)


def test_claim_of_another_session_names_the_holder(site):
    site.post("/tasks/t-sign/claim", Smara_Session="a", Smara_Actor="ada")
    reply = site.ask("POST", "/tasks/t-sign/claim", {}, Smara_Session="b")
    assert (reply.status, reply.code) == (409, "task_claimed")
    assert site.get("/tasks/t-sign")["assignee"] == "ada"


def test_id_with_a_slash_has_a_path(site):
    site.post("/threads/src%2Fa%20b%3F/messages", {"role": "user", "content": "x"})
    assert site.get("/threads/src%2Fa%20b%3F")["id"] == "src/a b?"


def test_projects_are_apart(site):
    site.post("/tasks", {"title": "in red"}, Smara_Project="red")
    assert [each["title"] for each in site.get("/tasks?project=red")["tasks"]] == ["in red"]
    assert "in red" not in str(site.get("/tasks"))


def test_literal_part_of_a_path_goes_before_an_id():
    router = Router()
    assert router.find(b"/tasks/ready")[0]["GET"].call == "tasks.ready"
    assert router.find(b"/tasks/t-1")[0]["GET"].call == "tasks.get"
    assert router.find(b"/tasks/ready/claim")[0]["POST"].call == "tasks.claim"
    assert router.find(b"/tasks/t-1/x/y") == ({}, [])


def test_what_is_changed_over_http_is_told_by_the_next_hook(site, store, monkeypatch):
    """The brief that hooks read is brought up to date after a write."""
    seen = []
    real = site.service.api._after_write
    monkeypatch.setattr(site.service.api, "_after_write", lambda memory: seen.append(real(memory)))
    site.post("/tasks", {"title": "new"})
    site.get("/tasks")
    assert len(seen) == 1


def test_reference_page_is_that_of_the_routes():
    """Written by ``python -m tests.http_reference``."""
    assert http_reference.PAGE.read_text(encoding="utf-8") == http_reference.page()


@pytest.mark.parametrize("level", [0, 5, -1, 10])
def test_a_preview_with_a_level_that_does_not_exist_is_refused(site, level):
    site.post("/memories/remember", {"text": "Never mock the database."})
    answer = site.ask("GET", f"/context/preview?trustLevel={level}")
    assert (answer.status, answer.code) == (400, "invalid_input")
