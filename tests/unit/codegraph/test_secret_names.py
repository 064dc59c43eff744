"""Secrets in the names of files, classes and branches do not reach the code index."""

from __future__ import annotations

import subprocess

import smara

TOKEN = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"


def test_names_of_files_classes_and_branches_are_stored_without_secrets(tmp_path, monkeypatch):
    root = tmp_path / "app"
    root.mkdir()
    monkeypatch.chdir(root)
    (root / "pay.py").write_text(f"class C_{TOKEN}:\n    pass\n\n\nx = C_{TOKEN}()\n")
    (root / f"{TOKEN}.py").write_text("y = 1\n")
    for command in (["init", "-q"], ["checkout", "-q", "-b", f"feat/{TOKEN}"]):
        subprocess.run(["git", *command], check=True)
    with smara.open(tmp_path / "s.db", embedder="off") as memory:
        memory.code.index()
    for file in tmp_path.glob("s.db*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes(), file.name
