"""Short ids: a few characters that people and agents can say, drawn from a UUID.

The characters are the beginning of a hash of the UUID, so two people who work apart make
different ones, and a collision is met by taking more of the same hash. How many are taken
follows how many there are: the chance of any collision stays below one in two hundred.
"""

from __future__ import annotations

import hashlib

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o and u, which are misread
SHORTEST = 4
SHORTEST_PREFIX = 3
"""Fewer characters of an id are not looked up."""


def length_for(count: int) -> int:
    """How many characters keep the chance of a collision among so many under 0.5 %.

    By the birthday bound, count² / (2 · 32ⁿ) ≤ 0.005.

    >>> [length_for(n) for n in (1, 100, 500, 3_000, 20_000, 100_000)]
    [4, 4, 5, 6, 8, 8]
    """
    length = SHORTEST
    while count * count > 0.01 * 32**length:
        length += 1
    return length


def code_of(uuid: str, length: int) -> str:
    """The first characters of the hash of a UUID."""
    number = int.from_bytes(hashlib.sha256(uuid.encode("utf-8", "surrogatepass")).digest(), "big")
    characters = []
    for _ in range(length):
        characters.append(ALPHABET[number & 31])
        number >>= 5
    return "".join(characters)


def key_of(short_id: str) -> str:
    """A short id as it is looked up: however it is written."""
    return short_id.casefold()


def bare_key_of(short_id: str) -> str:
    """A short id without what stands before its last hyphen.

    >>> bare_key_of("t-K3F9"), bare_key_of("my-app-i2n"), bare_key_of("plain")
    ('k3f9', 'i2n', 'plain')
    """
    return key_of(short_id).rpartition("-")[2]
