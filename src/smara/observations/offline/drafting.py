"""How a note is made here: its label, its words, where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Any, Literal

from smara.core.days import days_meant, moment_in
from smara.observations.models import AgentMode, Category, Flavor, Note, Priority
from smara.observations.offline.mentions import files_in
from smara.observations.offline.paths import Paths
from smara.observations.offline.wording import clip, one_line

Input = Literal["user", "assistant", "tool", "web"]
"""Whose words a note is made of. Trust is decided elsewhere, by these."""

LONGEST_TEXT = 900
LONGEST_DETAIL = 520
MOST_DETAILS = 16


@dataclass(frozen=True, slots=True)
class Scene:
    """What every writer of notes needs to know about the request."""

    zone: tzinfo
    paths: Paths
    mode: AgentMode = "default"
    flavor: Flavor = "coding"
    wanted: frozenset[str] = field(default_factory=frozenset)
    """Words of the user's own instructions; what speaks of them is kept."""

    @property
    def is_coding(self) -> bool:
        return self.flavor == "coding"


def make_note(
    scene: Scene,
    priority: Priority,
    category: Category,
    text: str,
    *,
    at: int,
    seqs: Iterable[int],
    inputs: Iterable[Input],
    details: Sequence[str] = (),
    files: Sequence[str] = (),
    lines: Sequence[int] = (),
    is_dated: bool = False,
    **facts: Any,
) -> Note:
    """A note of bounded size. ``is_dated`` looks for the days that its words mean."""
    kept = tuple(
        dict.fromkeys(
            line for detail in details[:MOST_DETAILS] if (line := clip(detail, LONGEST_DETAIL))
        )
    )
    numbers = sorted(set(seqs))
    specific: dict[str, Any] = {"inputs": sorted(set(inputs))}
    specific.update({name: value for name, value in facts.items() if value})
    return Note(
        priority,
        category,
        clip(text, LONGEST_TEXT),
        said_at=at,
        refers_to=refers_to(scene, text, at) if is_dated else None,
        details=kept,
        files=tuple(dict.fromkeys(files)),
        lines=tuple(dict.fromkeys(lines)),
        first_seq=numbers[0] if numbers else None,
        last_seq=numbers[-1] if numbers else None,
        mode_specific=specific,
    )


def refers_to(scene: Scene, text: str, at: int) -> str | None:
    """The days that a text means, seen from when and where it was said."""
    days = days_meant(text, moment_in(scene.zone, at).date())
    return days.render() if days else None


def mentioned(text: str, paths: Paths) -> Mapping[str, Any]:
    """The files and lines in a text, as arguments for a note."""
    files, lines = files_in(text)
    return {"files": tuple(map(paths.short, files)), "lines": lines}


def joined(pieces: Iterable[str], characters: int, separator: str = "; ") -> str:
    """As many of the pieces as fit, and "…" for the rest."""
    kept: list[str] = []
    used = 0
    for piece in pieces:
        line = one_line(piece)
        used += len(line) + len(separator)
        if kept and used > characters:
            return separator.join([*kept, "…"])
        kept.append(clip(line, characters))
    return separator.join(kept)
