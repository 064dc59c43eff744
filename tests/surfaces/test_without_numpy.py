"""Short commands do not load numpy, which takes longer to load than they take to answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

import smara

PROGRAM = """
import sys
from smara.surfaces.cli import main
try:
    main()
finally:
    print("numpy" in sys.modules, file=sys.stderr)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file, and a store with messages and their vectors."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"DB": "memory.db", "HOME": "home", "PROJECT": "p"}.items():
        monkeypatch.setenv(f"SMARA_{name}", str(tmp_path / value) if value != "p" else value)
    (tmp_path / "uploader.py").write_text("RETRIES = 3\n", encoding="utf-8")
    with smara.open(tmp_path / "memory.db", project="p", embed_in_background=False) as memory:
        for text in ("the uploader retries three times", "a red bicycle", "the login at night"):
            memory.messages.add(thread_id="t", role="user", content=text)
        assert memory.embeddings.embed_pending().embedded == 3
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["search", "how often does the upload repeat?"],
        ["remember", "The uploader retries three times", "--file", "uploader.py"],
        ["why", "uploader.py"],
        ["context", "preview"],
        ["status"],
        ["doctor"],
    ],
    ids=lambda words: words[0],
)
def test_a_short_command_does_not_load_numpy(place, words):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    assert done.stderr.splitlines()[-1:] == ["False"]
