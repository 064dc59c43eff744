"""Vectors as somebody else made them: what is accepted, and what never is; what is known of
models.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smara.config import Settings
from smara.errors import BadReplyError, ConfigError, MissingSettingError
from smara.models.embedder import check_rows, unit_rows
from smara.models.embedders.servers import facts_of, space_of
from smara.testing import HashEmbedder

NAN, INFINITE = float("nan"), float("inf")


def test_rows_come_back_with_length_one():
    rows = check_rows([[3, 4], [0.0, -2.0]], 2, 2, name="mine")
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, -1.0]]
    assert rows.dtype == np.float32


def test_numbers_near_the_end_of_their_range_keep_their_direction():
    rows = check_rows([[1e308, 1e308], [1e-320, 0.0], [5e38, -5e38]], 3, 2, name="mine")
    assert np.allclose(np.abs(rows), [[0.5**0.5] * 2, [1, 0], [0.5**0.5] * 2])


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (None, "no list"), ({}, "no list"), ("ab", "no list"), ([], "0 vectors for 2 texts"),
        ([[1, 2]], "1 vectors for 2 texts"), ([[1, 2]] * 3, "3 vectors for 2 texts"),
        ([[1, 2], [1, 2, 3]], "different lengths"), ([[1, 2], []], "different lengths"),
        ([[1, 2, 3]] * 2, "3 dimensions in the place of 2"), ([[1]] * 2, "1 dimensions"),
        ([[], []], "0 dimensions"), ([1, 2], "no vector"), ([[[1, 2]], [[1, 2]]], "no vector"),
        ([[1, NAN], [1, 2]], "a number that is not finite"), ([[1, 2], [-INFINITE, 2]],
        "a number that is not finite"),
        ([[0, 0], [1, 2]], "zeros"), ([["1", "2"], [1, 2]], "no vector"), ([[None, 2], [1, 2]],
        "no vector"),
        ([[True, False], [False, True]], "no vector"), ([[10**400, 1], [1, 2]], "no vector"),
    ],
)  # fmt: skip
def test_what_is_no_vector_is_refused_whole(found, told):
    with pytest.raises(BadReplyError, match=told) as caught:
        check_rows(found, 2, 2, name="mine")
    assert caught.value.reason == "unreadable"


def test_longer_rows_are_cut_only_where_that_is_right():
    assert check_rows([[3, 4, 12]], 1, 2, name="mine", may_cut=True).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)]
    ]
    with pytest.raises(BadReplyError, match="1 dimensions in the place of 2"):
        check_rows([[3]], 1, 2, name="mine", may_cut=True)
    with pytest.raises(BadReplyError, match="zeros"):
        check_rows([[0, 0, 12]], 1, 2, name="mine", may_cut=True)


@given(
    st.lists(
        st.lists(st.floats() | st.integers() | st.none() | st.booleans(), max_size=4), max_size=4
    )
)
def test_whatever_comes_it_is_unit_rows_or_an_error(found):
    try:
        rows = check_rows(found, 2, 3, name="mine")
    except BadReplyError:
        return
    assert rows.shape == (2, 3)
    assert np.allclose(np.linalg.norm(rows.astype(np.float64), axis=1), 1, atol=1e-5)


def test_a_row_of_zeros_stays_one():
    assert unit_rows(np.array([[0.0, 0.0], [0.0, 3.0]], dtype=np.float32)).tolist() == [
        [0, 0],
        [0, 1],
    ]


# what is known of models


@pytest.mark.parametrize(
    ("model", "dims"),
    [
        ("qwen3-embedding:0.6b", 1024), ("qwen3-embedding:4b", 2560), ("qwen3-embedding:8b-q8_0",
        4096),
        ("Qwen/Qwen3-Embedding-0.6B", 1024), ("text-embedding-3-large", 3072),
        ("nomic-embed-text:v1.5", 768),
        ("bge-m3", 1024), ("all-minilm:33m", 384), ("mine", None), ("qwen3-embedding:1b", None),
        ("", None),
    ],
)  # fmt: skip
def test_a_model_is_known_by_any_of_its_names(model, dims):
    facts = facts_of(model)
    assert (facts.dims if facts else None) == dims


def test_a_model_that_can_be_cut_gives_1024_dimensions_with_256_in_front():
    space = space_of("qwen3-embedding:8b", Settings())
    assert (space.dims, space.first_dims, space.is_cut) == (1024, 256, True)


def test_a_model_that_cannot_be_cut_gives_its_own_dimensions():
    space = space_of("all-minilm", Settings())
    assert (space.dims, space.first_dims, space.is_cut) == (384, 384, False)


def test_the_setting_says_how_many_dimensions():
    assert space_of("text-embedding-3-small", Settings(embedder_dims=256)).dims == 256
    assert space_of("mine", Settings(embedder_dims=99)).dims == 99


@pytest.mark.parametrize(
    ("model", "dims"), [("text-embedding-3-small", 2000), ("all-minilm", 256), ("all-minilm", 400)]
)
def test_dimensions_that_a_model_cannot_give_are_refused(model, dims):
    with pytest.raises(ConfigError, match="embedder_dims"):
        space_of(model, Settings(embedder_dims=dims))


def test_a_model_nobody_knows_needs_its_dimensions():
    with pytest.raises(MissingSettingError, match="SMARA_EMBEDDER_DIMS"):
        space_of("mine", Settings())


def test_a_query_is_worded_as_the_model_was_trained():
    qwen, nomic = (
        space_of("qwen3-embedding:4b", Settings()),
        space_of("nomic-embed-text", Settings()),
    )
    assert qwen.worded("why", "query").startswith("Instruct: ")
    assert qwen.worded("why", "query").endswith("\nQuery:why")
    assert qwen.worded("because", "document") == "because"
    assert (nomic.worded("a", "query"), nomic.worded("a", "document")) == (
        "search_query: a",
        "search_document: a",
    )


# the fake


def test_the_fake_is_close_where_words_are_shared_and_the_same_everywhere():
    embedder = HashEmbedder()
    rows = embedder.embed(["reset the database", "the database", "panda bears"], "query")
    near, far = float(rows[0] @ rows[1]), float(rows[0] @ rows[2])
    assert near > 0.6 > 0.5 > abs(far)
    assert rows[2][:3].tolist() == HashEmbedder().embed(["Panda, BEARS!"])[0][:3].tolist()
    assert embedder.asked[0] == ("query", "reset the database")


def test_the_fake_knows_nothing_of_a_text_without_words_and_has_as_many_spaces_as_names():
    assert not HashEmbedder().embed(["", " ... "]).any()
    one, other = HashEmbedder(32, "one"), HashEmbedder(32, "other")
    assert abs(float(one.embed(["word"])[0] @ other.embed(["word"])[0])) < 0.6
    assert (one.model_id, one.dims, one.first_dims) == ("one", 32, 32)


def test_the_fake_fails_while_it_is_told_to():
    embedder = HashEmbedder()
    embedder.error = BadReplyError("no")
    with pytest.raises(BadReplyError):
        embedder.embed(["x"])
    embedder.error = None
    assert embedder.embed(["x"]).shape == (1, 64)
