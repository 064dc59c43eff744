"""Connections that are opened and held back stop neither a good client nor fill a disk."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest

from tests.faults.sizes import count
from tests.surfaces.mcp_server import INITIALIZE
from tests.surfaces.shell import DEADLINE_SECONDS, command, environment

resource = pytest.importorskip("resource")  # Windows has none
TOKEN = "correct-horse"
MOST_FILES = count(128, 1024)
FLOOD = count(150, 1100)


@pytest.fixture
def more_files() -> object:
    """Let this process hold its ends of the flood."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * FLOOD)), hard))
    yield None
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_flood_of_half_open_connections_is_outlived(tmp_path: Path, more_files: object) -> None:
    """1. Flood; 2. ask as a good client, while all are held; 3. look at what was logged."""
    errors = tmp_path / "errors"
    with errors.open("wb") as file:
        process = subprocess.Popen(
            command("mcp", "--http", "127.0.0.1:0", "--token", TOKEN),
            stderr=file,
            env=environment(SMARA_DB=str(tmp_path / "smara.db")),
            preexec_fn=_few_files,
        )
    try:
        port = _port(errors, process)
        held = []
        for _ in range(FLOOD):
            connection = socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS)
            connection.sendall(b"GET /mcp HTTP/1.1\r\nX-a: ")
            held.append(connection)
        for _ in range(3):
            assert _ask(port).startswith(b"HTTP/1.1 200")
        for connection in held:
            connection.close()
        assert _ask(port).startswith(b"HTTP/1.1 200")
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)
    assert errors.stat().st_size < 4_096


def _few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_FILES, MOST_FILES))


def _port(errors: Path, process: subprocess.Popen[bytes]) -> int:
    while process.poll() is None:
        line = errors.read_text()
        if "/mcp" in line:
            return int(line.rpartition(":")[2].partition("/")[0])
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise AssertionError(errors.read_text())


def _ask(port: int) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    head = (
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), DEADLINE_SECONDS) as connection:
        connection.sendall((head + body).encode())
        return b"".join(iter(lambda: connection.recv(65_536), b""))
