"""What a user may not read or write, also when the tests are run by root, who may do everything."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEAVE_ROOT = """
import os
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""
"""Put behind everything that is imported, which may lie where others cannot look."""


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="smara-tests-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def run_as_user(loading: str, code: str, *arguments: str) -> str:
    """What a program prints: its imports as the user of the tests, the rest as one who is not
    root.
    """
    done = subprocess.run(
        [sys.executable, "-c", loading + LEAVE_ROOT + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout
