"""Parse, write, merge (RFC 7396) and edit JSON pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from smara.errors import InvalidInputError

MAX_DEPTH = 64
"""Deeper nesting is refused: readers and checkers of JSON are recursive."""


def parse_object(text: str, what: str = "The content") -> dict[str, Any]:
    """Parse a JSON object; refuse what reading would change."""
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_constant)
    except RecursionError:
        raise _too_deep(what) from None
    except ValueError as error:
        raise InvalidInputError(
            f"{what} is not valid JSON: {error}. Mend it; nothing was stored."
        ) from None
    if not isinstance(value, dict):
        raise InvalidInputError(f"{what} must be a JSON object, {{…}}, not {type(value).__name__}.")
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    raise _too_deep(what)


def plain_object(value: Mapping[str, Any], what: str = "The content") -> dict[str, Any]:
    """Return an object as plain JSON: text keys, lists."""
    try:
        text = json.dumps(dict(value), allow_nan=False)
    except RecursionError:
        raise _too_deep(what) from None
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{what} cannot be written as JSON: {error}. Nothing was stored."
        ) from None
    return parse_object(text, what)


def dump(value: Mapping[str, Any]) -> str:
    """An object as the text of a page."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def merge_patch(value: Any, patch: Any) -> Any:
    """Apply a merge patch to a value.

    ``None`` takes a field out, an object merges, anything else replaces.

    >>> merge_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 4}})
    {'b': {'c': 4, 'd': 3}}
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), change)
    return result


def with_field(value: Mapping[str, Any], path: str, new: Any) -> dict[str, Any]:
    """Set the field at a dotted path; ``None`` removes it.

    Objects are made on the way.

    >>> with_field({"a": {"b": 1}}, "a.c", 2)
    {'a': {'b': 1, 'c': 2}}
    """
    names = path.split(".")
    if not all(names):
        raise InvalidInputError(
            f"{path!r} is not a path. Give names with dots between them, such as stack.language."
        )
    result = dict(value)
    inner = result
    for depth, name in enumerate(names[:-1], 1):
        below = inner.get(name)
        if below is None and new is None:
            return result
        if not isinstance(below, Mapping | None):
            raise InvalidInputError(
                f"{'.'.join(names[:depth])!r} is no object, so it has no field {names[depth]!r}. "
                "Set it as a whole."
            )
        inner[name] = inner = dict(below or {})
    if new is None:
        inner.pop(names[-1], None)
    else:
        inner[names[-1]] = new
    return result


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {double!r} is there twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _inside(value: Any) -> list[Any]:
    inner = list(value.values()) if isinstance(value, dict) else value
    for each in inner:
        if isinstance(each, float) and each in (float("inf"), float("-inf")):
            raise InvalidInputError(
                "A number of the content is too large for JSON. Write it as a text."
            )
    return [each for each in inner if isinstance(each, dict | list)]


def _too_deep(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"{what} is nested deeper than {MAX_DEPTH} levels. Make it flatter; nothing was stored."
    )
