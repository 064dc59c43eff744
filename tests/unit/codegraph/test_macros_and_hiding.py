"""Macros that C++ writes where the grammar expects none, and parameters that hide a name of their
file.
"""

from __future__ import annotations

import pytest

from smara.codegraph.languages.c import without_macros
from smara.codegraph.parse.extract import extract
from tests.unit.codegraph.projects import Tree


def test_a_class_behind_an_export_macro_is_a_class() -> None:
    text = (
        b"class SHOP_EXPORT Client : public Base {\n public:\n  void Send() {}\n  int n "
        b"GUARDED_BY(mutex_);\n};\n"
    )

    facts = extract("a.h", text, "cpp")

    assert [(each.kind, each.qualname) for each in facts.definitions] == [
        ("class", "Client"),
        ("method", "Client.Send"),
    ]
    assert not facts.has_errors


def test_blanked_text_is_as_long_as_before_and_other_text_is_left() -> None:
    text = (
        b"struct API_EXPORT(1) Thing final {};\nclass Plain {};\nclass ABC;\nclass HTTP "
        b"{};\nLOCKS_EXCLUDED(a) x;\n"
    )

    blanked = without_macros(text)

    assert len(blanked) == len(text)
    assert blanked.split(b"\n")[0].split() == [b"struct", b"Thing", b"final", b"{};"]
    assert blanked.split(b"\n")[1:4] == text.split(b"\n")[1:4]


def test_parameters_without_a_type_hide_what_the_file_calls_so() -> None:
    text = (
        b"from os import path, sep\n\n\ndef f(path, other, sep: str = '/', *, path2=path):\n   "
        b" path.join(other)\n"
    )

    facts = extract("a.py", text, "python")

    assert [(each.name, each.type) for each in facts.bindings if each.scope == 0] == [
        ("sep", "str"),
        ("path", ""),
    ]


def test_names_in_types_and_default_values_are_no_parameters() -> None:
    text = (
        b"from shop import Client, make\n\n\ndef f(x: dict[str, Client] = make(1, Client)):\n  "
        b"  Client()\n"
    )

    facts = extract("a.py", text, "python")

    assert "Client" not in {each.name for each in facts.bindings}


def test_parameters_of_scripts_hide_what_the_file_requires() -> None:
    text = (
        b'const next = require("./next");\nfunction f(request, next) { next(); }\nconst g = '
        b"(next) => next();\n"
    )

    facts = extract("a.js", text, "javascript")

    assert {(each.name, each.type, each.scope) for each in facts.bindings} == {
        ("next", "", 0),
        ("next", "", 1),
    }


@pytest.mark.parametrize(
    "made", ["React.memo(Button)", "connect(Button)(View)", "new Store(Button)"]
)
def test_what_a_file_makes_its_default_of_is_used_and_hidden_by_nothing(made: str) -> None:
    found = Tree({"a.jsx": f"export const Button = () => null;\nexport default {made};\n"}).edges()
    assert "references a.jsx:default -> a.jsx:Button" in found


@pytest.mark.parametrize(
    "written", ["export default (path) =>", "export default async function (path)"]
)
def test_a_parameter_of_a_nameless_default_hides_what_the_file_imports(written: str) -> None:
    facts = extract(
        "a.js", f'import path from "path";\n{written} {{ path.x(); }}\n'.encode(), "javascript"
    )
    assert [each.type for each in facts.bindings if each.name == "path"] == [""]
