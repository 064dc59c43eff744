"""A record that is a sequence names the field that holds its items, wherever that stands."""

from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from smara.core.items import Items
from smara.decisions.models import DecisionPage
from smara.feed.models import FeedPage
from smara.knowledge.models import MemoryPage
from smara.search.models import Answer, MemoryAnswer, ObservationAnswer, TaskAnswer, ThreadAnswer
from smara.tasks.models import ReadyTasks, TaskPage


@dataclass(frozen=True)
class Shelf(Items[str]):
    _FIELD = "books"

    name: str
    books: tuple[str, ...]


def test_items_are_those_of_the_named_field():
    shelf = Shelf("above", ("Emma", "Ulysses"))
    assert (list(shelf), len(shelf), shelf[1], "Emma" in shelf) == (
        ["Emma", "Ulysses"],
        2,
        "Ulysses",
        True,
    )


@pytest.mark.parametrize(
    "record",
    [
        Answer, DecisionPage, FeedPage, MemoryAnswer, MemoryPage, ObservationAnswer, ReadyTasks,
        TaskAnswer, TaskPage, ThreadAnswer,
    ],
)  # fmt: skip
def test_the_named_field_is_one(record):
    assert record._FIELD in {field.name for field in fields(record)}
