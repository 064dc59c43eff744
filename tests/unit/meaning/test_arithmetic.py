"""Vectors compared without numpy have the cosines that numpy gives, to the last bit."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smara.database.vectors import cosines, signs_of, stored_signs
from smara.meaning.arithmetic import plain_cosines


def unit(numbers):
    floats = np.array(numbers, dtype=np.float32)
    return floats / max(float(np.linalg.norm(floats)), 1e-9)


def compared(codes, query):
    return plain_cosines([row.tobytes() for row in codes], query), cosines(codes, query).tolist()


@given(
    st.integers(1, 256).flatmap(
        lambda dims: st.tuples(
            st.lists(st.binary(min_size=dims, max_size=dims), max_size=9),
            st.lists(st.floats(-1, 1, width=32), min_size=dims, max_size=dims),
        )
    )
)
@settings(max_examples=60)
def test_any_vectors_have_the_same_cosines(drawn):
    stored, numbers = drawn
    codes = np.frombuffer(b"".join(stored), dtype=np.int8).reshape(-1, len(numbers))
    plain, expected = compared(codes, unit(numbers))
    assert plain == expected


@pytest.mark.parametrize("code", [-128, -127, -1, 0, 1, 127])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_no_digit_runs_over_at_the_ends_of_the_range(code, sign):
    codes = np.full((11, 256), code, dtype=np.int8)
    plain, expected = compared(codes, unit([sign] * 256))
    assert plain == expected


def test_many_rows_have_the_same_cosines():
    chance = np.random.default_rng(7)
    codes = chance.integers(-128, 128, (2_000, 256)).astype(np.int8)
    plain, expected = compared(codes, unit(chance.normal(size=256)))
    assert plain == expected


@pytest.mark.parametrize("dims", [1, 8, 63, 64, 65, 256])
def test_signs_are_the_same_bytes_without_numpy(dims, monkeypatch):
    codes = np.random.default_rng(dims).integers(-128, 128, (70, dims)).astype(np.int8)
    stored = [row.tobytes() for row in codes]
    with_numpy = stored_signs(stored)
    assert with_numpy == signs_of(codes).tobytes()
    monkeypatch.delitem(sys.modules, "numpy")
    assert stored_signs(stored) == with_numpy
    assert stored_signs([]) == b""


def test_the_first_question_of_a_process_loads_no_numpy_and_the_second_has_the_same_answer(
    tmp_path,
):
    program = """
import sys, smara
with smara.open(sys.argv[1], embed_in_background=False) as memory:
    if sys.argv[2:]:
        for text in ("the login fails at night", "retries of the uploader", "a red bicycle"):
            memory.messages.add(thread_id="t", role="user", content=text)
        memory.embeddings.embed_pending()
    else:
        ask = lambda: [(h.id, h.score, h.why) for h in memory.search("who uploads again?")]
        first, is_loaded = ask(), "numpy" in sys.modules
        print(len(first), is_loaded, ask() == first, "numpy" in sys.modules)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "memory.db")]
    subprocess.run([*command, "fill"], check=True, capture_output=True)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "False", "True", "True"]
