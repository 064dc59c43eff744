"""Make dataclasses whose fields and methods come at first use.

The standard decorator reads every annotation and compiles up to six functions for each class, a
quarter of what a short command does. A process uses few of the classes that it imports.
`dataclass` here takes the same arguments and gives the same class; ``fields``, ``replace`` and
``asdict`` serve it as any other.
"""

from __future__ import annotations

import dataclasses
import reprlib
from _thread import RLock
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
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
            made = _slotted(cls) if slots else cls
            facts = _Facts(cls, made, kw_only)
            for name in _FACTS if slots else ():
                setattr(made, name, _Fact(name, facts))
            if not slots:
                facts.find()  # the defaults of fields are attributes of such a class

            def __init__(self, *values, **named):
                made.__init__ = _init(made, frozen)
                made.__init__(self, *values, **named)

            def __eq__(self, other):
                made.__eq__ = _equal(made)
                return made.__eq__(self, other)

            def __hash__(self):
                key = _key(made)
                made.__hash__ = lambda self: hash(key(self))
                return hash(self)

            added: dict[str, Any] = {"__init__": __init__, "__repr__": _repr}
            if eq:
                added["__eq__"] = __eq__
                if not has_hash:
                    made.__hash__ = __hash__ if frozen else None
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


_FACTS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_FINDING = RLock()


class _Facts:
    """The facts that the standard decorator finds in a class, and the class they are for."""

    def __init__(self, cls: type, made: type, kw_only: bool) -> None:
        self._cls, self._made, self._kw_only, self._is_found = cls, made, kw_only, False

    def find(self) -> None:
        # The decorator takes the defaults out of the class: a second thread would find fields
        # without them, and leave a class that cannot be made any more.
        with _FINDING:
            if not self._is_found:
                make = dataclasses.dataclass(
                    init=False, repr=False, eq=False, kw_only=self._kw_only
                )
                found = vars(make(self._cls))
                for name in _FACTS if self._made is not self._cls else ():
                    setattr(self._made, name, found[name])
                self._is_found = True


class _Fact:
    """One fact of a class, which replaces this when it is first asked for."""

    def __init__(self, name: str, facts: _Facts) -> None:
        self._name, self._facts = name, facts

    def __get__(self, instance: object, owner: type) -> Any:
        self._facts.find()
        return getattr(owner, self._name)


def _slotted(cls: type) -> type:
    """Return the class again with a slot for each field of its own."""
    inherited = {name for base in cls.__mro__ for name in vars(base).get("__slots__", ())}
    names = [
        name
        for name, kind in vars(cls).get("__annotations__", {}).items()
        if "ClassVar[" not in str(kind) and "KW_ONLY" not in str(kind)
    ]
    left_out = {*names, "__dict__", "__weakref__"}
    body = {name: value for name, value in vars(cls).items() if name not in left_out}
    body["__slots__"] = tuple(name for name in names if name not in inherited)
    made: type = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


class _Signature:
    """The signature of the constructor, for those who inspect the class."""

    def __init__(self, is_frozen: bool) -> None:
        self._is_frozen = is_frozen

    def __get__(self, instance: object, owner: type) -> object:
        import inspect

        given = inspect.signature(_init(owner, self._is_frozen))
        return given.replace(parameters=list(given.parameters.values())[1:])


class _Factory:
    """The default of a parameter whose value a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init(cls: Any, is_frozen: bool) -> Callable[..., None]:
    """Compile the constructor of a class."""
    place = "_set(self, {0!r}, {1})" if is_frozen else "self.{0} = {1}"
    names: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    orders: dict[bool, list[str]] = {False: [], True: []}
    lines = []
    for each in dataclasses.fields(cls):
        value = each.name
        if each.default_factory is not MISSING:
            names[f"_make_{each.name}"] = each.default_factory
            value, default = f"_make_{each.name}()", "_FACTORY"
            if each.init:
                value += f" if {each.name} is _FACTORY else {each.name}"
        elif each.default is not MISSING:
            names[f"_default_{each.name}"] = each.default
            default = f"_default_{each.name}"
            value = each.name if each.init else default
        elif each.init:
            default = ""
        else:
            continue
        if each.init:
            orders[bool(each.kw_only)].append(each.name + (default and f"={default}"))
        lines.append(place.format(each.name, value))
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    given = [*orders[False], *(["*", *orders[True]] if orders[True] else [])]
    body = "\n ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(['self', *given])}):\n {body}", names)  # noqa: S102 - of fields alone
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in dataclasses.fields(cls) if each.init}
    return init


def _key(cls: Any) -> Callable[[object], object]:
    listed = [each.name for each in dataclasses.fields(cls) if each.compare]
    return attrgetter(*listed) if listed else lambda _: ()


def _equal(cls: Any) -> Callable[[object, object], bool]:
    key = _key(cls)

    def __eq__(self: object, other: object) -> bool:
        is_same = other.__class__ is self.__class__
        return key(self) == key(other) if is_same else NotImplemented

    return __eq__


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
