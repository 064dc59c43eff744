"""The memory behind a server: lent to many calls, left when it is broken, closed by its last
user.
"""

from __future__ import annotations

import pytest

import smara
from smara.errors import BusyError, CorruptError
from smara.surfaces.http.store import Store
from smara.tools import ToolContext

READY = ("task-query", {"action": "ready"}, ToolContext())


class Opening:
    """Opens a store's memory, and remembers each; fails as often as it is told to."""

    def __init__(self, path: str, *errors: Exception) -> None:
        self.opened: list[smara.Memory] = []
        self._path = path
        self._errors = list(errors)

    def __call__(self) -> smara.Memory:
        if self._errors:
            raise self._errors.pop(0)
        self.opened.append(smara.open(self._path))
        return self.opened[-1]


def is_closed(memory: smara.Memory) -> bool:
    try:
        memory.threads.list()
    except smara.SmaraError:
        return True
    return False


def test_memory_is_opened_once_for_many_calls(db):
    opening = Opening(db)
    store = Store(opening)
    assert opening.opened == []
    assert not store.call(*READY).is_error
    assert not store.call(*READY).is_error
    assert len(opening.opened) == 1
    store.close()
    assert is_closed(opening.opened[0])


@pytest.mark.parametrize(
    "error", [CorruptError("Damaged. Run `smara doctor`."), ValueError("surprise")]
)
def test_store_that_cannot_be_opened_is_told_and_tried_again(db, error):
    store = Store(Opening(db, error))
    assert store.call(*READY).structured["code"] in ("corrupt", "bug")
    assert not store.call(*READY).is_error
    store.close()


@pytest.mark.parametrize(
    ("error", "is_left"), [(CorruptError("Damaged."), True), (BusyError("Busy."), False)]
)
def test_memory_is_left_for_trouble_that_lies_with_the_store_alone(db, error, is_left):
    opening = Opening(db)
    store = Store(opening)
    with pytest.raises(smara.SmaraError), store.memory():
        raise error
    store.call(*READY)
    assert len(opening.opened) == 1 + is_left
    assert is_closed(opening.opened[0]) is is_left
    store.close()


def test_call_under_way_keeps_the_memory_that_another_one_left(db):
    opening = Opening(db)
    store = Store(opening)
    with store.memory() as mine:
        with pytest.raises(CorruptError), store.memory():
            raise CorruptError("Damaged.")
        assert not is_closed(mine)
        with store.memory() as fresh:
            assert fresh is not mine
    assert is_closed(mine)
    store.close()
    assert is_closed(opening.opened[1])


def test_closing_twice_or_before_anything_was_opened_is_no_failure(db):
    store = Store(Opening(db))
    store.close("session")
    store.call(*READY)
    store.close("session")
    store.close("session")


def test_what_follows_a_call_is_done_with_its_memory_and_never_spoils_its_answer(db):
    followed = []

    def after(memory: smara.Memory) -> None:
        followed.append(memory)
        raise ValueError("surprise")

    opening = Opening(db)
    store = Store(opening, after)
    assert not store.call(*READY).is_error
    assert followed == opening.opened
    store.close()
