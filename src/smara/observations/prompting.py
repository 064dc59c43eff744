"""The requests to a model: instructions that stay the same, and material that is fenced.

The system text depends on settings alone, so that the vendor's cache of prompts hits; what
differs from call to call (the mark, the material, a reminder) is in the request. Both are
put together from the Markdown files in ``prompts/``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from smara.core.delimiters import neutralized
from smara.core.prompts import Prompt, load_prompt
from smara.core.tokens import estimate_o200k
from smara.errors import BadReplyError
from smara.observations.fields import describe_fields
from smara.observations.models import AgentMode, Flavor, ObserveRequest, ReflectRequest
from smara.observations.render import render
from smara.observations.transcript import Limits, draw_mark, newest_known, render_messages

PROMPTS = Path(__file__).parent / "prompts"
MOST_LEVEL = 4
_ROLES: dict[Flavor, str] = {"coding": "an agent that writes code", "general": "an assistant"}


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is said to a model. ``own_words`` are ours alone: a reply that repeats them is an
    echo.
    """

    system: str
    prompt: str
    own_words: str
    material_tokens: int


def prompt_named(name: str) -> Prompt:
    """One of this room's prompts."""
    return load_prompt(PROMPTS, name)


def version_of(name: str) -> str:
    """A prompt with its version, as it is stored with what it produced: ``observer@1``."""
    return f"{name}@{prompt_named(name).version}"


def observer_request(
    request: ObserveRequest,
    limits: Limits,
    draw: Callable[[], str] | None = None,
    reminder: str = "",
) -> Spoken:
    """What a model is told and shown to observe messages."""
    own = _observer_system(
        request.flavor,
        request.mode,
        request.wants_suggested_response,
        wants_title=request.wants_title,
    )
    pieces = render_messages(request.messages, request.timezone, limits)
    known = neutralized(newest_known(request.known, limits.known_tokens))
    mark = draw_mark(
        [known, own, request.instructions, *(text for piece in pieces for text in piece)], draw
    )
    history = "\n".join(f"[{mark} {piece.header}]\n{piece.text}" for piece in pieces)
    fenced = prompt_named("known").render({"mark": mark, "known": known}) + "\n\n" if known else ""
    prompt = prompt_named("observe").render(
        {"mark": mark, "known": fenced, "history": history, "reminder": reminder}
    )
    extractors = "".join(
        "\n"
        + prompt_named("extra_extractor").render(
            {
                "name": extractor.name,
                "instruction": extractor.instruction.strip(),
                "schema": json.dumps(extractor.schema, ensure_ascii=False, separators=(",", ":")),
            }
        )
        for extractor in request.extractors
    )
    return Spoken(
        own + extractors + _wishes(request.instructions),
        prompt,
        own,
        material_tokens=round(estimate_o200k(history)),
    )


def reflector_request(
    request: ReflectRequest,
    level: int,
    target_tokens: int,
    draw: Callable[[], str] | None = None,
    reminder: str = "",
) -> Spoken:
    """What a model is told and shown to condense observations at a level of compression."""
    own = _reflector_system(request.flavor)
    lines = neutralized(render(request.notes, request.timezone))
    tokens = round(estimate_o200k(lines))
    mark = draw_mark([lines, own, request.instructions], draw)
    guidance = f" {prompt_named(f'level_{level}').text}" if level else ""
    prompt = prompt_named("reflect").render(
        {
            "mark": mark,
            "lines": lines,
            "tokens": f"{tokens:,}",
            "target": f"{target_tokens:,}",
            "level": guidance,
            "reminder": reminder,
        }
    )
    return Spoken(own + _wishes(request.instructions), prompt, own, material_tokens=tokens)


def reminder_of(error: BadReplyError) -> str:
    """One line about what was wrong with the last reply, for the next attempt."""
    return "\n\n" + prompt_named("retry").render(
        {"reason": str(error.facts.get("hint") or "it could not be read.")}
    )


@lru_cache(maxsize=64)
def _observer_system(
    flavor: Flavor, mode: AgentMode, wants_response: bool, wants_title: bool
) -> str:
    extras = []
    if fields := describe_fields(mode):
        extras.append(prompt_named("extra_fields").render({"fields": fields}))
    if wants_title:
        extras.append(prompt_named("extra_title").text)
    if wants_response:
        extras.append(prompt_named("extra_response").text)
    return (
        prompt_named("observer")
        .render(
            {
                "role": _ROLES[flavor],
                "data": prompt_named("data").text,
                "lines": prompt_named("lines").text,
                "flavor": prompt_named(flavor).text,
                "mode": prompt_named(f"mode_{mode}").text,
                "example": prompt_named(f"example_{flavor}").text,
                "format": prompt_named("format").render({"time": "HH:MM #N"}),
                "extras": "\n".join(extras),
            }
        )
        .strip()
    )


@lru_cache(maxsize=8)
def _reflector_system(flavor: Flavor) -> str:
    return (
        prompt_named("reflector")
        .render(
            {
                "role": _ROLES[flavor],
                "data": prompt_named("data").text,
                "lines": prompt_named("lines").text,
                "flavor": prompt_named(flavor).text,
                "format": prompt_named("format").render({"time": "HH:MM"}),
            }
        )
        .strip()
    )


def _wishes(instructions: str) -> str:
    text = neutralized(instructions).strip()
    return (
        "\n\n" + prompt_named("extra_instructions").render({"instructions": text}) if text else ""
    )
