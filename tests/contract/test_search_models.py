"""Models in a search: one that ranks anew, one that imagines an answer. Neither can break it."""

from __future__ import annotations

import pytest

from smara.errors import ModelUnavailableError
from smara.testing import HashEmbedder, ScriptedModel
from tests.contract.both import EACH_DATABASE

pytestmark = EACH_DATABASE


class Contrary:
    """Finds the shortest text best."""

    name = "contrary"
    is_local = True

    def rerank(self, query, texts, *, deadline_seconds):
        assert deadline_seconds > 0
        return [max(0.0, 1 - len(text) / 400) for text in texts]


class Broken(Contrary):
    name = "broken"

    def rerank(self, query, texts, *, deadline_seconds):
        raise ModelUnavailableError("The reranker is away. Try again later.")


def told(memory):
    for number in range(30):
        memory.messages.add(
            thread_id="t",
            role="user",
            content=f"walrus {'walrus ' * number}in the {'long ' * number}tale",
        )
    return memory


def test_reranker_decides_among_the_best(place):
    memory = told(place.open(rerank_model=Contrary()))
    answer = memory.search("walrus tale", 5)
    lengths = [len(hit.content) for hit in answer]
    assert lengths == sorted(lengths)
    assert "by contrary" in answer.trace.stages[-1]
    assert "reranker" in [name for name, _ in answer[0].stages.factors]


def test_broken_reranker_leaves_the_order_and_says_so(place):
    plain = [hit.id for hit in told(place.open()).search("walrus tale", 5)]
    answer = place.open(rerank_model=Broken()).search("walrus tale", 5)
    assert [hit.id for hit in answer] == plain
    assert "not by broken" in answer.trace.stages[-1]


def test_answer_is_imagined_when_little_was_found(place):
    """With words that no message has, only what the model makes up can lead to the message."""
    model = ScriptedModel(["The build is red because the lockfile was not committed."])
    memory = place.open(chat_model=model, embedding_model=HashEmbedder())
    memory.messages.add(
        thread_id="t", role="user", content="because the lockfile was not committed"
    )
    memory.embeddings.embed_pending()
    assert not memory.search("why such misery?")
    answer = memory.search("why such misery?", may_imagine=True)
    assert answer[0].content == "because the lockfile was not committed"
    assert "imagined" in answer.trace.stages[2]


@pytest.mark.parametrize("may_imagine", [True, False])
def test_nothing_is_imagined_where_enough_was_found_or_nobody_allowed_it(place, may_imagine):
    model = ScriptedModel([])
    memory = told(place.open(chat_model=model, embedding_model=HashEmbedder()))
    memory.embeddings.embed_pending()
    assert (
        memory.search("walrus tale" if may_imagine else "unheard of", may_imagine=may_imagine)
        is not None
    )
    assert not model.requests
