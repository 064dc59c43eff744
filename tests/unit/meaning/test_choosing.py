"""Which space answers, and whose choice counts."""

from __future__ import annotations

from typing import Any

import pytest

from smara.errors import ConfigError
from smara.meaning.embedders import Embedders, choose_space, chosen_setting
from smara.meaning.models import Space
from smara.testing import HashEmbedder


def space(
    model_id: str, state: Any = "ready", embedder: str = "offline", chosen_at: int | None = None
) -> Space:
    return Space(
        len(model_id),
        model_id,
        64,
        embedder=embedder,
        state=state,
        created_at=1,
        chosen_at=chosen_at,
    )


@pytest.mark.parametrize(
    ("spaces", "expected"),
    [
        ([space("own"), space("old")], "own"),
        ([space("own", "filling"), space("old")], "old"),
        ([space("own", "filling"), space("old", "filling")], "own"),
        ([space("own", "filling"), space("old", "retired")], "own"),
        ([space("own", "filling"), space("shut")], "own"),
        ([space("shut")], None),
        ([space("own", "retired")], None),
        ([], None),
    ],
)
def test_the_own_space_answers_once_it_is_ready_and_until_then_another_that_can(spaces, expected):
    found, note = choose_space(spaces, "own", lambda each: each.model_id != "shut")
    assert (found.model_id if found else None) == expected
    assert note


def test_a_projects_choice_stands_in_the_place_of_the_default_alone():
    spaces = [
        space("a", embedder="ollama:qwen", chosen_at=5),
        space("b", embedder="onnx:/models/b", chosen_at=9),
    ]
    assert chosen_setting(spaces, "offline") == "onnx:/models/b"
    assert chosen_setting(spaces, "openai") == "openai"
    assert chosen_setting([space("a")], "offline") == "offline"


@pytest.mark.parametrize(
    "embedder", ["openai", "openai:text-embedding-3-small", "ollama:qwen@http://10.0.0.7:11434"]
)
def test_a_choice_that_sends_text_away_is_nobody_elses(embedder):
    assert chosen_setting([space("a", embedder=embedder, chosen_at=5)], "offline") == "offline"


def test_another_spaces_embedder_is_opened_only_when_it_keeps_text_here_and_makes_its_vectors():
    asked: list[str] = []

    def opened(setting: str) -> Any:
        asked.append(setting)
        if setting == "onnx:/gone":
            raise ConfigError("There is no such folder.")
        return HashEmbedder(model_id=setting)

    embedders = Embedders("offline", opened)
    assert embedders.can_open(space("onnx:/there", embedder="onnx:/there"))
    assert not embedders.can_open(space("onnx:/gone", embedder="onnx:/gone"))
    assert not embedders.can_open(space("another version", embedder="offline"))
    assert not embedders.can_open(space("openai", embedder="openai"))
    assert "openai" not in asked
    assert not Embedders("off", opened).can_open(space("offline"))


def test_an_embedder_is_opened_once():
    made: list[str] = []

    def opened(setting: str) -> Any:
        made.append(setting)
        return HashEmbedder()

    embedders = Embedders("offline", opened)
    assert embedders.own([]) is embedders.own([])
    assert made == ["offline"]
