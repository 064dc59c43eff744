"""Records behave as the standard dataclasses do; only the moment of compiling differs."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from dataclasses import KW_ONLY, field

import pytest

from smara.core.startup import record


def _classes(make):
    """The same classes, made by one decorator."""

    @make(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: tuple[str, ...] = field(default=(), compare=False, repr=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x")

    @make(frozen=True, slots=True)
    class Place(Point):
        """A point with a name."""

        _: KW_ONLY
        name: str = "here"

    @make(slots=True)
    class Count:
        """A list that grows."""

        names: list[str] = field(default_factory=list)

    return Point, Place, Count


BOTH = pytest.mark.parametrize("make", [record.dataclass, dataclasses.dataclass])


@BOTH
def test_a_record_is_made_compared_hashed_and_shown_as_a_dataclass(make):
    point, place, count = _classes(make)
    assert repr(point(1)).endswith("Point(x=1, y=2)")
    assert point(1, tags=("a",)) == point(1)
    assert point(1) != place(1)
    assert len({point(1), point(1, 2), point(3)}) == 2
    assert repr(place(1, name="there")).endswith("Place(x=1, y=2, name='there')")
    assert count().names is not count().names
    assert count(["a"]) == count(["a"])
    assert dataclasses.replace(place(1), y=5) == place(1, 5)
    assert dataclasses.asdict(point(1)) == {"x": 1, "y": 2, "tags": ()}
    assert point.__match_args__ == ("x", "y", "tags")
    assert not hasattr(point(1), "__dict__")


@BOTH
def test_a_record_refuses_what_a_dataclass_refuses(make):
    point, place, count = _classes(make)
    for act in (lambda: setattr(point(1), "x", 2), lambda: delattr(place(1), "x")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            act()
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required"):
        point()
    with pytest.raises(TypeError, match="positional"):
        place(1, 2, (), "there")
    with pytest.raises(ValueError, match="x"):
        place(-1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(count())


@BOTH
def test_the_signature_of_a_record_is_that_of_its_fields(make):
    _, place, _ = _classes(make)
    assert list(inspect.signature(place).parameters) == ["x", "y", "tags", "name"]


@record.dataclass(frozen=True, slots=True)
class Stored:
    """A record that is pickled."""

    x: int


def test_a_record_survives_pickling():
    assert pickle.loads(pickle.dumps(Stored(3))) == Stored(3)


def test_importing_a_record_compiles_nothing_until_the_first_instance_is_made():
    point, _, _ = _classes(record.dataclass)
    before = point.__init__
    point(1)
    assert point.__init__ is not before
    assert "y" in inspect.signature(point.__init__).parameters
