"""Vectors as they are stored: a byte for each dimension, and a bit for each sign."""

from __future__ import annotations

import numpy as np
import pytest

from smara.database.vectors import (
    VECTOR_KINDS,
    Shelf,
    cosines,
    decode,
    encode,
    rough_cosines,
    signs_of,
    vector_code,
    vector_kind,
)
from tests.rows import insert


def random_vectors(count: int, dims: int, seed: int = 7) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_a_kind_is_known_by_its_number_and_the_numbers_never_change():
    assert [vector_code(kind) for kind in VECTOR_KINDS] == [1, 2, 3, 4, 5, 6]
    assert VECTOR_KINDS == ("message", "task", "observation", "memory", "working", "code")
    assert [vector_kind(code) for code in (1, 2, 3, 4, 5, 6)] == list(VECTOR_KINDS)


@pytest.mark.parametrize("dims", [3, 64, 100, 256])
def test_a_stored_vector_has_the_direction_of_the_one_it_was(dims):
    vectors = random_vectors(50, dims)
    codes = decode(encode(vectors), dims)
    assert codes.shape == (50, dims)
    found = np.array([cosines(codes[place : place + 1], vectors[place])[0] for place in range(50)])
    assert found.min() > 0.999


def test_a_vector_without_a_direction_takes_no_bytes():
    assert encode(np.zeros((2, 8), dtype=np.float32)) == [b"", b""]
    assert encode(np.empty((0, 8), dtype=np.float32)) == []


def test_the_cosine_of_a_vector_does_not_depend_on_where_it_stands():
    vectors = random_vectors(700, 256)
    codes, query = decode(encode(vectors), 256), vectors[3]
    whole = cosines(codes, query)
    alone = [cosines(codes[place : place + 1], query)[0] for place in range(700)]
    backwards = cosines(codes[::-1], query)[::-1]
    assert whole.tolist() == alone == backwards.tolist()


def test_the_quick_cosines_are_nearly_the_exact_ones():
    vectors = random_vectors(1_000, 64)
    codes = decode(encode(vectors), 64)
    assert np.abs(rough_cosines(codes, vectors[5]) - cosines(codes, vectors[5])).max() < 1e-5


def test_signs_are_bits_filled_up_to_whole_words():
    codes = np.array([[5, -3, 0, 127] + [1] * 66], dtype=np.int8)
    signs = signs_of(codes)
    assert signs.shape == (1, 16)
    assert f"{signs[0, 0]:08b}" == "10011111"
    assert signs[0, 9:].sum() == 0


def test_a_block_knows_its_rows_from_its_first_on(database):
    shelf = Shelf(1, 1, 1, kind="message")
    stored = np.ones(64, dtype=np.int8).tobytes()
    with database.write() as session:
        for row in ((256 << 16) + 1, 300 << 16):
            project = {"project_no": 1} if database.kind == "postgres" else {}
            insert(database, session, "vectors", no=shelf.base + row, vector=stored, **project)
        block = database.vectors.make_block(session, shelf, 1, stamp=9)
    assert np.frombuffer(block.offsets, dtype=np.uint32).tolist() == [1, 44 << 16]
    assert (block.block, block.stamp, len(block.signs)) == (1, 9, 16)
