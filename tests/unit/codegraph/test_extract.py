"""What each language's files say: every fixture beside the facts that are expected of it."""

from __future__ import annotations

import pytest

from smara.codegraph.language import language_of, languages
from smara.codegraph.models import FileFacts
from smara.codegraph.parse.extract import extract
from smara.core.paths import is_test_path
from tests.unit.codegraph.projects import SOURCES


def rendered(facts: FileFacts) -> str:
    """Return facts one on a line, places counted from 0, the file itself as -1."""
    lines = [f"file {facts.language} lines={facts.lines} package={facts.package!r}"]
    for place, each in enumerate(facts.definitions):
        span = f"{each.first_line}-{each.last_line}"
        lines.append(
            f"{place} {each.kind} {each.qualname} {span} in {each.parent} | {each.signature} | "
            f"{each.doc}"
        )
    for found in facts.imports:
        export = " exported" if found.is_export else ""
        names = (
            f"module={found.module!r} name={found.name!r} alias={found.alias!r} level={found.level}"
        )
        lines.append(f"import {names} line={found.line} in {found.scope}{export}")
    lines += [
        f"{use.kind} {use.name} of {use.receiver!r} line={use.line} in {use.scope}"
        for use in facts.references
    ]
    lines += [
        f"binding {each.name}: {each.type or 'unknown'} in {each.scope}" for each in facts.bindings
    ]
    return "\n".join(lines) + "\n"


def facts_of(path: str) -> FileFacts:
    language = language_of(path)
    assert language is not None
    return extract(path, SOURCES[path][0].encode(), language)


@pytest.mark.parametrize("path", SOURCES)
def test_a_fixture_says_what_is_expected_of_it(path: str) -> None:
    facts = facts_of(path)
    found = rendered(facts)
    assert found == SOURCES[path][1], f"read from {path}:\n{found}"
    assert not facts.has_errors


def test_every_language_has_a_fixture() -> None:
    assert {language_of(path) for path in SOURCES} == set(languages())


@pytest.mark.parametrize("path", SOURCES)
def test_reading_a_file_twice_gives_the_same_facts_in_the_same_order(path: str) -> None:
    assert facts_of(path) == facts_of(path)


def test_a_definition_lies_within_the_one_around_it_and_spans_are_those_of_the_text() -> None:
    data = SOURCES["python/shop.py"][0].encode()
    facts = facts_of("python/shop.py")
    for each in facts.definitions:
        text = data[each.first_byte : each.last_byte].decode()
        assert text.count("\n") == each.last_line - each.first_line
        if each.parent >= 0:
            around = facts.definitions[each.parent]
            assert around.first_byte <= each.first_byte <= each.last_byte <= around.last_byte


def test_a_method_that_stands_before_its_type_still_finds_it() -> None:
    facts = extract("a.go", b"package a\nfunc (s *Shop) Open() {}\ntype Shop struct{}\n", "go")
    assert [(each.qualname, each.parent) for each in facts.definitions] == [
        ("Shop.Open", 1),
        ("Shop", -1),
    ]


def test_functions_named_test_are_tests_only_in_test_files() -> None:
    source = b"def test_opens(): pass\n"
    assert extract("src/shop.py", source, "python").definitions[0].kind == "function"
    assert extract("tests/test_shop.py", source, "python").definitions[0].kind == "test"


def test_a_long_chain_has_an_unknown_receiver_not_an_empty_one() -> None:
    source = b"x = a" + b".then(call)" * 100 + b"\n"
    used = {
        use.receiver for use in extract("a.py", source, "python").references if use.name == "then"
    }
    assert "" not in used
    assert "?" in used


@pytest.mark.parametrize(
    ("path", "first_line", "language"),
    [
        ("a/b.py", b"", "python"),
        ("a/b.d.ts", b"", "typescript"),
        ("B.TSX", b"", "tsx"),
        ("bin/run", b"#!/usr/bin/env python3\n", "python"),
        ("bin/run", b"#!/usr/bin/node\n", "javascript"),
        ("bin/run", b"#!/bin/sh\n", None),
        ("a/b.hpp", b"", "cpp"),
        (".py", b"", None),
        ("README.md", b"", None),
    ],
)
def test_a_language_is_told_by_name_or_first_line(
    path: str, first_line: bytes, language: str | None
) -> None:
    assert language_of(path, first_line) == language


def test_a_header_with_classes_is_cpp_and_one_without_is_c() -> None:
    assert language_of("shop.h", b"class Shop {\n public:\n};\n") == "cpp"
    assert (
        language_of("shop.h", b"struct shop { int doors; };\nint open(struct shop *self);\n") == "c"
    )


def test_tests_are_told_by_their_path() -> None:
    assert all(
        map(
            is_test_path,
            ("tests/a.py", "a/test_b.py", "a/b_test.go", "b.spec.ts", "src/ShopTest.java"),
        )
    )
    assert not any(map(is_test_path, ("src/latest/a.py", "contest.py", "a/testimony.py")))


def test_comments_are_no_part_of_a_signature() -> None:
    python = (
        b"class X(Y):  # type: ignore[misc]\n    def f(  # the first\n        self, a: int,  "
        b"# how many\n    ): ...\n"
    )
    script = (
        b"export function load(path: string /* of a file */, /* more */ deep = 1) { return 1 }\n"
    )
    assert [each.signature for each in extract("x.py", python, "python").definitions] == [
        "class X(Y)",
        "def f( self, a: int, )",
    ]
    assert extract("x.ts", script, "typescript").definitions[0].signature == (
        "function load(path: string , deep = 1)"
    )
