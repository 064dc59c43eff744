"""The hash of a body: blind to what says nothing, awake to what says something."""

from __future__ import annotations

import ast
import textwrap

import pytest

from smara.codegraph.models import Definition, Language
from smara.codegraph.parse.extract import extract
from smara.codegraph.parse.source import SKETCH_HASHES, likeness, line_hashes, sketch

BODY = """
def total(items, rate=1.5):
    '''Add up.'''
    if items:
        found = [item.price for item in items if item]
        return sum(found) * rate
    return 0
"""


def sketch_of(text: bytes) -> bytes:
    return sketch(line_hashes(text))


def only(source: str, language: Language = "python") -> Definition:
    return extract("a", textwrap.dedent(source).encode(), language).definitions[0]


SAME = {
    "another name": BODY.replace("total", "whole"),
    "comments": BODY.replace(
        "    return 0", "        # here\n    # there\n    return 0  # nothing"
    ),
    "blank lines": BODY.replace("    if items", "\n\n    if items"),
    "double quotes": BODY.replace("'''", '"""'),
    "wider indentation": BODY.replace("    ", "        "),
    "parentheses that say nothing": BODY.replace("if items:", "if (items):").replace(
        "return 0", "return (0)"
    ),
    "lines broken in brackets": BODY.replace(
        "(items, rate=1.5)", "(\n    items,\n    rate=1.5,\n)"
    ),
    "a broken line": BODY.replace(
        "return sum(found) * rate", "return sum(found) \\\n            * rate"
    ),
    "carriage returns": BODY.replace("\n", "\r\n"),
}
OTHER = {
    "another number": BODY.replace("1.5", "1.6"),
    "another docstring": BODY.replace("Add up.", "Add all up."),
    "blanks in a string": BODY.replace("Add up.", "Add  up."),
    "another depth": BODY.replace("    return 0", "        return 0"),
    "brackets that bind": BODY.replace("sum(found) * rate", "(sum(found) + 1) * rate"),
    "another parameter": BODY.replace("items, rate", "items, *, rate"),
    "a decorator": "@cached" + BODY,
}


@pytest.mark.parametrize("source", SAME.values(), ids=SAME.keys())
def test_a_body_that_says_the_same_has_the_same_hash(source: str) -> None:
    assert only(source).body_hash == only(BODY).body_hash


@pytest.mark.parametrize("source", OTHER.values(), ids=OTHER.keys())
def test_a_body_that_says_something_else_has_another_hash(source: str) -> None:
    assert only(source).body_hash != only(BODY).body_hash


@pytest.mark.parametrize(
    "source", [*SAME.values(), *OTHER.values()], ids=[*SAME.keys(), *OTHER.keys()]
)
def test_the_hash_agrees_with_the_syntax_tree_of_the_standard_library(source: str) -> None:
    assert (dump(source) == dump(BODY)) == (only(source).body_hash == only(BODY).body_hash)


def dump(source: str) -> str:
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    function.name = ""
    return ast.dump(function)


def test_brackets_that_bind_differ_from_none() -> None:
    assert (
        only("def f(): return (a + b) * c").body_hash != only("def f(): return a + b * c").body_hash
    )


def test_a_function_keeps_its_hash_when_it_becomes_the_last_method_of_a_class() -> None:
    method = "class Shop:\n    x = 1\n\n" + textwrap.indent(textwrap.dedent(BODY), "    ")
    found = extract("a.py", method.encode(), "python").definitions[-1]
    assert (found.qualname, found.body_hash) == ("Shop.total", only(BODY).body_hash)


def test_a_class_has_another_hash_when_a_method_is_renamed_or_changed() -> None:
    source = (
        "class Shop:\n    def open(self):\n        return 1\n\n    def close(self):\n        "
        "return 2\n"
    )
    hashes = {
        only(each).body_hash
        for each in (source, source.replace("open", "enter"), source.replace("1", "3"))
    }
    assert len(hashes) == 3
    assert only(source.replace("Shop", "Store")).body_hash == only(source).body_hash


def test_layout_and_comments_say_nothing_in_languages_with_braces() -> None:
    one = "function total(a) { return a /* all */ + 1; }"
    assert (
        only(one, "javascript").body_hash
        == only("function sum( a ){\n  return a+1;\n}", "javascript").body_hash
    )
    assert (
        only(one, "javascript").body_hash
        != only("function sum(a) { return a + 2; }", "javascript").body_hash
    )


def test_sketches_say_how_alike_two_bodies_are() -> None:
    lines = [f"    step_{number}()\n" for number in range(10)]
    before, after = (
        sketch_of("".join(lines).encode()),
        sketch_of("".join([*lines[:8], "x\n", "y\n"]).encode()),
    )
    assert likeness(before, before) == 1.0
    assert likeness(before, after) == pytest.approx(8 / 12)
    assert likeness(before, sketch_of(b"nothing alike\n")) == 0.0
    assert likeness(b"", b"") == 1.0
    assert (
        len(sketch_of(b"\n".join(str(number).encode() for number in range(1000))))
        == 4 * SKETCH_HASHES
    )


def test_the_sketch_of_a_class_is_that_of_all_its_lines() -> None:
    methods = "".join(f"    def m{number}(self):\n        return {number}\n" for number in range(9))
    source = f"class Shop:\n{methods}"
    assert only(source).sketch == sketch_of(source.encode())
