"""Every source is ranked by one BM25 and one fusion, with the weights of one table."""

from __future__ import annotations

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
    formula = re.compile(r"math\.log\(\s*1\s*\+|\b_?[kK]1?\b\s*\+\s*1\b|\b_?K1\b|frequency \+ 0\.5")
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if formula.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"search/bm25.py"}


def test_weights_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        WEIGHTS.fusion.floor = 0.0
