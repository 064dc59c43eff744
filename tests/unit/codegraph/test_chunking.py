"""Files in pieces: every line that says something in exactly one, definitions whole, nothing longer
than its limit.
"""

from __future__ import annotations

import random

import pytest

from smara.codegraph.models import CodeChunk, FileFacts, Language
from smara.codegraph.parse.chunks import (
    ENORMOUS_LINES,
    MOST_CHARACTERS,
    MOST_LINES,
    REST_LINES,
    chunk_file,
)
from smara.codegraph.parse.extract import extract
from tests.unit.codegraph.projects import SOURCES
from tests.unit.codegraph.test_extract import facts_of

SHOP = (
    b'"""A shop."""\n\nimport os\n\nLIMIT = 3\n\n\n'
    b'# Sells things.\nclass Shop:\n    """All day."""\n\n    name = "x"\n\n'
    + b"".join(
        b"    def m%d(self, a):\n        if a:\n            return %d\n\n" % (n, n)
        for n in range(6)
    )
    + b"\ndef last():\n    def inner():\n        return 1\n    return inner\n\n\nif LIMIT:\n    "
    b"last()\n    print(1)\n"
)


def pieces(source: bytes, language: Language = "python") -> tuple[FileFacts, list[CodeChunk]]:
    facts = extract("src/shop.py", source, language)
    return facts, chunk_file(facts, "src/shop.py", source.decode())


def check(text: str, chunks: list[CodeChunk]) -> None:
    """Every line that says something is in one piece, and pieces stand in order with their very
    text.
    """
    lines = text.split("\n")
    covered = [
        number for chunk in chunks for number in range(chunk.first_line, chunk.last_line + 1)
    ]
    assert len(covered) == len(set(covered))
    assert covered == sorted(covered)
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= set(covered)
    for chunk in chunks:
        assert chunk.text == "\n".join(lines[chunk.first_line - 1 : chunk.last_line])


def test_functions_methods_class_heads_and_the_rest_are_pieces() -> None:
    facts, chunks = pieces(SHOP)
    check(SHOP.decode(), chunks)
    told = [(chunk.kind, chunk.name) for chunk in chunks]
    methods = [("function", f"Shop.m{number}") for number in range(6)]
    assert told == [
        ("module", "shop.py"),
        ("class", "Shop"),
        *methods,
        ("function", "last"),
        ("module", "shop.py"),
    ]
    assert chunks[1].text.startswith("# Sells things.\nclass Shop:")
    assert "def inner" in chunks[-2].text
    assert all(
        chunk.definition < 0 or facts.definitions[chunk.definition].qualname == chunk.name
        for chunk in chunks
    )


def test_a_prefix_says_path_class_and_signature() -> None:
    _, chunks = pieces(SHOP)
    assert chunks[2].prefix == "src/shop.py > class Shop > def m0(self, a)"


def test_a_small_class_is_one_piece() -> None:
    _, chunks = pieces(
        b"class Pair:\n    def one(self):\n        return 1\n\n    def two(self):\n        return "
        b"2\n"
    )
    assert [(chunk.kind, chunk.name) for chunk in chunks] == [("class", "Pair")]


@pytest.mark.parametrize("path", SOURCES)
def test_pieces_of_every_language_cover_their_file_and_keep_definitions_whole(path: str) -> None:
    facts, text = facts_of(path), SOURCES[path][0]
    chunks = chunk_file(facts, path.rpartition("/")[2], text)
    check(text, chunks)
    for each in facts.definitions:
        if each.kind in ("function", "method", "test"):
            inside = [
                c
                for c in chunks
                if c.first_line <= each.first_line and each.last_line <= c.last_line
            ]
            opened = any(
                c.definition >= 0 and facts.definitions[c.definition] is each for c in chunks
            )
            assert inside or opened, each.qualname


def test_random_shops_are_covered_and_whole() -> None:
    generator = random.Random(7)
    for _ in range(30):
        parts = []
        for number in range(generator.randrange(12)):
            body = b"        x = 1\n" * generator.randrange(1, 30)
            function = b"def f%d():\n    if 1:\n%s" % (number, body)
            kept = b"class C%d:\n    def m(self):\n%s\n    def n(self):\n%s" % (number, body, body)
            parts.append(generator.choice([b"y = %d\n" % number, function, kept]))
            parts.append(b"\n" * generator.randrange(4))
        source = b"".join(parts)
        facts, chunks = pieces(source)
        check(source.decode(), chunks)
        for each in facts.definitions:
            if each.kind in ("function", "method"):
                assert any(
                    c.first_line <= each.first_line and each.last_line <= c.last_line
                    for c in chunks
                )


def test_no_body_is_split_however_long_it_is() -> None:
    for source in (
        b"def f():\n" + (b"    x = 1\n" * 30 + b"\n") * 300,
        b"def f():\n" + b"    x = 123456789\n" * 9_000,
    ):
        _, chunks = pieces(source)
        check(source.decode(), chunks)
        assert [chunk.name for chunk in chunks] == ["f"]


def test_an_enormous_function_is_cut_only_where_those_inside_of_it_begin_and_end() -> None:
    inner = b"    def %s():\n" + b"        x = 1\n" * 300
    source = (
        b"def f():\n    y = 1\n    z = 2\n    a = 3\n"
        + inner % b"one"
        + inner % b"two"
        + b"    return one\n" * 3
    )
    _, chunks = pieces(source)
    check(source.decode(), chunks)
    assert [(chunk.name, chunk.first_line, chunk.last_line) for chunk in chunks] == [
        ("f", 1, 4),
        ("f.one", 5, 305),
        ("f.two", 306, 606),
        ("f", 607, 609),
    ]
    small = b"def f():\n" + b"    def inner():\n        x = 1\n" * (ENORMOUS_LINES // 3)
    assert [chunk.name for chunk in pieces(small)[1]] == ["f"]


def test_two_definitions_on_one_line_stay_together() -> None:
    source = b"function a() {\n  one();\n} function b() {\n  two();\n}\n"
    facts = extract("a.js", source, "javascript")
    chunks = chunk_file(facts, "a.js", source.decode())
    check(source.decode(), chunks)
    assert [(chunk.first_line, chunk.last_line) for chunk in chunks] == [(1, 5)]


def test_what_stands_outside_of_definitions_is_bounded() -> None:
    source = b"".join(b"x%d = %d\n" % (number, number) for number in range(1000))
    _, chunks = pieces(source)
    check(source.decode(), chunks)
    assert all(
        chunk.last_line - chunk.first_line < REST_LINES and chunk.kind == "module"
        for chunk in chunks
    )


def test_a_line_without_end_is_cut_by_characters_and_nothing_is_lost() -> None:
    text = "x" * 200_000
    chunks = chunk_file(None, "a.json", text)
    assert "".join(chunk.text for chunk in chunks) == text
    assert max(len(chunk.text) for chunk in chunks) == MOST_CHARACTERS


def test_prose_is_cut_at_its_headings_but_not_inside_code() -> None:
    text = "# Shop\n\nAll about it.\n\nMore.\n\n## Open\n\n```sh\n# not a heading\n```\n\nDone.\n\n"
    text += "## Close\n\nOne.\nTwo.\n"
    chunks = chunk_file(None, "docs/shop.md", text)
    check(text, chunks)
    assert [chunk.name for chunk in chunks] == ["Shop", "Shop > Open", "Shop > Close"]
    assert chunks[1].prefix == "docs/shop.md > Shop > Open"


def test_underlined_titles_are_headings_and_tables_are_not() -> None:
    text = "Shop\n====\n\nAll about it.\nMore.\n\nOpen\n----\n\na | b\n-----\n1 | 2\n\nDone.\n"
    chunks = chunk_file(None, "shop.rst", text)
    check(text, chunks)
    assert [chunk.name for chunk in chunks] == ["Shop", "Shop > Open"]


def test_data_and_long_prose_come_in_bounded_pieces() -> None:
    for path in ("a.csv", "a.txt"):
        text = "".join(f"row {number}\n" for number in range(1050))
        chunks = chunk_file(None, path, text)
        check(text, chunks)
        assert all(
            chunk.kind == "prose" and chunk.last_line - chunk.first_line < MOST_LINES
            for chunk in chunks
        )


def test_blank_files_have_no_pieces() -> None:
    for text in ("", "\n\n", "   \n\t\n"):
        assert chunk_file(None, "a.txt", text) == []
        assert chunk_file(extract("a.py", text.encode(), "python"), "a.py", text) == []


def test_fixtures_are_found() -> None:
    assert len(SOURCES) >= 9
