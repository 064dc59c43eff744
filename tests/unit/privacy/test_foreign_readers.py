"""A reader of another tool's file reads it or names the record; no content does anything else."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smara.privacy.foreign.formats import FOREIGN, recognize
from smara.privacy.foreign.records import Malformed
from tests import foreign_stores

MAKERS = [
    pytest.param(name, make, id=f"{name}-{number}")
    for name, makers in foreign_stores.EVERY.items()
    for number, make in enumerate(makers)
    if name != "basic-memory" and make is not foreign_stores.mem0_notes
]
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=8),
    st.just([]), st.just({}), st.just([3]), st.just([["x"]]), st.just("[1]"), st.just("[["),
    st.just("\ud800"),
)  # fmt: skip


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, each in inside:
        yield from places_in(each, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    value[path[0]] = put(value[path[0]], path[1:], new)
    return value


def change_json(text: str, data: Any) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        document = [json.loads(line) for line in text.splitlines()]
    path = data.draw(st.sampled_from(list(places_in(document))))
    return json.dumps(put(document, path, data.draw(VALUES)))


def change(path: Path, data: Any) -> None:
    """Put any value anywhere into a file."""
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as connection, connection:
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema")]
            table = data.draw(st.sampled_from(names))
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column = data.draw(st.sampled_from(columns))
            value = data.draw(
                st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.binary(),
                          st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
            )  # fmt: skip
            connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            files = {name: archive.read(name).decode() for name in archive.namelist()}
        name = data.draw(st.sampled_from(sorted(files)))
        files[name] = change_json(files[name], data)
        with zipfile.ZipFile(path, "w") as archive:
            for each, text in files.items():
                archive.writestr(each, text)
    else:
        path.write_text(change_json(path.read_text(), data))


@pytest.mark.parametrize(("name", "make"), MAKERS)
@given(data=st.data())
def test_any_value_anywhere_is_read_or_named(name, make, data):
    with TemporaryDirectory() as folder:
        path = make(Path(folder))
        change(path, data)
        recognize(str(path))
        with suppress(Malformed):
            for record in FOREIGN[name].read(str(path)):
                assert isinstance(getattr(record, "text", ""), str)


@given(text=st.binary(max_size=200))
@example(text=b"SQLite format 3\x00")  # a database that was cut off in its head
def test_any_bytes_are_recognized_as_something_or_nothing(text):
    with TemporaryDirectory() as folder:
        for name in ("a.json", "a.md", "a.db", "a.zip"):
            path = Path(folder, name)
            path.write_bytes(text)
            found = recognize(str(path))
            assert found is None or found.name in FOREIGN
            for each in FOREIGN.values():
                with suppress(Malformed):
                    list(each.read(str(path)))
