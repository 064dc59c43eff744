"""Closed tasks decay: what is shown of them gets short, and nothing is lost.

Level 1 keeps the summary, the first sentence and the names; level 2 a single line. The
text as it was written stays in ``original_content`` and in the index.
"""

from __future__ import annotations

from smara.core.extract import distinct, first_sentence, fit, names_in
from smara.tasks.models import Task

WORTH_CHARACTERS = {1: 400, 2: 200}
"""A shorter description is left as it is."""
_NAMES_CHARACTERS = 300
_LINE = 160


def condensed(task: Task, level: int) -> str:
    """What is shown of a closed task at a level; always shorter than what it stands for."""
    text = task.full_description
    said = task.summary or first_sentence(text)
    if level >= 2:
        return _cut(said, _LINE)
    lines = [_cut(said, 2 * _LINE)]
    opening = first_sentence(text)
    if task.summary and opening:
        lines.append(_cut(opening, _LINE))
    names = fit(distinct(names_in(text[:6_000])), _NAMES_CHARACTERS)
    if names:
        lines.append(f"Names: {', '.join(names)}.")
    return _cut("\n".join(lines), max(WORTH_CHARACTERS[2], len(text) * 6 // 10))


def _cut(text: str, longest: int) -> str:
    line = text.strip()
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
