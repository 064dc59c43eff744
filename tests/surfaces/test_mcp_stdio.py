"""The bare lines of ``smara mcp`` on standard input and output: nothing else gets there, and it
ends well.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

import smara as library
from smara.adapters import host
from smara.adapters.host import mcp_entry
from tests.surfaces.mcp_server import INITIALIZE, Lines
from tests.surfaces.shell import command, environment, spawn

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_older_protocols_are_spoken_with_their_handshake(db, version):
    with Lines() as server:
        result = server.begin(version)
        assert result["protocolVersion"] == version
        assert result["serverInfo"]["name"] == "smara"
        assert "task-query" in result["instructions"]
        assert (
            server.call("task-query", action="ready")["content"][0]["text"] == "0 ready, 0 blocked."
        )


def test_newer_protocol_is_spoken_without_a_handshake(db):
    with Lines() as server:
        found = server.ask("server/discover", {"_meta": META})["result"]
        assert "2026-07-28" in found["supportedVersions"]
        call = {"name": "task-query", "arguments": {"action": "ready"}, "_meta": META}
        result = server.ask("tools/call", call)["result"]
        assert result["structuredContent"]["readyCount"] == 0
        assert result["resultType"] == "complete"


def test_end_of_input_ends_the_process_without_a_word(db):
    with Lines() as server:
        server.begin()
        server.call("task-query", action="ready")
        assert server.end() == (0, b"", b"")


def test_end_of_input_before_the_first_message_ends_the_process(db):
    with Lines() as server:
        assert server.end() == (0, b"", b"")


def test_answers_under_way_are_given_before_leaving(db):
    """Everything at once, then the end: as from a shell."""
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {
                    "name": "task-mutate",
                    "arguments": {"action": "create", "title": f"task {number}"},
                },
            }
            for number in range(2, 12)
        ),
    ]
    said = spawn("mcp", stdin=b"".join(json.dumps(each).encode() + b"\n" for each in asked))
    assert (said.code, said.err) == (0, "")
    assert sorted(json.loads(line)["id"] for line in said.out.splitlines()) == list(range(1, 12))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_process_while_its_input_is_open(db, number):
    with Lines() as server:
        server.begin()
        server.call("task-mutate", action="create", title="Form")
        assert server.stop(number) == (0, b"", b"")
    assert spawn("doctor").code == 0


def test_reader_that_leaves_early_ends_the_process(db):
    process = subprocess.Popen(
        command("mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write(
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
        ).encode()
    )
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.wait(600) == 0
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


def test_claims_of_a_made_up_session_end_with_the_process_and_those_of_a_named_one_do_not(db):
    for arguments, status in (((), "open"), (("--session", "mine"), "in_progress")):
        with Lines(*arguments) as server:
            server.begin()
            task = server.call("task-mutate", action="create", title="Form")["structuredContent"][
                "task"
            ]["id"]
            claimed = server.call("task-mutate", action="claim", id=task)["structuredContent"][
                "task"
            ]
            assert claimed["sessionId"].startswith("mcp-" if not arguments else "mine")
            server.end()
        with library.open(db) as memory:
            memory.tasks.expire()
            assert memory.tasks.get(task).status == status


HOSTILE = (
    'line\nbreak \r\n {"jsonrpc": "2.0", "id": 1} \u2028 \x00 \x1b[31m half \ud83d, 重跑 \u202e'
)


def test_hostile_content_stays_inside_its_line(db):
    with library.open(db) as memory:
        memory.messages.add(thread_id="t", role="user", content=f"walrus {HOSTILE}")
    with Lines("--verbose") as server:
        server.begin()
        result = server.call("memory-search", query="walrus")
        assert result["structuredContent"]["results"][0]["content"] == f"walrus {HOSTILE}".replace(
            "\ud83d", "\ufffd"
        )
        made = server.call("task-mutate", action="create", title="x", description=HOSTILE)
        assert not made["isError"]
        code, out, _ = server.end()
    assert (code, out) == (0, b"")


def test_stray_print_misses_the_wire(db, tmp_path):
    """A library that prints while it is used: here one of ours, made to."""
    (tmp_path / "sitecustomize.py").write_text(
        "import smara.search.query as q\n"
        "import os, subprocess\n"
        "real = q.analyze_query\n"
        "def noisy(text):\n"
        "    print('stray print')\n"
        "    os.write(1, b'stray write\\n')\n"
        "    subprocess.run(['echo', 'stray child'])\n"
        "    return real(text)\n"
        "import smara.search.query as u\n"
        "u.analyze_query = noisy\n"
    )
    with Lines(env={"PYTHONPATH": str(tmp_path)}) as server:
        server.begin()
        assert not server.call("memory-search", query="two words")["isError"]
        code, out, err = server.end()
    assert (code, out) == (0, b"")
    assert err.count(b"stray") == 3


def test_half_an_emoji_from_a_client_is_mended(db):
    """Clients cut texts between the halves of a character; the SDK would drop the line and leave
    them waiting.
    """
    with Lines() as server:
        server.begin()
        line = '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"task-mutate","arguments":'  # noqa: E501
        server.send(line.encode() + b'{"action":"create","title":"cut \\udc00 and \\ud800"}}}')
        answer = server.read()
        assert answer["id"] == "a"
        assert answer["result"]["structuredContent"]["task"]["title"].startswith("cut \ufffd")


UNREADABLE = [
    (b"{not json", -32700, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":' + b"[" * 5_000, -32700, 7),
    (
        b'{"method":"tools/call","params":' + b"[" * 5_000 + b'],"jsonrpc":"2.0","id":"last"}',
        -32700,
        "last",
    ),
    (b'{"jsonrpc":"2.0","id":7,"method":5}', -32600, 7),
    (b"[]", -32600, None),
    (b'"text"', -32600, None),
    (b"\xff\xfe", -32700, None),
]


def test_line_that_cannot_be_read_is_answered_and_the_next_one_too(db):
    with Lines() as server:
        server.begin()
        for line, code, id_ in UNREADABLE:
            server.send(line)
            answer = server.read()
            assert (answer["error"]["code"], answer.get("id")) == (code, id_)
            assert answer["error"]["message"].startswith("The message is")
            server.send(b"")
            assert not server.call("task-query", action="ready")["isError"]


def test_line_longer_than_allowed_is_refused_and_the_next_one_answered(db):
    with Lines() as server:
        server.begin()
        server.send(
            b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":"' + b"x" * 9_000_000 + b'"}'
        )
        answer = server.read()
        assert (answer["id"], answer["error"]["code"]) == (5, -32600)
        assert not server.call("task-query", action="ready")["isError"]


def test_store_and_project_come_from_arguments_or_the_environment(db, tmp_path):
    other = str(tmp_path / "other.db")
    for arguments, env, path, project in (
        (("--db", other, "--project", "work"), {}, other, "work"),
        ((), {"SMARA_PROJECT": "play"}, db, "play"),
    ):
        with Lines(*arguments, env=env) as server:
            server.begin()
            server.call("task-mutate", action="create", title=f"in {project}")
        with library.open(path, project=project) as memory:
            assert [task.title for task in memory.tasks.list()] == [f"in {project}"]


def test_broken_store_is_told_and_recovered_from(db):
    """1. the store is no database; 2. it is replaced by a good one; 3. it is deleted under the
    server.
    """
    with open(db, "wb") as file:
        file.write(b"this is not a database, and was never one" * 100)
    with Lines() as server:
        server.begin()
        refused = server.call("task-query", action="ready")
        assert refused["isError"]
        assert refused["structuredContent"]["code"] in ("corrupt", "cannot_open")
        assert "without memory" in refused["content"][0]["text"]
        assert "error" in server.ask("resources/read", {"uri": "smara://tasks/ready"})
        os.remove(db)
        assert not server.call("task-mutate", action="create", title="Form")["isError"]
        for name in (db, f"{db}-wal", f"{db}-shm"):
            if os.path.exists(name):
                os.remove(name)
        assert server.call("task-query", action="ready")["structuredContent"]["readyCount"] == 0
        assert not server.call("task-mutate", action="create", title="After")["isError"]
        assert server.end()[0] == 0
    with library.open(db) as memory:
        assert [task.title for task in memory.tasks.list()] == ["After"]


def test_beside_the_first_mcp_the_server_says_what_to_install(db, tmp_path):
    (tmp_path / "mcp_types").mkdir()
    (tmp_path / "mcp_types" / "__init__.py").write_text(
        "raise ModuleNotFoundError('no', name='mcp_types')"
    )
    said = spawn("mcp", env={"PYTHONPATH": str(tmp_path)})
    assert said.code == 5
    assert 'pip install "mcp>=2,<3"' in said.err
    assert "uv tool install smara" in said.err


def test_beside_the_first_mcp_no_agent_is_set_up_with_the_server(monkeypatch):
    assert mcp_entry("smara")
    monkeypatch.setattr(host, "find_spec", {"mcp": "the first"}.get)
    assert mcp_entry("smara") == {}


def test_starting_the_server_does_not_open_the_store(db):
    with Lines() as server:
        server.begin()
        server.ask("tools/list")
        assert not os.path.exists(db)
        server.call("task-query", action="ready")
        assert os.path.exists(db)


def test_command_line_does_not_pay_for_the_protocol():
    code = (
        "import sys; from smara.surfaces.cli import app; print({'mcp', 'pydantic', 'anyio'} & "
        "set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
