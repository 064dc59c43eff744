"""Make a record behave as the sequence of one of its fields."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class Items(Sequence[T]):
    """A sequence of what one of its fields holds."""

    __slots__ = ()

    @abstractmethod
    def _items(self) -> Sequence[T]:
        """That field."""

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
