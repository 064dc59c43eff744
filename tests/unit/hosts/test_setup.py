"""Setting up keeps every comment, and undoing gives back every byte."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tomllib
from pathlib import Path

import pytest

import smara
from smara.adapters import jsonc
from smara.adapters.host import SetupTarget, is_own_hook
from smara.adapters.host_specs.claude import plugin_folder, registrations
from smara.adapters.hosts.setup import (
    SetupJournal,
    apply,
    cut_block,
    find_hosts,
    plan,
    put_block,
    refuse_tracked,
    state_of,
    targets_of,
    undo,
    undo_plan,
)
from smara.core.host_table import AGENTS
from smara.errors import InvalidInputError

COUNT = 200
SEED = 20_261_116
PLUGIN = Path(plugin_folder())


class Odd:
    """Makes configurations with comments, odd spaces, trailing commas and foreign hooks."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.newline = self.dice.choice(["\n", "\n", "\r\n"])
        self.has_comments = self.dice.random() < 0.7
        self.has_last_commas = self.dice.random() < 0.4

    def gap(self) -> str:
        parts = []
        for _ in range(self.dice.randrange(3)):
            parts.append(
                self.dice.choice(
                    [" ", "  ", "\t", self.newline, self.newline + "    ", self.newline * 2]
                )
            )
            if self.has_comments and self.dice.random() < 0.3:
                parts.append(
                    self.dice.choice(
                        [f'// {{ "odd" ] , {self.newline}', "/* a , b } */", f"//{self.newline}"]
                    )
                )
        return "".join(parts)

    def value(self, depth: int) -> str:
        kind = self.dice.randrange(6 if depth < 4 else 4)
        if kind == 4:
            return self.container(["", ""], "[]", depth)
        if kind == 5:
            return self.object({}, depth)
        return self.dice.choice(
            ['"a // no comment"', '"\\"\\\\"', '"é 重跑 🎈"', "1", "-2.5e3", "true", "null", '"{["']
        )

    def container(
        self, names: list[str], brackets: str, depth: int, known: dict[str, str] | None = None
    ) -> str:
        entries = []
        for name in names:
            value = (known or {}).get(name) or self.value(depth + 1)
            entries.append(
                f"{json.dumps(name)}{self.gap()}:{self.gap()}{value}" if brackets == "{}" else value
            )
        inside = f"{self.gap()},{self.gap()}".join(entries)
        comma = "," if entries and self.has_last_commas else ""
        return brackets[0] + self.gap() + inside + self.gap() + comma + self.gap() + brackets[1]

    def object(self, known: dict[str, str], depth: int) -> str:
        names = [f"k{number}" for number in range(self.dice.randrange(3))] + list(known)
        self.dice.shuffle(names)
        return self.container(names, "{}", depth, known)

    def file(self) -> bytes:
        hook = '{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine.sh"}]}'
        known = {}
        if self.dice.random() < 0.6:
            events = self.dice.sample(
                ["PostToolUse", "SessionStart", "Stop", "Notification"], self.dice.randrange(4)
            )
            lists = {
                event: self.dice.choice([f"[{hook}]", "[]", f"[{self.gap()}{hook}{self.gap()}]"])
                for event in events
            }
            known["hooks"] = self.container(events, "{}", 1, lists)
        if self.dice.random() < 0.4:
            known["mcpServers"] = self.object({"other": '{"command": "x"}'}, 1)
        text = self.gap() + self.object(known, 0) + self.gap()
        mark = "\ufeff" if self.dice.random() < 0.1 else ""
        return (mark + text + self.dice.choice(["", "\n", self.newline])).encode()


ADDITIONS = {
    "hooks": registrations("smara"),
    "mcpServers": {"smara": {"command": "smara", "args": ["mcp"]}},
}


def merged(old: object, added: object) -> object:
    """What adding means, without any text."""
    if isinstance(old, dict) and isinstance(added, dict):
        return {
            **old,
            **{
                name: merged(old[name], each) if name in old else each
                for name, each in added.items()
            },
        }
    return [*old, *added] if isinstance(old, list) and isinstance(added, list) else old


@pytest.mark.parametrize("number", range(COUNT))
def test_a_generated_configuration_is_changed_as_meant_and_given_back_byte_for_byte(
    number, tmp_path
):
    content = Odd(SEED + number).file()
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    target, journal = (
        SetupTarget(str(path), "json", ADDITIONS),
        SetupJournal(str(tmp_path / "journal")),
    )
    before = jsonc.read(content.decode()).value

    apply(plan([target], journal), journal)
    written = path.read_bytes().decode()
    assert jsonc.read(written).value == merged(before, ADDITIONS)
    assert comments(written) == comments(content.decode())
    assert not any(change.is_needed for change in plan([target], journal))

    undo(undo_plan([target], journal), journal)
    assert path.read_bytes() == content


@pytest.mark.parametrize("number", range(0, COUNT, 4))
def test_what_a_person_added_since_stays_when_ours_goes(number, tmp_path):
    content = Odd(SEED + number).file()
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    target, journal = (
        SetupTarget(str(path), "json", ADDITIONS),
        SetupJournal(str(tmp_path / "journal")),
    )
    apply(plan([target], journal), journal)
    theirs = jsonc.merge(path.read_bytes().decode(), {"theirs": {"since": [1]}})
    path.write_bytes(theirs.encode())

    undo(undo_plan([target], journal), journal)
    left = jsonc.read(path.read_bytes().decode()).value
    assert left.pop("theirs") == {"since": [1]}
    assert "smara" not in json.dumps(left)
    assert without_empty(left) == without_empty(jsonc.read(content.decode()).value)
    assert comments(path.read_bytes().decode()) == comments(content.decode())


def comments(text: str) -> list[int]:
    """How often each of the comments that are made stands in a text."""
    return [text.count(mark) for mark in ("/* a , b } */", '// { "odd" ] ,', "//\n", "//\r\n")]


def without_empty(value: object) -> object:
    """Lists and objects that hold nothing count for nothing: one that held ours alone goes with
    it.
    """
    if isinstance(value, dict):
        inner = {name: without_empty(each) for name, each in value.items()}
        return {name: each for name, each in inner.items() if each not in ({}, [])}
    return value


def test_a_strict_json_file_stays_strict_json(tmp_path):
    for number in range(40):
        odd = Odd(SEED * 7 + number)
        odd.has_comments = odd.has_last_commas = False
        text = odd.file().decode().removeprefix("\ufeff")
        made = jsonc.merge(text, ADDITIONS)
        assert json.loads(made) == merged(json.loads(text), ADDITIONS)
        target = SetupTarget("x", "json", ADDITIONS)
        assert without_empty(json.loads(jsonc.remove(made, target.is_ours))) == without_empty(
            json.loads(text)
        )


@pytest.mark.parametrize(
    "broken", ['{"a": }', "[", '{"a" 1}', '{"a": 1 "b": 2}', '{"a": "x', "{/*", "nonsense", "[1]"]
)
def test_a_file_that_is_no_json_object_is_refused_and_left_alone(broken, tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(broken)
    with pytest.raises(InvalidInputError, match=r"settings\.json|no JSON object"):
        plan([SetupTarget(str(path), "json", ADDITIONS)], SetupJournal(str(tmp_path / "journal")))
    assert path.read_text() == broken


@pytest.mark.parametrize(
    "text", ["", "a = 1\n", "a = 1", "[t]\r\nb = 2\r\n", "# only a comment", "\ufeffa = 1\n"]
)
def test_a_block_in_toml_is_put_at_the_end_and_given_back(text, tmp_path):
    made = put_block(text, "toml", '[mcp_servers.smara]\ncommand = "smara"\n')
    assert tomllib.loads(made.removeprefix("\ufeff"))["mcp_servers"] == {
        "smara": {"command": "smara"}
    }
    assert made.startswith(text)
    assert put_block(made, "toml", "x = 1").count("smara:begin") == 1
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode())
    target, journal = (
        SetupTarget(str(path), "toml", body="[x]\n"),
        SetupJournal(str(tmp_path / "journal")),
    )
    apply(plan([target], journal), journal)
    undo(undo_plan([target], journal), journal)
    assert path.read_bytes() == text.encode()


def test_a_block_is_cut_out_of_a_file_that_has_grown_since():
    made = put_block("# Rules\n", "markdown", "ours") + "\nAdded later.\n"
    assert cut_block(made, "markdown") == "# Rules\n\nAdded later.\n"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_host_is_set_up_in_an_empty_repository_and_nothing_is_left_of_it(agent, tmp_path):
    root, journal = tmp_path / "repository", SetupJournal(str(tmp_path / "journal"))
    root.mkdir()
    targets = targets_of(agent, "project", str(root))
    apply(plan(targets, journal), journal)
    assert {state_of(target, journal) for target in targets} == {"present"}
    undo(undo_plan(targets, journal), journal)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "generic"])
def test_every_hook_states_a_small_timeout_in_the_unit_of_its_host(agent, tmp_path):
    written = [
        json.dumps(target.additions) or target.body
        for target in targets_of(agent, "project", str(tmp_path))
    ]
    if agent == "opencode":
        assert "STEP_MS = 5_000" in targets_of(agent, "project", str(tmp_path))[0].body
        return
    hooks = targets_of(agent, "project", str(tmp_path))[0]
    told = hooks.additions or json.loads(hooks.body)
    timeouts = [
        each.get("timeout", each.get("timeoutSec"))
        for groups in told["hooks"].values()
        for group in groups
        for each in group.get("hooks", [group])
    ]
    unit = 1000 if agent == "gemini" else 1
    assert written
    assert all(isinstance(each, int) and unit <= each <= 60 * unit for each in timeouts)


def test_the_journal_is_private_and_lies_outside_the_repository(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text("{}")
    journal = SetupJournal(str(tmp_path / "journal"))
    apply(plan([SetupTarget(str(path), "json", ADDITIONS)], journal), journal)
    assert [oct(each.stat().st_mode & 0o777) for each in (tmp_path / "journal").iterdir()] == [
        "0o600"
    ]


def test_permissions_and_links_of_a_configuration_stay(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "settings.json"
    real.write_text("{}")
    real.chmod(0o640)
    link.symlink_to(real)
    target, journal = (
        SetupTarget(str(link), "json", ADDITIONS),
        SetupJournal(str(tmp_path / "journal")),
    )
    apply(plan([target], journal), journal)
    assert link.is_symlink()
    assert oct(real.stat().st_mode & 0o777) == "0o640"
    undo(undo_plan([target], journal), journal)
    assert real.read_text() == "{}"


def test_a_file_of_that_name_that_is_not_ours_is_never_overwritten(tmp_path):
    path = tmp_path / "smara.json"
    path.write_text("mine")
    with pytest.raises(InvalidInputError, match="not ours"):
        plan(
            [SetupTarget(str(path), "own", body="smara hook")],
            SetupJournal(str(tmp_path / "journal")),
        )


def test_the_plugin_registers_what_setup_registers():
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())
    assert hooks["hooks"] == registrations("smara")
    assert json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())["name"] == "smara"
    assert json.loads((PLUGIN / ".mcp.json").read_text()) == {
        "mcpServers": {"smara": ADDITIONS["mcpServers"]["smara"]}
    }
    market = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    assert [(each["name"], each["source"]) for each in market["plugins"]] == [
        (manifest["name"], "./")
    ]
    assert manifest["version"] == smara.__version__
    for skill in ("remember", "review", "why"):
        head = (PLUGIN / "skills" / skill / "SKILL.md").read_text().split("---")[1]
        assert f"name: {skill}" in head
        assert "description: " in head


def test_claude_code_is_told_in_lines_since_others_that_read_them_ignore_lists_of_arguments():
    calls = [
        each
        for groups in registrations("smara").values()
        for group in groups
        for each in group["hooks"]
    ]
    assert all(
        each["command"].startswith("smara hook claude ") and "args" not in each for each in calls
    )


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "cursor"])
def test_a_program_whose_path_has_blanks_is_one_word_and_still_known_as_ours(agent, tmp_path):
    (target, *_) = targets_of(
        agent, "project", str(tmp_path), program="/home/ada/my programs/smara"
    )
    groups = [group for each in target.additions["hooks"].values() for group in each]
    calls = [each for group in groups for each in group.get("hooks", [group])]
    assert all(each["command"].startswith('"/home/ada/my programs/smara" hook ') for each in calls)
    assert all(map(is_own_hook, calls))


def test_codex_hands_the_server_the_variables_that_name_the_store(tmp_path):
    config = tomllib.loads(targets_of("codex", "project", str(tmp_path))[1].body)
    assert {"SMARA_DB", "SMARA_HOME", "SMARA_PROJECT"} <= set(
        config["mcp_servers"]["smara"]["env_vars"]
    )


def test_hosts_are_found_by_their_folders_and_know_where_they_are_set_up(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    root, journal = tmp_path / "repository", SetupJournal(str(tmp_path / "journal"))
    os.makedirs(root)
    assert [(host.agent, host.set_up) for host in find_hosts(str(root), journal)] == [
        ("claude", ())
    ]
    apply(plan(targets_of("claude", "project", str(root)), journal), journal)
    assert [(host.agent, host.set_up) for host in find_hosts(str(root), journal)] == [
        ("claude", ("project",))
    ]


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "generic"])
def test_nothing_that_is_set_up_in_a_repository_can_be_committed_by_accident(agent, tmp_path):
    main, tree = tmp_path / "main", tmp_path / "tree"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(tree))
    journal = SetupJournal(str(tmp_path / "journal"))
    for root in (main, tree):
        targets = targets_of(agent, "project", str(root), program="/home/ann/venv/bin/smara")
        apply(plan(targets, journal), journal)
        assert {state_of(target, journal) for target in targets} == {"present"}
        assert git(root, "status", "--short", "-uall") == ""
        git(root, "add", "-A")
        assert git(root, "diff", "--cached", "--name-only") == ""
        undo(undo_plan(targets, journal), journal)
        assert os.listdir(root) == [".git"]


@pytest.mark.parametrize("before", [None, b'{\n  "model": "opus"\n}\n'])
def test_what_an_older_version_set_up_is_moved_and_given_back_byte_for_byte(before, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    journal = SetupJournal(str(tmp_path / ".git" / "journal"))
    shared = tmp_path / ".claude" / "settings.json"
    if before is not None:
        shared.parent.mkdir()
        shared.write_bytes(before)
    hooks = targets_of("claude", "project", str(tmp_path))[0].additions
    apply(plan([SetupTarget(str(shared), "json", hooks)], journal), journal)
    assert b"smara hook" in shared.read_bytes()
    targets = targets_of("claude", "project", str(tmp_path))
    assert "differs" in {state_of(target, journal) for target in targets}
    apply(plan(targets, journal), journal)
    assert (shared.read_bytes() if shared.exists() else None) == before
    assert {state_of(target, journal) for target in targets} == {"present"}
    undo(undo_plan(targets, journal), journal)
    assert (shared.read_bytes() if shared.exists() else None) == before
    assert sorted(os.listdir(tmp_path)) == [*([".claude"] if before else []), ".git"]


def test_entry_of_a_team_that_setup_did_not_write_stays(tmp_path):
    journal, shared = SetupJournal(str(tmp_path / "journal")), tmp_path / ".mcp.json"
    shared.write_text('{"mcpServers": {"smara": {"command": "smara", "args": ["mcp"]}}}')
    before = shared.read_bytes()
    apply(plan(targets_of("claude", "project", str(tmp_path)), journal), journal)
    assert shared.read_bytes() == before


def test_file_that_git_tracks_is_not_written_into(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text("{}")
    git(tmp_path, "add", "-A")
    changes = plan(
        targets_of("gemini", "project", str(tmp_path)), SetupJournal(str(tmp_path / "journal"))
    )
    with pytest.raises(InvalidInputError, match="smara setup gemini --global"):
        refuse_tracked(changes, str(tmp_path), "gemini")
