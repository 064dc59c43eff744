"""The verdict on the code that memories name, at the command line and in what agents are given."""

from __future__ import annotations

import subprocess

import pytest

from tests.surfaces.shell import on_terminal, plain, smara

AUTH = """\
class Session:
    def login(self, name):
        token = name + "x"
        self.last = token
        return token
"""


@pytest.fixture
def auth(tmp_path, monkeypatch, db):
    """The file of an indexed repository, in which we are; one memory rests on it."""
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    file = root / "src/auth.py"
    file.write_text(AUTH)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    monkeypatch.chdir(root)
    assert smara("code", "index").code == 0
    assert (
        smara("remember", "Whoever enters by `Session.login` gets a token", "--type", "gotcha").code
        == 0
    )
    return file


def drift(auth):
    auth.write_text(AUTH.replace('name + "x"', 'name.upper() + "y"'))


def test_remember_tells_which_code_it_speaks_of(auth):
    seen = plain(
        on_terminal(
            "remember", "The method `Session.login` keeps the last token", "--type", "gotcha"
        ).out
    )
    assert "It is tied to src/auth.py:Session.login" in " ".join(seen.split())


def test_list_show_and_why_tell_what_became_of_the_code(auth):
    [listed] = smara("memories", "list", "--json").data["memories"]
    assert (listed["code"]["verdict"], listed["code"]["anchors"][0]["symbol"]) == (
        "fresh",
        "Session.login",
    )
    drift(auth)
    [listed] = smara("memories", "list", "--json").data["memories"]
    assert (listed["code"]["verdict"], listed["code"]["told"]) == ("drifted", "hedge")
    assert listed["confidenceNow"] < listed["confidence"]
    assert "code drifted" in plain(on_terminal("memories", "list").out)
    assert "has changed since" in plain(on_terminal("memories", "show", listed["id"]).out)
    assert "Code: drifted" in plain(on_terminal("memories", "why", listed["id"]).out)


def test_observations_tell_what_became_of_the_code(auth):
    said = "Remember: `Session.login` in src/auth.py must never print the token."
    assert smara("messages", "add", "--thread", "t", "--role", "user", "--content", said).code == 0
    assert smara("observe", "t").code == 0
    assert smara("worker", "--once").code == 0
    [noted] = smara("observations", "list", "--json").data["observations"]
    assert (noted["code"]["verdict"], noted["code"]["anchors"][0]["symbol"]) == (
        "fresh",
        "Session.login",
    )
    drift(auth)
    assert smara("observations", "show", noted["id"], "--json").data["code"]["verdict"] == "drifted"
    assert (
        smara("observations", "why", noted["id"], "--json").data["observation"]["code"]["verdict"]
        == "drifted"
    )
    assert "but: the code has changed since" in plain(on_terminal("observations", "list").out)
    assert "has changed since" in plain(on_terminal("observations", "show", noted["id"]).out)


def test_search_tells_it_beside_the_hit(auth):
    drift(auth)
    [hit] = smara("search", "token", "--source", "memories", "--json").data["results"]
    assert hit["freshness"] == "drifted"
    assert "but: the code has changed since" in plain(
        on_terminal("search", "token", "--source", "memories").out
    )


def test_review_holds_what_drifted_until_a_person_verifies_it(auth):
    assert smara("memories", "review", "--json").data["memories"] == []
    drift(auth)
    [waiting] = smara("memories", "review", "--json").data["memories"]
    assert waiting["reviewReasons"][0].startswith("the code has changed since")
    assert smara("memories", "audit", "--json").data["stale"]["count"] == 1
    [verified] = smara("memories", "verify", waiting["id"], "--json").data["memories"]
    assert (verified["code"]["verdict"], verified["needsReview"]) == ("fresh", False)
    assert smara("memories", "review", "--json").data["memories"] == []


def test_what_is_gone_is_said_to_be_gone(auth):
    auth.unlink()
    [listed] = smara("memories", "list", "--json").data["memories"]
    assert (listed["code"]["verdict"], listed["code"]["told"]) == ("orphaned", "withhold")
    assert "code gone" in smara("memories", "list").out
