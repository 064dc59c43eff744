"""Teaching, instruction files, first steps and settings: each control, seen in the engine."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from urllib.parse import urlencode

import pytest

import smara
from smara.config import config_path
from smara.surfaces.panel import setup
from smara.surfaces.panel.panel import panel_routes
from tests.surfaces.http_server import http_site

TAUGHT = [
    "Releases of the billing service are cut by the script in tools, never by hand.",
    "Times in the database are milliseconds since 1970, in UTC.",
    "Every new endpoint needs a line in the table of rights before it is merged.",
    "The queue drops a job after five attempts; look into its dead letters.",
    "Fixtures of the parser are generated: change the generator, then run make fixtures.",
    "Prices are integers of cents, and are rounded at the very end of an invoice.",
    "Feature flags are read once at the start of a process.",
    "The search index is rebuilt on Sundays, and lags behind on that day.",
]


@pytest.fixture(autouse=True)
def _settings_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def site(store, tmp_path):
    with http_site(store, tmp_path, pages=panel_routes) as opened:
        yield opened


def form(site, key="", **fields):
    kind = {"Content_Type": "application/x-www-form-urlencoded"}
    return site.ask("POST", "/ui/act", urlencode(fields, doseq=True).encode(), key=key, **kind)


def told(store):
    with smara.open(store, project="default") as memory:
        return memory.moments.preview()


def test_what_is_taught_is_confirmed_and_about_its_file(store, site):
    page = site.ask("GET", "/ui/teach?file=src/worker.py").body.decode()
    assert 'value="src/worker.py"' in page
    answer = form(
        site,
        call="memories.remember",
        text="The worker is restarted by hand after a deploy.",
        type="",
        files="src/worker.py",
        is_pinned="true",
        back="/ui/teach?made={made}",
    )
    made = site.get(answer.headers["location"].replace("/ui/teach", "/ui/teach.json"))["made"]
    with smara.open(store, project="default") as memory:
        record = memory.memories.get(made["uuid"])
    assert (record.is_verified, record.is_pinned, record.files) == (True, True, ("src/worker.py",))


def test_instruction_files_are_shown_before_they_are_read(store, site):
    Path("AGENTS.md").write_text("# Rules\n\n- Never edit files below generated/ by hand.\n")
    plan = site.get("/ui/teach/files.json")
    assert [each["path"] for each in plan["files"]] == ["AGENTS.md"]
    [change] = plan["changes"]
    assert (change["outcome"], "generated/" in change["text"]) == ("added", True)
    with smara.open(store, project="default") as memory:
        assert memory.memories.totals().total == 0
    fields = {"call": "instructions.import", "back": "/ui/teach/files"}
    assert form(site, **fields, is_verified="true").status == 303
    with smara.open(store, project="default") as memory:
        [record] = memory.memories.list(limit=10).memories
    assert record.is_verified
    assert site.get("/ui/teach/files.json")["isNothingNew"]


def test_a_long_look_around_serves_twenty_times_as_long(store, site, tmp_path, monkeypatch):
    """A walk of two seconds: the next views show the same, until 42 seconds after its start."""
    looks = []
    monkeypatch.setattr("smara.adapters.importer.find", lambda *_: looks.append(1) or ((), 0))
    now = iter([0.0, 2.0, 3.0, 41.0, 43.0, 43.1])
    monkeypatch.setattr(setup, "time", SimpleNamespace(monotonic=lambda: next(now)))
    assert b'hx-trigger="load"' in site.ask("GET", "/ui/start").body
    assert looks == []
    counts = []
    for _ in range(4):
        assert b"None were found" in site.ask("GET", "/ui/start?whole=1").body
        counts.append(len(looks))
    assert counts == [1, 1, 1, 2]


def test_past_sessions_are_found_and_read_with_progress(store, site, tmp_path, monkeypatch):
    folder = Path.home() / ".claude" / "projects" / str(tmp_path.resolve()).replace("/", "-")
    folder.mkdir(parents=True)
    line = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "5b1f2a3c-0000-4000-8000-000000000001",
        "cwd": str(tmp_path.resolve()),
        "timestamp": "2026-10-01T10:00:00.000Z",
        "message": {"role": "user", "content": "Please rename the worker of the cache."},
    }
    (folder / "5b1f2a3c-0000-4000-8000-000000000001.jsonl").write_text(json.dumps(line) + "\n")
    facts = site.get("/ui/start.json")
    assert facts["found"]["sessions"] == [{"host": "claude-code", "files": 1}]
    begun: list[Thread] = []
    later = type("Later", (Thread,), {"start": lambda thread: begun.append(thread)})
    monkeypatch.setattr(setup, "threading", SimpleNamespace(Thread=later))
    assert form(site, call="sessions.import", back="/ui/start").status == 303
    assert site.get("/ui/start.json")["reading"]["state"] == "running"
    assert b"<progress" in site.ask("GET", "/ui/start").body
    [thread] = begun
    thread.run()
    after = site.get("/ui/start.json")
    assert (after["reading"]["state"], after["reading"]["facts"]["stored"]) == ("done", 1)
    with smara.open(store, project="default") as memory:
        assert memory.search("rename the worker of the cache", 3).hits


@pytest.mark.parametrize(
    ("name", "value", "effect"),
    [
        ("moments", "off", lambda memory: memory.moments.preview().text == ""),
        ("moment_start_tokens", "200", lambda memory: memory.moments.preview().tokens <= 200),
        ("moment_statements", "3", lambda memory: memory.settings.moment_statements == 3),
        ("freshness_drifted", "tell", lambda memory: memory.settings.freshness_drifted == "tell"),
        ("freshness_orphaned", "hedge", lambda m: m.settings.freshness_orphaned == "hedge"),
    ],
)
def test_a_setting_that_is_saved_holds_in_the_engine(store, site, name, value, effect):
    with smara.open(store, project="default") as memory:
        for text in TAUGHT:
            memory.memories.remember(text)
        assert not effect(memory)
    shown = site.get(f"/ui/settings.json?{name}={value}")["preview"]
    assert form(site, call="settings.update", back="/ui/settings", **{name: value}).status == 303
    with smara.open(store, project="default") as memory:
        assert effect(memory)
        assert memory.moments.preview().tokens == shown["after"]
    assert site.get("/ui.json")["next"]["tokens"] == shown["after"]  # the server follows at once


def test_the_settings_have_no_control_without_a_test_of_its_effect():
    tested = {
        mark[0] for mark in test_a_setting_that_is_saved_holds_in_the_engine.pytestmark[0].args[1]
    }
    assert {each.name for each in setup.CONTROLS} == tested


def test_the_file_of_settings_keeps_its_other_lines(site):
    path = config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '# mine\nmoments = "full"\nmoment_statements = 7\n\n[retention]\nmessages_days = 90\n'
    )
    fields = {"moments": "start", "moment_start_tokens": "900"}
    assert form(site, call="settings.update", back="/ui/settings", **fields).status == 303
    assert path.read_text() == (
        '# mine\nmoments = "start"\nmoment_statements = 7\n\nmoment_start_tokens = 900\n'
        "[retention]\nmessages_days = 90\n"
    )


def test_a_wrong_value_is_refused_and_nothing_is_written(site):
    answer = form(site, call="settings.update", back="/ui/settings", moment_start_tokens="7")
    assert answer.status == 501
    assert form(site, call="settings.update", back="/ui/settings", moments="loud").status == 501
    assert not config_path().exists()
    assert "200" in site.get("/ui/settings.json?moment_start_tokens=7")["trouble"]


def test_the_level_of_trust_shows_its_effect_and_then_has_it(store, site):
    with smara.open(store, project="default") as memory:
        memory.memories.add(
            TAUGHT[0], type="gotcha", by="agent", files=["a.py"], confidence=0.9, taint=[]
        )
    before = site.get("/ui/settings.json")["preview"]
    shown = site.get("/ui/settings.json?trust=4")["preview"]
    assert form(site, call="memories.set_trust_level", level="4", back="/ui").status == 303
    assert told(store).tokens == shown["after"]
    assert shown["before"] == before["after"]


def test_an_experiment_begins_and_ends_by_a_button(store, site):
    for is_on in (True, False):
        fields = {"call": "moments.set_arms", "is_on": str(is_on).lower(), "back": "/ui/settings"}
        assert form(site, **fields).status == 303
        with smara.open(store, project="default") as memory:
            assert memory.moments.has_arms is is_on


def test_what_concerns_the_machine_is_done_for_a_person_alone(site):
    agent = site.named_key("agent", is_person=False)
    for call in setup.ACTS:
        assert form(site, key=agent, call=call, back="/ui").status == 403
