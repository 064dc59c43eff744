"""Trees made to hurt: nothing outside the root is read, nothing hangs, and everything that is left
out is counted.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

import smara
from smara.codegraph.index import files
from tests.contract.code_place import picture
from tests.faults.hostile_trees import CANARY, Hostile
from tests.faults.sizes import SEED, count


@pytest.fixture
def outside(tmp_path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.py").write_text(f"def {CANARY}():\n    return '{CANARY}'\n")
    return folder


@pytest.fixture
def memory(tmp_path):
    with smara.open(
        tmp_path / "smara.db", durability="normal", token_model="estimate", embedder="off"
    ) as memory:
        yield memory


def indexed(memory, tree: Hostile) -> tuple[str, int]:
    """All that the index says of a tree, and how many of its leaves it speaks of."""
    report = memory.code.index(tree.root, workers=0)
    assert report.is_complete
    return repr(picture(memory, tree.root)), report.files + sum(report.skipped.values())


def test_hostile_trees_do_no_harm(memory, outside, tmp_path):
    rng = random.Random(SEED)
    for number in range(count(60, 10_000)):
        tree = Hostile(rng, Path(os.path.realpath(tmp_path)) / f"tree{number}", outside)
        told, leaves = indexed(memory, tree)
        assert CANARY not in told, f"tree {number}, SMARA_SEED={SEED}"
        assert leaves == tree.leaves + tree.too_deep, f"tree {number}, SMARA_SEED={SEED}"
        memory.code.forget(tree.root)
        shutil.rmtree(tree.root)


def test_hostile_trees_are_the_same_to_workers(memory, outside, tmp_path):
    rng = random.Random(SEED)
    for number in range(count(2, 200)):
        tree = Hostile(rng, Path(os.path.realpath(tmp_path)) / f"tree{number}", outside)
        told, _ = indexed(memory, tree)
        other = memory.in_project(f"workers{number}")
        other.code.index(tree.root, workers=2)
        assert repr(picture(other, tree.root)) == told, f"tree {number}, SMARA_SEED={SEED}"
        memory.code.forget(tree.root)


def test_a_reader_that_follows_links_would_be_caught(memory, outside, tmp_path, monkeypatch):
    followed = os.stat

    def looked_at(entry):
        found = followed(os.path.join(tmp_path, "tree", entry.name))
        return found.st_mode, files.FileEntry(found.st_size, found.st_mtime_ns)

    monkeypatch.setattr(files, "_looked_at", looked_at)
    monkeypatch.setattr(files, "_HAS_STEPS", False)
    monkeypatch.setattr(files, "_FLAGS", os.O_RDONLY)
    monkeypatch.setattr(
        files.TreeReader,
        "_inside",
        lambda self, path, is_wanted: os.path.join(self.root, path),
    )
    root = tmp_path / "tree"
    root.mkdir()
    os.symlink(outside / "secret.py", root / "a.py")
    memory.code.index(root, workers=0)
    assert CANARY in repr(picture(memory, Path(os.path.realpath(root))))
