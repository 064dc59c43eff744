"""The lint of names and English sees what it forbids."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house_lint import ALLOWANCE, findings, repeated_classes


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("name", "def tell(told): ..."),
        ("name", "kept = 1"),
        ("name", "class Known: ..."),
        ("name", "class A:\n    def f(self):\n        self._held = 1"),
        ("name", "_KEPT = 300"),
        ("name", "TOLD: int = 1"),
        ("name", "class A:\n    def said(self): ..."),
        ("name", "async def _wanted(): ..."),
        ("found", "def show(found): ..."),
        ("found", "run(lambda found: 1)"),
        ("comment", "x = 1  # nobody reads it"),
        ("comment", 'LIMIT = 1\n"""Counted anew at each start."""'),
        ("text", 'raise ValueError("somebody else did it")'),
        ("text", 'x = f"{x} is told to whoever asks"'),
        ("phrase", 'def _f():\n    """Wait until nobody reads."""'),
        ("phrase", '"""Raise for an address that is none."""'),
        ("first line", 'def f():\n    """Whether it rains."""'),
        (
            "first line",
            '"""One two three four five six seven eight nine ten eleven twelve x."""',
        ),
    ],
)
def test_code_that_breaks_a_rule_is_found(rule, code):
    assert rule in {broken for _, broken, _ in findings(Path("store.py"), code)}


@pytest.mark.parametrize("stem", ["said", "draining", "utils"])
def test_name_of_a_file_that_says_nothing_is_found(stem):
    assert (1, "file", stem) in list(findings(Path(f"{stem}.py"), ""))


def test_class_that_stands_in_two_files_is_found():
    tree = ast.parse("class Parts: ...")
    assert list(repeated_classes({Path("a.py"): tree, Path("b.py"): tree})) == ["Parts"]


def test_plain_code_breaks_no_rule():
    code = (
        'def read(path):\n    """Read a file."""\n    found = path\n    return found\n'
        "KEPT_DAYS = 1  # days"
    )
    assert list(findings(Path("store.py"), code)) == []


def test_files_and_classes_have_no_allowance():
    assert (ALLOWANCE["file"], ALLOWANCE["class"]) == (0, 0)
