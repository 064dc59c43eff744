"""Refuse invalid input with a message that says what is allowed."""

from __future__ import annotations

from smara.errors import InvalidInputError


def invalid(brief: str, hint: str, field: str) -> InvalidInputError:
    """A refusal that says what is wrong, and what is allowed instead."""
    return InvalidInputError(f"{brief}. {hint}", field=field, brief=brief, hint=hint)


def one_of(value: object, allowed: tuple[str, ...], what: str) -> str:
    """A value out of a few."""
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(allowed)
        raise invalid(f"{what} must be one of {names}; got {value!r}", f"Use one of {names}.", what)
    return value
