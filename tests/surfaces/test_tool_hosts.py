"""Hosts without hooks: their tools are set up and undone byte for byte, outside the repository."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from smara.adapters.host_specs import HOSTS, host_named
from smara.surfaces.terminal.setup import setup_command
from tests.surfaces.shell import on_terminal, plain, smara

SERVER = {"command": "smara", "args": ["mcp"]}
FILES = {
    "windsurf": ("home/.codeium/windsurf/mcp_config.json", "mcpServers"),
    "zed": ("home/.config/zed/settings.json", "context_servers"),
    "cline": ("home/.cline/data/settings/cline_mcp_settings.json", "mcpServers"),
    "roo": ("work/.roo/mcp.json", "mcpServers"),
}
ODD = """{
    // mine
  "theme" : "One Dark",

  "KEY": { "other": {"command": "x", "args": []}, },
}"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a home and a repository; `smara` is on the path."""
    for name in ("home", "work", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "smara").touch(0o755)
    (tmp_path / "bin" / "git").symlink_to("/usr/bin/git")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    subprocess.run(["/usr/bin/git", "init", "-q", str(tmp_path / "work")], check=True)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def listed(agent: str) -> dict:
    (row,) = smara("setup", agent, "--list", "--json").data["agents"]
    return row


@pytest.mark.parametrize("agent", FILES)
def test_set_up_adds_the_server_and_undo_leaves_nothing(place, agent):
    name, key = FILES[agent]
    path = place / name
    if agent == "roo":  # an extension of editors: only its folder shows that it is here
        (place / "home" / ".roo").mkdir()
    assert smara("setup", agent, "--yes").code == 0
    assert json.loads(path.read_text()) == {key: {"smara": SERVER}}
    assert listed(agent)["setUp"] == ["project" if agent == "roo" else "global"]
    assert smara("setup", agent, "--check").code == 0
    assert (
        subprocess.run(["/usr/bin/git", "status", "--porcelain"], capture_output=True).stdout == b""
    )
    assert smara("setup", agent, "--remove", "--yes").code == 0
    assert not path.exists()
    assert [each for each in (place / "home").rglob("*") if each.name != ".roo"] == []
    assert [each.name for each in (place / "work").iterdir()] == [".git"]


@pytest.mark.parametrize("agent", FILES)
def test_a_file_of_a_person_keeps_its_form_and_comes_back_byte_for_byte(place, agent):
    name, key = FILES[agent]
    path = place / name
    before = ODD.replace("KEY", key).encode().replace(b"\n", b"\r\n")
    path.parent.mkdir(parents=True)
    path.write_bytes(before)
    assert smara("setup", agent, "--yes").code == 0
    after = path.read_bytes()
    assert b"// mine" in after
    assert b'"other"' in after
    assert b'"smara"' in after
    assert smara("setup", agent, "--remove", "--yes").code == 0
    assert path.read_bytes() == before


def test_a_host_without_settings_of_a_repository_says_so(place):
    said = smara("setup", "windsurf", "--project", "--yes")
    assert said.code == 2
    assert "`smara setup windsurf --global`" in said.err


def test_a_host_that_its_own_command_sets_up_is_explained_and_listed(place):
    assert "goose configure" in smara("setup", "goose").out
    row = listed("goose")
    assert (row["mcp"], row["hooks"], bool(row["byHand"])) == (True, False, True)
    assert smara("setup", "goose", "--check").code == 2


def test_init_and_the_doctor_leave_hosts_without_hooks_alone(place, db):
    (place / "home" / ".codeium" / "windsurf").mkdir(parents=True)
    said = smara("init", "--yes")
    assert said.code == 0
    assert "smara setup windsurf" in said.out
    assert not (place / FILES["windsurf"][0]).exists()
    assert smara("setup", "windsurf", "--yes").code == 0
    findings = smara("doctor", "--json").data["findings"]
    assert [each for each in findings if "windsurf" in str(each).lower()] == []
    assert "Windsurf (its tools are set up)" in plain(smara().out)


@pytest.mark.parametrize("columns", [80, 140])
def test_the_list_of_agents_fits_the_terminal(place, columns):
    seen = plain(on_terminal("setup", "--list", columns=columns).out)
    assert max(map(len, seen.splitlines())) <= columns
    for host in HOSTS:
        assert (f"\n{host.name} " in seen) == bool(host.title)


def test_every_host_with_a_title_is_in_the_guide():
    page = (Path(__file__).parents[2] / "docs/guide/hosts.md").read_text(encoding="utf-8")
    table = page.partition("## What each agent can do")[2].partition("\n## ")[0]
    missing = [host.title for host in HOSTS if host.title and f"| {host.title} |" not in table]
    assert missing == ["another agent"]
    assert host_named("aider").setup is None
    assert "aider" not in setup_command.params[0].type.choices
