"""The pages on which people look around, and what their forms do in the engine."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

import smara
from smara.knowledge.models import Evidence, NewMemory
from smara.surfaces.panel.panel import panel_routes
from smara.surfaces.panel.render import changes, diff, numbered
from tests.surfaces.http_server import http_site


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path, pages=panel_routes) as opened:
        yield opened


def test_sessions_have_their_titles_and_large_numbers_their_marks(store, site):
    with smara.open(store, project="default") as memory:
        messages = [{"role": "user", "content": f"word {number}"} for number in range(1_200)]
        memory.messages.add_many(thread_id="0198-77", messages=messages)
        memory.threads.update("0198-77", title="Fix the invoice")
    page = site.ask("GET", "/ui/browse?kind=messages&thread_id=0198-77").body.decode()
    assert "Session: Fix the invoice" in page
    assert "<span>Fix the invoice</span>" in page
    assert "1,200 records" in page


def test_the_address_with_a_slash_leads_to_the_first_page(site):
    reply = site.ask("GET", "/ui/")
    assert (reply.status, reply.headers["location"]) == (308, "/ui")


def form(site, **fields):
    kind = {"Content_Type": "application/x-www-form-urlencoded"}
    return site.ask("POST", "/ui/act", urlencode(fields).encode(), **kind)


def test_contradicted_memories_beyond_the_newest_thousand_are_counted(store, site):
    with smara.open(store) as memory:
        [old, *_] = memory.memories.add_many(
            NewMemory(f"Queue q{no} gives up after {no} tries.", "gotcha", files=[f"src/q{no}.py"])
            for no in range(1_050)
        )
        memory.memories.mark_stale(old.memory.id, "the queue is gone", by="person")
    assert site.get("/ui.json")["stale"] == 1
    shown = site.get("/ui/browse.json?is_stale=yes")
    assert [row["uuid"] for row in shown["rows"]] == [old.memory.id]


def test_a_count_beside_a_facet_is_what_a_click_on_it_shows(store, site):
    with smara.open(store) as memory:
        for type_, text in (
            ("gotcha", "The cache gives up after four tries."),
            ("gotcha", "A login without a token is refused at noon."),
            ("preference", "Prefer tabs over spaces in Makefiles."),
        ):
            memory.memories.add(text, type=type_, files=["src/door.py"])
        memory.memories.pin(memory.memories.list().memories[0].id)
    shown = site.get("/ui/browse.json?type=gotcha")
    assert shown["total"] == len(shown["rows"]) == 2
    for facet in ("type", "is_pinned", "needs_review"):
        for value in shown["facets"][facet]:
            query = urlencode({"type": "gotcha"} | {facet: value["value"]})
            assert len(site.get(f"/ui/browse.json?{query}")["rows"]) == value["count"], query


def test_every_kind_of_record_is_listed_at_an_address(store, site):
    with smara.open(store) as memory:
        memory.messages.add(thread_id="t", role="user", content="Shall the door be blue?")
        memory.tasks.add("Paint the door")
        memory.working.put("# Goal", scope="thread", thread_id="t")
        memory.observations.end_session("t")
    for kind, least in (("messages", 1), ("tasks", 1), ("working", 1), ("observations", 1)):
        shown = site.get(f"/ui/browse.json?kind={kind}")
        assert (shown["kind"], len(shown["rows"]) >= least) == (kind, True)
    tools = site.get("/ui/browse.json?kind=messages&role=tool")["rows"]
    assert {row["role"] for row in tools} <= {"tool"}
    assert site.ask("GET", "/ui/browse?kind=walrus").status == 404


def test_evidence_leads_to_the_line_of_the_message_that_says_it(store, site):
    with smara.open(store) as memory:
        said = memory.messages.add(
            thread_id="t", role="user", content="Hello.\nThe port is 6399.\nThanks."
        )
        made = memory.memories.add(
            "Redis listens on port 6399.",
            type="requirement",
            evidence=[Evidence(message_id=said.id, quote="The port is 6399.")],
        ).memory
    page = site.ask("GET", f"/ui/memories/{made.short_id}").body.decode()
    address = f"/ui/messages/{said.id}?quote=The+port+is+6399."
    assert address in page
    assert '<li id="l2" class="hit">' in site.ask("GET", address).body.decode()


def test_an_erase_shows_what_goes_before_it_is_done(store, site):
    with smara.open(store) as memory:
        made = memory.memories.remember("Never mock the database.").memory
    plan = site.get(f"/ui/erase.json?memory={made.short_id}")
    assert plan["total"] >= 1
    with smara.open(store) as memory:
        assert memory.memories.find(made.id) is not None
    answer = form(site, call="privacy.erase", memories=made.id, back="/ui/browse")
    assert (answer.status, answer.headers["location"]) == (303, "/ui/browse")
    with smara.open(store) as memory:
        assert memory.memories.find(made.id) is None


def test_a_difference_is_shown_word_by_word():
    assert str(diff("retries four times", "retries five times")) == (
        '<span class="diff">retries <del>four</del><ins>five</ins> times</span>'
    )
    assert "<b>" not in diff("a", "<b>")
    event = {
        "before": {"is_pinned": False, "version": 1},
        "after": {"is_pinned": True, "version": 2},
    }
    assert "is_pinned" in changes(event)
    assert "<ins>yes</ins>" in changes(event)
    assert "version" not in changes(event)


def test_a_quotation_over_two_lines_is_marked_in_both():
    drawn = str(numbered("one\ntwo three\nfour five\nsix", "three four"))
    assert drawn.count('class="hit"') == 2
