"""Group items by a key; make a record a sequence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import ClassVar, TypeVar, overload

KeyT = TypeVar("KeyT", bound=Hashable)
T = TypeVar("T")


def grouped(pairs: Iterable[tuple[KeyT, T]]) -> dict[KeyT, list[T]]:
    """Return the items of each key, in the order of the pairs.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[KeyT, list[T]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups


class Items(Sequence[T]):
    """A sequence of what one field of a dataclass holds."""

    __slots__ = ()
    _FIELD: ClassVar[str]
    """Its name."""

    def _items(self) -> Sequence[T]:
        items: Sequence[T] = getattr(self, self._FIELD)
        return items

    def __len__(self) -> int:
        return len(self._items())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items()[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._items())
