"""Turn typed values into JSON and back.

`Signature.of` reads the parameters and the result of a room's method. From its types alone come
the check of a request's values (`decode`), the record that the Python client gets (`encode`) and
the schemas of OpenAPI (`Schemas`). Keys are camelCase. No class is created but one that a
signature names.
"""

from __future__ import annotations

import ast
import base64
import binascii
import builtins
import collections.abc
import importlib
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cache, partial
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from smara.core.startup.record import MISSING, dataclass, fields, is_dataclass
from smara.core.startup.regex import re, regex
from smara.core.validate import invalid
from smara.errors import InvalidInputError

_TYPES = regex(r"^if TYPE_CHECKING:.*\n((?:(?:[ \t]+.*)?\n)+)", re.MULTILINE)
_LISTS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list, tuple: tuple, set: set, frozenset: frozenset,
    collections.abc.Sequence: tuple, collections.abc.Collection: tuple,
    collections.abc.Iterable: tuple, collections.abc.Set: frozenset,
}  # fmt: skip
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_PLAIN: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_READERS: dict[Any, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    bytes: lambda text: base64.b64decode(text, validate=True),
}
MOST_INTEGER = 2**53 - 1
"""Beyond it, two readers of JSON read different numbers."""


class UnservedTypeError(TypeError):
    """A type that no JSON can stand for, such as a function."""


def camel(name: str) -> str:
    """Return a name as JSON has it.

    >>> camel("thread_id"), camel("type")
    ('threadId', 'type')
    """
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a served method."""

    name: str
    hint: Any
    is_required: bool
    default: Any = None
    is_positional: bool = True


@dataclass(frozen=True, slots=True)
class Signature:
    """The served parameters of a method, and the type of its result."""

    parameters: Mapping[str, Parameter]
    result: Any
    unserved: frozenset[str]
    """Parameters that only a program in the same process can give, such as a callback."""
    is_stream: bool = False
    """True if the result comes piece by piece; ``result`` is the type of a piece."""

    @classmethod
    def of(cls, method: Any, more: Mapping[str, Any] | None = None) -> Signature:
        """Read a method's signature; ``more`` types its further named values."""
        names = Annotations(method)
        served: dict[str, Parameter] = {}
        unserved: set[str] = set()
        found = inspect.signature(method)
        for each in found.parameters.values():
            if each.kind is each.VAR_KEYWORD or each.name == "self":
                continue
            is_required = each.default is each.empty
            try:
                hint = names.resolve(each.annotation)
                check(hint)
            except UnservedTypeError:
                if is_required:
                    raise
                unserved.add(each.name)
                continue
            served[each.name] = Parameter(
                each.name,
                hint,
                is_required,
                None if is_required else each.default,
                each.kind is not each.KEYWORD_ONLY,
            )
        for name, hint in (more or {}).items():
            served.setdefault(name, Parameter(name, hint, False, None, False))
        result = names.resolve(found.return_annotation)
        is_stream = get_origin(result) is collections.abc.Iterator
        result = get_args(result)[0] if is_stream else result
        check(result)
        return cls(served, result, frozenset(unserved), is_stream)


class Annotations:
    """The names that a method's annotations may use."""

    def __init__(self, owner: Any) -> None:
        self._module = sys.modules[inspect.unwrap(owner).__module__]

    def resolve(self, annotation: Any) -> Any:
        """Return the type that an annotation names."""
        annotation = getattr(annotation, "__forward_arg__", annotation)
        if not isinstance(annotation, str):
            return annotation
        return eval(annotation, {"__builtins__": builtins}, _Lookup(self._module))  # noqa: S307 - the source's own annotations


class _Lookup(dict[str, Any]):
    """The globals of a module, with what it imports for its types alone."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        if hasattr(self._module, name):
            return getattr(self._module, name)
        origin = type_imports(self._module).get(name)
        if origin is None:
            return getattr(builtins, name)
        module = importlib.import_module(origin[0])
        return getattr(module, origin[1]) if origin[1] else module


@cache
def type_imports(module: types.ModuleType) -> dict[str, tuple[str, str]]:
    """Return the names that a module imports for types alone."""
    found: dict[str, tuple[str, str]] = {}
    for block in _TYPES.findall(inspect.getsource(module)):
        for node in ast.walk(ast.parse(inspect.cleandoc("\n" + block))):
            if isinstance(node, ast.ImportFrom):
                found |= {
                    each.asname or each.name: (node.module or "", each.name) for each in node.names
                }
            elif isinstance(node, ast.Import):
                found |= {each.asname or each.name: (each.name, "") for each in node.names}
    return found


@cache
def field_types(record: Any) -> dict[str, Any]:
    """Return the types of a record's fields."""
    if is_dataclass(record):
        kind: Any = record
        return {
            each.name: Annotations(_owner(kind, each.name)).resolve(each.type)
            for each in fields(record)
            if each.init
        }
    hints = inspect.get_annotations(record)
    return {name: Annotations(record).resolve(hints[name]) for name in record._fields}


def _owner(record: Any, name: str) -> Any:
    """The class that declares a field: an annotation is read with its module's names."""
    return next(each for each in record.__mro__ if name in inspect.get_annotations(each))


def is_record(kind: Any) -> bool:
    """Return True for a dataclass or a named tuple."""
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields"))


def parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type's origin and arguments, with aliases and unions made plain."""
    while type(hint).__name__ == "TypeAliasType":
        hint = hint.__value__
    origin = get_origin(hint)
    if origin is types.UnionType:
        origin = Union
    if origin in (typing.Annotated, typing.ClassVar, typing.Final):
        return parts(get_args(hint)[0])
    return (origin, get_args(hint)) if origin is not None else (hint, ())


def range_of(hint: Any) -> range | None:
    """Return the numbers of a type such as ``Annotated[int, range(5)]``."""
    named = getattr(hint, "__metadata__", ())
    return next((each for each in named if isinstance(each, range)), None)


def check(hint: Any, seen: frozenset[Any] = frozenset()) -> None:
    """Raise ``UnservedTypeError`` if JSON cannot stand for a type."""
    origin, given = parts(hint)
    if isinstance(origin, typing.TypeVar):
        raise UnservedTypeError(f"{hint!r} has no form in JSON")
    if origin in (Any, None, type(None), Literal, datetime, object, bytes) or origin in _PLAIN:
        return
    if origin is Union:
        if not any(_is_served(each, seen) for each in given):
            raise UnservedTypeError(f"{hint!r} has no form in JSON")
        return
    if origin in _LISTS or origin in _MAPS or _is_list(origin):
        for each in given:
            if each is not Ellipsis:
                check(each, seen)
        return
    if is_record(origin):
        if origin not in seen:
            for each in field_types(origin).values():
                check(each, seen | {origin})
        return
    if isinstance(origin, type) and is_typeddict(origin):
        return
    raise UnservedTypeError(f"{hint!r} has no form in JSON")


def _is_served(hint: Any, seen: frozenset[Any]) -> bool:
    try:
        check(hint, seen)
    except UnservedTypeError:
        return False
    return hint is not type(None)


def _is_list(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, list) and kind is not list


def decode(hint: Any, value: Any, where: str = "", is_text: bool = False) -> Any:
    """Return a JSON value as its type.

    Args:
        hint: The type.
        value: The JSON value; with ``is_text``, the words of a query, where numbers and flags are
            text.
        where: The name of the value, for the error.
        is_text: True for the values of a query.

    Raises:
        InvalidInputError: If the value is not of the type.
    """
    origin, given = parts(hint)
    if origin in (Any, object):
        return value
    if origin is Union:
        return _one_of(given, value, where, is_text)
    if origin is None or origin is type(None):
        if value is None:
            return None
    elif origin is Literal:
        if value in given and not isinstance(value, bool | float):
            return value
        choices = ", ".join(str(each) for each in given)
        shown = repr(value)[:60]
        raise invalid(
            f"{where} must be one of {choices}; got {shown}", f"Use one of {choices}.", where
        )
    elif origin in _PLAIN:
        return _plain(hint, value, where, is_text)
    elif origin in _READERS and isinstance(value, str):
        try:
            return _READERS[origin](value)
        except (ValueError, binascii.Error):
            pass
    elif origin in _LISTS or _is_list(origin):
        return _list(origin, given, value, where, is_text)
    elif origin in _MAPS or (isinstance(origin, type) and is_typeddict(origin)):
        if isinstance(value, dict):
            kind = given[1] if len(given) == 2 else Any
            key = given[0] if len(given) == 2 else str
            return {
                decode(key, name, where, is_text=key is not str): decode(
                    kind, each, f"{where}.{name}"
                )
                for name, each in value.items()
            }
    elif is_record(origin) and isinstance(value, dict):
        return _record(origin, value, where)
    raise InvalidInputError(f"{where} must be {describe(hint)}.", field=where)


def _plain(hint: Any, value: Any, where: str, is_text: bool) -> Any:
    kind = parts(hint)[0]
    if is_text and isinstance(value, str) and kind is not str:
        if kind is bool and value.lower() in ("true", "1", "false", "0"):
            return value.lower() in ("true", "1")
        if kind in (int, float) and len(value) <= 40:
            try:
                value = int(value) if re.fullmatch(r"-?[0-9]+", value) else float(value)
            except ValueError:
                pass
    is_bool = isinstance(value, bool)
    if kind is float and isinstance(value, int | float) and not is_bool and abs(value) <= 1e12:
        return float(value) if isinstance(value, float) else value
    if kind is int and isinstance(value, int) and not is_bool and abs(value) <= MOST_INTEGER:
        return value
    if (kind is bool and is_bool) or (kind is str and isinstance(value, str)):
        return value
    raise InvalidInputError(f"{where} must be {describe(hint)}.", field=where)


def _list(origin: Any, given: tuple[Any, ...], value: Any, where: str, is_text: bool) -> Any:
    if not isinstance(value, list):
        raise InvalidInputError(f"{where} must be a list.", field=where)
    if origin is tuple and given and given[-1] is not Ellipsis:
        if len(value) != len(given):
            raise InvalidInputError(f"{where} must have {len(given)} values.", field=where)
        kinds: Sequence[Any] = given
    else:
        kinds = [given[0] if given else _item_type(origin)] * len(value)
    items = [
        decode(kind, each, f"{where}[{at}]", is_text)
        for at, (kind, each) in enumerate(zip(kinds, value, strict=True))
    ]
    made = _LISTS.get(origin, origin)
    try:
        return made(items)
    except TypeError:
        raise InvalidInputError(f"{where} must be a list of plain values.", field=where) from None


def _item_type(kind: Any) -> Any:
    """The type of the items of a list class: ``class MessageList(list[Message])``."""
    for base in getattr(kind, "__orig_bases__", ()):
        if get_args(base):
            return Annotations(kind).resolve(get_args(base)[0])
    return Any


def _one_of(given: tuple[Any, ...], value: Any, where: str, is_text: bool) -> Any:
    if value is None and type(None) in given:
        return None
    first: InvalidInputError | None = None
    for each in given:
        if each is type(None) or not _is_served(each, frozenset()):
            continue
        try:
            return decode(each, value, where, is_text)
        except InvalidInputError as error:
            first = first or error
            if _is_meant(each, value):
                raise
    if first is not None and len([each for each in given if each is not type(None)]) == 1:
        raise first
    raise InvalidInputError(f"{where} must be {describe(Union[given])}.", field=where)  # noqa: UP007


def _is_meant(kind: Any, value: Any) -> bool:
    """Return True for the JSON of a record, or a list with one, whatever its values.

    Only a record's JSON has names such as ``callId``; a mapping that the caller wrote has the
    names of Python.
    """
    origin, given = parts(kind)
    if isinstance(value, list) and given:
        return any(_is_meant(given[0], each) for each in value)
    if not is_record(origin) or not isinstance(value, dict):
        return False
    names = field_types(origin)
    here = {camel(each) for each in names}
    return set(value) <= here and not here.difference(names).isdisjoint(value)


def _record(kind: Any, value: dict[str, Any], where: str) -> Any:
    named = {camel(name): (name, hint) for name, hint in field_types(kind).items()}
    unknown = [name for name in value if name not in named]
    if unknown:
        names = ", ".join(sorted(named))
        raise InvalidInputError(
            f"{where} has no {unknown[0][:60]!r}. Its fields are {names}.", field=where
        )
    made = {
        named[name][0]: decode(named[name][1], each, f"{where}.{name}" if where else name)
        for name, each in value.items()
    }
    missing = [camel(name) for name in needed_fields(kind) if name not in made]
    if missing:
        raise InvalidInputError(f"{where} lacks {missing[0]!r}.", field=where)
    return kind(**made)


def needed_fields(kind: Any) -> list[str]:
    """Return the fields of a record that have no default."""
    if is_dataclass(kind):
        return [
            each.name
            for each in fields(kind)
            if each.init and each.default is MISSING and each.default_factory is MISSING
        ]
    return [name for name in kind._fields if name not in kind._field_defaults]


def describe(hint: Any) -> str:
    """Return a type in words: ``a whole number, or null``."""
    origin, given = parts(hint)
    if origin is Union:
        words = dict.fromkeys(describe(each) for each in given if _is_served(each, frozenset()))
        null = ["null"] if type(None) in given else []
        return " or ".join([*words, *null])
    if origin is Literal:
        return "one of " + ", ".join(repr(each) for each in given)
    words_of = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}
    if origin in words_of:
        among = range_of(hint)
        return words_of[origin] + (f" from {among[0]} to {among[-1]}" if among else "")
    if origin is None or origin is type(None):
        return "null"
    if origin is datetime:
        return "a time such as 2026-05-04T10:00:00Z"
    return "a list" if origin in _LISTS or _is_list(origin) else "an object"


def encode(value: Any, is_strict: bool = False) -> Any:
    """Return a value as JSON that `decode` can read.

    Raises:
        UnservedTypeError: If JSON has no form for it; with ``is_strict``, also for NaN.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    again, kind = partial(encode, is_strict=is_strict), type(value)
    if isinstance(value, float):
        if is_strict and not math.isfinite(value):
            raise UnservedTypeError(f"{value} is no number in JSON")
        return value if math.isfinite(value) else None
    if is_record(kind):
        hints: dict[str, Any] = field_types(kind)  # type: ignore[arg-type]
        return {camel(name): again(getattr(value, name)) for name in hints}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        if is_strict and any(isinstance(each, AbstractSet) for each in value.values()):
            raise UnservedTypeError("a set has no form in JSON")
        return {str(name): again(each) for name, each in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(map(again, value), key=str)
    if isinstance(value, collections.abc.Iterable):
        return [again(each) for each in value]
    raise UnservedTypeError(f"{kind.__name__} has no form in JSON")


class Schemas:
    """The JSON schemas of types; records are named and described once."""

    def __init__(self) -> None:
        self.records: dict[str, Any] = {}

    def of(self, hint: Any) -> dict[str, Any]:
        """Return the schema of a type."""
        origin, given = parts(hint)
        if origin in (Any, object):
            return {}
        if origin is Union:
            served = [each for each in given if each is type(None) or _is_served(each, frozenset())]
            every = [self.of(each) for each in served]
            return every[0] if len(every) == 1 else {"anyOf": every}
        if origin is None or origin is type(None):
            return {"type": "null"}
        if origin is Literal:
            return {"enum": list(given)}
        if origin is int:
            among = range_of(hint) or (-MOST_INTEGER, MOST_INTEGER)
            return {"type": "integer", "minimum": among[0], "maximum": among[-1]}
        if origin in _PLAIN:
            return {"type": _PLAIN[origin]}
        if origin is datetime:
            return {"type": "string", "format": "date-time"}
        if origin is bytes:
            return {"type": "string", "contentEncoding": "base64"}
        if origin in _LISTS or _is_list(origin):
            return self._list(origin, given)
        if is_record(origin):
            return self._record(origin)
        kind = given[1] if len(given) == 2 else Any
        return {"type": "object", "additionalProperties": self.of(kind) or True}

    def _list(self, origin: Any, given: tuple[Any, ...]) -> dict[str, Any]:
        if origin is tuple and given and given[-1] is not Ellipsis:
            every = [self.of(each) for each in given]
            return {
                "type": "array",
                "prefixItems": every,
                "minItems": len(every),
                "maxItems": len(every),
            }
        item = self.of(given[0] if given else _item_type(origin))
        return {"type": "array", "items": item} if item else {"type": "array"}

    def _record(self, kind: Any) -> dict[str, Any]:
        name = kind.__name__
        if name not in self.records:
            self.records[name] = {}  # a record may hold its own kind
            hints = field_types(kind)
            self.records[name] = {
                "type": "object",
                "properties": {camel(each): self.of(hint) for each, hint in hints.items()},
                "required": [camel(each) for each in needed_fields(kind)],
                "additionalProperties": False,
            }
        return {"$ref": f"#/components/schemas/{name}"}


def walk(value: Any) -> Iterator[Any]:
    """Yield a JSON value and everything in it."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from walk(each)
