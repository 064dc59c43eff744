"""Make dataclasses whose methods are compiled when the first instance is made.

The standard decorator compiles up to six functions for each class, a quarter of what a short
command does. A process uses few of the classes that it imports. `dataclass` here takes the same
arguments and gives the same class; ``fields``, ``replace`` and ``asdict`` serve it as any other.
"""

from __future__ import annotations

import dataclasses
import reprlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import (
        KW_ONLY,
        MISSING,
        asdict,
        astuple,
        dataclass,
        field,
        fields,
        is_dataclass,
        replace,
    )
else:
    from dataclasses import KW_ONLY, MISSING, asdict, astuple, field, fields, is_dataclass, replace

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, kw_only=False):
        """Add fields, a constructor, ``repr``, ``==`` and a hash to a class."""

        def decorate(cls: type) -> type:
            own = set(vars(cls))
            has_hash = "__hash__" in own and not (cls.__hash__ is None and "__eq__" in own)
            made = dataclasses.dataclass(
                init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
            )(cls)

            def __init__(self, *values, **named):
                made.__init__ = _init(made, frozen)
                made.__init__(self, *values, **named)

            added: dict[str, Any] = {"__init__": __init__, "__repr__": _repr}
            if eq:
                key = _key(each.name for each in dataclasses.fields(made) if each.compare)

                def __eq__(self, other):
                    return key(self) == key(other) if other.__class__ is self.__class__ else (
                        NotImplemented
                    )  # fmt: skip

                added["__eq__"] = __eq__
                if not has_hash:
                    made.__hash__ = (lambda self: hash(key(self))) if frozen else None
            if frozen:
                added |= {"__setattr__": _refuse, "__delattr__": _refuse}
                if slots:
                    added |= {"__getstate__": _state, "__setstate__": _restore}
            for name, method in added.items():
                if name not in own:
                    setattr(made, name, method)
            made.__signature__ = _Signature(frozen)
            return made

        return decorate if cls is None else decorate(cls)


class _Signature:
    """The signature of the constructor, for those who inspect the class."""

    def __init__(self, is_frozen: bool) -> None:
        self._is_frozen = is_frozen

    def __get__(self, instance: object, owner: type) -> object:
        import inspect

        given = inspect.signature(_init(owner, self._is_frozen))
        return given.replace(parameters=list(given.parameters.values())[1:])


def _init(cls: Any, is_frozen: bool) -> Callable[..., None]:
    """Compile the constructor of a class, as the standard decorator does."""
    fields = dataclasses.fields(cls)
    body: dict[str, Any] = {each.name: each for each in fields}
    body["__annotations__"] = {each.name: each.type for each in fields}
    body["__module__"], body["__qualname__"] = cls.__module__, cls.__qualname__
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = cls.__post_init__
    make = dataclasses.dataclass(frozen=is_frozen, repr=False, eq=False)
    init: Callable[..., None] = make(type(cls.__name__, (), body)).__init__  # type: ignore[misc]
    return init


def _key(names: Iterable[str]) -> Callable[[object], object]:
    listed = tuple(names)
    return attrgetter(*listed) if listed else lambda _: ()


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(
        f"{each.name}={getattr(self, each.name)!r}"
        for each in dataclasses.fields(self)
        if each.repr
    )
    return f"{self.__class__.__qualname__}({shown})"


def _refuse(self: object, name: str, value: object = None) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


__all__ = [
    "KW_ONLY", "MISSING", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass",
    "replace",
]  # fmt: skip
