"""Empty pages to begin with: ``coding`` for an agent at a repository, ``person`` for whom it works
with.

A template is only a beginning: nothing keeps a page from growing other headings.
"""

from __future__ import annotations

import re

from smara.errors import InvalidInputError
from smara.working.models import TEMPLATE_NAMES

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
    """The text of a template: one of ours by its name, or any Markdown as it is given.

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
