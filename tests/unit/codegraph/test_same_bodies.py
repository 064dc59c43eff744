"""Bodies that say the same have one hash, wherever they stand and however they are written."""

from __future__ import annotations

import pytest

from smara.codegraph.anchors.disk import places_of

NESTED = """\
def f(x):
    if x:
        for y in x:
            if y:
                return 1
            # a word at the end of a block

    # and another
    return 2
"""


def hash_of(text, name="f"):
    [found] = [place.hash for place in places_of("a.py", text.encode()) if place.symbol == name]
    return found


@pytest.mark.parametrize(
    "around",
    [
        "",
        "import os\n\n\n",
        "def before():\n    if 1:\n        pass\n    # x\n\n\n",
        "X = [\n    1,\n]\n\n\n",
    ],
)
def test_where_a_function_stands_does_not_matter(around):
    assert hash_of(around + NESTED) == hash_of(NESTED)
    assert hash_of(around + NESTED + "\n\n# the end\n\n\ndef after():\n    pass\n") == hash_of(
        NESTED
    )


def test_comments_between_the_ends_of_blocks_do_not_matter():
    plain = "\n".join(line for line in NESTED.split("\n") if "# " not in line)
    assert hash_of(plain) == hash_of(NESTED)


def test_which_block_a_line_belongs_to_does_matter():
    assert hash_of(NESTED.replace("    return 2", "        return 2")) != hash_of(NESTED)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('r"""A \\*\\*star."""', '"""A \\*\\*star."""', True),
        ("r'plain'", '"plain"', True),
        ('r"a\\n"', '"a\\n"', False),
        ('b"x"', '"x"', False),
        ('f"x"', '"x"', False),
    ],
)
def test_a_raw_string_says_what_a_plain_one_says_unless_something_is_escaped(one, other, is_same):
    assert (
        hash_of(f"def f():\n    return {one}\n") == hash_of(f"def f():\n    return {other}\n")
    ) is is_same
