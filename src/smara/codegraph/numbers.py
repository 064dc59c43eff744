"""Lists of numbers as bytes, four each and the same on every machine."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from sys import byteorder


def bytes_of(numbers: Iterable[int]) -> bytes:
    """Numbers from 0 to 2³²-1 as bytes.

    >>> bytes_of([1, 258])
    b'\\x01\\x00\\x00\\x00\\x02\\x01\\x00\\x00'
    """
    packed = array("I", numbers)
    if byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def numbers_in(data: bytes) -> array[int]:
    """What was made bytes; an incomplete number at the end is left out."""
    numbers = array("I")
    numbers.frombytes(data[: len(data) // numbers.itemsize * numbers.itemsize])
    if byteorder == "big":
        numbers.byteswap()
    return numbers
