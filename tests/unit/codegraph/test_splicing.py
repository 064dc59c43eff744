"""A changed file is read around what is as it was; what comes of it is what reading all of it would
give.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import smara.codegraph
from smara.codegraph.codec import pack_facts, unpack_facts
from smara.codegraph.parse import extract as extracting
from smara.codegraph.parse import incremental
from smara.codegraph.parse.extract import extract

SHOP = b'''"""A shop."""
import os
from tea import brew, Cup as Mug


class Shop:
    """Sells."""

    def __init__(self, tea: Mug):
        self.tea = tea
        self.open = Door()

    @property
    def price(self):
        return (self.tea.price +
                2)  # with tip

    def sell(self, path):
        for each in path:
            if each:
                brew(each)
        # nothing left


def count(shop: Shop) -> int:
    return len(helper(shop))


@app.route("/cups")
def cups():
    return Mug()


def last():
    return count
'''
INSERTED = (
    b"\n", b"    x = 1\n", b"def added():\n    return 1\n", b"'''", b'"""', b"(", b")", b"@dec\n",
        b"import os\n",
    b"class A:\n    def f(self):\n        self.x = foo()\n", b"from a import b as c\n",
        b"# comment\n", b"else:\n",
    b"        # deep comment\n", b"    pass\n", b"x = [\n", b"]\n", b"\\\n", b"if x:\n", b"\t",
        b" ", b"async ",
    b"self",
    b"    def test_it(self, os):\n        return os.path\n", b"@app.route('/x')\ndef r(): pass\n",
        b"app.get('/y')\n",
    b"return", b"\r\n", b"    @property\n", b"\xc3\xa9 = 1\n", b"urlpatterns = [path('x', f)]\n",
)  # fmt: skip


def alike(facts):
    """Facts as they are compared: in which order bindings are told does not matter, nor what was
    taken over.
    """
    return facts._replace(bindings=tuple(sorted(facts.bindings)), taken=())


def read_again(before: bytes, after: bytes):
    """What a changed text says, read around what is as it was; after seeing that it is the same as
    read whole.
    """
    found = extract(
        "shop/shop.py", after, "python", before=extract("shop/shop.py", before, "python")
    )
    assert alike(found) == alike(extract("shop/shop.py", after, "python"))
    return found


def taken(facts) -> list[str]:
    return [facts.definitions[each.place].qualname for each in facts.taken]


def edited(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        lines = data.splitlines(keepends=True)
        place, size = rng.randrange(len(lines) + 1), rng.randrange(1, 12)
        kind = rng.random()
        if kind < 0.4:
            lines.insert(place, rng.choice(INSERTED))
        elif kind < 0.55:
            del lines[place : place + size]
        elif kind < 0.7:
            cut = lines[place : place + size]
            del lines[place : place + size]
            other = rng.randrange(len(lines) + 1)
            lines[other:other] = cut
        elif kind < 0.9 and place < len(lines):
            lines[place] = rng.choice(
                (b"    " + lines[place], lines[place].lstrip(), lines[place][1:])
            )
        else:
            lines.append(b"\n\ndef added_%d():\n    return 1\n" % size)
        data = b"".join(lines)
    return data


@pytest.mark.parametrize("seed", range(6))
def test_after_any_edits_a_file_read_around_what_stayed_says_what_it_says_read_whole(seed):
    rng = random.Random(seed)
    here = Path(smara.codegraph.__file__).parent
    texts = [SHOP * 2, *(file.read_bytes() for file in rng.sample(sorted(here.glob("*.py")), 5))]
    count = 0
    for text in texts:
        before = extract("shop/shop.py", text, "python")
        for _ in range(10):
            changed = edited(rng, text)
            found = extract("shop/shop.py", changed, "python", before=before)
            assert alike(found) == alike(extract("shop/shop.py", changed, "python"))
            count += bool(found.taken)
            if not found.has_errors:
                text, before = changed, found
    assert count > 4


def test_what_did_not_change_is_taken_over_and_keeps_its_place_below_what_is_new():
    found = read_again(SHOP, SHOP.replace(b"class Shop:", b"LIMIT = 3\n\n\nclass Shop:"))
    assert taken(found) == ["Shop", "count", "cups", "last"]
    assert [each.down for each in found.taken] == [3, 3, 3, 3]


def test_in_a_class_that_changed_the_other_methods_are_taken_over():
    found = read_again(SHOP, SHOP.replace(b"brew(each)", b"brew(each, 2)"))
    assert taken(found) == ["Shop.price", "count", "cups", "last"]


def test_a_method_that_gives_a_field_its_type_is_read_again_with_its_class():
    assert "Shop.__init__" not in taken(read_again(SHOP, SHOP.replace(b"with tip", b"with a tip")))


def test_what_mentions_a_name_that_is_new_is_read_again():
    found = read_again(SHOP, SHOP + b"\n\ndef path(): pass\n")
    assert taken(found) == ["Shop.price", "count", "cups"]
    assert ("path", "") in {(each.name, each.type) for each in found.bindings}


def test_a_route_in_what_was_taken_over_is_still_one():
    found = read_again(SHOP, SHOP.replace(b"helper", b"helpers"))
    assert "cups" in taken(found)
    assert found.definitions[-1].name == "/cups"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"import os\n", b"import os\ntext = '''\n"),
        (b"def last():", b"@cached\ndef last():"),
        (b"class Shop:", b"class Store:"),
        (b"class Shop:", b"def Shop():"),
        (b"def count(", b"x = (\ndef count("),
        (b"import os\n", b"import os, \\\n"),
        (b"        # nothing left\n", b"        more()\n"),
        (b"\n\ndef count(", b"\n\n    def count("),
        (b"from tea import brew, Cup as Mug", b"from tea import *"),
    ],
)
def test_a_change_that_reaches_into_what_did_not_change_is_seen(old, new):
    assert old in SHOP
    read_again(SHOP, SHOP.replace(old, new))


def test_what_was_noted_of_definitions_is_read_back():
    facts = extract("shop/shop.py", SHOP, "python")
    found = unpack_facts(pack_facts(facts))
    assert found is not None
    assert (found.units, found.size) == (facts.units, len(SHOP))
    assert [each[:8] for each in found.definitions] == [each[:8] for each in facts.definitions]


def test_taking_over_what_mentions_a_new_name_would_be_caught(monkeypatch):
    monkeypatch.setattr(incremental, "in_doubt", lambda *_: [])
    with pytest.raises(AssertionError):
        read_again(
            SHOP, SHOP + b"\n\ndef helper(): pass\n\n\nshop = helper\n" + b"def each(): pass\n"
        )
        read_again(SHOP, SHOP.replace(b"def last():\n    return count\n", b"") + b"\n")
        read_again(SHOP.replace(b"def count(", b"def amount("), SHOP)


def test_taking_over_what_only_looks_like_a_statement_would_be_caught(monkeypatch):
    monkeypatch.setattr(extracting.incremental, "stand_alone", lambda *_: True)
    swallowed = SHOP.replace(b"def count(", b"'''\ndef count(").replace(
        b"def last(", b"# '''\ndef last("
    )
    with pytest.raises(AssertionError):
        read_again(SHOP, swallowed)
