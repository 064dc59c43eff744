"""Questions about a small shop, from its files on the disk to the answers."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

import smara
from smara.codegraph.git import GitFiles
from smara.codegraph.queries import CodeQueries
from smara.errors import BadReplyError, InvalidInputError, NotFoundError
from tests.unit.codegraph.shop import write_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shop(tmp_path_factory.mktemp("shop").resolve())


@pytest.fixture(scope="module")
def memory(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[smara.Memory]:
    store = tmp_path_factory.mktemp("store") / "smara.db"
    with smara.open(
        store, durability="normal", embedder="off", embed_in_background=False
    ) as opened:
        opened.code.index(shop)
        yield opened


@pytest.fixture(scope="module")
def ask(memory: smara.Memory, shop: Path) -> CodeQueries:
    return memory.code.asking(shop)


def labels(walk) -> dict[str, int]:
    return {each.node.label: each.depth for each in walk.reached}


def test_impact_names_direct_and_further_dependents_and_tests(ask):
    found = ask.impact("shop/store.py:Store.get")
    assert labels(found)["shop/prices.py:price"] == 1
    assert labels(found)["shop/prices.py:discount"] == 2
    assert labels(found)["shop/cli.py:main"] == 3
    assert labels(found)["tests/test_prices.py:test_discount_is_half"] == 3
    assert found.tests == 1


def test_a_path_leads_from_each_dependent_to_the_target(ask):
    main = next(
        each for each in ask.impact("Store.get").reached if each.node.label == "shop/cli.py:main"
    )
    assert [hop.node.qualname for hop in main.path] == ["discount", "price", "Store.get"]
    assert all(hop.kind == "calls" for hop in main.path)
    assert main.path[0].line == 5


def test_deps_callers_and_tests(ask):
    assert "shop/store.py:Store.get" in labels(ask.deps("shop/prices.py:price"))
    assert labels(ask.callers("price")) == {"shop/prices.py:discount": 1}
    assert list(labels(ask.tests_for("shop/store.py"))) == [
        "tests/test_prices.py:test_discount_is_half"
    ]


@pytest.mark.parametrize(
    ("target", "label"),
    [
        ("shop/store.py", "shop/store.py"), ("store.py", "shop/store.py"), ("./shop/store.py",
        "shop/store.py"),
        ("Store.get", "shop/store.py:Store.get"), ("get", "shop/store.py:Store.get"),
        ("shop/store.py:get", "shop/store.py:Store.get"), ("shop/store.py::Store.get",
        "shop/store.py:Store.get"),
        ("shop/store.py:8", "shop/store.py:Store.get"), ("store.py#L8", "shop/store.py:Store.get"),
        ("shop.store.Store", "shop/store.py:Store"), ("discount()", "shop/prices.py:discount"),
        ("shop/store.py:1", "shop/store.py"),
    ],
)  # fmt: skip
def test_a_target_is_understood_as_people_write_it(ask, target, label):
    assert [node.label for node in ask.resolve(target)] == [label]


def test_an_absolute_path_is_understood(ask, shop):
    assert ask.resolve(str(shop / "shop" / "cli.py"))[0].label == "shop/cli.py"


def test_a_folder_means_all_of_its_files(ask):
    assert "shop/store.py" in [node.path for node in ask.resolve("shop/")]
    assert labels(ask.impact("shop")) == {"tests/test_prices.py:test_discount_is_half": 1}


@pytest.mark.parametrize(
    ("wrong", "right"), [("discuont", "discount"), ("shop/stores.py", "shop/store.py")]
)
def test_an_unknown_target_is_refused_with_what_is_close(ask, wrong, right):
    with pytest.raises(NotFoundError, match=f"Did you mean .*{right}"):
        ask.impact(wrong)


def test_an_empty_target_and_wrong_numbers_are_refused(ask):
    with pytest.raises(InvalidInputError, match="Name a file"):
        ask.impact("  ")
    with pytest.raises(InvalidInputError, match="depth"):
        ask.impact("price", depth=0)
    with pytest.raises(InvalidInputError, match="budget"):
        ask.map(0)


def test_a_name_with_several_meanings_is_refused_with_all_of_them(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("def run():\n    pass\n")
    with smara.open(tmp_path / "s.db", embedder="off") as memory:
        memory.code.index(tmp_path)
        with pytest.raises(InvalidInputError, match=r"2 things: one.py:run \(line 1\), two.py:run"):
            memory.code.asking(tmp_path).impact("run")


def test_symbol_says_all_there_is(ask):
    card = ask.symbol("Store")
    assert card.node.doc == "All things and their prices."
    assert [member.name for member in card.members] == ["get", "_find"]
    assert card.dependents >= 2


def test_map_keeps_to_its_budget_and_follows_what_is_in_play(ask):
    assert ask.map(40).tokens <= 40
    text = ask.map(2_000).text
    assert "shop/store.py\n  class Store" in text
    assert "return" not in text


def test_cycles_are_shown_as_a_path(ask):
    assert [each.path for each in ask.cycles()] == [
        ("shop/loop_a.py", "shop/loop_b.py", "shop/loop_a.py")
    ]


def test_entry_points_come_from_the_manifest(ask):
    first = ask.entry_points()[0]
    assert first.node.label == "shop/cli.py:main"
    assert first.why == "a command of pyproject.toml"
    assert first.reaches >= 3


def test_history_gives_hot_spots_and_what_changes_together(ask):
    ask.history.read()
    assert ask.hotspots()[0].path in ("shop/store.py", "shop/prices.py")
    first = ask.cochange("shop/store.py")[0]
    assert (first.path, first.together, first.confidence) == ("shop/prices.py", 3, 1.0)


def test_modules_tell_purpose_neighbors_and_flows_without_a_model(ask):
    module = next(each for each in ask.modules() if each.path == "shop")
    assert module.purpose == "A shop that sells things."
    assert module.source == "structure"
    assert ("tests", 1) in [(path, min(count, 1)) for path, count in module.used_by]
    assert module.entry_points == ("shop/cli.py:main",)
    assert module.flows[0][:3] == (
        "shop/cli.py:main",
        "shop/prices.py:discount",
        "shop/prices.py:price",
    )


def test_a_changed_file_is_seen_by_the_next_question(memory, shop, ask):
    assert "shop/cli.py:unused" not in labels(ask.impact("price"))
    file = shop / "shop" / "cli.py"
    before = file.read_text()
    try:
        file.write_text(
            before.replace(
                "def unused() -> None:\n    pass", "def unused() -> None:\n    discount('x')"
            )
        )
        memory.code.update([file], shop)
        assert labels(ask.impact("price"))["shop/cli.py:unused"] == 2
    finally:
        file.write_text(before)
        memory.code.update([file], shop)
    assert "shop/cli.py:unused" not in labels(ask.impact("price"))


def test_a_model_describes_modules_once_and_a_bad_reply_changes_nothing(tmp_path, shop):
    from smara.testing import ScriptedModel

    good = json.dumps(
        {
            "folders": [
                {"path": "shop", "purpose": "Sells.", "flows": [["main", "price"]]},
                {"path": "x"},
            ]
        }
    )
    model = ScriptedModel(["no idea", good])
    with smara.open(tmp_path / "s.db", embedder="off", chat_model=model) as memory:
        memory.code.index(shop)
        ask = memory.code.asking(shop)
        with pytest.raises(BadReplyError):
            ask.describe(memory.models)
        assert next(each for each in ask.modules() if each.path == "shop").source == "structure"
        ask.describe(memory.models, 1)
        found = next(each for each in ask.modules() if each.path == "shop")
        assert (found.purpose, found.source, found.is_stale) == ("Sells.", "model", False)
        assert found.flows == (("main", "price"),)
        asked = len(model.requests)
        ask.describe(memory.models, 1)
        assert len(model.requests) == asked, "what is said already is not asked again"


def test_memories_are_linked_to_the_code_they_speak_of(tmp_path, shop, monkeypatch):
    monkeypatch.chdir(shop)
    with smara.open(tmp_path / "s.db", embedder="off") as memory:
        memory.code.index(shop)
        memory.memories.add(
            "Prices are doubled on purpose, the discount halves them again",
            type="decision",
            source="user_taught",
            by="person",
            files=["shop/prices.py"],
        )
        node = memory.code.asking(shop).resolve("price")[0]
        (link,) = memory.code_knowledge.about([node])
        assert (link.kind, link.type, link.path) == ("documents", "decision", "shop/prices.py")
        assert memory.code_knowledge.about(memory.code.asking(shop).resolve("shop/cli.py")) == []


def test_a_graph_goes_with_its_last_user(ask, shop):
    """No circle holds it, since large graphs would wait for the collector of circles."""
    questions = CodeQueries(ask.lookup, str(shop), ask._counter)
    past = GitFiles(str(shop))
    assert questions.map().text
    assert questions.find("shop/store.py")
    past.commit("abcdef")
    gc.disable()
    try:
        gone = [weakref.ref(each) for each in (questions.graph(), questions._loaded, past)]
        del questions, past
        assert [each() for each in gone] == [None, None, None]
    finally:
        gc.enable()
