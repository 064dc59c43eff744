"""Several servers of one store: a request may go to any of them."""

from __future__ import annotations

import getpass
import json
import signal
import subprocess
import threading
from contextlib import closing

import apsw
import pytest

import smara
from smara.testing import FakeClock
from tests.surfaces.http_server import Site, http_site
from tests.surfaces.shell import DEADLINE_SECONDS, command, environment


@pytest.fixture
def two(db, tmp_path):
    """Two servers of one store behind one address, with the key that both were given."""
    named = {"key": "k" * 40, "public_url": "https://memory.example.org"}
    with (
        http_site(db, tmp_path / "one", **named) as one,
        http_site(db, tmp_path / "two", **named) as two,
    ):
        yield one, two


def test_browser_that_logged_in_at_one_server_is_known_to_the_other(two):
    one, other = two
    code = one.service.doorkeeper.new_code()
    reply = other.ask("GET", f"/login?code={code}", key=None)
    assert reply.status == 303
    assert one.ask("GET", f"/login?code={code}", key=None).status == 401, "once, at any of them"
    cookie = reply.headers["Set-Cookie"].partition(";")[0]
    for site in two:
        assert site.ask("GET", "/tasks", key=None, Cookie=cookie).status == 200
    origin = f"http://127.0.0.1:{one.port}"
    assert one.ask("POST", "/logout", {}, key=None, Cookie=cookie, Origin=origin).status == 200
    for site in two:
        assert site.ask("GET", "/tasks", key=None, Cookie=cookie).status == 401


def test_named_key_is_known_to_both_until_it_is_revoked(two):
    one, other = two
    key = one.named_key("ci", may_write=False)
    assert other.ask("GET", "/tasks", key=key).status == 200
    assert other.ask("POST", "/tasks", {"title": "x"}, key=key).code == "read_only_key"
    with other.service.store.memory() as memory:
        memory.internals.requests.access.revoke("ci")
    assert one.ask("GET", "/tasks", key=key).status == 401


def test_person_with_a_named_key_opens_the_browser_under_the_own_name(two):
    one, other = two
    path = one.ask("POST", "/login/codes", {}, key=one.named_key("ann")).json["path"]
    cookie = other.ask("GET", path, key=None).headers["Set-Cookie"].partition(";")[0]
    made = other.ask(
        "POST", "/tasks", {"title": "x"}, key=None, Cookie=cookie,
        Origin=f"http://127.0.0.1:{other.port}",
    )  # fmt: skip
    assert made.status == 201


def test_a_browser_ends_with_the_servers_key_that_opened_it(db, tmp_path):
    """The next server was given another key: neither its cookie nor an unused code is of worth."""
    public = {"public_url": "https://memory.example.org"}
    with http_site(db, tmp_path, key="a" * 40, **public) as site:
        cookie, path = site.cookie(), site.ask("POST", "/login/codes").json["path"]
    with http_site(db, tmp_path, key="a" * 40, **public) as site:
        assert site.ask("GET", "/tasks", key=None, Cookie=cookie).status == 200
    for key in ("b" * 40, None):
        with http_site(db, tmp_path, key=key, **public) as site:
            assert site.ask("GET", "/tasks", key=None, Cookie=cookie).status == 401
            assert site.ask("GET", path, key=None).code == "wrong_code"


def test_a_server_with_a_random_key_knows_the_browsers_of_the_one_before(db, tmp_path):
    """One that was given a key does not."""
    public = {"public_url": "https://memory.example.org"}
    with http_site(db, tmp_path, **public) as site:
        cookie = site.cookie()
    for key, status in ((None, 200), ("a" * 40, 401)):
        with http_site(db, tmp_path, key=key, **public) as site:
            assert site.ask("GET", "/tasks", key=None, Cookie=cookie).status == status


def test_a_browser_does_not_prolong_itself(two):
    one, other = two
    ann = one.ask("POST", "/login/codes", {}, key=one.named_key("ann")).json["path"]
    opened = one.ask("GET", ann, key=None).headers["Set-Cookie"].partition(";")[0]
    for cookie in (one.cookie(), opened):
        page = {"Cookie": cookie, "Origin": f"http://127.0.0.1:{other.port}"}
        assert other.ask("POST", "/login/codes", {}, key=None, **page).code == "not_a_person"


def test_a_key_with_the_name_of_the_user_does_not_end_his_panel(two):
    """Neither when it ends by its time, nor when it is revoked."""
    one, other = two
    name = getpass.getuser()
    one.named_key(name, expires_at=one.clock.now_ms() + 60_000)
    cookie = one.cookie()
    for site in two:
        site.clock.advance(61)
    for known in (cookie, one.cookie()):
        assert other.ask("GET", "/tasks", key=None, Cookie=known).status == 200
    with one.service.store.memory() as memory:
        memory.internals.requests.access.revoke(name)
    assert other.ask("GET", "/tasks", key=None, Cookie=cookie).status == 200


def test_a_store_that_can_only_be_read_is_served(db, tmp_path):
    """Its user opens the panel, once for each code, until the session ends or its time is over."""
    with smara.open(db) as memory:
        memory.tasks.add("Mend the door")

    def open_to_read() -> smara.Memory:
        memory = smara.open(db, project="default")
        memory.internals.database.close_idle()
        memory.internals.database.is_read_only = True
        return memory

    with http_site(db, tmp_path, opened=open_to_read) as site:
        assert site.ask("POST", "/tasks", {"title": "x"}).code == "read_only"
        origin = f"http://127.0.0.1:{site.port}"
        path = site.ask("POST", "/login/codes").json["path"]
        cookie = site.ask("GET", path, key=None).headers["Set-Cookie"].partition(";")[0]
        assert site.ask("GET", path, key=None).code == "wrong_code"
        assert site.ask("GET", "/login?code=" + "x" * 43, key=None).code == "wrong_code"
        assert len(site.ask("GET", "/tasks", key=None, Cookie=cookie).json["tasks"]) == 1
        other, late = site.cookie(), site.service.doorkeeper.new_code()
        page = {"Cookie": cookie, "Origin": origin}
        assert site.ask("POST", "/logout", {}, key=None, **page).status == 200
        assert site.ask("GET", "/tasks", key=None, Cookie=cookie).status == 401
        site.clock.advance(12 * 3_600 + 1)
        assert site.ask("GET", "/tasks", key=None, Cookie=other).status == 401
        assert site.ask("GET", f"/login?code={late}", key=None).code == "wrong_code"


def test_a_named_key_opens_no_browser_where_nothing_can_be_written(db, tmp_path):
    """The browser could not be ended with the key."""
    with http_site(db, tmp_path) as site:
        key = site.named_key("ann")
        with site.service.store.memory() as memory:
            memory.internals.database.close_idle()
            memory.internals.database.is_read_only = True
            assert site.ask("POST", "/login/codes", key=key).code == "read_only"


@pytest.mark.usefixtures("in_a_hurry")
def test_a_store_that_is_busy_is_served(db, tmp_path):
    """Another process writes for a long time: an import, a vacuum."""
    smara.open(db).close()
    with closing(apsw.Connection(db)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        process = subprocess.Popen(
            command("--json", "serve"),
            env=environment() | {"SMARA_BUSY_TIMEOUT_SECONDS": "0.1"},
            stdout=subprocess.PIPE,
        )
        watch = threading.Timer(DEADLINE_SECONDS, process.kill)
        watch.start()
        try:
            assert process.stdout is not None
            shown = json.loads(process.stdout.readline())
            site = Site(shown["url"], None, FakeClock(), tmp_path)  # type: ignore[arg-type]
            path = shown["login"].removeprefix(shown["url"])
            assert site.ask("GET", path, key=None).status == 303
        finally:
            watch.cancel()
            process.kill()
            process.communicate()


def test_address_that_opens_the_panel_stands_in_no_log(db, tmp_path):
    """A server that others reach, or whose lines are a log, prints none."""
    for variables, address in (
        ({"SMARA_LOG_FORMAT": "json"}, "127.0.0.1:0"),
        ({"SMARA_HTTP_KEY": "k" * 40}, "0.0.0.0:0"),
    ):
        process = subprocess.Popen(
            command("serve", "--listen", address),
            env=environment() | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        watch = threading.Timer(DEADLINE_SECONDS, process.kill)
        watch.start()
        try:
            assert process.stderr is not None
            first = process.stderr.readline().decode()
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate()
        finally:
            watch.cancel()
            process.kill()
        lines = first + (out + err).decode()
        assert "default" in first
        assert "code=" not in lines
        if "SMARA_LOG_FORMAT" in variables:
            assert json.loads(first)["project"] == "default"
