"""Where agents keep their own notes about a repository.

Claude and Gemini have a folder for each project, Codex one for all of them, Goose a folder inside
the repository. Cursor and Copilot keep theirs on a server, Windsurf in a form of its own: there are
no files to read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from smara.adapters.decoding import mapping_in, text_in
from smara.adapters.finding import Here
from smara.adapters.gemini import project_root_of
from smara.adapters.opencode.tree import read_object
from smara.core.repository import find_repository
from smara.environment import home_of

Vendor = Literal["claude", "codex", "gemini", "goose"]
VENDORS: tuple[Vendor, ...] = get_args(Vendor)
MOST_FILES = 2_000
_LONGEST_SLUG = 200
_SETTINGS = ("settings.local.json", "settings.json")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of notes, and which files in it are notes."""

    vendor: Vendor
    place: str
    files: tuple[str, ...]
    is_whole: bool = True
    """Whether a note of it that is not there any more is gone."""


def find_folders(vendor: Vendor, here: Here) -> list[Folder]:
    """The notes of one agent about a repository; none where it has none."""
    return [each for each in _FINDERS[vendor](here) if each.files]


def _claude(here: Here) -> Iterator[Folder]:
    home = Path(home_of("CLAUDE_CONFIG_DIR", ".claude"))
    named = _named_by_claude(here, home)
    roots = [here.root, *_main_worktree(here.root)]
    folders = [home / "projects" / slug(root) / "memory" for root in dict.fromkeys(roots)]
    for folder in dict.fromkeys([*named, *folders]):
        yield Folder("claude", _real(folder), _markdown(folder))


def slug(root: str) -> str:
    """The name that Claude gives to the folder of a project.

    >>> slug("/home/me/my_app.v2")
    '-home-me-my-app-v2'
    """
    return re.sub(r"[^A-Za-z0-9]", "-", root)[:_LONGEST_SLUG]


def _named_by_claude(here: Here, home: Path) -> Iterator[Path]:
    """The folder that the settings name instead, if they do."""
    for folder in (Path(here.root, ".claude"), home):
        for name in _SETTINGS:
            told = text_in(mapping_in(read_object(folder / name)).get("autoMemoryDirectory"))
            if told.startswith(("/", "~/")):
                yield Path(os.path.expanduser(told))


def _main_worktree(root: str) -> list[str]:
    """The first working folder of a repository: Claude keeps the notes of all its worktrees
    there.
    """
    repository = find_repository(root)
    if repository is None or os.path.basename(repository.common_dir) != ".git":
        return []
    return [os.path.dirname(repository.common_dir)]


def _codex(here: Here) -> Iterator[Folder]:
    home = Path(home_of("CODEX_HOME", ".codex")) / "memories"
    notes = home / "extensions" / "ad_hoc" / "notes"
    # The summary and the raw notes say the same in other words; recaps of sessions are what
    # MEMORY.md is made from.
    handbook = home / "MEMORY.md"
    yield Folder(
        "codex", _real(home), (*([str(handbook)] if handbook.is_file() else ()), *_markdown(notes))
    )


def _gemini(here: Here) -> Iterator[Folder]:
    home = Path(home_of("GEMINI_CONFIG_DIR", ".gemini"))
    try:
        folders = sorted(each for each in (home / "tmp").glob("*/memory") if each.is_dir())
    except OSError:
        folders = []
    candidates = here.candidates()
    for folder in folders:
        if here.has(project_root_of(folder / "MEMORY.md", candidates)):
            yield Folder("gemini", _real(folder), _markdown(folder))
    everywhere = home / "GEMINI.md"
    if everywhere.is_file():
        yield Folder("gemini", _real(home), (str(everywhere),), is_whole=False)


def _goose(here: Here) -> Iterator[Folder]:
    folder = Path(here.root, ".goose", "memory")
    yield Folder("goose", _real(folder), _sorted(folder.glob("*.txt")))


_FINDERS: dict[Vendor, Callable[[Here], Iterator[Folder]]] = {
    "claude": _claude, "codex": _codex, "gemini": _gemini, "goose": _goose,
}  # fmt: skip


def _markdown(folder: Path) -> tuple[str, ...]:
    return _sorted(folder.rglob("*.md"))


def _sorted(paths: Iterable[Path]) -> tuple[str, ...]:
    try:
        found = sorted(str(path) for path in paths if path.is_file() and not path.is_symlink())
    except OSError:
        return ()
    return tuple(found[:MOST_FILES])


def _real(path: Path) -> str:
    return Path(os.path.realpath(path)).as_posix()
