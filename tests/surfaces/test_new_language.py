"""A language is one module and its query: an invented one works at every door, half of one is
refused by its name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import smara as library
from smara.codegraph import language, languages
from smara.codegraph.index import workers
from smara.codegraph.index.workers import Pool
from smara.errors import ConfigError
from tests.surfaces.shell import smara

BREW = '''"""Brew: files named by the module, read by Python's grammar."""

import re

from smara.codegraph.language import LanguageSpec
from smara.codegraph.resolve.rules import LanguageRules


class BrewRules(LanguageRules):
    own_names = frozenset({"me"})

    def find_module(self, outline, imported):
        return self.file(f"{imported.module}.brew")


def read_imports(text):
    _, module, _, names = text.split(" ", 3)
    for name in names.split(","):
        yield module, name.strip(), "", 0, False


LANGUAGES = (
    LanguageSpec(
        name="brew",
        extensions=("brew",),
        shebangs=("brewer",),
        grammar=("tree_sitter_python", "language"),
        queries=("brew",),
        rules=BrewRules,
        read_imports=read_imports,
        selves=frozenset({"me"}),
        test_names=re.compile("check"),
        entry_files=(("start.brew", "the first cup"),),
    ),
)
'''
QUERY = """
(class_definition) @class
(function_definition) @function
(import_from_statement) @import
(call function: [(identifier) (attribute)] @call)
(comment) @comment
"""
TREE = {
    "kettle.brew": "# Water that boils.\ndef boil(water):\n    return water\n",
    "cup.brew": "from kettle import boil\n\n\ndef fill():\n    return boil(1)\n",
    "start.brew": "from cup import fill\n\n\ndef serve():\n    return fill()\n",
    "tests/test_kettle.brew": "from kettle import boil\n\n\ndef check():\n    boil(2)\n",
}


def forget_languages() -> None:
    language.languages.cache_clear()
    language.tables.cache_clear()


@pytest.fixture
def add_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], None]]:
    folder = tmp_path / "languages"
    folder.mkdir()

    def add(module: str, query: str) -> None:
        (folder / "brew.py").write_text(module, encoding="utf-8")
        (folder / "brew.scm").write_text(query, encoding="utf-8")
        monkeypatch.setattr(languages, "__path__", [*languages.__path__, str(folder)])
        monkeypatch.delitem(sys.modules, f"{languages.__name__}.brew", raising=False)
        forget_languages()

    yield add
    monkeypatch.undo()
    forget_languages()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = (tmp_path / "tree").resolve()
    for path, text in TREE.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


def test_an_invented_language_is_indexed_asked_about_and_searched(db, root, add_language):
    add_language(BREW, QUERY)
    with library.open(db, embedder="off") as memory:
        report = memory.code.index(root)
        assert (report.indexed, report.skipped) == (4, {})
        assert memory.code.status(root).languages == {"brew": 4}
        assert [node.label for node in memory.code.asking().find("boil")] == ["kettle.brew:boil"]
        callers = {each.node.label for each in memory.code.asking().callers("boil").reached}
        assert callers == {"cup.brew:fill", "tests/test_kettle.brew:check"}
        reached = {each.node.label for each in memory.code.asking().impact("boil").reached}
        assert {"cup.brew:fill", "start.brew:serve"} <= reached
        assert [each.node.path for each in memory.code.asking().tests_for("boil").reached] == [
            "tests/test_kettle.brew"
        ]
        assert [each.why for each in memory.code.asking().entry_points()] == ["the first cup"]
        hits = memory.search("water that boils", sources=["code"]).hits
        assert hits[0].metadata["path"] == "kettle.brew"


def test_an_invented_language_is_answered_for_at_the_command_line(db, root, add_language):
    add_language(BREW, QUERY)
    assert smara("code", "index", "--json").data["indexed"] == 4
    found = smara("code", "callers", "fill", "--json").data
    assert [each["name"] for each in found["reached"]] == ["start.brew:serve"]


def test_a_saved_file_of_an_invented_language_is_read_again(db, root, add_language):
    add_language(BREW, QUERY)
    with library.open(db, embedder="off") as memory:
        memory.code.index(root)
        (root / "cup.brew").write_text("from kettle import boil\n\nboil(3)\n", encoding="utf-8")
        memory.code.update(["cup.brew"], root)
        assert "cup.brew" in {
            each.node.label for each in memory.code.asking().callers("boil").reached
        }


def test_a_first_line_names_an_invented_language(add_language):
    add_language(BREW, QUERY)
    assert language.language_of("bin/tea", b"#!/usr/bin/env brewer\nboil(1)\n") == "brew"
    assert language.language_of("bin/tea", b"#!/usr/bin/env python3.12\n") == "python"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("        rules=BrewRules,\n", "has no rules"),
        ("        read_imports=read_imports,\n", "has no reader of imports"),
        ('        grammar=("tree_sitter_python", "language"),\n', "has no grammar"),
    ],
)
def test_a_language_without_a_part_is_refused_by_name(db, root, add_language, line, reason):
    add_language(BREW.replace(line, ""), QUERY)
    with library.open(db, embedder="off") as memory:
        with pytest.raises(ConfigError, match=f"'brew'.*{reason}"):
            memory.code.index(root)
        assert memory.code.status(root).state == "none"
    refused = smara("code", "status")
    assert refused.code == 5
    assert "The language 'brew'" in refused.err
    findings = smara("doctor", "--json").data["findings"]
    [problem] = [each for each in findings if each["check"] == "languages"]
    assert problem["level"] == "problem"
    assert "No code can be indexed: The language 'brew'" in problem["text"]
    assert reason in problem["text"]


def test_the_doctor_has_nothing_to_say_of_whole_languages(db, root, add_language):
    add_language(BREW, QUERY)
    assert smara("code", "status", "--json").code == 0
    findings = smara("doctor", "--json").data["findings"]
    assert not [each for each in findings if each["check"] == "languages"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("tree_sitter_python", "tree_sitter_brew", "needs the grammar tree_sitter_brew"),
        ('queries=("brew",)', 'queries=("tea",)', "has no query. Put tea.scm"),
        ('extensions=("brew",)', 'extensions=("py",)', "claims the name or the ending 'py'"),
    ],
)
def test_a_language_with_a_wrong_part_is_refused_by_name(add_language, old, new, reason):
    add_language(BREW.replace(old, new), QUERY)
    with pytest.raises(ConfigError, match=f"'(?:brew|python)'.*{reason}"):
        language.languages()


def test_a_bug_in_a_language_is_not_shown_as_an_unreadable_file(db, root, add_language):
    add_language(BREW.replace("text.split", "{}[text].split"), QUERY)
    with library.open(db, embedder="off") as memory, pytest.raises(KeyError):
        memory.code.index(root)


def test_a_bug_in_a_worker_process_ends_the_run_with_its_traceback(root):
    with Pool(str(root), count=1) as pool, pytest.raises(RuntimeError, match="AttributeError"):
        list(pool.work(["a text where a request belongs"]))


def test_what_the_content_of_a_file_raises_leaves_out_that_file_alone(db, root, add_language):
    add_language(BREW.replace("text.split", "text.encode('latin-1').decode().split"), QUERY)
    (root / "bad.brew").write_text("from ünder import pressure\n", encoding="utf-8")
    with library.open(db, embedder="off") as memory:
        assert memory.code.index(root).skipped == {"unreadable": 1}
    assert KeyError not in workers.BAD_FILE_ERRORS
