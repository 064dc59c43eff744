"""Turn input or a template into a checked, redacted page draft.

The template `coding` serves an agent in a repository, `person` the user it works with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from smara.errors import InvalidInputError
from smara.secrets import redact, redact_value
from smara.working.markdown import replace_section
from smara.working.models import FORMATS, TEMPLATE_NAMES, PageDraft, WorkingFormat, WorkingMemory
from smara.working.schema import (
    check_value,
    dump,
    merge_patch,
    parse_object,
    plain_object,
    read_schema,
    with_field,
)

_TEXTS: dict[str, str] = {
    "coding": """\
# Project Context

## Tech Stack
- Language:
- Framework:
- Database:
- Other key dependencies:

## Project Structure
- Main directory:
- Source directory:
- Test directory:

## User Preferences
- Testing framework:
- Code style:
- Other preferences:

## Current Work
- Active feature:
- Blocker:
- Last completed:
""",
    "person": """\
# User Information
- **First Name**:
- **Last Name**:
- **Location**:
- **Occupation**:
- **Interests**:
- **Goals**:
- **Events**:
- **Facts**:
- **Projects**:
""",
}
_NAME = re.compile(r"[A-Za-z0-9_-]*")


def template_text(template: str) -> str:
    """Return a template's text by name, or Markdown as given.

    >>> template_text("person").splitlines()[0]
    '# User Information'
    >>> template_text("# Customer")
    '# Customer'
    """
    if not isinstance(template, str):
        raise InvalidInputError(
            f"template must be a name or Markdown text, not {type(template).__name__}."
        )
    if template in _TEXTS:
        return _TEXTS[template]
    if _NAME.fullmatch(template):
        raise InvalidInputError(
            f"There is no template {template!r}. Use {' or '.join(TEMPLATE_NAMES)}, or give "
            "Markdown text.",
            template=template,
        )
    return template


_MOST_INDENTED = 10
"""JSON is measured as we write it; as given it may be this much longer, with spaces in it."""


def replace_page(
    content: str | Mapping[str, Any] | None,
    template: str | None,
    schema: Mapping[str, Any] | str | None,
    format: WorkingFormat | None,
    max_characters: int,
) -> Callable[[WorkingMemory], PageDraft]:
    """Return the edit that replaces a page.

    What does not depend on the page is refused at once.
    """
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

    def edit(held: WorkingMemory) -> PageDraft:
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


def edit_page(
    section: str | Mapping[str, Any], content: Any, max_characters: int
) -> Callable[[WorkingMemory], PageDraft]:
    """The edit that changes a part of a page."""
    patch = plain_object(section, "The patch") if isinstance(section, Mapping) else None

    def edit(held: WorkingMemory) -> PageDraft:
        if patch is not None:
            if held.format != "json" and held.is_stored:
                raise InvalidInputError(
                    "The page is Markdown: it takes a section and its text, not a mapping."
                )
            return _json(merge_patch(held.value or {}, patch), held.schema, max_characters)
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


def _markdown(text: str, template: str | None, max_characters: int) -> PageDraft:
    _check_size(text, max_characters)
    # The whole, not the part that is new: a label and a value may only together be a secret.
    clean = redact(text).text
    _check_size(clean, max_characters)
    return PageDraft("markdown", clean, template, schema=None)


def _json(
    value: dict[str, Any], schema: Mapping[str, Any] | None, max_characters: int
) -> PageDraft:
    _check_size(dump(value), max_characters)
    clean = redact_value(value)[0]
    # After redaction, so that what is stored satisfies the schema and no message repeats a secret.
    if schema is not None:
        check_value(clean, schema)
    text = dump(clean)
    _check_size(text, max_characters)
    return PageDraft("json", text, None, schema=schema)


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
