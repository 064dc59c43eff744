"""JSON as models write it: read where that can be done without guessing, and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from smara.core.delimiters import neutralized
from smara.errors import InvalidInputError
from smara.observations.models import Extractor
from smara.observations.reply.sections import unescaped
from smara.working.schema import check_value, read_schema

MOST_CHARACTERS = 100_000
MOST_DEPTH = 32
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_TAKEN = frozenset({"fields"})
_FENCE = re.compile(r"\s*(?:```|~~~)[\w-]*\s*$", re.MULTILINE)
_LAST_COMMA = re.compile(r",(?=\s{0,80}[}\]])")


def check_extractor(extractor: Extractor) -> None:
    """Refuse an extractor that no reply could satisfy."""
    if not _NAME.fullmatch(extractor.name) or extractor.name in _TAKEN:
        raise InvalidInputError(
            f"An extractor's name is of small letters, digits and dashes, not {extractor.name!r}. "
            "Rename it."
        )
    if not extractor.instruction.strip():
        raise InvalidInputError(
            f"The extractor {extractor.name} needs an instruction. Say what is to be taken out."
        )
    read_schema(extractor.schema)


def read_json(text: str) -> Any:
    """The value that a text holds: in a code block, among words, with a comma too many. Raises
    ``ValueError``.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters")
    bare = _FENCE.sub("", text).strip()
    begin = min((at for at in (bare.find("{"), bare.find("[")) if at >= 0), default=-1)
    end = max(bare.rfind("}"), bare.rfind("]"))
    inner = bare[begin : end + 1] if 0 <= begin < end else ""
    # The last attempt may change a text that holds ",}", so it comes last.
    attempts = [bare, unescaped(bare), inner, _LAST_COMMA.sub("", inner)]
    for attempt in attempts:
        try:
            return _safe(json.loads(attempt, parse_constant=_no_constant), 0)
        except (ValueError, RecursionError):
            continue
    raise ValueError("it is not JSON")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _safe(value: Any, depth: int) -> Any:
    """The value with its texts unable to open or close a block of ours."""
    if depth > MOST_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(value, str):
        return neutralized(value)
    if isinstance(value, list):
        return [_safe(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {neutralized(name): _safe(item, depth + 1) for name, item in value.items()}
    return value


def extract(
    sections: Mapping[str, str | None], extractors: Iterable[Extractor]
) -> tuple[dict[str, Any], list[str]]:
    """What the extractors found, each by itself, and what is to be said about those that failed."""
    found: dict[str, Any] = {}
    warnings: list[str] = []
    for extractor in extractors:
        text = sections.get(extractor.name)
        if not text or text.lower() in ("none", "null", "n/a", "-", "{}", "[]"):
            continue
        try:
            value = read_json(text)
            check_value(value, extractor.schema)
        except InvalidInputError as error:
            warnings.append(f"extractor {extractor.name}: {error.message}")
        except ValueError as error:
            warnings.append(f"extractor {extractor.name}: {error}")
        else:
            found[extractor.name] = value
    return found, warnings
