"""SCIP indexes: read from bytes, joined to the tree, and stronger than what syntax tells."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import smara
from smara import Memory
from smara.codegraph.resolve.resolver import Resolver
from smara.codegraph.resolve.scip import (
    OUTSIDE,
    NamedLines,
    ScipIndex,
    name_of,
    parse_scip,
    read_scip,
)
from smara.errors import InvalidInputError
from tests.unit.codegraph.projects import Tree

FILES = {
    "kettle.py": "class Kettle:\n    def boil(self): ...\n\n\nclass Pot:\n    def boil(self): "
    "...\n",
    "tea.py": "from leaves import steep\n\n\ndef tea(thing):\n    thing.boil()\n    steep()\n",
    "leaves.py": "def steep(): ...\n",
}
BOIL = "scip-python python shop 1.0 kettle/Pot#boil()."
STEEP = "scip-python python elsewhere 2.0 leaves/steep()."


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def occurrence(line: int, symbol: str, roles: int = 0) -> bytes:
    packed = b"".join(varint(each) for each in (line - 1, 4, 8))
    return field(1, packed) + field(2, symbol) + (varint(3 << 3) + varint(roles) if roles else b"")


def document(path: str, *occurrences: bytes) -> bytes:
    return field(
        2, field(4, "python") + field(1, path) + b"".join(field(2, each) for each in occurrences)
    )


def an_index() -> bytes:
    metadata = field(1, field(3, "file:///somewhere"))
    kettle = document(
        "kettle.py",
        occurrence(6, BOIL, 1),
        occurrence(5, "scip-python python shop 1.0 kettle/Pot#", 1),
    )
    tea = document(
        "tea.py",
        occurrence(4, "scip-python python shop 1.0 tea/tea().", 1),
        occurrence(4, "local 3", 1),
        occurrence(5, "local 3"),
        occurrence(5, BOIL),
        occurrence(6, STEEP),
    )
    return metadata + kettle + tea


def bound(tree: Tree, data: bytes) -> ScipIndex:
    index = parse_scip(data)

    def lines(path: str) -> list[NamedLines]:
        facts, outline = tree.facts.get(path), tree.outlines.get(path)
        if facts is None or outline is None:
            return []
        return [
            NamedLines(no, each.name, each.first_line, last_line=each.last_line)
            for no, each in zip(outline.nos, facts.definitions, strict=True)
        ]

    index.bind(lines)
    return index


def test_what_the_index_says_wins_over_the_syntax() -> None:
    tree = Tree(FILES)
    index = bound(tree, an_index())
    resolver = Resolver(tree.table, tree.project, precise=index.precise)

    edges = [edge for edge in resolver.resolve(tree.facts["tea.py"]) if edge.kind == "calls"]

    # Two classes can boil, so that syntax alone says nothing; what steeps is another library's,
    # against appearances.
    assert [(tree.told("tea.py", edge), edge.source) for edge in edges] == [
        ("calls tea.py:tea -> kettle.py:Pot.boil", "scip")
    ]


def test_a_file_that_the_index_does_not_know_is_resolved_by_its_syntax() -> None:
    tree = Tree({**FILES, "cup.py": "from leaves import steep\n\nsteep()\n"})
    resolver = Resolver(tree.table, tree.project, precise=bound(tree, an_index()).precise)

    edges = [edge for edge in resolver.resolve(tree.facts["cup.py"]) if edge.kind == "calls"]

    assert [(tree.told("cup.py", edge), edge.source) for edge in edges] == [
        ("calls cup.py -> leaves.py:steep", "ast")
    ]


def test_a_file_whose_definitions_have_moved_is_left_to_its_syntax() -> None:
    tree = Tree({**FILES, "tea.py": "\n" * 9 + FILES["tea.py"]})

    assert bound(tree, an_index()).precise("tea.py") == {}


def test_names_that_the_tree_does_not_hold_are_known_to_be_outside() -> None:
    assert bound(Tree(FILES), an_index()).precise("tea.py")[6, "steep"] == OUTSIDE


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("scip-typescript npm shop 1.0 src/`client.ts`/Client#send().", "send"),
        ("scip-typescript npm shop 1.0 src/`client.ts`/Client#", "Client"),
        ("scip-typescript npm shop 1.0 src/`client.ts`/Client#`<constructor>`().", "<constructor>"),
        ("rust-analyzer cargo shop 0.1.0 money/impl#[Amount]add().", "add"),
        ("rust-analyzer cargo shop 0.1.0 money/println!", "println"),
        ("scip-java maven a b 1.0 com/shop/Client#send(+1).", "send"),
        ("scip-python python shop 1.0 `shop.money`/LIMIT.", "LIMIT"),
        ("local 17", ""),
        ("", ""),
    ],
)
def test_the_last_name_of_a_symbol(symbol: str, name: str) -> None:
    assert name_of(symbol) == name


def test_a_file_that_is_no_index_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "index.scip").write_bytes(b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")

    with pytest.raises(InvalidInputError, match="make it again"):
        read_scip(tmp_path / "index.scip")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_scip(tmp_path / "missing.scip")


def test_damaged_bytes_are_read_or_refused_never_more() -> None:
    chosen = random.Random(7)
    whole = an_index()
    for _ in range(2_000):
        data = bytearray(whole[: chosen.randint(0, len(whole))])
        for _ in range(chosen.randint(0, 3)):
            if data:
                data[chosen.randrange(len(data))] = chosen.randrange(256)
        try:
            index = parse_scip(bytes(data))
        except InvalidInputError:
            continue
        index.bind(lambda _path: [NamedLines(1, "boil", 1, last_line=9)])
        for path in index.documents:
            index.precise(path)


def calls_of(memory: Memory, path: str) -> list[tuple[str, str]]:
    return [
        (end.qualname, edge.source)
        for _, edge, end in memory.code.asking().edges(path)
        if edge.kind == "calls"
    ]


def test_an_index_beside_the_code_is_taken_in_and_again_when_it_is_new(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    for path, text in FILES.items():
        (root / path).write_text(text)
    with smara.open(tmp_path / "memory.db", embedder="off") as memory:
        memory.code.index(root)
        assert calls_of(memory, "tea.py") == [("steep", "ast")]

        (root / "index.scip").write_bytes(an_index())
        memory.code.index(root)
        assert calls_of(memory, "tea.py") == [("Pot.boil", "scip")]

        (root / "cup.py").write_text("def cup(): ...\n")
        memory.code.index(root)
        assert calls_of(memory, "tea.py") == [("Pot.boil", "scip")]


def test_a_broken_index_beside_the_code_is_passed_over_and_a_named_one_refused(
    tmp_path: Path,
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "leaves.py").write_text("def steep(): ...\n\n\nsteep()\n")
    (root / "index.scip").write_bytes(b"\x12\xff")
    with smara.open(tmp_path / "memory.db", embedder="off") as memory:
        memory.code.index(root)
        assert calls_of(memory, "leaves.py") == [("steep", "ast")]

        with pytest.raises(InvalidInputError, match="no SCIP index"):
            memory.code.index(root, scip=root / "index.scip")
