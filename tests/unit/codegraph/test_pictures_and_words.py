"""Pictures of an impact, entry points in manifests, and what files say of themselves."""

from __future__ import annotations

import pytest

from smara.codegraph.impact import draw, dress, walk
from smara.codegraph.modules import first_sentence
from smara.codegraph.parse.chunks import first_words
from smara.codegraph.structure import declared, hot_spots
from tests.unit.codegraph.graphs import drawn


def impact_of(whole, target: str):
    places = whole.places(target)
    return dress(
        whole.graph,
        places,
        3,
        steps=walk(whole.graph, places, depth=3, limit=9, is_backward=True),
        fetch=whole.fetch,
    )


HOSTILE = 'a"]; evil\n<b>.py'


def pictured(picture: str, path: str = "src/a.py") -> str:
    whole = drawn([(path, ["f"]), ("b.py", ["g"])], [("b.py:g", "calls", f"{path}:f", 0.5)])
    return draw(impact_of(whole, f"{path}:f"), picture)


def test_dot_has_files_as_boxes_and_unsure_steps_dashed():
    text = pictured("dot")
    assert text.startswith("digraph impact {")
    assert 'label="src/a.py"' in text
    assert 'n19 -> n13 [label="calls", style=dashed];' in text
    assert text.count("{") == text.count("}")


def test_mermaid_has_files_as_boxes_and_unsure_steps_dashed():
    text = pictured("mermaid")
    assert 'subgraph f1["src/a.py"]' in text
    assert "n19 -.->|calls| n13" in text
    assert "style n13 fill" in text


def test_names_cannot_break_out_of_a_picture():
    assert '"a\\"]; evil <b>.py"' in pictured("dot", HOSTILE)
    assert "evil" in pictured("mermaid", HOSTILE)
    assert '"];' not in pictured("mermaid", HOSTILE)


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("pyproject.toml", '[project.scripts]\na = "pkg.cli:main"\n', [("pkg/cli", "main")]),
        ("sub/pyproject.toml", '[project.gui-scripts]\na = "pkg:App.run"\n', [("sub/pkg",
        "App.run")]),
        ("pyproject.toml", "[project\nbroken", []),
        ("pyproject.toml", "project = 3", []),
        ("setup.cfg", "[options.entry_points]\nx =\n  a = pkg.cli:main\n[x]\nb = c:d\n",
        [("pkg/cli", "main")]),
        ("package.json", '{"bin": {"x": "./bin/x.js"}, "main": "lib/index.js"}', [("bin/x", ""),
        ("lib/index", "")]),
        ("package.json", '{"bin": 7}', []),
        ("package.json", "[", []),
    ],
)  # fmt: skip
def test_manifests_name_entries_and_broken_ones_name_none(path, text, found):
    assert [(module, name) for module, name, _ in declared([(path, text)])] == found


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("a.py", '#!/usr/bin/env python\n"""Keeps it.\n\nMore."""\n', "Keeps it."),
        ("a.py", '"""\nThe Shop\n~~~~~~~~\n\nSells things.\n\nMore."""\n', "Sells things."),
        ("a.py", '"""\nshop.cart\n~~~~~~~~~\n"""\n', "shop.cart"),
        ("a.py", "x = 1\n", ""),
        ("a.ts", "/**\n * Draws things.\n *\n * More\n */\nexport {}", "Draws things."),
        ("a.go", "// Package x sells.\n// It does.\npackage x", "Package x sells.\nIt does."),
        ("a.go", "//go:build !windows\n\n// Package tui draws.\npackage tui", "Package tui draws."),
        ("a.rs", "//! Reads bytes.\nfn f() {}", "Reads bytes."),
        ("a.c", "/* Copyright 2020 Somebody */\n/* Sorts. */\nint x;", "Sorts."),
        (
            "README.md",
            "# Shop\n\n![badge](x)\n\n**Sells** things to [people](x).\n",
            "Sells things to people.",
        ),
        ("README.md", "# Shop\n", ""),
    ],
)
def test_a_file_says_what_it_is_for_in_its_first_words(path, text, words):
    assert first_words(path, text) == words


def test_a_long_sentence_is_cut_at_a_word():
    assert len(first_sentence("word " * 100)) <= 200
    assert first_sentence("One. Two.") == "One."


def test_hot_is_what_is_used_and_changes():
    files = [("a.py", ["f"]), ("b.py", ["g"]), ("c.py", ["h"]), ("tests/t.py", ["test_x"])]
    edges = [
        ("b.py:g", "calls", "a.py:f"),
        ("c.py:h", "calls", "a.py:f"),
        ("tests/t.py:test_x", "tests", "b.py:g"),
    ]
    graph = drawn(files, edges).graph
    found = hot_spots(graph, {"a.py": 9, "c.py": 9}, {})
    assert found[0].path == "a.py"
    assert "tests/t.py" not in [each.path for each in found]
    assert hot_spots(graph, {}, {})[0].path == "a.py"
