"""From what a caller gives to what a page becomes: formed, redacted, checked against schema and
size.

Nothing that was not redacted leaves this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smara.errors import InvalidInputError
from smara.secrets import redact, redact_value
from smara.working.models import FORMATS, Draft, WorkingFormat, WorkingMemory
from smara.working.schema import check_value, read_schema
from smara.working.sections import replace_section
from smara.working.structured import dump, merged, parse_object, plain_object, with_field
from smara.working.templates import template_text

_MOST_INDENTED = 10
"""JSON is measured as we write it; as given it may be this much longer, with spaces in it."""


def whole(
    content: str | Mapping[str, Any] | None,
    template: str | None,
    schema: Mapping[str, Any] | str | None,
    format: WorkingFormat | None,
    max_characters: int,
) -> Callable[[WorkingMemory], Draft]:
    """The edit that replaces a page. What does not depend on the page is refused at once."""
    if not isinstance(content, str | Mapping | None):
        raise InvalidInputError(
            f"content must be a text or a mapping, not {type(content).__name__}."
        )
    if content is None and template is None:
        raise InvalidInputError("put needs content, or a template to begin with.")
    wanted = _format(content, template, schema, format=format)
    begun_with = None if template is None else _shaped(template, max_characters)
    rules = None if schema is None else _rules(schema)
    if isinstance(content, str):
        _check_size(content, max_characters * _MOST_INDENTED)
        redact(content)  # loads the rules, which should not take their time inside the transaction

    def edit(held: WorkingMemory) -> Draft:
        is_json = held.format == "json"
        if (wanted or held.format) == "json":
            value = (
                parse_object(content) if isinstance(content, str) else plain_object(content or {})
            )
            return _json(
                value, rules if rules is not None or not is_json else held.schema, max_characters
            )
        shape = (
            held.template if begun_with is None and held.is_stored and not is_json else begun_with
        )
        return _markdown(
            content if isinstance(content, str) else begun_with or "", shape, max_characters
        )

    return edit


def changed(
    section: str | Mapping[str, Any], content: Any, max_characters: int
) -> Callable[[WorkingMemory], Draft]:
    """The edit that changes a part of a page."""
    patch = plain_object(section, "The patch") if isinstance(section, Mapping) else None

    def edit(held: WorkingMemory) -> Draft:
        if patch is not None:
            if held.format != "json" and held.is_stored:
                raise InvalidInputError(
                    "The page is Markdown: it takes a section and its text, not a mapping."
                )
            return _json(merged(held.value or {}, patch), held.schema, max_characters)
        if held.format == "json":
            value = plain_object(with_field(held.value or {}, str(section), content))
            return _json(value, held.schema, max_characters)
        if not isinstance(content, str | None):
            raise InvalidInputError(
                "The page is Markdown: the content of a section is a text, or None to take it out."
            )
        if content is not None:
            _check_size(content, max_characters)
        return _markdown(
            replace_section(held.content, str(section), content), held.template, max_characters
        )

    return edit


def _format(
    content: Any, template: Any, schema: Any, format: WorkingFormat | None
) -> WorkingFormat | None:
    """The format that is asked for; ``None`` for that of the page."""
    if format is not None and format not in FORMATS:
        raise InvalidInputError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
    is_json = schema is not None or isinstance(content, Mapping)
    is_markdown = template is not None
    if (is_json and (is_markdown or format == "markdown")) or (is_markdown and format == "json"):
        raise InvalidInputError(
            "A template is for Markdown, a schema or a mapping for JSON. Give one of them."
        )
    return format or ("json" if is_json else "markdown" if is_markdown else None)


def _shaped(template: str, max_characters: int) -> str:
    text = redact(template_text(template)).text
    _check_size(text, max_characters)
    return text


def _rules(schema: Mapping[str, Any] | str) -> dict[str, Any]:
    clean, count = redact_value(found := read_schema(schema))
    return read_schema(clean) if count else found


def _markdown(text: str, template: str | None, max_characters: int) -> Draft:
    _check_size(text, max_characters)
    # The whole, not the part that is new: a label and a value may only together be a secret.
    clean = redact(text).text
    _check_size(clean, max_characters)
    return Draft("markdown", clean, template, schema=None)


def _json(value: dict[str, Any], schema: Mapping[str, Any] | None, max_characters: int) -> Draft:
    _check_size(dump(value), max_characters)
    clean = redact_value(value)[0]
    # After redaction, so that what is stored satisfies the schema and no message repeats a secret.
    if schema is not None:
        check_value(clean, schema)
    text = dump(clean)
    _check_size(text, max_characters)
    return Draft("json", text, None, schema=schema)


def _check_size(text: str, max_characters: int) -> None:
    if len(text) > max_characters:
        raise InvalidInputError(
            f"The page would have {len(text):,} characters; at most {max_characters:,} are held "
            "in mind. Shorten it, "
            "move details to messages or files, or raise working_max_characters. Nothing was "
            "stored.",
            characters=len(text),
            limit=max_characters,
        )
