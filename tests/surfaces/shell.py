"""Three ways to call the command line: in this process, in one of its own, and on a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import pytest

from smara.surfaces.cli.app import run

DEADLINE_SECONDS = 600
_ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07)")


@dataclass(frozen=True, slots=True)
class Said:
    """What a call wrote, and how it left."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The data of the envelope; the envelope must be one and well-formed."""
        return self.envelope["data"]

    @property
    def envelope(self) -> dict[str, Any]:
        whole = json.loads(self.out)
        assert list(whole)[:3] == ["schema", "data", "warnings"]
        assert whole["schema"] == 1
        assert isinstance(whole["warnings"], list)
        return whole  # type: ignore[no-any-return]

    @property
    def rows(self) -> list[list[str]]:
        """The tab-separated lines of a pipe, without their heading."""
        return [line.split("\t") for line in self.out.splitlines()[1:]]


class _Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def smara(
    *arguments: str, stdin: bytes = b"", encoding: str = "utf-8", is_seen: bool = False
) -> Said:
    """Call the command line in this process, with pipes; ``is_seen`` makes one a terminal."""
    out = (_Terminal if is_seen else io.TextIOWrapper)(io.BytesIO(), encoding, newline="")
    err = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            run(list(arguments))
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        sys.stdin = before
    return Said(code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.detach()
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


def environment(**more: str) -> dict[str, str]:
    """The environment of a process of its own; warnings are errors there too, and no size of a
    terminal is told.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("COLUMNS", "LINES", "NO_COLOR")
    }
    return {**inherited, "PYTHONWARNINGS": "error", **more}


def command(*arguments: str) -> list[str]:
    """The words of a call."""
    return [sys.executable, "-m", "smara", *arguments]


def spawn(*arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Said:
    """Call the command line in a process of its own, with pipes."""
    done = subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        env=environment(**(env or {})),
        timeout=DEADLINE_SECONDS,
    )
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode())


def left_early(*arguments: str) -> tuple[int, bytes]:
    """How a call leaves, and what it complains of, whose reader leaves after a few bytes."""
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout:
        process.stdout.read(10)
    with process.stderr:
        error = process.stderr.read()
    return process.wait(DEADLINE_SECONDS), error


def on_terminal(
    *arguments: str,
    columns: int = 80,
    streams: str = "both",
    env: Mapping[str, str] | None = None,
    typed: str = "",
    cwd: str | None = None,
    python: str = sys.executable,
) -> Said:
    """Call it on a pseudo-terminal; ``streams`` says which of stdout and stderr ("out", "err",
    "both") go there, ``typed`` what a person answers, and ``python`` where it is installed.

    What the terminal saw is ``out``, escapes included; what went elsewhere is ``err``.
    """
    pty, fcntl, termios = (pytest.importorskip(name) for name in ("pty", "fcntl", "termios"))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [python, *command(*arguments)[1:]],
        cwd=cwd,
        stdin=theirs if typed else subprocess.DEVNULL,
        stdout=theirs if streams != "err" else subprocess.PIPE,
        stderr=theirs if streams != "out" else subprocess.PIPE,
        env=environment(TERM="xterm-256color", **(env or {})),
    )
    os.write(ours, typed.encode())
    os.close(theirs)
    seen = _read_all(ours)
    elsewhere = b"".join(piece or b"" for piece in process.communicate(timeout=DEADLINE_SECONDS))
    return Said(process.returncode, seen.decode(), elsewhere.decode())


def _read_all(terminal: int) -> bytes:
    found = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux tells so that nobody has the other end any more
            piece = b""
        if not piece:
            os.close(terminal)
            return found
        found += piece


def plain(text: str) -> str:
    """What a person sees of a text on a terminal: without escapes."""
    return _ESCAPE.sub("", text).replace("\r\n", "\n")
