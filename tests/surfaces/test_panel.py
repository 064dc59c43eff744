"""The panel: every page in both languages, its twin, and what its forms do in the engine."""

from __future__ import annotations

import re
import shutil
from html import unescape
from importlib.resources import files
from urllib.parse import urlencode

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

import smara
from smara.surfaces.panel.pages import PAGES
from smara.surfaces.panel.panel import LANGUAGES, panel_routes
from tests import vendor_files
from tests.surfaces.http_server import http_site
from tests.surfaces.panel_store import addresses, fill
from tests.surfaces.shell import smara as smara_command
from tests.surfaces.test_http_events import stream


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path, pages=panel_routes) as opened:
        yield opened


@pytest.fixture
def filled(store, site):
    """A store with something on every page."""
    with smara.open(store) as memory:
        return fill(memory)


def page(site, path, **query):
    reply = site.ask("GET", f"{path}{'&' if '?' in path else '?'}{urlencode(query)}")
    assert reply.status == 200, reply.body
    return reply


def form(site, **fields):
    kind = {"Content_Type": "application/x-www-form-urlencoded"}
    return site.ask("POST", "/ui/act", urlencode(fields).encode(), **kind)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_is_drawn_in_every_language(site, filled, language):
    for spec, address in addresses(filled):
        reply = page(site, address, lang=language, q="cache")
        assert reply.headers["content-language"] == language, spec
        assert f'<html lang="{language}">'.encode() in reply.body
        assert len(reply.body) < 100_000


def test_every_page_has_a_twin_in_json(site, filled):
    for spec, address in addresses(filled):
        path, mark, query = address.partition("?")
        assert site.get(f"{path}.json{mark}{query}")["project"] == "default", spec


def test_every_text_is_translated_and_none_is_left_over():
    room = files("smara.surfaces.panel")
    used = {
        each if isinstance(each, str) else each[0]
        for _, _, each, _, _ in extract_from_dir(
            str(room / "templates"), [("**.html", "jinja2")], {"**": {"trim_blocks": "1"}}
        )
    } | {spec.title for spec in PAGES}
    for language in set(LANGUAGES) - {"en"}:
        with (room / "locale" / f"{language}.po").open("rb") as opened:
            catalog = read_po(opened, locale=language)
        texts = {
            each.id if isinstance(each.id, str) else each.id[0]: each.string
            for each in catalog
            if each.id
        }
        assert used == set(texts)
        assert all(text if isinstance(text, str) else all(text) for text in texts.values())


def test_hostile_text_is_neither_run_nor_unseen(site, filled):
    shown = page(site, "/ui/sessions/talk/1").body.decode()
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in shown
    assert 'title="U+202E"' in shown
    assert 'title="U+200B"' in shown


def test_what_the_next_session_is_told_is_what_the_hook_says(store, site, filled):
    with smara.open(store) as memory:
        told = memory.moments.preview().text
    assert site.get("/ui.json")["next"]["text"] == told


def test_times_told_are_those_whose_tokens_are_drawn(store, site, filled):
    with smara.open(store, project="default") as memory:
        memory.moments.start("s1", agent="claude-code")
    page, facts = site.ask("GET", "/ui").body.decode(), site.get("/ui.json")
    assert facts["charts"]["tokens"]["total"] == facts["receipts"]["tokens"] > 0
    assert "<strong>1</strong> times told" in page


def test_memories_in_force_are_drawn_day_by_day(store, site, filled):
    """Two today of which one goes; none was there before."""
    with smara.open(store, project="default") as memory:
        gone = memory.memories.remember("Releases are cut on Fridays.").memory
        memory.memories.forget(gone.id, by="person")
        now = memory.memories.totals().active
    facts = site.get("/ui.json")
    assert [each["inForce"] for each in facts["days"]] == [0] * 29 + [now]
    last = facts["days"][-1]
    assert (last["added"], last["retired"]) == (now + 1, 1)
    assert facts["charts"]["line"].endswith("590,4")
    assert "30 days ago: 0, today: 2" in page(site, "/ui").body.decode()


def test_an_accepted_memory_is_confirmed_in_the_engine(store, site, filled):
    [waiting] = site.get("/ui/review.json")["memories"]
    answer = form(
        site,
        call="memories.accept",
        memory_id=waiting["uuid"],
        etag=waiting["etag"],
        back="/ui/review",
    )
    assert (answer.status, answer.headers["location"]) == (303, "/ui/review")
    with smara.open(store) as memory:
        assert memory.memories.get(waiting["uuid"]).is_verified
    assert site.get("/ui/review.json")["memories"] == []


def test_the_second_editor_sees_both_versions_and_nothing_is_lost(store, site, filled):
    shown = site.get(f"/ui/memories/{filled['memories']}.json")["memory"]
    fields = {
        "call": "memories.update",
        "memory_id": shown["uuid"],
        "etag": shown["etag"],
        "back": f"/ui/memories/{shown['id']}",
    }
    assert form(site, **fields, content="The cache worker gives up at one.").status == 303
    late = form(site, **fields, content="The cache worker gives up at two.")
    assert late.status == 409
    assert "The cache worker gives up at one." in late.body.decode()
    assert "The cache worker gives up at two." in late.body.decode()
    with smara.open(store) as memory:
        assert memory.memories.get(shown["uuid"]).content == "The cache worker gives up at one."


def test_a_form_cannot_lead_elsewhere_nor_call_what_is_not_served(site, filled):
    [waiting] = site.get("/ui/review.json")["memories"]
    away = form(
        site, call="memories.accept", memory_id=waiting["uuid"], back="https://example.org/"
    )
    assert away.headers["location"] == "/ui"
    assert form(site, call="close").status == 400
    assert form(site, call="memories.get", memory_id=waiting["uuid"]).status == 400


def test_a_page_of_something_unknown_says_so(site):
    reply = site.ask("GET", "/ui/memories/m-none")
    assert reply.status == 404
    assert b"m-none" in reply.body
    assert site.ask("GET", "/ui/static/..%2fpanel.py").status == 404


def test_the_list_of_contradicted_memories_has_no_others(store, site, filled):
    with smara.open(store) as memory:
        memory.memories.mark_stale(filled["memories"], "the worker is gone", by="person")
    shown = site.get("/ui/browse.json?is_stale=yes")
    assert [each["id"] for each in shown["rows"]] == [filled["memories"]]
    assert shown["total"] == 1
    assert site.get("/ui.json")["stale"] == 1


def test_a_row_is_looked_at_beside_the_list(site, filled):
    reply = site.ask("GET", f"/ui/memories/{filled['memories']}?peek=1", HX_Request="true")
    assert reply.body.count(b"<h2>m-") == 1
    assert b"<html" not in reply.body


def test_the_command_opens_the_panel_in_the_browser(store, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("smara.surfaces.http.server.anyio.run", lambda *_: None)
    said = smara_command("--db", store, "ui")
    assert said.code == 0
    [address] = opened
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?code=\S+&next=/ui", address)
    assert address in said.err


def test_without_a_key_there_is_no_panel(site):
    assert site.ask("GET", "/ui", key=None).status == 401


def test_files_of_others_are_those_that_were_published(site, tmp_path):
    assert vendor_files.differences() == []
    for row in vendor_files.rows():
        reply = site.ask("GET", f"/ui/static/vendor/{row['name']}")
        assert vendor_files.digest(reply.body) == row["sha256"]
    assert site.ask("GET", "/ui/static/vendor/files.toml").status == 404
    copy = shutil.copytree(vendor_files.PLACE, tmp_path / "vendor")
    with (copy / "htmx.min.js").open("ab") as opened:
        opened.write(b" ")
    (copy / "more.js").touch()
    first, second = vendor_files.differences(copy)
    assert first.startswith("htmx.min.js: its SHA-256 is")
    assert second.startswith("more.js: ")


def test_what_happens_before_a_page_listens_is_told_to_it(store, site, filled):
    shown = page(site, "/ui/operations").body.decode()
    [place] = re.findall(r'hx-sse:connect="([^"]+)"', shown)
    with smara.open(store, project="default") as memory:
        memory.jobs.add("worker", {"observed": 3})
    with stream(site, query=unescape(place).removeprefix("/events")) as watching:
        assert watching.next() | {"at": 0, "id": ""} == {
            "event": "changed", "kind": "job.done", "at": 0, "id": "",
            "threadId": None, "sessionId": None,
        }  # fmt: skip


def test_no_page_asks_the_browser_to_evaluate_anything(site, filled):
    """The policy forbids it; what needs it would be dead markup."""
    for spec, address in addresses(filled):
        body = page(site, address).body.decode()
        tags = re.findall(r"<[a-z][^>]*>", body)
        names = {name for tag in tags for name in re.findall(r"\s([a-z][\w:-]*)=", tag)}
        assert not {name for name in names if name.startswith(("hx-on", "on"))} | (
            names & {"style", "hx-vals", "hx-headers", "hx-confirm"}
        ), spec
        assert not [tag for tag in tags if tag.startswith("<script") and "src=" not in tag], spec
        assert not re.search(r'hx-trigger="[^"]*\[', body), spec


def test_no_class_means_two_things_in_two_style_sheets():
    texts = [
        each.read_text(encoding="utf-8")
        for each in files("smara.surfaces.panel").joinpath("static").iterdir()
        if each.name.endswith(".css")
    ]
    always = [re.sub(r"@media[^{]*\{(?:[^{}]*\{[^}]*\})*\s*\}", "", text) for text in texts]
    sheets = [set(re.findall(r"(?:^|[}\n])\.([\w-]+)\{", text)) for text in always]
    assert len(sheets) > 1
    assert set.intersection(*sheets) == set()
