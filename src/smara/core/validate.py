"""Refuse invalid input with a message that says what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

from smara.errors import InvalidInputError

precondition: ContextVar[Callable[[Any], None]] = ContextVar(
    "precondition", default=lambda record: None
)
"""Looks at a record in the transaction that is about to change it; it may raise."""


def invalid(brief: str, hint: str, field: str) -> InvalidInputError:
    """A refusal that says what is wrong, and what is allowed instead."""
    return InvalidInputError.with_hint(f"{brief}.", hint, field=field, brief=brief)


ChoiceT = TypeVar("ChoiceT")


def one_of(value: ChoiceT, allowed: Collection[str], what: str) -> ChoiceT:
    """A value out of a few."""
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(allowed)
        raise invalid(f"{what} must be one of {names}; got {value!r}", f"Use one of {names}.", what)
    return value


def check_page(limit: object, offset: object = 0) -> None:
    """Raise ``InvalidInputError`` for an impossible page."""
    for name, value, least in (("limit", limit, 1), ("offset", offset, 0)):
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
            raise InvalidInputError(
                f"{name} must be a whole number, at least {least}; got {value!r}.", field=name
            )


def no_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads as JSON."""
    raise ValueError(f"{name} is not a JSON number")
