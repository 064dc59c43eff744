"""``code-query``: short answers with file and line, within their budget, honest about an unfinished
index.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import smara
from smara.core.tokens import counter_for
from smara.tools import Toolbox
from tests.unit.codegraph.shop import write_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shop(tmp_path_factory.mktemp("shop").resolve())


@pytest.fixture
def box(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toolbox]:
    monkeypatch.chdir(shop)
    with smara.open(tmp_path / "smara.db", durability="normal", embedder="off") as memory:
        memory.code.index(shop)
        yield Toolbox(memory, profile="coding")


def asked(box: Toolbox, action: str, **arguments):
    outcome = box.call("code-query", {"action": action, **arguments})
    assert not outcome.is_error, outcome.text
    return outcome


def test_impact_cites_file_and_line_and_names_the_way(box):
    outcome = asked(box, "impact", target="Store.get")
    assert outcome.structured["total"] >= 4
    assert "1 shop/prices.py:6 price calls Store.get" in outcome.text.splitlines()
    assert "2 shop/prices.py:10 discount calls price → Store.get" in outcome.text.splitlines()
    assert " of them " in outcome.text.splitlines()[0]


def test_deps_says_where_what_is_used_is_defined(box):
    assert (
        "1 shop/prices.py:9 called by main" in asked(box, "deps", target="main").text.splitlines()
    )


def test_map_and_symbol(box):
    assert "shop/store.py\n  class Store" in asked(box, "map", target="shop/prices.py, Store").text
    text = asked(box, "symbol", target="discount").text
    assert "def discount(name: str) -> int" in text
    assert "tested by: tests/test_prices.py:4 test_discount_is_half" in text


@pytest.mark.parametrize("action", ["impact", "deps", "map", "symbol"])
@pytest.mark.parametrize("tokens", [60, 100, 300])
def test_an_answer_keeps_to_its_budget(box, action, tokens):
    text = asked(box, action, target="shop/store.py", tokens=tokens).text
    assert counter_for().count(text).tokens <= tokens


def test_what_is_left_out_is_counted(box):
    assert (
        "more: ask with more tokens"
        in asked(box, "impact", target="shop/store.py", tokens=60).text.splitlines()[-1]
    )


def test_sloppy_calls_are_understood(box):
    assert asked(box, "impact", symbol="Store.get").structured["total"] >= 4
    assert asked(box, "deps", file="shop/cli.py", max_depth="1").structured["total"] == 1


def test_an_unknown_target_is_refused_with_what_is_close(box):
    outcome = box.call("code-query", {"action": "impact", "target": "discuont"})
    assert (outcome.is_error, outcome.structured["code"]) == (True, "not_found")
    assert "Did you mean discount" in outcome.text


def test_code_that_is_not_indexed_is_said_to_be_so(tmp_path, shop, monkeypatch):
    monkeypatch.chdir(shop)
    with smara.open(tmp_path / "smara.db", embedder="off") as memory:
        outcome = Toolbox(memory, profile="coding").call("code-query", {"action": "map"})
        assert outcome.is_error
        assert "smara code index" in outcome.text


def test_files_that_a_killed_process_left_stale_are_joined_before_the_answer(box, shop):
    code = box._memory.code
    with code.store.database.write() as session:
        tree = code.store.tree_of(session, str(shop))
        code.store.mark_stale(session, [code.store.files(session, tree.no)["shop/cli.py"].no], 1)
    assert "answers may be a moment behind" in code.note
    assert "answers may be" not in asked(box, "impact", target="price").text
    assert code.note is None


def test_an_index_under_way_is_told(box):
    with box._memory.code.store.database.write() as session:
        session.run("UPDATE code_trees SET state = 'building'")
    assert "answers may be incomplete" in asked(box, "map").text


def test_what_is_known_about_the_code_is_told_with_it(box):
    box._memory.memories.add(
        "Prices are doubled on purpose, the discount halves them again",
        type="decision",
        source="user_taught",
        by="person",
        files=["shop/prices.py"],
    )
    assert "decision: Prices are doubled on purpose" in asked(box, "impact", target="price").text
    assert "decision: Prices are doubled on purpose" in asked(box, "symbol", target="price").text
