"""One description out of the four texts of an issue, and the four back out of the one.

beads keeps description, design, acceptance criteria and notes apart. Whoever works on a
task needs all of them, and search should find their words; so they stand in the
description, each under a heading. Which headings were put there is remembered with the
task, and an export takes the text apart at them, also after it was edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

HEADINGS: Mapping[str, str] = {
    "design": "## Design", "acceptance_criteria": "## Acceptance criteria", "notes": "## Notes",
}  # fmt: skip


def sections_of(record: Mapping[str, Any]) -> list[str]:
    """Which of the other texts an issue has."""
    return [name for name in HEADINGS if isinstance(record.get(name), str) and record[name]]


def fold(record: Mapping[str, Any]) -> str:
    """All texts of an issue as one."""
    description = record.get("description")
    texts = [description] if isinstance(description, str) and description else []
    return "\n\n".join(
        [*texts, *(f"{HEADINGS[name]}\n\n{record[name]}" for name in sections_of(record))]
    )


def unfold(text: str, sections: Iterable[str]) -> dict[str, str]:
    """The texts of an issue out of one, at the headings of these sections; empty ones are left out.

    The last of equal headings counts: it is ours, whatever the text before it holds.
    """
    found: dict[str, str] = {}
    for name in reversed([name for name in HEADINGS if name in set(sections)]):
        # A text that begins with a heading is one without a description.
        before, heading, after = f"\n\n{text}".rpartition(f"\n\n{HEADINGS[name]}\n\n")
        if heading:
            found[name], text = after, before.removeprefix("\n\n")
    return {name: value for name, value in {"description": text, **found}.items() if value}
