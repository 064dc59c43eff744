"""What other platforms do to files, played by fakes: text mode, and files that are open."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from smara.adapters.host import hook_line, is_own_hook
from smara.adapters.hosts import brief, spool
from smara.adapters.hosts.drain import parse
from smara.adapters.hosts.setup import write_whole
from smara.core.host_table import RULE_FILES
from smara.errors import InvalidInputError
from smara.surfaces.terminal import why

_BINARY = 1 << 29


@pytest.fixture
def text_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a line's end as two bytes, as Windows does where a file is not opened as binary."""
    real_open, real_write, binary = os.open, os.write, set()

    def fake_open(path, flags, mode=0o777, **more):
        number = real_open(path, flags & ~_BINARY, mode, **more)
        (binary.add if flags & _BINARY else binary.discard)(number)
        return number

    def fake_write(number, content):
        data = bytes(content)
        real_write(number, data if number in binary else data.replace(b"\n", b"\r\n"))
        return len(data)

    monkeypatch.setattr(os, "O_BINARY", _BINARY, raising=False)
    monkeypatch.setattr(os, "open", fake_open)
    monkeypatch.setattr(os, "write", fake_write)


def test_an_event_written_on_windows_names_its_folder_as_it_is(text_mode, tmp_path):
    path = spool.put(str(tmp_path), "claude", "Stop", b'{"session_id": "s"}', cwd="C:\\shop")
    with open(path, "rb") as file:
        spooled = parse(path, file.read())
    assert spooled is not None
    assert spooled.cwd == "C:\\shop"


def test_a_rule_file_keeps_its_line_ends_and_is_known_again(tmp_path, monkeypatch):
    """`open` of Windows writes two bytes for a line's end, unless it is told otherwise."""
    real_open = open

    def fake_open(path, mode="r", **more):
        if "w" in mode and "b" not in mode:
            more["newline"] = more.get("newline") or "\r\n"
        return real_open(path, mode, **more)

    place, head = RULE_FILES["cursor"]
    rule = tmp_path / place
    rule.parent.mkdir(parents=True)
    rule.write_bytes(f"{head}\nold\n".encode())
    monkeypatch.setattr(brief, "open", fake_open, raising=False)
    assert brief.refresh_rule(str(tmp_path), "cursor", "new")
    assert brief.has_rule(str(tmp_path), "cursor")
    assert not brief.refresh_rule(str(tmp_path), "cursor", "new")


def test_settings_that_a_program_has_open_are_refused_with_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / "settings.json"
    path.write_text("{}")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "The process cannot access the file")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(InvalidInputError, match="Close what has it open"):
        write_whole(str(path), b"changed")
    assert path.read_text() == "{}"
    assert [each.name for each in tmp_path.iterdir()] == ["settings.json"]


def test_a_file_on_another_drive_is_named_whole(monkeypatch):
    def refuse(*_: object) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr(os.path, "relpath", refuse)
    assert why._inside("/d/cart.py", "/c/shop") == Path("/d/cart.py").as_posix()


def test_a_hook_with_a_path_of_windows_is_quoted_for_every_shell():
    line = hook_line("C:\\tools\\smara.exe", "claude", "Stop")
    assert line == '"C:\\tools\\smara.exe" hook claude Stop'
    assert shlex.split(line)[0] == "C:\\tools\\smara.exe"
    assert is_own_hook({"command": line})
    assert hook_line("smara", "claude", "Stop") == "smara hook claude Stop"
