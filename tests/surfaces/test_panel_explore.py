"""The timeline, the context of a session, the map, the tasks and the search of the panel."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import combinations
from math import dist
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

import smara
from smara.surfaces.http.server import ServeOptions, serving
from smara.surfaces.panel.atlas import lay_out, place_discs
from smara.surfaces.panel.graph import columns_of, draw
from smara.surfaces.panel.panel import panel_routes
from smara.testing import ScriptedModel
from tests.surfaces.http_server import Site, http_site


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path, pages=panel_routes) as opened:
        yield opened


def test_a_session_shows_what_was_said_learned_and_told(store, site):
    with smara.open(store) as memory:
        memory.messages.add(thread_id="s1", role="user", content="Always run make seed first.")
        memory.memories.remember("Never mock the database.")
        made = memory.memories.add(
            "The port of Redis is 6399.", type="requirement", session_id="s1", files=["conf.py"]
        ).memory
        assert memory.moments.start("s1") is not None
    [line] = [each for each in site.get("/ui/sessions.json")["sessions"] if each["id"] == "s1"]
    assert (line["messages"], line["learned"], line["received"]) == (1, 1, 1)
    shown = site.get("/ui/sessions/s1.json")
    assert [each["id"] for each in shown["learned"]] == [made.short_id]
    assert "Never mock the database." in shown["receipts"][0]["text"]
    page = site.ask("GET", "/ui/sessions/s1").body.decode()
    assert "Always run make seed first." in page


def test_arms_without_enough_sessions_say_so(store, site):
    with smara.open(store) as memory:
        memory.moments.set_arms(True)
        for no in range(40):
            memory.moments.start(f"s{no}")
    page = site.ask("GET", "/ui/sessions").body.decode()
    assert "Not enough data yet, about" in page


def test_the_window_of_a_session_adds_up_and_nothing_is_observed_for_it(store, site):
    with smara.open(store) as memory:
        for no in range(5):
            memory.messages.add(thread_id="talk/9", role="user", content=f"{no} " + "word " * 40)
        memory.working.put("# Goal\nA blue door", scope="thread", thread_id="talk/9")
    shown = site.get("/ui/context.json?thread=talk/9")
    assert {each["name"] for each in shown["parts"]} == {"messages", "working_memory"}
    assert sum(each["tokens"] for each in shown["parts"]) == shown["window"]["tokens"]
    assert sum(each["width"] for each in shown["bar"]) == pytest.approx(1_000, abs=1)
    assert shown["window"]["until"]["leaving"] == 0
    with smara.open(store) as memory:
        assert memory.observations.list() == []


def test_the_map_shows_modules_with_their_traps_and_the_impact_of_a_name(
    store, tmp_path, monkeypatch
):
    repository = tmp_path / "shop"
    (repository / "src").mkdir(parents=True)
    (repository / "src" / "prices.py").write_text("def net(price):\n    return price\n")
    (repository / "src" / "cart.py").write_text(
        "from src.prices import net\n\n\ndef total(cart):\n    return net(sum(cart))\n"
    )
    monkeypatch.chdir(repository)
    with http_site(store, tmp_path, pages=panel_routes) as site:
        assert b"smara code index" in site.ask("GET", "/ui/map").body
        with smara.open(store, project="default") as memory:
            memory.code.index(repository)
            memory.memories.add(
                "net() rounds half to even.", type="gotcha", files=["src/prices.py"]
            )
        [module] = [each for each in site.get("/ui/map.json")["modules"] if each["path"] == "src"]
        assert (module["files"], module["covered"], module["traps"]) == (2, 1, 1)
        assert site.get("/ui.json")["coverage"][0]["covered"] == 1
        impact = site.get("/ui/map.json?symbol=src/prices.py:net")
        labels = {each["label"] for each in impact["impactGraph"]["nodes"]}
        assert {"net", "total"} <= labels
        page = site.ask("GET", "/ui/map?symbol=src/prices.py:net").body.decode()
        assert "/ui/map?symbol=src%2Fcart.py%3Atotal" in page
        assert "<code>src/cart.py:total</code>" in page
        assert site.get("/ui/map.json?symbol=walrus")["problem"]


def test_the_whole_graph_stands_where_it_stood(store, tmp_path, monkeypatch):
    for name in ("web", "api", "jobs"):
        folder = tmp_path / "shop" / name
        folder.mkdir(parents=True)
        (folder / "it.py").write_text("from api.it import work\n\n\ndef work():\n    work()\n")
    monkeypatch.chdir(tmp_path / "shop")
    with http_site(store, tmp_path, pages=panel_routes) as site:
        assert b"smara code index" in site.ask("GET", "/ui/map/graph").body
        with smara.open(store, project="default") as memory:
            memory.code.index(tmp_path / "shop")
        light = site.get("/ui/map/graph.json")
        assert (light["total"], light["leftOut"], light["graph"]) == (6, 0, None)
        drawn = site.get("/ui/map/graph.json?full=1")["graph"]
        assert sorted(each["path"] for each in drawn["modules"]) == ["api", "jobs", "web"]
        symbols = [
            f"{drawn['paths'][node[0]]}:{name}".rstrip(":")
            for node, name in zip(drawn["nodes"], drawn["names"], strict=True)
        ]
        assert set(symbols) >= {"api/it.py", "api/it.py:work", "web/it.py:work"}
        ends = iter(symbols[place] for place in drawn["links"])
        assert ("web/it.py", "api/it.py:work") in set(zip(ends, ends, strict=True))
        lay_out.cache_clear()
        assert site.get("/ui/map/graph.json?full=1")["graph"] == drawn


@given(
    radii=st.dictionaries(st.text("abc", min_size=1), st.floats(10, 900), max_size=30),
    pairs=st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=40),
)
def test_no_two_discs_touch_and_the_order_of_links_changes_nothing(radii, pairs):
    names = list(radii)
    linked = [
        (names[one], names[other])
        for one, other in pairs
        if one < len(names) and other < len(names)
    ]
    places = place_discs(radii, Counter(linked))
    for one, other in combinations(names, 2):
        assert dist(places[one], places[other]) >= radii[one] + radii[other]
    assert place_discs(radii, Counter(reversed(linked))) == places


def test_the_map_of_many_modules_shows_folders_to_open(store, tmp_path, monkeypatch):
    for number in range(20):
        folder = tmp_path / "shop" / ("web" if number % 2 else "api") / f"part{number}"
        folder.mkdir(parents=True)
        (folder / "it.py").write_text(f"def work{number}():\n    return {number}\n")
    monkeypatch.chdir(tmp_path / "shop")
    with smara.open(store, project="default") as memory:
        memory.code.index(tmp_path / "shop")
    with http_site(store, tmp_path, pages=panel_routes) as site:
        facts = site.get("/ui/map.json")
        assert {each["path"]: each["count"] for each in facts["groups"]} == {"web": 10, "api": 10}
        assert facts["modules"] == []
        assert "/ui/map?under=web" in site.ask("GET", "/ui/map").body.decode()
        inside = site.get("/ui/map.json?under=web")
        assert (inside["count"], len(inside["groups"])) == (10, 10)
        assert "part1" in {each["label"] for each in inside["graph"]["nodes"]}
        assert "/ui/map?module=web/part1" in site.ask("GET", "/ui/map?under=web").body.decode()


def test_tasks_are_drawn_from_what_must_be_done_first(store, site):
    with smara.open(store) as memory:
        first = memory.tasks.add("Dig the hole")
        second = memory.tasks.add("Plant the tree", depends_on=[first.id])
    shown = site.get("/ui/tasks.json")
    places = {each["name"]: each["x"] for each in shown["graph"]["nodes"]}
    assert places[first.short_id] < places[second.short_id]
    assert second.short_id in {each["id"] for each in shown["columns"]["blocked"]}


def test_a_search_says_why_a_record_is_missing(store, site):
    with smara.open(store) as memory:
        memory.memories.remember("The cache worker gives up after four tries.")
        other = memory.memories.remember("Prefer tabs over spaces.").memory
    shown = site.get(f"/ui/search.json?q=cache+worker&why_not={other.short_id}")
    assert shown["miss"]["stage"] == "no_match"
    assert shown["miss"]["missing"] == ["cache", "worker"]
    page = site.ask("GET", f"/ui/search?q=cache+worker&why_not={other.short_id}").body.decode()
    assert "It shares too little with the question" in page


def test_an_answer_without_a_model_quotes_with_chips_that_lead_there(store, site):
    with smara.open(store) as memory:
        made = memory.memories.remember("The cache worker gives up after four tries.").memory
    page = site.ask("GET", "/ui/search?q=when+does+the+cache+worker+give+up&ask=1").body.decode()
    assert f'<a class="cite" href="/ui/memories/{made.id}"' in page
    assert 'value="memories.used"' in page


def test_a_flagged_citation_counts_against_the_memory(store, site):
    with smara.open(store) as memory:
        made = memory.memories.remember("The cache worker gives up after four tries.").memory
    fields = {
        "call": "memories.used",
        "memory_id": made.id,
        "outcome": "wrong",
        "back": "/ui/search",
    }
    kind = {"Content_Type": "application/x-www-form-urlencoded"}
    assert site.ask("POST", "/ui/act", urlencode(fields).encode(), **kind).status == 303
    with smara.open(store) as memory:
        assert memory.memories.get(made.id).corrections == 1


def test_an_answer_of_a_model_is_paid_once_and_its_dead_ends_are_red(store, tmp_path):
    model = ScriptedModel(["It gives up after four tries [1], see also [9]."])
    with smara.open(store) as memory:
        memory.memories.remember("The cache worker gives up after four tries.")
    options = ServeOptions("127.0.0.1:0", folder=tmp_path / "serve", pages=panel_routes)
    opened = partial(smara.open, store, project="default", chat_model=model)
    with serving(opened, options) as (url, service):
        site = Site(url, service, clock=None, folder=options.folder)
        address = "/ui/search?q=when+does+the+cache+worker+give+up&ask=1"
        first, second = (site.ask("GET", address).body.decode() for _ in range(2))
    assert "It gives up after four tries" in first
    assert 'class="cite dead"' in first
    assert 'class="cite dead"' in second
    assert len(model.requests) == 1


def test_a_circle_is_drawn_and_lines_to_nowhere_are_not():
    assert columns_of(["a", "b", "c"], [("a", "b"), ("b", "a"), ("b", "c")]) == {
        "a": 0,
        "b": 1,
        "c": 2,
    }
    drawn = draw([{"name": "a", "label": "a"}], [("a", "gone")])
    assert (len(drawn["nodes"]), drawn["edges"]) == (1, [])
