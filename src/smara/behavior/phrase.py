"""Phrase promoted memories with a model: one call per session.

A model's sentence is used only if it names every file, command and error of the
composed text and contains nothing that looks like an order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, get_args

from smara.behavior.signals.e2e import ObservationType
from smara.core import log
from smara.core.prompts import load_prompt
from smara.errors import SmaraError
from smara.models.chat import ChatReply, ChatRequest

PROMPTS = Path(__file__).parent / "prompts"
_NAMED = re.compile(r"`([^`]+)`")
NOTHING = "none"
"""The class of what says nothing about the program."""
CLASSES = (*get_args(ObservationType), NOTHING)
_LONGEST = 600
_SENTENCES = 3
_TOKENS_EACH = 160
_ORDER = re.compile(
    r"^\s*(?:ignore|disregard|you must|always run|system:|assistant:)|</?\w+>", re.IGNORECASE
)


class ModelAccess(Protocol):
    """The models that can be asked; see ``smara.models``."""

    @property
    def is_offline(self) -> bool: ...
    def complete(self, request: ChatRequest, purpose: str = ...) -> ChatReply: ...


class Worded(NamedTuple):
    """Promoted memories in words, and the model calls made."""

    contents: list[str]
    calls: int
    classes: list[str]
    """Of what was seen in the running program, its class (see ``e2e``); empty for everything
    else.
    """


def worded(
    models: ModelAccess | None,
    contents: Sequence[str],
    quotes: Sequence[Sequence[str]],
    deadline_seconds: float,
    classes: Sequence[str] = (),
) -> Worded:
    """Reword contents by a model, with the classes it sees."""
    given = list(classes) or [""] * len(contents)
    if models is None or models.is_offline or not contents:
        return Worded(list(contents), 0, given)
    items = [
        {
            "number": number,
            "statement": content,
            "evidence": list(quoted)[:3],
            **({"class": class_} if class_ else {}),
        }
        for number, (content, quoted, class_) in enumerate(
            zip(contents, quotes, given, strict=True), 1
        )
    ]
    prompt = load_prompt(PROMPTS, "word")
    request = ChatRequest(
        prompt.render({"items": json.dumps(items, ensure_ascii=False)}),
        deadline_seconds=deadline_seconds,
        max_output_tokens=_TOKENS_EACH * len(items) + 200,
    )
    try:
        reply = models.complete(request, "behavior")
    except SmaraError as error:
        log.warning("behavior.not_worded", error=error.code)
        return Worded(list(contents), 1, given)
    said, seen = parse_reply(reply.text), parse_reply(reply.text, "class")
    better = [_better(content, said.get(number, "")) for number, content in enumerate(contents, 1)]
    allowed = [seen.get(number) in CLASSES for number in range(1, len(given) + 1)]
    kinds = [
        seen[number] if class_ and is_allowed else class_
        for number, (class_, is_allowed) in enumerate(zip(given, allowed, strict=True), 1)
    ]
    return Worded(better, 1, kinds)


def parse_reply(text: str, name: str = "statement") -> dict[int, str]:
    """Parse a JSON list reply into numbered sentences."""
    start, end = text.find("["), text.rfind("]")
    if start < 0 or end < start:
        return {}
    try:
        items = json.loads(text[start : end + 1])
    except ValueError:
        return {}
    return {
        int(item["number"]): str(item[name])
        for item in items
        if isinstance(item, dict)
        and isinstance(item.get("number"), int)
        and isinstance(item.get(name), str)
    }


def _better(composed: str, said: str) -> str:
    line = " ".join(said.split())
    names = _NAMED.findall(composed)
    is_whole = bool(line) and len(line) <= _LONGEST and all(name in line for name in names)
    is_short = len(re.findall(r"[.!?](?:\s|$)", line)) <= _SENTENCES
    is_new = set(_NAMED.findall(line)) <= set(names)
    return line if is_whole and is_short and is_new and not _ORDER.search(line) else composed
