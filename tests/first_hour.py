"""Play the first hour of a newcomer and record it: ``python -m tests.first_hour``.

A wheel is built and installed into an environment of its own. In each of three public repositories
whose agents were recorded, the commands of the README are typed on a terminal of 80 columns, by a
user who has nothing but a home with those sessions in it. ``SMARA_EVAL_REPOS`` names the folder of
bare repositories and ``SMARA_EVAL_DATA`` that of transcripts. Writes ``docs/first-hour.md`` and its
pictures; of a long answer the first lines, and no names of authors.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from evals.transcripts import _of_branch, _of_folder
from tests.surfaces.shell import on_terminal, plain
from tests.terminal_picture import draw

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "first-hour.md"
REPOSITORIES = (
    ("spotter", "marot/spotter", "MIT", ""),
    ("context-evaluator", "PackmindHub/context-evaluator", "Apache-2.0", "branch"),
    ("git-sync", "entireio/git-sync", "MIT", "branch"),
)
MOST_LINES, MOST_IN_PICTURE = 18, 42
MOST_SESSIONS = 10


@dataclass
class Played:
    """One repository: what was typed, what was seen, and what it took."""

    name: str
    source: str
    license: str
    files: int = 0
    commits: int = 0
    sessions: int = 0
    transcripts: int = 0
    store: int = 0
    steps: list[tuple[str, str, float]] = field(default_factory=list)


def main() -> None:
    """Play it and write the page."""
    with tempfile.TemporaryDirectory(prefix="smara-hour-") as name:
        folder = Path(name)
        install = installed(folder)
        played = [play(folder, *each) for each in REPOSITORIES]
        PAGE.write_text(page(install, played), encoding="utf-8")


def installed(folder: Path) -> dict[str, float]:
    """Install the wheel as a newcomer does; return seconds, packages and bytes."""
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "dist")]
    subprocess.run([*pip, str(ROOT)], check=True)
    (wheel,) = (folder / "dist").glob("smara-*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    before = _size(folder / "venv")
    started = time.monotonic()
    program = folder / "venv" / "bin" / "pip"
    subprocess.run([program, "install", "-q", str(wheel)], check=True)
    seconds = time.monotonic() - started
    listed = subprocess.run([program, "list", "--format", "json"], check=True, capture_output=True)
    names = {each["name"] for each in json.loads(listed.stdout)} - {"pip", "setuptools"}
    return {
        "wheel": wheel.stat().st_size,
        "seconds": seconds,
        "packages": len(names),
        "bytes": _size(folder / "venv") - before,
    }


def play(folder: Path, name: str, source: str, license: str, kept: str) -> Played:
    """Type the commands of the first hour in one repository."""
    played = Played(name, source, license)
    home = folder / f"home-{name}"
    clone = home / name
    home.mkdir()
    bare = Path(os.environ["SMARA_EVAL_REPOS"]) / source.replace("/", "+") / "repo"
    subprocess.run(["git", "clone", "-q", "--no-checkout", str(bare), str(clone)], check=True)
    _git(clone, "remote", "set-url", "origin", f"https://github.com/{source}")
    _git(clone, "read-tree", "HEAD")
    listed = _git(clone, "ls-tree", "-r", "--format=%(objectname) %(path)", "HEAD")
    paths = dict(line.split(" ", 1) for line in listed.splitlines())
    check = ["git", "-C", str(clone), "cat-file", "--batch-check"]
    known = subprocess.run(check, input="\n".join(paths).encode(), capture_output=True, check=True)
    for line in known.stdout.decode().splitlines():
        if line.endswith(" missing"):  # a copy may lack large files
            _git(clone, "update-index", "--force-remove", paths[line.split()[0]])
    _git(clone, "checkout-index", "-a")
    played.files = len(_git(clone, "ls-files").splitlines())
    played.commits = int(_git(clone, "rev-list", "--count", "HEAD"))
    data = Path(os.environ["SMARA_EVAL_DATA"])
    every = _of_branch(bare) if kept else _of_folder(data)
    sessions = [(session, b"".join(_ended(lines))) for session, lines in every][-MOST_SESSIONS:]
    place = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(clone))
    place.mkdir(parents=True)
    for session, lines in sessions:
        text = _moved(lines, clone)
        (place / f"{session.rpartition('/')[2]}.jsonl").write_bytes(text)
        played.sessions += 1
        played.transcripts += len(text)
    env = {
        "HOME": str(home),
        "SMARA_HOME": str(home / ".smara"),
        "PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}",
        "TZ": "UTC",
        "PYTHONWARNINGS": "",
    }
    target = _git(clone, "log", "--format=", "--name-only", "-n", "200").splitlines()
    present = (each for each in target if each and (clone / each).is_file())
    usual = Counter(each for each in present if re.search(r"\.(py|ts|tsx|go|ex|js)$", each))
    busiest = usual.most_common(1)[0][0]
    for words in (
        ["init", "--yes"],
        [],
        ["why", busiest],
        ["search", "why did the tests fail", "--limit", "2"],
        ["memories", "review"],
        ["context", "preview"],
        ["setup", "claude", "--remove", "--yes"],
    ):
        started = time.monotonic()
        python = str(folder / "venv/bin/python")
        seen = on_terminal(*words, python=python, cwd=str(clone), env=env).out
        seconds = time.monotonic() - started
        text = seen.replace(str(clone), f"~/{name}").replace(str(home), "~")
        played.steps.append((shlex.join(["smara", *words]), text, seconds))
    played.store = _size(home / ".smara")
    return played


def _git(clone: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(clone), *words], check=True, capture_output=True)
    return done.stdout.decode("utf-8", "replace").strip()


def _ended(lines: Iterable[bytes]) -> Iterable[bytes]:
    return (line.rstrip(b"\n") + b"\n" for line in lines)


def _moved(text: bytes, clone: Path) -> bytes:
    """Return a transcript as if the session had worked in the clone."""
    found = Counter(re.findall(rb'"cwd": ?"([^"]+)"', text)).most_common(1)
    return text.replace(found[0][0], str(clone).encode()) if found else text


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _shown(text: str, most: int = MOST_LINES) -> str:
    """Return the last state of what a terminal showed, without authors, and not too long."""
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in plain(text).split("\n")]
    lines = [re.sub(r"^( +by +).*", r"\1…", line) for line in lines if "━━━" not in line]
    if any(line.startswith("@@ ") for line in lines):
        own = [line for line in lines if line[:1] not in ("-", "+", "@", " ", "")]
        lines = [f"(a diff of {len(lines) - len(own)} lines)", "", *own]
    while lines and not lines[-1]:
        lines.pop()
    if len(lines) > most:
        lines = [*lines[:most], f"… {len(lines) - most} more lines"]
    return "\n".join(lines).strip("\n")


def page(install: dict[str, float], played: list[Played]) -> str:
    """Return the page, and draw a picture of the first command in each repository."""
    parts = [
        "# The first hour, recorded\n\nWritten by `python -m tests.first_hour`: a wheel in a fresh"
        " environment, three public repositories and the sessions of the agents that worked on"
        f" them (at most {MOST_SESSIONS} each), a terminal of 80 columns. Nothing was edited but"
        " the names of authors, the ends of long answers and a diff. The machine has two cores and"
        " was shared with others; read the seconds as an upper bound.\n\n"
        "| installed | |\n|---|---|\n"
        f"| the wheel | {install['wheel'] / 1e6:.1f} MB |\n"
        f"| `pip install` | {install['seconds']:.0f} s, {install['packages']:.0f} packages,"
        f" {install['bytes'] / 1e6:.0f} MB |\n\n"
        "| repository | license | files | commits | sessions | transcripts | `smara init` |"
        " store afterwards |\n|---|---|---|---|---|---|---|---|\n"
    ]
    for each in played:
        parts.append(
            f"| [{each.source}](https://github.com/{each.source}) | {each.license} | {each.files}"
            f" | {each.commits} | {each.sessions} | {each.transcripts / 1e6:.1f} MB"
            f" | {each.steps[0][2]:.0f} s | {each.store / 1e6:.1f} MB |\n"
        )
    for each in played:
        parts.append(f"\n## {each.name}\n")
        for number, (command, text, seconds) in enumerate(each.steps):
            shown = _shown(text, MOST_LINES if number else MOST_IN_PICTURE)
            if number == 0:
                picture = ROOT / "docs" / "images" / f"first-hour-{each.name}.svg"
                picture.write_text(draw(f"$ {command}\n{shown}", title=each.name), encoding="utf-8")
                parts.append(
                    f"\n`{command}` took {seconds:.1f} s:\n\n![What {command} printed in"
                    f" {each.name}](images/{picture.name})\n"
                )
                continue
            fence = "````" if "```" in shown else "```"
            parts.append(f"\n`{command}`, {seconds:.1f} s:\n\n{fence}text\n{shown}\n{fence}\n")
    return "".join(parts)


if __name__ == "__main__":
    main()
