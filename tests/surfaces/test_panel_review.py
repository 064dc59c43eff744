"""The review in the panel: what it would change, many at once, undo, corrections, trust."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

import smara
from smara.surfaces.panel.panel import panel_routes
from tests.surfaces.http_server import http_site

NOTED = (
    "The worker of the cache retries four times before it gives up on a queue.",
    "Migrations of the billing schema have to run before the deploy of the API starts.",
)
FOREIGN = "The proxy of the search service drops requests that are larger than two megabytes."


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path, pages=panel_routes) as opened:
        yield opened


@pytest.fixture
def noted(store):
    """Two memories of an agent, and one that came from the web."""
    with smara.open(store) as memory:
        for text in NOTED:
            add(memory, text)
        add(memory, FOREIGN, taint=["web"])
    return store


def add(memory, text, **fields):
    return memory.memories.add(
        text, type="gotcha", by="agent", session_id="s1", files=["src/worker.py"], **fields
    ).memory


def form(site, **fields):
    kind = {"Content_Type": "application/x-www-form-urlencoded"}
    return site.ask("POST", "/ui/act", urlencode(fields, doseq=True).encode(), **kind)


def waiting(site):
    return {each["content"]: each for each in site.get("/ui/review.json")["memories"]}


def test_the_effect_that_is_shown_is_what_acceptance_changes(site, noted):
    memory = waiting(site)[NOTED[0]]
    before = site.get("/ui.json")["next"]
    effect = site.get(f"/ui/review/{memory['id']}.json")["effect"]
    assert effect["before"] == before["tokens"]
    assert any(line.startswith("+ ") and NOTED[0] in line for line in effect["lines"])
    form(site, call="memories.accept", memory_id=memory["uuid"], back="/ui/review")
    after = site.get("/ui.json")["next"]
    assert effect["after"] == after["tokens"] == before["tokens"] + effect["tokens"]


def test_what_many_rows_would_do_is_shown_and_then_done(site, noted):
    rows = waiting(site)
    chosen = [rows[text]["uuid"] for text in (NOTED[0], FOREIGN)]
    plan = site.get(f"/ui/review/impact.json?{urlencode({'id': chosen}, doseq=True)}")
    assert [each["content"] for each in plan["accepted"]] == [NOTED[0]]
    [left] = plan["left"]
    assert (left["content"], "web" in left["because"]) == (FOREIGN, True)
    assert len(waiting(site)) == 3  # a preview changes nothing
    answer = form(site, call="memories.accept_all", memory_ids=plan["ids"], back="/ui/review")
    assert answer.status == 303
    assert set(waiting(site)) == {NOTED[1], FOREIGN}
    assert plan["effect"]["after"] == site.get("/ui.json")["next"]["tokens"]


def test_nothing_from_outside_is_accepted_together_even_if_a_form_names_it(site, noted):
    every = [each["uuid"] for each in waiting(site).values()]
    assert form(site, call="memories.accept_all", memory_ids=every, back="/ui/review").status == 303
    assert set(waiting(site)) == {FOREIGN}


@pytest.mark.parametrize("verb", ["accept", "reject"])
def test_the_last_act_can_be_undone_from_the_review(site, noted, verb):
    memory = waiting(site)[NOTED[0]]
    back = f"/ui/review?done={memory['id']}"
    form(site, call=f"memories.{verb}", memory_id=memory["uuid"], etag=memory["etag"], back=back)
    assert NOTED[0] not in waiting(site)
    done = site.get(f"/ui/review.json?done={memory['id']}")["done"]
    assert b'value="memories.undo"' in site.ask("GET", back).body
    fields = {"memory_id": done["uuid"], "etag": done["etag"], "back": back}
    assert form(site, call="memories.undo", **fields).status == 303
    assert NOTED[0] in waiting(site)


def test_a_correction_is_accepted_in_its_new_words(store, site, noted):
    memory = waiting(site)[NOTED[0]]
    words = "The worker of the cache retries five times before it gives up on a queue."
    shown = site.ask("GET", f"/ui/review/{memory['id']}?peek=1", HX_Request="true").body.decode()
    assert 'value="memories.accept"' in shown
    fields = {"memory_id": memory["uuid"], "etag": memory["etag"], "back": "/ui/review"}
    assert form(site, call="memories.accept", content=words, **fields).status == 303
    with smara.open(store) as opened:
        record = opened.memories.get(memory["uuid"])
    assert (record.content, record.is_verified) == (words, True)


def test_a_flag_says_in_the_engine_that_a_memory_is_wrong(store, site, noted):
    memory = waiting(site)[NOTED[0]]
    fields = {"memory_id": memory["uuid"], "outcome": "wrong", "note": "it is five times"}
    assert form(site, call="memories.used", back="/ui/review", **fields).status == 303
    with smara.open(store) as opened:
        record = opened.memories.get(memory["uuid"])
    assert record.corrections == 1
    assert any("it is five times" in reason for reason in record.review_reasons)


@pytest.mark.parametrize(
    ("level", "is_shown", "has_all", "count"),
    [(1, True, False, 4), (2, True, True, 4), (3, True, False, 3), (4, False, False, 4)],
)
def test_the_end_of_a_session_follows_the_level_of_trust(
    store, site, noted, level, is_shown, has_all, count
):
    with smara.open(store) as memory:
        sure = add(memory, "The release notes of the API are written by the script in tools.")
        memory.memories.accept(sure.id)
        memory.memories.set_trust_level(level)
    facts = site.get("/ui/review/session/s1.json")
    assert (facts["isShown"], len(facts["learned"])) == (is_shown, count)
    page = site.ask("GET", "/ui/review/session/s1").body.decode()
    assert ("/ui/review/impact?session=s1" in page) is has_all
    assert (NOTED[0] in page) is is_shown
    assert NOTED[0] in site.ask("GET", "/ui/review/session/s1?all=1").body.decode()
