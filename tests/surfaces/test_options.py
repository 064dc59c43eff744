"""Which store and which project: options before and after the command, the environment, and who
wins.
"""

from __future__ import annotations

import json

import pytest

from smara.errors import ConfigError
from smara.memory import open_memory
from tests.surfaces.shell import smara, spawn

ADD = ("messages", "add", "--thread", "t", "--role", "user", "--content")


def contents(*options: str) -> list[str]:
    return [
        message["content"]
        for message in smara("messages", "list", "--thread", "t", "--json", *options).data
    ]


@pytest.fixture
def other(tmp_path):
    return str(tmp_path / "other.db")


def test_environment_names_the_store(db):
    assert spawn("status", "--json").data["store"]["path"] == db


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_store_in_a_folder_that_is_not_there_is_refused(db, tmp_path, place):
    address = str(tmp_path / "not there" / "x.db")
    call = ["--db", address, "status"] if place == "before" else ["status", "--db", address]
    said = smara(*call)
    assert said.code == 2
    assert f"There is no folder {tmp_path / 'not there'}" in said.err
    assert "mkdir -p" in said.err
    assert not (tmp_path / "not there").exists()


@pytest.mark.parametrize("place", ["before", "after"])
def test_db_wins_over_the_environment(db, other, place):
    call = ["--db", other, *ADD, "there"] if place == "before" else [*ADD, "there", "--db", other]
    assert smara(*call).code == 0
    smara(*ADD, "here")
    assert contents() == ["here"]
    assert contents("--db", other) == ["there"]


def test_db_after_the_command_wins_over_db_before_it(db, other):
    assert smara("--db", db, "status", "--db", other, "--json").data["store"]["path"] == other


@pytest.mark.parametrize("place", ["before", "after"])
def test_project_is_a_wall(db, place):
    call = (
        ["--project", "work", *ADD, "at work"]
        if place == "before"
        else [*ADD, "at work", "--project", "work"]
    )
    assert smara(*call).code == 0
    smara(*ADD, "at home")
    assert contents() == ["at home"]
    assert contents("--project", "work") == ["at work"]
    assert smara("search", "work", "--json").data["totalHits"] == 0


def test_environment_names_the_project_and_the_option_wins(db, monkeypatch):
    monkeypatch.setenv("SMARA_PROJECT", "work")
    assert smara("status", "--json").data["project"] == "work"
    assert smara("status", "--project", "play", "--json").data["project"] == "play"


def test_projects_are_listed_and_the_current_one_is_marked(db):
    smara("init", "--project", "work")
    said = smara("projects", "--project", "default")
    assert [row[:2] for row in said.rows] == [["", "work"], ["*", "default"]]
    assert [
        each["isCurrent"] for each in smara("projects", "--json", "--project", "work").data
    ] == [True, False]


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_path_may_be_written_as_a_url(db, form):
    smara(*ADD, "here")
    assert contents("--db", form.format(db)) == ["here"]
    assert "memories" in [
        each["check"]
        for each in smara("doctor", "--json", "--db", form.format(db)).data["findings"]
    ]


@pytest.mark.parametrize(
    "address",
    [
        "mysql://x/y", "mysql:/x/y", "http://localhost/db", "postgresql+psycopg://x/y", "file:a.db",
        "file:///tmp/a.db?mode=ro", "sqlite:a.db", "sqlite://a.db", "POSTGRESQL://x/y", "redis:\\x",
    ],
)  # fmt: skip
def test_address_of_another_kind_is_refused_at_every_door_and_makes_no_file(
    address, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"Give a path .*postgresql://USER@HOST/NAME"):
        open_memory(address)
    refused = smara("status", "--db", address)
    assert refused.code == 5
    assert "is no kind of store. Give a path" in refused.err
    monkeypatch.setenv("SMARA_DB", address)
    assert smara("status").code == smara("mcp").code == 5
    assert spawn("hook", "claude", "SessionStart", stdin=b"{}").code == 0
    monkeypatch.delenv("SMARA_DB")
    (tmp_path / "smara.toml").write_text(f"db = {json.dumps(address)}\n")
    monkeypatch.setenv("SMARA_CONFIG", str(tmp_path / "smara.toml"))
    assert smara("status").code == 5
    assert [each.name for each in tmp_path.iterdir()] == ["smara.toml"]


def test_refused_address_is_not_repeated_with_its_password():
    assert "hunter22" not in smara("status", "--db", "mysql://ann:hunter22@host/db").err


@pytest.mark.parametrize("name", ["C:\\notes.db", "c:/notes.db", "./odd:/notes.db", "a b:c.db"])
def test_drive_and_a_colon_in_a_name_are_paths(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open_memory(name).close()
    assert (tmp_path / name).exists()


def test_tilde_is_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert smara("init", "--db", "~/mine.db").code == 0
    assert (tmp_path / "mine.db").exists()
    assert smara("doctor", "--db", "~/mine.db").code == 0


def test_log_lines_go_to_stderr_when_asked_for(store):
    quiet, loud = spawn("index", "rebuild"), spawn("--verbose", "index", "rebuild")
    assert quiet.err == ""
    assert "index.rebuilt" in loud.err
    assert quiet.out == loud.out


def test_settings_come_from_the_file_too(by_folder, db, tmp_path, monkeypatch):
    (tmp_path / "smara.toml").write_text('project = "from-the-file"\n')
    monkeypatch.setenv("SMARA_CONFIG", str(tmp_path / "smara.toml"))
    assert smara("status", "--json").data["project"] == "from-the-file"


def test_version_is_told_two_ways():
    from smara import __version__

    assert smara("--version").out == f"smara, version {__version__}\n"
    assert smara("version", "--json").data["smara"] == __version__
