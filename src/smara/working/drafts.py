"""Turn input or a template into a checked, redacted page draft.

The template `coding` serves an agent in a repository, `person` the user it works with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from smara.core.startup.regex import regex
from smara.core.validate import one_of
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
_NAME = regex(r"[A-Za-z0-9_-]*")


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


# JSON is measured as we write it; as given it may be this much longer, with spaces in it.
_MOST_INDENTED = 10


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
    if format is not None:
        one_of(format, FORMATS, "format")
    is_json = schema is not None or isinstance(content, Mapping)
    is_markdown = template is not None
    if (is_json and (is_markdown or format == "markdown")) or (is_markdown and format == "json"):
        raise InvalidInputError(
            "A template is for Markdown, a schema or a mapping for JSON. Give one of them."
        )
    new_format = format or ("json" if is_json else "markdown" if is_markdown else None)
    blank = rules = None
    if template is not None:
        blank = redact(template_text(template)).text
        _check_size(blank, max_characters)
    if schema is not None:
        clean, count = redact_value(rules := read_schema(schema))
        rules = read_schema(clean) if count else rules
    if isinstance(content, str):
        _check_size(content, max_characters * _MOST_INDENTED)
        redact(content)  # loads the rules, which should not take their time inside the transaction

    def edit(page: WorkingMemory) -> PageDraft:
        was_json = page.format == "json"
        if (new_format or page.format) == "json":
            value = (
                parse_object(content) if isinstance(content, str) else plain_object(content or {})
            )
            shape = page.schema if rules is None and was_json else rules
            return _json(value, shape, max_characters)
        begun = page.template if blank is None and page.is_stored and not was_json else blank
        return _markdown(
            content if isinstance(content, str) else blank or "", begun, max_characters
        )

    return edit


def edit_page(
    section: str | Mapping[str, Any], content: Any, max_characters: int
) -> Callable[[WorkingMemory], PageDraft]:
    """The edit that changes a part of a page."""
    patch = plain_object(section, "The patch") if isinstance(section, Mapping) else None

    def edit(page: WorkingMemory) -> PageDraft:
        if patch is not None:
            if page.format != "json" and page.is_stored:
                raise InvalidInputError(
                    "The page is Markdown: it takes a section and its text, not a mapping."
                )
            return _json(merge_patch(page.value or {}, patch), page.schema, max_characters)
        if page.format == "json":
            value = plain_object(with_field(page.value or {}, str(section), content))
            return _json(value, page.schema, max_characters)
        if not isinstance(content, str | None):
            raise InvalidInputError(
                "The page is Markdown: the content of a section is a text, or None to take it out."
            )
        if content is not None:
            _check_size(content, max_characters)
        return _markdown(
            replace_section(page.content, str(section), content), page.template, max_characters
        )

    return edit


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
