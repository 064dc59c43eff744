"""The watch over a tree: every save is followed, a root that vanishes is waited for, and it ends
when told.
"""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from queue import SimpleQueue

import pytest

import smara
from smara.codegraph.index.update import is_worth_a_look

LONG = 60.0
"""Seconds after which something that did not come is not coming."""


@pytest.fixture
def root(tmp_path):
    folder = Path(os.path.realpath(tmp_path)) / "tree"
    folder.mkdir()
    (folder / "a.py").write_text("def one():\n    return 1\n")
    return folder


@pytest.fixture
def watching(tmp_path, root):
    """A watch in a thread of its own; a queue of what it reports, and the memory it writes to."""
    told: SimpleQueue = SimpleQueue()
    stop = threading.Event()
    with smara.open(tmp_path / "smara.db", token_model="estimate", embedder="off") as memory:
        thread = threading.Thread(target=memory.code.watch, args=(stop, root, told.put))
        thread.start()
        assert told.get(timeout=LONG).files == 1
        yield memory, told
        stop.set()
        thread.join(LONG)
        assert not thread.is_alive()


def names(memory, root) -> set[str]:
    store = memory.code.store
    with store.database.read() as session:
        rows = session.all("SELECT qualname FROM code_nodes WHERE kind <> 'file'")
        return {row[0] for row in rows}


def test_every_save_is_followed(watching, root):
    memory, told = watching
    # The watch begins a moment after the first index; a save before that is seen by the next one.
    (root / "b.py").write_text("def two():\n    return 2\n")
    while "two" not in names(memory, root):
        told.get(timeout=LONG)
    (root / "a.py").unlink()
    while "one" in names(memory, root):
        told.get(timeout=LONG)


def test_a_root_that_vanishes_is_waited_for(watching, root):
    memory, told = watching
    shutil.rmtree(root)
    root.mkdir()
    (root / "c.py").write_text("def three():\n    return 3\n")
    while names(memory, root) != {"three"}:
        told.get(timeout=LONG)


@pytest.mark.parametrize(
    ("path", "is_worth"),
    [
        ("src/a.py", True), ("node_modules/x/a.js", False), (".git/index", False),
        ("a/__pycache__/b.pyc", False),
        (".gitignore", True),
    ],
)  # fmt: skip
def test_what_machines_make_wakes_nobody(path, is_worth):
    assert is_worth_a_look("/root", f"/root/{path}") is is_worth
