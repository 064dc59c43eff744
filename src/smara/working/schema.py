"""Parse, edit and check JSON pages; their JSON Schema is untrusted.

Keywords whose work could grow without bound are replaced by bounded ones that count steps.
jsonschema is imported on first use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from smara.core.extract import shorten
from smara.core.validate import no_constant
from smara.errors import InvalidInputError

MAX_DEPTH = 64
"""Deeper nesting is refused: readers and checkers of JSON are recursive."""


def parse_object(text: str, what: str = "The content") -> dict[str, Any]:
    """Parse a JSON object; refuse what reading would change."""
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=no_constant)
    except RecursionError:
        raise _too_deep(what) from None
    except ValueError as error:
        raise InvalidInputError(
            f"{what} is not valid JSON: {error}. Mend it; nothing was stored."
        ) from None
    if not isinstance(value, dict):
        raise InvalidInputError(f"{what} must be a JSON object, {{…}}, not {type(value).__name__}.")
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        inner = [
            each
            for outer in level
            for each in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if any(isinstance(each, float) and abs(each) == float("inf") for each in inner):
            raise InvalidInputError(
                "A number of the content is too large for JSON. Write it as a text."
            )
        level = [each for each in inner if isinstance(each, dict | list)]
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


def _too_deep(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"{what} is nested deeper than {MAX_DEPTH} levels. Make it flatter; nothing was stored."
    )


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
        """Return a draft's keywords, counted; four in our form."""
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
        def run(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._step()
            yield from keyword(validator, value, instance, schema) or ()

        return run

    def _matches(self, pattern: str, text: str) -> bool:
        self._step()
        # A lone surrogate cannot be given to RE2; no pattern can name one either.
        return compile_pattern(pattern).search(text.encode("utf-8", "replace").decode()) is not None

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
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        extras = [
            name
            for name in instance
            if name not in named and not any(self._matches(pattern, name) for pattern in patterns)
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
            distinct = {json.dumps(_number_folded(each), sort_keys=True) for each in instance}
            if len(distinct) < len(instance):
                yield ValidationError("has elements that are equal")


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Any:
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


MAX_SCHEMA_CHARACTERS = 50_000
_DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DRAFTS = {
    _DEFAULT_DRAFT: "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_SHOWN_ERRORS = 3
_SHOWN_CHARACTERS = 120


def read_schema(schema: Mapping[str, Any] | str) -> dict[str, Any]:
    """Parse a schema and check that it is supported."""
    if isinstance(schema, str):
        found = parse_object(schema, "The schema")
    elif isinstance(schema, Mapping):
        found = plain_object(schema, "The schema")
    else:
        raise InvalidInputError(
            f"schema must be a JSON object or its text, not {type(schema).__name__}."
        )
    size = len(json.dumps(found))
    if size > MAX_SCHEMA_CHARACTERS:
        raise InvalidInputError(
            f"The schema has {size:,} characters; at most {MAX_SCHEMA_CHARACTERS:,} are kept. "
            "Make it smaller."
        )
    _check_parts(found)
    # The schema satisfies the schema of schemas.
    import jsonschema

    draft = getattr(jsonschema, _draft(found))
    try:
        # Without the check of formats: it compiles patterns for another engine than ours.
        draft.check_schema(found, format_checker=None)
    except jsonschema.SchemaError as error:
        raise InvalidInputError(
            f"The schema is not valid: {_sentence(error)}. Mend it; nothing was stored."
        ) from None
    except RecursionError:
        raise InvalidInputError("The schema is nested too deeply. Make it flatter.") from None
    return found


def check_value(value: Any, schema: Mapping[str, Any]) -> None:
    """Refuse a value that breaks the schema, with the place.

    Raises:
        InvalidInputError: The value does not fit, or the schema cannot be applied.
    """
    import jsonschema
    from jsonschema.exceptions import relevance
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    draft = getattr(jsonschema, _draft(schema))
    bounded = jsonschema.validators.extend(draft, BoundedKeywords().of(draft))
    # A part that names its draft would be checked by the library's own class, unbounded.
    # An empty registry: without one the library would fetch what a reference names.
    validator = bounded(
        {name: part for name, part in schema.items() if name != "$schema"}, registry=Registry()
    )
    try:
        errors = list(islice(validator.iter_errors(value), 100))
    except Unresolvable as error:
        raise InvalidInputError(
            f"The schema refers to {_short(f'#{error.ref}')}, which is not in it. Define it under "
            "$defs."
        ) from None
    except RecursionError:
        raise InvalidInputError(
            "The schema refers to itself without end. Let each reference go deeper."
        ) from None
    except TooMuchWork:
        raise InvalidInputError(
            f"Checking the content against its schema takes more than {MAX_STEPS:,} steps. "
            "Simplify the schema."
        ) from None
    except (ValueError, ArithmeticError) as error:
        raise InvalidInputError(
            f"The schema cannot be applied: {_short(str(error))}. Mend it."
        ) from None
    if not errors:
        return
    errors.sort(key=lambda error: (relevance(error), [str(part) for part in error.absolute_path]))
    shown = "; ".join(_sentence(error) for error in errors[:_SHOWN_ERRORS])
    more = f"; and {len(errors) - _SHOWN_ERRORS} more" if len(errors) > _SHOWN_ERRORS else ""
    raise InvalidInputError(
        f"The content does not fit its schema: {shown}{more}. Change it, or put it with another "
        "schema; nothing was stored.",
        paths=["/".join(map(str, error.absolute_path)) for error in errors],
    )


def _draft(schema: Mapping[str, Any]) -> str:
    named = schema.get("$schema", _DEFAULT_DRAFT)
    draft = _DRAFTS.get(named.removesuffix("#")) if isinstance(named, str) else None
    if draft is None:
        raise InvalidInputError(
            f"$schema {_short(named)} is not known. Use one of {', '.join(_DRAFTS)}."
        )
    return draft


def _check_parts(schema: Mapping[str, Any]) -> None:
    """No reference leads outside, and every pattern is one that RE2 can run."""
    has_patterns = has_unevaluated = False
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if part is not schema and isinstance(part.get("$schema"), str):
                raise InvalidInputError(
                    "Only the whole schema may have $schema. Take it out of its parts."
                )
            for name in _REFERENCES:
                if isinstance(part.get(name), str) and not part[name].startswith("#"):
                    raise InvalidInputError(
                        f"The schema refers to {_short(part[name])}, and nothing is fetched. Put "
                        "what it names "
                        "under $defs and refer to it as #/$defs/name."
                    )
            if isinstance(part.get("pattern"), str):
                compile_pattern(part["pattern"])
            if isinstance(part.get("patternProperties"), dict):
                has_patterns = True
                for pattern in part["patternProperties"]:
                    compile_pattern(pattern)
            has_unevaluated = has_unevaluated or "unevaluatedProperties" in part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    if has_patterns and has_unevaluated:
        raise InvalidInputError(
            "unevaluatedProperties together with patternProperties is not supported. Use "
            "additionalProperties."
        )


def _sentence(error: Any) -> str:
    """Where a check failed and what is allowed there."""
    rule, value = error.validator, error.validator_value
    where = _short(".".join(map(str, error.absolute_path)) or "the page", quoted=False)
    instance = _short(error.instance)
    message = _short(error.message, quoted=False)
    match rule:
        case None:
            return f"{where} may not hold {instance}"
        case "type":
            kinds = value if isinstance(value, list) else [value]
            return f"{where} must be {' or '.join(map(str, kinds))}, not {instance}"
        case "enum":
            return f"{where} must be one of {_short(value)}, not {instance}"
        case "const":
            return f"{where} must be {_short(value)}, not {instance}"
        case "required" if isinstance(error.instance, dict):
            missing = [name for name in value if name not in error.instance]
            return f"{where} must have {', '.join(map(repr, missing))}"
        case "additionalProperties" if value is False:
            named, patterns = (
                error.schema.get(each, {}) for each in ("properties", "patternProperties")
            )
            allowed = _short(", ".join([*named, *patterns]), quoted=False) or "no fields"
            return f"{where} may have only {allowed}; {message}"
        case "anyOf" | "oneOf" if error.context:
            return f"{where} fits none of {len(value)} alternatives with {instance}"
        case _:
            return f"{where} must satisfy {rule} {_short(value)}: {message}"


def _short(value: Any, quoted: bool = True) -> str:
    """A value within an error message; what is long is cut."""
    text = json.dumps(value, ensure_ascii=False, default=str) if quoted else str(value)
    text = text.encode("utf-8", "replace").decode()
    return shorten(text, _SHOWN_CHARACTERS)
