"""Decide which items and namespaces LangGraph's filters and conditions match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.store.base import ListNamespacesOp, MatchCondition

from smara.core.startup.regex import regex

_KEY = regex(r"[\w.\-]+")
_NOTHING = object()


def check_filter(conditions: Mapping[str, Any] | None) -> None:
    """Refuse a filter with invalid keys or unknown operators.

    Raises:
        ValueError: If a key has other characters than letters, digits, ``_``, ``.`` and ``-``,
            or an operator is not one of LangGraph's.
    """
    for key, condition in (conditions or {}).items():
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise ValueError(
                f"Invalid filter key: {key!r}. Use letters, digits, underscores, dots, hyphens."
            )
        if _is_operators(condition):
            for operator in condition:
                if operator not in _OPERATORS:
                    raise ValueError(f"Unsupported operator: {operator}. Use {list(_OPERATORS)}.")


def matches(value: Any, conditions: Mapping[str, Any] | None) -> bool:
    """Return True if a value meets every condition of a filter.

    >>> matches({"user": {"age": 7}}, {"user.age": {"$gte": 7}})
    True
    """
    return all(_meets(_at(value, key), condition) for key, condition in (conditions or {}).items())


def required_texts(conditions: Mapping[str, Any] | None) -> list[str]:
    """Return the texts that every matching value holds.

    >>> required_texts({"user": "ann", "age": {"$gte": 7}, "city": {"$eq": "Rome"}})
    ['ann', 'Rome']
    """
    texts = (
        condition.get("$eq") if isinstance(condition, Mapping) else condition
        for condition in (conditions or {}).values()
    )
    return [each for each in texts if isinstance(each, str)]


def _at(value: Any, path: str) -> Any:
    """Return what stands at a dotted path; a key with that very name comes first."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return _NOTHING
        value = value[key]
    return value


def _is_operators(condition: Any) -> bool:
    return isinstance(condition, Mapping) and any(str(key).startswith("$") for key in condition)


def _meets(value: Any, condition: Any) -> bool:
    if _is_operators(condition):
        return all(_OPERATORS[operator](value, each) for operator, each in condition.items())
    if isinstance(condition, Mapping):
        return isinstance(value, Mapping) and all(
            _meets(value.get(key, _NOTHING), each) for key, each in condition.items()
        )
    return _equal(value, condition)


def _equal(value: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1, and a list is equal by its elements."""
    if isinstance(other, list | tuple):
        return (
            isinstance(value, list) and len(value) == len(other) and all(map(_equal, value, other))
        )
    if value is _NOTHING or isinstance(value, bool) is not isinstance(other, bool):
        return False
    return bool(value == other)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Compare numbers with numbers and texts with texts; anything else is not in order."""

    def is_so(value: Any, other: Any) -> bool:
        is_number = all(
            isinstance(each, int | float) and not isinstance(each, bool) for each in (value, other)
        )
        is_text = isinstance(value, str) and isinstance(other, str)
        return (is_number or is_text) and compare(value, other)

    return is_so


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": _equal,
    "$ne": lambda value, other: not _equal(value, other),
    "$gt": _ordered(lambda value, other: value > other),
    "$gte": _ordered(lambda value, other: value >= other),
    "$lt": _ordered(lambda value, other: value < other),
    "$lte": _ordered(lambda value, other: value <= other),
}


def literal_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    """Return the labels with which every matching namespace begins."""
    longest: tuple[str, ...] = ()
    for condition in conditions:
        if condition.match_type == "prefix":
            labels = [str(label) for label in condition.path]
            end = labels.index("*") if "*" in labels else len(labels)
            longest = max(longest, tuple(labels[:end]), key=len)
    return longest


def select_namespaces(
    namespaces: Sequence[tuple[str, ...]], op: ListNamespacesOp
) -> list[tuple[str, ...]]:
    """Return the page of namespaces that an operation lists, in order."""
    chosen = [
        namespace[: op.max_depth]
        for namespace in namespaces
        if all(_fits(namespace, condition) for condition in op.match_conditions or ())
    ]
    return sorted(set(chosen))[op.offset : op.offset + op.limit]


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(path) > len(namespace):
        return False
    is_suffix = condition.match_type == "suffix"
    part = namespace[len(namespace) - len(path) :] if is_suffix else namespace[: len(path)]
    return all(each in ("*", label) for label, each in zip(part, path, strict=True))
