"""Small files made by hand, and what reading them gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write lines to a file: objects as JSON, text and bytes as they are."""

    def write_lines(*lines: Any, name: str = "file.jsonl", end: bytes = b"\n") -> Path:
        path = tmp_path / name
        path.write_bytes(b"\n".join(_encode(line) for line in lines) + end)
        return path

    return write_lines


def _encode(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()
