"""Questions about code have the same answers on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import smara
from smara.errors import NotFoundError
from tests.stores import BOTH, empty_store
from tests.unit.codegraph.shop import write_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shop(tmp_path_factory.mktemp("shop").resolve())


@pytest.fixture(params=BOTH)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[smara.Memory]:
    with (
        empty_store(request.param, tmp_path) as where,
        smara.open(where, durability="normal", embedder="off") as opened,
    ):
        yield opened


def labels(walk: Any) -> list[str]:
    return [each.node.label for each in walk.reached]


def test_every_question_is_answered(memory, shop):
    """1. The graph is walked both ways. 2. The rest of the questions. 3. The history, twice. 4.
    Words of a model.
    """
    memory.code.index(shop)
    ask = memory.code.asking(shop)
    assert labels(ask.impact("Store.get"))[0] == "shop/prices.py:price"
    assert "shop/prices.py:discount" in labels(ask.deps("main"))
    assert labels(ask.tests_for("price")) == ["tests/test_prices.py:test_discount_is_half"]
    assert ask.symbol("shop/store.py:Store").node.qualname == "Store"

    assert 0 < ask.map(100).tokens <= 100
    assert ask.entry_points()[0].node.label == "shop/cli.py:main"
    assert [each.path for each in ask.modules(["shop"])] == ["shop"]
    assert len(ask.cycles()) == 1

    assert ask.history.read().commits == 3
    assert ask.history.read().commits == 0
    assert ask.cochange("shop/store.py")[0].path == "shop/prices.py"
    assert ask.hotspots()[0].commits == 3

    from smara.codegraph.modules import Described

    ask._descriptions.put(
        {
            "shop": Described(
                "Sells.", (("main", "price"),), "m", fingerprint=ask.fingerprint("shop")
            )
        }
    )
    ask._descriptions.put({"shop": Described("Sells well.", (), "m", fingerprint="older")})
    (module,) = ask.modules(["shop"])
    assert (module.purpose, module.source, module.is_stale) == ("Sells well.", "model", True)


def test_two_projects_of_one_store_do_not_see_each_other(memory, shop):
    memory.code.index(shop)
    other = memory.in_project("elsewhere")
    with pytest.raises(NotFoundError, match="not indexed"):
        other.code.asking(shop)


def test_memories_are_told_at_the_code_they_name(memory, shop, monkeypatch):
    monkeypatch.chdir(shop)
    memory.code.index(shop)
    memory.memories.add(
        "Prices are doubled on purpose, the discount halves them again",
        type="decision",
        source="user_taught",
        by="person",
        files=["shop/prices.py"],
    )
    found = memory.code_knowledge.about(memory.code.asking(shop).resolve("price"))
    assert [(each.kind, each.type, each.path) for each in found] == [
        ("documents", "decision", "shop/prices.py")
    ]
    assert [each.path for each in memory.code_knowledge.links()] == ["shop/prices.py"]
