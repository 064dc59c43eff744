"""``smara code impact`` and the other questions about code, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import smara as library
from tests.surfaces.shell import on_terminal, plain, smara
from tests.unit.codegraph.shop import write_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shop(tmp_path_factory.mktemp("shop").resolve())


@pytest.fixture
def indexed(db: str, shop: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(shop)
    with library.open(db, embedder="off") as memory:
        memory.code.index(shop)
    return db


def test_impact_has_depths_paths_and_confidences(indexed):
    found = smara("code", "impact", "Store.get", "--json").data
    first = found["reached"][0]
    assert (first["name"], first["depth"], first["via"][0]["kind"]) == (
        "shop/prices.py:price",
        1,
        "calls",
    )
    assert {"to", "kind", "line", "confidence", "source"} == set(first["via"][0])
    assert found["total"] == sum(found["byDepth"].values())
    assert (
        smara("code", "impact", "Store.get", "--depth", "1", "--json").data["total"]
        < found["total"]
    )


def test_every_question_answers_in_json(indexed):
    asked = {
        "deps": ["price"],
        "callers": ["price"],
        "tests": ["price"],
        "symbol": ["Store"],
        "map": [],
        "modules": [],
        "hotspots": [],
        "cycles": [],
        "entries": [],
        "cochange": ["shop/store.py"],
    }
    answers = {name: smara("code", name, *arguments, "--json") for name, arguments in asked.items()}
    assert {name for name, said in answers.items() if said.code != 0} == set()
    assert answers["symbol"].data["name"] == "shop/store.py:Store"
    assert answers["map"].data["tokens"] <= 1_024
    assert answers["cycles"].data["cycles"][0]["path"][0] == "shop/loop_a.py"
    assert answers["entries"].data["entryPoints"][0]["name"] == "shop/cli.py:main"
    assert answers["cochange"].data["files"][0] == {
        "path": "shop/prices.py",
        "together": 3,
        "confidence": 1.0,
        "lastAt": answers["cochange"].data["files"][0]["lastAt"],
    }


def test_a_pipe_gets_tab_separated_lines(indexed):
    rows = smara("code", "callers", "price").rows
    assert rows == [["1", "1.00", "shop/prices.py:10", "discount", "calls price"]]


def test_a_terminal_gets_sentences_and_tables(indexed):
    seen = plain(on_terminal("code", "impact", "Store.get", columns=160).out)
    assert "shop/store.py:Store.get  method, lines 7-8" in seen
    assert "depend on it, in " in seen
    assert "calls price → calls Store.get" in seen
    assert "Nothing depends on it." in plain(on_terminal("code", "impact", "unused").out)


@pytest.mark.parametrize(
    ("picture", "begins"), [("dot", "digraph impact {"), ("mermaid", "flowchart LR")]
)
def test_impact_can_be_drawn(indexed, picture, begins):
    said = smara("code", "impact", "Store.get", "--picture", picture)
    assert said.out.startswith(begins)
    assert "shop/prices.py" in said.out.replace("#47;", "/")
    assert (
        smara("code", "impact", "Store.get", "--picture", picture, "--json")
        .data["text"]
        .startswith(begins)
    )


def test_an_unknown_target_is_refused_with_what_is_close(indexed):
    said = smara("code", "impact", "discuont")
    assert said.code == 3
    assert "Did you mean discount" in said.err
    assert smara("code", "impact", "discuont", "--json").envelope["error"]["code"] == "not_found"


def test_code_that_is_not_indexed_says_what_to_do(db, shop, monkeypatch):
    monkeypatch.chdir(shop)
    said = smara("code", "impact", "price")
    assert said.code == 3
    assert "smara code index" in said.err


def test_a_question_reads_what_was_saved_since_the_index(db, tmp_path, monkeypatch):
    root = write_shop(tmp_path.resolve() / "shop")
    monkeypatch.chdir(root)
    assert smara("code", "index").code == 0
    (root / "shop" / "late.py").write_text(
        "from shop.prices import price\n\n\ndef late():\n    return price(1)\n"
    )
    assert ["late", "calls price"] in [row[-2:] for row in smara("code", "callers", "price").rows]
    assert smara("code", "locate", "late", "--json").data["files"][0]["path"] == "shop/late.py"


def test_an_index_is_forgotten_by_its_folder_or_when_that_is_gone(indexed, shop, tmp_path):
    assert smara("code", "forget", "--gone").out == "No indexed folder of this project is gone.\n"
    assert (
        smara("code", "forget", str(tmp_path)).out
        == f"{tmp_path} is not indexed in this project.\n"
    )
    assert smara("code", "forget", "--json").data == {"forgotten": [str(shop)]}
    assert smara("code", "status", "--json").data["state"] == "none"
