"""Vocabularies: patterns and words that stand in a table beside the code that asks for them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import smara
from smara.core.extract import read_cues

SOURCE = Path(smara.__file__).parent
TABLES = sorted(
    (module, name)
    for module in SOURCE.rglob("*.py")
    for name in re.findall(r'read_cues\(__file__, "([^"]+)"\)', module.read_text("utf-8"))
)


def table(tmp_path: Path, text: str):
    (tmp_path / "table.txt").write_text(text, encoding="utf-8")
    return read_cues(str(tmp_path / "module.py"), "table.txt")


def test_a_line_is_an_alternative_and_an_indented_one_continues_it(tmp_path):
    patterns, words = table(
        tmp_path,
        "# of the table\n\n[pattern: greeting]\nhello\n# of a line\ngood (?:day\n  |night)\n\n"
        "[words: colors]\nred green\nblue\n",
    )
    assert patterns["greeting"].pattern == "hello|good (?:day|night)"
    assert words == {"colors": {"red", "green", "blue"}}


def test_the_kind_of_a_section_says_how_it_is_matched(tmp_path):
    patterns, _ = table(
        tmp_path,
        "[pattern: plain]\n^b\n\n[any case: any]\n^B\n\n[by line: line]\n^b\n\n"
        "[by line, any case: both]\n^B\n",
    )
    assert [name for name, each in patterns.items() if each.search("b")] == [
        "plain", "any", "line", "both",
    ]  # fmt: skip
    assert [name for name, each in patterns.items() if each.search("a\nb")] == ["line", "both"]


def test_a_name_in_braces_stands_for_an_earlier_pattern(tmp_path):
    patterns, _ = table(tmp_path, "[pattern: pet]\ncat\ndog\n\n[pattern: two]\n^{pet} {2}{pet}$\n")
    assert patterns["two"].search("cat  dog")
    assert not patterns["two"].search("cat dog")


@pytest.mark.parametrize(("module", "name"), TABLES, ids=lambda each: getattr(each, "stem", each))
def test_every_pattern_of_a_table_can_be_compiled(module, name):
    patterns, words = read_cues(str(module), name)
    assert all(re.compile(each.pattern, each.flags) for each in patterns.values())
    assert all(words.values())


@pytest.mark.parametrize(
    ("module", "name"), [each for each in TABLES if each[1] == "cues.txt"], ids=lambda each: each
)
def test_every_cue_that_a_room_asks_for_is_in_its_table(module, name):
    patterns, words = read_cues(str(module), name)
    code = "\n".join(path.read_text("utf-8") for path in module.parent.rglob("*.py"))
    assert set(re.findall(r'\bCUES\["([^"]+)"\]', code)) - set(patterns) == set()
    assert set(re.findall(r'\bWORDS\["([^"]+)"\]', code)) - set(words) == set()
