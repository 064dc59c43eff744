"""Every source is ranked by one BM25 and one fusion, with the weights of one table."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

import smara
from smara.search.code import CodeTrees
from smara.search.search import Search, record_finders
from smara.search.weights import WEIGHTS, Weights
from smara.testing import HashEmbedder, open_temporary

SOURCE = Path(smara.__file__).parent
SHORT = "The walrus sleeps."
LONG = f"{'The walrus swims. ' * 3}{'Penguins stand on ice and look at the sea all day. ' * 12}"
FUNCTIONS = {
    "short.py": "def one():\n    walrus = 1\n",
    "long.py": "def two():\n    walrus = walrus + walrus\n"
    + "".join(f"    penguin_{number} = ice\n" for number in range(20)),
}
WORDS = {
    "messages": "message_words",
    "tasks": "record_words",
    "memories": "record_words",
    "code": "code_words",
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    """A short and a long text in each source; the long one says the word more often."""
    root = tmp_path_factory.mktemp("tree")
    for name, text in FUNCTIONS.items():
        (root / name).write_text(text, encoding="utf-8")
    with open_temporary(embedding_model=HashEmbedder()) as memory:
        for thread, text in (("a", SHORT), ("b", LONG)):
            memory.messages.add(thread_id=thread, role="user", content=text)
            memory.memories.remember(text, type="gotcha")
        memory.tasks.add("Sleep", description=SHORT)
        memory.tasks.add("Swim", description=LONG)
        memory.code.index(root)
        memory.embeddings.embed_pending()
        yield memory


def search(memory, weights: Weights, source: str, *, by_meaning: bool = False):
    """The best two of a source, ranked with these weights."""
    rooms = memory._rooms
    meaning = rooms.meaning if by_meaning else None
    finders = record_finders(
        rooms.project,
        meaning=meaning,
        find_trees=lambda: CodeTrees(rooms.database, rooms.scope),
        weights=weights,
    )
    search = Search(rooms.project, rooms.store, meaning=meaning, finders=finders, weights=weights)
    return search.search("walrus", 2, sources=[source], deep=by_meaning)


def penalized(name: str, penalty: float) -> Weights:
    return replace(WEIGHTS, **{name: replace(getattr(WEIGHTS, name), length_penalty=penalty)})


@pytest.mark.parametrize(("source", "name"), WORDS.items())
def test_length_penalty_in_the_table_decides_the_words_of_each_source(memory, source, name):
    long_first, short_first = (
        sorted(search(memory, penalized(name, penalty), source), key=lambda hit: -hit.stages.words)
        for penalty in (0.0, 1.0)
    )
    assert len(long_first[0].content) > len(long_first[1].content)
    assert len(short_first[0].content) < len(short_first[1].content)


@pytest.mark.parametrize("source", WORDS)
def test_weight_of_meaning_in_the_table_moves_the_score_of_each_source(memory, source):
    meant = replace(WEIGHTS.fusion, message_meaning=0.4, code_meaning=0.4)
    before = search(memory, WEIGHTS, source, by_meaning=True)
    after = search(memory, replace(WEIGHTS, fusion=meant), source, by_meaning=True)
    assert [hit.stages.fused for hit in before] != [hit.stages.fused for hit in after]


def test_formulas_of_bm25_stand_in_one_file():
    formula = re.compile(
        r"math\.log\(\s*1\s*\+|math\.log\([^\n]*\+ 0\.5|\b_?[kK]1?\b\s*\+\s*1\b|\b_?K1\b"
        r"|frequency \+ 0\.5"
    )
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if formula.search(path.read_text(encoding="utf-8"))
    }
    # What recalls a decision lies below the search, and its rarity is another one: how often
    # English has a word counts with how often the project has it.
    assert found == {"search/bm25.py", "decisions/recall.py"}


# Fractions that decide no order by themselves.
NO_WEIGHTS = {
    "fuse._LEAST": "above nothing",
    "fuse._LEAST_PART": "what is explained",
    "messages._KEPT_SECONDS": "a time",
    "search.IMAGINE_SECONDS": "a time",
    "pack._LONGEST_ENTRY_SHARE": "a size",
    "ranker._FEWEST_ANSWERS": "a look, with the tables of ranker.json",
    "ranker._BRIEF": "a look",
    "ranker._LENGTHY": "a look",
    "relevance._USUAL_COSINE": "measured, of the calibrated embedder",
    "relevance._USUAL_DEVIATION": "measured, of the calibrated embedder",
}


def fractions(text: str) -> set[str]:
    """The constants of a module that hold a fraction, alone or beside others."""
    return {
        name.id
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in (target.elts if isinstance(target, ast.Tuple) else [target])
        for value in (node.value.elts if isinstance(node.value, ast.Tuple) else [node.value])
        if isinstance(name, ast.Name)
        and any(
            isinstance(each, ast.Constant) and isinstance(each.value, float)
            for each in ast.walk(value)
        )
        and not isinstance(value, ast.Call)
    }


def test_every_weight_stands_in_the_table():
    stray = {
        f"{path.stem}.{name}"
        for path in (SOURCE / "search").glob("*.py")
        if path.stem != "weights"
        for name in fractions(path.read_text(encoding="utf-8"))
    }
    assert stray == set(NO_WEIGHTS)


def test_the_reader_of_fractions_sees_them():
    assert fractions("A = 0.5\nB, C = 1, 2 / 3.0\nD = 4") == {"A", "B", "C"}


def test_weights_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        WEIGHTS.fusion.floor = 0.0
