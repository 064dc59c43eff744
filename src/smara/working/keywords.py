"""Keywords of JSON Schema whose work is bounded, for schemas that may come from anywhere.

Patterns run on RE2, in linear time, where the library would use an engine that
backtracks; and every keyword and every match counts as a step, of which a check has a
number.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from smara.errors import InvalidInputError

MAX_STEPS = 50_000
"""How many steps one check may take. A page of 20,000 characters with five keywords for each of its
some 2,000 values takes 10,000; all of them take about a second.
"""

Keyword = Callable[[Any, Any, Any, Any], Iterable[Any] | None]


class TooMuchWork(Exception):
    """The check has taken more steps than it may."""


class BoundedKeywords:
    """The keywords of one check, and the steps it has taken."""

    def __init__(self) -> None:
        self._taken = 0

    def of(self, draft: Any) -> dict[str, Keyword]:
        """Every keyword of a draft, counted; four of them in a form of ours."""
        ours: dict[str, Keyword] = {
            "pattern": self._pattern,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
            "uniqueItems": self._unique_items,
        }
        return {
            name: self._counted(keyword) for name, keyword in {**draft.VALIDATORS, **ours}.items()
        }

    def _step(self) -> None:
        self._taken += 1
        if self._taken > MAX_STEPS:
            raise TooMuchWork

    def _counted(self, keyword: Keyword) -> Keyword:
        def run(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._step()
            yield from keyword(validator, wanted, instance, schema) or ()

        return run

    def _matches(self, pattern: str, text: str) -> bool:
        self._step()
        # A lone surrogate cannot be given to RE2; no pattern can name one either.
        return compiled(pattern).search(text.encode("utf-8", "replace").decode()) is not None

    def _pattern(self, validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
        from jsonschema import ValidationError

        if validator.is_type(instance, "string") and not self._matches(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def _pattern_properties(
        self, validator: Any, patterns: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if not validator.is_type(instance, "object"):
            return
        for pattern, inner in patterns.items():
            for name, value in instance.items():
                if self._matches(pattern, name):
                    yield from validator.descend(value, inner, path=name, schema_path=pattern)

    def _additional_properties(
        self, validator: Any, allowed: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        from jsonschema import ValidationError

        if not validator.is_type(instance, "object"):
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        extras = [
            name
            for name in instance
            if name not in known and not any(self._matches(pattern, name) for pattern in patterns)
        ]
        if validator.is_type(allowed, "object"):
            for name in extras:
                yield from validator.descend(instance[name], allowed, path=name)
        elif not allowed and extras:
            yield ValidationError(f"{', '.join(map(repr, extras[:5]))} not allowed")

    def _unique_items(
        self, validator: Any, is_wanted: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        # The library compares every element with every other when they cannot be sorted.
        from jsonschema import ValidationError

        if is_wanted and validator.is_type(instance, "array"):
            told = {json.dumps(_number_folded(each), sort_keys=True) for each in instance}
            if len(told) < len(instance):
                yield ValidationError("has elements that are equal")


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """A pattern for RE2; ``InvalidInputError`` for one that it cannot run."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = (
            error.args[0].decode("utf-8", "replace")
            if isinstance(error.args[0], bytes)
            else str(error)
        )
        raise InvalidInputError(
            f"The pattern {pattern[:100]!r} cannot be used: {reason[:100]}. Patterns are RE2: no "
            "look-around, "
            "no back-references."
        ) from None


def _number_folded(value: Any) -> Any:
    """1.0 as 1, which JSON Schema takes for the same."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _number_folded(each) for name, each in value.items()}
    return [_number_folded(each) for each in value] if isinstance(value, list) else value
