"""Files joined to each other: whole small projects per language, and what must never happen."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from smara.codegraph.language import language_of, languages
from smara.codegraph.models import (
    NODE_KINDS,
    Binding,
    Definition,
    FileFacts,
    Import,
    NewEdge,
    NodeKind,
    Reference,
    ReferenceKind,
)
from smara.codegraph.resolve.resolver import Resolver
from smara.codegraph.resolve.symbols import (
    FileOutline,
    MemoryTable,
    ProjectFiles,
    outline_of,
    pack_outline,
    unpack_outline,
)
from tests.unit.codegraph.projects import PROJECTS, Tree, read_project


def test_the_languages_of_labelled_places_exist_and_have_enough_to_be_measured_by() -> None:
    labels = json.loads(
        (Path(__file__).parents[3] / "evals" / "resolution_labels.json").read_text(encoding="utf-8")
    )
    assert {each["language"] for each in labels} <= set(languages())
    assert all(len(each["calls"]) + len(each["imports"]) >= 100 for each in labels)


def test_every_language_has_a_project() -> None:
    files = [path for name in PROJECTS for path in read_project(name)[0]]
    assert {language_of(path) for path in files} >= set(languages())


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_has_the_edges_that_a_reader_sees(name: str) -> None:
    files, expected = read_project(name)

    found = {edge for edge in Tree(files).edges() if not edge.startswith("references ")}

    assert found <= expected, "not expected:\n" + "\n".join(sorted(found - expected))
    assert found >= expected, "not found:\n" + "\n".join(sorted(expected - found))


@pytest.mark.parametrize("name", PROJECTS)
def test_a_file_has_the_same_edges_alone_and_after_all_others(name: str) -> None:
    tree = Tree(read_project(name)[0])
    together = {path: tree.resolver.resolve(facts) for path, facts in reversed(tree.facts.items())}

    alone = {
        path: Resolver(tree.table, tree.project).resolve(facts)
        for path, facts in tree.facts.items()
    }

    assert alone == together


@pytest.mark.parametrize("name", PROJECTS)
def test_outlines_that_were_kept_serve_like_those_just_made(name: str) -> None:
    tree = Tree(read_project(name)[0])
    kept = [
        unpack_outline(each.path, each.file_no, pack_outline(each))
        for each in tree.outlines.values()
    ]
    table = MemoryTable(each for each in kept if each is not None)

    for facts in tree.facts.values():
        assert Resolver(table, tree.project).resolve(facts) == tree.resolver.resolve(facts)


@pytest.mark.parametrize(
    "broken", [b"", b"x", b"\x78\x9c\x03\x00\x00\x00\x00\x01", pack_outline.__name__.encode()]
)
def test_broken_bytes_are_no_outline(broken: bytes) -> None:
    assert unpack_outline("a.py", 1, broken) is None


def test_a_method_that_only_one_class_has_is_guessed_with_little_confidence() -> None:
    tree = Tree(
        {
            "a.py": "class Kettle:\n    def boil_water(self): ...\n",
            "b.py": "def tea(kettle):\n    kettle.boil_water()\n    kettle.append(1)\n",
        }
    )

    [edge] = tree.resolver.resolve(tree.facts["b.py"])

    assert (edge.source, edge.confidence < 0.5) == ("guess", True)
    assert tree.told("b.py", edge) == "calls b.py:tea -> a.py:Kettle.boil_water (guess)"


def test_a_name_that_two_places_share_is_no_guess() -> None:
    kettle = "class Kettle:\n    def boil_water(self): ...\n"
    tree = Tree(
        {"a.py": kettle, "c.py": kettle, "b.py": "def tea(kettle):\n    kettle.boil_water()\n"}
    )

    assert tree.resolver.resolve(tree.facts["b.py"]) == []


def test_a_common_name_is_no_guess_even_if_one_place_has_it() -> None:
    tree = Tree(
        {
            "a.py": "class Basket:\n    def append(self, x): ...\n    def get(self, x): ...\n",
            "b.py": "def fill(basket):\n    basket.append(1)\n    basket.get(1)\n",
        }
    )

    assert tree.resolver.resolve(tree.facts["b.py"]) == []


def test_what_is_imported_from_another_library_is_no_guess() -> None:
    tree = Tree(
        {
            "a.py": "class Kettle:\n    def boil_water(self): ...\n",
            "b.py": "import stove\n\n\ndef tea():\n    stove.boil_water()\n    "
            "stove.Stove().boil_water()\n",
        }
    )

    assert tree.resolver.resolve(tree.facts["b.py"]) == []


def test_files_that_pass_each_other_s_names_on_end_in_nothing() -> None:
    tree = Tree(
        {
            "a.py": "from b import *\nfrom b import thing\n\n\ndef use():\n    thing()\n    "
            "other()\n",
            "b.py": "from a import *\nfrom a import thing\n\n\ndef other(): ...\n",
        }
    )

    assert tree.edges() == {
        "imports a.py -> b.py",
        "imports b.py -> a.py",
        "calls a.py:use -> b.py:other",
    }


def test_classes_that_extend_each_other_end_in_nothing() -> None:
    tree = Tree(
        {
            "a.py": "from b import B\n\n\nclass A(B):\n    def go(self):\n        self.nowhere()\n",
            "b.py": "from a import A\n\n\nclass B(A):\n    def stay(self):\n        self.go()\n",
        }
    )

    assert "calls b.py:B.stay -> a.py:A.go" in tree.edges()


def test_a_long_chain_of_re_exports_is_bounded() -> None:
    files = {f"m{n}.py": f"from m{n + 1} import thing\n" for n in range(3_000)}
    files["m3000.py"] = "def thing(): ...\n"

    tree = Tree(files)

    assert "imports m0.py -> m1.py" in {
        tree.told("m0.py", edge) for edge in tree.resolver.resolve(tree.facts["m0.py"])
    }


def test_a_local_name_hides_the_module_s() -> None:
    tree = Tree(
        {
            "a.py": "def path(): ...\n\n\ndef join(): ...\n",
            "b.py": "from a import path\nimport a\n\n\ndef f(path, a):\n    path()\n    a.join()\n",
        }
    )

    assert {edge for edge in tree.edges() if edge.startswith("calls")} == set()


def test_a_name_of_the_standard_library_is_not_taken_for_a_distant_file() -> None:
    tree = Tree(
        {
            "tools/scripts/types.py": "def new_class(): ...\n",
            "src/a/b.py": "import types\n\ntypes.new_class()\n",
        }
    )

    assert tree.edges() == set()


def test_random_facts_never_raise() -> None:
    chosen = random.Random(7)
    for _ in range(300):
        made = [_random_facts(chosen, number) for number in range(chosen.randint(1, 6))]
        files = list({facts.path: facts for facts in made}.values())
        outlines: list[FileOutline] = []
        no = 1
        for facts in files:
            outlines.append(outline_of(facts, no, range(no + 1, no + 1 + len(facts.definitions))))
            kept = unpack_outline(facts.path, no, pack_outline(outlines[-1]))
            assert kept is not None
            assert (kept.qualnames, kept.parents) == (outlines[-1].qualnames, outlines[-1].parents)
            no += 1 + len(facts.definitions)
        manifests = {
            name: chosen.randbytes(40)
            for name in ("package.json", "tsconfig.json", "go.mod", "Cargo.toml")
        }
        project = ProjectFiles([*(facts.path for facts in files), *manifests], manifests.get)
        resolver = Resolver(MemoryTable(outlines), project)
        for facts in files:
            for edge in resolver.resolve(facts):
                assert isinstance(edge, NewEdge)
                assert -1 <= edge.scope < len(facts.definitions)
                assert 1 <= edge.to_no < no


_NAMES = (
    "a",
    "b",
    "Client",
    "self",
    "super",
    "super()",
    "crate",
    "this",
    "*",
    "",
    "?",
    "x.y",
    "a::b",
    "::",
    ".",
    "()",
)
_MODULES = (
    *_NAMES,
    "./a",
    "../..",
    "a.b",
    "@x/y",
    "#in",
    "<a.h>",
    '"a"',
    "/",
    "crate::a::b",
    "..a",
)


def _random_facts(chosen: random.Random, number: int) -> FileFacts:
    language = chosen.choice(list(languages()))
    folder = chosen.choice(("", "a/", "a/b/", "src/", "tests/"))
    name = chosen.choice(("a", "b", "__init__", "index", "mod", "lib", f"file{number}"))
    count = chosen.randint(0, 6)
    kinds: list[NodeKind] = [chosen.choice(NODE_KINDS) for _ in range(count)]
    # A method may stand before the type it belongs to.
    parents = [chosen.randint(-1, place - 1) if place else -1 for place in range(count)]
    if count > 1 and chosen.random() < 0.3:
        parents[0], parents[-1] = count - 1, -1
    definitions = tuple(
        Definition(
            kind,
            each := chosen.choice(_NAMES) or "a",
            chosen.choice((each, f"Client.{each}", f"a.b.{each}")),
            first_line=1,
            last_line=9,
            first_byte=0,
            last_byte=0,
            parent=parents[place],
            signature="",
            doc="",
            body_hash=b"",
        )
        for place, kind in enumerate(kinds)
    )
    reference_kinds: tuple[ReferenceKind, ...] = ("calls", "inherits", "references")

    def scope() -> int:
        return chosen.randint(-1, count - 1)

    def word() -> str:
        return chosen.choice(_NAMES)

    return FileFacts(
        f"{folder}{name}.{languages()[language].extensions[0]}",
        language,
        9,
        definitions=definitions,
        imports=tuple(
            Import(
                chosen.choice(_MODULES),
                word(),
                word(),
                level=chosen.randint(0, 4),
                line=1,
                scope=scope(),
                is_export=chosen.random() < 0.3,
            )
            for _ in range(chosen.randint(0, 6))
        ),
        references=tuple(
            Reference(
                chosen.choice(reference_kinds),
                word(),
                chosen.choice((word(), f"{word()}.{word()}()")),
                line=1,
                scope=scope(),
            )
            for _ in range(20)
        ),
        bindings=tuple(
            Binding(chosen.choice((word(), f"self.{word()}", "()")), word(), scope())
            for _ in range(8)
        ),
        package=word(),
    )
