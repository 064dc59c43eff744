"""The map of a repository: within its budget, the same every time, heads and never bodies."""

from __future__ import annotations

import pytest

from smara.codegraph.models import Node
from smara.codegraph.structure import definition_head, make_map
from smara.core.tokens import counter_for
from tests.unit.codegraph.graphs import Drawn, drawn, random_graph


def tokens(text: str) -> int:
    return counter_for("o200k_base").count(text).tokens


def mapped(whole: Drawn, budget: int = 1_000, **options):
    return make_map(whole.graph, whole.names, whole.fetch, count=tokens, budget=budget, **options)


def shop(count: int = 8) -> Drawn:
    """A core that everything uses, features that each use a helper of their own, and a private
    name.
    """
    files = [
        ("core/store.py", ["Store", "Store.get", "Store._hidden", "open_store"]),
        ("core/rare.py", ["rare_one"]),
    ]
    edges = []
    for number in range(count):
        files.append((f"features/f{number}.py", [f"run{number}", f"helper{number}"]))
        run = f"features/f{number}.py:run{number}"
        edges += [
            (run, "calls", "core/store.py:Store.get"),
            (run, "calls", f"features/f{number}.py:helper{number}"),
        ]
        edges.append((run, "calls", "core/store.py:Store._hidden"))
    edges.append(("features/f0.py:run0", "calls", "core/rare.py:rare_one"))
    return drawn(files, edges)


@pytest.mark.parametrize("budget", [1, 5, 13, 40, 100, 250, 1_000, 10_000])
@pytest.mark.parametrize("seed", range(12))
def test_a_map_is_never_over_its_budget(seed, budget):
    found = mapped(random_graph(seed, files=25, symbols=12, edges=300), budget)
    assert tokens(found.text) == found.tokens <= budget
    assert bool(found.text) == (found.symbols > 0)


@pytest.mark.parametrize("seed", range(10))
def test_more_budget_never_shows_less(seed):
    whole = random_graph(seed, files=25, symbols=12, edges=300)
    sizes = [mapped(whole, budget).symbols for budget in range(10, 800, 60)]
    assert sizes == sorted(sizes)


def test_the_same_question_gives_the_same_text():
    one, other = (mapped(shop(), 60, files=["features/f3.py"]).text for _ in range(2))
    assert one == other


def test_what_much_depends_on_comes_first_and_files_stand_in_the_order_of_paths():
    text = mapped(shop(), 18).text
    assert text.splitlines()[0] == "core/store.py"
    assert "  class Store" in text
    assert "    def get(self)" in text
    paths = [line for line in mapped(shop(), 5_000).text.splitlines() if not line.startswith(" ")]
    assert paths == sorted(paths)


def test_files_in_play_bring_what_they_use():
    assert "rare_one" not in mapped(shop(), 18).text
    assert "rare_one" in mapped(shop(), 30, files=["features/f0.py"]).text


def test_a_name_in_play_is_shown_and_so_is_its_file():
    text = mapped(shop(), 45, named=["helper5"]).text
    assert "features/f5.py" in text
    assert "def helper5" in text


def test_private_names_weigh_less_than_others_that_are_used_as_much():
    ranked = mapped(shop(), 30).text
    assert "get" in ranked
    assert "_hidden" not in ranked


def test_a_member_is_shown_under_its_class():
    lines = mapped(shop(), 5_000).text.splitlines()
    assert lines.index("  class Store") < lines.index("    def get(self)")


def test_an_empty_tree_has_an_empty_map():
    found = mapped(drawn([], []))
    assert (found.text, found.tokens, found.files) == ("", 0, 0)


@pytest.mark.parametrize(
    ("signature", "head"),
    [
        ("def login(self,\n        user) -> Token:", "def login(self, user) -> Token"),
        ("(user, secret)", "def login(user, secret)"),
        ("", "def login"),
        ("func (s *S) login() {", "func (s *S) login()"),
    ],
)
def test_a_head_is_one_line_without_its_body(signature, head):
    assert (
        definition_head(
            Node(
                1,
                "function",
                "login",
                qualname="login",
                path="a.py",
                first_line=1,
                last_line=9,
                signature=signature,
            )
        )
        == head
    )


def test_a_long_head_is_cut():
    found = definition_head(
        Node(
            1,
            "function",
            "f",
            qualname="f",
            path="a.py",
            first_line=1,
            last_line=9,
            signature="def f(" + "x, " * 200 + ")",
        )
    )
    assert len(found) == 120
    assert found.endswith("…")
