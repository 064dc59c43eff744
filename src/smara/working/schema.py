"""JSON pages checked against a JSON Schema that may come from anywhere.

Nothing is fetched: only references within the schema are followed. Patterns run on RE2,
in linear time. The work is counted, so that a schema whose references multiply is
stopped with an error and not by the patience of whoever waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from smara.errors import InvalidInputError
from smara.working.keywords import MAX_STEPS, BoundedKeywords, TooMuchWork, compiled
from smara.working.structured import parse_object, plain_object

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
    """A schema given as an object or as JSON text, checked to be one that we can follow."""
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
    _check_form(found)
    return found


def check_value(value: Any, schema: Mapping[str, Any]) -> None:
    """Refuse a value that does not satisfy the schema, with where it fails and what is allowed
    there.
    """
    from jsonschema.exceptions import relevance

    errors = _errors(_validator(schema), value)
    if not errors:
        return
    errors.sort(key=lambda error: (relevance(error), [str(part) for part in error.absolute_path]))
    told = "; ".join(_sentence(error) for error in errors[:_SHOWN_ERRORS])
    more = f"; and {len(errors) - _SHOWN_ERRORS} more" if len(errors) > _SHOWN_ERRORS else ""
    raise InvalidInputError(
        f"The content does not fit its schema: {told}{more}. Change it, or put it with another "
        "schema; "
        "nothing was stored.",
        paths=["/".join(map(str, error.absolute_path)) for error in errors],
    )


def _errors(validator: Any, value: Any) -> list[Any]:
    from referencing.exceptions import Unresolvable

    try:
        return list(islice(validator.iter_errors(value), 100))
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


def _validator(schema: Mapping[str, Any]) -> Any:
    """A checker of one value."""
    import jsonschema
    from referencing import Registry

    draft = getattr(jsonschema, _draft(schema))
    bounded = jsonschema.validators.extend(draft, BoundedKeywords().of(draft))
    # A part that names its draft would be checked by the library's own class, unbounded.
    undated = {name: part for name, part in schema.items() if name != "$schema"}
    # An empty registry: without one the library would fetch what a reference names.
    return bounded(undated, registry=Registry())


def _draft(schema: Mapping[str, Any]) -> str:
    named = schema.get("$schema", _DEFAULT_DRAFT)
    draft = _DRAFTS.get(named.removesuffix("#")) if isinstance(named, str) else None
    if draft is None:
        raise InvalidInputError(
            f"$schema {_short(named)} is not known. Use one of {', '.join(_DRAFTS)}."
        )
    return draft


def _check_form(schema: Mapping[str, Any]) -> None:
    """The schema satisfies the schema of schemas."""
    import jsonschema

    draft = getattr(jsonschema, _draft(schema))
    try:
        # Without the check of formats: it compiles patterns for another engine than ours.
        draft.check_schema(schema, format_checker=None)
    except jsonschema.SchemaError as error:
        raise InvalidInputError(
            f"The schema is not valid: {_sentence(error)}. Mend it; nothing was stored."
        ) from None
    except RecursionError:
        raise InvalidInputError("The schema is nested too deeply. Make it flatter.") from None


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
                compiled(part["pattern"])
            if isinstance(part.get("patternProperties"), dict):
                has_patterns = True
                for pattern in part["patternProperties"]:
                    compiled(pattern)
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
    where = ".".join(map(str, error.absolute_path)) or "the page"
    return f"{_short(where, quoted=False)} {_wish(error)}"


def _wish(error: Any) -> str:
    wanted = error.validator_value
    if error.validator is None:
        return f"may not hold {_short(error.instance)}"
    if error.validator == "type":
        kinds = wanted if isinstance(wanted, list) else [wanted]
        return f"must be {' or '.join(map(str, kinds))}, not {_short(error.instance)}"
    if error.validator == "enum":
        return f"must be one of {_short(wanted)}, not {_short(error.instance)}"
    if error.validator == "const":
        return f"must be {_short(wanted)}, not {_short(error.instance)}"
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = [name for name in wanted if name not in error.instance]
        return f"must have {', '.join(map(repr, missing))}"
    if error.validator == "additionalProperties" and wanted is False:
        known = [*error.schema.get("properties", {}), *error.schema.get("patternProperties", {})]
        allowed = _short(", ".join(known), quoted=False) or "no fields"
        return f"may have only {allowed}; {_short(error.message, quoted=False)}"
    if error.validator in ("anyOf", "oneOf") and error.context:
        return f"fits none of {len(wanted)} alternatives with {_short(error.instance)}"
    return f"must satisfy {error.validator} {_short(wanted)}: {_short(error.message, quoted=False)}"


def _short(value: Any, quoted: bool = True) -> str:
    """A value within an error message; what is long is cut."""
    text = json.dumps(value, ensure_ascii=False, default=str) if quoted else str(value)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
