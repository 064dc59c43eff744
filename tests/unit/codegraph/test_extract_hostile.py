"""Whatever bytes a file holds, reading it ends, raises nothing and tells what can be told."""

from __future__ import annotations

import random
import threading

import pytest

from smara.codegraph.index.workers import taken_apart
from smara.codegraph.language import languages
from smara.codegraph.models import FileFacts, Language
from smara.codegraph.parse.chunks import chunk_file
from smara.codegraph.parse.extract import extract
from tests.unit.codegraph.projects import SOURCES

DEEP = 100_000
NESTED = {
    "open brackets": b"(" * DEEP,
    "closed brackets": b"x = " + b"(" * DEEP + b")" * DEEP,
    "lists": b"[" * DEEP + b"]" * DEEP,
    "blocks": b"{" * DEEP + b"}" * DEEP,
    "assignments": b"a=" * DEEP + b"1",
    "calls in calls": b"f(" * DEEP + b")" * DEEP,
    "a long chain": b"a" + b".b()" * 10_000,
}
ODD = {
    "nothing": b"",
    "one blank": b" ",
    "NUL": b"\0" * 1000,
    "a lone mark": b"\xff\xfe\x00",
    "half a character": b"def f(): '\xc3",
    "surrogates": b"\xed\xa0\x80 def f(): pass",
    "a megabyte on one line": b'x = "' + b"a" * 1_000_000 + b'"',
    "a long name": b"a" * 1_000_000,
    "carriage returns only": b"def f(): pass\rx = 1\r",
    "unclosed string": b'"""' + b"x\n" * 1000,
    "unclosed comment": b"/* " + b"x\n" * 1000,
    "half a class": b"class Shop:\n    def open(self",
    "many attributes": b"#[a]\n" * 2000 + b"fn f() {}",
    "pointers to pointers": b"int " + b"*" * 5000 + b"f() {}",
}
FACTS = {
    "python": (b"def kept():\n    return 1\n\n\n%s\n", "kept"),
    "javascript": (b"function kept() { return 1; }\n\n%s\n", "kept"),
    "go": (b"package a\n\nfunc kept() int { return 1 }\n\n%s\n", "kept"),
}


def read(data: bytes, language: Language) -> FileFacts:
    text = data.decode("utf-8", "replace").replace("\0", " ")
    facts = extract("src/a", text.encode(), language)
    assert facts.lines == len(text.split("\n")) - (text.endswith("\n") or not text)
    for place, each in enumerate(facts.definitions):
        assert 0 <= each.first_byte <= each.last_byte <= len(text.encode())
        assert 1 <= each.first_line <= each.last_line <= max(1, facts.lines)
        assert -1 <= each.parent < len(facts.definitions)
        assert each.parent != place
        assert len(each.signature) <= 240
        assert len(each.doc) <= 160
        assert len(each.sketch) <= 64
    for use in facts.references:
        assert use.name
        assert -1 <= use.scope < len(facts.definitions)
        assert use.line >= 1
    chunk_file(facts, "src/a", text)
    return facts


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("data", NESTED.values(), ids=NESTED.keys())
def test_deep_nesting_overflows_nothing(data: bytes, language: Language) -> None:
    read(data, language)


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_odd_bytes_are_read_as_far_as_they_can_be(data: bytes, language: Language) -> None:
    read(data, language)


@pytest.mark.parametrize("language", languages())
def test_random_bytes_and_random_punctuation_raise_nothing(language: Language) -> None:
    generator = random.Random(language)
    for _ in range(20):
        read(generator.randbytes(2_000), language)
        read(bytes(generator.choices(b"(){}[]<>;:,.\n\"'`#/*=@ abcdef", k=2_000)), language)


@pytest.mark.parametrize("language", FACTS)
def test_what_stands_before_an_error_is_still_told(language: Language) -> None:
    source, name = FACTS[language]
    for rubbish in (b")))]]]}}}", b"\xc2\xac " * 50, b"class {{{ def ((("):
        facts = read(source % rubbish, language)
        assert facts.has_errors
        assert name in [each.name for each in facts.definitions]


@pytest.mark.parametrize(
    "path", ["python/shop.py", "rust/shop.rs", "typescript/shop.ts", "cpp/shop.cpp"]
)
def test_a_file_cut_off_anywhere_is_read(path: str) -> None:
    data = SOURCES[path][0].encode()
    language: Language = path.partition("/")[0]  # type: ignore[assignment]
    for end in range(0, len(data), 23):
        read(data[:end], language)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_an_encoding_changes_nothing_but_the_bytes(encoding: str) -> None:
    source = 'def prüfe():\n    return "ä"\n'
    plain = taken_apart("a.py", source.encode()).facts
    assert taken_apart("a.py", source.encode(encoding)).facts == plain
    assert plain is not None
    assert plain.definitions[0].name == "prüfe"


def test_line_ends_of_any_kind_give_the_same_lines() -> None:
    source = b"x = 1\n\n\ndef f():\n    return 1\n"
    spans = {
        tuple(
            (each.name, each.first_line, each.last_line)
            for each in extract("a.py", data, "python").definitions
        )
        for data in (source, source.replace(b"\n", b"\r\n"))
    }
    assert spans == {(("x", 1, 1), ("f", 4, 5))}


def test_definitions_nested_beyond_reason_are_left_out() -> None:
    source = b"".join(b" " * depth + b"def f():\n" for depth in range(300)) + b" " * 300 + b"pass\n"
    facts = read(source, "python")
    assert 0 < len(facts.definitions) < 100


def test_threads_read_side_by_side() -> None:
    source = b"".join(b"def f%d(a):\n    return g(a)\n" % number for number in range(50))
    expected = extract("a.py", source, "python")
    results: list[FileFacts] = []
    threads = [
        threading.Thread(
            target=lambda: results.extend(extract("a.py", source, "python") for _ in range(5))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 20
