"""From the bytes of a line to a JSON object that is safe to keep.

Decoding never raises. What can be mended is mended and named as a repair (invalid
UTF-8, lone surrogates, a key given twice); what cannot is refused with a reason. An
object that comes out holds no infinite numbers, no lone surrogates and at most
`MAX_DEPTH` levels, so that it can be written as JSON again by anybody.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from smara.adapters.reading import Line
from smara.adapters.records import Counted

MAX_DEPTH = 100

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PADDING = "\x00 \t\r\n\ufeff"
_LATEST_MS = 253_402_300_799_999  # the last millisecond of the year 9999


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that holds a JSON object."""

    line: int
    raw: bytes
    value: dict[str, Any]
    repairs: tuple[str, ...] = ()


def decode(line: Line) -> Entry | Counted:
    """The object in a line, or why there is none."""
    if line.problem:
        return Counted(line.number, "unreadable", line.problem)
    text, repairs = _decode_text(line.data)
    if not text:
        return _empty(line)
    try:
        value, more_repairs = load_json(text)
    except RecursionError:
        return Counted(line.number, "broken", "nested too deeply to be read")
    except ValueError as error:
        return _invalid(line, error)
    if not isinstance(value, dict):
        return Counted(
            line.number, "broken", "not a JSON object", detail=f"it is {_json_name(value)}"
        )
    return Entry(line.number, line.data, value, repairs=(*repairs, *more_repairs))


def load_json(text: str) -> tuple[Any, list[str]]:
    """The value in a JSON text, made safe, and the repairs that took.

    Raises `ValueError` when the text is not JSON, `RecursionError` when it is too deep.
    """
    value, has_twins = _load(text)
    if _is_too_deep(value, text.count("{") + text.count("[")):
        raise RecursionError("the JSON is nested too deeply")
    repairs = []
    if has_twins:
        repairs.append("a key was given twice; the last one counts")
    if _ESCAPED_SURROGATE.search(text):
        clean = without_surrogates(value)
        if clean != value:
            value = clean
            repairs.append("lone surrogates were replaced")
    return value, repairs


def _decode_text(data: bytes) -> tuple[str, list[str]]:
    repairs = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        repairs.append("invalid UTF-8 was replaced")
    stripped = text.strip(_PADDING)
    if stripped and "\x00" in text[: text.index(stripped[0])] + text[text.rindex(stripped[-1]) :]:
        repairs.append("NUL bytes around the line were dropped")
    return stripped, repairs


def _empty(line: Line) -> Counted:
    if b"\x00" in line.data:
        return Counted(line.number, "broken", "only NUL bytes (the file was cut off by a crash)")
    return Counted(line.number, "blank", "a blank line")


def _invalid(line: Line, error: ValueError) -> Counted:
    if not line.is_terminated:
        return Counted(
            line.number, "broken", "incomplete last line (the file may still be written)"
        )
    if isinstance(error, json.JSONDecodeError):
        return Counted(
            line.number, "broken", "invalid JSON", detail=f"{error.msg}, column {error.colno}"
        )
    return Counted(line.number, "broken", "a number with too many digits")


def _load(text: str) -> tuple[Any, bool]:
    has_twins = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_twins
        made = dict(items)
        has_twins = has_twins or len(made) != len(items)
        return made

    # NaN and infinities become words: no database accepts them as numbers in JSON.
    value = json.loads(
        text, object_pairs_hook=pairs, parse_constant=str, parse_float=_finite, strict=False
    )
    return value, has_twins


def _finite(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _is_too_deep(value: Any, openings: int) -> bool:
    """Whether containers are nested deeper than allowed; with fewer openings they cannot be."""
    if openings <= MAX_DEPTH:
        return False
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def without_surrogates(value: Any) -> Any:
    """The same value, each lone surrogate in any of its texts replaced by U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_surrogates(inner) for inner in value]
    return value


def text_in(value: Any) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def mapping_in(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_in(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def milliseconds(value: Any) -> int | None:
    """Milliseconds since the epoch from a number of them or from ISO 8601 text, else None.

    1770841013366 → 1770841013366; "2026-02-11T20:16:53.366Z" → 1770841013366. Text
    without a zone is taken as UTC.
    """
    if isinstance(value, str):
        if value.isascii() and value.isdigit() and len(value) <= 15 and len(value) != 8:
            value = int(value)
        else:
            value = _iso_milliseconds(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value <= _LATEST_MS else None


def _iso_milliseconds(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def _json_name(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
