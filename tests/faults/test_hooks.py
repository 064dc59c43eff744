"""Hooks in trouble: the agent never notices, and no event is lost that could be kept."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import smara
from smara.adapters.hosts import spool
from smara.adapters.hosts.draining import drain
from smara.intake.intake import Intake
from tests.faults.sizes import SEED, count
from tests.unit.hosts.hooks import claude, spooled

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and /proc are looked at")

MAIN = "from smara.surfaces.cli import main; main()"
ASKING = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = str(tmp_path / "smara.db")
    monkeypatch.setenv("SMARA_DB", path)
    monkeypatch.setenv("SMARA_DURABILITY", "normal")
    monkeypatch.chdir(tmp_path)
    return path


def start(event: str, **more: object) -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", MAIN, "hook", "claude", event], **pipes, **more)  # type: ignore[call-overload]


def hook(event: str, **fields: object) -> tuple[int, bytes, bytes]:
    payload = {"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "make"}, **fields}
    process = start(event)
    out, err = process.communicate(json.dumps(payload).encode(), timeout=60)
    return process.returncode, out, err


def prompts(db: str) -> list[str]:
    """What was said in the session, after everything that waits was taken in."""
    with smara.open(db, token_model="estimate") as memory:
        drain(memory, f"{db}-spool")
        return sorted(each.raw_content for each in memory.messages.list(thread_id="s1") if each.role == "user")


def silent() -> None:
    for event in ASKING:
        assert hook(event, prompt=f"kept {event}", tool_use_id=event, prompt_id=event) == (0, b"", b"")


def test_with_a_store_that_is_missing_events_wait_and_none_is_made(db):
    silent()
    assert not os.path.exists(db)
    assert prompts(db) == ["kept UserPromptSubmit"]


def test_with_a_store_that_is_locked_events_wait(db):
    smara.open(db).close()
    blocker = sqlite3.connect(db, isolation_level=None)
    blocker.execute("PRAGMA locking_mode = EXCLUSIVE")
    blocker.execute("BEGIN EXCLUSIVE")
    silent()
    blocker.execute("ROLLBACK")
    blocker.close()
    assert prompts(db) == ["kept UserPromptSubmit"]


def test_with_a_store_that_can_only_be_read_events_wait(db, tmp_path):
    smara.open(db).close()
    os.makedirs(f"{db}-spool", mode=0o700)
    os.chmod(db, 0o400)
    os.chmod(tmp_path, 0o500)
    try:
        silent()
    finally:
        os.chmod(tmp_path, 0o700)
        os.chmod(db, 0o600)
    assert prompts(db) == ["kept UserPromptSubmit"]


def test_with_a_store_of_a_newer_version_events_wait_and_it_is_left_alone(db):
    smara.open(db).close()
    connection = sqlite3.connect(db)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    silent()
    assert hook("drain") == (0, b"", b"")
    connection = sqlite3.connect(db)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == 9999
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    assert prompts(db) == ["kept UserPromptSubmit"]


def test_with_a_store_that_is_damaged_events_wait(db):
    Path(db).write_bytes(b"no database at all" * 1000)
    silent()
    os.unlink(db)
    assert prompts(db) == ["kept UserPromptSubmit"]


def test_with_settings_that_are_wrong_events_wait(db, monkeypatch):
    monkeypatch.setenv("SMARA_DURABILITY", "sometimes")
    silent()
    monkeypatch.setenv("SMARA_DURABILITY", "normal")
    assert prompts(db) == ["kept UserPromptSubmit"]


def test_with_a_spool_that_cannot_be_written_the_agent_goes_on(db):
    Path(f"{db}-spool").write_text("a file where the folder should be")
    silent()


def test_sixteen_hooks_at_once_lose_nothing_and_no_drain_takes_anything_twice(db):
    rounds = count(2, 12)
    smara.open(db).close()
    with ThreadPoolExecutor(16) as pool:
        for number in range(rounds):
            told = [pool.submit(hook, "UserPromptSubmit", prompt=f"{number}-{each}", prompt_id=f"{number}-{each}")
                    for each in range(12)]  # fmt: skip
            drains = [pool.submit(hook, "drain") for _ in range(4)]
            assert {each.result() for each in told + drains} == {(0, b"", b"")}
    assert prompts(db) == sorted(f"{number}-{each}" for number in range(rounds) for each in range(12))


def test_a_hook_that_is_killed_leaves_a_whole_event_or_none(db):
    dice = random.Random(SEED)
    acknowledged = []
    for number in range(count(12, 150)):
        process = start("UserPromptSubmit")
        payload = json.dumps({"session_id": "s1", "prompt": f"p{number}", "prompt_id": str(number)}).encode()
        assert process.stdin
        process.stdin.write(payload[: dice.choice([0, 10, len(payload)])])
        if dice.random() < 0.5:
            process.stdin.close()
            process.stdin = None
        for _ in range(dice.randrange(400_000)):
            pass  # somewhere between its first and its last instruction
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        assert (out, err) == (b"", b"")
        if process.returncode == 0:
            acknowledged.append(f"p{number}")
    kept = prompts(db)
    assert [each for each in acknowledged if each not in kept and f'"{each}"' not in unread(db)] == []


def unread(db: str) -> str:
    """What waits aside: payloads whose host was killed in the middle of telling."""
    folder = Path(f"{db}-spool", "unreadable")
    return "".join(each.read_text() for each in folder.iterdir()) if folder.exists() else ""


def test_a_host_that_never_ends_its_telling_is_not_waited_for(db):
    process = start("Stop")
    assert process.stdin
    process.stdin.write(b'{"session_id": "s1"')
    process.stdin.flush()
    assert process.wait(timeout=60) == 0
    process.communicate()


def test_a_host_that_does_not_listen_is_no_trouble(db):
    process = start("SessionStart")
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    process.communicate(b'{"session_id": "s1", "source": "startup"}', timeout=60)
    assert process.returncode == 0


class KilledError(BaseException):
    """The end of a process, at a certain place."""


@pytest.mark.parametrize("place", ["before the keys", "after the keys"])
def test_a_drain_that_is_killed_is_gone_on_with_and_nothing_is_doubled(place, db, monkeypatch):
    folder = f"{db}-spool"
    failed = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "t1", "error": "Exit code 2"}
    spooled(folder, claude("UserPromptSubmit", prompt="once", prompt_id="1"), claude("PostToolUseFailure", **failed))
    end = Intake.end

    def killed(self, *values):
        if place == "after the keys":
            end(self, *values)
        raise KilledError

    with smara.open(db, token_model="estimate") as memory:
        monkeypatch.setattr(Intake, "end", killed)
        with pytest.raises(KilledError):
            drain(memory, folder)
        monkeypatch.setattr(Intake, "end", end)
        assert len(spool.names(folder)) == 2
        drain(memory, folder)
        assert spool.names(folder) == []
        assert [each.raw_content for each in memory.messages.list(thread_id="s1")] == ["once"]
        assert [each.events for each in memory.behavior.sessions()] == [2]


def test_no_process_stays_behind(db):
    """Every hook runs in a session of its own; when it has left, nobody is in that session any more."""
    smara.open(db).close()
    for event in (*ASKING, "Stop", "SessionEnd", "drain"):
        process = start(event, start_new_session=True)
        process.communicate(b'{"session_id": "s1", "source": "startup", "prompt": "x"}', timeout=60)
        assert members_of(process.pid) == []


def members_of(session: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            facts = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(facts[3]) == session and facts[0] != "Z":
            found.append(int(folder.name))
    return found
