"""Read the plans that a person approved.

A host lets an agent write a plan, and asks the person before it is carried out. What was approved
is settled between both: the title says what, and the first words below it say why. The rest are
steps, which the code shows since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smara.core.startup.regex import re, regex
from smara.decisions.assemble import Draft, Quotation
from smara.decisions.utterances import SpokenTurn, content_terms, sentences

_HEADING = regex(r"\s{0,3}#{1,6}\s+(.+?)[\s#]*$")
_CALLED = regex(r"(?:implementation |design )?plan\s*[:–—-]\s*", re.IGNORECASE)
_FENCE = regex(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_BOLD = regex(r"\*\*|__(?=\w)|(?<=\w)__")
_PATH = regex(r"(?<![\w/.-])(?:[\w@.-]+/)*[\w@-][\w@.-]*\.[A-Za-z]\w{0,5}(?![\w/])")
_ITEM = regex(r"\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_LONGEST_TITLE, _LONGEST_REASON, _LEAST_WORDS = 160, 420, 5
_MOST_CHARACTERS, _MOST_PATHS = 60_000, 40
_LEAST_TERMS = 2


class Plan(NamedTuple):
    """A plan in its own words: title, reason, headings, files."""

    title: str
    reason: tuple[str, ...]
    headings: tuple[str, ...]
    paths: tuple[str, ...]


def read_plan(text: str) -> Plan | None:
    """Return the plan of a Markdown text; None without a telling title.

    >>> plan = read_plan("# Plan: Cap the fee\\n\\n## Context\\n\\nThe law caps it at 40 euros.")
    >>> plan.title, plan.reason
    ('Cap the fee', ('The law caps it at 40 euros.',))
    """
    text = text[:_MOST_CHARACTERS]
    prose = _BOLD.sub("", _FENCE.sub("", text))
    lines = prose.splitlines()
    headings = [
        (number, match[1]) for number, line in enumerate(lines) if (match := _HEADING.match(line))
    ]
    if not headings:
        return None
    first, title = headings[0]
    title = _CALLED.sub("", title, count=1).strip()
    if len(content_terms(title)) < _LEAST_TERMS:
        return None
    # The words right below the title, or those of its first section.
    ends = [number for number, _ in headings[1:]] + [len(lines), len(lines)]
    reason = _telling(lines[first + 1 : ends[0]]) or _telling(lines[ends[0] + 1 : ends[1]])
    return Plan(
        title[:_LONGEST_TITLE],
        tuple(reason),
        tuple(words for _, words in headings[1:]),
        tuple(dict.fromkeys(_PATH.findall(text)))[:_MOST_PATHS],
    )


def _telling(lines: Sequence[str]) -> list[str]:
    """Return the first sentences of a section, as many as are short together.

    A list belongs to the sentence that it ends; by itself it is steps.
    """
    prose: list[str] = []
    for line in filter(str.strip, lines):
        item = _ITEM.match(line)
        if item is None and not line.startswith("|"):
            prose.append(line.strip())
        elif item is not None and prose and prose[-1].endswith((":", "：", ";")):
            prose[-1] += f" {line[item.end() :].strip().rstrip('.;')};"
    found: list[str] = []
    room = _LONGEST_REASON
    for sentence in sentences("\n".join(prose)):
        room -= len(sentence)
        if room < 0 or len(sentence.split()) < _LEAST_WORDS:
            break
        found.append(sentence.rstrip(";"))
    return found


def draft_plans(turns: Sequence[SpokenTurn]) -> list[Draft]:
    """Return the plans of a session that a person approved, as decisions."""
    found = []
    for number, turn in enumerate(turns):
        plan = read_plan(turn.plan) if turn.plan else None
        if plan is None:
            continue
        changed = [path for each in turns[number + 1 :] for path in each.files]
        words = " ".join((plan.title, *plan.reason))
        found.append(
            Draft(
                tuple(Quotation(number, text, 1.0) for text in (plan.title, *plan.reason)),
                None,
                (),
                about=" ".join((words, *plan.headings)),
                spoken=words,
                score=1.0,
                is_wish=False,
                is_personal=False,
                files=tuple(sorted(plan.paths, key=lambda path: not _is_among(path, changed))),
                is_plan=True,
            )
        )
    return found


def _is_among(path: str, paths: Sequence[str]) -> bool:
    return any(f"/{each}".replace("\\", "/").endswith(f"/{path}") for each in paths)
