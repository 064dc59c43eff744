"""What every format of a vendor must begin with, read off the rules: the table of
``smara.core.secret_prefilter_table``.

``python -m tests.unit.secrets.openings`` writes it anew; a test compares. An opening is a
few positions and the bytes that may stand at each; it is looked for by its longest fixed part.
"""

from __future__ import annotations

import re
import re._constants as constants
import re._parser as parser
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from smara.secrets import RULES
from smara.secrets.engine import _encoded_opening

MOST = 40
_EVERY = frozenset(range(256))
_FEW = 6
"""A class of so few bytes is written out: that makes fixed parts longer."""
_CATEGORIES = {
    constants.CATEGORY_DIGIT: rb"\d",
    constants.CATEGORY_WORD: rb"\w",
    constants.CATEGORY_SPACE: rb"\s",
}
_OTHERWISE = (
    "url-password", "url-token-user", "curl-user", "netrc-password", "docker-config-auth",
    "facebook-app-token",
    "pgpass-line",
)  # fmt: skip
Places = list[frozenset[int]]
Entry = tuple[bytes, int, bool, tuple[frozenset[int], ...]]

HEAD = '''"""What formats of vendors begin with, for those who have no time to load the rules; see ``suspicion``.

Written by ``python -m tests.unit.secrets.openings``. An opening is looked for by its fixed part. Then follow how many
bytes stand before that, whether the opening begins a word, and the classes of the bytes before and behind.
"""

'''  # noqa: E501


def openings() -> set[Entry]:
    """The openings of all rules that are not known by a word."""
    found: set[Entry] = set()
    for rule in RULES:
        for keyword in rule.keywords:
            if "(?i" in keyword or rule.name in _OTHERWISE:
                # ``suspicion`` looks for the words, or for the signs of an address with a name
                continue
            for places in _spelled_out(_places(parser.parse(keyword))):
                found.add(_entry(places, rule.is_bounded))
        if encoded := _encoded_opening(rule.literal):
            run = frozenset(map(ord, string.ascii_letters + string.digits + "+/_-"))
            found.add(_entry([*(frozenset({ord(each)}) for each in encoded), *[run] * 8], True))
    return found


def _entry(places: Places, is_bounded: bool) -> Entry:
    at, size = max(_fixed(places), key=lambda each: each[1])
    literal = bytes(next(iter(place)) for place in places[at : at + size])
    return literal, at, is_bounded, (*places[:at], *places[at + size :])


def _fixed(places: Places) -> Iterable[tuple[int, int]]:
    for start in range(len(places)):
        size = 0
        while start + size < len(places) and len(places[start + size]) == 1:
            size += 1
        yield start, size


def _spelled_out(every: Iterable[Places]) -> Iterable[Places]:
    """With small classes as one opening for each of their bytes, as long as there are not too
    many.
    """
    for places in every:
        open_ = [places]
        for number, place in enumerate(places):
            if 1 < len(place) <= _FEW and len(open_) * len(place) <= _FEW:
                open_ = [
                    [*each[:number], frozenset({byte}), *each[number + 1 :]]
                    for each in open_
                    for byte in place
                ]
        yield from open_


def _places(sequence: Any) -> list[Places]:
    """What must stand at the first places, for each way in which a pattern can begin."""
    found: list[tuple[Places, bool]] = [([], True)]
    for operation, value in sequence:
        ways = _step(operation, value)
        found = [
            ((places + more)[:MOST], goes_on) if is_open else (places, False)
            for places, is_open in found
            for more, goes_on in (ways if is_open else [([], False)])
        ]
    return [places for places, _ in found]


def _step(operation: Any, value: Any) -> list[tuple[Places, bool]]:
    if operation is constants.LITERAL:
        return [([frozenset({value})], True)]
    if operation is constants.IN:
        return [([_class(value)], True)]
    if operation is constants.NOT_LITERAL:
        return [([_EVERY - {value}], True)]
    if operation is constants.AT:
        return [([], True)]
    if operation is constants.SUBPATTERN:
        return [(places, True) for places in _places(value[3])]
    if operation is constants.BRANCH:
        return [(places, True) for part in value[1] for places in _places(part)]
    least, most, inner = value
    once = _places(inner)
    if (least, most) == (0, 1):
        return [([], True), *((places, True) for places in once)]
    if len(once) > 1 and least > 1:
        raise AssertionError("a repeated choice")
    return [
        ((places * min(least, MOST))[:MOST], least == most and least * len(places) <= MOST)
        for places in once
    ]


def _class(items: Any) -> frozenset[int]:
    found: set[int] = set()
    is_negated = False
    for operation, value in items:
        if operation is constants.NEGATE:
            is_negated = True
        elif operation is constants.LITERAL:
            found.add(value)
        elif operation is constants.RANGE:
            found.update(range(value[0], value[1] + 1))
        else:
            pattern = re.compile(_CATEGORIES[value])
            found.update(byte for byte in range(256) if pattern.match(bytes([byte])))
    return frozenset(_EVERY - found if is_negated else found)


def module() -> str:
    """The text of the table."""
    entries = sorted(openings(), key=lambda each: (each[0], each[1], list(map(sorted, each[3]))))
    classes = {place: chr(0x41 + number) for number, place in enumerate(_classes(entries))}
    lines = [HEAD, "CLASSES = {\n"]
    lines += [
        f"    {name!r}: {bytes(sorted(place)).decode('latin-1')!r},\n"
        for place, name in classes.items()
    ]
    lines += ["}  # fmt: skip\n\nOPENINGS = (\n"]
    for literal, at, is_bounded, places in entries:
        lines.append(
            f"    ({literal!r}, {at}, {is_bounded}, "
            f"{''.join(classes[each] for each in places)!r}),\n"
        )
    return "".join([*lines, ")  # fmt: skip\n"])


def _classes(entries: Iterable[Entry]) -> list[frozenset[int]]:
    found = {place for each in entries for place in each[3]}
    return sorted(found, key=lambda place: (len(place), sorted(place)))


if __name__ == "__main__":
    (Path(__file__).parents[3] / "src" / "smara" / "core" / "suspicion_table.py").write_text(
        module()
    )
