"""Methods that stand for each other are named with the impact of one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import smara
from smara.tools import Toolbox
from tests.contract.both import ON_BOTH

pytestmark = ON_BOTH

IMPORT = "from app.base import Shape\n"
PYTHON = {
    "app/base.py": "class Shape:\n  def area(self): raise NotImplementedError\n  def name(self): "
    "return 'shape'\n",
    "app/round.py": IMPORT
    + "class Round(Shape): pass\n\nclass Circle(Round):\n  def area(self): return 3\n",
    "app/square.py": IMPORT
    + "class Square(Shape):\n  def area(self): return 4\n  def side(self): return 2\n",
    "app/other.py": "class Field:\n  def area(self): return 9\n",
    "app/sums.py": IMPORT
    + "def total(shapes: list[Shape]): return sum(shape.area() for shape in shapes)\n",
    "tests/test_shapes.py": IMPORT + "class Fake(Shape):\n  def area(self): return 0\n",
}
JAVA = {
    "src/Shape.java": "public interface Shape {\n  int area();\n}\n",
    "src/Square.java": "public class Square implements Shape {\n  public int area() { return 4; "
    "}\n}\n",
}
TYPESCRIPT = {
    "src/shape.ts": "export interface Shape {\n  area(): number;\n}\n",
    "src/square.ts": "import { Shape } from './shape';\n"
    "export class Square implements Shape {\n  area(): number { return 4; }\n}\n",
}


@pytest.fixture
def memory(place):
    return place.open(embedder="off")


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def around(memory: smara.Memory, root: Path, target: str) -> tuple[list[str], list[str]]:
    walk = memory.code.asking(root).impact(target)
    return [each.label for each in walk.overrides], [each.label for each in walk.overridden_by]


def test_bases_and_heirs_of_a_method_are_named_the_program_before_its_tests(memory, tmp_path):
    root = write(tmp_path / "code", PYTHON)
    memory.code.index(root)
    heirs = [
        "app/square.py:Square.area",
        "app/round.py:Circle.area",
        "tests/test_shapes.py:Fake.area",
    ]
    assert around(memory, root, "Shape.area") == ([], heirs)
    assert around(memory, root, "Circle.area") == (["app/base.py:Shape.area"], [])
    assert around(memory, root, "Shape.name") == ([], [])
    assert around(memory, root, "Field.area") == ([], [])


def test_what_is_no_method_stands_for_nothing(memory, tmp_path):
    root = write(tmp_path / "code", PYTHON)
    memory.code.index(root)
    assert around(memory, root, "app/base.py") == ([], [])
    assert around(memory, root, "total") == ([], [])
    assert around(memory, root, "app") == ([], [])


@pytest.mark.parametrize(("files", "base", "heir"), [
    (JAVA, "src/Shape.java:Shape.area", "src/Square.java:Square.area"),
    (TYPESCRIPT, "src/shape.ts:Shape.area", "src/square.ts:Square.area"),
])  # fmt: skip
def test_methods_of_interfaces_too(memory, tmp_path, files, base, heir):
    root = write(tmp_path / "code", files)
    memory.code.index(root)
    assert around(memory, root, base) == ([], [heir])
    assert around(memory, root, heir) == ([base], [])


def test_an_agent_is_told_in_a_line(memory, tmp_path, monkeypatch):
    root = write(tmp_path / "code", PYTHON)
    monkeypatch.chdir(root)
    memory.code.index(root)
    box = Toolbox(memory, profile="coding")
    text = box.call("code-query", {"action": "impact", "target": "Square.area"}).text
    assert "overrides app/base.py:2 Shape.area" in text.splitlines()
    text = box.call("code-query", {"action": "impact", "target": "Shape.area"}).text
    assert "overridden by app/square.py:3 Square.area, app/round.py:5 Circle.area" in text
