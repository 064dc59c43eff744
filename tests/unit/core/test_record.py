"""Records behave as the standard dataclasses do; only the moment of compiling differs."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from dataclasses import KW_ONLY, field
from typing import ClassVar

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
        total: int = field(default=7, init=False)
        limit: ClassVar[int] = 9

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
    assert (count().total, count.limit) == (7, 9)
    assert [each.name for each in dataclasses.fields(place)] == ["x", "y", "tags", "name"]
    assert dataclasses.is_dataclass(count)
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


def test_importing_a_record_looks_for_no_fields_until_they_are_asked_for():
    point, place, _ = _classes(record.dataclass)
    assert not any(isinstance(vars(each)["__dataclass_fields__"], dict) for each in (point, place))
    dataclasses.fields(place)
    assert isinstance(vars(place)["__dataclass_fields__"], dict)


@BOTH
def test_a_record_without_slots_has_its_defaults_as_attributes(make):
    @make
    class Loose:
        """A record that takes other attributes."""

        x: int = 3
        tags: list[str] = field(default_factory=list)

    loose = Loose()
    loose.other = 1
    assert (Loose.x, hasattr(Loose, "tags"), loose.tags) == (3, False, [])


@BOTH
def test_a_record_without_slots_names_its_fields_in_order(make):
    @make(frozen=True, eq=False)
    class Room:
        size: int
        name: str = ""

    class Hall(Room):
        pass

    assert Room.__match_args__ == Hall.__match_args__ == ("size", "name")


def test_two_threads_that_use_a_class_first_find_the_same_fields():
    """Both have the fact in hand before either has found it."""

    @record.dataclass(slots=True)
    class Stretch:
        looks: list[str] = record.field(default_factory=list)
        runs: int = 0

    fact = vars(Stretch)["__dataclass_fields__"]
    first, second = fact.__get__(None, Stretch), fact.__get__(None, Stretch)
    assert first is second
    assert (Stretch().looks, Stretch().runs) == ([], 0)
