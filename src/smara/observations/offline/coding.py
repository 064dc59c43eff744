"""Code that was written, as one note for a stretch of work: each file with what it now defines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smara.observations.models import Note
from smara.observations.offline import phrases
from smara.observations.offline.changes import FileChange
from smara.observations.offline.definitions import Piece, defined_names, definitions
from smara.observations.offline.drafting import Scene, joined, make_note
from smara.observations.offline.exchanges import Call
from smara.observations.offline.paths import common_folder
from smara.observations.offline.wording import clip

_FOR_A_NEW_FILE, _FOR_A_CHANGED_FILE, _WHEN_MANY = 560, 400, 300
_MANY = 7
_TELLS = re.compile(r"[^\W\d_]{3}")
_WEAK = re.compile(
    r"\s*(?:end|else|return|break|[)}\]>;,]+|</?\w{1,12}>|#.{0,80}|//.{0,80}|\"\"\"|'''"
    r"|\*.{0,80})[;,)]*\s*"
)


@dataclass(slots=True)
class _File:
    """All that happened to one file in a stretch."""

    path: str
    verb: str = phrases.EDITED
    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    around: list[str] = field(default_factory=list)
    quoted: list[str] = field(default_factory=list)
    """Lines of changes that define nothing."""


def code_note(scene: Scene, changes: Sequence[tuple[FileChange, Call]]) -> Note | None:
    """What a stretch of work wrote, or None when it wrote nothing."""
    files = _by_file(scene, changes)
    if not files:
        return None
    calls = [call for _, call in changes]
    gone = [name for file in files for name in _gone(file)]
    facts: dict[str, Any] = {}
    if scene.mode == "refactoring":
        facts = {"filesAffected": [file.path for file in files], "breaking": gone[:12]}
    text, details = _written(files)
    return make_note(
        scene,
        "medium",
        "code",
        text=text,
        at=calls[0].at,
        details=details,
        inputs=["assistant"],
        seqs=[seq for call in calls for seq in (call.seq, call.last_seq)],
        files=[file.path for file in files],
        **facts,
    )


def _by_file(scene: Scene, changes: Sequence[tuple[FileChange, Call]]) -> list[_File]:
    files: dict[str, _File] = {}
    for change, _ in changes:
        path = scene.paths.short(change.path)
        file = files.setdefault(path, _File(path))
        if change.verb != "changed":
            file.verb = phrases.CREATED if change.verb == "created" else phrases.DELETED
        file.added += change.added
        file.removed += change.removed
        file.around += change.around
        if change.added and not definitions(change.added, path).told():
            file.quoted += _telling_lines(change.added)[:2]
    return list(files.values())


def _written(files: Sequence[_File]) -> tuple[str, list[str]]:
    if len(files) == 1:
        told = told_of(files[0])
        return f"{files[0].verb} {files[0].path}" + (f": {told}" if told else ""), []
    folder = common_folder([file.path for file in files])
    details = [_line(file, folder, len(files) >= _MANY) for file in files]
    return (f"{phrases.CODE_IN} {folder}" if folder else phrases.CODE), details


def _line(file: _File, folder: str, is_one_of_many: bool) -> str:
    told = told_of(file, _WHEN_MANY if is_one_of_many else None)
    verb = "" if file.verb == phrases.EDITED else f"{file.verb} "
    return f"{verb}{file.path.removeprefix(folder)}" + (f": {told}" if told else "")


def told_of(file: _File, characters: int | None = None) -> str:
    """What a file defines now; when nothing new is defined, where it was changed and the words that
    came.
    """
    room = characters or (_FOR_A_NEW_FILE if file.verb == phrases.CREATED else _FOR_A_CHANGED_FILE)
    found = definitions(file.added, file.path)
    defined = found.told()
    pieces = [_fitted(defined, room - 100) if defined else joined(_quoted(file), room)]
    if defined and len(pieces[0]) < room // 2:
        pieces += [clip(line, 90) for line in file.quoted[:2]]
    uses = found.imports if defined else ()
    for label, names in (
        (phrases.REMOVED, _gone(file)),
        (phrases.IMPORTS, uses),
        (phrases.HANDLES, found.failures),
    ):
        if names:
            pieces.append(f"{label} {joined(dict.fromkeys(names), 100, ', ')}")
    return joined(filter(None, pieces), room + 120)


def _fitted(pieces: list[Piece], characters: int) -> str:
    """Signatures as long as there is room, then only the names of the rest."""
    kept: list[str] = []
    for place, piece in enumerate(pieces):
        if kept and sum(map(len, kept)) + len(piece.text) > characters * 2 // 3:
            rest = joined(
                dict.fromkeys(each.name for each in pieces[place:]), characters // 2, ", "
            )
            return "; ".join([*kept, rest])
        kept.append(clip(piece.text, characters))
    return "; ".join(kept)


def _quoted(file: _File) -> list[str]:
    """The first lines that came and say something, behind the definition that they stand under."""
    if not file.added and file.removed:
        return [f"{phrases.REMOVED} {clip(line, 90)}" for line in file.removed[:2]]
    under = list(defined_names(file.around).values())[:1]
    return [clip(line, 90) for line in [*under, *_telling_lines(file.added)[:3]]]


def _telling_lines(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if _TELLS.search(line) and not _WEAK.fullmatch(line)]


def _gone(file: _File) -> list[str]:
    """Names that were defined and are no more."""
    if not file.removed:
        return []
    kept = "\n".join([*file.added, *file.around])
    return [name for name in defined_names(file.removed) if name not in kept][:8]
