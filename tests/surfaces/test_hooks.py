"""A hook as a host runs it: a process of its own that leaves with 0 and says nothing on standard
error.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from smara.adapters.hosts import brief, spool
from tests.surfaces.shell import smara as call
from tests.surfaces.shell import spawn

FIXTURES = Path(__file__).parents[1] / "fixtures" / "hooks"
FORBIDDEN = (
    "json",
    "typing",
    "re",
    "dataclasses",
    "pathlib",
    "click",
    "apsw",
    "smara.config",
    "smara.memory",
    "logging",
)
MAIN = "from smara.surfaces.cli import main; main()"
GIT = str(shutil.which("git"))


def hook(
    agent: str, event: str, payload: bytes, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, "hook", agent, event],
        input=payload,
        capture_output=True,
        check=False,
        timeout=600,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(
    "path", sorted(FIXTURES.glob("*/*st*.json")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_every_host_can_call_it(path, db):
    shape = json.loads(path.read_text())
    done = hook(path.parent.name, shape["event"], json.dumps(shape["payload"]).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert not done.stdout or json.loads(done.stdout)


def home_with(tmp_path, monkeypatch, host: str):
    """The empty home of a user who has one agent and no program on the path, and is in a folder
    beside it.
    """
    home = tmp_path / "home"
    (home / host).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SMARA_HOME", str(home / "smara"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    return home


def told_by_doctor(check: str) -> list[dict]:
    return [each for each in call("doctor", "--json").data["findings"] if each["check"] == check]


def test_an_event_that_is_only_kept_loads_nothing_but_the_standard_library(db):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", MAIN, "hook", "claude", "Stop"],
        input=b'{"session_id": "s"}',
        capture_output=True,
        timeout=600,
        check=False,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    started = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "pass"],
        capture_output=True,
        timeout=600,
        check=True,
    )
    anyway = {line.rpartition("|")[2].strip() for line in started.stderr.decode().splitlines()}
    assert (loaded - anyway) & set(FORBIDDEN) == set()
    assert len(spool.names(f"{db}-spool")) == 1


def test_an_agent_that_smara_itself_started_is_not_remembered(db):
    assert hook("claude", "Stop", b'{"session_id": "s"}', SMARA_INTERNAL="1").returncode == 0
    assert not os.path.exists(f"{db}-spool")


@pytest.mark.parametrize("agent", ["claude", "nobody", "../../x"])
@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b"null", b"\xff\x00", b'{"session_id": 5, "prompt": {}}']
)
def test_garbage_is_no_trouble(agent, payload, db):
    for event in ("SessionStart", "PostToolUse", "Whatever", "../x"):
        done = hook(agent, event, payload)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_hook_with_the_name_of_no_host_stays_quiet_and_the_doctor_names_it(db):
    payload = json.dumps({"session_id": "s", "prompt": "What is Ypsilon?"}).encode()
    assert told_by_doctor("hooks") == []
    done = hook("clawde", "UserPromptSubmit", payload)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    [finding] = told_by_doctor("hooks")
    assert finding["level"] == "warning"
    assert "`smara hook clawde`, and no host is called so" in finding["text"]
    assert "Known are: claude, codex" in finding["text"]
    call("hook", "drain")
    assert "What is Ypsilon?" in call("search", "Ypsilon").out


def test_setup_refuses_the_name_of_no_host(db):
    refused = call("setup", "clawde")
    assert refused.code == 2
    assert "'clawde' is not one of" in refused.err
    assert "'claude'" in refused.err


def test_hooks_are_drained_by_a_command_that_says_what_it_did(db):
    hook(
        "claude", "UserPromptSubmit", b'{"session_id": "s1", "prompt": "Remember the fall of Rome"}'
    )
    said = call("hook", "drain", "--json")
    assert (said.code, said.data["taken"], said.data["messages"]) == (0, 1, 1)
    assert "fall of Rome" in call("search", "Rome").out


def test_a_person_who_asks_for_help_or_json_is_answered(db):
    assert "AGENT EVENT" in spawn("hook", "claude", "--help").out
    assert spawn("hook", "drain", "--json").data["taken"] == 0
    assert spawn("hook", "claude").code == 2


def test_a_host_drains_without_a_word(db):
    hook("claude", "UserPromptSubmit", b'{"session_id": "s1", "prompt": "x"}')
    done = hook("claude", "drain", b"")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert spool.names(f"{db}-spool") == []


def test_hooks_of_claude_that_copilot_runs_are_told_by_copilot_which_waits_for_no_drain(db):
    payload = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s1",
        "cwd": os.getcwd(),
        "prompt": "Go",
    }
    assert (
        hook("claude", "UserPromptSubmit", json.dumps(payload).encode(), COPILOT_CLI="1").returncode
        == 0
    )
    assert hook("claude", "drain", b"", COPILOT_CLI="1").returncode == 0
    (waiting,) = spool.names(f"{db}-spool")
    assert Path(f"{db}-spool", waiting).read_bytes().split(b"\t")[1] == b"copilot"


def test_the_worker_drains_too(db):
    hook("claude", "UserPromptSubmit", b'{"session_id": "s1", "prompt": "x"}')
    assert call("worker", "--once").code == 0
    assert spool.names(f"{db}-spool") == []


def test_setup_shows_a_diff_asks_and_is_undone(db, tmp_path, monkeypatch):
    repository = tmp_path / "repository"
    (repository / ".claude").mkdir(parents=True)
    settings = repository / ".claude" / "settings.json"
    settings.write_text('{\n  // mine\n  "model": "opus"\n}\n')
    monkeypatch.chdir(repository)
    monkeypatch.setenv("SMARA_HOME", str(tmp_path / "home"))

    assert call("setup", "claude", "--check").code == 8
    refused = call("setup", "claude")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert '+      "PostToolUse"' in refused.out or '+    "PostToolUse"' in refused.out
    assert "// mine" in settings.read_text()
    assert call("setup", "claude", "--yes").code == 0
    assert call("setup", "claude", "--check", "--json").data["isSetUp"] is True
    assert "already" in call("setup", "claude", "--yes").out
    assert call("setup", "claude", "--remove", "--yes").code == 0
    assert settings.read_text() == '{\n  // mine\n  "model": "opus"\n}\n'
    assert sorted(path.name for path in repository.rglob("*")) == [".claude", "settings.json"]


def test_setup_prints_what_it_would_write_and_writes_nothing(db, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = call("setup", "codex", "--print")
    assert "smara hook codex SessionStart" in said.out.replace(
        os.path.dirname(sys.executable) + "/", ""
    )
    assert not (tmp_path / ".codex").exists()


def test_init_finds_hosts_and_sets_them_up_when_told_to(db, tmp_path, monkeypatch):
    repository = tmp_path / "repository"
    repository.mkdir()
    home_with(tmp_path, monkeypatch, ".codex")
    monkeypatch.chdir(repository)
    assert [host["setUp"] for host in call("init", "--json").data["hosts"]] == [[]]
    assert list(repository.iterdir()) == []
    assert call("init", "--yes", "--json").data["hosts"][0]["setUp"] == ["project"]
    assert (repository / ".codex" / "hooks.json").exists()


def test_doctor_tells_whether_hooks_really_fire(db, tmp_path, monkeypatch):
    home_with(tmp_path, monkeypatch, ".claude")
    call("init", "--yes")

    assert "none of its events" in told_by_doctor("claude hooks")[0]["text"]
    hook("claude", "UserPromptSubmit", b'{"session_id": "s1", "prompt": "x"}')
    assert told_by_doctor("spool")[0]["text"] == "1 event waits."
    call("hook", "drain")
    (heard,) = told_by_doctor("claude hooks")
    assert (heard["level"], "Last heard" in heard["text"]) == ("ok", True)
    call("setup", "claude", "--global", "--yes")
    assert any("arrives twice" in each["text"] for each in told_by_doctor("claude hooks"))


def test_the_plug_in_counts_as_set_up_and_beside_the_settings_as_once_too_often(
    db, tmp_path, monkeypatch
):
    home = home_with(tmp_path, monkeypatch, ".claude")
    (home / ".claude" / "settings.json").write_text('{"enabledPlugins": {"smara@smara": true}}')
    found = call("init", "--yes", "--json").data["hosts"]
    assert [(host["setUp"], host["hasPlugin"]) for host in found] == [([], True)]
    assert not (tmp_path / ".claude").exists()

    assert texts("claude hooks") == [
        "Claude Code is set up, but none of its events has arrived yet."
    ]
    call("setup", "claude", "--yes")
    assert any(
        "The plug-in and the settings both call Smara" in text for text in texts("claude hooks")
    )


def test_doctor_tells_that_codex_was_not_told_to_trust_the_hooks(db, tmp_path, monkeypatch):
    home = home_with(tmp_path, monkeypatch, ".codex")
    monkeypatch.delenv("CODEX_HOME", raising=False)
    call("init", "--yes")

    def finding() -> str:
        return told_by_doctor("codex hooks")[0]["text"]

    hooks = tmp_path / ".codex" / "hooks.json"
    for config in (
        "",
        "no TOML",
        'hooks = "none"\n',
        '[hooks.state."/elsewhere/hooks.json:stop:0:0"]\n',
    ):
        (home / ".codex" / "config.toml").write_text(config)
        assert f"the hooks of {hooks} in silence" in finding()
    (home / ".codex" / "config.toml").write_text(
        f'[hooks.state."{hooks}:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    )
    assert "none of its events" in finding()


def test_doctor_sees_a_timeout_in_the_wrong_unit(db, tmp_path, monkeypatch):
    home_with(tmp_path, monkeypatch, ".claude")
    call("init", "--yes")
    settings = tmp_path / ".claude" / "settings.local.json"
    settings.write_text(settings.read_text().replace('"timeout": 10', '"timeout": 10000'))
    said = call("doctor", "--json")
    assert said.code == 8
    assert any("takes for seconds" in each["text"] for each in said.data["findings"])


@pytest.fixture
def at_home(db, tmp_path, monkeypatch):
    """A repository of a person who has Claude Code."""
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    home_with(tmp_path, monkeypatch, ".claude")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(repository)
    return repository


def texts(check: str) -> list[str]:
    return [each["text"] for each in told_by_doctor(check)]


def test_init_brings_in_past_sessions_and_the_first_session_need_not_open_the_store(at_home, db):
    sessions = Path.home() / ".claude" / "projects" / "x"
    sessions.mkdir(parents=True)
    for path in (FIXTURES.parent / "transcripts" / "claude_code").glob("*.jsonl"):
        (sessions / path.name).write_text(path.read_text().replace("__ROOT__", str(at_home)))
    helper = {"type": "user", "sessionId": "s", "isSidechain": True, "agentId": "a1"}
    helper |= {"uuid": "u1", "parentUuid": None, "cwd": str(at_home), "message": {"role": "user"}}
    (sessions / "agent-a1.jsonl").write_text(json.dumps(helper) + "\n")
    assert call("init", "--json").data["sessions"] == {"found": 2, "stored": 0, "learned": 0}
    assert "2 past sessions of this repository" in call("init").out
    assert not (at_home / ".claude").exists()
    done = call("init", "--yes", "--json").data
    assert (done["sessions"]["stored"], done["sessions"]["learned"]) == (20, 1)
    head = brief.head_of(f"{db}-spool", str(at_home))
    assert brief.words_of(f"{db}-spool", head, "claude")["start"]["tokens"] > 0
    assert "starts with" in texts("brief")[0]


def test_what_a_person_teaches_is_said_by_the_next_session_without_the_store_being_opened(
    at_home, db
):
    call("init", "--yes")
    call("remember", "Invoices are numbered without gaps: never delete one")
    head = brief.head_of(f"{db}-spool", str(at_home))
    assert "never delete one" in brief.words_of(f"{db}-spool", head, "claude")["start"]["text"]
    said = hook("claude", "SessionStart", b'{"session_id": "s1", "source": "startup"}')
    assert b"never delete one" in said.stdout


def test_a_task_that_a_command_changes_is_said_by_the_next_session_without_the_store_being_opened(
    at_home, db
):
    call("init", "--yes")
    call("tasks", "add", "Number the invoices anew")
    added = call("tasks", "list", "--json").data["tasks"][0]["id"]
    call("tasks", "claim", added)
    head = brief.head_of(f"{db}-spool", str(at_home))
    assert head["is_same"]
    assert (
        "Number the invoices anew" in brief.words_of(f"{db}-spool", head, "claude")["start"]["text"]
    )


def test_the_preview_of_a_session_is_what_it_is_told_byte_for_byte(at_home):
    call("init", "--yes")
    call("remember", "Invoices are numbered without gaps: never delete one")
    said = hook("claude", "SessionStart", b'{"session_id": "s1", "source": "startup"}')
    told = json.loads(said.stdout)["hookSpecificOutput"]["additionalContext"]
    assert call("context", "preview").out == told + "\n"


def test_doctor_sees_a_program_that_has_moved_and_a_plug_in_beside_the_settings(at_home):
    call("init", "--yes")
    settings = at_home / ".claude" / "settings.local.json"
    whole = settings.read_text()
    called = json.loads(whole)["hooks"]["Stop"][0]["hooks"][0]["command"].split(" hook ")[0]
    settings.write_text(whole.replace(f"{called} hook", "/gone/bin/smara hook"))
    assert any("which is not there" in text for text in texts("claude hooks"))
    settings.write_text(whole)
    assert not any("which is not there" in text for text in texts("claude hooks"))
    (Path.home() / ".claude" / "settings.json").write_text(
        '{"enabledPlugins": {"smara@here": true}}'
    )
    assert any("plug-in" in text for text in texts("claude hooks"))


def test_init_leaves_the_work_tree_clean_and_check_agrees_with_it(at_home):
    assert "claude mcp add smara -- smara mcp" in call("init", "--yes").out
    shown = subprocess.run(
        [GIT, "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True
    )
    assert shown.stdout == ""
    checked = call("setup", "claude", "--check", "--json")
    assert (checked.code, checked.data["isSetUp"]) == (0, True)
    assert all(os.path.exists(each["path"]) for each in checked.data["files"])


def test_the_rule_file_of_cursor_is_hidden_from_git_and_gone_with_the_rest(at_home):
    exclude = at_home / ".git" / "info" / "exclude"
    before = exclude.read_bytes()
    assert call("setup", "cursor", "--yes").code == 0
    rule = at_home / ".cursor" / "rules" / "smara.mdc"
    rule.write_text(rule.read_text() + "- Something was learned.\n")
    assert call("setup", "cursor", "--check", "--json").data["isSetUp"] is True
    ignored = subprocess.run([GIT, "check-ignore", "-q", str(rule)], check=False)
    assert ignored.returncode == 0
    assert call("setup", "cursor", "--remove", "--yes").code == 0
    assert exclude.read_bytes() == before
    assert not (at_home / ".cursor").exists()
