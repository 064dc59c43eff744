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
from typing import Any

import pytest

import smara
from smara.actions.intake import Intake
from smara.adapters.hosts import spool
from smara.adapters.hosts.drain import drain
from smara.adapters.hosts.hook_store import drain_in_background
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
    out, err = process.communicate(json.dumps(payload).encode(), timeout=600)
    return process.returncode, out, err


def prompts(db: str) -> list[str]:
    """What was said in the session, after everything that waits was taken in."""
    with smara.open(db, token_model="estimate") as memory:
        drain(memory, f"{db}-spool")
        return sorted(
            each.raw_content for each in memory.messages.list(thread_id="s1") if each.role == "user"
        )


def silent() -> None:
    """Every hook that may speak says nothing; all at once, since those that wait for a store do so
    in vain.
    """
    with ThreadPoolExecutor(len(ASKING)) as pool:
        asked = [
            pool.submit(hook, each, prompt=f"kept {each}", tool_use_id=each, prompt_id=each)
            for each in ASKING
        ]
        assert {each.result() for each in asked} == {(0, b"", b"")}


def test_with_a_store_that_is_missing_events_wait_and_none_is_made(db):
    silent()
    assert not os.path.exists(db)
    assert prompts(db) == ["kept UserPromptSubmit"]


def test_with_a_store_that_is_locked_events_wait(db, in_a_hurry):
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
            told = [
                pool.submit(
                    hook,
                    "UserPromptSubmit",
                    prompt=f"{number}-{each}",
                    prompt_id=f"{number}-{each}",
                )
                for each in range(12)
            ]
            drains = [pool.submit(hook, "drain") for _ in range(4)]
            assert {each.result() for each in told + drains} == {(0, b"", b"")}
    assert prompts(db) == sorted(
        f"{number}-{each}" for number in range(rounds) for each in range(12)
    )


def test_a_hook_that_is_killed_leaves_a_whole_event_or_none(db):
    dice = random.Random(SEED)
    acknowledged = []
    for number in range(count(12, 150)):
        process = start("UserPromptSubmit")
        payload = json.dumps(
            {"session_id": "s1", "prompt": f"p{number}", "prompt_id": str(number)}
        ).encode()
        assert process.stdin
        size = dice.choice([0, 10, len(payload)])
        process.stdin.write(payload[:size])
        if dice.random() < 0.5:
            process.stdin.close()
            process.stdin = None
        for _ in range(dice.randrange(400_000)):
            pass  # somewhere between its first and its last instruction
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        assert (out, err) == (b"", b"")
        if process.returncode == 0 and size == len(payload):
            acknowledged.append(f"p{number}")
    kept = prompts(db)
    assert [
        each for each in acknowledged if each not in kept and f'"{each}"' not in unread(db)
    ] == []


def unread(db: str) -> str:
    """What waits aside: payloads whose host was killed in the middle of telling."""
    folder = Path(f"{db}-spool", "unreadable")
    return "".join(each.read_text() for each in folder.iterdir()) if folder.exists() else ""


def test_a_host_that_never_ends_its_telling_is_not_waited_for(db, in_a_hurry):
    process = start("Stop")
    assert process.stdin
    process.stdin.write(b'{"session_id": "s1"')
    process.stdin.flush()
    assert process.wait(timeout=600) == 0
    process.communicate()


def test_a_host_that_does_not_listen_is_no_trouble(db):
    process = start("SessionStart")
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    process.communicate(b'{"session_id": "s1", "source": "startup"}', timeout=600)
    assert process.returncode == 0


class KilledError(BaseException):
    """The end of a process, at a certain place."""


@pytest.mark.parametrize("place", ["before the keys", "after the keys"])
def test_a_drain_that_is_killed_is_gone_on_with_and_nothing_is_doubled(place, db, monkeypatch):
    folder = f"{db}-spool"
    failed = {
        "tool_name": "Bash",
        "tool_input": {"command": "make"},
        "tool_use_id": "t1",
        "error": "Exit code 2",
    }
    spooled(
        folder,
        claude("UserPromptSubmit", prompt="once", prompt_id="1"),
        claude("PostToolUseFailure", **failed),
    )
    end = Intake.end

    def killed(self, *values, **named):
        if place == "after the keys":
            end(self, *values, **named)
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


ERROR = "Exit code 1\nError: Cannot find module 'left-pad'"


@pytest.fixture
def knowing(db: str) -> str:
    """A store that knows why ``npm test`` failed, and hooks that were told ahead what to say."""
    with smara.open(db, token_model="estimate") as memory:
        memory.memories.add(
            "Totals in cart.js are integer cents: never divide before rounding",
            type="gotcha",
            files=["cart.js"],
            source="user_taught",
            by="person",
        )
        for session in ("one", "two"):
            common = {"session_id": session, "tool_name": "Bash"}
            spooled(
                f"{db}-spool",
                claude(
                    "PostToolUseFailure", **common, tool_input=NPM, error=ERROR, tool_use_id="1"
                ),
                claude(
                    "PostToolUse",
                    **common,
                    tool_input={"command": "npm ci"},
                    tool_response="ok",
                    tool_use_id="2",
                ),
                claude(
                    "PostToolUse",
                    **common,
                    tool_input=NPM,
                    tool_response="5 passing",
                    tool_use_id="3",
                ),
                claude("SessionEnd", session_id=session, reason="other"),
                cwd=os.getcwd(),
            )
    drain_in_background(f"{db}-spool")
    return db


NPM = {"command": "npm test"}
SPEAKING = (
    ("SessionStart", {"source": "startup"}), ("PreToolUse", {"tool_input": NPM}),
    ("PostToolUse", {"tool_name": "Read", "tool_input": {"file_path": "cart.js"},
    "tool_response": "x"}),
)  # fmt: skip


def told(out: bytes) -> str:
    """What the model is told: nothing, or one whole answer."""
    return str(json.loads(out)["hookSpecificOutput"]["additionalContext"]) if out else ""


def receipts(db: str) -> list[tuple[str, str]]:
    with smara.open(db, token_model="estimate") as memory:
        drain(memory, f"{db}-spool")
        return sorted((each.session_id, each.point) for each in memory.moments.receipts(limit=500))


def test_what_was_prepared_is_said_whole_and_receipted_once(knowing):
    for number, (event, fields) in enumerate(SPEAKING):
        code, out, err = hook(event, session_id=f"s{number}", **fields)
        assert (code, err, bool(told(out))) == (0, b"", True)
    expected = [("s0", "start"), ("s1", "before_tool"), ("s2", "after_tool")]
    assert receipts(knowing) == expected
    assert receipts(knowing) == expected


def in_trouble(db: str, trouble: str) -> list[sqlite3.Connection]:
    if trouble == "missing":
        os.rename(db, f"{db}-away")
    elif trouble == "damaged":
        Path(db).write_bytes(b"no database at all" * 1000)
    elif trouble == "newer":
        connection = sqlite3.connect(db)
        connection.execute("PRAGMA user_version = 9999")
        connection.close()
    elif trouble == "read-only":
        os.utime(db)
        os.chmod(db, 0o400)
    else:
        connection = sqlite3.connect(db, isolation_level=None)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("PRAGMA user_version = 9998")  # written, and not committed
        return [connection]
    return []


@pytest.mark.parametrize("trouble", ["missing", "damaged", "newer", "read-only", "locked"])
def test_hooks_that_were_told_ahead_what_to_say_are_silent_or_right_with_a_store_in_trouble(
    trouble, knowing, in_a_hurry
):
    connections = in_trouble(knowing, trouble)
    with ThreadPoolExecutor(5) as pool:
        asked = [
            pool.submit(hook, event, session_id=f"s{number}", **fields)
            for number, (event, fields) in enumerate((*SPEAKING, ("Stop", {}), ("drain", {})))
        ]
    for code, out, err in (each.result() for each in asked):
        assert (code, err) == (0, b"")
        assert out == b"" or "never divide" in told(out) or "left-pad" in told(out)
    for connection in connections:
        connection.close()


def test_a_memory_that_was_taken_back_is_not_said_by_any_hook(knowing):
    with smara.open(knowing) as memory:
        for each in memory.memories.list(limit=50):
            memory.memories.forget(each.id, by="person")
    for number, (event, fields) in enumerate(SPEAKING):
        code, out, err = hook(event, session_id=f"s{number}", **fields)
        assert (code, err) == (0, b"")
        assert "never divide" not in told(out)


def test_sixteen_that_speak_at_once_say_whole_answers_and_each_has_its_receipt(knowing):
    rounds = count(1, 8)
    spoken = []
    with ThreadPoolExecutor(16) as pool:
        for number in range(rounds):
            asked = []
            for each in range(12):
                event, fields = SPEAKING[each % 3]
                session = f"s{number}-{each}"
                asked.append(
                    (session, event, pool.submit(hook, event, session_id=session, **fields))
                )
            drains = [pool.submit(hook, "drain") for _ in range(4)]
            assert {each.result() for each in drains} == {(0, b"", b"")}
            for session, event, answer in asked:
                code, out, err = answer.result()
                assert (code, err) == (0, b"")
                if told(out):
                    point = {
                        "SessionStart": "start",
                        "PreToolUse": "before_tool",
                        "PostToolUse": "after_tool",
                    }[event]
                    spoken.append((session, point))
    assert len(spoken) >= 6 * rounds
    assert receipts(knowing) == sorted(spoken)


def test_a_speaking_hook_that_is_killed_or_told_to_leave_says_all_or_nothing(knowing):
    dice = random.Random(SEED)
    for number in range(count(12, 150)):
        event, fields = SPEAKING[number % 3]
        process = start(event)
        payload = json.dumps({"session_id": f"k{number}", "tool_name": "Bash", **fields}).encode()
        assert process.stdin
        process.stdin.write(payload)
        process.stdin.close()
        process.stdin = None
        for _ in range(dice.randrange(600_000)):
            pass  # somewhere between its first and its last instruction
        process.send_signal(dice.choice([signal.SIGKILL, signal.SIGTERM]))
        out, err = process.communicate()
        assert err == b""
        told(out)
    assert hook("drain") == (0, b"", b"")
    assert len(receipts(knowing)) == len(set(receipts(knowing)))


def test_a_brief_that_is_damaged_is_no_trouble(knowing):
    dice = random.Random(SEED)
    files = sorted(Path(f"{knowing}-spool", "briefs").glob("*.json"))
    whole = {path: path.read_bytes() for path in files}
    for number in range(count(6, 100)):
        for path in files:
            content = bytearray(whole[path])
            for _ in range(dice.randrange(1, 4)):
                content[dice.randrange(len(content))] = dice.randrange(256)
            path.write_bytes(
                bytes(content[: dice.randrange(len(content))])
                if dice.random() < 0.3
                else bytes(content)
            )
        event, fields = SPEAKING[number % 3]
        code, out, err = hook(event, session_id=f"d{number}", **fields)
        assert (code, err) == (0, b"")
        told(out)


@pytest.mark.parametrize("agent", ["gemini", "copilot", "cursor"])
def test_a_host_without_a_background_drains_at_the_next_start_and_leaves_nobody(agent, knowing):
    start, prompt, turn_end, end = {
        "gemini": ("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"),
        "copilot": ("sessionStart", "userPromptSubmitted", "agentStop", "sessionEnd"),
        "cursor": ("sessionStart", "beforeSubmitPrompt", "stop", "sessionEnd"),
    }[agent]
    told = [
        (prompt, {"prompt": "kept"}),
        (turn_end, {"prompt_response": "Done."}),
        (end, {"reason": "exit"}),
    ]
    for event, fields in told:
        hook_of(agent, event, "g1", **fields)
    kept = spool.names(f"{knowing}-spool")
    assert len(kept) >= len(told)  # the end of a turn and of a session only leave notes
    hook_of(agent, start, "g2", source="startup")
    assert not set(kept) & set(spool.names(f"{knowing}-spool"))
    with smara.open(knowing) as memory:
        assert "kept" in [each.raw_content for each in memory.messages.list(thread_id="g1")]


def hook_of(agent: str, event: str, session: str, **fields: Any) -> None:
    common = {
        "session_id": session,
        "sessionId": session,
        "conversation_id": session,
        "cwd": os.getcwd(),
    }
    command = [sys.executable, "-c", MAIN, "hook", agent, event]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, **pipes, start_new_session=True)  # type: ignore[call-overload]
    _, err = process.communicate(json.dumps({**common, **fields}).encode(), timeout=600)
    assert (process.returncode, err) == (0, b"")
    assert members_of(process.pid) == []


def test_no_process_stays_behind(db):
    """Every hook runs in a session of its own; when it has left, nobody is in that session any
    more.
    """
    smara.open(db).close()
    for event in (*ASKING, "Stop", "SessionEnd", "drain"):
        process = start(event, start_new_session=True)
        process.communicate(
            b'{"session_id": "s1", "source": "startup", "prompt": "x"}', timeout=600
        )
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
